// Parts as tabs of two panes in one height, or below each other: which stands where is the reader's, and is remembered.
import { fill, h, set, unique } from "./dom.js";

const KEY = "qbench.arrangement";
const NARROW = 1150; // px: below, the panes stand above each other
const [LEAST, MOST, STEP] = [0.2, 0.8, 0.05]; // of the room, for the first pane
const HALVES = { of: {}, shown: ["layers", "tensor"], share: 0.5, isStack: false, height: null };
const LOWER = 0.85; // a pane that stands above another one: drawings need height, tables scroll

/**
 * Returns { element, toggle, fit(), show(key), height(px) }. `parts` are { key, title, element, pane, isThere?() }, in the
 * order in which they stand below each other; `box` is what has the height; `moved()` is called when another part is seen,
 * or one has another size.
 */
export function panes(parts, box, moved) {
  const id = unique("qb-panes");
  const state = { ...HALVES, ...remembered() };
  const slots = new Map(parts.map((part) => [part.key, h("div", { class: "qb-part" }, part.element)]));
  const tabs = new Map(parts.map((part) => [part.key, h("button", { type: "button", role: "tab", id: `${id}-${part.key}`, onclick: () => show(part.key) }, part.title)]));
  const sides = [0, 1].map((at) => {
    const list = h("div", { class: "qb-part-tabs", role: "tablist", "aria-label": `Parts of pane ${at + 1}`, onkeydown: (event) => walk(event, at) });
    const said = "Move this part to the other pane";
    const move = h("button", { type: "button", class: "qb-small", title: said, "aria-label": said, onclick: () => other(at) }, "\u21c4");
    const body = h("div", { class: "qb-pane-body", id: `${id}-${at}` });
    return { list, move, body, element: h("div", { class: "qb-pane" }, h("div", { class: "qb-pane-top" }, list, move), body) };
  });
  const splitter = h("div", { class: "qb-splitter", role: "separator", tabindex: 0, "aria-label": "Share of the first pane", "aria-valuemin": 100 * LEAST, "aria-valuemax": 100 * MOST, onpointerdown: (event) => drag(event), onkeydown: (event) => nudge(event), ondblclick: () => split(0.5) });
  const element = h("div", { class: "qb-panes" }, sides[0].element, splitter, sides[1].element);
  const toggle = h("button", { type: "button", class: "qb-button", onclick: () => keep({ isStack: !state.isStack }) });
  let isBeside = true;

  /** The parts of a pane that are there, and which of them is seen: the chosen one, while it is there. */
  function content(at) {
    const own = parts.filter((part) => (state.of[part.key] ?? part.pane) === at && (part.isThere?.() ?? true));
    return { own, shown: own.find((part) => part.key === state.shown[at]) ?? own[0] };
  }
  function arrange() {
    const { isStack, share, height } = state;
    box.classList.toggle("qb-stack", isStack);
    box.style.height = height && !isStack ? `${height}px` : "";
    toggle.textContent = isStack ? "Panes" : "Stack";
    set(toggle, { title: isStack ? "Show the parts as tabs of two panes" : "Show all parts below each other" });
    if (isStack) fill(sides[0].body, [...slots.values()]);
    sides.forEach(({ list, move, body, element: pane }, at) => {
      const { own, shown } = content(at);
      fill(list, own.map((part) => tabs.get(part.key)));
      if (!isStack) fill(body, own.map((part) => slots.get(part.key)));
      for (const part of own) {
        const isShown = part === shown;
        set(tabs.get(part.key), { "aria-selected": isShown ? "true" : "false", "aria-controls": `${id}-${at}`, tabindex: isShown ? 0 : -1 });
        set(slots.get(part.key), { hidden: !isStack && !isShown });
        if (isShown && !isStack && "open" in part.element) part.element.open = true;
      }
      set(body, { role: isStack ? null : "tabpanel", "aria-labelledby": isStack || !shown ? null : `${id}-${shown.key}` });
      set(pane, { hidden: isStack ? at === 1 : !own.length });
      set(list.parentElement, { hidden: isStack });
      set(move, { hidden: own.length < 2 && content(1 - at).own.length === 0 });
    });
    set(splitter, { hidden: isStack || sides.some((one) => one.element.hidden), "aria-orientation": isBeside ? "vertical" : "horizontal", "aria-valuenow": Math.round(100 * share) });
    element.classList.toggle("qb-below", !isBeside);
    const first = isBeside ? share : share * LOWER;
    element.style.setProperty("--qb-first", `${first}fr`);
    element.style.setProperty("--qb-second", `${1 - first}fr`);
    moved();
  }
  function keep(changes) {
    Object.assign(state, changes);
    arrange();
    try {
      localStorage.setItem(KEY, JSON.stringify(state));
    } catch {
      // a page without storage forgets
    }
  }
  const seen = (at, key) => state.shown.map((old, pane) => (pane === at ? key : old));
  function show(key) {
    keep({ shown: seen([0, 1].find((at) => content(at).own.some((part) => part.key === key)), key) });
  }
  function other(at) {
    const { key } = content(at).shown;
    keep({ of: { ...state.of, [key]: 1 - at }, shown: seen(1 - at, key) });
    tabs.get(key).focus();
  }
  function walk(event, at) {
    const all = [...sides[at].list.children];
    const from = all.indexOf(event.target);
    const to = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: all.length - 1 }[event.key];
    if (!all[to]) return;
    event.preventDefault();
    event.stopPropagation();
    all[to].click();
    all[to].focus();
  }
  const split = (share) => keep({ share: Math.min(MOST, Math.max(LEAST, share)) });
  function nudge(event) {
    const by = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    split(state.share + by);
  }
  function drag(event) {
    event.preventDefault();
    splitter.setPointerCapture(event.pointerId);
    const room = element.getBoundingClientRect();
    const move = ({ clientX, clientY }) => split(isBeside ? (clientX - room.left) / room.width : (clientY - room.top) / room.height);
    splitter.addEventListener("pointermove", move);
    splitter.addEventListener("lostpointercapture", () => splitter.removeEventListener("pointermove", move), { once: true });
  }
  arrange();

  return {
    element,
    toggle,
    show,
    /** Parts came or went, or there is other room. */
    fit() {
      isBeside = box.clientWidth >= NARROW;
      const dragged = Number.parseFloat(box.style.height); // by its corner
      if (dragged > 0 && dragged !== state.height) keep({ height: dragged });
      else arrange();
    },
    /** What the kernel wants: so many px, or with 0 all parts below each other. */
    height(px) {
      Object.assign(state, px === 0 ? { isStack: true } : { isStack: false, height: px });
      arrange();
    },
  };
}

function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept?.shown) && kept.share > 0 && typeof kept.of === "object" ? kept : {};
  } catch {
    return {};
  }
}
