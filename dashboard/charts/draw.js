// What every drawing shares: SVG nodes, text, the tip beside the pointer, saving. component.py puts this file before
// many.js or before scales.js, marks.js and plot.js, and makes one module of them.
// Text is only ever set as text, never as markup: names and subjects are other people's.

const NS = "http://www.w3.org/2000/svg";
const FONT = "11px system-ui, sans-serif";

// A number with a power of ten: "1.5e-9".
const powered = (value, decimals) => value.toExponential(decimals).replace("e+", "e");

// Four digits, thousands apart; what would be a row of zeros gets a power of ten.
function short(value, digits = 4) {
  if (!Number.isFinite(value)) return "none";
  const rounded = Number(value.toPrecision(digits)), size = Math.abs(rounded);
  return rounded && (size < 1e-6 || size >= 1e15) ? powered(rounded) : rounded.toLocaleString("en", {maximumFractionDigits: 9});
}
const signed = (value, digits = 3) => (value > 0 ? "+" : "") + short(value, digits);

function add(parent, name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function label(parent, x, y, text, attributes = {}) {
  return add(parent, "text", {x, y, fill: "currentColor", style: `font: ${FONT}`, ...attributes}, text);
}

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

// Pixels that a text takes; asked for the same few hundred texts again and again.
function widthOf(text, font = FONT) {
  const key = font + text;
  let found = widths.get(key);
  if (found === undefined) {
    pen.font = font;
    found = pen.measureText(text).width;
    if (widths.size > 5000) widths.clear();
    widths.set(key, found);
  }
  return found;
}

// A text without its end where it is wider than `most` pixels.
function fitted(text, most, font = FONT) {
  if (widthOf(text, font) <= most) return text;
  let kept = text.length;
  while (kept > 1 && widthOf(`${text.slice(0, kept)}…`, font) > most) kept -= 1;
  return `${text.slice(0, kept)}…`;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob); link.download = name; link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The ground that the drawing stands on: the first one behind it that is not transparent.
function ground(node) {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && colour !== "transparent" && !/, 0\)$/.test(colour)) return colour;
  }
  return "white";
}

function saveImage(svg, file, format) {
  const copy = svg.cloneNode(true), width = svg.clientWidth, height = svg.clientHeight;
  copy.setAttribute("xmlns", NS); copy.setAttribute("width", width); copy.setAttribute("height", height);
  copy.querySelectorAll("[data-cursor]").forEach((node) => node.remove());
  copy.setAttribute("style", `color: ${getComputedStyle(svg).color}; background: ${ground(svg)}`);
  // A text cut in the middle of a character that takes two units would stop encodeURIComponent.
  const text = new XMLSerializer().serializeToString(copy).replace(/\p{Surrogate}/gu, "\ufffd");
  if (format === "svg") return save(new Blob([text], {type: "image/svg+xml"}), `${file}.svg`);
  const picture = new Image();
  picture.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 2 * width; canvas.height = 2 * height;
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, `${file}.png`));
  };
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// A cell of a CSV file: a spreadsheet runs a text that begins like a formula, so such a text gets an apostrophe in front.
// What was not measured is empty, as a missing value of packed numbers (NaN) is.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? value : "";
  const text = String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function saveTable(rows, file) {
  save(new Blob([rows.map((row) => row.join(",")).join("\n") + "\n"], {type: "text/csv"}), `${file}.csv`);
}

// Lines of the tip, the first one bold, below and to the right of (x, y), or to the left where there is no room.
function showTip(tip, lines, x, y, width) {
  tip.hidden = false;
  tip.replaceChildren(...lines.map((line) => { const node = document.createElement("div"); node.textContent = line; return node; }));
  tip.style.left = `${Math.max(0, Math.min(x + 12, width - tip.offsetWidth))}px`;
  tip.style.top = `${y + 8}px`;
}

// Draw now, and again whenever the width changes. Streamlit calls a component anew for new data without ending the call
// before: the drawing that stood there is ended here.
function keepDrawn(root, drawing, draw) {
  root.ended?.();
  const watching = new ResizeObserver(draw);
  root.ended = () => watching.disconnect();
  draw();
  watching.observe(drawing);
  return root.ended;
}
