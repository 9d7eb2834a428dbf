// Bins as a picture: so many of them that each is as wide as a pixel or two, whatever part is seen.

/** The bins between two values, neighbours merged in powers of two until each is at least `size` wide: { start, width, counts }. */
export function visible(view, [low, high], size) {
  let factor = 1;
  while (view.width * factor < size && factor < view.counts.length) factor *= 2;
  const anchor = Math.round(view.start / view.width); // bins are anchored at zero: merging keeps that
  const first = Math.max(Math.floor(low / (view.width * factor)), Math.floor(anchor / factor));
  const last = Math.min(Math.floor(high / (view.width * factor)), Math.floor((anchor + view.counts.length - 1) / factor));
  const counts = new Array(Math.max(0, last - first + 1)).fill(0);
  const from = Math.max(0, first * factor - anchor);
  const to = Math.min(view.counts.length, (last + 1) * factor - anchor);
  for (let i = from; i < to; i += 1) counts[Math.floor((anchor + i) / factor) - first] += view.counts[i];
  return { start: first * view.width * factor, width: view.width * factor, counts };
}

/** One path of all bars. */
export function outline(bins, x, y, bottom) {
  const pieces = [];
  const gap = x(bins.width) - x(0) > 12 ? 1 : 0;
  bins.counts.forEach((count, i) => {
    if (!count) return;
    const left = x(bins.start + i * bins.width);
    const right = x(bins.start + (i + 1) * bins.width) - gap;
    pieces.push(`M${left.toFixed(2)} ${bottom}V${y(count).toFixed(2)}H${Math.max(right, left + 0.8).toFixed(2)}V${bottom}Z`);
  });
  return pieces.join("");
}
