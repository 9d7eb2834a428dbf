// Where two runs of a network differ.
import { exactnessPanel } from "./exactness.js";
import { frame } from "./frame.js";

export default {
  render: frame((send) => {
    const panel = exactnessPanel((layer) => send({ do: "select", layer }));
    return { element: panel.element, hasStatus: true, draw: { comparison: panel.draw, layer: panel.choose }, resize: panel.resize };
  }),
};
