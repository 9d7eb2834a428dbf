// The values of the chosen tensor in both models: channels as boxes, value against value, differences, maps of a sample.
import { h, s, set } from "./dom.js";
import { decibels, number, percent, short } from "./numbers.js";
import { linear, xAxis, yAxis } from "./scales.js";
import { walkable } from "./walk.js";

const MARGIN = { left: 46, right: 14, top: 12 };
const [BOXES, BARS, GAP] = [104, 44, 10]; // px high: the box plot, the ratios below it, what is between
const HEIGHT = 190; // of the lower plots
const ROOM = 20; // px between them
const BESIDE = 560;

/** Returns { element, draw(view), mark(tensor), see(), resize(width) }; `send(message)` talks to the kernel. */
export function valuesPanel(send) {
  let view = null; // what the kernel has said
  let wanted = null; // the layer and part that are chosen
  let asked = null;
  let width = 480;
  let x = null;
  let byNumber = false;
  const boxes = s("svg", { class: "qb-plot", role: "slider", tabindex: 0, "aria-label": "Channel", "aria-valuemin": 0, height: BOXES + BARS + GAP + 26 });
  const scatter = s("svg", { class: "qb-plot", role: "img", height: HEIGHT });
  const errors = s("svg", { class: "qb-plot", role: "img", height: HEIGHT });
  const about = h("p", { class: "qb-sub qb-grow", "aria-live": "polite" });
  const order = h("button", { type: "button", class: "qb-small", "aria-pressed": "false", title: "Channels in the order of their numbers instead of the worst first", onclick: () => sort(!byNumber) }, "by number");
  const all = h("button", { type: "button", class: "qb-small", onclick: () => look({ channel: null }) }, "All channels");
  const sample = h("input", { type: "number", min: 0, step: 1, "aria-label": "Sample", onchange: () => look({ sample: Math.max(0, Math.round(Number(sample.value))) }) });
  const samples = h("label", {}, "maps of sample ", sample);
  const maps = h("div", { class: "qb-maps" });
  const absent = h("p", { class: "qb-value-note" });
  const body = h("div", { class: "qb-values-body" }, h("div", { class: "qb-tools" }, about, order, all), boxes, h("div", { class: "qb-pair" }, scatter, errors), samples, maps);
  const element = h("details", { class: "qb-value-table", "data-where": "values", ontoggle: () => see() }, h("summary", {}, "Values of both models"), absent, body);

  const is = (one) => one && wanted && one.layer === wanted.layer && one.part === wanted.part;
  /** Ask for what is seen and not known; say so when it is seen no longer. */
  function see() {
    const isSeen = element.open && element.clientWidth > 0;
    if (isSeen && wanted && !is(asked)) look({ sample: asked?.sample ?? 0, channel: null });
    else if (!isSeen && asked) send((asked = null) ?? { do: "values", layer: null });
  }
  function look(changes) {
    asked = { sample: 0, channel: null, ...asked, ...wanted, ...changes };
    send({ do: "values", ...asked, where: "values" });
  }
  const channels = () => (byNumber ? [...view.channels].sort((a, b) => a.channel - b.channel) : view.channels);
  function sort(value) {
    byNumber = value;
    set(order, { "aria-pressed": value ? "true" : "false" });
    redraw();
  }

  function redraw() {
    const isThere = is(view) && !view.absent;
    set(body, { hidden: !isThere });
    set(absent, { hidden: isThere });
    absent.textContent = is(view) ? view.absent : "Both models run on a few samples of the probe, as far as this layer\u2026";
    if (!isThere || !(width > 0)) return;
    const whose = `${short(view.layer, 40)}, ${view.part}${view.channel === null ? "" : `, channel ${view.channel}`}: `;
    const lost = view.clipped ? `, ${percent(view.clipped)} of all values beyond the integers' reach` : "";
    about.textContent = `${whose}SQNR ${decibels(view.sqnr_db)} dB${view.part === "weight" ? "" : ` on ${view.samples} sample${view.samples === 1 ? "" : "s"} of the probe`}${lost}`;
    set(all, { disabled: view.channel === null });
    set(order, { hidden: view.channels.length < 2 });
    drawBoxes(channels());
    const isBeside = width >= BESIDE;
    const half = isBeside ? (width - ROOM) / 2 : width;
    drawPoints(half);
    drawErrors(half);
    set(samples, { hidden: !view.maps.length || view.samples < 2 });
    set(sample, { max: view.samples - 1 });
    sample.value = String(view.sample);
    maps.replaceChildren(...view.maps.map(pictures));
  }

  function drawBoxes(list) {
    const right = width - MARGIN.right;
    x = linear([0, list.length], [MARGIN.left, right]);
    const wide = x(1) - x(0);
    const [top, bottom, floor] = [MARGIN.top, MARGIN.top + BOXES, MARGIN.top + BOXES + GAP + BARS];
    const y = linear(span(list.flatMap((one) => [one.min, one.max])), [bottom, top]);
    const ratios = list.map((one) => one.sqnr_db).filter(Number.isFinite);
    const most = Math.max(1, ...ratios);
    const level = linear([Math.min(0, ...ratios), most], [floor, bottom + GAP]);
    const at = (i, part) => (x(i) + (wide * (1 - part)) / 2).toFixed(2);
    const bar = (i, part, from, to) => `M${at(i, part)} ${from.toFixed(2)}h${(wide * part).toFixed(2)}V${to.toFixed(2)}h${(-wide * part).toFixed(2)}Z`;
    const path = (kind, d) => s("path", { class: kind, d: list.map(d).join("") });
    const mark = list.findIndex((one) => one.channel === view.channel);
    boxes.replaceChildren(
      yAxis(y, MARGIN.left, right, 3, "", 0),
      yAxis(level, MARGIN.left, right, 2, "", 0),
      path("qb-whisker", (one, i) => `M${at(i, 0)} ${y(one.min).toFixed(2)}V${y(one.max).toFixed(2)}`),
      path("qb-quartiles", (one, i) => bar(i, wide > 4 ? 0.7 : 1, y(one.high), y(one.low))),
      path("qb-median", (one, i) => `M${at(i, wide > 4 ? 0.7 : 1)} ${y(one.median).toFixed(2)}h${(wide * (wide > 4 ? 0.7 : 1)).toFixed(2)}`),
      path("qb-bars", (one, i) => bar(i, wide > 4 ? 0.7 : 1, level(0), level(Number.isFinite(one.sqnr_db) ? one.sqnr_db : one.sqnr_db === "inf" ? most : 0))),
      mark < 0 ? "" : s("rect", { class: "qb-cursor", x: x(mark) - Math.max(0, 3 - wide) / 2, width: Math.max(3, wide), y: top - 6, height: floor - top + 8 }),
      s("text", { class: "qb-axis-label", x: MARGIN.left, y: floor + 16 }, list.length === 1 ? "values (box: quartiles), and SQNR in dB" : `${list.length} channels, ${byNumber ? "by number" : "the lowest SQNR first"}: values (box: quartiles), and SQNR in dB`),
    );
    const one = list[Math.max(0, mark)];
    const said = mark < 0 ? `all ${list.length} channels` : `channel ${one.channel}: ${number(one.min)} to ${number(one.max)}, SQNR ${decibels(one.sqnr_db)} dB`;
    set(boxes, { viewBox: `0 0 ${width} ${floor + 26}`, width, height: floor + 26, "aria-valuemax": list.length - 1, "aria-valuenow": Math.max(0, mark), "aria-valuetext": said });
  }

  function drawPoints(wide) {
    const [bottom, right] = [HEIGHT - 36, wide - MARGIN.right];
    const reach = span(view.points.flat());
    const [across, up] = [linear(reach, [MARGIN.left, right]), linear(reach, [bottom, MARGIN.top])];
    scatter.replaceChildren(
      yAxis(up, MARGIN.left, right, 4, "", 0),
      xAxis(across, bottom, right - MARGIN.left, `float, and up: ${view.dtype}`, right),
      s("line", { class: "qb-mirror", x1: across(reach[0]), y1: up(reach[0]), x2: across(reach[1]), y2: up(reach[1]) }),
      s("path", { class: "qb-dots", d: view.points.map(([a, b]) => `M${across(a).toFixed(1)} ${up(b).toFixed(1)}h0`).join("") }),
    );
    set(scatter, { viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, "aria-label": `${view.points.length} values of the float model and what stands for them` });
  }

  function drawErrors(wide) {
    const [bottom, right] = [HEIGHT - 36, wide - MARGIN.right];
    const end = view.start + view.width * view.counts.length;
    const across = linear([view.start, end], [MARGIN.left, right]);
    const up = linear([0, Math.max(1, ...view.counts) * 1.05], [bottom, MARGIN.top]);
    const half = view.scale === null ? [] : [-view.scale / 2, view.scale / 2].filter((at) => at > view.start && at < end);
    const edge = (i) => across(view.start + view.width * i).toFixed(1);
    errors.replaceChildren(
      yAxis(up, MARGIN.left, right, 4, "", 0),
      xAxis(across, bottom, right - MARGIN.left, half.length ? "error; lines: half a step" : "error", right),
      s("path", { class: "qb-bars", d: view.counts.map((count, i) => (count ? `M${edge(i)} ${bottom}V${up(count).toFixed(1)}H${edge(i + 1)}V${bottom}Z` : "")).join("") }),
      ...half.map((at) => s("line", { class: "qb-mirror", x1: across(at), x2: across(at), y1: MARGIN.top, y2: bottom })),
    );
    set(errors, { viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, "aria-label": `Histogram of the errors, from ${number(view.start)} to ${number(end)}` });
  }

  function pictures(map) {
    const one = (name, { png, width: w, height }) => h("img", { src: `data:image/png;base64,${png}`, width: w, height, alt: `${name}, channel ${map.channel}`, title: name });
    const ratio = view.channels.find(({ channel }) => channel === map.channel)?.sqnr_db;
    return h(
      "figure",
      {},
      one("float", map.exact),
      one(short(view.dtype, 12), map.quantized),
      one("difference", map.difference),
      h("figcaption", {}, h("button", { type: "button", class: "qb-small", title: "Look at this channel", onclick: () => look({ channel: map.channel }) }, `channel ${map.channel}`), h("span", { class: "qb-sub" }, `${decibels(ratio)} dB, off by ${number(map.largest, 2)}`)),
    );
  }

  walkable(boxes, {
    order: () => (is(view) && view.channels ? channels().map((one) => one.channel) : []),
    at: (px) => Math.floor(x.inverse(px)),
    width: () => width,
    chosen: () => view?.channel ?? null,
    choose: (channel) => look({ channel }),
  });

  return {
    element,
    see,
    draw(next) {
      view = next?.layer ? next : null;
      redraw();
    },
    /** Another tensor is chosen. */
    mark({ layer, part }) {
      wanted = { layer, part };
      redraw();
      see();
    },
    resize(next) {
      width = Math.max(220, next);
      redraw();
    },
  };
}

/** From the least to the largest, and 0. */
function span(values) {
  const low = values.reduce((a, b) => Math.min(a, b), 0);
  const high = values.reduce((a, b) => Math.max(a, b), 0);
  return low < high ? [low, high] : [-1, 1];
}
