// Many series at once, drawn as one SVG: a heatmap of series by commits, or a small panel a series.
// Plotly takes 250 to 400 ms for either; this takes 20. The Python side is many.py, which says what `data` holds.

const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const cut = (text, width) => { const most = Math.max(4, Math.floor(width / 6)); return text.length > most ? "…" + text.slice(1 - most) : text; };

// Where everything is for a width in pixels: boxes of the series, in CSS pixels.
function layout(data, width) {
  const count = data.names.length;
  if (data.form === "heatmap") {
    const narrow = width < 640; // a phone has no room beside the cells: names then stand above them
    const left = narrow ? 0 : Math.min(310, 12 + 6.4 * Math.max(...data.names.map((name) => name.length)));
    const row = narrow ? 30 : 18;
    const boxes = data.names.map((_, i) => ({x: left, y: 26 + i * row + (narrow ? 15 : 0), w: width - left, h: narrow ? 15 : row}));
    return {boxes, narrow, left, row, height: 26 + count * row + 30};
  }
  const columns = Math.min(4, Math.max(1, Math.floor(width / 172)), count);
  const cell = width / columns, row = 104, margin = 42;
  const boxes = data.names.map((_, i) => ({x: (i % columns) * cell + margin, y: Math.floor(i / columns) * row + 22, w: cell - margin - 12, h: row - 42}));
  return {boxes, cell, margin, columns, height: Math.ceil(count / columns) * row + 26};
}

function colour(scale, share) {
  const place = Math.min(1, Math.max(0, share)) * (scale.length - 1), at = Math.min(scale.length - 2, Math.floor(place));
  return [0, 1, 2].map((i) => Math.round(scale[at][i] + (scale[at + 1][i] - scale[at][i]) * (place - at)));
}

// Where a value's colour lies between the scale's ends, 0 to 1. No ratio tells it of a median that is not above 0: there the ends
// stand for above and below.
function shareOf(value, typical, limit) {
  if (typical > 0 && value >= 0) return 0.5 + Math.log(value / typical) / (2 * limit);
  return value === typical ? 0.5 : value > typical ? 1 : 0;
}

function drawHeatmap(svg, data, place) {
  const bins = data.bins, count = data.names.length, first = place.boxes[0];
  const cells = document.createElement("canvas"), canvas = document.createElement("canvas");
  cells.width = bins; cells.height = count;
  const context = cells.getContext("2d"), image = context.createImageData(bins, count);
  for (let s = 0; s < count; s++) for (let b = 0; b < bins; b++) {
    const value = data.middle[s * bins + b];
    if (!Number.isFinite(value)) continue;
    const [red, green, blue] = colour(data.scale, shareOf(value, data.typical[s], data.limit));
    image.data.set([red, green, blue, 255], 4 * (s * bins + b));
  }
  context.putImageData(image, 0, 0);
  // A row at a time: columns may be averaged where there are more of them than pixels, but never two series.
  canvas.width = Math.round(first.w); canvas.height = count * place.row;
  const scaled = canvas.getContext("2d");
  scaled.imageSmoothingEnabled = first.w < bins;
  place.boxes.forEach((box, s) => scaled.drawImage(cells, 0, s, bins, 1, 0, box.y - 26, canvas.width, box.h - 1));
  add(svg, "image", {href: canvas.toDataURL(), x: first.x, y: 26, width: first.w, height: count * place.row, preserveAspectRatio: "none"});
  data.names.forEach((name, s) => place.narrow ? label(svg, 0, 26 + s * place.row + 12, cut(name, first.w))
    : label(svg, place.left - 6, 26 + s * place.row + 13, cut(name, place.left), {"text-anchor": "end"}));
  const steps = 24, each = Math.min(160, first.w / 3) / steps;
  for (let i = 0; i < steps; i++) add(svg, "rect", {x: first.x + i * each, y: 4, width: each + 0.5, height: 9, fill: `rgb(${colour(data.scale, (i + 0.5) / steps)})`});
  const end = Math.exp(data.limit), ends = end < 1.3 ? `${short(100 / end - 100, 2)} to ${signed(100 * end - 100, 2)} %` : `1/${short(end, 2)} to ${short(end, 2)} times`, of = end < 1.3 ? "against" : "";
  label(svg, first.x + steps * each + 8, 13, `${ends} ${of} each series' median`);
}

