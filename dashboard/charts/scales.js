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

// Python's "+,.4g", its exponents only below 1e-6 and from 1e15 on: four digits, thousands apart, a sign.
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
  const measured = (value) => Number.isFinite(value) ? value : NaN; // one infinite value would push all others off the axis
  if (!texts) return axis.type === "log" ? {kind: "log", of: (value) => value > 0 ? Math.log10(measured(value)) : NaN} : {kind: "linear", of: measured};
  const known = new Map();
  for (const value of [...(axis.categoryarray ?? []), ...all]) if (value !== null && !known.has(String(value))) known.set(String(value), known.size);
  return {kind: "category", names: [...known.keys()], of: (value) => known.get(String(value)) ?? NaN};
}

// First and last place of an axis. `extent`: lowest and highest place that is drawn; `zero`: bars stand on zero.
function rangeOf(axis, kind, names, extent, zero, whole) {
  if (kind === "category") {
    const ends = [-0.5, Math.max(names.length, 1) - 0.5];
    return axis.autorange === "reversed" ? ends.reverse() : ends;
  }
  if (axis.range && !whole && axis.range[0] !== axis.range[1]) return axis.range;
  let [low, high] = extent;
  if (!(low <= high)) return [0, 1];
  if (zero || axis.rangemode === "tozero") { low = Math.min(low, 0); high = Math.max(high, 0); }
  // Values that differ in the last digits of a sum only are one value: between them there is no number for a tick.
  const size = Math.max(Math.abs(low), Math.abs(high)), spread = high - low > 1e-9 * size ? high - low : 0.1 * size || 1;
  const pad = kind === "log" ? Math.max(0.06 * spread, 0.04) : 0.05 * spread;
  return [zero && low === 0 ? 0 : low - pad, zero && high === 0 && low < 0 ? 0 : high + pad];
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough * 0.999);
}

// Counted, not added up: a step may be too small to change the number that it is added to.
function linearTicks(low, high, most) {
  const step = niceStep((high - low) / Math.max(1, most)), first = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - first;
  const ticks = [], text = textOfTick(step, Math.max(Math.abs(low), Math.abs(high)));
  for (let i = 0; i <= count; i++) ticks.push({place: (first + i) * step, lines: [text((first + i) * step)]});
  return ticks;
}

// As many decimals as the step has; a power of ten where the axis's largest number (`size`) would be a row of zeros.
function textOfTick(step, size) {
  const power = Math.floor(Math.log10(step) + 1e-9);
  return (at) => {
    if (Math.abs(at) < step / 1e6) return "0";
    if (size < 1e-5 || size >= 1e15) return powered(at, Math.max(0, Math.floor(Math.log10(Math.abs(at)) + 1e-9) - power));
    return at.toLocaleString("en", {maximumFractionDigits: Math.min(12, Math.max(0, -power))});
  };
}

function logTicks(low, high, most) {
  const wide = high - low;
  if (wide < 0.5) return linearTicks(10 ** low, 10 ** high, most).filter((tick) => tick.place > 0).map((tick) => ({...tick, place: Math.log10(tick.place)}));
  // As many a power of ten as there is room for; of many powers each second, third, ...
  const times = [[1, 2, 3, 5, 7], [1, 2, 5]].find((all) => wide * all.length <= most) ?? (wide < 1.2 ? [1, 2, 5] : [1]), ticks = [];
  const every = times.length > 1 ? 1 : Math.ceil(wide / Math.max(1, most));
  for (let power = Math.floor(low / every) * every; power <= high; power += every) for (const each of times) {
    const place = power + Math.log10(each), value = each * 10 ** power;
    if (place >= low - 1e-9 && place <= high + 1e-9) ticks.push({place, lines: [value < 1e-4 ? powered(value, 0) : short(value, 3)]});
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
