// The workbench: the result and the profile above, all else as tabs of two panes. The kernel owns the state.
import { boxesSection } from "./boxes.js";
import { irDiff } from "./diff.js";
import { h, set } from "./dom.js";
import { exactnessSection } from "./exactness.js";
import { exportDialog } from "./exports.js";
import { frame, statusLine } from "./frame.js";
import { frontPanel } from "./front.js";
import { resultLine } from "./glance.js";
import { historyPanel } from "./history.js";
import { layerTable } from "./layers.js";
import { short } from "./numbers.js";
import { panes } from "./panes.js";
import { networkProfile } from "./profile.js";
import { repairsPanel } from "./repairs.js";
import { resultPanel } from "./result.js";
import { tensorPanel } from "./tensor.js";
import { valuesPanel } from "./values.js";

export default { render: frame(workbench) };

function workbench(send) {
  const button = (text, action, title) => h("button", { type: "button", class: "qb-button", title, onclick: () => send({ do: action, where: "top" }) }, text);
  const undo = button("Undo", "undo");
  const redo = button("Redo", "redo");
  const run = button("Re-run", "run", "Evaluate on all data what was not yet");
  const history = historyPanel(send);
  const dialog = exportDialog(send);
  const save = h("button", { type: "button", class: "qb-button", title: "Write config, report and models to a folder", onclick: () => dialog.open() }, "Export\u2026");
  const title = h("h2", {});
  const status = statusLine(send);
  const now = resultLine();

  const results = resultPanel(send);
  const boxes = boxesSection(send);
  const layers = layerTable(send, (names) => boxes.region(names));
  const profile = networkProfile((layer) => send({ do: "select", layer, where: "profile" }), (names) => layers.choose(names));
  const pointAt = (names) => {
    profile.point(names);
    layers.point(names);
  };
  const repairs = repairsPanel(send, pointAt);
  const front = frontPanel(send, pointAt);
  const tensor = tensorPanel((message) => send({ where: "tensor", ...message }));
  const values = valuesPanel(send);
  const exactness = exactnessSection((layer) => send({ do: "select", layer, where: "exactness" }));
  const graph = irDiff((before, after) => send({ do: "compare", before, after, where: "graph" }), (layer) => send({ do: "select", layer, where: "graph" }));
  set(tensor.element, { "data-where": "tensor" });
  set(graph.element, { "data-where": "graph" });
  let chosen = null;
  const parts = [
    { key: "flips", title: "Flips", element: results.flips, pane: 0, isThere: () => !results.flips.hidden },
    { key: "repairs", title: "What to do", element: repairs.element, pane: 0 },
    { key: "layers", title: "Layers", element: layers.element, pane: 0 },
    { key: "tensor", title: "Chosen layer", element: tensor.element, pane: 1 },
    { key: "values", title: "Values", element: values.element, pane: 1 },
    { key: "boxes", title: "Boxes", element: boxes.element, pane: 1, isThere: () => !boxes.element.hidden },
    { key: "exactness", title: "Bit-exactness", element: exactness.element, pane: 1, isThere: () => !exactness.element.hidden },
    { key: "graph", title: "Graph", element: graph.element, pane: 1 },
    { key: "front", title: "Search", element: front.element, pane: 1 },
    { key: "history", title: "History", element: history.element, pane: 0 },
  ];
  const element = h("div", { class: "qb-bench" });
  const arrangement = panes(parts, element, () => resize());
  const top = h("header", { class: "qb-top" }, title, now.element, status.element, arrangement.toggle, undo, redo, run, save);
  element.append(top, results.element, profile.element, arrangement.element, dialog.element);

  function resize() {
    if (tensor.element.clientWidth > 0) tensor.resize(tensor.element.clientWidth);
    if (values.element.clientWidth > 0) values.resize(values.element.clientWidth);
    values.see();
    if (profile.element.clientWidth > 0) profile.resize(profile.element.clientWidth);
    if (boxes.element.clientWidth > 0) boxes.resize(boxes.element.clientWidth);
    if (front.element.clientWidth > 0) front.resize(front.element.clientWidth);
    layers.resize();
    exactness.resize();
  }

  return {
    element,
    hasStatus: true,
    draw: {
      tensor: (view) => {
        chosen = view.layer;
        tensor.draw(view);
        values.mark(view);
        layers.mark(chosen);
        profile.mark(chosen);
        boxes.mark(chosen);
        graph.mark(chosen);
        exactness.mark(chosen);
      },
      layers: (view) => {
        layers.draw(view, chosen);
        tensor.offer(view.bulk);
        boxes.layers(view);
      },
      values: (view) => values.draw(view),
      result: (view) => {
        results.draw(view);
        now.draw(view);
        arrangement.fit();
      },
      profile: (view) => {
        profile.draw(view);
        if (chosen !== null) profile.mark(chosen);
      },
      repairs: (view) => repairs.draw(view),
      front: (view) => front.draw(view),
      graph: (view) => graph.draw(view),
      boxes: (view) => boxes.draw(view),
      history: (view) => history.draw(view),
      versions: (view) => history.compare(view),
      exactness: (view) => {
        exactness.draw(view, chosen);
        arrangement.fit();
      },
      height: (px) => Number.isInteger(px) && arrangement.height(px),
      status: (view) => {
        title.textContent = short(view.title, 40);
        status.draw(view);
        now.tell(view);
        tensor.tell(view);
        repairs.tell(view);
        front.tell(view);
        set(undo, { disabled: view.undo === null, title: view.undo === null ? "Nothing to undo" : `Undo: ${short(view.undo, 200)}` });
        set(redo, { disabled: view.redo === null, title: view.redo === null ? "Nothing to redo" : `Redo: ${short(view.redo, 200)}` });
        history.tell(view);
        dialog.tell(view);
      },
    },
    resize: () => arrangement.fit(),
  };
}
