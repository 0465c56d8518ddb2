"use strict";
// Parts of a long page wait as text until they are opened or found.
const parts = [...document.querySelectorAll("details.part")];
const status = document.querySelector("#found");
const query = document.querySelector("#query");
const number = new Intl.NumberFormat("en").format;
const words = JSON.parse(document.querySelector("#words").textContent);
const say = (text, values = {}) => (words[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);

// What waits is escaped by the program that wrote this page, as all of it is; no other script may run in any case.
const WAITING = ":scope > script";

function fill(part) {
  const waiting = part.querySelector(WAITING);
  if (!waiting) return;
  waiting.remove();
  part.insertAdjacentHTML("beforeend", waiting.textContent);
  furnish(part);
}

for (const part of parts) part.addEventListener("toggle", () => { if (part.open) fill(part); });

const MOST_FOUND = 1000;
const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
// The words of the boxes are not the document's.
const has = (removal, wanted) =>
  [...removal.children].some((each) => !each.matches(".decide") && each.textContent.toLowerCase().includes(wanted));
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
      const fits = wanted === "" || has(removal, wanted);
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
  const said = found >= MOST_FOUND ? "at least {found} removals match" : found === 1 ? "{found} removal matches" : "{found} removals match";
  status.textContent = wanted === "" ? "" : say(said, { found: number(found) });
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

// Decisions. The numbers of the removals that are kept say everything, so a part need not be in place.
const FORMAT = "es-simhash-decisions";
const form = document.querySelector("#decisions");
const count = document.querySelector("#count");
const removals = []; // of each its key, its group, its part and, once it is in place, its boxes
const groups = new Map(); // by the key of what stays: which removals are for it, and how many of these are kept
const first = new Map(); // by part: the number of its first removal
const kept = new Set();
let isSaved = true;

for (const part of parts) {
  first.set(part, removals.length);
  part.kept = 0;
  const held = part.closest(".band").hasAttribute("data-held");
  for (const [key, stays] of JSON.parse(part.dataset.removals)) {
    const name = JSON.stringify(stays);
    if (!groups.has(name)) groups.set(name, { members: [], kept: 0 });
    const group = groups.get(name);
    group.members.push(removals.length);
    // What is held back stays, until somebody takes its tick away.
    if (held) { kept.add(removals.length); group.kept += 1; part.kept += 1; }
    removals.push({ key, group, part, held, boxes: null });
  }
}

function addBox(line, words, name, toggle) {
  const label = line.appendChild(document.createElement("label"));
  const box = label.appendChild(document.createElement("input"));
  box.type = "checkbox";
  box.autocomplete = "off"; // what a browser remembers of a page is not what was decided
  label.append(words, name.cloneNode(true));
  box.addEventListener("change", () => toggle(box.checked));
  return box;
}

function furnish(part) {
  let place = first.get(part);
  for (const article of part.querySelectorAll(":scope > article")) {
    const own = place++;
    const { members } = removals[own].group;
    const line = document.createElement("p");
    line.className = "decide";
    const boxes = { article, all: null };
    boxes.own = addBox(line, say("Keep "), article.querySelector("h4 bdi"), (on) => keep([own], on));
    if (members.length > 1) {
      const all = say("Keep all {number} that would go for ", { number: number(members.length) });
      boxes.all = addBox(line, all, article.querySelector(".stays bdi"), (on) => keep(members, on));
    }
    article.querySelector(".stays").after(line);
    removals[own].boxes = boxes;
    show(own);
  }
}

function show(place) {
  const { boxes, group } = removals[place];
  if (!boxes) return;
  boxes.own.checked = kept.has(place);
  boxes.article.classList.toggle("kept", boxes.own.checked);
  if (!boxes.all) return;
  boxes.all.checked = group.kept === group.members.length;
  boxes.all.indeterminate = group.kept > 0 && !boxes.all.checked;
}

function keep(places, on) {
  const touched = new Set();
  for (const place of places) {
    if (kept.has(place) === on) continue;
    const { group, part } = removals[place];
    if (on) kept.add(place); else kept.delete(place);
    group.kept += on ? 1 : -1;
    part.kept += on ? 1 : -1;
    touched.add(group).add(part);
  }
  for (const each of touched) {
    if (each.members) each.members.forEach(show);
    else tellPart(each);
  }
  isSaved = false;
  tell();
}

function tellPart(part) {
  const summary = part.querySelector("summary");
  const said = summary.querySelector("span") ?? summary.appendChild(document.createElement("span"));
  said.textContent = part.kept > 0 ? say(", {number} kept", { number: number(part.kept) }) : "";
}

function tell() {
  const [stay, all] = [kept.size, removals.length];
  count.firstElementChild.textContent = say("{stay} kept, {go} of {all} still go", { stay: number(stay), go: number(all - stay), all: number(all) });
  for (const each of classes) {
    const own = each.places.filter((place) => kept.has(place)).length;
    each.box.checked = own === each.places.length;
    each.box.indeterminate = own > 0 && !each.box.checked;
  }
}

const tellForm = (text) => { document.querySelector("#said").textContent = text; };

function save() {
  const [by, reason] = ["#by", "#reason"].map((each) => document.querySelector(each).value.trim());
  if (!/[\p{L}\p{N}]/u.test(by)) return say("Say who decides: it is recorded.");
  const named = (fits) => removals.filter(fits).map(({ key: [index, id, routing] }) => ({ index, id, routing }));
  const keep = named((each, place) => !each.held && kept.has(place));
  const remove = named((each, place) => each.held && !kept.has(place));
  const decisions = { format: FORMAT, version: 1, plan_sha256: form.dataset.plan, by, at: new Date().toISOString(), reason, keep, remove };
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${JSON.stringify(decisions, null, 1)}\n`], { type: "application/json" }));
  link.download = form.dataset.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  isSaved = true;
  return say("{file} keeps {number} of {all}. Your browser saves it.", { file: link.download, number: number(kept.size), all: number(removals.length) });
}

// Returns why a file is refused, as a whole; otherwise its decisions are added to those that are here.
async function load(file) {
  const name = file.name;
  let found = null;
  try { found = JSON.parse(await file.text()); } catch { /* told below */ }
  const isOurs = found?.format === FORMAT && found.version === 1 && Array.isArray(found.keep) && Array.isArray(found.remove);
  if (!isOurs || typeof found.by !== "string" || typeof found.reason !== "string") {
    return say("{name} is not a file of decisions: choose one that this page has made.", { name });
  }
  if (found.plan_sha256 !== form.dataset.plan) return say("{name} decides about another plan: open the page of that plan.", { name });
  const known = new Map(removals.map((each, place) => [JSON.stringify(each.key), place]));
  const placesOf = (keys) => keys.map((each) => known.get(JSON.stringify([each?.index, each?.id, each?.routing])));
  const [stay, go] = [placesOf(found.keep), placesOf(found.remove)];
  if ([...stay, ...go].includes(undefined)) return say("{name} decides about what is not in this plan: choose one that this page has made.", { name });
  keep(go, false);
  keep(stay, true);
  const size = removals.filter((each) => each.held).length - go.length + stay.length;
  const fields = ["by", "reason"].map((each) => [document.querySelector(`#${each}`), found[each]]);
  for (const [field, value] of fields) field.value ||= value;
  isSaved = kept.size === size && fields.every(([field, value]) => field.value === value);
  const added = "What {name} keeps is added: {number} are kept now.";
  return say(kept.size === size ? "The boxes are as in {name}." : added, { name, number: number(kept.size) });
}

const classes = []; // of each its removals, and the box that keeps all of them
for (const section of form ? document.querySelectorAll(".band") : []) {
  const own = [...section.querySelectorAll(".part")];
  const places = own.flatMap((part) => JSON.parse(part.dataset.removals).map((_, place) => first.get(part) + place));
  const line = document.createElement("p");
  line.className = "decide";
  const name = document.createElement("bdi");
  name.textContent = section.dataset.class;
  const all = say("Keep the whole class of {number}: ", { number: number(places.length) });
  classes.push({ places, box: addBox(line, all, name, (on) => keep(places, on)) });
  section.querySelector("h3").after(line);
}

if (form) {
  form.hidden = count.hidden = false;
  for (const part of parts) if (!part.querySelector(WAITING)) furnish(part);
  tell();
  form.addEventListener("submit", (event) => { event.preventDefault(); tellForm(save()); });
  form.addEventListener("input", () => { isSaved = false; });
  const earlier = document.querySelector("#earlier");
  earlier.addEventListener("change", async () => {
    if (earlier.files.length > 0) tellForm(await load(earlier.files[0]));
    earlier.value = "";
  });
  addEventListener("beforeunload", (event) => { if (!isSaved) event.preventDefault(); });
}
