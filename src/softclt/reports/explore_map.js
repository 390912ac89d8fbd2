// The map: what is where, what is shown, and what a person does to it.

const dots = $("#dots"), marks = $("#marks"), stage = $("#stage"), tip = $("#tip");
const view = { scale: 1, x: 0, y: 0, fit: 1, touched: false };  // screen = (unit - [x, y]) * scale
const state = {
  shown: -1, pinned: -1, hover: -1, column: 0, only: new Set(), lasso: null, lassoMode: false,
  ownScale: true,
};
let look = null, selected = new Uint8Array(N), nSelected = 0;

// Dots in a fixed random order, so that no class lies on top of all others.
const order = Uint32Array.from({ length: N }, (_, i) => i);
for (let i = N - 1, seed = 1; i > 0; i--) {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  const j = seed % (i + 1);
  [order[i], order[j]] = [order[j], order[i]];
}

const unitX = i => grid[2 * i] / 65535, unitY = i => 1 - grid[2 * i + 1] / 65535;
const screenX = i => (unitX(i) - view.x) * view.scale, screenY = i => (unitY(i) - view.y) * view.scale;
const visible = i => !state.only.size || state.only.has(look.of[i]);

// Where to look for a dot: lists of dots in CELLS x CELLS squares -----------------------------

const CELLS = 64;
const cellOf = v => Math.min(CELLS - 1, Math.max(0, Math.floor(v * CELLS)));
const cells = Array.from({ length: CELLS * CELLS }, () => []);
for (let i = 0; i < N; i++) cells[cellOf(unitY(i)) * CELLS + cellOf(unitX(i))].push(i);

function dotAt(x, y, reach = 14) {
  const r = reach / view.scale, u = x / view.scale + view.x, v = y / view.scale + view.y;
  let best = -1, least = r * r;
  for (let row = cellOf(v - r); row <= cellOf(v + r); row++) {
    for (let col = cellOf(u - r); col <= cellOf(u + r); col++) {
      for (const i of cells[row * CELLS + col]) {
        const far = (unitX(i) - u) ** 2 + (unitY(i) - v) ** 2;
        if (far < least && visible(i)) { least = far; best = i; }
      }
    }
  }
  return best;
}

// Drawing -------------------------------------------------------------------------------------

let radius = 3;

function drawDots() {
  const area = prepared(dots);
  if (!area) return;
  const { context, w, h } = area, ratio = devicePixelRatio || 1;
  const crowd = N < 500 ? 4.5 : N < 3000 ? 3.5 : 2.6;
  const room = Math.min(1, Math.max(0.75, Math.min(w, h) / 550));
  radius = crowd * room * Math.min(2, Math.sqrt(view.scale / view.fit));
  const size = 2 * (1.3 * radius + 1.5);
  const sprites = look.styles.map(style => {
    const sprite = document.createElement("canvas");
    sprite.width = sprite.height = Math.ceil(size * ratio);
    const pen = sprite.getContext("2d");
    pen.scale(ratio, ratio);
    drawShape(pen, style, size / 2, size / 2, radius, N < 3000 ? theme.back : null);
    return sprite;
  });
  const stands = i => visible(i) && (!nSelected || selected[i] === 1);  // the others are pale
  const pass = (alpha, wanted) => {
    context.globalAlpha = alpha;
    for (const i of order) {
      if (stands(i) !== wanted) continue;
      const x = screenX(i), y = screenY(i);
      if (x > -size && y > -size && x < w + size && y < h + size) {
        context.drawImage(sprites[look.of[i]], x - size / 2, y - size / 2, size, size);
      }
    }
  };
  if (state.only.size || nSelected) pass(0.12, false);
  pass(N > 3000 ? 0.85 : 0.95, true);
  context.globalAlpha = 1;
}

function ring(context, i, r, width) {
  context.beginPath(); context.arc(screenX(i), screenY(i), r, 0, 2 * Math.PI);
  context.strokeStyle = theme.accent; context.lineWidth = width; context.stroke();
}

// A dot again, larger and with an edge, on top of all others.
function raise(context, i, r) {
  const style = look.styles[look.of[i]];
  if (style.shape === "ring") {  // has no colour inside
    shapePath(context, "circle", screenX(i), screenY(i), r);
    context.fillStyle = theme.back; context.fill();
  }
  drawShape(context, style, screenX(i), screenY(i), r, theme.text);
}

