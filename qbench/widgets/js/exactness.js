// A comparison: a bar for each layer's rate of differences, and how far and where the chosen layer differs.
import { h, s, set } from "./dom.js";
import { NONE, count, number, percent, short } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";

const LOWEST = 1e-6;
const HEIGHT = 170;
const MARGIN = { left: 52, right: 12, top: 18, bottom: 34 };
const FEW = 25;

/** Returns { element, draw(view), choose(tensor), resize(width) }; `select(tensor)` is told of a choice. */
export function exactnessPanel(select) {
  let view = null;
  let chosen = null;
  let onlyDiffering = null;
  let width = 480;
  const head = h("div", { class: "qb-exact-head" });
  const filter = h("input", { type: "checkbox", onchange: () => { onlyDiffering = filter.checked; list(); } });
  const rows_ = h("div", { class: "qb-exact-list", role: "listbox", "aria-label": "Layers", tabindex: "-1", onkeydown: key });
  const legend = h(
    "p",
    { class: "qb-sub qb-exact-legend" },
    h("span", { class: "qb-exact-key qb-exact-own" }), "by this op alone",
    h("span", { class: "qb-exact-key qb-exact-end" }), "end to end",
    h("span", { class: "qb-exact-key qb-exact-theory" }), "predicted",
    h("label", {}, filter, "only layers that differ"),
  );
  const right = h("section", { class: "qb-exact-layer", "aria-label": "Chosen layer", "aria-live": "polite" });
  const ticks = ["10\u207b\u2076", "10\u207b\u2074", "1 %", "all"].map((text) => h("span", {}, text));
  const scale = h("div", { class: "qb-exact-scale", "aria-hidden": "true" }, h("span"), h("div", { class: "qb-exact-ticks" }, ticks), h("span"));
  const left = h("div", { class: "qb-exact-left" }, legend, scale, rows_);
  const element = h("div", { class: "qb-exact" }, head, h("div", { class: "qb-exact-columns" }, left, right));

  function key(event) {
    const rows = [...rows_.children];
    const at = rows.findIndex((row) => row.dataset.tensor === chosen);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 10, PageUp: at - 10 }[event.key];
    if (to === undefined || !rows.length) return;
    event.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    take(row.dataset.tensor);
    row.focus();
  }

  function take(tensor) {
    choose(tensor);
    select(tensor);
  }

  function choose(tensor) {
    chosen = tensor;
    for (const row of rows_.children) mark(row);
    detail();
  }

  function mark(row) {
    const is = row.dataset.tensor === chosen;
    set(row, { "aria-selected": is ? "true" : "false", tabindex: is ? "0" : "-1" });
  }

  function list() {
    const rows = view.layers.filter((layer) => !onlyDiffering || layer.different || layer.different_end_to_end);
    rows_.replaceChildren(...rows.map((layer) => line(layer, layer.tensor === view.first, take)));
    for (const row of rows_.children) mark(row);
    if (rows.length && !rows.some((layer) => layer.tensor === chosen)) rows_.firstChild.tabIndex = 0;
    if (!rows.length) rows_.replaceChildren(h("p", { class: "qb-sub qb-exact-none" }, "No layer differs."));
  }

  function detail() {
    const layer = view?.layers.find((one) => one.tensor === chosen);
    right.replaceChildren(...(layer ? about(layer, view, width) : []));
  }

  return {
    element,
    draw(next) {
      view = next;
      onlyDiffering ??= next.layers.length > FEW && next.first !== null;
      filter.checked = onlyDiffering;
      head.replaceChildren(...summary(next, take));
      list();
      detail();
    },
    chosen: () => chosen,
    choose(tensor) {
      if (tensor !== chosen) choose(tensor);
      const row = rows_.querySelector('[aria-selected="true"]');
      if (!row) return;
      const least = row.offsetTop + row.offsetHeight - rows_.clientHeight; // scrolls the list, never the page
      rows_.scrollTop = Math.max(least, Math.min(row.offsetTop, rows_.scrollTop));
    },
    resize(whole) {
      const next = Math.max(260, Math.floor(whole > 760 ? whole / 2 - 14 : whole));
      if (next === width) return;
      width = next;
      detail();
    },
  };
}

