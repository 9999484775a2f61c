"use strict";
// Conclusions that the list lacks: each is asked for when its row comes into sight, one after the other.
(() => {
  let last = Promise.resolve();
  const fill = async (cell) => {
    const answer = await fetch(cell.dataset.from);
    if (answer.ok) cell.textContent = await answer.text();
  };
  const inSight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      inSight.unobserve(target);
      last = last.then(() => fill(target)).catch(() => {}); // the dash stays
    }
  });
  for (const cell of document.querySelectorAll("[data-from]")) inSight.observe(cell);
})();
