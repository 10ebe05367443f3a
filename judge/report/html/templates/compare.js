"use strict";
// The matrix of tasks and runs: filters and sorts its tasks.

const matrix = document.getElementById("matrix");
const disagreeing = document.getElementById("disagreeing");

function chooseTasks() {
  const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of matrix.tBodies[0].rows) {
    row.text ??= row.textContent.toLowerCase();
    row.hidden = (disagreeing.checked && row.dataset.disagree !== "1") || !words.every((word) => row.text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  document.getElementById("shown").textContent = `${shown.toLocaleString("en")} of ${matrix.tBodies[0].rows.length.toLocaleString("en")} tasks`;
}

if (matrix) {
  sortable(matrix);
  document.getElementById("words").addEventListener("input", chooseTasks);
  disagreeing.addEventListener("change", chooseTasks);
  chooseTasks();
}
