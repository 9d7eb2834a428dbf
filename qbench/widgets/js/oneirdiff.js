// The graph before and after some passes, alone.
import { irDiff } from "./diff.js";
import { frame } from "./frame.js";

export default {
  render: frame((send) => {
    const panel = irDiff((before, after) => send({ do: "compare", before, after }), (layer) => send({ do: "select", layer }));
    return { element: panel.element, draw: { graph: panel.draw, layer: panel.mark } };
  }),
};
