// One graph as boxes and arrows: to zoom, to drag, to walk along with the arrow keys. Only what is in sight is in the page.
import { fill, s, set, unique } from "./dom.js";
import { layout } from "./layout.js";

const [WIDTH, HEIGHT] = [176, 40];
const TALL = 440; // px
const READABLE = 0.42; // below this zoom there are no letters
const [CLOSEST, WHEEL, KEY] = [2, 1.0015, 1.4];
const STILL = 4; // px: what moves less is a click
const [LETTERS, WORDS] = [25, 14];

/** Returns { element, draw(graph), tint(of), mark(layer), hit(ids), show(id), zoom(factor), whole(), resize(width) }. */
export function boxPane({ select, toggle, label }) {
  const id = unique("qb-boxes");
  const svg = s("svg", { class: "qb-plot qb-boxes-plot", role: "listbox", tabindex: 0, "aria-label": label, height: TALL });
  let graph = { boxes: [], arrows: [] };
  let known = ""; // what was laid out
  let found = null;
  let width = 600;
  let look = { x: 0, y: 0, zoom: 0.8 };
  let colour = () => ["", ""];
  let chosen = null;
  let active = -1;
  let hits = new Set();
  let asked = null; // a box to go to, perhaps of a graph that is not laid out yet
  let press = null;
  let frame = null;
  const elements = new Map();
  const [arrows, ownArrows] = [s("path", { class: "qb-arrow" }), s("path", { class: "qb-arrow qb-own-arrow" })];

  const soon = () => (frame ??= requestAnimationFrame(paint));
  function paint() {
    frame = null;
    if (!found) return;
    const [wide, tall] = [width / look.zoom, TALL / look.zoom];
    const isSeen = ({ x, y }) => x > look.x - WIDTH && x < look.x + wide + WIDTH && y > look.y - HEIGHT && y < look.y + tall + HEIGHT;
    const seen = graph.boxes.flatMap((_, at) => (at === active || isSeen(found.places[at]) ? [at] : []));
    const paths = (some) => some.map((at) => line(found.lines[at])).join("");
    const crossing = graph.arrows.flatMap((_, at) => (crosses(found.lines[at], look.y, look.y + tall) ? [at] : []));
    set(arrows, { d: paths(crossing) });
    set(ownArrows, { d: paths(crossing.filter((at) => graph.arrows[at].includes(active))) });
    set(svg, { viewBox: `${look.x} ${look.y} ${wide} ${tall}`, width, "aria-activedescendant": active < 0 ? null : `${id}-${active}` });
    svg.classList.toggle("qb-far", look.zoom < READABLE);
    fill(svg, [arrows, ownArrows, ...seen.map(boxAt)]);
  }
  function boxAt(at) {
    const box = graph.boxes[at];
    const [shade, said] = colour(box);
    if (!elements.has(at)) {
      const { x, y } = found.places[at];
      const text = (className, x, y, words) => s("text", { class: className, x, y }, words);
      elements.set(at, s("g", { role: "option", id: `${id}-${at}`, transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})` },
        box.members > 1 ? s("rect", { class: "qb-behind", x: 3, y: 3, width: WIDTH, height: HEIGHT, rx: 4 }) : null,
        s("rect", { class: "qb-face", width: WIDTH, height: HEIGHT, rx: 4 }),
        s("rect", { class: "qb-shade", width: 5, height: HEIGHT, rx: 2 }),
        text("qb-box-name", 10, 16, ending(box.name)), text("qb-box-op", 10, 32, beginning(box.op)), text("qb-box-op qb-said", WIDTH - 7, 32, ""), s("title", {}, box.name.slice(0, 400))));
    }
    const element = elements.get(at);
    element.querySelector(".qb-said").textContent = said || box.dtype;
    return set(element, {
      class: ["qb-box", shade && `qb-is-${shade}`, at === active && "qb-active", hits.has(box.id) && "qb-hit"].filter(Boolean).join(" "),
      "aria-selected": at === active ? "true" : "false",
      "aria-label": `${box.name.slice(0, 200)}, ${box.op}${said ? `, ${said}` : ""}`,
    });
  }

  // looking around

  function at(place, zoom = look.zoom) {
    look = { x: place.x - width / zoom / 2, y: place.y - TALL / zoom / 2, zoom };
    soon();
  }
  const middle = () => ({ x: look.x + width / look.zoom / 2, y: look.y + TALL / look.zoom / 2 });
  const least = () => Math.min(0.5, width / (found.width + 40), TALL / (found.height + 40));
  function zoom(factor, around = middle()) {
    if (!found) return;
    const next = Math.min(CLOSEST, Math.max(least(), look.zoom * factor));
    const by = look.zoom / next;
    look = { x: around.x - (around.x - look.x) * by, y: around.y - (around.y - look.y) * by, zoom: next };
    soon();
  }
  const whole = () => found && at({ x: found.width / 2, y: found.height / 2 }, Math.min(1, least()));
  /** Have a box in sight, in the middle where it was not. */
  function reveal(box) {
    const { x, y } = found.places[box];
    const [left, top] = [(x - look.x) * look.zoom, (y - look.y) * look.zoom];
    if (left < WIDTH / 2 || left > width - WIDTH / 2 || top < HEIGHT || top > TALL - HEIGHT) at({ x, y }, Math.max(look.zoom, READABLE));
    else soon();
  }
  function choose(box) {
    if (box < 0) return;
    active = box;
    chosen = graph.boxes[box].layers.at(-1) ?? chosen;
    reveal(box);
    if (graph.boxes[box].layers.length) select(graph.boxes[box].layers.at(-1));
  }
  const pointAt = (event) => {
    const frame = svg.getBoundingClientRect();
    return { x: look.x + (event.clientX - frame.left) / look.zoom, y: look.y + (event.clientY - frame.top) / look.zoom };
  };
  const under = (event) => {
    const point = pointAt(event);
    return found ? found.places.findIndex(({ x, y }) => Math.abs(point.x - x) < WIDTH / 2 && Math.abs(point.y - y) < HEIGHT / 2) : -1;
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    press = { x: event.clientX, y: event.clientY, look, moved: false };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!press) return;
    const [x, y] = [event.clientX - press.x, event.clientY - press.y];
    press.moved ||= Math.hypot(x, y) > STILL;
    if (!press.moved) return;
    look = { ...look, x: press.look.x - x / look.zoom, y: press.look.y - y / look.zoom };
    soon();
  });
  svg.addEventListener("pointerup", (event) => {
    if (press && !press.moved) choose(under(event));
    press = null;
  });
  svg.addEventListener("pointercancel", () => (press = null));
  svg.addEventListener("dblclick", (event) => fold(under(event)));
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!(event.ctrlKey || event.metaKey || svg.ownerDocument.activeElement === svg)) return; // the page scrolls
      event.preventDefault();
      zoom(WHEEL ** -event.deltaY, pointAt(event));
    },
    { passive: false },
  );
  const fold = (box) => box >= 0 && graph.boxes[box].group !== null && toggle(graph.boxes[box].group);
  svg.addEventListener("keydown", (event) => {
    const next = (from, to) => graph.arrows.find((arrow) => arrow[from] === active)?.[to] ?? -1;
    const step = { ArrowDown: () => next(0, 1), ArrowUp: () => next(1, 0), ArrowRight: () => Math.min(graph.boxes.length - 1, active + 1), ArrowLeft: () => Math.max(0, active - 1), Home: () => 0, End: () => graph.boxes.length - 1 }[event.key];
    const does = { "+": () => zoom(KEY), "=": () => zoom(KEY), "-": () => zoom(1 / KEY), 0: whole, Enter: () => fold(active) }[event.key];
    if (!found || event.ctrlKey || event.metaKey || event.altKey || !(step || does)) return;
    if (step) choose(active < 0 && event.key.startsWith("Arrow") ? 0 : step());
    else does();
    event.preventDefault();
    event.stopPropagation();
  });

  function place() {
    active = chosen === null ? -1 : graph.boxes.findIndex((box) => box.layers.includes(chosen));
    if (found && active >= 0) reveal(active);
    else soon();
  }
  function reach() {
    const box = graph.boxes.findIndex((one) => one.id === asked);
    if (box < 0 || !found) return;
    asked = null;
    choose(box);
  }
  return {
    element: svg,
    /** Another graph, as `folded` gives it. It is laid out where it has changed; until then the old one stays. */
    async draw(next) {
      const key = JSON.stringify([next.boxes.map((box) => box.id), next.arrows]);
      if (key === known) {
        graph = next;
        elements.clear();
        return soon();
      }
      known = key;
      set(svg, { "aria-busy": "true" });
      const places = await layout(next.boxes.map(() => [WIDTH, HEIGHT]), next.arrows);
      if (key !== known) return;
      [graph, found] = [next, places];
      elements.clear();
      set(svg, { "aria-busy": null });
      at({ x: places.places[0]?.x ?? 0, y: TALL / look.zoom / 2 - HEIGHT });
      place();
      reach();
    },
    tint(of) {
      colour = of;
      soon();
    },
    mark(layer) {
      if (layer === chosen && active >= 0) return;
      chosen = layer;
      place();
    },
    hit(ids) {
      hits = new Set(ids);
      soon();
    },
    show(box) {
      asked = box;
      reach();
    },
    zoom,
    whole,
    resize(next) {
      width = Math.max(200, next);
      soon();
    },
  };
}

/** A line through points, bent gently. */
function line(points) {
  const [first, ...rest] = points.map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`);
  return `M${first}${rest.map((point) => `L${point}`).join("")}`;
}

function crosses(points, top, bottom) {
  const [a, b] = [points[0].y, points.at(-1).y];
  return Math.max(a, b) >= top && Math.min(a, b) <= bottom;
}

/** The end of a long name tells it from others. */
function ending(text) {
  return text.length <= LETTERS ? text : `\u2026${text.slice(1 - LETTERS)}`;
}

function beginning(op) {
  const text = op.replace(/^\w+\./, "");
  return text.length <= WORDS ? text : `${text.slice(0, WORDS - 1)}\u2026`;
}
