// What a chart's traces are made of, in places of its axes: bars, points, lines and areas; and how each is drawn.

const DASHES = {dot: "2 3", dash: "7 5", dashdot: "7 4 2 4"};
const HATCHES = {"/": "M-1,7L7,-1M-1,1L1,-1M5,7L7,5", "\\": "M-1,-1L7,7M-1,5L1,7M5,-1L7,1", "-": "M0,3H6", "x": "M-1,7L7,-1M-1,-1L7,7", ".": "M2,3h2"};

// Every trace that is shown, with its marks. Bars of a stack stand on each other, unless they say where they begin.
function shapesOf(traces, layout, x, y) {
  const above = new Map(), below = new Map();
  return traces.map((trace) => {
    const shape = {trace, bars: [], points: [], flat: trace.orientation === "h"};
    const xs = trace.x, ys = trace.y, error = trace.error_x;
    const ends = (i, value) => error ? [x.of(value - error.arrayminus[i]), x.of(value + error.array[i])] : null;
    if (trace.type === "bar") {
      const [along, across, positions, values] = shape.flat ? [x, y, ys, xs] : [y, x, xs, ys];
      const half = (trace.width ?? 1 - (layout.bargap ?? 0.2)) / 2;
      for (let i = 0; i < positions.length; i++) {
        const at = across.of(positions[i]), value = values[i];
        if (!Number.isFinite(at) || !Number.isFinite(value)) continue;
        const pile = value < 0 ? below : above;
        const from = trace.base ? trace.base[i] : layout.barmode === "stack" ? pile.get(at) ?? 0 : 0;
        if (layout.barmode === "stack" && !trace.base) pile.set(at, from + value);
        const [start, end] = [along.of(from), along.of(from + value)];
        shape.bars.push(shape.flat ? {i, x0: start, x1: end, y0: at - half, y1: at + half, ends: ends(i, from + value)} : {i, x0: at - half, x1: at + half, y0: start, y1: end});
      }
    } else for (let i = 0; i < xs.length; i++) shape.points.push({i, x: x.of(xs[i]), y: y.of(ys[i]), ends: ends(i, xs[i])});
    return shape;
  });
}

// Lowest and highest place that the shapes take on an axis ("x" or "y"); `inside`: only where the other one is within.
function extentOf(shapes, axis, inside) {
  const other = axis === "x" ? "y" : "x";
  let low = Infinity, high = -Infinity;
  const see = (value) => { if (value < low) low = value; if (value > high) high = value; };
  for (const {bars, points} of shapes) {
    for (const bar of bars) if (!inside || (bar[other + "1"] >= inside[0] && bar[other + "0"] <= inside[1])) { see(bar[axis + "0"]); see(bar[axis + "1"]); if (bar.ends && axis === "x") bar.ends.forEach(see); }
    for (const point of points) if (!inside || (point[other] >= inside[0] && point[other] <= inside[1])) { see(point[axis]); if (point.ends && axis === "x") point.ends.forEach(see); }
  }
  return [low, high];
}

function hatch(defs, shape, name) {
  const pattern = add(defs, "pattern", {id: name, width: 6, height: 6, patternUnits: "userSpaceOnUse"});
  add(pattern, "path", {d: HATCHES[shape] ?? HATCHES["/"], stroke: "#fff", "stroke-opacity": 0.8, "stroke-width": shape === "." ? 2 : 1.4, fill: "none"});
  return `url(#${name})`;
}

