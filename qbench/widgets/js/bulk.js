// What can be set for several layers at once: one edit of the history.
import { h, set } from "./dom.js";
import { layersOf } from "./groups.js";

const SAME = "\u2013 as is";

/** Returns { element, draw(choices, rows) }; `clear()` is called when nothing shall be selected any more. */
export function bulkBar(send, clear) {
  let choices = null;
  let rows = [];
  const count = h("strong", { role: "status" });
  const note = h("span", { class: "qb-sub" });
  const part = h("select", { "aria-label": "Of which tensors", onchange: () => offer() }, h("option", { value: "activation" }, "activations"), h("option", { value: "weight" }, "weights"));
  const fields = h("span", { class: "qb-bulk-fields" });
  const apply = h("button", { type: "button", onclick: () => submit(settings()) }, "Apply");
  const plain = (text, title, action) => h("button", { type: "button", class: "qb-small", title, onclick: action }, text);
  const element = h(
    "div",
    { class: "qb-bulk", role: "group", "aria-label": "Edit the selected layers", hidden: true },
    count,
    h("label", {}, "set ", part),
    fields,
    apply,
    note,
    h("span", { class: "qb-grow" }),
    plain("Keep in float", "Run the selected layers in float", () => keep(true)),
    plain("Quantize", "No longer keep the selected layers in float", () => keep(null)),
    plain("Take back edits", "Of the selected layers", () => send({ do: "reset_many", layers: rows.flatMap(layersOf) })),
    plain("Clear selection", "Select no layer (Escape)", clear),
  );

  const options = () => (choices ? choices[part.value] : []);
  const able = () => rows.filter((row) => (part.value === "weight" ? row.weight : row.tensor) !== null);
  const settings = () => {
    const chosen = [...fields.querySelectorAll("select")].map((field) => [field.name, field.value]).filter(([, value]) => value !== "");
    return Object.fromEntries(chosen.map(([key, value]) => [key, options().find((one) => one.key === key).choices[Number(value)].value]));
  };
  const submit = (wanted) => send({ do: "override_many", layers: able().map((row) => row.name), part: part.value, settings: wanted });
  const keep = (value) => send({ do: "override_many", layers: rows.flatMap(layersOf), part: "activation", settings: { keep_float: value } });

  function offer() {
    fields.replaceChildren(
      ...options().map((one) =>
        h(
          "label",
          {},
          `${one.label} `,
          h("select", { name: one.key, onchange: () => tell() }, h("option", { value: "" }, SAME), one.choices.map((choice, i) => h("option", { value: i }, choice.label))),
        ),
      ),
    );
    tell();
  }
  function tell() {
    const [layers, usable] = [rows, able()].map((some) => some.flatMap(layersOf).length);
    count.textContent = `${layers} ${layers === 1 ? "layer" : "layers"} selected`;
    note.textContent = usable === layers ? "" : usable ? `${usable} of them have quantized ${part.value}s` : `none has quantized ${part.value}s`;
    set(apply, { disabled: !usable || !Object.keys(settings()).length });
  }

  return {
    element,
    draw(next, selected) {
      rows = selected;
      const isNew = choices === null && next;
      choices = next ?? choices;
      set(element, { hidden: !rows.length });
      if (isNew) offer();
      else tell();
    },
  };
}
