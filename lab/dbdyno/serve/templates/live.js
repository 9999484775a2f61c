"use strict";
// A run as it goes on: events of its feed become the place, a chart of the present cell's seconds,
// and a row for each trial that has ended. Every text from outside is set as text.
(() => {
  const byId = (id) => document.getElementById(id);
  const words = JSON.parse(byId("words").textContent);
  const source = new EventSource(document.currentScript.dataset.events);
  let trial = null;
  let group = "";
  let rows = [];
  let stale = null; // which rows go once the trial that began has a second of its own

  const axis = { labelColor: "currentColor", titleColor: "currentColor", gridOpacity: 0.25,
    domainColor: "currentColor", tickColor: "currentColor", titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12 };
  const warmup = { // shaded from the beginning of the load to its last second
    transform: [{ filter: "datum.phase === 'warmup'" },
      { aggregate: [{ op: "max", field: "at_s", as: "until_s" }] }, { calculate: "0", as: "from_s" }],
    mark: { type: "rect", opacity: 0.12, color: "gray" },
    encoding: { x: { field: "from_s", type: "quantitative" }, x2: { field: "until_s" } },
  };
  const panel = (field, title, last) => ({
    width: Math.min(byId("chart").clientWidth - 80, 960), height: 140,
    layer: [warmup, lines(field, title, last)],
  });
  const lines = (field, title, last) => ({
    mark: { type: "line", point: { size: 18 }, strokeWidth: 1.5 },
    encoding: {
      x: { field: "at_s", type: "quantitative", title: last ? words.second_axis : null,
        scale: { zero: true }, axis: { grid: false, tickMinStep: 1 } },
      y: { field, type: "quantitative", title, scale: { zero: true } },
      color: { field: "system", type: "nominal", title: null, scale: JSON.parse(byId("systems").textContent) },
      tooltip: [{ field: "system" }, { field: "at_s" }, { field, format: ",.4~r" }],
    },
  });
  // The chart is made when there is something to draw: a scale over nothing has no ends.
  let chart = null;
  const drawn = () => {
    byId("chart").parentElement.hidden = false;
    return chart ??= window.dbdynoEmbed(byId("chart"), {
      data: { name: "seconds", values: [{ ...rows[0] }] }, background: null, padding: 4,
      vconcat: [panel("transactions_per_s", words.tps, false),
        panel("latency_ms_p95", words.p95, true)],
      config: { view: { stroke: null }, axis, aria: false, font: "system-ui, sans-serif",
        legend: { orient: "top", columns: 2, labelColor: "currentColor", labelFontSize: 12, labelLimit: 400 } },
    }, { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: false,
      formatLocale: { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""] },
    }).then(({ view }) => {
      byId("chart").querySelector("svg").setAttribute("aria-hidden", "true"); // #chart is the image
      return view;
    });
  };

  let asked = false;
  const redraw = () => {
    if (asked || rows.length === 0 || !window.dbdynoEmbed) return; // the program may be missing here
    asked = true;
    requestAnimationFrame(async () => {
      const view = await drawn();
      asked = false;
      const seconds = rows.map((row) => ({ ...row })); // Vega marks the rows that it is given
      await view.data("seconds", seconds).runAsync();
      byId("chart").dataset.rows = String(seconds.length);
    });
  };

  // What the run does now: a step in words, how far it is where its words end with a percentage, its numbers.
  const show = (step, speed = "") => {
    const percent = /(\d+) %$/.exec(step);
    if (byId("stage").textContent !== step) byId("stage").textContent = step; // said once aloud
    byId("speed").textContent = speed;
    byId("share").hidden = percent === null;
    if (percent) byId("share").value = Number(percent[1]);
  };

  const headings = [...document.querySelectorAll("thead th")];
  const tableRow = (values) => {
    const made = document.createElement("tr");
    made.append(...values.map((text, at) => {
      const cell = document.createElement(at ? "td" : "th");
      if (!at) cell.scope = "row";
      cell.className = headings[at].className;
      cell.dataset.label = headings[at].textContent;
      cell.textContent = text;
      return cell;
    }));
    return made;
  };

  // Blocks are counted from 1; a pilot's trials come before them, in 0.
  let phase = null;
  let began_s = 0; // when the phase began, in seconds of the load
  let last_s = 0;
  let answered = null; // how the answers after the last block begin
  const on = {
    stage: (event) => show(event.text),
    begin: (event) => {
      trial = event;
      phase = null;
      last_s = 0;
      byId("done").max = event.total;
      byId("done").value = event.number - 1;
      const here = `${event.block} ${event.cell}`;
      stale = here !== group ? () => true : (row) => row.system === event.system;
      group = here;
      byId("place").textContent = `${words.trial} ${event.number}/${event.total}: ` +
        `${event.system}, ${event.cell} ` +
        `(${event.block ? `${words.block} ${event.block}` : words.pilot})`;
      byId("left").textContent = event.said.left;
      show(words.starting);
    },
    note: (event) => {
      const line = document.createElement("p");
      const [block] = /^after .+? blocks?: /.exec(event.text) ?? [""]; // of an answer
      const text = block === answered ? event.text.slice(block.length) : event.text;
      line.textContent = text.replace(/(\d) %/g, "$1\u00a0%"); // a line may not end between them
      if (!block) byId("notes").replaceChildren(line, ...[...byId("notes").children].slice(0, 2));
      else if (block === answered) byId("so-far").append(line);
      else byId("so-far").replaceChildren(line);
      answered = block || answered;
      byId("so-far").hidden = answered === null;
    },
    interval: (event) => {
      if (event.phase !== phase) began_s = last_s;
      phase = event.phase;
      last_s = event.at_s;
      const numbers = `${words.tps} ${event.said.transactions_per_s}, p95 ${event.said.latency_ms_p95} ms`;
      byId("left").textContent = event.said.left;
      if (phase === "drain") show(words.drain); // part of a second, without new events
      else show(words[phase] ?? phase, `${Math.round(last_s - began_s)} s: ${numbers}`);
      if (trial === null || phase === "drain") return;
      if (stale) rows = rows.filter((row) => !stale(row));
      stale = null;
      rows.push({ ...event, system: trial.system });
      redraw();
    },
    end: (event) => {
      const ended = tableRow([event.block || words.pilot, event.system, event.cell,
        event.said.transactions_per_s, event.said.latency_ms_p95, event.failure ?? "✓"]);
      if (event.failure) ended.lastChild.dataset.failed = "";
      byId("ended").prepend(ended);
      byId("ended").closest("[hidden]")?.removeAttribute("hidden");
    },
    closed: () => {
      source.close();
      for (const id of ["place", "left"]) byId(id).textContent = "";
      byId("done").hidden = byId("so-far").hidden = true; // the report has the last answer
      show(words.over);
    },
  };

  source.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    if (Object.hasOwn(on, event.kind)) on[event.kind](event);
  });
  source.addEventListener("error", () => { byId("speed").textContent = words.cut_off; });
})();