function drawPanels(svg, data, place) {
  const bins = data.bins;
  data.names.forEach((name, s) => {
    const box = place.boxes[s], low = data.low.subarray(s * bins, (s + 1) * bins), high = data.high.subarray(s * bins, (s + 1) * bins);
    const middle = data.middle.subarray(s * bins, (s + 1) * bins), seen = [...middle.keys()].filter((b) => Number.isFinite(middle[b]));
    label(svg, box.x - place.margin, box.y - 8, cut(name, place.cell - 4), {"font-weight": "600"});
    if (!seen.length) { label(svg, box.x, box.y + box.h / 2, "not measured"); return; }
    let bottom = Infinity, top = -Infinity;
    for (const b of seen) { bottom = Math.min(bottom, low[b]); top = Math.max(top, high[b]); }
    if (top === bottom) { top += Math.abs(top) * 0.01 || 1; bottom -= Math.abs(bottom) * 0.01 || 1; }
    const x = (b) => (box.x + ((b + 0.5) / bins) * box.w).toFixed(1), y = (v) => (box.y + (1 - (v - bottom) / (top - bottom)) * box.h).toFixed(1);
    for (const value of [bottom, top]) {
      add(svg, "line", {x1: box.x, x2: box.x + box.w, y1: y(value), y2: y(value), stroke: "currentColor", "stroke-opacity": 0.18});
      label(svg, box.x - 4, Number(y(value)) + (value === top ? 8 : 0), Number(value.toPrecision(3)).toLocaleString("en", {maximumFractionDigits: 6}), {"text-anchor": "end", "fill-opacity": 0.75});
    }
    const around = seen.map((b) => `${x(b)},${y(high[b])}`).concat(seen.slice().reverse().map((b) => `${x(b)},${y(low[b])}`));
    add(svg, "path", {d: `M${around.join("L")}Z`, fill: data.ink, "fill-opacity": 0.28});
    add(svg, "path", {d: `M${seen.map((b) => `${x(b)},${y(middle[b])}`).join("L")}`, fill: "none", stroke: data.ink, "stroke-width": 1.5, "stroke-linejoin": "round"});
    if (bins <= 60) add(svg, "path", {d: seen.map((b) => `M${x(b)},${y(middle[b])}h0`).join(""), stroke: data.ink, "stroke-width": 4.5, "stroke-linecap": "round"});
  });
}

function axis(svg, data, place, width) {
  const y = place.height - 8, start = data.form === "heatmap" ? place.boxes[0].x : 0, last = data.bins - 1;
  if (last < 0) return;
  label(svg, start, y, `${data.shorts[0]} · ${data.dates[0]}`, {"fill-opacity": 0.75});
  if (last > 0) label(svg, width, y, `${data.shorts[last]} · ${data.dates[last]}`, {"text-anchor": "end", "fill-opacity": 0.75});
}

function tableOf(data) {
  const lines = [["series", "unit", "first commit", "date", "commits", "lowest", "median", "highest"]];
  data.full.forEach((name, s) => { for (let b = 0; b < data.bins; b++) { const at = s * data.bins + b;
    if (Number.isFinite(data.middle[at])) lines.push([cell(name), cell(data.units[s]), cell(data.shorts[b]), cell(data.dates[b]), data.commits[b], data.low[at], data.middle[at], data.high[at]]);
  } });
  return lines;
}

