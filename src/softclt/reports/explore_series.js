// Data of the page, colours, and how a series is drawn.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = selector => document.querySelector(selector);

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

const ids = data.ids, N = ids.length;
const grid = new Uint16Array(bytes(data.points));
const neighbors = new Uint32Array(bytes(data.neighbors));
const distances = new Float32Array(bytes(data.distances));
const K = neighbors.length / N;
const S = data.series, D = S.channels.length, P = S.points;
const codes = new Uint8Array(bytes(S.codes));
const lows = new Float64Array(bytes(S.low)), highs = new Float64Array(bytes(S.high));
for (const column of data.columns) {
  if (column.kind === "number") column.values = new Float64Array(bytes(column.values));
  else column.codes = new Uint32Array(bytes(column.codes));
}
const T = S.times && {
  texts: S.times.texts, first: new Uint32Array(bytes(S.times.first)),
  last: new Uint32Array(bytes(S.times.last)), end: new Float32Array(bytes(S.times.end)),
};
const MANY_CHANNELS = 8;  // more are drawn as a heat map

// Colours ---------------------------------------------------------------------------------------

// Seven that stay apart for all kinds of colour vision; six shapes make 42 classes of them.
const COLORS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0"],
  dark: ["#4ba3e3", "#ee7733", "#2bc49a", "#dd92bd", "#f0b93a", "#8fd3ff", "#a78bdb"],
};
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"];
const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "text", "quiet", "line", "accent", "ghost", "missing"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// The ends that would drown in the background are left out.
function ramp(share) {
  const [from, to] = darkScheme.matches ? [0.15, 1] : [0, 0.92];
  const at = (from + (to - from) * share) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at)), part = at - i;
  const rgb = VIRIDIS[i].map((v, j) => Math.round(v + part * (VIRIDIS[i + 1][j] - v)));
  return `rgb(${rgb.join(",")})`;
}

const STEPS = 32;  // of a colour scale

// Styles of a column: what each dot looks like, and what the legend says.
function stylesOf(column) {
  const palette = COLORS[darkScheme.matches ? "dark" : "light"];
  const missing = { color: theme.missing, shape: "ring" };
  const of = new Uint16Array(N);
  if (!column) return { of, styles: [{ color: palette[0], shape: "circle" }], entries: [] };
  if (column.kind === "number") {
    const sorted = column.values.filter(v => !Number.isNaN(v)).sort();
    const quantile = q => sorted[Math.round(q * (sorted.length - 1))];
    let low = quantile(0.02), high = quantile(0.98);  // a few outliers shall not take all colours
    if (!(high > low)) [low, high] = [sorted[0], sorted[sorted.length - 1]];
    const styles = [missing];
    for (let s = 0; s < STEPS; s++) styles.push({ color: ramp(s / (STEPS - 1)), shape: "circle" });
    for (let i = 0; i < N; i++) {
      const share = high > low ? (column.values[i] - low) / (high - low) : 0.5;
      of[i] = Number.isNaN(share) ? 0 : 1 + Math.round(Math.max(0, Math.min(1, share)) * (STEPS - 1));
    }
    const cut = { low: sorted[0] < low, high: sorted[sorted.length - 1] > high };
    return { of, styles, scale: { low, high, cut, none: N - sorted.length }, entries: [] };
  }
  const counts = new Uint32Array(column.names.length + 1);
  for (const code of column.codes) counts[code]++;
  const most = palette.length * SHAPES.length;
  let shown = column.names.map((_, i) => i + 1);
  if (shown.length > most) {  // the most frequent ones have their own look, the rest is "others"
    shown = shown.sort((a, b) => counts[b] - counts[a] || a - b).slice(0, most - 1);
    shown.sort((a, b) => a - b);
  }
  const styles = [missing], entries = [], styleOf = new Uint16Array(counts.length);
  for (const code of shown) {
    const k = entries.length;
    styleOf[code] = styles.length;
    entries.push({ name: column.names[code - 1], count: counts[code], style: styles.length });
    const shape = SHAPES[Math.floor(k / palette.length)];
    styles.push({ color: palette[k % palette.length], shape });
  }
  if (shown.length < column.names.length) {
    let count = 0;
    for (let code = 1; code < counts.length; code++) {
      if (!styleOf[code]) { styleOf[code] = styles.length; count += counts[code]; }
    }
    const rest = column.names.length - shown.length;
    entries.push({ name: `${rest} others`, count, style: styles.length });
    styles.push({ color: theme.quiet, shape: "ring" });
  }
  if (counts[0]) entries.push({ name: "no value", count: counts[0], style: 0 });
  for (let i = 0; i < N; i++) of[i] = styleOf[column.codes[i]];
  return { of, styles, entries };
}

