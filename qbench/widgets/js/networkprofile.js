// The profile of the network, alone.
import { frame } from "./frame.js";
import { networkProfile } from "./profile.js";

export default { render: frame(alone) };

function alone(send) {
  const chart = networkProfile((layer) => send({ do: "select", layer }), (layers) => send({ do: "region", layers }));
  return { element: chart.element, draw: { profile: (view) => chart.draw(view) }, resize: (width) => chart.resize(width) };
}
