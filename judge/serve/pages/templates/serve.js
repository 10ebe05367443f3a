"use strict";
// The form for a submission, and pages that show what is under way.
(() => {
  const file = document.getElementById("file");
  if (file) {
    const drop = file.closest(".drop"), form = file.form, told = drop.querySelector("[data-size]");
    const most = Number(form.dataset.maxBytes);
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
    } catch { /* the server is unavailable for a moment */ }
    setTimeout(refresh, 1500);
  };
  setTimeout(refresh, 1500);
})();
