"use strict";
// Parts of a long page wait in templates until they are opened, looked through or printed.
const parts = [...document.querySelectorAll("details.part")];
const status = document.querySelector("#found");
const query = document.querySelector("#query");

function fill(part) {
  const waiting = part.querySelector(":scope > template");
  if (waiting) waiting.replaceWith(waiting.content);
}

function contentOf(part) {
  const waiting = part.querySelector(":scope > template");
  return waiting ? waiting.content : part;
}

for (const part of parts) {
  part.addEventListener("toggle", () => { if (part.open) fill(part); });
  if (part.open) fill(part);
}

function look() {
  const wanted = query.value.trim().toLowerCase();
  let found = 0;
  let total = 0;
  for (const part of parts) {
    let here = 0;
    for (const removal of contentOf(part).querySelectorAll("article")) {
      const fits = wanted === "" || removal.textContent.toLowerCase().includes(wanted);
      removal.hidden = !fits;
      here += fits;
      total += 1;
    }
    part.hidden = here === 0;
    found += here;
    if (wanted !== "" && here > 0 && found <= 100) part.open = true;
  }
  for (const band of document.querySelectorAll(".band")) {
    band.hidden = band.querySelector("details.part:not([hidden])") === null;
  }
  const count = new Intl.NumberFormat("en");
  status.textContent = wanted === "" ? "" : `${count.format(found)} of ${count.format(total)} removals match`;
}

document.querySelector("#find").addEventListener("submit", (event) => { event.preventDefault(); look(); });
query.addEventListener("search", look);

// A printed page shows everything, unless it would be as long as a book.
const LONGEST_PRINT = 2000;
let closed = [];
addEventListener("beforeprint", () => {
  if (Number(document.body.dataset.removals) > LONGEST_PRINT) return;
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const each of closed) { if (each.matches(".part")) fill(each); each.open = true; }
});
addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
