// Boxes put together: fused groups, or what has the beginning of its name in common, as one box that opens.

const PARTS = /[/.:]+/;
const FEW = 4; // fewer groups tell nothing

export const FOLDS = [
  ["fused", "fused steps"],
  ["prefix", "names"],
  ["none", "every layer"],
];

/**
 * What is drawn of a graph's boxes: { boxes: [{ id, name, op, dtype, members, layers, group }], arrows: [[from, to]] }.
 * `stepOf` gives a layer's fused group; `open` has the names of groups whose boxes are drawn one by one.
 */
export function folded(boxes, how, stepOf, open) {
  const keys = boxes.map(how === "prefix" ? beginnings(boxes) : how === "fused" ? (box) => (box.layer === null ? null : stepOf(box.layer)) : () => null);
  const sizes = new Map();
  for (const key of keys) sizes.set(key, (sizes.get(key) ?? 0) + 1);
  const drawn = new Map(); // by id, in the order of their first members
  const ids = boxes.map((box, at) => {
    const group = keys[at] !== null && sizes.get(keys[at]) > 1 ? keys[at] : null;
    const id = group !== null && !open.has(group) ? `group ${group}` : `box ${at}`;
    drawn.set(id, [...(drawn.get(id) ?? []), { ...box, group }]);
    return id;
  });
  const order = new Map([...drawn.keys()].map((id, at) => [id, at]));
  const arrows = new Map();
  boxes.forEach((box, at) => {
    for (const read of box.reads) if (ids[read] !== ids[at]) arrows.set(`${ids[read]} ${ids[at]}`, [order.get(ids[read]), order.get(ids[at])]);
  });
  return { boxes: [...drawn].map(([id, members]) => together(id, members, how)), arrows: [...arrows.values()] };
}

function together(id, members, how) {
  const layers = [...new Set(members.map((one) => one.layer).filter((one) => one !== null))];
  const [first, last] = [members[0], members.at(-1)];
  const ops = [...new Set(members.map((one) => one.op.replace(/^\w+\./, "")))];
  const many = members.length > 1;
  const op = !many ? first.op : how === "fused" && ops.length < 5 ? ops.join(" + ") : `${members.length} boxes`;
  return { id, name: many ? first.group : first.name, op, dtype: last.dtype, members: members.length, layers, group: first.group };
}

/** Gives the beginning of a box's name: as many parts as it takes to have some groups. */
function beginnings(boxes) {
  const parts = boxes.map((box) => box.name.split(PARTS).filter(Boolean));
  const most = parts.reduce((high, some) => Math.max(high, some.length), 0);
  const at = (depth) => (some) => (some.length > depth ? some.slice(0, depth).join(".") : null);
  let depth = 1;
  while (depth < most && new Set(parts.map(at(depth))).size < FEW) depth += 1;
  return (box) => at(depth)(box.name.split(PARTS).filter(Boolean));
}
