"use strict";
// Charts that answer the pointer. The page is whole without it: where this does not run, each
// chart stays the picture that is printed too.
(() => {
  const root = document.documentElement;
  const { isDark, followed, listeners } = window.dbdynoColours;
  const narrow = followed("(max-width: 40rem)");
  const byId = (id) => document.getElementById(id);
  const dark = JSON.parse(byId("dark-colours").textContent);
  const views = new Map();
  const drawings = new Map(); // the last drawing begun of each chart that was near

  // The same chart in colours that can be seen on a dark page; data are left as they are.
  const repainted = (node) => {
    if (typeof node === "string") return dark[node.toLowerCase()] ?? node;
    if (Array.isArray(node)) return node.map(repainted);
    if (node === null || typeof node !== "object") return node;
    if (node.name && Array.isArray(node.extent)) return { ...node, extent: [0.4, 1] }; // a ramp
    const painted = ([key, inner]) =>
      [key, key === "data" || key === "datasets" ? inner : repainted(inner)];
    return Object.fromEntries(Object.entries(node).map(painted));
  };

  // What a chart leaves to Vega is black there.
  const lit = (config) => {
    const [ink, both] = [dark.black, { labelColor: dark.black, titleColor: dark.black }];
    const symbols = { symbolBaseFillColor: dark.black, symbolBaseStrokeColor: dark.black };
    const sections = { axis: both, legend: { ...both, ...symbols }, header: both, text: { color: ink },
      title: { color: ink, subtitleColor: ink } };
    const own = ([name, looks]) => [name, { ...looks, ...config[name] }];
    return { ...config, ...Object.fromEntries(Object.entries(sections).map(own)) };
  };

  // On a narrow page panels stand one below the other, each as wide as there is room.
  const LABELS = 120;
  const fitted = (node, room) => {
    if (Array.isArray(node)) return node.map((inner) => fitted(inner, room));
    if (node === null || typeof node !== "object") return node;
    const made = Object.fromEntries(Object.entries(node).map(([key, inner]) =>
      [key === "hconcat" ? "vconcat" : key, key === "data" ? inner : fitted(inner, room)]));
    if (made.concat) made.columns = 1;
    if (typeof made.width === "number" && (made.data || made.layer)) made.width = Math.min(made.width, room);
    if (made.title?.limit) made.title.limit = room + LABELS;
    if (made.legend) made.legend = { ...made.legend, columns: 2 };
    return made;
  };

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  const shown = (value) =>
    typeof value === "number" ? String(Number(value.toPrecision(5))) : String(value);
  const isTold = ([name, value]) =>
    !/^(_|place$)/.test(name) && value !== null && typeof value !== "object";
  const lines = (value) => typeof value === "object"
    ? Object.entries(value).filter(isTold).map(([name, inner]) => `${name}: ${shown(inner)}`)
    : [shown(value)];

  const tooltip = (handler, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    tip.replaceChildren(...lines(value).map((text) => {
      const line = document.createElement("p");
      line.textContent = text;
      return line;
    }));
    const room = root.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room)) + scrollX}px`;
    tip.style.top = `${event.clientY + 14 + scrollY}px`;
  };

  const draw = async (figure, over = 0) => {
    const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const wanted = isDark() ? "dark" : "light";
    const room = Math.max(120, figure.clientWidth - LABELS - over);
    const placed = narrow.matches ? fitted(spec, room) : spec;
    const painted = wanted === "dark" ? repainted(placed) : placed;
    painted.config = { ...(wanted === "dark" ? lit(painted.config ?? {}) : painted.config), aria: false };
    painted.config.mark = { tooltip: { content: "data" }, ...painted.config.mark };
    if (document.fonts.size) { // the page's own, for signs that the reader's machine may lack
      await document.fonts.ready;
      painted.config.font = getComputedStyle(document.body).fontFamily;
    }
    const place = figure.querySelector(".moving");
    views.get(figure)?.finalize();
    const { view } = await window.dbdynoEmbed(place, painted, {
      mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip,
    });
    views.set(figure, view);
    place.hidden = false;
    const svg = place.querySelector("svg");
    svg.setAttribute("aria-hidden", "true"); // `place` itself is the image
    const missing = svg.viewBox.baseVal.width - place.clientWidth;
    if (narrow.matches && !over && missing > 0) return draw(figure, missing);
    figure.dataset.state = wanted;
    figure.querySelector(".saving").hidden = false;
  };

  const save = async (figure, kind) => {
    const link = document.createElement("a");
    link.href = await views.get(figure).toImageURL(kind, 2);
    link.download = `${figure.dataset.name}.${kind}`;
    link.click();
  };

  // A chart is drawn when it comes near, or at once where it has no picture to be printed, and again in other colours.
  // One drawing of a chart follows the other: of two at once the older could end last and leave its colours.
  const drawNext = (figure) => {
    const before = drawings.get(figure) ?? Promise.resolve();
    drawings.set(figure, before.then(() => draw(figure)).catch(() => { figure.dataset.state = "still"; }));
  };
  const drawNear = (entries, observer) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      observer.unobserve(target);
      drawNext(target);
    }
  };
  const near = new IntersectionObserver(drawNear, { rootMargin: "300px" });

  const begin = () => {
    listeners.push(() => { for (const figure of drawings.keys()) near.observe(figure); });
    for (const figure of document.querySelectorAll("figure[data-name]")) {
      if (narrow.matches || figure.querySelector(".still")) near.observe(figure);
      else drawNext(figure);
      for (const button of figure.querySelectorAll("button[data-kind]")) {
        button.addEventListener("click", () => save(figure, button.dataset.kind));
      }
    }
  };
  begin();
})();
