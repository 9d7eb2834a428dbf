// Fused groups as rows of the table: a convolution, its bias and its relu are one integer step and have one error.

/**
 * One row for each group, in order. That of several layers has `members`: it is called as the first of them, which an
 * edit is about, and says what comes out of the last.
 */
export function grouped(rows) {
  const members = new Map();
  for (const row of rows) members.set(row.group, [...(members.get(row.group) ?? []), row]);
  return [...members.values()].map((some) => (some.length === 1 ? some[0] : together(some)));
}

/** The rows to show: each group, and in the place of those in `open` their layers. */
export function unfolded(groups, open) {
  return groups.flatMap((row) => (row.members && open.has(row.name) ? row.members.map((one) => ({ ...one, within: row })) : [row]));
}

/** The names of the layers that a row stands for. */
export function layersOf(row) {
  return row.members ? row.members.map((one) => one.name) : [row.name];
}

function together(members) {
  const [first, last] = [members[0], members.at(-1)];
  const { error, own, inherited, clipped, scale, bits, zero_point, threshold, chosen_by, tensor, shape } = last;
  return {
    ...first,
    ...{ error, own, inherited, clipped, scale, bits, zero_point, threshold, chosen_by, tensor, shape, members },
    op: [first.op, ...members.slice(1).map((one) => one.op.replace(/^\w+\./, ""))].join(" + "),
    is_float: members.every((one) => one.is_float),
    reason: members.find((one) => one.reason)?.reason ?? null,
    macs: members.reduce((sum, one) => sum + one.macs, 0),
    ms: members.some((one) => one.ms !== null) ? members.reduce((sum, one) => sum + (one.ms ?? 0), 0) : null,
    overridden: [...new Set(members.flatMap((one) => one.overridden))],
    imported: [...new Set(members.flatMap((one) => one.imported))],
  };
}
