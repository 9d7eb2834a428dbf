// What each threshold would cost one tensor, alone.
import { frame } from "./frame.js";
import { tensorPanel } from "./tensor.js";

export default {
  render: frame((send) => {
    const panel = tensorPanel(send, ["curves"]);
    return { element: panel.element, draw: { tensor: panel.draw }, resize: panel.resize };
  }),
};
