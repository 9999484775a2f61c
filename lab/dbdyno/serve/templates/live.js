"use strict";
// A run as it goes on: events of its feed become the place, a chart of the present cell's seconds,
// and a row for each trial that has ended. Every text from outside is set as text.
(() => {
  const byId = (id) => document.getElementById(id);
  const words = JSON.parse(byId("words").textContent);
  const source = new EventSource(document.currentScript.dataset.events);
  const COLOURS = ["#3b8fd1", "#d9730d", "#2aa17a", "#b8629b", "#a08200", "#7a6ff0"];
  let trial = null;
  let group = "";
  let rows = [];
  let stale = null; // which rows go once the trial that began has a second of its own

  const axis = { labelColor: "currentColor", titleColor: "currentColor", gridOpacity: 0.25,
    domainColor: "currentColor", tickColor: "currentColor", titleFontWeight: "normal" };
  const warmup = { // shaded from the beginning of the load to its last second
    transform: [{ filter: "datum.phase === 'warmup'" },
      { aggregate: [{ op: "max", field: "at_s", as: "until_s" }] }, { calculate: "0", as: "from_s" }],
    mark: { type: "rect", opacity: 0.12, color: "gray" },
    encoding: { x: { field: "from_s", type: "quantitative" }, x2: { field: "until_s" } },
  };
  const panel = (field, title, last) => ({
    width: 600, height: 140, layer: [warmup, lines(field, title, last)],
  });
  const lines = (field, title, last) => ({
    mark: { type: "line", point: { size: 18 }, strokeWidth: 1.5 },
    encoding: {
      x: { field: "at_s", type: "quantitative", title: last ? words.second_axis : null,
        scale: { zero: true }, axis: { grid: false, tickMinStep: 1 } },
      y: { field, type: "quantitative", title, scale: { zero: true } },
      color: { field: "system", type: "nominal", title: null, scale: { range: COLOURS } },
      tooltip: [{ field: "system" }, { field: "at_s" }, { field, format: ".5~g" }],
    },
  });
  // The chart is made when there is something to draw: a scale over nothing has no ends.
  let chart = null;
  const drawn = () => chart ??= window.dbdynoEmbed(byId("chart"), {
    data: { name: "seconds", values: [{ ...rows[0] }] }, background: null, padding: 4,
    vconcat: [panel("transactions_per_s", words.tps, false),
      panel("latency_ms_p95", words.p95, true)],
    config: { view: { stroke: null }, axis, aria: false, font: "system-ui, sans-serif",
      legend: { orient: "top", labelColor: "currentColor", labelLimit: 400 } },
  }, { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
    tooltip: false }).then(({ view }) => {
    byId("chart").querySelector("svg").setAttribute("aria-hidden", "true"); // #chart is the image
    return view;
  });

  let asked = false;
  const redraw = () => {
    if (asked || rows.length === 0) return;
    asked = true;
    requestAnimationFrame(async () => {
      const view = await drawn();
      asked = false;
      const seconds = rows.map((row) => ({ ...row })); // Vega marks the rows that it is given
      await view.data("seconds", seconds).runAsync();
      byId("chart").dataset.rows = String(seconds.length);
    });
  };

  const clock = (seconds) => {
    const part = (value) => String(value).padStart(2, "0");
    const minutes = Math.floor(seconds / 60);
    return `${Math.floor(minutes / 60)}:${part(minutes % 60)}:${part(seconds % 60)} ${words.left}`;
  };
  const digits = (value, places) => value === null || value === undefined ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });

  const cell = (text, kind) => {
    const made = document.createElement(kind === "head" ? "th" : "td");
    if (kind === "head") made.scope = "row";
    if (kind === "number") made.className = "number";
    made.textContent = text;
    return made;
  };

  // Blocks are counted from 1; a pilot's trials come before them, in 0.
  const on = {
    run: () => {},
    stage: (event) => { byId("stage").textContent = event.text; },
    begin: (event) => {
      trial = event;
      const bar = byId("done");
      bar.hidden = false;
      bar.max = event.total;
      bar.value = event.number - 1;
      const here = `${event.block} ${event.cell}`;
      stale = here !== group ? () => true : (row) => row.system === event.system;
      group = here;
      byId("stage").textContent = `${words.trial} ${event.number}/${event.total}: ` +
        `${event.system}, ${event.cell} ` +
        `(${event.block ? `${words.block} ${event.block}` : words.pilot})`;
    },
    note: (event) => {
      const line = document.createElement("p");
      line.textContent = event.text;
      byId("notes").replaceChildren(line, ...[...byId("notes").children].slice(0, 2));
    },
    interval: (event) => {
      const phase = words[event.phase] ?? event.phase;
      byId("speed").textContent = `${phase} ${digits(event.at_s, 0)} s: ` +
        `${words.tps} ${digits(event.transactions_per_s, 1)}, ` +
        `${words.p95} ${digits(event.latency_ms_p95, 2)}; ${clock(event.left_s)}`;
      if (trial === null || event.phase === "drain") return; // part of a second, without new events
      if (stale) rows = rows.filter((row) => !stale(row));
      stale = null;
      rows.push({ ...event, system: trial.system });
      redraw();
    },
    end: (event) => {
      const row = document.createElement("tr");
      const outcome = cell(event.failure ?? "✓");
      if (event.failure) outcome.dataset.failed = "";
      row.append(cell(String(event.block || words.pilot), "head"), cell(event.system), cell(event.cell),
        cell(digits(event.transactions_per_s, 1), "number"),
        cell(digits(event.latency_ms_p95, 2), "number"), outcome);
      byId("ended").prepend(row);
    },
    over: () => {
      byId("speed").textContent = "";
      byId("done").hidden = true;
    },
    closed: () => {
      source.close();
      byId("stage").textContent = words.over;
      byId("speed").textContent = "";
    },
  };

  source.addEventListener("message", (message) => {
    const event = JSON.parse(message.data);
    on[event.kind]?.(event);
  });
  source.addEventListener("error", () => { byId("speed").textContent = words.cut_off; });
})();