/** The same as a section of the workbench: { element, draw(view, layer), mark(layer), resize() }; `select(layer)` as there. */
export function exactnessSection(select) {
  let view = null;
  let seen = null;
  let awaited = null; // answers to earlier requests do not count
  const told = h("span", { class: "qb-sub qb-cut" });
  const nowhere = h("p", { class: "qb-sub", role: "status" });
  const find = (tensor) => view.layers.find((one) => one.tensor === tensor);
  const panel = exactnessPanel((tensor) => {
    const { name, layer } = find(tensor);
    nowhere.textContent = layer === null ? `The session has no layer ${short(name, 80)}: only the comparison shows it.` : "";
    if (layer === null) return;
    awaited = layer === seen ? null : layer;
    select(layer);
  });
  const body = h("div", { class: "qb-exact-body" }, panel.element, nowhere);
  const element = h("details", { class: "qb-section", open: true, hidden: true, "data-where": "exactness", ontoggle: () => resize() }, h("summary", {}, h("h3", {}, "Bit exactness"), told), body);

  function resize() {
    if (body.clientWidth > 0) panel.resize(body.clientWidth - 20);
  }

  /** The layer that is looked at elsewhere, where it was compared. */
  function mark(layer) {
    if (layer === seen) return;
    seen = layer;
    if (awaited !== null && awaited !== layer) return;
    awaited = null;
    const here = view?.layers.filter((one) => one.layer === layer) ?? [];
    const one = here.find((each) => each.tensor === panel.chosen()) ?? here.at(-1);
    if (!one) return;
    nowhere.textContent = "";
    panel.choose(one.tensor);
  }

  return {
    element,
    mark,
    resize,
    draw(next, layer) {
      set(element, { hidden: !next.layers });
      if (!next.layers) return;
      view = next;
      told.textContent = "as compared: later edits are not in it";
      panel.draw(view);
      seen = null;
      if (view.first === null) mark(layer);
      else panel.choose(view.first);
      seen = layer;
    },
  };
}

/** Who was compared, and what came of it. */
function summary(view, take) {
  const first = view.layers.find((layer) => layer.tensor === view.first);
  const jump = first ? h("button", { type: "button", class: "qb-exact-jump", onclick: () => take(first.tensor) }, short(first.name, 36)) : "none: every bit is the same";
  const end = view.fed_with === null ? null : card("end", "end to end", count(view.different_end_to_end), "what came of it in whole runs");
  return [
    h("p", { class: "qb-exact-who" }, `${short(view.left)} and ${short(view.right)}`),
    h(
      "div",
      { class: "qb-results qb-exact-cards" },
      card("different", "elements that differ", count(view.different), `of ${count(view.elements)}, in ${view.differing} of ${view.layers.length} layers`),
      card("first", "first divergent op", jump, first ? [first.op, first.rounding].filter(Boolean).join(": ") : ""),
      end,
      card("samples", "samples", count(view.samples), view.fed_with === null ? "run from end to end" : `each op fed with the values of ${short(view.fed_with, 32)}`),
    ),
    view.missing.length
      ? h(
          "details",
          { class: "qb-sub" },
          h("summary", {}, `${count(view.missing.length)} values could not be compared`),
          h("ul", {}, view.missing.map(([tensor, why]) => h("li", {}, `${short(tensor, 80)}: ${why}`))),
        )
      : null,
  ].filter(Boolean);
}

function card(name, title, value, note) {
  const text = typeof value === "string" ? h("div", { class: "qb-card-value" }, value) : h("div", { class: "qb-card-action" }, value);
  return h("div", { class: "qb-card", "data-name": name }, h("div", { class: "qb-card-title" }, title), text, h("div", { class: "qb-sub" }, note));
}

/** One layer: its name, its rates on a logarithmic scale, how many elements differ and how far. */
function line(layer, isFirst, take) {
  const at = (rate) => `${(100 * Math.max(0, Math.log10(Math.max(rate, LOWEST) / LOWEST))) / -Math.log10(LOWEST)}%`;
  const bar = h("div", { class: "qb-exact-bar" });
  if (layer.rate) bar.append(h("div", { class: "qb-exact-own", style: `width:${at(layer.rate)}` }));
  if (layer.rate_end_to_end) bar.append(h("div", { class: "qb-exact-end", style: `left:${at(layer.rate_end_to_end)}` }));
  if (layer.predicted !== null && layer.predicted > LOWEST) bar.append(h("div", { class: "qb-exact-theory", style: `left:${at(layer.predicted)}` }));
  const theory = layer.predicted === null ? "" : `, ${rate(layer.predicted)} predicted`;
  const told = `${layer.name}, ${layer.op}: ${count(layer.different)} of ${count(layer.elements)} differ (${rate(layer.rate)}${theory}), end to end ${rate(layer.rate_end_to_end)}`;
  return h(
    "div",
    { class: "qb-exact-row", role: "option", "data-tensor": layer.tensor, "aria-label": told, title: short(told, 400), onclick: () => take(layer.tensor) },
    h("div", { class: "qb-exact-name" }, h("span", { class: "qb-name" }, short(layer.name, 40)), isFirst ? h("span", { class: "qb-mark" }, "first") : null, h("div", { class: "qb-sub" }, layer.op)),
    bar,
    h("div", { class: "qb-exact-count" }, layer.different ? count(layer.different) : NONE, h("div", { class: "qb-sub" }, layer.different ? far(layer, layer.largest) : "same")),
  );
}

