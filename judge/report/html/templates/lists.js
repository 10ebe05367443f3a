"use strict";
// Keys of pages with a list: rows of tables with data-rows, a filter, marks for a comparison.

const listed = () => [...document.querySelectorAll("table[data-rows] tbody tr")];
let current = -1;
const move = (step) => {
  const all = listed();
  if (!all.length) return;
  all[current]?.removeAttribute("data-at");
  current = Math.min(all.length - 1, Math.max(0, current + step));
  all[current].setAttribute("data-at", "");
  all[current].scrollIntoView({ block: "nearest" });
  all[current].querySelector("a")?.focus({ preventScroll: true });
};
const keysDialog = document.getElementById("keys");
const acts = {
  j: () => move(1),
  k: () => move(-1),
  x: () => { const box = listed()[current]?.querySelector("input[type=checkbox]"); box?.click(); },
  c: () => document.querySelector("[data-compare]")?.click(),
  "/": () => document.querySelector("[data-filter]")?.focus(),
  "?": () => keysDialog.showModal(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (typing) { if (event.key === "Escape") typing.blur(); return; }
  if (keysDialog.open || !Object.hasOwn(acts, event.key)) return;
  event.preventDefault();
  acts[event.key]();
});
for (const button of document.querySelectorAll("[data-opens-keys]")) {
  button.hidden = false;
  button.addEventListener("click", () => keysDialog.showModal());
}
