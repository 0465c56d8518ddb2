"use strict";
const status = document.querySelector("#found");
const query = document.querySelector("#query");
const number = new Intl.NumberFormat("en").format;
const words = JSON.parse(document.querySelector("#words").textContent);
const say = (text, values = {}) => (words[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);

const bands = [...document.querySelectorAll(".band")];
const items = []; // of each duplicate its key, its group, its class, whether that is held back, and its element
const groups = new Map(); // by the key of what stays: which are for it, and how many of these are kept
const kept = new Set(); // numbers of those that are kept

for (const band of bands) {
  const held = band.hasAttribute("data-held");
  for (const element of band.querySelectorAll("[data-key]")) {
    const [key, stays] = JSON.parse(element.dataset.key);
    const name = JSON.stringify(stays);
    if (!groups.has(name)) groups.set(name, { members: [], kept: 0 });
    const group = groups.get(name);
    group.members.push(items.length);
    // What is held back stays, until somebody takes its tick away.
    if (held) { kept.add(items.length); group.kept += 1; }
    items.push({ key, group, band, held, element });
  }
}

// The words of the boxes are not the document's.
const has = ({ element }, wanted) =>
  [...element.children].some((child) => !child.matches(".decide") && child.textContent.toLowerCase().includes(wanted));

function look() {
  const wanted = query.value.trim().toLowerCase();
  let found = 0;
  for (const band of bands) band.hidden = wanted !== "";
  for (const item of items) {
    const fits = wanted === "" || has(item, wanted);
    item.element.hidden = !fits;
    if (!fits || wanted === "") continue;
    item.band.hidden = false;
    item.band.open = true;
    found += 1;
  }
  status.textContent = wanted === "" ? "" : say(found === 1 ? "{found} removal matches" : "{found} removals match", { found: number(found) });
}

document.querySelector("#find")?.addEventListener("submit", (event) => { event.preventDefault(); look(); });
query?.addEventListener("search", look);

// A printed page shows everything, unless it would be as long as a book.
const LONGEST_PRINT = 2000;
let closed = [];
addEventListener("beforeprint", () => {
  if (items.length > LONGEST_PRINT) return;
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const folded of closed) folded.open = true;
});
addEventListener("afterprint", () => { for (const folded of closed) folded.open = false; });

// Decisions.
const FORMAT = "es-simhash-decisions";
const form = document.querySelector("#decisions");
const count = document.querySelector("#count");
let isSaved = true;

function addBox(line, words, name, toggle) {
  const label = line.appendChild(document.createElement("label"));
  const box = label.appendChild(document.createElement("input"));
  box.type = "checkbox";
  box.autocomplete = "off"; // what a browser remembers of a page is not what was decided
  label.append(words, name.cloneNode(true));
  box.addEventListener("change", () => toggle(box.checked));
  return box;
}

function addLine(after) {
  const line = document.createElement("p");
  line.className = "decide";
  after.after(line);
  return line;
}

function furnish(item, place) {
  const { members } = item.group;
  const line = addLine(item.element.querySelector(".who"));
  const [goes, stays] = item.element.querySelectorAll(".id");
  item.own = addBox(line, say("Keep "), goes, (on) => keep([place], on));
  if (members.length > 1) {
    const all = say("Keep all {number} that would go for ", { number: number(members.length) });
    item.all = addBox(line, all, stays, (on) => keep(members, on));
  }
  show(place);
}

function show(place) {
  const { element, group, own, all } = items[place];
  own.checked = kept.has(place);
  element.classList.toggle("kept", own.checked);
  if (!all) return;
  all.checked = group.kept === group.members.length;
  all.indeterminate = group.kept > 0 && !all.checked;
}

function keep(places, on) {
  const touched = new Set();
  for (const place of places) {
    if (kept.has(place) === on) continue;
    const { group } = items[place];
    if (on) kept.add(place); else kept.delete(place);
    group.kept += on ? 1 : -1;
    touched.add(group);
  }
  for (const group of touched) group.members.forEach(show);
  isSaved = false;
  tell();
}

function tell() {
  const [stay, all] = [kept.size, items.length];
  count.firstElementChild.textContent = say("{stay} kept, {go} of {all} still go", { stay: number(stay), go: number(all - stay), all: number(all) });
  for (const { places, box } of classes) {
    const own = places.filter((place) => kept.has(place)).length;
    box.checked = own === places.length;
    box.indeterminate = own > 0 && !box.checked;
  }
}

const tellForm = (text) => { document.querySelector("#said").textContent = text; };

function save() {
  const [by, reason] = ["#by", "#reason"].map((name) => document.querySelector(name).value.trim());
  if (!/[\p{L}\p{N}]/u.test(by)) return say("Say who decides: it is recorded.");
  const named = (fits) => items.filter(fits).map(({ key: [index, id, routing] }) => ({ index, id, routing }));
  const keep = named((item, place) => !item.held && kept.has(place));
  const remove = named((item, place) => item.held && !kept.has(place));
  const decisions = { format: FORMAT, version: 1, plan_sha256: form.dataset.plan, by, at: new Date().toISOString(), reason, keep, remove };
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${JSON.stringify(decisions, null, 1)}\n`], { type: "application/json" }));
  link.download = form.dataset.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  isSaved = true;
  return say("{file} keeps {number} of {all}. Your browser saves it.", { file: link.download, number: number(kept.size), all: number(items.length) });
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
  const known = new Map(items.map((item, place) => [JSON.stringify(item.key), place]));
  const placesOf = (keys) => keys.map((key) => known.get(JSON.stringify([key?.index, key?.id, key?.routing])));
  const [stay, go] = [placesOf(found.keep), placesOf(found.remove)];
  if ([...stay, ...go].includes(undefined)) return say("{name} decides about what is not in this plan: choose one that this page has made.", { name });
  keep(go, false);
  keep(stay, true);
  const size = items.filter((item) => item.held).length - go.length + stay.length;
  const fields = ["by", "reason"].map((key) => [document.querySelector(`#${key}`), found[key]]);
  for (const [field, value] of fields) field.value ||= value;
  isSaved = kept.size === size && fields.every(([field, value]) => field.value === value);
  const added = "What {name} keeps is added: {number} are kept now.";
  return say(kept.size === size ? "The boxes are as in {name}." : added, { name, number: number(kept.size) });
}

const classes = []; // of each its duplicates, and the box that keeps all of them
for (const band of form ? bands : []) {
  const places = [...items.keys()].filter((place) => items[place].band === band);
  const name = document.createElement("bdi");
  name.textContent = band.dataset.class;
  const all = say("Keep the whole class of {number}: ", { number: number(places.length) });
  const line = addLine(band.querySelector("summary"));
  classes.push({ places, box: addBox(line, all, name, (on) => keep(places, on)) });
}

if (form) {
  form.hidden = count.hidden = false;
  items.forEach(furnish);
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
