// What a threshold would do to a tensor, from its histogram and its curve: no kernel needed while a handle moves.

/** The range that a threshold leaves, widened to include 0. */
export function clippedRange(view, threshold) {
  return [Math.min(0, Math.max(view.min, -threshold)), Math.max(0, Math.min(view.max, threshold))];
}

/** The step of the integers over that range. */
export function scaleOf(view, threshold) {
  const [low, high] = clippedRange(view, threshold);
  const levels = 2 ** Number(view.dtype.match(/\d+/)[0]);
  return view.symmetric ? Math.max(-low, high) / (levels / 2 - 1) : (high - low) / (levels - 1);
}

/** Fraction of the values outside of a range; those of a bin count as spread evenly over it. */
export function outside(view, low, high) {
  let inside = 0;
  view.counts.forEach((count, i) => {
    if (!count) return;
    const start = Math.max(view.start + i * view.width, view.min);
    const end = Math.min(view.start + (i + 1) * view.width, view.max);
    const width = end - start;
    const kept = width > 0 ? (Math.min(end, high) - Math.max(start, low)) / width : start >= low && start <= high;
    inside += count * Math.max(0, Math.min(1, Number(kept)));
  });
  return Math.max(0, 1 - inside / view.count);
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
