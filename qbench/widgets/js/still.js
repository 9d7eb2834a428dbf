// A widget in a page of its own, without a kernel: what was embedded is shown, and nothing can be changed for good.

const NO_KERNEL = "This page is a picture without a kernel: thresholds can be tried here, but nothing is changed. Open the session in JupyterLab to edit it.";

/** Draw a widget with what the page's data block holds. */
export function show(widget) {
  unpacked(document.getElementById("qbench-data").textContent).then((data) => draw(widget, data));
}

function draw(widget, { traits, tensors, graphs }) {
  const listeners = {};
  const { values } = traits; // of the tensor that was looked at when the page was made
  const put = (name, value) => {
    traits[name] = value;
    for (const draw of listeners[`change:${name}`] ?? []) draw();
  };
  const say = (message) => {
    const { where = "", ...status } = message;
    put("status", { ...traits.status, message: "", error: null, ...status, ...(status.error ? { error: { text: status.error, where, can_undo: false } } : {}) });
  };

  const answers = {
    opened() {},
    closed() {},
    region() {},
    dismiss: () => say({}),
    select({ layer, part }) {
      const of = tensors?.layers.filter((one) => one.layer === layer) ?? [];
      const found = of.find((one) => one.part === part) ?? of[0];
      const drawing = (place) => (place === null ? null : tensors.drawings[place]);
      if (found) put("tensor", { ...found, histogram: drawing(found.histogram), curves: drawing(found.curves) });
      else if ("layer" in traits) put("layer", layer);
    },
    compare({ before, after, where }) {
      const pair = graphs?.pairs.find((one) => one[0] === before && one[1] === after);
      if (!pair) {
        put("graph", traits.graph);
        say({ error: "This page has what each pass did (steps next to each other), and all of them together; other steps are compared in JupyterLab.", where });
        return;
      }
      const lines = pair[2].map(([kind, section, left, right, layer, notes]) => ({
        kind,
        section,
        left: graphs.texts[left],
        right: graphs.texts[right],
        layer: layer < 0 ? null : graphs.texts[layer],
        notes: notes.map((note) => graphs.texts[note]),
      }));
      put("graph", { steps: graphs.steps, before, after, lines });
    },
    values: ({ layer, part }) => {
      if (layer !== null) put("values", values?.layer === layer && values.part === part ? values : { layer, part, absent: "This page has no values of this tensor: both models run on a few samples for them, in JupyterLab." });
    },
    boxes: ({ where }) => {
      put("boxes", traits.boxes);
      say({ error: "This page has the layers as boxes; what passes make of them is drawn in JupyterLab.", where });
    },
    override(message) {
      if (message.settings.threshold === undefined) say({ error: NO_KERNEL, where: message.where });
      else say({ message: "only tried here: this page has no kernel" });
    },
  };
  const model = {
    get: (name) => traits[name],
    on: (name, draw) => (listeners[name] ??= new Set()).add(draw),
    off: (name, draw) => listeners[name]?.delete(draw),
    send: (message) => {
      (answers[message.do] ?? (() => say({ error: NO_KERNEL, where: message.where })))(message);
      put("status", { ...traits.status, answered: [message.id] });
    },
  };
  widget.render({ model, el: document.getElementById("qbench") });
}

/** The data of base64 letters: JSON, compressed. */
function unpacked(letters) {
  const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
