"use strict";
(() => {
  const rows = () => [...document.querySelectorAll("table[data-rows] tbody tr")];
  let at = -1;
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    all[at]?.removeAttribute("data-at");
    at = Math.min(all.length - 1, Math.max(0, at + step));
    all[at].setAttribute("data-at", "");
    all[at].scrollIntoView({ block: "nearest" });
    all[at].querySelector("a")?.focus({ preventScroll: true });
  };
  const keys = document.getElementById("keys");
  const acts = {
    j: () => move(1),
    k: () => move(-1),
    x: () => { const box = rows()[at]?.querySelector("input[type=checkbox]"); if (box) box.checked = !box.checked; },
    c: () => document.querySelector("[data-compare]")?.click(),
    "/": () => document.querySelector("[data-filter]")?.focus(),
    "?": () => keys.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (typing) { if (event.key === "Escape") typing.blur(); return; }
    if (keys.open || !Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  });
  for (const button of document.querySelectorAll("[data-opens-keys]")) {
    button.hidden = false;
    button.addEventListener("click", () => keys.showModal());
  }

  const file = document.getElementById("file");
  if (file) {
    const drop = file.closest(".drop"), form = file.form, told = drop.querySelector("[data-size]");
    const most = Number(form.dataset.mostBytes);
    const check = () => {
      const one = file.files[0], large = one && one.size > most;
      told.textContent = one ? `${(one.size / 2 ** 20).toFixed(1)} MiB${large ? ", which is too large" : ""}` : "";
      file.setCustomValidity(large ? "The file is too large." : "");
    };
    file.addEventListener("change", check);
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.dataset.over = ""; });
    drop.addEventListener("dragleave", () => delete drop.dataset.over);
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      delete drop.dataset.over;
      if (event.dataTransfer.files.length) { file.files = event.dataTransfer.files; check(); }
    });
  }

  const refresh = async () => {
    const live = document.querySelector("[data-live]");
    if (!live) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("live");
        if (fresh && fresh.innerHTML !== live.innerHTML) live.replaceWith(document.adoptNode(fresh));
      }
    } catch { /* the server is away for a moment */ }
    setTimeout(refresh, 1500);
  };
  setTimeout(refresh, 1500);
})();
