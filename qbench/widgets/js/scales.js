// From values to pixels, and the ticks of an axis.
import { s } from "./dom.js";
import { number } from "./numbers.js";

/** A linear scale. */
export function linear([low, high], [from, to]) {
  const factor = (to - from) / (high - low || 1);
  const scale = (value) => from + (value - low) * factor;
  scale.inverse = (pixel) => low + (pixel - from) / factor;
  scale.ticks = (wanted) => steps(low, high, wanted);
  return scale;
}

/** A logarithmic scale; what is below its lowest value stands at the bottom. */
export function logarithmic([low, high], range) {
  const inner = linear([Math.log10(low), Math.log10(high)], range);
  const scale = (value) => inner(Math.log10(Math.max(value, low)));
  scale.ticks = (wanted) => {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const decades = Math.floor(Math.log10(high) + 1e-9) - first + 1;
    const stride = Math.max(1, Math.ceil(decades / wanted));
    return Array.from({ length: Math.max(0, Math.ceil(decades / stride)) }, (_, i) => 10 ** (first + i * stride));
  };
  return scale;
}

/** The horizontal axis at height y. */
export function xAxis(scale, y, width, label, right) {
  const ticks = scale.ticks(Math.max(2, Math.floor(width / 80)));
  return s(
    "g",
    { class: "qb-axis" },
    ticks.map((value) => [
      s("line", { x1: scale(value), x2: scale(value), y1: y, y2: y + 4 }),
      s("text", { x: scale(value), y: y + 15, "text-anchor": "middle" }, number(value)),
    ]),
    s("text", { class: "qb-axis-label", x: right, y: y + 28, "text-anchor": "end" }, label),
  );
}

/** The vertical axis at x, with lines across the plot. */
export function yAxis(scale, x, right, wanted, label, top) {
  return s(
    "g",
    { class: "qb-axis" },
    scale.ticks(wanted).map((value) => [
      s("line", { class: "qb-rule", x1: x, x2: right, y1: scale(value), y2: scale(value) }),
      s("text", { x: x - 6, y: scale(value) + 4, "text-anchor": "end" }, brief(value)),
    ]),
    s("text", { class: "qb-axis-label", x: 4, y: top, "text-anchor": "start" }, label),
  );
}

function brief(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return size < 1e3 * unit ? `${number(value / unit, 3)}${letter}` : value.toExponential(0);
  }
  return size !== 0 && size < 1e-3 ? value.toExponential(0).replaceAll("-", "\u2212") : number(value, 3);
}

function steps(low, high, wanted) {
  const raw = (high - low) / wanted;
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= raw);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
