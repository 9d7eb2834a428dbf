// Quality against time: a point for each config that a search measured. A click makes it count, and Undo takes it back.
import { h, s, set } from "./dom.js";
import { NONE, bytes, decibels, duration, number, short } from "./numbers.js";
import { linear, xAxis, yAxis } from "./scales.js";

const MARGIN = { left: 52, right: 20, top: 22 };
const HEIGHT = 210;
const EDGE = 0.06; // of the span, left free around the points
const ASK = "Looks for configs that lose less, or cost less: quality against time, each point a config to take. It can be stopped at any time.";
const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };

/**
 * Returns { element, draw(view), tell(status), resize(width) }. `send(message)` talks to the kernel; `point(layers)` is
 * called with the layers of the config that is pointed at, and with none when it is left.
 */
export function frontPanel(send, point) {
  let view = null;
  let width = 640;
  let drawn = []; // the points, from the fastest to the slowest
  const field = (label, title, more) => h("input", { type: "number", min: 0, step: "any", "aria-label": label, title, ...more });
  const least = field("Metric wanted", "Of the metric; empty: within a hundredth of the float model's", { min: null, placeholder: "metric" });
  const most = field("Milliseconds allowed", "Of one run; empty: any", { placeholder: "ms" });
  const seconds = field("Seconds to search", "Empty: until nothing helps", { value: 60, placeholder: "s" });
  const wanted = (input) => (input.value === "" ? null : Number(input.value));
  const ask = () => send({ do: "search", at_least: wanted(least), max_ms: wanted(most), seconds: wanted(seconds), where: "front" });
  const search = h("button", { type: "button", class: "qb-button", title: ASK, onclick: ask }, "Search");
  const labelled = (text, input) => h("label", { class: "qb-sub" }, `${text} `, input);
  const note = h("p", { class: "qb-sub" }, ASK);
  const svg = s("svg", { class: "qb-plot", role: "group", "aria-label": "Configs that were measured: metric against milliseconds" });
  const told = h("p", { class: "qb-told", "aria-live": "polite" });
  const plot = h("div", { hidden: true }, svg, told);
  const element = h(
    "section",
    { class: "qb-front", "aria-label": "Search", "data-where": "front" },
    h("div", { class: "qb-repair-bar" }, h("h3", {}, "Quality against time"), search, labelled("at least", least), labelled("at most ms", most), labelled("for s", seconds)),
    note,
    plot,
  );

  const take = (place) => send({ do: "take", point: place, label: view.points[place].label, where: "front" });

  function look(place) {
    const one = place === undefined ? null : view?.points[place];
    point(one?.layers ?? []);
    told.textContent = one ? said(one, view.metric_name) : resting(view);
  }

  function step(event, at) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      take(drawn[at].place);
    } else if (KEYS[event.key]) {
      event.preventDefault();
      const next = drawn[Math.min(drawn.length - 1, Math.max(0, at + KEYS[event.key]))];
      for (const one of drawn) set(one.element, { tabindex: one === next ? 0 : -1 });
      next.element.focus();
    }
  }

  function redraw() {
    const points = view?.points ?? [];
    const held = svg.querySelector("g:focus")?.dataset.place;
    const finite = points.map((one, place) => ({ ...one, place })).filter((one) => Number.isFinite(one.metric));
    set(plot, { hidden: !finite.length });
    note.textContent = points.length ? `${points.length} configs measured, ${points.filter((one) => one.on_front).length} that no other beats${view.met ? "" : "; nothing meets what is wanted, the star is the nearest"}${view.stopped ? "; stopped before all was tried, Search goes on from there" : ""}` : ASK;
    if (!finite.length) return;
    const lines = [view.metric_float, view.at_least].filter(Number.isFinite);
    const x = linear(around(finite.map((one) => one.ms)), [MARGIN.left, width - MARGIN.right]);
    const y = linear(around([...finite.map((one) => one.metric), ...lines]), [HEIGHT, MARGIN.top]);
    const at = (one) => `${x(one.ms).toFixed(1)} ${y(one.metric).toFixed(1)}`;
    const front = finite.filter((one) => one.on_front).sort((a, b) => a.ms - b.ms);
    const across = (value, kind, text) => (Number.isFinite(value) ? [s("line", { class: kind, x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }), s("text", { class: "qb-axis-label", x: width - MARGIN.right, y: y(value) - 3, "text-anchor": "end" }, text)] : []);
    drawn = finite.sort((a, b) => a.ms - b.ms).map((one, i) => ({ place: one.place, element: dot(one, i, x(one.ms), y(one.metric)) }));
    const start = Math.max(0, drawn.findIndex((one) => (held === undefined ? view.points[one.place].is_best : String(one.place) === held)));
    set(drawn[start].element, { tabindex: 0 });
    svg.replaceChildren(
      yAxis(y, MARGIN.left, width - MARGIN.right, 4, view.metric_name ? short(view.metric_name, 24) : "SQNR dB", 11),
      xAxis(x, HEIGHT + 4, width - MARGIN.left - MARGIN.right, "ms of a run", width - MARGIN.right),
      ...across(view.metric_float, "qb-front-float", "float"),
      ...across(view.at_least, "qb-front-least", "wanted"),
      s("path", { class: "qb-front-line", d: front.map((one, i) => `${i ? "L" : "M"}${at(one)}`).join("") }),
      ...drawn.map((one) => one.element),
    );
    set(svg, { viewBox: `0 0 ${width} ${HEIGHT + 38}`, width, height: HEIGHT + 38 });
    if (held !== undefined) drawn[start].element.focus({ preventScroll: true });
    look(held === undefined ? undefined : drawn[start].place);
  }

  function dot(one, i, x, y) {
    const kind = ["qb-point", one.on_front && "qb-on-front", one.is_current && "qb-current"].filter(Boolean).join(" ");
    const mark = one.is_best ? s("path", { d: star(x, y, 8) }) : s("circle", { cx: x, cy: y, r: one.on_front ? 5 : 4 });
    const ring = one.is_current ? s("circle", { class: "qb-ring", cx: x, cy: y, r: 11 }) : null;
    return s(
      "g",
      {
        class: kind,
        role: "button",
        tabindex: -1,
        "data-place": one.place,
        "aria-label": `${one.is_current ? "Current: " : ""}${said(one, view.metric_name)}`,
        onclick: () => take(one.place),
        onkeydown: (event) => step(event, i),
        onpointerenter: () => look(one.place),
        onpointerleave: () => look(svg.querySelector("g:focus")?.dataset.place),
        onfocus: () => look(one.place),
        onblur: () => look(),
      },
      s("circle", { class: "qb-target", cx: x, cy: y, r: 12 }),
      ring,
      mark,
    );
  }

  return {
    element,
    draw(next) {
      view = next?.points ? next : null;
      redraw();
    },
    tell(status) {
      set(search, { disabled: Boolean(status.is_busy && status.is_searching) });
      search.textContent = status.is_searching && status.is_busy ? "Searching\u2026" : view ? "Search on" : "Search";
    },
    resize(wide) {
      if (wide > 0 && wide !== width) {
        width = wide;
        redraw();
      }
    },
  };
}

function resting(view) {
  const now = view?.points.find((one) => one.is_current);
  return now ? `Now: ${said(now, view.metric_name)}` : "Point at a config to see its layers; click it to make it count.";
}

function said(one, name) {
  const held = one.held_back === null ? "" : ` (${number(one.held_back)} held back)`;
  const quality = name ? `${short(name, 24)} ${number(one.metric)}${held}, ${one.sqnr_db === null ? NONE : decibels(one.sqnr_db)} dB` : `${decibels(one.metric)} dB`;
  return `${short(one.label, 120)}: ${quality}, ${duration(one.ms)}, ${bytes(one.bytes)}`;
}

/** From the least to the greatest, with some room on both sides. */
function around(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = EDGE * (high - low || Math.abs(high) || 1);
  return [low - room, high + room];
}

function star(x, y, r) {
  const corners = Array.from({ length: 10 }, (_, i) => {
    const [angle, far] = [(i * Math.PI) / 5, i % 2 ? 0.45 * r : r];
    return `${(x + far * Math.sin(angle)).toFixed(1)} ${(y - far * Math.cos(angle)).toFixed(1)}`;
  });
  return `M${corners.join("L")}Z`;
}