function drawMarks() {
  const area = prepared(marks);
  if (!area) return;
  const { context } = area, i = state.shown;
  if (i >= 0) {
    context.strokeStyle = theme.quiet; context.lineWidth = 1; context.globalAlpha = 0.7;
    context.beginPath();
    for (let k = 0; k < K; k++) {
      const j = neighbors[i * K + k];
      context.moveTo(screenX(i), screenY(i)); context.lineTo(screenX(j), screenY(j));
    }
    context.stroke(); context.globalAlpha = 1;
    for (let k = K - 1; k >= 0; k--) raise(context, neighbors[i * K + k], radius + 0.8);
    raise(context, i, radius + 2);
    ring(context, i, radius + 6, state.pinned === i ? 3.5 : 2);
  }
  if (state.hover >= 0 && state.hover !== i) ring(context, state.hover, radius + 3, 1.5);
  if (state.lasso) {
    context.beginPath();
    for (const [x, y] of state.lasso) context.lineTo(x, y);
    context.closePath();
    context.fillStyle = theme.accent; context.globalAlpha = 0.12; context.fill();
    context.globalAlpha = 1; context.strokeStyle = theme.accent; context.lineWidth = 1.5;
    context.setLineDash([5, 4]); context.stroke(); context.setLineDash([]);
  }
}

let dirty = 0;  // 1: marks, 2: dots, too
function redraw(what = 2) {
  if (!dirty) {
    requestAnimationFrame(() => {
      const due = dirty;
      dirty = 0;
      if (due > 1) drawDots();
      drawMarks();
    });
  }
  dirty = Math.max(dirty, what);
}

// The panel -----------------------------------------------------------------------------------

const focusBox = $("#focus"), cards = [];
for (let k = 0; k < K; k++) {
  const card = document.createElement("li");
  card.innerHTML = '<button type="button"><span class="top"><span class="rank"></span>'
    + '<canvas class="dot"></canvas><b></b><span class="far"></span></span>'
    + '<canvas class="plot"></canvas></button>';
  card.firstChild.addEventListener("click", () => jump(neighbors[state.shown * K + k], false));
  $("#neighbors").append(card);
  cards.push({
    button: card.firstChild, rank: card.querySelector(".rank"), dot: card.querySelector(".dot"),
    name: card.querySelector("b"), far: card.querySelector(".far"),
    canvas: card.querySelector(".plot"),
  });
}

const colorOf = i => look.styles[look.of[i]].color;

function drawPanel() {
  const i = state.shown;
  $("#hint").hidden = i > 0 || state.hover >= 0 || state.pinned >= 0;
  focusBox.hidden = i < 0;
  if (i < 0) return;
  const near = Array.from(neighbors.subarray(i * K, i * K + K));
  const shared = rangesOf([i, ...near]), rangesFor = j => state.ownScale ? rangesOf([j]) : shared;
  const ranges = rangesFor(i);
  swatch(focusBox.querySelector(".head .dot"), look.styles[look.of[i]]);
  focusBox.querySelector(".head .id").textContent = ids[i];
  $("#unpin").hidden = state.pinned !== i;
  const facts = data.columns.filter(column => valueOf(column, i) !== "")
    .map(column => `${column.name}: ${valueOf(column, i)}`);
  focusBox.querySelector(".facts").textContent = facts.join("  ·  ");
  drawSeries(focusBox.querySelector(".plot"), i, ranges, colorOf(i));
  near.forEach((j, k) => {
    const card = cards[k], column = data.columns[state.column];
    card.rank.textContent = k + 1;
    swatch(card.dot, look.styles[look.of[j]]);
    card.name.textContent = ids[j];
    card.far.textContent = number(distances[i * K + k]);
    const value = column ? valueOf(column, j) : "";
    const middle = value ? `, ${column.name} ${value}` : "";
    card.button.title = `${ids[j]}${middle}, distance ${distances[i * K + k]}`;
    drawSeries(card.canvas, j, rangesFor(j), colorOf(j), { ghost: i, ghostRanges: ranges, small: true });
  });
}

function show(i) {
  if (i === state.shown) return;
  state.shown = i;
  drawPanel();
  redraw(1);
}

function pin(i) {
  state.pinned = i;
  state.shown = i >= 0 ? i : state.shown;
  drawPanel();
  redraw(1);
}

function hover(i, x, y) {
  const changed = i !== state.hover;
  state.hover = i;
  tip.hidden = i < 0;
  if (i >= 0) {
    if (changed) {
      const column = data.columns[state.column], value = column ? valueOf(column, i) : "";
      tip.textContent = value ? `${ids[i]}  ·  ${column.name}: ${value}` : ids[i];
    }
    const left = Math.min(x + 14, stage.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(2, left)}px`;
    const below = y + 18 + tip.offsetHeight <= stage.clientHeight;
    tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 10}px`;
    if (state.pinned < 0) show(i);
  }
  if (changed) redraw(1);
}

// Moving about --------------------------------------------------------------------------------

