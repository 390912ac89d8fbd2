// A CSV goes to the server; its answers become a map, alarms and neighbours.

const $ = selector => document.querySelector(selector);
const facts = JSON.parse($("#facts").textContent);
const served = path => facts.paths.includes(path);
const MOST_CARDS = 12, MOST_POINTS = 1500, HITS = 5;
let text = null;

const VIEWS = [
  ["map", "Map", "/explore", showMap],
  ["alarms", "Alarms", "/detect", showAlarms],
  ["neighbours", "Nearest in the index", "/search", showNeighbours],
].filter(([, , path]) => served(path));

// Asking ----------------------------------------------------------------------------------------

async function ask(path, more = {}) {
  const query = new URLSearchParams(more);
  for (const input of document.querySelectorAll("#columns input")) {
    if (input.value.trim()) query.set(input.name, input.value.trim());
  }
  const headers = { "content-type": "text/csv" };
  if ($("#token").value) headers.authorization = `Bearer ${$("#token").value}`;
  const reply = await fetch(`${path}?${query}`, { method: "POST", headers, body: text });
  if (reply.ok) return path === "/explore" ? reply.text() : reply.json();
  if (reply.status === 401) $("#login").hidden = false;
  const words = await reply.json().catch(() => ({}));
  throw new Error(words.detail ?? `the server answered ${reply.status}`);
}

function say(words, wrong = false) {
  $("#status").textContent = words;
  $("#status").classList.toggle("wrong", wrong);
}

async function look() {
  if (text === null) return;
  say("working ...");
  $("#login").hidden = true;
  const done = await Promise.allSettled(VIEWS.map(([, , , show]) => show()));
  const failed = done.map((one, i) => [one, VIEWS[i][1]]).filter(([one]) => one.reason);
  $("#tabs").hidden = failed.length === VIEWS.length;
  say(failed.map(([one, name]) => `${name}: ${one.reason.message}`).join("  ·  "), failed.length > 0);
  const first = done.findIndex(one => !one.reason);
  if (first >= 0) open(VIEWS[first][0]);
}

// Views -------------------------------------------------------------------------------------------

function element(name, words = "", className = "") {
  const made = document.createElement(name);
  made.textContent = words;
  if (className) made.className = className;
  return made;
}

function open(view) {
  for (const [name] of VIEWS) {
    $(`#view-${name}`).hidden = name !== view;
    $(`#tab-${name}`).setAttribute("aria-pressed", name === view);
  }
}

async function showMap() {
  $("#view-map iframe").srcdoc = await ask("/explore");
}

async function showAlarms() {
  const [steps, alarms] = await Promise.all([ask("/detect", { per: "step" }), ask("/detect")]);
  const rowsOf = new Map();
  steps.id.forEach((id, row) => { if (!rowsOf.has(id)) rowsOf.set(id, []); rowsOf.get(id).push(row); });
  const alarmsOf = new Map([...rowsOf.keys()].map(id => [id, []]));
  alarms.id.forEach((id, i) => alarmsOf.get(id).push(i));
  const worst = id => Math.max(0, ...alarmsOf.get(id).map(i => alarms.severity[i]));
  const ids = [...rowsOf.keys()].sort((a, b) => worst(b) - worst(a));
  const view = $("#view-alarms"), n = alarms.id.length;
  const heading = n === 1 ? "1 alarm" : `${n} alarms`;
  const rest = ids.length > MOST_CARDS ? `; the ${MOST_CARDS} worst are drawn` : "";
  view.replaceChildren(element("p", `${heading} in ${ids.length} series${rest}.`));
  for (const id of ids.slice(0, MOST_CARDS)) {
    const card = element("div", "", "card"), rows = rowsOf.get(id);
    card.append(element("h2", String(id)));
    const own = alarmsOf.get(id), width = rows.length;
    const bands = own.map(i => [alarms.start[i], alarms.end[i]]);
    const channels = steps.values[rows[0]].map((_, c) => rows.map(row => steps.values[row][c]));
    card.append(drawing(channels.map(values => ["line", values, rangeOf(values)]), bands, width));
    const scores = rows.map(row => steps.score[row]), levels = rows.map(row => steps.level[row]);
    const shared = rangeOf([...scores, ...levels]);
    const below = drawing([["line", scores, shared], ["level", levels, shared]], bands, width);
    below.classList.add("score");
    card.append(below, element("p", "Score below; alarms are where it exceeds the dashed level."));
    for (const i of own) {
      const when = alarms.start_time
        ? `${alarms.start_time[i]} to ${alarms.end_time[i]}` : `steps ${alarms.start[i]} to ${alarms.end[i]}`;
      card.append(element("p", `${when}: severity ${alarms.severity[i].toPrecision(3)}`));
    }
    view.append(card);
  }
}

