// Around the map: selection, colours and legend, search; and the start of it all.

// Selection ---------------------------------------------------------------------------------------

// Dots that show and lie inside a closed line, by the even-odd rule.
function inside(line) {
  const found = [];
  for (let i = 0; i < N; i++) {
    if (!visible(i)) continue;
    const x = screenX(i), y = screenY(i);
    let within = false;
    for (let a = 0, b = line.length - 1; a < line.length; b = a++) {
      const [xa, ya] = line[a], [xb, yb] = line[b];
      if ((ya > y) !== (yb > y) && x < (xb - xa) * (y - ya) / (yb - ya) + xa) within = !within;
    }
    if (within) found.push(i);
  }
  return found;
}

function select(rows) {
  selected = new Uint8Array(N);
  for (const i of rows ?? []) selected[i] = 1;
  nSelected = rows?.length ?? 0;
  $("#selection").hidden = rows === null;
  $("#count").textContent = `${nSelected} selected`;
  $("#save").disabled = $("#copy").disabled = nSelected === 0;
  $("#said").textContent = "";
  redraw();
}

const selectedRows = () => [...selected.keys()].filter(i => selected[i]);
const cell = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

function csv() {
  const lines = [["id", ...data.columns.map(column => column.name)]];
  for (const i of selectedRows()) lines.push([ids[i], ...data.columns.map(c => valueOf(c, i))]);
  return lines.map(line => line.map(cell).join(",") + "\n").join("");
}

$("#save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "selected.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});

$("#copy").addEventListener("click", async () => {
  const text = selectedRows().map(i => ids[i]).join("\n");
  try {
    await navigator.clipboard.writeText(text);
    $("#said").textContent = `${nSelected} ids copied`;
  } catch {
    $("#said").textContent = "The browser does not let this page copy; download them instead.";
  }
});

$("#clear").addEventListener("click", () => select(null));
$("#unpin").addEventListener("click", () => pin(-1));
$("#zoom-in").addEventListener("click", () => zoom(1.6));
$("#zoom-out").addEventListener("click", () => zoom(1 / 1.6));
$("#zoom-all").addEventListener("click", fit);
$("#lasso").addEventListener("click", () => {
  state.lassoMode = !state.lassoMode;
  $("#lasso").setAttribute("aria-pressed", state.lassoMode);
  marks.classList.toggle("lasso", state.lassoMode);
});

// Colours and legend --------------------------------------------------------------------------

function paint() {
  readTheme();
  look = stylesOf(data.columns[state.column]);
  drawLegend();
  drawPanel();
  redraw();
}

function drawLegend() {
  const legend = $("#legend");
  legend.replaceChildren();
  if (look.scale) {
    const { low, high, cut, none } = look.scale;
    const bar = document.createElement("span");
    bar.className = "scale";
    const stops = Array.from({ length: STEPS }, (_, s) => ramp(s / (STEPS - 1)));
    bar.style.background = `linear-gradient(to right, ${stops.join(",")})`;
    const ends = [`${cut.low ? "≤ " : ""}${number(low)}`, `${cut.high ? "≥ " : ""}${number(high)}`];
    legend.append(ends[0], bar, ends[1]);
    if (none) legend.append(` · ${none} without a value`);
  }
  for (const entry of look.entries) {
    const item = document.createElement("button"), sample = document.createElement("canvas");
    const name = document.createElement("span"), count = document.createElement("small");
    item.type = "button";
    swatch(sample, look.styles[entry.style]);
    name.textContent = item.title = entry.name;
    count.textContent = entry.count;
    item.append(sample, name, count);
    item.setAttribute("aria-pressed", state.only.has(entry.style));
    item.classList.toggle("off", state.only.size > 0 && !state.only.has(entry.style));
    item.addEventListener("click", () => {
      if (!state.only.delete(entry.style)) state.only.add(entry.style);
      const at = [...legend.children].indexOf(item);
      drawLegend();
      legend.children[at].focus();
      redraw();
    });
    legend.append(item);
  }
}

$("#own-scale").addEventListener("change", event => {
  state.ownScale = event.target.checked;
  drawPanel();
});

const chooser = $("#color");
data.columns.forEach((column, c) => chooser.add(new Option(column.name, c)));
$("#color-by").hidden = !data.columns.length;
chooser.addEventListener("change", () => {
  state.column = Number(chooser.value);
  state.only.clear();
  paint();
});
darkScheme.addEventListener("change", paint);

// Search --------------------------------------------------------------------------------------

const search = $("#search"), found = $("#found");
const small = ids.map(id => id.toLowerCase());
let matches = [], active = 0;

// Ids that are the text, then those that begin with it, then those that hold it: eight at most.
function find(text) {
  const wanted = text.trim().toLowerCase(), ranks = [[], [], []];
  if (!wanted) return [];
  for (let i = 0; i < N && ranks[0].length < 8; i++) {
    const at = small[i].indexOf(wanted);
    if (at < 0) continue;
    const rank = ranks[at > 0 ? 2 : small[i].length === wanted.length ? 0 : 1];
    if (rank.length < 8) rank.push(i);
  }
  return ranks.flat().slice(0, 8);
}

function listFound() {
  found.replaceChildren();
  matches.forEach((i, k) => {
    const item = document.createElement("li");
    item.textContent = ids[i];
    item.id = `found-${k}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", k === active);
    item.addEventListener("pointerdown", event => { event.preventDefault(); take(k); });
    found.append(item);
  });
  if (!matches.length && search.value.trim()) {
    const item = document.createElement("li");
    item.className = "none";
    item.textContent = "No such id";
    found.append(item);
  }
  found.hidden = !found.children.length;
  search.setAttribute("aria-expanded", !found.hidden);
  if (matches.length) search.setAttribute("aria-activedescendant", `found-${active}`);
  else search.removeAttribute("aria-activedescendant");
}

function closeFound() {
  found.hidden = true;
  search.setAttribute("aria-expanded", false);
}

function take(k) {
  if (k >= matches.length) return;
  const i = matches[k];
  search.value = ids[i];
  closeFound();
  if (!visible(i)) { state.only.clear(); drawLegend(); }
  jump(i, true);
}

search.addEventListener("input", () => { matches = find(search.value); active = 0; listFound(); });
search.addEventListener("blur", closeFound);
search.addEventListener("keydown", event => {
  if (event.key === "Enter") take(active);
  else if (event.key === "Escape") closeFound();
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && matches.length) {
    active = (active + (event.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length;
    listFound();
  } else return;
  event.preventDefault();
});
document.addEventListener("keydown", event => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); search.select(); }
});

// Start ---------------------------------------------------------------------------------------

readTheme();
new ResizeObserver(() => { if (view.touched) redraw(); else fit(); }).observe(stage);
new ResizeObserver(() => drawPanel()).observe($("#panel"));
paint();
fit();
show(0); // so that the panel is not empty
requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("drawn")));

// For the console, and for tests.
window.explore = {
  where: i => {
    const box = marks.getBoundingClientRect();
    return [box.left + screenX(i), box.top + screenY(i)];
  },
  state, jump, csv, selected: () => selectedRows().map(i => ids[i]),
};
