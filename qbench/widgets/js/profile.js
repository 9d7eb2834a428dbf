// The profile of the network: the signal-to-noise ratio along the graph, each step's own noise, where it falls for good.
import { h, s, set, unique } from "./dom.js";
import { decibels, short } from "./numbers.js";
import { linear, yAxis } from "./scales.js";
import { zoomable } from "./zoom.js";

const MARGIN = { left: 40, right: 12, top: 26, bottom: 34 };
const HEIGHT = 170;
const BEST = 60; // dB: what is drawn as no noise
const CLOSE = 12; // steps at most are seen at the closest
const WHEEL = 1.2;
const KINDS = { wide: "more than 8 bits", float: "float" };
const MODES = [
  ["activations", "Activations", "What reaches each step, and the noise that it makes itself"],
  ["weights", "Weights", "The noise of rounding each step's weights, all of them and the worst channel"],
];

/**
 * Returns { element, draw(view), mark(layer), point(layers), resize(width) }. `select(layer)` is called with a name to look at,
 * `region(layers)` with all those of a stretch that was chosen.
 */
export function networkProfile(select, region) {
  const clip = unique("qb-profile");
  let view = { steps: [], falls: [], output_db: null, is_stale: false };
  let width = 800;
  let mode = "activations";
  let chosen = -1;
  let pointed = -1;
  let brush = null; // [from, to] as places
  let hinted = []; // places of steps that are pointed at elsewhere
  let press = null;
  let parts = null;
  const view_ = zoomable(() => redraw());
  const svg = s("svg", { class: "qb-plot qb-profile-plot", role: "slider", tabindex: 0, "aria-label": "Step of the network", "aria-valuemin": 1 });
  const modes = MODES.map(([key, label, tip]) => h("button", { type: "button", class: "qb-small", title: tip, "aria-pressed": key === mode ? "true" : "false", onclick: () => look(key) }, label));
  const told = h("p", { class: "qb-told" });
  const list = h("span", { class: "qb-falls" });
  const clear = h("button", { type: "button", class: "qb-small", hidden: true, onclick: () => choose(null) }, "Clear stretch");
  const element = h(
    "section",
    { class: "qb-profile", "aria-label": "Profile of the network", "data-where": "profile" },
    h("div", { class: "qb-table-bar" }, h("h3", {}, "Where it is lost"), list, h("span", { class: "qb-grow" }), h("span", { class: "qb-keep" }, clear, modes, view_.toolbar)),
    svg,
    told,
  );

  const steps = () => view.steps;
  const own = (step) => (mode === "weights" ? step.weight_db : step.own_db);
  const clamp = (db) => Math.min(BEST, Math.max(0, db === "inf" ? BEST : db === "-inf" ? 0 : db));

  function look(key) {
    mode = key;
    modes.forEach((button, i) => set(button, { "aria-pressed": MODES[i][0] === key ? "true" : "false" }));
    redraw();
  }

  // drawing: few paths, however many steps there are

  function redraw() {
    const count = steps().length;
    set(element, { hidden: !count });
    if (!count) return;
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const x = linear(view_.seen(), [MARGIN.left, right]);
    const y = linear([0, BEST], [bottom, MARGIN.top]);
    const size = Math.max(1, x(1) - x(0));
    const [first, last] = seen();
    const bars = { low: "", some: "", high: "" };
    let dots = "";
    const strips = { wide: "", float: "" };
    let edits = "";
    let line = "";
    for (let i = first; i <= last; i += 1) {
      const step = steps()[i];
      const noise = own(step);
      const left = x(i) - size / 2;
      if (noise !== null) bars[level(noise)] += `M${(left + 0.1 * size).toFixed(1)} ${MARGIN.top}h${(0.8 * size).toFixed(1)}V${y(clamp(noise)).toFixed(1)}h${(-0.8 * size).toFixed(1)}z`;
      if (step.kind in strips) strips[step.kind] += `M${left.toFixed(1)} ${bottom + 3}h${size.toFixed(1)}v5h${(-size).toFixed(1)}z`;
      if (step.edited) edits += `M${x(i).toFixed(1)} ${bottom + 10}l4 7h-8z`;
      if (mode === "weights" && step.channel_db !== null) dots += `M${x(i).toFixed(1)} ${(y(clamp(step.channel_db)) - 3).toFixed(1)}l3 3l-3 3l-3-3z`;
      if (mode === "activations" && step.sqnr_db !== null) {
        const to = y(clamp(step.sqnr_db)).toFixed(1);
        const from = sources(i);
        if (!from.length) line += `M${x(i - 0.4).toFixed(1)} ${to}H${x(i).toFixed(1)}`;
        for (const at of from) line += `M${x(at).toFixed(1)} ${y(clamp(steps()[at].sqnr_db)).toFixed(1)}L${x(i).toFixed(1)} ${to}`;
      }
    }
    const marks = (mode === "activations" ? view.falls : []).filter((place) => place >= first - 1 && place <= last + 1).map((place, rank) => fall(place, rank, x, y));
    const cursor = s("line", { class: "qb-now", y1: MARGIN.top - 4, y2: bottom, visibility: "hidden" });
    const pointer = s("line", { class: "qb-look", y1: MARGIN.top - 4, y2: bottom, visibility: "hidden" });
    const hints = s("path", { class: "qb-hint" });
    const stretch = s("rect", { class: "qb-stretch", y: MARGIN.top, height: bottom - MARGIN.top, visibility: "hidden" });
    svg.replaceChildren(
      s("clipPath", { id: clip }, s("rect", { x: MARGIN.left, y: 0, width: right - MARGIN.left, height: HEIGHT })),
      yAxis(y, MARGIN.left, right, 3, mode === "weights" ? "SQNR of weights, dB" : "SQNR, dB", 11),
      s("g", {}, legend(right)),
      s(
        "g",
        { "clip-path": `url(#${clip})` },
        Object.entries(bars).map(([key, d]) => (d ? s("path", { class: `qb-own-bar qb-${key}`, d }) : null)),
        Object.entries(strips).map(([key, d]) => (d ? s("path", { class: `qb-strip qb-strip-${key}`, d }) : null)),
        dots ? s("path", { class: "qb-channel-dot", d: dots }) : null,
        hints,
        stretch,
        line ? s("path", { class: "qb-reach", d: line }) : null,
        edits ? s("path", { class: "qb-edit-mark", d: edits }) : null,
        pointer,
        cursor,
        marks,
      ),
      s("text", { class: "qb-axis-label", x: right, y: HEIGHT - 4, "text-anchor": "end" }, `${count} ${count === 1 ? "step" : "steps"} in the order of the graph`),
    );
    set(svg, { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-valuemax": count });
    svg.classList.toggle("qb-stale", view.is_stale);
    parts = { x, y, cursor, pointer, stretch, hints };
    place();
    tell();
  }

  /** The steps whose results a step reads, as far as they were measured; what was not is passed over. */
  function sources(i, depth = 0) {
    return [...new Set(steps()[i].reads.flatMap((at) => (steps()[at].sqnr_db !== null ? [at] : depth < 8 ? sources(at, depth + 1) : [])))];
  }

  function fall(place, rank, x, y) {
    const step = steps()[place];
    const isRight = x(place) > width * 0.75;
    const at = MARGIN.top + 14 + rank * 15;
    return s(
      "g",
      { class: "qb-fall", onclick: (event) => pick(event, place) },
      s("circle", { r: 4.5, cx: x(place), cy: y(clamp(step.sqnr_db ?? 0)) }),
      s("path", { d: `M${x(place).toFixed(1)} ${y(clamp(step.sqnr_db ?? 0)).toFixed(1)}V${at + 3}` }),
      s("text", { x: x(place) + (isRight ? -7 : 7), y: at, "text-anchor": isRight ? "end" : "start" }, `${short(step.name, 28)} \u2212${step.lasting_db.toFixed(1)} dB`),
    );
  }

  function legend(right) {
    const kinds = new Set(steps().map((step) => step.kind));
    const entries = [
      ...(mode === "activations" ? [["qb-reach", "reaches here"]] : [["qb-channel-dot", "worst channel"]]),
      ["qb-own-bar", mode === "activations" ? "own noise" : "noise"],
      ...Object.entries(KINDS).flatMap(([kind, label]) => (kinds.has(kind) ? [[`qb-strip qb-strip-${kind}`, label]] : [])),
      ...(steps().some((step) => step.edited) ? [["qb-edit-mark", "edited"]] : []),
    ];
    let at = right;
    return entries.reverse().map(([kind, label]) => {
      at -= 6.2 * label.length + 26;
      return s("g", {}, sign(kind, at), s("text", { x: at + 16, y: 11 }, label));
    });
  }
  function sign(kind, at) {
    if (kind === "qb-reach") return s("line", { class: kind, x1: at, x2: at + 12, y1: 7, y2: 7 });
    if (kind === "qb-edit-mark") return s("path", { class: kind, d: `M${at + 6} 3l4 7h-8z` });
    if (kind === "qb-channel-dot") return s("path", { class: kind, d: `M${at + 6} 4l3 3l-3 3l-3-3z` });
    if (kind === "qb-own-bar") return s("g", {}, ["", " qb-some", " qb-high"].map((grade, i) => s("rect", { class: kind + grade, x: at + 4 * i, y: 3, width: 4, height: 8 })));
    return s("rect", { class: kind, x: at, y: 3, width: 12, height: 8 });
  }

  function place() {
    if (!parts) return;
    for (const [line, at] of [[parts.cursor, chosen], [parts.pointer, pointed]]) set(line, at < 0 ? { visibility: "hidden" } : { x1: parts.x(at), x2: parts.x(at), visibility: "visible" });
    const [low, high] = brush ?? [0, -1];
    set(parts.stretch, high < low ? { visibility: "hidden" } : { x: parts.x(low - 0.5), width: Math.max(1, parts.x(high + 0.5) - parts.x(low - 0.5)), visibility: "visible" });
    const [left, right] = [(at) => parts.x(at - 0.5).toFixed(1), (at) => parts.x(at + 0.5).toFixed(1)];
    set(parts.hints, { d: hinted.map((at) => `M${left(at)} ${MARGIN.top}H${right(at)}V${HEIGHT - MARGIN.bottom}H${left(at)}z`).join("") || null });
    set(clear, { hidden: brush === null });
  }

  function tell() {
    const at = pointed >= 0 ? pointed : chosen;
    const step = steps()[at];
    told.textContent = step ? words(step).join(" \u00b7 ") : "Point at a step; click looks at it, a drag selects a stretch of layers.";
    set(svg, { "aria-valuenow": at + 1, "aria-valuetext": step ? words(step).join(", ") : "none" });
  }
  function words(step) {
    const lost = step.lasting_db > 0 ? [`${step.lasting_db.toFixed(1)} dB lost for good${step.cause === "amplified" ? ", by errors of earlier steps that grow here" : step.cause === "own" ? ", by its own noise" : ""}`] : [];
    const weights = step.weight_db === null ? [] : [`weights ${decibels(step.weight_db)} dB${step.channel_db === null ? "" : ` (worst channel ${decibels(step.channel_db)})`}`];
    return [
      `${short(step.name, 60)} (${step.runs_as})`,
      step.sqnr_db === null ? "not measured" : `SQNR ${decibels(step.sqnr_db)} dB`,
      ...(step.own_db === null ? [] : [`own ${decibels(step.own_db)} dB`]),
      ...lost,
      ...weights,
      ...(step.edited ? ["edited"] : []),
    ];
  }

  // pointing, choosing and brushing

  function seen() {
    const [low, high] = view_.seen();
    return [Math.max(0, Math.floor(low) - 1), Math.min(steps().length - 1, Math.ceil(high) + 1)];
  }
  function at(event) {
    const box = svg.getBoundingClientRect();
    const place = Math.round(parts.x.inverse(((event.clientX - box.left) * width) / box.width));
    return Math.min(steps().length - 1, Math.max(0, place));
  }
  function pick(event, place) {
    event.stopPropagation();
    show(place);
  }
  function show(place) {
    if (!steps()[place]) return;
    chosen = place;
    select(steps()[place].layers.at(-1));
    redrawAround();
  }
  function choose(stretch) {
    brush = stretch;
    place();
    region(stretch === null ? [] : steps().slice(stretch[0], stretch[1] + 1).flatMap((step) => step.layers));
  }
  function redrawAround() {
    const [low, high] = view_.seen();
    if (chosen < low || chosen > high) view_.show(chosen - (high - low) / 2, chosen + (high - low) / 2);
    place();
    tell();
  }
  svg.addEventListener("pointerdown", (event) => {
    if (!parts || event.button !== 0) return;
    press = at(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!parts) return;
    pointed = at(event);
    if (press !== null && pointed !== press) brush = [Math.min(press, pointed), Math.max(press, pointed)];
    place();
    tell();
  });
  svg.addEventListener("pointerup", (event) => {
    if (press === null) return;
    const here = at(event);
    const isClick = here === press;
    press = null;
    if (isClick) show(here);
    else choose(brush);
  });
  svg.addEventListener("pointercancel", () => {
    press = brush = null;
    place();
  });
  svg.addEventListener("pointerleave", () => {
    pointed = -1;
    if (!parts) return;
    place();
    tell();
  });
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!parts || !(event.ctrlKey || event.metaKey || !view_.isWhole())) return; // the page scrolls, until one has zoomed in
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view_.pan(Math.sign(event.deltaX) * 0.1);
      else view_.zoom(event.deltaY < 0 ? WHEEL : 1 / WHEEL, at(event));
    },
    { passive: false },
  );
  svg.addEventListener("keydown", (event) => {
    if (view_.key(event)) return event.preventDefault();
    const last = steps().length - 1;
    const from = brush && event.shiftKey ? brush[brush[0] === press ? 1 : 0] : chosen;
    const to = { ArrowRight: from + 1, ArrowLeft: from - 1, PageDown: from + 10, PageUp: from - 10, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      const goal = Math.min(last, Math.max(0, to));
      pointed = -1; // the mouse may rest anywhere
      if (event.shiftKey) choose(brush ? [Math.min(brush[0], goal), Math.max(brush[1], goal)] : [Math.min(Math.max(chosen, 0), goal), Math.max(chosen, goal)]);
      show(goal);
    } else if (event.key === "Escape" && brush) choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    draw(next) {
      if (!next?.steps) return set(element, { hidden: true });
      const isSame = next.steps.length === view.steps.length;
      view = next;
      if (!isSame) [chosen, brush, hinted] = [-1, null, []];
      view_.fit(-0.5, Math.max(0.5, next.steps.length - 0.5), Math.min(CLOSE, Math.max(1, next.steps.length)), isSame);
      list.replaceChildren(
        ...(next.falls.length
          ? ["most is lost for good at ", ...next.falls.flatMap((at, i) => [i ? ", " : "", h("button", { type: "button", class: "qb-link", title: "Look at this layer", onclick: () => show(at) }, `${short(next.steps[at].name, 32)} (\u2212${next.steps[at].lasting_db.toFixed(1)} dB)`)])]
          : [next.output_db === null ? "" : "nothing is lost for good at any one step"]),
      );
      redraw();
    },
    mark(layer) {
      chosen = steps().findIndex((step) => step.layers.includes(layer));
      if (parts) redrawAround();
    },
    /** Mark the steps of these layers, while something that is about them is pointed at. */
    point(layers) {
      const names = new Set(layers);
      hinted = steps().flatMap((step, at) => (step.layers.some((name) => names.has(name)) ? [at] : []));
      place();
    },
    resize(next) {
      width = Math.max(240, next);
      redraw();
    },
  };
}

function level(db) {
  const ratio = db === "inf" ? Infinity : db === "-inf" ? -Infinity : db;
  return ratio < 15 ? "high" : ratio < 25 ? "some" : "low";
}
