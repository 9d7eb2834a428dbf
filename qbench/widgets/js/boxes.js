// The network as boxes: folded by fused steps or names, coloured by what matters, two steps of the pipeline side by side.
import { boxPane } from "./boxpane.js";
import { h, set } from "./dom.js";
import { FOLDS, folded } from "./folding.js";
import { tint, TINTS } from "./tints.js";

/** Returns { element, draw(view), layers(view), mark(layer), point(names), resize(width) }; `send(message)` talks to the kernel. */
export function boxesSection(send) {
  let view = null;
  let rows = new Map(); // of layers, by name
  let stretch = new Set();
  let chosen = null;
  let width = 600;
  const open = new Set();
  const options = (some) => some.map(([key, label]) => h("option", { value: key }, label));
  const fold = h("select", { "aria-label": "Put together", onchange: () => (open.clear(), draw()) }, options(FOLDS));
  const colour = h("select", { "aria-label": "Colour by", onchange: () => paint() }, options(TINTS));
  const step = h("select", { "aria-label": "Graph", onchange: () => ask() });
  const beside = h("select", { "aria-label": "Beside it", onchange: () => ask() });
  const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search boxes", oninput: () => look(), onkeydown: (event) => event.key === "Enter" && (event.preventDefault(), next(event.shiftKey ? -1 : 1)) });
  const tally = h("span", { class: "qb-sub", role: "status" });
  const legend = h("span", { class: "qb-sub qb-box-legend" });
  const button = (text, label, action) => h("button", { type: "button", class: "qb-small", title: label, "aria-label": label, onclick: action }, text);
  const each = (action) => () => shown().forEach(action);
  const tools = [button("+", "Zoom in", each((pane) => pane.zoom(1.6))), button("\u2212", "Zoom out", each((pane) => pane.zoom(1 / 1.6))), button("All", "Show all of it", each((pane) => pane.whole()))];
  const panes = ["Graph", "Graph beside it"].map((label) => boxPane({
    label,
    select: (layer) => send({ do: "select", layer, where: "boxes" }),
    toggle: (group) => {
      if (!open.delete(group)) open.add(group);
      draw();
    },
  }));
  const side = h("div", { class: "qb-box-panes" }, panes.map((pane) => pane.element));
  const bar = h("div", { class: "qb-table-bar" }, h("label", {}, "show ", step), h("label", {}, "beside ", beside), h("label", {}, "together ", fold), h("label", {}, "colour ", colour), search, tally, h("span", { class: "qb-grow" }), tools);
  const hint = h("p", { class: "qb-sub" }, "Drag to move, turn the wheel on it to zoom once it has the focus, double click (Enter) opens and folds a box of several; arrow keys walk along the arrows. ", legend);
  const element = h("details", { class: "qb-boxes", "data-where": "boxes", ontoggle: () => element.open && draw() }, h("summary", {}, "Graph as boxes"), bar, side, hint);
  let drawn = []; // by pane: what is drawn
  let hits = [];
  let hit = -1;

  const shown = () => panes.slice(0, view?.panes.length ?? 0);
  const ask = () => send({ do: "boxes", steps: [Number(step.value), ...(beside.value === "" ? [] : [Number(beside.value)])], where: "boxes" });

  function draw() {
    if (!view?.panes || !element.open) return;
    drawn = view.panes.map((pane) => folded(pane.boxes, fold.value, (layer) => rows.get(layer)?.group ?? null, open));
    panes.forEach((pane, at) => set(pane.element, { hidden: at >= drawn.length }));
    resize(width);
    drawn.forEach((one, at) => panes[at].draw(one));
    paint();
    look();
    if (chosen !== null) each((pane) => pane.mark(chosen))();
  }
  function paint() {
    const of = tint(colour.value, [...rows.values()], stretch);
    each((pane) => pane.tint((box) => of(box.layers.map((name) => rows.get(name)).filter(Boolean))))();
    const words = TINTS.find(([key]) => key === colour.value)[2];
    legend.replaceChildren(...words.flatMap(([shade, label]) => [h("span", { class: `qb-swatch qb-is-${shade}` }), `${label} `]));
  }
  function look() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (box) => words.every((word) => `${box.name} ${box.op} ${box.layers.join(" ")}`.toLowerCase().includes(word));
    hits = words.length ? drawn.flatMap((one, pane) => one.boxes.filter(fits).map((box) => [pane, box.id])) : [];
    hit = -1;
    tally.textContent = words.length ? (hits.length ? `${hits.length} found: Enter goes to them` : "not found") : "";
    panes.forEach((pane, at) => pane.hit(hits.filter(([one]) => one === at).map(([, box]) => box)));
  }
  function next(by) {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    tally.textContent = `${hit + 1} of ${hits.length}`;
    panes[hits[hit][0]].show(hits[hit][1]);
  }
  function resize(all) {
    width = all;
    for (const pane of panes) pane.resize((width - (shown().length > 1 ? 8 : 0)) / Math.max(1, shown().length));
  }
  return {
    element,
    resize,
    draw(next) {
      if (!next?.panes) return set(element, { hidden: true });
      view = next;
      const names = view.steps.map((name, at) => h("option", { value: at }, at === view.prepared ? `${name} (the layers)` : name));
      step.replaceChildren(...names);
      beside.replaceChildren(h("option", { value: "" }, "nothing"), ...names.map((one) => one.cloneNode(true)));
      step.value = String(view.panes[0].step);
      beside.value = view.panes.length > 1 ? String(view.panes[1].step) : "";
      draw();
    },
    layers(table) {
      rows = new Map(table.rows.map((row) => [row.name, row]));
      draw();
    },
    mark(layer) {
      chosen = layer;
      if (element.open) each((pane) => pane.mark(layer))();
    },
    /** Layers are selected: a stretch of the profile, or rows of the table. */
    region(names) {
      stretch = new Set(names);
      if (element.open) paint();
    },
  };
}
