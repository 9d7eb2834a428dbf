// The ranges of all channels of a weight at a glance; one of them is chosen to be looked at.
import { h, s, set } from "./dom.js";
import { decibels, number } from "./numbers.js";
import { linear, logarithmic, yAxis } from "./scales.js";
import { walkable } from "./walk.js";

const MARGIN = { left: 46, right: 14, top: 12, bottom: 16 };
const HEIGHT = 128;

/** Returns { element, draw(view, chosen), resize(width) }; `choose(index)` is called with a channel, null for all of them. */
export function channels(choose) {
  const svg = s("svg", { class: "qb-plot", role: "slider", tabindex: 0, "aria-label": "Channel", "aria-orientation": "horizontal", "aria-valuemin": 0, height: HEIGHT });
  const title = h("span", { class: "qb-sub qb-grow" });
  const toggle = (text, name, about) => h("button", { type: "button", class: "qb-small", "aria-pressed": "false", title: about, onclick: (event) => flip(name, event.currentTarget) }, text);
  const log = toggle("log range", "log", "Largest absolute values, logarithmic: small channels become visible");
  const sorted = toggle("sorted", "sorted", "Channels by their range instead of by their number");
  const field = h("input", { type: "number", min: 0, step: 1, "aria-label": "Number of the channel", onchange: () => typed() });
  const all = h("button", { type: "button", class: "qb-small", onclick: () => choose(null) }, "All channels");
  const worst = h("button", { type: "button", class: "qb-small" });
  const about = h("span", { class: "qb-sub" });
  const element = h(
    "div",
    { class: "qb-channels" },
    h("div", { class: "qb-tools" }, title, log, sorted),
    svg,
    h("div", { class: "qb-fields" }, h("label", {}, "Channel ", field), all, worst, about),
  );
  const modes = { log: false, sorted: false };
  let view = null;
  let width = 480;
  let chosen = null;
  let order = [];
  let x = null;

  const flip = (name, button) => {
    modes[name] = !modes[name];
    set(button, { "aria-pressed": modes[name] ? "true" : "false" });
    redraw();
  };
  const typed = () => {
    const index = Number(field.value);
    if (field.value !== "" && Number.isInteger(index) && index >= 0 && index < order.length) choose(index);
    else field.value = chosen === null ? "" : String(chosen);
  };
  const size = (i) => Math.max(-view.mins[i], view.maxs[i], 0);
  const reach = (i) => {
    const [low, high] = view.ends;
    return [view.scales[i] * (low - view.zero_points[i]), view.scales[i] * (high - view.zero_points[i])];
  };

  function redraw() {
    if (!view) return;
    const many = view.scales.length;
    order = Array.from({ length: many }, (_, i) => i);
    if (modes.sorted) order.sort((a, b) => size(b) - size(a) || a - b);
    const [bottom, right] = [HEIGHT - MARGIN.bottom, width - MARGIN.right];
    x = linear([0, many], [MARGIN.left, right]);
    const sizes = order.map(size);
    const largest = sizes.reduce((a, b) => Math.max(a, b), 0) || 1;
    const least = sizes.reduce((a, b) => (b > 0 && b < a ? b : a), largest);
    const limits = [Math.min(0, ...chunked(view.mins, Math.min)), Math.max(0, ...chunked(view.maxs, Math.max))];
    const y = modes.log ? logarithmic([least / 2, largest * 1.3], [bottom, MARGIN.top]) : linear(limits[0] < limits[1] ? limits : [-1, 1], [bottom, MARGIN.top]);
    const pixel = (value) => Math.max(MARGIN.top, Math.min(bottom, y(value)));
    const wide = x(1) - x(0);
    const gap = wide > 5 ? 1 : 0;
    const bar = (at, from, to) => `M${(x(at) + gap / 2).toFixed(2)} ${from.toFixed(2)}H${(x(at) + Math.max(0.6, wide - gap / 2)).toFixed(2)}V${to.toFixed(2)}H${(x(at) + gap / 2).toFixed(2)}Z`;
    const kept = [];
    const lost = [];
    const limit = { low: [], high: [] };
    order.forEach((i, at) => {
      const [low, high] = reach(i);
      const ends = modes.log ? [bottom, pixel(size(i) || least / 2)] : [pixel(view.mins[i]), pixel(view.maxs[i])];
      kept.push(bar(at, ...ends));
      if (modes.log ? size(i) > Math.max(-low, high) * 1.0001 : view.maxs[i] > high * 1.0001) lost.push(bar(at, pixel(modes.log ? Math.max(-low, high) : high), ends[1]));
      if (!modes.log && view.mins[i] < low * 1.0001) lost.push(bar(at, ends[0], pixel(low)));
      for (const [name, value] of [["low", low], ["high", modes.log ? Math.max(-low, high) : high]]) {
        const h0 = y(value);
        const hidden = h0 < MARGIN.top - 1 || h0 > bottom + 1 || (modes.log && name === "low");
        limit[name].push(hidden ? "" : `M${x(at).toFixed(2)} ${h0.toFixed(2)}h${wide.toFixed(2)}`);
      }
    });
    const mark = chosen === null ? null : order.indexOf(chosen);
    const weak = weakest();
    svg.replaceChildren(
      yAxis(y, MARGIN.left, right, 3, "", 0),
      s("path", { class: "qb-bars", d: kept.join("") }),
      s("path", { class: "qb-lost", d: lost.join("") }),
      s("path", { class: "qb-reach", d: [...limit.low, ...limit.high].join("") }),
      s("line", { class: "qb-base", x1: MARGIN.left, x2: right, y1: modes.log ? bottom : y(0), y2: modes.log ? bottom : y(0) }),
      weak === null ? "" : s("path", { class: "qb-weak", d: `M${(x(order.indexOf(weak)) + wide / 2).toFixed(1)} ${bottom + 2}l4 8h-8z` }),
      mark === null ? "" : s("rect", { class: "qb-cursor", x: x(mark) - Math.max(0, 3 - wide) / 2, width: Math.max(3, wide), y: MARGIN.top - 6, height: bottom - MARGIN.top + 8 }),
    );
    set(svg, { viewBox: `0 0 ${width} ${HEIGHT}`, width, "aria-valuemax": many - 1, "aria-valuenow": chosen ?? 0, "aria-valuetext": spoken() });
    describe(weak);
  }

  const spoken = () => (chosen === null ? `all ${view.scales.length} channels` : `channel ${chosen}: ${facts(chosen)}`);
  const facts = (i) => `${number(view.mins[i])} to ${number(view.maxs[i])}, scale ${number(view.scales[i])}, SQNR ${decibels(view.sqnr_db[i])} dB`;

  function describe(weak) {
    const many = view.scales.length;
    const own = new Set(view.scales).size > 1;
    title.textContent = `${many === 1 ? "range of the channel" : `ranges of ${many} channels`} \u00b7 lines: reach of the integers${own || many === 1 ? "" : ", one scale for all"}`;
    field.max = String(many - 1);
    field.value = chosen === null ? "" : String(chosen);
    set(all, { "aria-pressed": chosen === null ? "true" : "false" });
    about.textContent = chosen === null ? "" : facts(chosen);
    set(worst, { hidden: weak === null || weak === chosen, title: "The channel that loses most by rounding" });
    worst.textContent = weak === null ? "" : `\u25b2 worst: ${weak} (${decibels(view.sqnr_db[weak])} dB)`;
    worst.onclick = () => choose(weak);
  }

  function weakest() {
    let found = null;
    view.sqnr_db.forEach((db, i) => {
      if (typeof db === "number" && (found === null || db < view.sqnr_db[found])) found = i;
    });
    return found;
  }

  walkable(svg, { order: () => (view ? order : []), at: (px) => Math.floor(x.inverse(px)), width: () => width, chosen: () => chosen, choose });

  return {
    element,
    draw(next, index) {
      view = next;
      chosen = index;
      set(element, { hidden: !next });
      redraw();
    },
    resize(next) {
      width = Math.max(220, next);
      redraw();
    },
  };
}

/** The least or the largest of many numbers, in pieces that fit a call. */
function chunked(values, of) {
  const found = [];
  for (let i = 0; i < values.length; i += 4096) found.push(of(...values.slice(i, i + 4096)));
  return found;
}
