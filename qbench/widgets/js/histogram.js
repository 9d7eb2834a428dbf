// A histogram with its threshold as a handle: to drag, to move with the arrow keys, to zoom in on.
import { outline, visible } from "./bins.js";
import { h, s, set, unique } from "./dom.js";
import { clippedRange, gridOf } from "./estimate.js";
import { count, number, short } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";
import { zoomable } from "./zoom.js";

const MARGIN = { left: 46, right: 14, top: 30, bottom: 36 };
const HEIGHT = 200;
const STEP = 0.01;
const CLOSEST = 6; // steps of the integers: nothing new is to be seen beyond
const LINES = 6; // pixels between the lines of the grid, at least
const LABELS = 30;

/**
 * Returns { element, draw(view, moving), resize(width), move(threshold), at(), say(text), tell(text) }.
 * `moved(threshold)` is called while the handle moves, `settled(threshold)` once it is let go.
 */
export function histogram(moved, settled) {
  const id = unique("qb-histogram");
  const svg = s("svg", { class: "qb-plot", role: "group", "aria-roledescription": "histogram", tabindex: 0, height: HEIGHT });
  const toggle = h("button", { type: "button", class: "qb-small", onclick: () => setLog(!log), title: "Logarithmic counts show rare values" }, "log counts");
  const hint = h("span", { class: "qb-sub qb-hint" });
  const axis = zoomable(() => redraw());
  const tools = h("div", { class: "qb-tools" }, h("span", { class: "qb-sub qb-grow" }, "values per bin"), hint, axis.toolbar, toggle);
  const element = h("div", { class: "qb-figure" }, tools, svg);
  let view = null;
  let width = 480;
  let log = true;
  let threshold = 0;
  let parts = null;

  const setLog = (value) => {
    log = value;
    set(toggle, { "aria-pressed": log ? "true" : "false" });
    redraw();
  };
  const largest = () => Math.max(-view.min, view.max, view.threshold) || 1;
  const side = () => (view.max >= -view.min ? 1 : -1);
  const bottom = HEIGHT - MARGIN.bottom;
  const right = () => width - MARGIN.right;
  axis.around(() => {
    const [low, high] = axis.seen();
    const at = side() * threshold;
    return at >= low && at <= high ? at : undefined;
  });

  function redraw() {
    if (!view) return;
    const x = linear(axis.seen(), [MARGIN.left, right()]);
    const bins = visible(view, axis.seen(), (1.5 * (axis.seen()[1] - axis.seen()[0])) / (right() - MARGIN.left));
    const most = bins.counts.reduce((a, b) => Math.max(a, b), 1);
    const y = log ? logarithmic([0.5, most * 1.2], [bottom, MARGIN.top]) : linear([0, most * 1.05], [bottom, MARGIN.top]);
    const path = outline(bins, x, y, bottom);
    const box = (name, rect) => s("clipPath", { id: `${id}-${name}` }, rect);
    const inside = s("rect", { y: 0, height: bottom });
    const stripes = s("pattern", { id: `${id}-stripes`, class: "qb-stripes", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("rect", { width: 5, height: 5 }), s("line", { y2: 5 }));
    const clipped = s("path", { class: "qb-clipped", d: path, fill: `url(#${id}-stripes)` });
    const shade = s("rect", { class: "qb-range", y: MARGIN.top, height: bottom - MARGIN.top });
    const grid = s("g", { class: "qb-grid" });
    const mirror = s("line", { class: "qb-mirror", y1: MARGIN.top, y2: bottom });
    const handle = knob();
    const frame = s("rect", { x: MARGIN.left, width: right() - MARGIN.left, y: 0, height: bottom });
    const band = s("rect", { class: "qb-band", y: MARGIN.top, height: bottom - MARGIN.top, visibility: "hidden" });
    const focused = parts && parts.handle === element.ownerDocument.activeElement;
    svg.replaceChildren(
      s("defs", {}, box("inside", inside), box("frame", frame), stripes),
      yAxis(y, MARGIN.left, right(), 4, "", 11),
      s("g", { "clip-path": `url(#${id}-frame)` }, shade, clipped, s("path", { class: "qb-bars", d: path, "clip-path": `url(#${id}-inside)` }), mirror, band),
      grid,
      s("line", { class: "qb-base", x1: MARGIN.left, x2: right(), y1: bottom, y2: bottom }),
      xAxis(x, bottom, right() - MARGIN.left, "", right()),
      s("text", { class: "qb-axis-label", x: right(), y: bottom + 31, "text-anchor": "end" }, "value"),
      handle,
    );
    set(svg, { viewBox: `0 0 ${width} ${HEIGHT}`, width, "aria-label": `Histogram of ${short(view.tensor, 80)}: ${count(view.count)} values from ${number(view.min)} to ${number(view.max)}` });
    parts = { x, inside, shade, mirror, handle, grid, band };
    if (focused) handle.focus({ preventScroll: true });
    place();
  }

  function knob() {
    if (!movable()) return s("g", { class: "qb-mark-line" }, s("line", { y1: MARGIN.top, y2: bottom }));
    const notch = (at) => s("line", { class: "qb-notch", x1: at, x2: at, y1: 9, y2: 17 });
    return s(
      "g",
      { class: "qb-handle", tabindex: 0, role: "slider", "aria-label": "Clipping threshold", "aria-orientation": "horizontal", "aria-valuemin": 0, "aria-valuemax": largest() },
      s("rect", { class: "qb-grab", x: -10, width: 20, y: 0, height: bottom }),
      s("line", { y1: 20, y2: bottom }),
      s("rect", { class: "qb-grip", x: -6, width: 12, y: 3, height: 20, rx: 3 }),
      notch(-2),
      notch(2),
      s("text", { class: "qb-answer", y: 17 }),
    );
  }

  const movable = () => view.channels === 1;

  function place() {
    if (!parts) return;
    const { x } = parts;
    const grid = gridOf(view, threshold);
    const ends = view.channels === 1 && view.scale !== null && threshold === view.threshold ? [grid.least * grid.scale, grid.most * grid.scale] : clippedRange(view, threshold);
    const stretch = (rect, low, high) => {
      const from = Math.max(-10, Math.min(width + 10, x(low)));
      set(rect, { x: from, width: Math.max(0.5, Math.min(width + 10, x(high)) - from) });
    };
    stretch(parts.shade, ...ends);
    // the outermost bins are wider than what lies in them: nothing of them is clipped where the range holds it all
    stretch(parts.inside, ends[0] <= view.min ? -Infinity : ends[0], ends[1] >= view.max ? Infinity : ends[1]);
    drawGrid(grid);
    const at = x(side() * threshold);
    const shown = Math.max(MARGIN.left, Math.min(right(), at));
    set(parts.handle, { transform: `translate(${shown} 0)` });
    const beside = parts.handle.querySelector(".qb-answer");
    if (beside) {
      const off = Math.abs(shown - at) > 0.5;
      parts.handle.classList.toggle("qb-off", off);
      const isRight = shown < (MARGIN.left + right()) / 2;
      const away = at < shown ? `\u25c2 ${number(threshold)}` : `${number(threshold)} \u25b8`;
      set(beside, { x: isRight ? 12 : -12, "text-anchor": isRight ? "start" : "end" });
      beside.textContent = [off ? away : "", answered].filter(Boolean).join("  ");
      set(parts.handle, { "aria-valuenow": Number(threshold.toPrecision(6)), "aria-valuetext": spoken || `threshold ${number(threshold)}` });
    }
    const other = -side() * threshold;
    const seen = other >= view.min && other <= view.max && threshold > 0;
    set(parts.mirror, { x1: x(other), x2: x(other), visibility: seen ? "visible" : "hidden" });
  }

  /** What a screen reader says: set by whoever knows what the threshold costs. */
  let spoken = "";
  /** What the newest probe has found out: stands beside the handle. */
  let answered = "";

  /** A line for each integer that can be told apart, and its number where there is room. */
  function drawGrid({ scale, zero, least, most }) {
    const { x } = parts;
    const apart = movable() ? x(scale) - x(0) : 0;
    hint.textContent = movable() ? (axis.isWhole() && apart < LINES ? "zoom in to see the integers" : "") : "choose a channel to move its threshold";
    const [low, high] = axis.seen();
    const first = Math.max(least, Math.ceil(low / scale));
    const last = Math.min(most, Math.floor(high / scale));
    if (!(apart >= LINES) || last < first) return parts.grid.replaceChildren();
    const every = Math.max(1, 2 ** Math.ceil(Math.log2(LABELS / apart)));
    const marks = [];
    for (let k = first; k <= last; k += 1) {
      const at = x(k * scale);
      marks.push(s("line", { x1: at, x2: at, y1: MARGIN.top, y2: bottom + 4 }));
      if ((k + zero) % every === 0 && at > MARGIN.left + 6 && at < right() - 42) marks.push(s("text", { x: at, y: bottom + 31, "text-anchor": "middle" }, number(k + zero)));
    }
    parts.grid.replaceChildren(...marks, s("text", { x: 4, y: bottom + 31 }, view.dtype));
  }

  const go = (value) => {
    threshold = Math.min(largest(), Math.max(largest() / 1000, value));
    moved(threshold);
    place();
  };
  const valueOf = (event) => {
    const box = svg.getBoundingClientRect();
    return parts.x.inverse(((event.clientX - box.left) * width) / box.width);
  };

  // The kernel may answer with a new picture in the middle of a drag: listeners sit on the svg, which stays.
  let drag = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !view) return;
    const at = valueOf(event);
    if (event.target.closest(".qb-handle")) {
      drag = { what: "handle", by: parts.handle.classList.contains("qb-off") ? 0 : threshold - side() * at };
      parts.handle.focus({ preventScroll: true });
    } else {
      drag = { what: event.shiftKey ? "pan" : "band", from: at };
      svg.focus({ preventScroll: true });
    }
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const at = valueOf(event);
    if (drag.what === "handle") go(side() * at + drag.by);
    else if (drag.what === "pan") axis.show(axis.seen()[0] + drag.from - at, axis.seen()[1] + drag.from - at);
    else {
      const [a, b] = [parts.x(drag.from), parts.x(at)];
      set(parts.band, { x: Math.min(a, b), width: Math.abs(b - a), visibility: "visible" });
    }
  });
  const release = (event) => {
    if (drag?.what === "handle") settled(threshold);
    if (drag?.what === "band") {
      const at = valueOf(event);
      set(parts.band, { visibility: "hidden" });
      if (Math.abs(parts.x(at) - parts.x(drag.from)) > 6) axis.show(Math.min(at, drag.from), Math.max(at, drag.from));
    }
    drag = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("dblclick", () => view && axis.show(-Infinity, Infinity));
  svg.addEventListener(
    "wheel",
    (event) => {
      // a wheel over a plot that nobody touched scrolls the page
      if (!view || !(event.ctrlKey || event.metaKey || svg.contains(element.ownerDocument.activeElement))) return;
      event.preventDefault();
      if (event.shiftKey) axis.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
      else axis.zoom(1.0015 ** -event.deltaY, valueOf(event));
    },
    { passive: false },
  );
  svg.addEventListener("keydown", (event) => {
    if (!view) return;
    const onHandle = event.target.closest(".qb-handle") !== null;
    const step = (event.shiftKey ? 10 : 1) * STEP * (axis.seen()[1] - axis.seen()[0]);
    const to = onHandle && {
      ArrowRight: threshold + side() * step,
      ArrowLeft: threshold - side() * step,
      ArrowUp: threshold + step,
      ArrowDown: threshold - step,
      PageUp: threshold + 10 * STEP * largest(),
      PageDown: threshold - 10 * STEP * largest(),
      Home: 0,
      End: largest(),
    }[event.key];
    const panned = !onHandle && { ArrowRight: 0.1, ArrowLeft: -0.1 }[event.key];
    if (typeof to === "number") {
      go(to);
      follow();
    } else if (panned) axis.pan(panned);
    else if (!axis.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });

  /** Keep a handle that keys move in sight. */
  function follow() {
    const [low, high] = axis.seen();
    const at = side() * threshold;
    if (at < low || at > high) axis.show(at - (high - low) / 2, at + (high - low) / 2);
  }

  setLog(true);
  return {
    element,
    at: () => threshold,
    /** Another picture; `moving` says that the threshold goes on from where it is. */
    draw(next, moving) {
      const same = view && view.tensor === next.tensor && view.channel === next.channel;
      view = next;
      if (!same) drag = null;
      if (!(same && (moving || drag?.what === "handle"))) threshold = next.threshold;
      const low = Math.min(0, view.min);
      const high = Math.max(0, view.max);
      const room = (high - low) * 0.03 || 1;
      const step = gridOf(view, view.threshold).scale;
      axis.fit(low < 0 ? low - room : low, high > 0 || low === 0 ? high + room : high, CLOSEST * step, same);
      redraw();
    },
    resize(next) {
      width = Math.max(220, next);
      redraw();
    },
    move(value) {
      threshold = value;
      place();
    },
    tell(text) {
      answered = text;
      place();
    },
    say(text) {
      spoken = text;
      if (parts && movable()) set(parts.handle, { "aria-valuetext": text });
    },
  };
}
