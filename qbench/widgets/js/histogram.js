// A histogram with its threshold as a handle to drag, or to move with the arrow keys.
import { h, s, set } from "./dom.js";
import { clippedRange } from "./estimate.js";
import { number } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";

const MARGIN = { left: 46, right: 14, top: 44, bottom: 34 };
const HEIGHT = 240;
const STEP = 0.01;
let made = 0;

/**
 * Returns { element, draw(view), resize(width), move(threshold) }.
 * `moved(threshold)` is called while the handle moves, `settled(threshold)` once it rests.
 */
export function histogram(moved, settled) {
  const id = `qb-histogram-${(made += 1)}`;
  const svg = s("svg", { class: "qb-plot", role: "group", "aria-label": "Histogram", height: HEIGHT });
  const toggle = h("button", { type: "button", class: "qb-small", onclick: () => setLog(!log) });
  const element = h("div", { class: "qb-figure" }, svg, toggle);
  let view = null;
  let width = 480;
  let log = true;
  let threshold = 0;
  let parts = null;

  const setLog = (value) => {
    log = value;
    toggle.textContent = log ? "log counts" : "linear counts";
    set(toggle, { "aria-pressed": log ? "true" : "false", title: "Switch between logarithmic and linear counts" });
    redraw();
  };
  const largest = () => Math.max(-view.min, view.max);
  const side = () => (view.max >= -view.min ? 1 : -1);

  function redraw() {
    if (!view) return;
    const bottom = HEIGHT - MARGIN.bottom;
    const low = Math.min(0, view.min, view.start);
    const high = Math.max(0, view.max);
    const room = (high - low) * 0.03 || 1;
    const x = linear([low < 0 ? low - room : low, high > 0 ? high + room : high], [MARGIN.left, width - MARGIN.right]);
    const most = view.counts.reduce((a, b) => Math.max(a, b), 1);
    const y = log ? logarithmic([0.5, most * 1.2], [bottom, MARGIN.top]) : linear([0, most * 1.05], [bottom, MARGIN.top]);
    const path = outline(view, x, y, bottom);
    const clip = (name) => s("clipPath", { id: `${id}-${name}` }, s("rect", { y: 0, height: bottom }));
    const inside = clip("inside");
    const movable = view.channels === 1;
    const handle = s(
      "g",
      { class: movable ? "qb-handle" : "qb-mark-line", tabindex: movable ? 0 : null, role: movable ? "slider" : null },
      s("rect", { class: "qb-grab", x: -9, width: 18, y: MARGIN.top - 22, height: bottom - MARGIN.top + 22 }),
      s("line", { y1: MARGIN.top - 6, y2: bottom }),
      movable ? s("rect", { class: "qb-grip", x: -5, width: 10, y: MARGIN.top - 22, height: 18, rx: 3 }) : null,
      movable ? s("line", { class: "qb-notch", x1: -1.5, x2: -1.5, y1: MARGIN.top - 17, y2: MARGIN.top - 9 }) : null,
      movable ? s("line", { class: "qb-notch", x1: 1.5, x2: 1.5, y1: MARGIN.top - 17, y2: MARGIN.top - 9 }) : null,
    );
    if (movable) {
      set(handle, { "aria-label": "Clipping threshold", "aria-orientation": "horizontal", "aria-valuemin": 0, "aria-valuemax": largest() });
    }
    const mirror = s("line", { class: "qb-mirror", y1: MARGIN.top, y2: bottom });
    const shade = s("rect", { class: "qb-range", y: MARGIN.top, height: bottom - MARGIN.top });
    svg.replaceChildren(
      s("defs", {}, inside),
      yAxis(y, MARGIN.left, width - MARGIN.right, 4, "values per bin", 11),
      shade,
      s("path", { class: "qb-clipped", d: path }),
      s("path", { class: "qb-bars", d: path, "clip-path": `url(#${id}-inside)` }),
      s("line", { class: "qb-base", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }),
      xAxis(x, bottom, width - MARGIN.left - MARGIN.right, "value", width - MARGIN.right),
      mirror,
      handle,
    );
    set(svg, { viewBox: `0 0 ${width} ${HEIGHT}`, width });
    parts = { x, inside: inside.firstChild, shade, mirror, handle };
    place();
  }

  function place() {
    if (!parts) return;
    const [low, high] = clippedRange(view, threshold);
    const from = parts.x(low);
    const size = Math.max(0.5, parts.x(high) - from);
    for (const rect of [parts.inside, parts.shade]) set(rect, { x: from, width: size });
    const at = parts.x(side() * Math.min(threshold, largest()));
    set(parts.handle, { transform: `translate(${at} 0)` });
    if (view.channels === 1) {
      set(parts.handle, { "aria-valuenow": Number(threshold.toPrecision(6)), "aria-valuetext": `threshold ${number(threshold)}` });
    }
    const other = -side() * threshold;
    const seen = other >= view.min && other <= view.max && threshold > 0;
    set(parts.mirror, { x1: parts.x(other), x2: parts.x(other), visibility: seen ? "visible" : "hidden" });
  }

  const go = (value) => {
    threshold = Math.min(largest(), Math.max(largest() / 1000, value));
    place();
    moved(threshold);
  };
  // The kernel may answer with a new picture in the middle of a drag: listeners sit on the svg, which stays.
  let dragging = false;
  svg.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".qb-handle")) return;
    dragging = true;
    svg.setPointerCapture(event.pointerId);
    parts.handle.focus();
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!dragging) return;
    const box = svg.getBoundingClientRect();
    go(side() * parts.x.inverse(((event.clientX - box.left) * width) / box.width));
  });
  const release = () => {
    if (dragging) settled(threshold);
    dragging = false;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("keydown", (event) => {
    if (!event.target.closest(".qb-handle")) return;
    const factor = event.shiftKey ? 10 * STEP : STEP;
    const to = {
      ArrowRight: threshold + side() * factor * largest(),
      ArrowLeft: threshold - side() * factor * largest(),
      ArrowUp: threshold + factor * largest(),
      ArrowDown: threshold - factor * largest(),
      PageUp: threshold + 10 * STEP * largest(),
      PageDown: threshold - 10 * STEP * largest(),
      Home: 0,
      End: largest(),
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go(to);
    settled(threshold);
  });

  setLog(true);
  return {
    element,
    draw(next) {
      const focused = parts?.handle === element.ownerDocument.activeElement;
      const same = view && next && view.tensor === next.tensor;
      view = next;
      if (!(dragging && same)) {
        threshold = next.threshold;
        dragging = false;
      }
      redraw();
      if (focused && same) parts.handle.focus();
    },
    resize(next) {
      width = next;
      redraw();
    },
    move(value) {
      threshold = value;
      place();
    },
  };
}

function outline(view, x, y, bottom) {
  const pieces = [];
  view.counts.forEach((value, i) => {
    if (!value) return;
    const left = x(view.start + i * view.width);
    const right = x(view.start + (i + 1) * view.width);
    pieces.push(`M${left.toFixed(2)} ${bottom}V${y(value).toFixed(2)}H${Math.max(right, left + 0.8).toFixed(2)}V${bottom}Z`);
  });
  return pieces.join("");
}