function fit() {
  const w = stage.clientWidth, h = stage.clientHeight, pad = 26;
  let left = 1, right = 0, top = 1, bottom = 0;
  for (let i = 0; i < N; i++) {
    left = Math.min(left, unitX(i)); right = Math.max(right, unitX(i));
    top = Math.min(top, unitY(i)); bottom = Math.max(bottom, unitY(i));
  }
  const across = Math.max(right - left, 1e-3), down = Math.max(bottom - top, 1e-3);
  view.scale = view.fit = Math.max(1, Math.min((w - 2 * pad) / across, (h - 2 * pad) / down));
  view.x = (left + right) / 2 - w / 2 / view.scale;
  view.y = (top + bottom) / 2 - h / 2 / view.scale;
  view.touched = false;
  redraw();
}

function zoom(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const scale = Math.max(view.fit / 3, Math.min(view.fit * 400, view.scale * factor));
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  view.touched = true;
  redraw();
}

function pan(dx, dy) {
  view.x -= dx / view.scale;
  view.y -= dy / view.scale;
  view.touched = true;
  redraw();
}

// Move a dot that is out of sight, or any, into the middle.
function reveal(i, always = false) {
  const x = screenX(i), y = screenY(i), w = stage.clientWidth, h = stage.clientHeight;
  if (always || x < 10 || y < 10 || x > w - 10 || y > h - 10) pan(w / 2 - x, h / 2 - y);
}

// Pin a dot and bring it into view; from the search also closer.
function jump(i, closer) {
  if (closer) zoom(Math.max(1, 2.5 * view.fit / view.scale));
  reveal(i, closer);
  pin(i);
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest dot that lies in this direction, more ahead than aside.
function step([dx, dy]) {
  const from = state.shown;
  const x0 = from < 0 ? stage.clientWidth / 2 : screenX(from);
  const y0 = from < 0 ? stage.clientHeight / 2 : screenY(from);
  let best = -1, least = Infinity;
  for (let i = 0; i < N; i++) {
    if (i === from || !visible(i)) continue;
    const x = screenX(i) - x0, y = screenY(i) - y0;
    const ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (from >= 0 && (ahead <= 0 || aside > ahead)) continue;
    const far = from < 0 ? Math.hypot(x, y) : ahead + 2 * aside;
    if (far < least) { least = far; best = i; }
  }
  if (best < 0) return;
  if (state.pinned >= 0) jump(best, false); else { show(best); reveal(best); }
}

marks.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (MOVES[event.key]) step(MOVES[event.key]);
  else if (event.key === "Enter" || event.key === " ") {
    pin(state.pinned === state.shown ? -1 : state.shown);
  } else if (event.key === "Escape") { if (state.pinned >= 0) pin(-1); else select(null); }
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
});

// Pointer: point, click, drag, pinch, lasso -------------------------------------------------------

const fingers = new Map();
let moved = 0;

function local(event) {
  const box = marks.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

marks.addEventListener("pointerdown", event => {
  if (event.button !== 0) return;
  marks.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, local(event));
  moved = fingers.size > 1 ? Infinity : 0;  // two fingers are no click
  state.lasso = fingers.size === 1 && (event.shiftKey || state.lassoMode) ? [local(event)] : null;
});

marks.addEventListener("pointermove", event => {
  const [x, y] = local(event), last = fingers.get(event.pointerId);
  if (!last) { hover(dotAt(x, y), x, y); return; }
  const [bx, by] = last;
  moved += Math.hypot(x - bx, y - by);
  if (state.lasso) { state.lasso.push([x, y]); redraw(1); }
  else if (fingers.size === 2) {
    const [ox, oy] = [...fingers].find(([id]) => id !== event.pointerId)[1];
    const apart = Math.hypot(x - ox, y - oy), before = Math.hypot(bx - ox, by - oy);
    zoom(apart / Math.max(1, before), (x + ox) / 2, (y + oy) / 2);
    pan((x - bx) / 2, (y - by) / 2);
  } else if (moved > 4) { hover(-1); pan(x - bx, y - by); }
  else return;  // not yet a drag: the start stays where it was
  fingers.set(event.pointerId, [x, y]);
});

function release(event) {
  if (!fingers.delete(event.pointerId)) return;
  const [x, y] = local(event), lasso = state.lasso;
  state.lasso = null;
  if (event.type === "pointercancel") { redraw(1); return; }
  if (lasso && lasso.length > 2 && moved > 10) select(inside(lasso));
  else if (moved <= 4) {
    const i = dotAt(x, y, event.pointerType === "touch" ? 24 : 14);
    pin(i === state.pinned ? -1 : i);
    if (i >= 0 && event.pointerType !== "touch") hover(i, x, y);
  }
  redraw(1);
}
marks.addEventListener("pointerup", release);
marks.addEventListener("pointercancel", release);
marks.addEventListener("pointerleave", () => hover(-1));
marks.addEventListener("wheel", event => {
  event.preventDefault();
  const [x, y] = local(event), lines = event.deltaMode === 1 ? 20 : 1;
  zoom(Math.exp(-0.0022 * Math.max(-300, Math.min(300, lines * event.deltaY))), x, y);
}, { passive: false });
