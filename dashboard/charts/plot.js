// One chart (traces and layout, see chart.py) drawn as one SVG: 10 to 30 ms, where Plotly takes 100 to 300
// and a bundle of 4.7 MB. Pointer or arrow keys read it, a drag or + and - zoom along x, the legend hides and shows.

const LEGEND_FONT = "12px system-ui, sans-serif", TOP = 28, ROW = 19;
let charts = 0;

function plot({data: given, parentElement}) {
  const root = parentElement.querySelector(".plot"), drawing = root.querySelector(".plot-drawing"), tip = root.querySelector(".plot-tip");
  const {layout} = given, axisOf = (axis) => ({...axis, ...Object.fromEntries(["range", "tickvals"].map((key) => [key, unpacked(axis?.[key])]))});
  const axes = {x: axisOf(layout.xaxis), y: axisOf(layout.yaxis)}, id = `plot${charts++}`;
  const traces = given.traces.map((trace) => ({...trace, x: unpacked(trace.x), y: unpacked(trace.y), base: unpacked(trace.base), customdata: unpacked(trace.customdata), error_x: trace.error_x && {...trace.error_x, array: unpacked(trace.error_x.array), arrayminus: unpacked(trace.error_x.arrayminus)}}));
  const group = (trace) => trace.legendgroup ?? trace.name, hidden = root.hiddenGroups ??= new Set();
  const named = traces.filter((trace, i) => trace.name && trace.showlegend !== false && traces.findIndex((other) => other.showlegend !== false && group(other) === group(trace)) === i);
  const upright = !traces.some((trace) => trace.orientation === "h") && placing(axes.y, traces.flatMap((trace) => trace.y)).kind !== "category";
  let svg, frame, marks = [], at = null, zoom = null, whole = false, drawn = "";

  function draw() {
    const width = drawing.clientWidth, state = JSON.stringify([width, zoom, whole, [...hidden]]);
    if (!width || state === drawn) return;
    drawn = state;
    const focused = svg?.contains(document.activeElement) ? document.activeElement.dataset.stop : null;
    svg = document.createElementNS(NS, "svg");
    for (const [key, value] of Object.entries({width, tabindex: 0, role: "application", "aria-roledescription": "chart", "data-stop": "", "aria-label": `${given.alt}. Arrow keys read it, plus and minus zoom, 0 shows all.`})) svg.setAttribute(key, value);
    const unit = (layout.annotations ?? []).find((note) => note.xref === "paper" && note.yref === "paper");
    root.classList.toggle("plot-crowded", unit !== undefined && widthOf(unit.text, LEGEND_FONT) + 130 > width);
    frame = laidOut(width);
    svg.setAttribute("height", frame.height);
    svg.setAttribute("viewBox", `0 0 ${width} ${frame.height}`); // paper is narrower than most screens
    paint();
    listen();
    drawing.replaceChildren(svg);
    point(null);
    if (focused !== null) [svg, ...svg.querySelectorAll("[data-stop]")].find((node) => node.dataset.stop === focused)?.focus();
  }

  // Scales and boxes for a width in pixels.
  function laidOut(width) {
    const x = placing(axes.x, traces.flatMap((trace) => trace.x)), y = placing(axes.y, traces.flatMap((trace) => trace.y));
    const shapes = shapesOf(traces.filter((trace) => !hidden.has(group(trace))), layout, x, y), bars = shapes.some((shape) => shape.bars.length);
    const flat = shapes.some((shape) => shape.flat);
    const all = rangeOf(axes.x, x.kind, x.names, extentOf(shapes, "x"), bars && flat, whole);
    x.range = zoom ?? all;
    y.range = rangeOf(axes.y, y.kind, y.names, extentOf(shapes, "y", zoom && upright ? [...zoom].sort((a, b) => a - b) : null), bars && !flat, whole);
    const legend = legendRows(width), title = axes.x.title?.text ?? "";
    const guess = Math.max(60, layout.height - TOP - 40 - (title ? 18 : 0) - (legend.length ? 34 : 0));
    const rows = axes.y.showticklabels === false ? [] : ticksOf(axes.y, y, guess / 32);
    const most = Math.min(0.45 * width, Math.max(0, ...rows.flatMap((tick) => tick.lines.map((line) => widthOf(line))))), left = rows.length ? Math.ceil(most) + 8 : 2;
    const columns = ticksOf(axes.x, x, (width - left) / 80), deep = Math.max(1, ...columns.map((tick) => tick.lines.length));
    const bottom = TOP + guess, under = bottom + 6 + 13 * deep + (title ? 18 : 0);
    return {all, left, right: width - 8, bottom, width, under, legend, title, rows, columns, shapes, most, height: under + (legend.length ? 8 + ROW * legend.length : 4),
      x: onto(x, left, width - 8), y: y.kind === "category" || !axes.y.autorange ? onto(y, bottom, TOP) : onto(y, TOP, bottom)};
  }

  function legendRows(width) {
    const rows = [];
    let room = 0;
    for (const trace of layout.showlegend === false ? [] : named) {
      const text = fitted(linesOf(trace.name).join(" "), width - 24, LEGEND_FONT), takes = 34 + widthOf(text, LEGEND_FONT);
      if (takes > room) { rows.push([]); room = width + 16; }
      rows.at(-1).push({trace, text, x: width + 16 - room, takes});
      room -= takes;
    }
    return rows;
  }

  function paint() {
    const {x, y, left, right, bottom} = frame, defs = add(svg, "defs", {}), clip = add(defs, "clipPath", {id: `${id}-clip`});
    add(clip, "rect", {x: left - 1, y: TOP - 1, width: right - left + 2, height: bottom - TOP + 2});
    paintAxes();
    const inside = add(svg, "g", {"clip-path": `url(#${id}-clip)`}), stacked = layout.barmode === "stack";
    marks = [];
    frame.shapes.forEach((shape, place) => {
      const kind = shape.trace.marker?.pattern?.shape, pattern = kind ? hatch(defs, kind, `${id}-${place}`) : null;
      if (shape.bars.length) drawBars(inside, shape, x, y, pattern, stacked ? 0 : 1); else drawPoints(inside, shape, x, y);
      if (shape.trace.hoverinfo === "skip") return;
      for (const mark of [...shape.bars, ...shape.points]) marks.push({shape, mark, box: mark.box ?? [...mark.at, ...mark.at], lines: () => hoverLines(shape.trace, mark.i, shape.trace.x[mark.i], shape.trace.y[mark.i])});
    });
    for (const line of layout.shapes ?? []) add(inside, "line", {
      x1: line.xref === "paper" ? left : x.pixel(line.x0), x2: line.xref === "paper" ? right : x.pixel(line.x1), y1: line.yref === "paper" ? TOP : y.pixel(y.of(line.y0)), y2: line.yref === "paper" ? bottom : y.pixel(y.of(line.y1)),
      stroke: line.line.color, "stroke-width": line.line.width ?? 1, "stroke-dasharray": DASHES[line.line.dash] ?? "none"});
    (layout.annotations ?? []).filter((note) => note.text).forEach(paintNote);
    marks = marks.filter(({box}) => box.every(Number.isFinite) && box[2] >= left - 1 && box[0] <= right + 1 && box[3] >= TOP - 12 && box[1] <= bottom + 1);
    paintLegend();
    add(svg, "rect", {"data-cursor": "", fill: "none", stroke: "currentColor", "stroke-width": 1.5, rx: 2, visibility: "hidden"});
    add(svg, "rect", {"data-cursor": "drag", fill: "currentColor", "fill-opacity": 0.12, y: TOP, height: bottom - TOP, visibility: "hidden"});
  }

  function paintAxes() {
    const {x, y, left, right, bottom, width} = frame, grid = {stroke: "#808080", "stroke-opacity": 0.25};
    for (const tick of frame.rows) {
      const at = y.pixel(tick.place), high = (tick.lines.length - 1) * 6.5;
      if (y.kind !== "category") add(svg, "line", {x1: left, x2: right, y1: at, y2: at, ...grid});
      tick.lines.forEach((line, i) => { const node = label(svg, left - 6, at + 4 - high + 13 * i, fitted(line, frame.most), {"text-anchor": "end"}); if (node.textContent !== line) add(node, "title", {}, line); });
    }
    let taken = -Infinity;
    for (const tick of [...frame.columns].sort((a, b) => x.pixel(a.place) - x.pixel(b.place))) {
      const at = x.pixel(tick.place), wide = Math.max(...tick.lines.map((line) => widthOf(line))), middle = Math.min(Math.max(at, wide / 2), width - wide / 2);
      if (x.kind !== "category" && axes.x.showgrid !== false) add(svg, "line", {x1: at, x2: at, y1: TOP, y2: bottom, ...grid});
      if (middle - wide / 2 < taken + 8) continue;
      taken = middle + wide / 2;
      tick.lines.forEach((line, i) => label(svg, middle, bottom + 15 + 13 * i, line, {"text-anchor": "middle"}));
    }
    if (frame.title) {
      const wide = widthOf(frame.title, LEGEND_FONT), middle = Math.max(Math.min((left + right) / 2, width - wide / 2), wide / 2);
      label(svg, middle, frame.under - 4, frame.title, {"text-anchor": "middle", style: `font: ${LEGEND_FONT}`});
    }
  }

  function paintNote(note) {
    const {x, y, left, right, bottom} = frame, paper = note.xref === "paper";
    const at = paper ? (note.x === 0 ? 0 : left + note.x * (right - left)) : x.pixel(note.x), on = note.yref === "paper" ? bottom - note.y * (bottom - TOP) : y.pixel(note.y);
    if (!paper && (at < left - 1 || at > right + 1)) return;
    const size = note.font?.size ?? 12, font = `${size}px system-ui, sans-serif`, [text] = linesOf(note.text), wide = widthOf(text, font);
    const base = on + {top: size, middle: size * 0.36, bottom: paper ? -12 : -4}[note.yanchor ?? "middle"], anchor = note.xanchor === "left" ? "start" : note.xanchor === "right" ? "end" : "middle";
    if (note.bgcolor) add(svg, "rect", {x: at - wide / 2 - 3, y: base - size, width: wide + 6, height: size + 4, fill: note.bgcolor});
    label(svg, at, base, anchor === "start" ? fitted(text, frame.width - at, font) : text, {"text-anchor": anchor, style: `font: ${font}`, fill: note.font?.color ?? "currentColor"});
    if (note.hovertext) marks.push({box: [at - 6, base - size, at + 6, base + 2], lines: () => linesOf(note.hovertext)});
  }

  function paintLegend() {
    let first = true;
    frame.legend.forEach((row, r) => row.forEach(({trace, text, x}) => {
      const base = frame.under + 8 + ROW * r + 11, off = hidden.has(group(trace)), marker = {color: trace.line?.color, ...trace.marker};
      const entry = add(svg, "g", {role: "button", tabindex: first ? 0 : -1, "aria-pressed": !off, "aria-label": `${text}: shown`, class: "plot-entry", opacity: off ? 0.4 : 1, "data-stop": `legend ${text}`});
      first = false;
      add(entry, "title", {}, "Click hides or shows it; with Shift it stands alone");
      add(entry, "rect", {x: x - 2, y: base - 12, width: 24 + widthOf(text, LEGEND_FONT), height: ROW - 3, fill: "transparent"});
      if (trace.type === "bar") {
        const box = {x, y: base - 10, width: 12, height: 12}, place = frame.shapes.findIndex((shape) => shape.trace === trace);
        add(entry, "rect", {...box, fill: Array.isArray(marker.color) ? marker.color[0] : marker.color});
        if (marker.pattern?.shape && place >= 0) add(entry, "rect", {...box, fill: `url(#${id}-${place})`});
      } else {
        if (trace.mode?.includes("lines")) add(entry, "path", {d: `M${x - 1},${base - 4}h15`, stroke: trace.line.color, "stroke-width": 2, "stroke-dasharray": DASHES[trace.line.dash] ?? "none"});
        if (trace.mode?.includes("markers")) add(entry, "path", {d: (SYMBOLS[marker.symbol] ?? SYMBOLS.circle)(x + 6, base - 4, 4.5), ...symbolLook(marker)});
      }
      label(entry, x + 18, base, text, {style: `font: ${LEGEND_FONT}`});
      entry.addEventListener("click", (event) => toggle(trace, event.shiftKey));
      entry.addEventListener("keydown", (event) => legendKeys(event, entry, trace));
    }));
  }

  function toggle(trace, alone) {
    const mine = group(trace), others = named.map(group).filter((name) => name !== mine);
    if (alone) { const back = others.every((name) => hidden.has(name)); hidden.clear(); if (!back) others.forEach((name) => hidden.add(name)); }
    else if (!hidden.delete(mine)) hidden.add(mine);
    draw();
  }

  function legendKeys(event, entry, trace) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const all = [...svg.querySelectorAll(".plot-entry")], step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
    if (event.key === "Enter" || event.key === " ") toggle(trace, event.shiftKey);
    else if (step) all[(all.indexOf(entry) + step + all.length) % all.length].focus();
    else return;
    event.preventDefault(); event.stopPropagation();
  }

  function listen() {
    let from = null;
    const place = (event) => { const box = svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const inside = ([px, py]) => px >= frame.left - 4 && px <= frame.right + 4 && py >= TOP - 14 && py <= frame.bottom + 4;
    const band = svg.querySelector('[data-cursor="drag"]');
    const moved = (event) => {
      const here = place(event);
      if (from !== null && Math.abs(here[0] - from) > 5) {
        point(null);
        for (const [key, value] of Object.entries({x: Math.min(from, here[0]), width: Math.abs(here[0] - from), visibility: "visible"})) band.setAttribute(key, value);
      } else point(inside(here) ? nearest(...here) : null);
    };
    svg.addEventListener("pointermove", moved);
    svg.addEventListener("pointerdown", (event) => {
      const here = place(event);
      moved(event);
      if (event.pointerType === "mouse" && event.button === 0 && inside(here) && frame.x.kind !== "category") { from = here[0]; svg.setPointerCapture(event.pointerId); }
    });
    svg.addEventListener("pointerup", (event) => {
      const [px] = place(event), start = from;
      from = null;
      band.setAttribute("visibility", "hidden");
      if (start !== null && Math.abs(px - start) > 5) zoomTo([Math.min(start, px), Math.max(start, px)].map((pixel) => frame.x.invert(Math.min(frame.right, Math.max(frame.left, pixel)))));
    });
    svg.addEventListener("dblclick", (event) => { if (inside(place(event))) showAll(); });
    svg.addEventListener("pointerleave", () => point(null));
    svg.addEventListener("blur", () => point(null));
    svg.addEventListener("keydown", keys);
  }

  // Not so near that an axis's numbers no longer differ, nor so far that all marks are one dot.
  function zoomTo(ends) {
    const times = Math.abs(ends[1] - ends[0]) / Math.abs(frame.all[1] - frame.all[0]);
    if (!(times > 1e-7 && times < 20)) return;
    zoom = ends;
    draw();
  }

  function showAll() {
    if (zoom) zoom = null; else whole = !whole;
    draw();
  }

  function nearest(px, py) {
    const steep = marks.some(({shape}) => shape?.bars.length) ? 1 : 0.25;
    let best = null, least = Infinity;
    for (const mark of marks) {
      const [x0, y0, x1, y1] = mark.box, away = Math.hypot(Math.max(x0 - px, 0, px - x1), steep * Math.max(y0 - py, 0, py - y1)) - (mark.mark?.box ? 0 : 6);
      if (away < least) { least = away; best = mark; }
    }
    return best;
  }

  function point(next) {
    at = next;
    tip.hidden = !at;
    const cursor = svg.querySelector('[data-cursor=""]');
    cursor.setAttribute("visibility", at ? "visible" : "hidden");
    if (!at) return;
    const [x0, y0, x1, y1] = at.box, room = at.mark?.box ? 1 : 5;
    for (const [key, value] of Object.entries({x: x0 - room, y: y0 - room, width: x1 - x0 + 2 * room, height: y1 - y0 + 2 * room})) cursor.setAttribute(key, value);
    showTip(tip, at.lines(), x1, Math.min(y1, frame.bottom) + drawing.offsetTop, frame.width);
  }

  // Along the axis of commits or names to the next mark of the same trace; across it to the next trace there.
  function next(key) {
    const centre = ({box}, axis) => axis === "x" ? (box[0] + box[2]) / 2 : (box[1] + box[3]) / 2;
    const main = upright ? "x" : "y", cross = upright ? "y" : "x", on = {ArrowLeft: ["x", -1], ArrowRight: ["x", 1], ArrowUp: ["y", -1], ArrowDown: ["y", 1]}[key];
    if (!on || !marks.length) return undefined;
    if (!at) return [...marks].sort((a, b) => upright ? centre(b, "x") - centre(a, "x") : centre(a, "y") - centre(b, "y") || centre(a, "x") - centre(b, "x"))[0];
    const [axis, sign] = on, here = centre(at, main), apart = (mark) => sign * (centre(mark, axis) - centre(at, axis));
    if (axis === main) {
      const ahead = (all) => all.filter((mark) => apart(mark) > 0.3).sort((a, b) => apart(a) - apart(b) || Math.abs(centre(a, cross) - centre(at, cross)) - Math.abs(centre(b, cross) - centre(at, cross)))[0];
      return ahead(marks.filter((mark) => mark.shape === at.shape)) ?? ahead(marks) ?? at;
    }
    const level = new Map();
    for (const mark of marks) { const off = Math.abs(centre(mark, main) - here); if (off <= (level.get(mark.shape)?.[0]?.off ?? Infinity) + 0.3) level.set(mark.shape, [...(level.get(mark.shape) ?? []).filter((one) => one.off <= off + 0.3), {off, mark}]); }
    return [...level.values()].flat().map(({mark}) => mark).filter((mark) => mark !== at && apart(mark) > 0).sort((a, b) => apart(a) - apart(b))[0] ?? at;
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own: its zoom, back, forward
    const [low, high] = frame.x.range, times = {"+": 0.5, "=": 0.5, "-": 2}[event.key];
    if (event.key === "Escape") point(null);
    else if (event.key === "0") showAll();
    else if (times && frame.x.kind !== "category") {
      const middle = at ? frame.x.invert((at.box[0] + at.box[2]) / 2) : (low + high) / 2;
      zoomTo([middle - (middle - low) * times, middle + (high - middle) * times]);
    } else {
      const found = next(event.key);
      if (!found) return;
      point(found);
    }
    event.preventDefault();
  }

  function table() {
    const plain = (text) => linesOf(text).join(" "), rows = [["series", "x", "y", "from", "about"].map(cell)];
    for (const trace of traces) if (trace.hoverinfo !== "skip") trace.x.forEach((x, i) => rows.push([plain(trace.name ?? ""), typeof x === "string" ? plain(x) : x, typeof trace.y[i] === "string" ? plain(trace.y[i]) : trace.y[i], trace.base?.[i], plain(trace.customdata?.[i] ?? "")].map(cell)));
    saveTable(rows, given.file);
  }

  root.querySelector(".plot-image").onclick = () => saveImage(svg, given.file, given.image);
  root.querySelector(".plot-table").onclick = table;
  return keepDrawn(root, drawing, draw);
}