async function showNeighbours() {
  const hits = await ask("/search", { k: HITS });
  const columns = Object.keys(hits).filter(name => name !== "query");
  const view = $("#view-neighbours"), rowsOf = new Map();
  hits.query.forEach((id, row) => { if (!rowsOf.has(id)) rowsOf.set(id, []); rowsOf.get(id).push(row); });
  view.replaceChildren();
  for (const [id, rows] of [...rowsOf].slice(0, 200)) {
    const card = element("div", "", "card"), table = document.createElement("table");
    const head = table.insertRow();
    for (const name of columns) head.append(element("th", name));
    for (const row of rows) {
      const line = table.insertRow();
      for (const name of columns) {
        const value = hits[name][row], isNumber = typeof value === "number";
        const shown = isNumber ? Number(value.toPrecision(4)) : value ?? "";
        line.append(element("td", String(shown), isNumber ? "number" : ""));
      }
    }
    const wide = element("div", "", "wide");
    wide.append(table);
    card.append(element("h2", String(id)), wide);
    view.append(card);
  }
}

// Drawing -----------------------------------------------------------------------------------------

function rangeOf(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
  return high > low ? [low, high] : [low - 1, low + 1];
}

// Least and largest value of each bin, so that no spike is lost.
function thinned(values) {
  const bins = Math.max(1, Math.ceil(values.length / MOST_POINTS * 2)), points = [];
  for (let start = 0; start < values.length; start += bins) {
    let low = -1, high = -1;
    for (let i = start; i < Math.min(values.length, start + bins); i++) {
      if (values[i] === null) continue;
      if (low < 0 || values[i] < values[low]) low = i;
      if (high < 0 || values[i] > values[high]) high = i;
    }
    if (low < 0) points.push(null);
    else for (const i of new Set([Math.min(low, high), Math.max(low, high)])) points.push([i, values[i]]);
  }
  return points;
}

// Lines [class, values, range] over steps, with bands where alarms are.
function drawing(lines, bands, width) {
  const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
  const last = Math.max(1, width - 1);
  svg.setAttribute("viewBox", `0 0 ${last} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  for (const [start, end] of bands) {
    const band = document.createElementNS(NS, "rect"), least = width / 250;  // thin ones show, too
    const middle = (start + end) / 2, wide = Math.max(end - start + 1, least);
    const place = { x: middle - wide / 2, y: 0, width: wide, height: 100, class: "band" };
    for (const [name, value] of Object.entries(place)) band.setAttribute(name, value);
    svg.append(band);
  }
  for (const [kind, values, [low, high]] of lines) {
    let way = "", pen = false;
    for (const point of thinned(values)) {
      if (point) way += `${pen ? "L" : "M"}${point[0]} ${(96 - 92 * (point[1] - low) / (high - low)).toFixed(2)}`;
      pen = point !== null;
    }
    const path = document.createElementNS(NS, "path");
    path.setAttribute("class", kind);
    path.setAttribute("d", way);
    svg.append(path);
  }
  return svg;
}

// Files -------------------------------------------------------------------------------------------

async function take(file) {
  if (!file) return;
  text = await file.text();
  $("#drop b").textContent = file.name;
  await look();
}

for (const [name, words] of VIEWS) {
  const tab = element("button", words);
  tab.id = `tab-${name}`;
  tab.type = "button";
  tab.addEventListener("click", () => open(name));
  $("#tabs").append(tab);
}
$("#file").addEventListener("change", event => take(event.target.files[0]));
$("#enter").addEventListener("click", look);
$("#columns").addEventListener("change", look);
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, event => {
    event.preventDefault();
    $("#drop").classList.toggle("over", kind === "dragover");
  });
}
document.addEventListener("drop", event => take(event.dataTransfer.files[0]));
if (!VIEWS.length) say("This server has no view of a CSV; see what there is to ask for.");