function drawBars(group, shape, x, y, pattern, thin) {
  const {trace, bars} = shape, byColour = new Map();
  for (const bar of bars) {
    const [left, right] = [x.pixel(bar.x0), x.pixel(bar.x1)].sort((a, b) => a - b), [top, bottom] = [y.pixel(bar.y0), y.pixel(bar.y1)].sort((a, b) => a - b);
    const wide = Math.max(right - left, shape.flat ? thin : 0.5), tall = Math.max(bottom - top, shape.flat ? 0.5 : thin);
    const colour = Array.isArray(trace.marker.color) ? trace.marker.color[bar.i] : trace.marker.color;
    bar.box = [left, top, left + wide, top + tall];
    byColour.set(colour, `${byColour.get(colour) ?? ""}M${left.toFixed(2)},${top.toFixed(2)}h${wide.toFixed(2)}v${tall.toFixed(2)}h${(-wide).toFixed(2)}z`);
  }
  for (const [colour, d] of byColour) {
    add(group, "path", {d, fill: colour});
    if (pattern) add(group, "path", {d, fill: pattern});
  }
  drawEnds(group, trace, bars.map((bar) => ({ends: bar.ends, at: (bar.box[1] + bar.box[3]) / 2})), x);
}

function drawEnds(group, trace, marks, x) {
  const look = trace.error_x;
  if (!look) return;
  // An interval that reaches below a logarithmic axis's zero goes on to the edge, and ends nowhere.
  const d = marks.filter(({ends}) => ends && Number.isFinite(ends[1]) && !(ends[1] <= ends[0])).map(({ends: [low, high], at}) => {
    const right = x.pixel(high).toFixed(1), cap = `M${right},${at - 3}v6`;
    if (!Number.isFinite(low)) return `M${x.pixel(x.range[0]).toFixed(1)},${at}H${right}${cap}`;
    const left = x.pixel(low).toFixed(1);
    return `M${left},${at}H${right}M${left},${at - 3}v6${cap}`;
  });
  if (d.length) add(group, "path", {d: d.join(""), stroke: look.color ?? "#808080", "stroke-width": look.thickness ?? 1.4, fill: "none"});
}

const SYMBOLS = {
  circle: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`,
  diamond: (x, y, r) => `M${x - 1.3 * r},${y}L${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}z`,
  x: (x, y, r) => `M${x - r},${y - r}L${x + r},${y + r}M${x - r},${y + r}L${x + r},${y - r}`,
  "line-ew-open": (x, y, r) => `M${x - r},${y}h${2 * r}`,
};

// The symbol of a point trace as attributes, for its marks and for its entry in the legend.
function symbolLook(marker) {
  const open = marker.symbol === "x" || marker.symbol === "line-ew-open";
  if (open) return {fill: "none", stroke: marker.color, "stroke-width": marker.symbol === "x" ? 2.5 : marker.line?.width ?? 2};
  return {fill: marker.color, stroke: marker.line?.color ?? "none", "stroke-width": marker.line?.width ?? 0};
}

function drawPoints(group, shape, x, y) {
  const {trace, points} = shape, mode = trace.mode ?? "lines";
  for (const point of points) point.at = [x.pixel(point.x), y.pixel(point.y)];
  const seen = points.filter((point) => point.at.every(Number.isFinite));
  if (!seen.length) return;
  if (trace.fill === "toself") add(group, "path", {d: `M${seen.map((point) => point.at.map((value) => value.toFixed(1)).join(",")).join("L")}Z`, fill: trace.fillcolor});
  else if (mode.includes("lines")) {
    let d = "", broken = true;
    for (const point of points) {
      if (!point.at.every(Number.isFinite)) { broken = true; continue; }
      d += `${broken ? "M" : "L"}${point.at[0].toFixed(1)},${point.at[1].toFixed(1)}`;
      broken = false;
    }
    add(group, "path", {d, fill: "none", stroke: trace.line.color, "stroke-width": trace.line.width ?? 2, "stroke-dasharray": DASHES[trace.line.dash] ?? "none", "stroke-linejoin": "round"});
  }
  drawEnds(group, trace, seen.map((point) => ({ends: point.ends, at: point.at[1]})), x);
  if (mode.includes("markers")) {
    const marker = {color: trace.line?.color, size: 6, ...trace.marker}, symbol = SYMBOLS[marker.symbol] ?? SYMBOLS.circle;
    add(group, "path", {d: seen.map((point) => symbol(...point.at, marker.size / 2)).join(""), ...symbolLook(marker)});
  }
}
