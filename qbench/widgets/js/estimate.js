// What a threshold would do to a tensor, from its histogram: no kernel needed while a handle moves.
// The same arithmetic as qbench.quant.choose, qbench.calibration.grid and qbench.calibration.loss, and tested against it.

const TINY = 2 ** -126;
const BEYOND = 1e90; // whose cube is a number

/** A view to reckon with: where Python sent "inf", a threshold that clips nothing and a step beyond everything. */
export function finite(view) {
  const is = (value) => value === null || Number.isFinite(value);
  if (is(view.threshold) && is(view.scale)) return view;
  const largest = Math.max(-view.min, view.max, TINY);
  return { ...view, threshold: is(view.threshold) ? view.threshold : largest, scale: is(view.scale) ? view.scale : BEYOND, told: view.scale };
}

/** The range that a threshold leaves, widened to include 0. */
export function clippedRange(view, threshold) {
  return [Math.min(0, Math.max(view.min, -threshold)), Math.max(0, Math.min(view.max, threshold))];
}

/** The integers that a threshold leads to: { scale, zero, least, most }, the last two in steps from 0. */
export function gridOf(view, threshold) {
  if (threshold === view.threshold && view.scale !== null) return gridAt(view, view.scale, view.zero_point);
  const [low, high] = clippedRange(view, threshold);
  const [qmin, qmax] = limits(view.dtype);
  const middle = Math.floor((qmin + qmax + 1) / 2);
  const first = qmin + (view.narrow ? 1 : 0);
  const scale = view.symmetric ? Math.max(-low, high) / (qmax - middle) : (high - low) / (qmax - first);
  if (scale < TINY) return gridAt(view, 1, view.symmetric ? middle : Math.max(0, first));
  const zero = view.symmetric ? middle : even(first - low / scale);
  return gridAt(view, view.power_of_two ? 2 ** Math.ceil(Math.log2(Math.fround(scale))) : Math.fround(scale), zero);
}

function gridAt(view, scale, zero) {
  const [qmin, qmax] = limits(view.dtype);
  return { scale, zero, least: qmin - zero, most: qmax - zero };
}

/** The smallest and the largest integer of a type. */
export function limits(dtype) {
  const bits = Number(dtype.match(/\d+/)[0]);
  return dtype.startsWith("u") ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
}

/**
 * Fraction clipped and mean squared errors of quantizing to a grid: { clipped, rounding, clipping, error, signal }.
 * The values of a bin count as spread evenly over it, except that zeros are zeros, and the outermost bins end where the
 * values do.
 */
export function lossOf(view, grid) {
  const { scale, least, most } = grid;
  const steps = (x) => Math.min(most, Math.max(least, even(x / scale)));
  const squared = (x) => (x - steps(x) * scale) ** 2;
  const integral = (x) => {
    const k = steps(x);
    const rest = x - k * scale;
    return (k * scale ** 3) / 12 + rest ** 3 / 3;
  };
  const bounds = [(least - 0.5) * scale, (most + 0.5) * scale];
  const inside = (x) => Math.min(bounds[1], Math.max(bounds[0], x));
  const sums = { clipped: 0, rounding: 0, clipping: 0, signal: 0 };
  const zeros = Math.round(-view.start / view.width);
  view.counts.forEach((all, i) => {
    const count = i === zeros ? all - view.zeros : all;
    if (!count) return;
    const low = Math.max(view.start + i * view.width, view.min);
    const high = Math.min(view.start + (i + 1) * view.width, view.max);
    if (!(high > low)) {
      sums[inside(low) === low ? "rounding" : "clipping"] += count * squared(low);
      sums.clipped += inside(low) === low ? 0 : count;
      sums.signal += count * low ** 2;
      return;
    }
    const [from, to] = [inside(low), inside(high)];
    const each = count / (high - low);
    const kept = integral(to) - integral(from);
    sums.rounding += each * kept;
    if (from !== low || to !== high) {
      sums.clipped += count - each * (to - from);
      sums.clipping += each * (integral(high) - integral(low) - kept);
    }
    sums.signal += (each * (high ** 3 - low ** 3)) / 3;
  });
  const mean = Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, Math.max(0, sum / Math.max(1, view.count))]));
  return { ...mean, error: mean.rounding + mean.clipping };
}

/** One channel of a weight, as the histogram of a tensor of its own. */
export function channelOf(view, index) {
  const all = view.by_channel;
  const half = all.counts[index].length / 2;
  const at = { scale: all.scales[index], zero_point: all.zero_points[index] };
  return {
    ...view,
    ...at,
    start: -half * all.widths[index],
    width: all.widths[index],
    counts: all.counts[index],
    count: all.size,
    zeros: all.zeros[index],
    min: all.mins[index],
    max: all.maxs[index],
    threshold: all.thresholds[index],
    channels: 1,
    channel: index,
  };
}

/** A curve's value at a threshold, by interpolation. */
export function valueAt(curve, threshold) {
  const { thresholds, values } = curve;
  const next = thresholds.findIndex((t) => t >= threshold);
  if (next <= 0) return values[next === 0 ? 0 : values.length - 1];
  const share = (threshold - thresholds[next - 1]) / (thresholds[next] - thresholds[next - 1]);
  return values[next - 1] + share * (values[next] - values[next - 1]);
}

/** Signal to noise in dB. */
export function ratio(signal, error) {
  return error > 0 ? 10 * Math.log10(signal / error) : "inf";
}

/** The nearest integer, of two equally near ones the even one. */
function even(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
