// The layer table alone.
import { frame } from "./frame.js";
import { layerTable } from "./layers.js";

export default {
  render: frame((send) => {
    let chosen = null;
    const table = layerTable((layer) => {
      chosen = layer;
      send({ do: "select", layer });
    });
    return { element: table.element, draw: { layers: (view) => table.draw(view, chosen) } };
  }),
};