function many({data: given, parentElement, setTriggerValue}) {
  const data = {...given, low: floats(given.low), middle: floats(given.middle), high: floats(given.high)};
  const root = parentElement.querySelector(".many"), tip = root.querySelector(".many-tip"), drawing = root.querySelector(".many-drawing");
  let svg, place, cursor, at = null, drawn = 0;

  function draw() {
    const width = drawing.clientWidth;
    if (!width || width === drawn) return;
    drawn = width; place = layout(data, width);
    at = null; tip.hidden = true; // it spoke of places that are elsewhere now
    svg = document.createElementNS(NS, "svg");
    for (const [key, value] of Object.entries({width, height: place.height, viewBox: `0 0 ${width} ${place.height}`, tabindex: 0, role: "application", "aria-roledescription": "chart", "aria-label": `${data.alt}. Arrow keys move over it, Enter opens a series below.`})) svg.setAttribute(key, value);
    if (data.form === "heatmap") drawHeatmap(svg, data, place); else drawPanels(svg, data, place);
    axis(svg, data, place, width);
    cursor = add(svg, "rect", {"data-cursor": "", fill: "none", stroke: "currentColor", "stroke-width": 1.5, visibility: "hidden"});
    svg.addEventListener("pointermove", (event) => point(find(event)));
    svg.addEventListener("pointerleave", () => point(null));
    svg.addEventListener("click", (event) => { const found = find(event); if (found) setTriggerValue("picked", found.s); });
    svg.addEventListener("keydown", keys);
    svg.addEventListener("blur", () => point(null));
    drawing.replaceChildren(svg);
  }

  function find(event) {
    const frame = svg.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
    const s = place.boxes.findIndex((box) => x >= box.x && x <= box.x + box.w && y >= box.y - (data.form === "heatmap" ? 0 : 16) && y <= box.y + box.h);
    return s < 0 ? null : {s, b: Math.min(data.bins - 1, Math.max(0, Math.floor(((x - place.boxes[s].x) / place.boxes[s].w) * data.bins)))};
  }

  function point(next) {
    at = next;
    cursor.setAttribute("visibility", at ? "visible" : "hidden");
    tip.hidden = !at;
    if (!at) return;
    const box = place.boxes[at.s], x = box.x + (at.b / data.bins) * box.w, cell = at.s * data.bins + at.b, middle = data.middle[cell];
    for (const [key, value] of Object.entries({x, y: box.y, width: Math.max(2, box.w / data.bins), height: box.h})) cursor.setAttribute(key, value);
    const several = data.commits[at.b] > 1 ? ` and ${data.commits[at.b] - 1} more` : "", unit = data.units[at.s];
    const lines = [data.full[at.s], `${data.shorts[at.b]} · ${data.dates[at.b]}${several}`, data.subjects[at.b]];
    if (!Number.isFinite(middle)) lines.push("not measured");
    else {
      const range = data.low[cell] < data.high[cell] ? ` (${short(data.low[cell])} to ${short(data.high[cell])})` : "";
      lines.push(`${short(middle)} ${unit}${range}`);
      if (data.typical[at.s] > 0) lines.push(`${signed(100 * (middle / data.typical[at.s] - 1))} % of the series' median`);
    }
    showTip(tip, lines, x, box.y + box.h + drawing.offsetTop, drawn);
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own: back, forward, another tab
    const now = at ?? {s: 0, b: data.bins - 1}, across = {ArrowLeft: -1, ArrowRight: 1}[event.key], down = {ArrowUp: -1, ArrowDown: 1}[event.key];
    const series = now.s + (down ?? 0) * (place.columns ?? 1); // of panels, the one above or below
    if (event.key === "Enter" && at) setTriggerValue("picked", at.s);
    else if (event.key === "Escape") point(null);
    else if (across || down) point(at ? {s: data.names[series] === undefined ? now.s : series, b: Math.min(data.bins - 1, Math.max(0, now.b + (across ?? 0)))} : now);
    else return;
    event.preventDefault();
  }

  root.querySelector(".many-image").onclick = () => saveImage(svg, data.file, data.image);
  root.querySelector(".many-table").onclick = () => saveTable(tableOf(data), data.file);
  tip.hidden = true;
  return keepDrawn(root, drawing, draw);
}
