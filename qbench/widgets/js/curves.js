// What each threshold would cost, and what every calibrator would choose.
import { h, s, set } from "./dom.js";
import { ratio, valueAt } from "./estimate.js";
import { decibels, number, percent, short } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";

const MARGIN = { left: 46, right: 14, top: 44 };
const PANEL = 112;
const GAP = 30;
const BELOW = 30; // what is so many times smaller than the least cost is not drawn
const DISC = 17;
const STEP = 0.01;
const DASHES = [null, "7 4", "2 3", "9 3 2 3"];

/**
 * Returns { element, draw(view), resize(width), move(threshold) }.
 * `choose(calibrator)` is called with a config's object, `apply(threshold)` with one that was looked at; `cost(threshold)`
 * gives { clipped, rounding, clipping, error, signal }; `hint` is said while nothing is looked at.
 */
export function curves({ choose, apply, cost, hint }) {
  const svg = s("svg", { class: "qb-plot", role: "slider", tabindex: 0, "aria-label": "Threshold to look at", "aria-orientation": "horizontal" });
  const told = h("p", { class: "qb-told" });
  const list = h("div", { class: "qb-choices", role: "group", "aria-label": "What each calibrator chooses" });
  const element = h("div", { class: "qb-curves" }, svg, told, list);
  let view = null;
  let width = 480;
  let threshold = 0;
  let looked = null;
  let parts = null;

  const end = () => 1.02 * Math.max(threshold, view.threshold, ...view.curves.flatMap((curve) => curve.thresholds), ...view.choices.map((choice) => choice.threshold)) || 1;
  const panels = () => [...new Set(view.curves.map((curve) => curve.meaning))].map((meaning) => view.curves.filter((curve) => curve.meaning === meaning));

  function redraw() {
    if (!view) return;
    const groups = panels();
    const bottom = MARGIN.top + groups.length * (PANEL + GAP) - GAP;
    const x = linear([0, end()], [MARGIN.left, width - MARGIN.right]);
    const drawn = groups.map((group, i) => panel(group, x, MARGIN.top + i * (PANEL + GAP), i ? MARGIN.top + i * (PANEL + GAP) - 8 : 11));
    const look = s("line", { class: "qb-look", y1: MARGIN.top, y2: bottom, visibility: "hidden" });
    const now = s("line", { class: "qb-now", y1: MARGIN.top - 2, y2: bottom });
    const dots = drawn.map(() => s("circle", { class: "qb-dot", r: 4 }));
    svg.replaceChildren(
      ...drawn.map((one) => one.element),
      xAxis(x, bottom, width - MARGIN.left - MARGIN.right, "threshold", width - MARGIN.right),
      look,
      now,
      ...dots,
      ...discs(drawn[0], x),
    );
    set(svg, { viewBox: `0 0 ${width} ${bottom + 34}`, width, height: bottom + 34, "aria-valuemin": 0, "aria-valuemax": Number(end().toPrecision(5)) });
    parts = { x, panels: drawn, now, look, dots };
    place();
    tell();
  }

  function panel(group, x, top, head) {
    const whole = group.filter((curve) => curve.best !== null).flatMap((curve) => curve.values).filter((value) => value > 0);
    const high = Math.max(...whole, 0) || 1;
    const low = (Math.min(...whole, high) || high) / BELOW ** (group.length > 1 && group[0].name === "mse" ? 1 : 0.3);
    const y = logarithmic([low, high * 1.3], [top + PANEL, top]);
    const right = width - MARGIN.right;
    let at = 24 + 6.2 * group[0].meaning.length;
    const legend = group.map((curve, i) => {
      const text = short(curve.label, 16);
      const from = at;
      at += 6.2 * text.length + 44;
      return [s("line", { class: `qb-curve qb-${curve.name}`, "stroke-dasharray": DASHES[i % 4], x1: from, x2: from + 22, y1: head - 4, y2: head - 4 }), s("text", { x: from + 26, y: head }, text)];
    });
    const element = s(
      "g",
      {},
      yAxis(y, MARGIN.left, right, 3, group[0].meaning, head),
      group.map((curve, i) => s("path", { class: `qb-curve qb-${curve.name}`, "stroke-dasharray": DASHES[i % 4], d: line(curve, x, y, low) })),
      legend,
    );
    return { curve: group[0], y, top, element };
  }

  /** Numbered discs in a row above, so far apart that each can be read and clicked, each tied to its threshold. */
  function discs(first, x) {
    const wanted = view.choices.map((choice, i) => ({ i, choice, to: x(choice.threshold) })).sort((a, b) => a.to - b.to);
    const places = apart(wanted.map((one) => one.to), DISC, MARGIN.left, width - MARGIN.right - DISC / 2);
    return wanted.map(({ i, choice, to }, at) =>
      s(
        "g",
        { class: choice.is_current ? "qb-choice qb-current" : "qb-choice", onclick: () => choose(choice.calibrator), onpointerenter: () => look(choice.threshold) },
        s("path", { d: `M${places[at].toFixed(1)} 34L${to.toFixed(1)} ${MARGIN.top - 4}V${first.top + PANEL}` }),
        s("circle", { r: 7.5, cx: places[at], cy: 27 }),
        s("text", { x: places[at], y: 31, "text-anchor": "middle" }, String(i + 1)),
        s("title", {}, `${short(choice.label)}: ${number(choice.threshold)}. Click to let it choose.`),
      ),
    );
  }

  function place() {
    if (!parts) return;
    const at = parts.x(Math.min(threshold, end()));
    set(parts.now, { x1: at, x2: at });
    parts.dots.forEach((dot, i) => set(dot, { cx: at, cy: parts.panels[i].y(valueAt(parts.panels[i].curve, threshold)) }));
  }

  /** Say what a threshold costs that is pointed at, or else what the one costs that counts. */
  function look(value) {
    looked = value;
    tell();
  }

  function tell() {
    if (!view || !parts) return;
    const at = looked ?? threshold;
    const { clipped, rounding, clipping, error, signal } = cost(at);
    const whose = view.choices.filter((choice) => choice.threshold === at).map((choice) => short(choice.label, 24));
    const kl = view.curves.find((curve) => curve.name === "kl");
    const words = [
      `${looked === null ? "Now" : "At"} ${number(at)}${whose.length ? ` (${whose.join(", ")})` : ""}: clips ${percent(clipped)} of the values`,
      `rounding error ${number(Math.sqrt(rounding), 3)} rms`,
      `clipping error ${number(Math.sqrt(clipping), 3)} rms`,
      `SQNR ${decibels(ratio(signal, error))} dB`,
      ...(kl ? [`KL ${number(valueAt(kl, at), 3)}`] : []),
    ];
    told.textContent = looked === null && hint ? hint : words.join(" \u00b7 ");
    set(svg, { "aria-valuenow": Number(at.toPrecision(5)), "aria-valuetext": words.join(", ") });
    set(parts.look, looked === null ? { visibility: "hidden" } : { x1: parts.x(at), x2: parts.x(at), visibility: "visible" });
    for (const row of list.querySelectorAll("button")) row.classList.toggle("qb-looked", Number(row.value) === at && looked !== null);
  }

  svg.addEventListener("pointermove", (event) => {
    if (!parts || event.target.closest(".qb-choice")) return;
    const box = svg.getBoundingClientRect();
    const value = parts.x.inverse(((event.clientX - box.left) * width) / box.width);
    look(value > 0 && value <= end() ? value : null);
  });
  svg.addEventListener("pointerleave", () => look(null));
  svg.addEventListener("blur", () => look(null));
  svg.addEventListener("keydown", (event) => {
    if (!view) return;
    const from = looked ?? threshold;
    const step = (event.shiftKey ? 10 : 1) * STEP * end();
    const to = { ArrowRight: from + step, ArrowUp: from + step, ArrowLeft: from - step, ArrowDown: from - step, PageUp: from + 10 * STEP * end(), PageDown: from - 10 * STEP * end(), Home: STEP * end(), End: end() }[event.key];
    if (to !== undefined) look(Math.min(end(), Math.max(STEP * end(), to)));
    else if (event.key === "Enter" && looked !== null) apply(looked);
    else if (event.key === "Escape" && looked !== null) look(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function entries() {
    const focused = [...list.querySelectorAll("button")].indexOf(element.ownerDocument.activeElement);
    const rows = view.choices.map((choice, i) =>
      h(
        "button",
        {
          type: "button",
          value: choice.threshold,
          "aria-pressed": choice.is_current ? "true" : "false",
          title: choice.is_current ? "This one decides now" : `Let ${short(choice.label)} choose the threshold`,
          onclick: () => choose(choice.calibrator),
          onpointerenter: () => look(choice.threshold),
          onpointerleave: () => look(null),
          onfocus: () => look(choice.threshold),
          onblur: () => look(null),
        },
        h("span", { class: "qb-disc" }, String(i + 1)),
        h("span", { class: "qb-label" }, short(choice.label, 24), choice.is_current ? h("span", { class: "qb-mark" }, "decides") : null),
        h("span", {}, number(choice.threshold)),
        h("span", {}, percent(choice.clipped)),
        h("span", {}, number(Math.sqrt(choice.rounding), 3)),
        h("span", {}, decibels(ratio(view.signal, choice.error))),
      ),
    );
    const titles = ["", "calibrator", "threshold", "clips", "rounding", "SQNR dB"];
    list.replaceChildren(h("div", { class: "qb-titles", "aria-hidden": "true" }, titles.map((title) => h("span", {}, title))), ...rows);
    rows[focused]?.focus({ preventScroll: true });
  }

  return {
    element,
    draw(next) {
      view = next;
      set(element, { hidden: !next });
      looked = null;
      if (!next) return;
      threshold = next.threshold;
      entries();
      redraw();
    },
    resize(next) {
      width = Math.max(220, next);
      redraw();
    },
    move(value) {
      threshold = value;
      looked = null;
      if (!view) return;
      place();
      tell();
    },
  };
}

/** A path through the points that are not too low to be seen. */
function line(curve, x, y, low) {
  let broken = true;
  return curve.thresholds
    .map((t, i) => {
      if (!(curve.values[i] >= low)) {
        broken = true;
        return "";
      }
      const piece = `${broken ? "M" : "L"}${x(t).toFixed(2)} ${y(curve.values[i]).toFixed(2)}`;
      broken = false;
      return piece;
    })
    .join("");
}

/** Ascending positions moved as little as it takes to be `least` apart within [low, high]. */
function apart(wanted, least, low, high) {
  const places = [...wanted];
  for (let i = 0; i < places.length; i += 1) places[i] = Math.max(places[i], i ? places[i - 1] + least : low);
  for (let i = places.length - 1; i >= 0; i -= 1) places[i] = Math.min(places[i], i < places.length - 1 ? places[i + 1] - least : high);
  return places;
}
