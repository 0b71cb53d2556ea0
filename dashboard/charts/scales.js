// From a chart's values to pixels: axes that are linear, logarithmic or hold categories; their ticks; texts and formats.
// A value has a place on its axis (itself, its logarithm, or its category's number), and a place has a pixel.

const TYPES = {f8: Float64Array, f4: Float32Array, i4: Int32Array};

function unpacked(values) {
  if (values?.bdata === undefined) return values;
  return Array.from(new TYPES[values.dtype](Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0)).buffer));
}

const ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"};

// The little markup of the charts' texts, as Python's for_hover leaves it: lines, bold (dropped), three entities.
function linesOf(text) {
  return String(text).split("<br>").map((line) => line.replace(/<\/?b>/g, "").replace(/&(lt|gt|amp);/g, (all) => ENTITIES[all]));
}

// Python's "+,.4g" without its exponents: four digits, thousands apart, a sign.
function formatted(value, form) {
  if (typeof value !== "number") return String(value ?? "");
  const digits = Number(/\.(\d+)g/.exec(form ?? "")?.[1] ?? 6);
  return form?.startsWith("+") ? signed(value, digits) : short(value, digits);
}

function hoverLines(trace, i, x, y) {
  const values = {x, y, customdata: trace.customdata?.[i], name: trace.name};
  if (!trace.hovertemplate) return [...linesOf(trace.name ?? ""), `${formatted(x)}, ${formatted(y)}`];
  const filled = trace.hovertemplate.replace(/<extra>.*<\/extra>/s, "").replace(/%\{(\w+)(?::([^}]+))?\}/g, (_, name, form) => formatted(values[name], form));
  return linesOf(filled);
}

// What turns a value of an axis into its place. `all`: every value that any trace has on it.
function placing(axis, all) {
  const texts = axis.type === "category" || (axis.type !== "log" && all.some((value) => typeof value === "string"));
  if (!texts) return {kind: axis.type === "log" ? "log" : "linear", of: axis.type === "log" ? (value) => value > 0 ? Math.log10(value) : NaN : (value) => value ?? NaN};
  const known = new Map();
  for (const value of [...(axis.categoryarray ?? []), ...all]) if (value !== null && !known.has(String(value))) known.set(String(value), known.size);
  return {kind: "category", names: [...known.keys()], of: (value) => known.get(String(value)) ?? NaN};
}

// First and last place of an axis. `extent`: lowest and highest place that is drawn; `zero`: bars stand on zero.
function rangeOf(axis, kind, names, extent, zero, whole) {
  if (kind === "category") {
    const ends = [-0.5, names.length - 0.5];
    return axis.autorange === "reversed" ? ends.reverse() : ends;
  }
  if (axis.range && !whole) return axis.range;
  let [low, high] = extent;
  if (!(low <= high)) return [0, 1];
  if (zero || axis.rangemode === "tozero") { low = Math.min(low, 0); high = Math.max(high, 0); }
  const spread = high - low || Math.abs(high) * 0.1 || 1, pad = kind === "log" ? Math.max(0.06 * spread, 0.04) : 0.05 * spread;
  return [zero && low === 0 ? 0 : low - pad, zero && high === 0 ? 0 : high + pad];
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough * 0.999);
}

function linearTicks(low, high, most) {
  const step = niceStep((high - low) / Math.max(1, most)), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step)
    ticks.push({place: at, lines: [(Math.abs(at) < step / 1e6 ? 0 : at).toLocaleString("en", {maximumFractionDigits: Math.min(12, digits)})]});
  return ticks;
}

function logTicks(low, high, most) {
  if (high - low < 0.5) return linearTicks(10 ** low, 10 ** high, most).filter((tick) => tick.place > 0).map((tick) => ({...tick, place: Math.log10(tick.place)}));
  const times = high - low < 1.2 ? [1, 2, 3, 5, 7] : high - low < 2.5 ? [1, 2, 5] : [1], ticks = [];
  for (let power = Math.floor(low); power <= high; power++) for (const each of times) {
    const place = power + Math.log10(each), value = each * 10 ** power;
    if (place >= low - 1e-9 && place <= high + 1e-9) ticks.push({place, lines: [value < 1e-4 ? value.toExponential(0) : short(value, 3)]});
  }
  return ticks;
}

function ticksOf(axis, scale, most) {
  const [low, high] = [Math.min(...scale.range), Math.max(...scale.range)];
  if (axis.tickvals) return axis.tickvals.map((value, i) => ({place: scale.of(value), lines: linesOf(axis.ticktext?.[i] ?? short(value))})).filter((tick) => tick.place >= low && tick.place <= high);
  if (scale.kind === "category") return scale.names.map((name, place) => ({place, lines: linesOf(name)})).filter((tick) => tick.place >= low && tick.place <= high);
  return scale.kind === "log" ? logTicks(low, high, most) : linearTicks(low, high, most);
}

// A scale whose range stands: pixels from `from` (at the range's first place) to `to`.
function onto(scale, from, to) {
  const [first, last] = scale.range, each = (to - from) / (last - first);
  return {...scale, pixel: (place) => from + (place - first) * each, invert: (pixel) => first + (pixel - from) / each};
}