function shapePath(context, shape, x, y, r) {
  context.beginPath();
  if (shape === "square") context.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
  else if (shape === "circle" || shape === "ring") context.arc(x, y, r, 0, 2 * Math.PI);
  else {
    const corners = {
      triangle: [[0, -1.15], [1.05, 0.8], [-1.05, 0.8]],
      down: [[0, 1.15], [1.05, -0.8], [-1.05, -0.8]],
      diamond: [[0, -1.25], [1.1, 0], [0, 1.25], [-1.1, 0]],
      cross: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4],
        [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
    }[shape];
    for (const [dx, dy] of corners) context.lineTo(x + r * dx, y + r * dy);
    context.closePath();
  }
}

function drawShape(context, style, x, y, r, edge) {
  shapePath(context, style.shape, x, y, r);
  if (style.shape === "ring") {
    context.strokeStyle = style.color; context.lineWidth = 1.3; context.stroke();
    return;
  }
  context.fillStyle = style.color; context.fill();
  if (edge) { context.strokeStyle = edge; context.lineWidth = 0.8; context.stroke(); }
}

function swatch(canvas, style) {
  canvas.width = canvas.height = 28;  // shown at 14 pixels
  drawShape(canvas.getContext("2d"), style, 14, 14, 9);
}

// Text ------------------------------------------------------------------------------------------

function number(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(size >= 1000 ? 5 : 3)));
}

function valueOf(column, i) {
  if (column.kind === "category") return column.codes[i] ? column.names[column.codes[i] - 1] : "";
  return Number.isNaN(column.values[i]) ? "" : String(column.values[i]);
}

// Series ----------------------------------------------------------------------------------------

// A canvas of the right number of pixels, cleared; null while it has no size.
function prepared(canvas, height) {
  if (height) canvas.style.height = `${height}px`;
  const w = canvas.clientWidth, h = canvas.clientHeight, ratio = devicePixelRatio || 1;
  if (!w || !h) return null;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  return { context, w, h };
}

// Least and largest value of each channel over some series.
function rangesOf(rows) {
  return S.channels.map((_, c) => {
    let low = Infinity, high = -Infinity;
    for (const i of rows) {
      const at = i * D + c;
      if (codes.subarray(at * P, at * P + P).some(code => code)) {
        low = Math.min(low, lows[at]); high = Math.max(high, highs[at]);
      }
    }
    if (!(high >= low)) return [0, 1];
    return high > low ? [low, high] : [low - 0.5, high + 0.5];
  });
}

function valueAt(at, code) {
  return lows[at] + (code - 1) / 254 * (highs[at] - lows[at]);
}

function drawLine(context, i, c, range, box, color, width) {
  const at = i * D + c, step = box.w / Math.max(1, P - 1);
  const y = code => box.y + box.h * (1 - (valueAt(at, code) - range[0]) / (range[1] - range[0]));
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = width; context.lineJoin = "round";
  context.beginPath();
  for (let p = 0, open = false; p < P; p++) {
    const code = codes[at * P + p];
    if (!code) { open = false; continue; }
    if (open) context.lineTo(box.x + p * step, y(code));
    else if (!codes[at * P + p + 1] || p === P - 1) {  // alone between gaps: a dot
      context.rect(box.x + p * step - width / 2, y(code) - width / 2, width, width);
    } else context.moveTo(box.x + p * step, y(code));
    open = true;
  }
  context.stroke();
}

