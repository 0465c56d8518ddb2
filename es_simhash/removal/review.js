"use strict";
// Parts of a long page wait as text until they are opened or found.
const parts = [...document.querySelectorAll("details.part")];
const status = document.querySelector("#found");
const query = document.querySelector("#query");

// What waits is escaped by the program that wrote this page, as all of it is; no other script may run in any case.
const WAITING = ":scope > script";

function fill(part) {
  const waiting = part.querySelector(WAITING);
  if (!waiting) return;
  waiting.remove();
  part.insertAdjacentHTML("beforeend", waiting.textContent);
}

for (const part of parts) part.addEventListener("toggle", () => { if (part.open) fill(part); });

const MOST_FOUND = 1000;
const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => SIGNS[sign]);

function look() {
  const wanted = query.value.trim().toLowerCase();
  let found = 0;
  for (const part of parts) {
    const waiting = part.querySelector(WAITING);
    // Only parts that can have it are laid out, and of a word that is everywhere only the first.
    if (waiting && wanted !== "") {
      if (found >= MOST_FOUND || !waiting.textContent.toLowerCase().includes(escaped(wanted))) {
        part.hidden = true;
        continue;
      }
      fill(part);
    }
    let here = 0;
    for (const removal of part.querySelectorAll("article")) {
      const fits = wanted === "" || removal.textContent.toLowerCase().includes(wanted);
      removal.hidden = !fits;
      here += fits;
    }
    part.hidden = wanted !== "" && here === 0;
    found += here;
    if (wanted !== "" && here > 0 && found <= 100) part.open = true;
  }
  for (const band of document.querySelectorAll(".band")) {
    band.hidden = band.querySelector("details.part:not([hidden])") === null;
  }
  const count = new Intl.NumberFormat("en").format(found);
  status.textContent = wanted === "" ? "" : `${found >= MOST_FOUND ? "at least " : ""}${count} removals match`;
}

document.querySelector("#find")?.addEventListener("submit", (event) => { event.preventDefault(); look(); });
query?.addEventListener("search", look);

// A printed page shows everything, unless it would be as long as a book.
const LONGEST_PRINT = 2000;
let closed = [];
addEventListener("beforeprint", () => {
  if (Number(document.body.dataset.removals) > LONGEST_PRINT) return;
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const each of closed) { if (each.matches(".part")) fill(each); each.open = true; }
});
addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
