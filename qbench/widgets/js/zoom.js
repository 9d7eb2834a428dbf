// Which part of an axis is seen: wheel, drags, keys and buttons change it, always within the whole.
import { h, set } from "./dom.js";

const FACTOR = 1.5;

/** Returns { seen(), fit(low, high, least), isWhole(), zoom(factor, at), pan(share), show(low, high), toolbar, key(event) }. */
export function zoomable(changed) {
  let whole = [0, 1];
  let seen = [0, 1];
  let least = 0;
  const isWhole = () => seen[0] === whole[0] && seen[1] === whole[1];
  const show = (low, high) => {
    const size = Math.min(whole[1] - whole[0], Math.max(least, high - low));
    const middle = (low + high) / 2;
    const from = Math.max(whole[0], Math.min(whole[1] - size, middle - size / 2));
    seen = size >= whole[1] - whole[0] ? [...whole] : [from, from + size];
    update();
    changed();
  };
  const zoom = (factor, at = (seen[0] + seen[1]) / 2) => show(at - (at - seen[0]) / factor, at + (seen[1] - at) / factor);
  const pan = (share) => {
    const by = share * (seen[1] - seen[0]);
    show(seen[0] + by, seen[1] + by);
  };
  const button = (text, label, action) => h("button", { type: "button", class: "qb-small", title: label, "aria-label": label, onclick: action }, text);
  let about = () => undefined;
  const closer = button("+", "Zoom in", () => zoom(2 * FACTOR, about()));
  const farther = button("\u2212", "Zoom out", () => zoom(1 / (2 * FACTOR), about()));
  const reset = button("All", "Show all of it", () => show(...whole));
  const update = () => {
    set(farther, { disabled: isWhole() });
    set(reset, { disabled: isWhole() });
    set(closer, { disabled: seen[1] - seen[0] <= least * 1.0001 });
  };
  return {
    seen: () => seen,
    isWhole,
    show,
    zoom,
    pan,
    toolbar: [closer, farther, reset],
    /** Where buttons and keys zoom to. */
    around(next) {
      about = next;
    },
    /** Another axis; as much of it is seen as fits. */
    fit(low, high, smallest, keep) {
      const before = keep && !isWhole() ? seen : null;
      whole = [low, high];
      least = Math.min(smallest, high - low);
      seen = [...whole];
      if (before) {
        const size = Math.min(high - low, Math.max(least, before[1] - before[0]));
        const from = Math.max(low, Math.min(high - size, before[0]));
        seen = size >= high - low ? seen : [from, from + size];
      }
      update();
    },
    /** Whether a key was one of those that zoom. */
    key(event) {
      const does = {
        "+": () => zoom(FACTOR, about()),
        "=": () => zoom(FACTOR, about()),
        "-": () => zoom(1 / FACTOR, about()),
        _: () => zoom(1 / FACTOR, about()),
        0: () => show(...whole),
        "[": () => pan(-0.25),
        "]": () => pan(0.25),
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return false;
      does();
      return true;
    },
  };
}
