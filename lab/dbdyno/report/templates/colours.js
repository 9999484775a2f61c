"use strict";
// Colours by choice: the system's until the reader presses the button, then the chosen ones on every page.
window.dbdynoColours = (() => {
  const root = document.documentElement;
  const button = document.getElementById("colours");
  const KEPT = "dbdyno-colours";
  const kept = {
    get() { try { return localStorage.getItem(KEPT); } catch { return null; } },
    set(value) { try { localStorage.setItem(KEPT, value); } catch { /* the choice holds for now */ } },
  };
  const listeners = []; // called after every change of the colours, or of a followed query
  const isDark = () => (root.dataset.colours || (system.matches ? "dark" : "light")) === "dark";
  const changed = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    for (const listener of listeners) listener();
  };
  // Chromium reports no change of a query whose `matches` was read first: it is read here, then followed by events.
  const followed = (query) => {
    const list = matchMedia(query);
    const state = { matches: list.matches };
    list.addEventListener("change", (event) => {
      state.matches = event.matches;
      changed();
    });
    return state;
  };
  const system = followed("(prefers-color-scheme: dark)");

  const chosen = kept.get();
  if (chosen === "dark" || chosen === "light") root.dataset.colours = chosen;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.colours = isDark() ? "light" : "dark";
    kept.set(root.dataset.colours);
    changed();
  });
  changed();
  return { isDark, followed, listeners };
})();
