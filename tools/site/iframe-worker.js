// Runs the search in a hidden frame on a page that is opened from disk: browsers start no worker there.
// The theme would load a script of this name over the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      script.src = url;
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}

// A leading dash would exclude its word from the results; `--slo` is an option to look for.
{
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message) {
    const isQuery = typeof message.data === "string";
    const data = isQuery ? message.data.replace(/(^|\s)-+/g, "$1") : message.data;
    postMessage.call(this, { ...message, data });
  };
}
