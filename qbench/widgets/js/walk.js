// One of many places along a plot, chosen with the mouse or with the keys.

const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

/**
 * `order()` gives what stands beside each other, `at(px)` the place at a pixel of a plot that is `width()` wide,
 * `chosen()` the one that is; `choose(one)` is called with another one, null for none.
 */
export function walkable(svg, { order, at, width, chosen, choose }) {
  let isDragging = false;
  const nearest = (all, place) => all[Math.max(0, Math.min(all.length - 1, place))];
  const pick = (event) => {
    const box = svg.getBoundingClientRect();
    const one = nearest(order(), at(((event.clientX - box.left) * width()) / box.width));
    if (one !== chosen()) choose(one);
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !order().length) return;
    isDragging = true;
    svg.setPointerCapture(event.pointerId);
    svg.focus({ preventScroll: true });
    event.preventDefault();
    pick(event);
  });
  svg.addEventListener("pointermove", (event) => isDragging && pick(event));
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (isDragging = false));
  svg.addEventListener("keydown", (event) => {
    const all = order();
    if (!all.length) return;
    const from = chosen() === null ? -1 : all.indexOf(chosen());
    const to = { Home: 0, End: all.length - 1 }[event.key] ?? from + KEYS[event.key];
    if (Number.isInteger(to)) choose(nearest(all, to));
    else if (event.key === "Escape" && chosen() !== null) choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
