// What each threshold would cost, and what every calibrator would choose.
import { h, s, set } from "./dom.js";
import { ratio, valueAt } from "./estimate.js";
import { decibels, number, percent, short } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";

const MARGIN = { left: 46, right: 14 };
const PANEL = 112;
const GAP = 26;
const DECADES = 4;

/** Returns { element, draw(view), resize(width), move(threshold) }; `choose(calibrator)` is called with a config's object. */
export function curves(choose) {
  const svg = s("svg", { class: "qb-plot", role: "img", "aria-label": "Mean squared error and KL divergence over thresholds" });
  const list = h("div", { class: "qb-choices", role: "group", "aria-label": "Calibrators" });
  const element = h("div", { class: "qb-curves" }, svg, list);
  let view = null;
  let width = 480;
  let threshold = 0;
  let parts = null;

  function redraw() {
    if (!view) return;
    const bottom = GAP + view.curves.length * (PANEL + GAP) - GAP;
    const end = Math.max(...view.curves.flatMap((curve) => curve.thresholds), view.threshold);
    const x = linear([0, end * 1.03 || 1], [MARGIN.left, width - MARGIN.right]);
    const panels = view.curves.map((curve, i) => panel(curve, x, GAP + i * (PANEL + GAP)));
    const numbers = markers(panels[0], x);
    const now = s("line", { class: "qb-now", y1: GAP, y2: bottom });
    const dots = panels.map(() => s("circle", { class: "qb-dot", r: 4 }));
    svg.replaceChildren(
      ...panels.map((one) => one.element),
      xAxis(x, bottom, width - MARGIN.left - MARGIN.right, "threshold", width - MARGIN.right),
      now,
      ...dots,
      ...numbers,
    );
    set(svg, { viewBox: `0 0 ${width} ${bottom + 34}`, width, height: bottom + 34 });
    parts = { x, panels, now, dots };
    place();
  }

  function panel(curve, x, top) {
    const positive = curve.values.filter((value) => value > 0);
    const high = Math.max(...positive, 0) || 1;
    const low = Math.max(Math.min(...positive, high) / 1.5, high * 10 ** -DECADES * 1e-2);
    const y = logarithmic([low, high * 1.3], [top + PANEL, top]);
    const points = curve.thresholds.map((t, i) => `${x(t).toFixed(2)} ${y(curve.values[i]).toFixed(2)}`);
    const element = s(
      "g",
      {},
      yAxis(y, MARGIN.left, width - MARGIN.right, 3, curve.meaning, top - 8),
      s("path", { class: `qb-curve qb-${curve.name}`, d: `M${points.join("L")}` }),
    );
    return { curve, y, element };
  }

  /** Numbered discs at the calibrators' choices, on the first curve; those that would overlap are stacked. */
  function markers(first, x) {
    const placed = [];
    return view.choices.map((choice, i) => {
      const at = { x: Math.min(x(choice.threshold), width - MARGIN.right - 2), y: first.y(valueAt(first.curve, choice.threshold)) };
      at.y = Math.max(GAP + 8, at.y - 13);
      while (placed.some((other) => Math.hypot(other.x - at.x, other.y - at.y) < 15)) at.y -= 15;
      if (at.y < 8) {
        at.y = first.y(valueAt(first.curve, choice.threshold)) + 14;
        while (placed.some((other) => Math.hypot(other.x - at.x, other.y - at.y) < 15)) at.y += 15;
      }
      placed.push(at);
      return s(
        "g",
        { class: choice.is_current ? "qb-choice qb-current" : "qb-choice", transform: `translate(${at.x} ${at.y})` },
        s("circle", { r: 7.5 }),
        s("text", { y: 4, "text-anchor": "middle" }, String(i + 1)),
        s("title", {}, `${short(choice.label)}: ${number(choice.threshold)}`),
      );
    });
  }

  function place() {
    if (!parts) return;
    const at = parts.x(threshold);
    set(parts.now, { x1: at, x2: at });
    parts.dots.forEach((dot, i) => set(dot, { cx: at, cy: parts.panels[i].y(valueAt(parts.panels[i].curve, threshold)) }));
  }

  function entries() {
    const rows = view.choices.map((choice, i) => {
      const button = h(
        "button",
        {
          type: "button",
          "aria-pressed": choice.is_current ? "true" : "false",
          title: `Let ${short(choice.label)} choose the threshold`,
          onclick: () => choose(choice.calibrator),
        },
        h("span", { class: "qb-disc" }, String(i + 1)),
        h("span", { class: "qb-label" }, short(choice.label, 24)),
        h("span", {}, number(choice.threshold)),
        h("span", {}, percent(choice.clipped)),
        h("span", {}, decibels(ratio(view.signal, choice.error))),
      );
      return button;
    });
    const titles = ["", "calibrator", "threshold", "clips", "SQNR, dB"];
    list.replaceChildren(h("div", { class: "qb-titles" }, titles.map((title) => h("span", {}, title))), ...rows);
  }

  return {
    element,
    draw(next) {
      view = next;
      set(element, { hidden: !next });
      if (!next) return;
      threshold = next.threshold;
      entries();
      redraw();
    },
    resize(next) {
      width = next;
      redraw();
    },
    move(value) {
      threshold = value;
      if (view) place();
    },
  };
}
