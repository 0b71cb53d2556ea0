// A table of the page's own text: it can be selected, found, read aloud and printed, and it is drawn at once. A heading sorts.
// tables.py says what `data` holds. Long tables are drawn as far as they are read.

const AT_ONCE = 150;
const LEADING = /^([+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?=\s|%|$)/i;

// Texts in the order in which a reader looks for them: "0.9 to 1.1" after "0.15 to 0.2", "-3 %" before "+1 %"; then other texts.
function compareTexts(one, other) {
  const [a, b] = [one, other].map((text) => Number((LEADING.exec(text)?.[1] ?? "NaN").replaceAll(",", "")));
  if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
  return a - b || one.localeCompare(other, "en", {numeric: true});
}

function table({data, parentElement}) {
  const root = parentElement.querySelector(".table"), place = root.querySelector(".table-drawing"), {columns} = data;
  const element = (parent, name, text, look = {}) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    for (const key in look) node.setAttribute(key, look[key]);
    parent?.appendChild(node);
    return node;
  };
  const forms = columns.map(({number, digits}) => number && digits !== null ? new Intl.NumberFormat("en", {minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: digits > 0}) : null);
  const order = root.sorting ??= {name: null, down: true};
  let rows = [], drawn = 0;
  const box = element(null, "div", undefined, {class: "table-box", tabindex: 0, role: "region", "aria-label": data.alt});
  if (data.height) box.style.maxHeight = `${data.height}px`;
  const whole = element(box, "table"), head = element(element(whole, "thead"), "tr"), body = element(whole, "tbody");
  const headings = columns.map((column, place) => {
    const heading = element(head, "th", undefined, {scope: "col", ...(column.number ? {class: "table-number"} : {})});
    const button = element(heading, "button", column.label, {type: "button", title: [column.help, "Click to sort"].filter(Boolean).join(" ")});
    button.onclick = () => sort(place);
    button.tabIndex = place ? -1 : 0; // one stop for all headings: the arrow keys go along them, and Tab comes back to the last
    button.onfocus = () => headings.forEach((one) => { one.firstChild.tabIndex = one === heading ? 0 : -1; });
    button.onkeydown = (event) => {
      const all = headings.map((one) => one.firstChild), step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return; // those are the browser's: back, forward
      event.preventDefault();
      all[(place + step + all.length) % all.length].focus();
    };
    return heading;
  });

  function arranged() {
    const at = columns.findIndex(({name}) => name === order.name), all = data.rows.map((_, i) => i);
    headings.forEach((heading, i) => { if (i === at) heading.setAttribute("aria-sort", order.down ? "descending" : "ascending"); else heading.removeAttribute("aria-sort"); });
    if (at < 0) return all;
    const value = (i) => data.rows[i][at], sign = order.down ? -1 : 1, empty = (one) => one === null || one === "";
    // What is empty stands last, whichever way the others go.
    return all.sort((a, b) => empty(value(a)) || empty(value(b)) ? empty(value(a)) - empty(value(b)) : sign * (columns[at].number ? value(a) - value(b) : compareTexts(String(value(a)), String(value(b)))));
  }

  function sort(place) {
    const {name, number} = columns[place], first = Boolean(number);
    if (order.name !== name) Object.assign(order, {name, down: first});
    else if (order.down === first) order.down = !first;
    else order.name = null;
    begin();
  }

  function more(count) {
    const end = Math.min(rows.length, drawn + count);
    for (; drawn < end; drawn++) {
      const row = element(body, "tr"), values = data.rows[rows[drawn]], chip = data.chips?.[rows[drawn]];
      values.forEach((value, i) => {
        const text = value === null ? "" : typeof value !== "number" ? value : forms[i] ? written(value, forms[i]) : short(value);
        const node = element(row, "td", chip && i === 0 ? undefined : text, columns[i].number ? {class: "table-number"} : text.length > 30 ? {title: text, class: "table-long"} : {});
        if (chip && i === 0) { node.append(swatch(chip), text); node.className = "table-class"; }
      });
    }
  }

  // In the column's digits; what those would call zero has two of its own.
  function written(value, form) {
    const text = form.format(value);
    return value && !/[1-9]/.test(text) ? short(value, 2) : text;
  }

  // The class's colour, with the hatch that it has in the charts.
  function swatch([colour, shape]) {
    const svg = document.createElementNS(NS, "svg");
    for (const [key, value] of Object.entries({width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true"})) svg.setAttribute(key, value);
    add(svg, "rect", {width: 12, height: 12, fill: colour});
    if (shape) for (const [x, y] of [[0, 0], [6, 0], [0, 6], [6, 6]]) add(svg, "path", {d: HATCHES[shape], transform: `translate(${x} ${y})`, stroke: "#fff", "stroke-opacity": 0.8, "stroke-width": shape === "." ? 2 : 1.4, fill: "none"});
    return svg;
  }

  function begin() {
    rows = arranged(); drawn = 0;
    whole.setAttribute("aria-rowcount", rows.length + 1);
    body.replaceChildren();
    more(AT_ONCE);
    box.scrollTop = 0;
  }

  box.addEventListener("scroll", () => { if (drawn < rows.length && box.scrollTop + box.clientHeight > box.scrollHeight - 400) more(AT_ONCE); });
  // Paper does not scroll.
  const all = () => more(rows.length);
  root.ended?.();
  window.addEventListener("beforeprint", all);
  root.ended = () => window.removeEventListener("beforeprint", all);
  root.classList.toggle("table-wraps", Boolean(data.wrap));
  root.querySelector(".table-table").onclick = () => saveTable([columns.map(({name}) => cell(name)), ...data.rows.map((row) => row.map(cell))], data.file);
  begin();
  const across = place.firstElementChild?.scrollLeft ?? 0;
  const focused = [...place.querySelectorAll(".table-box, th button")].indexOf(document.activeElement);
  place.replaceChildren(box);
  box.scrollLeft = across;
  if (focused >= 0) [box, ...headings.map((one) => one.firstChild)][focused]?.focus({preventScroll: true});
  return () => root.ended();
}
