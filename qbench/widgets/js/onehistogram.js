// The histogram of one tensor, alone.
import { frame } from "./frame.js";
import { tensorPanel } from "./tensor.js";

export default {
  render: frame((send) => {
    const panel = tensorPanel(send, ["histogram"]);
    return { element: panel.element, draw: { tensor: panel.draw, status: panel.tell }, resize: panel.resize };
  }),
};
