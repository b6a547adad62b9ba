// SPDX-License-Identifier: MIT
// Numbers as text, elements, and the charts: each takes plain values and returns an element.
"use strict";

const PALETTE = ["#2f6fd6", "#e08a1e", "#2a9d68", "#c8473f", "#8257c4", "#1f9bb0", "#b8559b", "#7d8a2c", "#8c6b4f", "#5d6b82",
                 "#49b6e8", "#d4a72c", "#6cc04a", "#e5739a", "#a58ae6", "#3f4f9e"];

function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "path", "circle", "line", "text", "rect"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of children) node.append(child);
  return node;
}

function shown(x, digits = 3) {
  if (x === null || x === undefined || !isFinite(x)) return "–";
  if (x !== 0 && (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-3)) return x.toExponential(1);
  return Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(digits)));
}
const percent = (x, digits = 1) => (x === null || !isFinite(x) ? "–" : (100 * x).toFixed(digits) + " %");

function quantile(values, q) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort(), at = q * (sorted.length - 1), low = Math.floor(at);
  return sorted[low] + (at - low) * (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]);
}
const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

const tip = { node: null, show(event, text) {
  this.node = this.node || document.getElementById("tip");
  this.node.textContent = text;
  this.node.hidden = false;
  const wide = this.node.offsetWidth, x = event.clientX + 14;
  this.node.style.left = Math.max(4, x + wide > innerWidth ? event.clientX - wide - 10 : x) + "px";
  this.node.style.top = event.clientY + 14 + "px";
}, hide() { if (this.node) this.node.hidden = true; } };

function card(value, label) {
  return make("div", { class: "card" }, make("b", {}, value), make("span", {}, label));
}

// rows: [[label, count]]
function bars(rows) {
  const most = Math.max(1, ...rows.map((row) => row[1])), box = make("div", { class: "bars" });
  for (const [label, count] of rows) {
    box.append(make("span", {}, label), make("i", { style: `width:${100 * count / most}%` }), make("span", {}, shown(count)));
  }
  return box;
}

// How many values lie in each interval; limits: [[label, below]]
function counted(values, limits) {
  let below = -Infinity;
  return limits.map(([label, limit]) => {
    const from = below;
    below = limit;
    return [label, values.filter((x) => x >= from && x < limit).length];
  });
}

// columns: [[title, is a number]], rows: [[cells]]; a cell is a text or an element. Shows some at first.
function table(columns, rows, first = 15) {
  const head = make("tr", {}, ...columns.map(([title, number]) => make("th", number ? { class: "n" } : {}, title)));
  const body = make("tbody"), box = make("div", {}, make("table", {}, make("thead", {}, head), body));
  const button = make("button", { type: "button", class: "more" });
  let count = 0;
  const add = (most) => {
    for (const row of rows.slice(count, most)) {
      body.append(make("tr", {}, ...row.map((cell, i) => make("td", columns[i][1] ? { class: "n" } : {}, cell))));
    }
    count = Math.min(most, rows.length);
    button.textContent = `Show more (${rows.length - count} left)`;
    button.hidden = count >= rows.length;
  };
  button.onclick = () => add(Math.max(4 * count, count + 100));
  add(first);
  if (!rows.length) body.append(make("tr", {}, make("td", { colspan: columns.length, class: "dim" }, "None.")));
  box.append(button);
  return box;
}

function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const step of high / low < 60 ? [1, 2, 5] : [1]) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

// points: [{x, y, colour, text}], lines: [{colour, points: [[x, y]]}]; both axes are logarithmic unless plain.
function scatter(points, lines, titles, { plain = false, height = 430, width = 1100 } = {}) {
  const left = 56, right = 14, top = 10, bottom = 40;
  const all = points.map((p) => [p.x, p.y]).concat(...lines.map((l) => l.points));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}` });
  if (!all.length) return make("p", { class: "dim" }, "None.");
  const scale = (values, from, to) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (plain) { const gap = (high - low || high || 1) * 0.1; low -= gap; high += gap; } else { low /= 1.3; high *= 1.3; }
    const f = plain ? (v) => v : Math.log10;
    const at = (v) => from + (to - from) * (f(v) - f(low)) / (f(high) - f(low));
    return { at, ticks: plain ? [0, 1, 2, 3].map((i) => low + (high - low) * i / 3) : logTicks(low, high) };
  };
  const x = scale(all.map((p) => p[0]), left, width - right), y = scale(all.map((p) => p[1]), height - bottom, top);
  for (const tick of y.ticks) {
    svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick) }),
               make("text", { x: left - 8, y: y.at(tick) + 4, "text-anchor": "end" }, shown(tick, plain ? 4 : 3)));
  }
  for (const tick of plain ? [] : x.ticks) {
    svg.append(make("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: top, y2: height - bottom }),
               make("text", { x: x.at(tick), y: height - bottom + 16, "text-anchor": "middle" }, shown(tick)));
  }
  svg.append(make("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, titles[0]),
             make("text", { x: left + 6, y: top + 10 }, titles[1]));
  for (const line of lines) {
    const path = line.points.map(([a, b], i) => `${i ? "L" : "M"}${x.at(a).toFixed(1)} ${y.at(b).toFixed(1)}`).join("");
    svg.append(make("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": 1.6, "stroke-linejoin": "round" }));
  }
  for (const p of points) {
    const dot = make("circle", { cx: x.at(p.x).toFixed(1), cy: y.at(p.y).toFixed(1), r: 3.4, fill: p.colour, "fill-opacity": 0.72 });
    dot.onmousemove = (event) => tip.show(event, p.text);
    dot.onmouseleave = () => tip.hide();
    svg.append(dot);
  }
  return svg;
}

function legend(entries) {
  return make("div", { class: "legend" }, ...entries.map(([name, colour]) =>
    make("span", {}, make("i", { class: "dot", style: `background:${colour}` }), name)));
}

// 1 is the best: green, over yellow to red at 4 times and more.
function heatColour(ratio) {
  const t = Math.min(1, Math.log(ratio) / Math.log(4));
  return `hsl(${Math.round(150 - 150 * Math.sqrt(t))} ${Math.round(52 + 14 * t)}% ${Math.round(44 + 6 * (1 - t))}%)`;
}

// value(row, column) -> ratio, null where nothing was measured, NaN where it failed; text(row, column) for the pointer.
function heatMap(rows, columns, value, text) {
  const cell = Math.max(3, Math.min(14, Math.floor(1200 / columns))), tall = Math.max(6, Math.min(14, cell));
  const canvas = make("canvas", { width: columns * cell, height: rows * tall });
  if (columns * cell < 1200) canvas.style.maxWidth = columns * cell + "px";
  const draw = canvas.getContext("2d"), style = getComputedStyle(document.body);
  const none = style.getPropertyValue("--none"), text_colour = style.getPropertyValue("--text");
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const ratio = value(row, column);
      draw.fillStyle = ratio === null ? none : Number.isNaN(ratio) ? text_colour : heatColour(ratio);
      draw.fillRect(column * cell, row * tall, cell - (cell > 5 ? 1 : 0), tall - 1);
    }
  }
  canvas.onmousemove = (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / box.height * rows), column = Math.floor((event.clientX - box.left) / box.width * columns);
    if (row >= 0 && row < rows && column >= 0 && column < columns) tip.show(event, text(row, column));
  };
  canvas.onmouseleave = () => tip.hide();
  return canvas;
}
