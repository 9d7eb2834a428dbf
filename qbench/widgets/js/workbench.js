// The workbench: layers on the left, the chosen one on the right, the graph below. The kernel owns the state.
import { irDiff } from "./diff.js";
import { h, set } from "./dom.js";
import { layerTable } from "./layers.js";
import { short } from "./numbers.js";
import { resultPanel } from "./result.js";
import { tensorPanel } from "./tensor.js";

export default { render };

function render({ model, el }) {
  const send = (message) => model.send(message);
  const button = (text, action, title) => h("button", { type: "button", class: "qb-button", title, onclick: () => send(action) }, text);
  const undo = button("Undo", { do: "undo" });
  const redo = button("Redo", { do: "redo" });
  const run = button("Re-run", { do: "run" }, "Evaluate again what changed");
  const save = button("Export", { do: "export" });
  const title = h("h2", {});
  const status = h("div", { class: "qb-status", role: "status" });
  const bar = h("progress", { class: "qb-progress", max: 1, "aria-label": "Progress" });
  const trouble = h("div", { class: "qb-error", role: "alert", hidden: true });

  const results = resultPanel();
  const layers = layerTable((layer) => send({ do: "select", layer }));
  const tensor = tensorPanel(send);
  const graph = irDiff((before, after) => send({ do: "compare", before, after }), (layer) => send({ do: "select", layer }));
  const right = h("div", { class: "qb-right" }, tensor.element);
  const root = h(
    "div",
    { class: "qb", "data-busy": "false" },
    h("header", { class: "qb-top" }, title, status, bar, undo, redo, run, save),
    trouble,
    results.element,
    h("div", { class: "qb-columns" }, layers.element, right),
    graph.element,
  );
  el.replaceChildren(root);

  const draw = {
    layers: (view) => layers.draw(view, model.get("tensor").layer),
    tensor: (view) => {
      tensor.draw(view);
      layers.mark(view.layer);
      graph.mark(view.layer);
    },
    result: (view) => results.draw(view),
    graph: (view) => graph.draw(view),
    status: (view) => {
      title.textContent = short(view.title, 40);
      status.textContent = view.message;
      set(root, { "data-busy": view.is_busy ? "true" : "false", "aria-busy": view.is_busy ? "true" : "false" });
      set(bar, { hidden: !view.is_busy, value: view.progress });
      set(undo, { disabled: view.undo === null, title: view.undo === null ? "Nothing to undo" : `Undo: ${short(view.undo, 200)}` });
      set(redo, { disabled: view.redo === null, title: view.redo === null ? "Nothing to redo" : `Redo: ${short(view.redo, 200)}` });
      set(save, { title: `Write config, report, archive and int8 ONNX to ${view.folder}` });
      set(trouble, { hidden: view.error === null });
      const close = h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "dismiss" }) }, "Close");
      trouble.replaceChildren(...(view.error === null ? [] : [h("span", { class: "qb-grow" }, view.error), close]));
    },
  };
  const guarded = (name) => () => {
    try {
      draw[name](model.get(name));
    } catch (error) {
      set(trouble, { hidden: false });
      trouble.replaceChildren(h("span", {}, `The ${name} cannot be drawn: ${error.message}. Run the cell again.`));
      throw error;
    }
  };
  const handlers = Object.keys(draw).map((name) => [`change:${name}`, guarded(name)]);
  for (const [name, handler] of handlers) {
    handler();
    model.on(name, handler);
  }
  const sizes = new ResizeObserver(() => {
    const width = tensor.element.clientWidth;
    if (width > 0) tensor.resize(width);
    layers.mark(model.get("tensor").layer);
  });
  sizes.observe(tensor.element);
  sizes.observe(layers.element);
  return () => {
    sizes.disconnect();
    for (const [name, handler] of handlers) model.off(name, handler);
  };
}
