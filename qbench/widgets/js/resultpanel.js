// The result alone.
import { frame } from "./frame.js";
import { resultPanel } from "./result.js";

export default {
  render: frame((send) => {
    const panel = resultPanel(send);
    return { element: panel.element, draw: { result: (view) => panel.draw(view) } };
  }),
};
