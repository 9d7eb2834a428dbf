// The layer table alone.
import { frame } from "./frame.js";
import { layerTable } from "./layers.js";

export default {
  render: frame((send) => {
    const table = layerTable(send);
    return { element: table.element, draw: { layers: (view) => table.draw(view) }, resize: () => table.resize() };
  }),
};
