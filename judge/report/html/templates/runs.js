"use strict";
// The list of runs: the choice for a comparison, and the progress of those that are still going.

const form = document.getElementById("compare");
const button = form.querySelector("button");

function choose() {
  if (button) button.disabled = form.querySelectorAll("input:checked").length < 2;
}

async function follow() {
  let progress;
  try {
    const answer = await fetch("/progress.json", { headers: { "X-Judge-Token": document.body.dataset.token } });
    if (!answer.ok) return;
    progress = await answer.json();
  } catch {
    return;
  }
  const rows = [...document.querySelectorAll("tr[data-run]")];
  const going = Object.values(progress).some((each) => each.going);
  const changed = Object.keys(progress).some((name) => !rows.some((row) => row.dataset.run === name));
  // If a run began or ended, the order, the scores and the links change.
  if (changed || going !== (document.body.dataset.going === "1")) {
    location.reload();
    return;
  }
  for (const row of rows) {
    const now = progress[row.dataset.run];
    if (!now) continue;
    const bar = row.querySelector("progress");
    bar.value = now.done;
    bar.hidden = !now.going;
    const done = row.querySelector(".progress data");
    done.value = String(now.done);
    done.textContent = now.done.toLocaleString("en");
  }
}

for (const table of document.querySelectorAll("table.leaderboard")) sortable(table);
form.addEventListener("change", choose);
choose();
setInterval(follow, 2000);