function drawHeat(context, i, ranges, box) {
  const w = box.w / P, h = box.h / D;
  for (let c = 0; c < D; c++) {
    const at = i * D + c, [low, high] = ranges[c];
    for (let p = 0; p < P; p++) {
      const code = codes[at * P + p];
      if (!code) continue;
      const share = Math.round(31 * (valueAt(at, code) - low) / (high - low)) / 31;
      context.fillStyle = ramp(share);
      context.fillRect(box.x + p * w, box.y + c * h, w + 0.5, h + 0.5);
    }
  }
}

// What stands below a series: its first and last time, or step 0 and how many there are. Each with
// its place as a share of the axis.
function endsOf(i) {
  if (!T) return [["0", 0], [`${S.steps} steps`, 1]];
  return [[T.texts[T.first[i]], 0], [T.texts[T.last[i]], T.end[i]]];
}

// One series with all its channels, one below the other, before a ghost of another series, which
// may have ranges of its own.
function drawSeries(canvas, i, ranges, color, { ghost = -1, ghostRanges = ranges, small = false } = {}) {
  const heat = D > MANY_CHANNELS;
  const height = small ? (heat ? 84 : Math.max(56, 20 * D)) : (heat ? 190 : Math.max(150, 52 * D + 18));
  const area = prepared(canvas, height);
  if (!area) return;
  const { context, w, h } = area, foot = small ? 0 : 16;
  context.font = "11px system-ui, sans-serif";
  const gutter = small ? 1 : 6 + Math.max(...ranges.flat().slice(0, heat ? 0 : undefined)
    .map(v => context.measureText(number(v)).width), 12);
  const box = { x: gutter, y: 4, w: w - gutter - 4, h: h - foot - 8 };
  if (heat) drawHeat(context, i, ranges, box);
  else {
    const row = box.h / D;
    for (let c = 0; c < D; c++) {
      const pad = D > 1 && !small ? 14 : 1;
      const rest = Math.max(4, row - pad - (small ? 2 : 6));
      const part = { x: box.x, w: box.w, y: box.y + c * row + pad, h: rest };
      if (!small) {
        context.strokeStyle = theme.line; context.lineWidth = 1;
        context.strokeRect(part.x - 0.5, part.y - 1.5, part.w + 3, part.h + 3);
        context.fillStyle = theme.quiet; context.textAlign = "right";
        context.textBaseline = "top";
        context.fillText(number(ranges[c][1]), part.x - 4, part.y - 2);
        context.textBaseline = "bottom";
        context.fillText(number(ranges[c][0]), part.x - 4, part.y + part.h + 2);
        context.textAlign = "left";
        if (D > 1) context.fillText(S.channels[c], part.x, part.y - 2);
      }
      if (ghost >= 0) drawLine(context, ghost, c, ghostRanges[c], part, theme.ghost, 1);
      drawLine(context, i, c, ranges[c], part, color, small ? 1.4 : 1.6);
    }
  }
  if (small) return;
  context.fillStyle = theme.quiet; context.textBaseline = "bottom";
  const [[start], [end, share]] = endsOf(i);
  const left = heat ? `${start} (${D} channels, each on its own scale)` : start;
  context.textAlign = "left";
  context.fillText(left, box.x, h);
  const least = box.x + context.measureText(left).width + 10 + context.measureText(end).width;
  context.textAlign = "right";  // at its step, unless the text before it is in the way
  context.fillText(end, Math.min(box.x + box.w, Math.max(least, box.x + share * box.w)), h);
}