/** What is known of the chosen layer. */
function about(layer, view, width) {
  const facts = [
    ["differ", `${count(layer.different)} of ${count(layer.elements)} (${rate(layer.rate)})`],
    ["predicted", layer.predicted === null ? NONE : rate(layer.predicted)],
    ["farthest", layer.different ? far(layer, layer.largest) : NONE],
    ["end to end", `${rate(layer.rate_end_to_end)}, ${layer.different_end_to_end ? far(layer, layer.largest_end_to_end) : "same"}`],
  ];
  return [
    h("h3", {}, short(layer.name, 120)),
    h("p", { class: "qb-sub" }, [layer.op, layer.dtype, layer.rounding].filter(Boolean).join(" \u00b7 ")),
    h("dl", { class: "qb-exact-facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    ...(layer.different
      ? [
          histogram(layer, width, `${view.left} \u2212 ${view.right}`),
          layer.channels.length ? channels(layer, width) : null,
        ].filter(Boolean)
      : [h("div", { class: "qb-absent" }, layer.different_end_to_end ? "This op gives the same bits; what differs end to end comes from before it." : "Every bit is the same.")]),
  ];
}

function rate(value) {
  return value > 0 && value < 1e-4 ? `${number(100 * value, 2)} %` : percent(value, 3);
}

function far(layer, value) {
  return layer.is_real ? `${number(value, 2)} relative` : `${count(value)} step${value === 1 ? "" : "s"}`;
}

/** How many elements differ by how many steps. */
function histogram(layer, width, who) {
  const steps = layer.histogram.map(([step]) => step);
  const reach = layer.is_real ? 0 : Math.max(2, ...steps.map(Math.abs));
  const [low, high] = layer.is_real ? [Math.min(...steps) - 1, Math.max(...steps) + 1] : [-reach - 1, reach + 1];
  const x = linear([low, high], [MARGIN.left, width - MARGIN.right]);
  const most = Math.max(...layer.histogram.map(([, many]) => many));
  const y = logarithmic([0.5, Math.max(2, most)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const wide = Math.max(1, Math.min(28, 0.8 * (x(1) - x(0))));
  const bars = layer.histogram.map(([step, many]) =>
    s("rect", { class: "qb-bars", x: x(step) - wide / 2, width: wide, y: y(many), height: Math.max(0, y(0.5) - y(many)) }, s("title", {}, `${step}: ${count(many)}`)),
  );
  const label = layer.is_real ? "difference, powers of ten" : `difference in steps, ${short(who, 60)}`;
  return plot(width, `Differences of ${layer.name}`, x, y, label, "elements", bars);
}

/** How many elements differ in each channel. */
function channels(layer, width) {
  const total = layer.channels.length;
  const x = linear([0, total], [MARGIN.left, width - MARGIN.right]);
  const y = linear([0, Math.max(1, ...layer.channels)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const wide = Math.max(1, (x(1) - x(0)) * (total > 200 ? 1 : 0.85));
  const bars = layer.channels.map((many, channel) =>
    many ? s("rect", { class: "qb-bars", x: x(channel), width: wide, y: y(many), height: y(0) - y(many) }, s("title", {}, `channel ${channel}: ${count(many)}`)) : null,
  );
  return plot(width, `Channels of ${layer.name}`, x, y, `channel (of ${total})`, "elements", bars);
}

function plot(width, title, x, y, label, vertical, bars) {
  return s(
    "svg",
    { class: "qb-plot", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": short(title, 200) },
    yAxis(y, MARGIN.left, width - MARGIN.right, 4, vertical, 10),
    bars,
    s("line", { class: "qb-base", x1: MARGIN.left, x2: width - MARGIN.right, y1: HEIGHT - MARGIN.bottom, y2: HEIGHT - MARGIN.bottom }),
    xAxis(x, HEIGHT - MARGIN.bottom, width, label, width - MARGIN.right),
  );
}
