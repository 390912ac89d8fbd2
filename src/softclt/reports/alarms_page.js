"use strict";
const NEAR = 120; // steps on both sides of an alarm that is looked at
const LEAST = 8; // steps that are shown at least
const DASHES = [[], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3], [10, 4]];

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function make(tag, parent, text = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

class Panel {
  constructor(series, parent) {
    this.series = series;
    this.lines = series.lines.map(numbers);
    this.n = this.lines[0].length;
    const section = make("section", parent);
    const head = make("div", section);
    head.className = "head";
    const count = series.alarms.length;
    const words = `${count} alarm${count === 1 ? "" : "s"}`;
    make("h2", head, series.title ? `${series.title}: ${words}` : words);
    const all = make("button", head, "All");
    all.type = "button";
    all.addEventListener("click", () => this.show(0, this.n - 1));
    this.range = make("span", head);
    this.range.className = "range";
    this.canvas = make("canvas", section);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${series.title || "The series"} with its score and ${words}`);
    const key = make("div", section, `above: ${series.names.join(", ")}; below: score, and its level (dashed)`);
    key.className = "key";
    const list = make("ol", section);
    const worst = [...series.alarms].sort((a, b) => b[2] - a[2]).slice(0, 12);
    for (const [first, last, severity] of worst) {
      const button = make("button", make("li", list), `${series.times[first]} · ${severity.toFixed(2)}`);
      button.type = "button";
      button.addEventListener("click", () => this.show(first - NEAR, last + NEAR));
    }
    this.listen();
    this.show(0, this.n - 1);
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointerdown", (event) => {
      this.from = event.offsetX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.from === undefined) return;
      this.to = event.offsetX;
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const ends = [this.from, event.offsetX].sort((a, b) => a - b);
      this.from = this.to = undefined;
      if (ends[1] - ends[0] > 5) this.show(this.step(ends[0]), this.step(ends[1]));
      else this.draw();
    });
    canvas.addEventListener("pointercancel", () => {
      this.from = this.to = undefined;
      this.draw();
    });
    canvas.addEventListener("dblclick", () => this.show(0, this.n - 1));
    canvas.addEventListener("keydown", (event) => {
      const width = this.last - this.first, middle = (this.first + this.last) / 2;
      const moves = {
        "+": [middle - width / 4, middle + width / 4],
        "-": [middle - width, middle + width],
        ArrowLeft: [this.first - width / 4, this.last - width / 4],
        ArrowRight: [this.first + width / 4, this.last + width / 4],
        0: [0, this.n - 1],
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      this.show(...moves[event.key]);
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  step(x) {
    return this.first + (x / this.canvas.clientWidth) * (this.last - this.first);
  }

  show(first, last) {
    const most = this.n - 1;
    const width = Math.min(most, Math.max(LEAST, Math.round(last - first)));
    this.first = Math.round(Math.min(most - width, Math.max(0, first)));
    this.last = this.first + width;
    this.range.textContent = `${this.series.times[this.first]} to ${this.series.times[this.last]}`;
    this.draw();
  }

  draw() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const x = (step) => ((step - this.first) / Math.max(1, this.last - this.first)) * width;
    context.fillStyle = colour("raised");
    context.fillRect(0, 0, x(this.series.start), height);
    context.fillStyle = colour("strange");
    context.globalAlpha = 0.25;
    for (const [first, last] of this.series.alarms) {
      const left = x(first - 0.5);
      context.fillRect(left, 0, Math.max(1.5, x(last + 0.5) - left), height);
    }
    context.globalAlpha = 1;
    const split = height * 0.66, values = this.lines.slice(0, -2), below = this.lines.slice(-2);
    const names = values.map((_, i) => [colour("text"), DASHES[i % DASHES.length]]);
    this.curves(context, values, names, 4, split - 8, x);
    const score = [[colour("score"), []], [colour("strange"), [6, 4]]];
    this.curves(context, below, score, split + 4, height - 4, x);
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(0, split);
    context.lineTo(width, split);
    context.stroke();
    if (this.from !== undefined && this.to !== undefined) {
      context.fillStyle = colour("score");
      context.globalAlpha = 0.2;
      context.fillRect(this.from, 0, this.to - this.from, height);
      context.globalAlpha = 1;
    }
  }

  curves(context, lines, looks, top, bottom, x) {
    let low = Infinity, high = -Infinity;
    for (const line of lines) {
      for (let i = this.first; i <= this.last; i += 1) {
        if (line[i] < low) low = line[i];
        if (line[i] > high) high = line[i];
      }
    }
    if (low > high) return;
    if (low === high) { low -= 1; high += 1; }
    const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    lines.forEach((line, number) => {
      [context.strokeStyle] = looks[number];
      context.setLineDash(looks[number][1]);
      context.beginPath();
      let down = false;
      for (let i = this.first; i <= this.last; i += 1) {
        if (Number.isNaN(line[i])) { down = false; continue; }
        if (down) context.lineTo(x(i), y(line[i]));
        else context.moveTo(x(i), y(line[i]));
        down = true;
      }
      context.stroke();
    });
    context.setLineDash([]);
    context.fillStyle = colour("quiet");
    context.font = "11px system-ui, sans-serif";
    context.fillText(high.toPrecision(3), 4, top + 9);
    context.fillText(low.toPrecision(3), 4, bottom - 2);
  }
}

const main = document.querySelector("main");
const panels = JSON.parse(document.getElementById("data").textContent).map((one) => new Panel(one, main));
