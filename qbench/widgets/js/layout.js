// Where boxes and arrows go. Networks are long: they are cut where all passes through one box, and each piece is laid out
// by the library, in a worker where one can be had.
import { dagre } from "./dagre.js";

const SPACE = { rankdir: "TB", nodesep: 18, ranksep: 30, edgesep: 12 };

/**
 * A promise of { places: [{ x, y }], lines: [[{ x, y }]], width, height }, x and y of middles, in the order of what is given.
 * `sizes` says [width, height] of each box, `arrows` [from, to] as places of boxes.
 */
export async function layout(sizes, arrows) {
  if (!sizes.length) return { places: [], lines: [], width: 1, height: 1 };
  const pieces = cut(sizes.length, arrows);
  const asked = pieces.map((piece) => ({ ...piece, sizes: piece.boxes.map((at) => sizes[at]) }));
  return joined(sizes, arrows, pieces, await solved(asked));
}

/** Pieces { boxes, arrows, last } of the network: neighbours share a box, and all arrows from one to the next leave there. */
function cut(count, arrows) {
  const spans = arrows.map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
  const reach = new Int32Array(count); // by box: how far arrows go that start at it
  for (const [a, b] of spans) reach[a] = Math.max(reach[a], b);
  const cuts = [0];
  for (let at = 0, far = 0; at < count; at += 1) {
    if (at > 0 && at < count - 1 && far === at) cuts.push(at);
    far = Math.max(far, reach[at]);
  }
  cuts.push(Math.max(0, count - 1));
  const pieces = cuts.slice(1).map((end, i) => ({ boxes: Array.from({ length: end - cuts[i] + 1 }, (_, k) => cuts[i] + k), arrows: [] }));
  let at = 0;
  const order = spans.map((_, i) => i).sort((i, j) => spans[i][0] - spans[j][0]);
  for (const i of order) {
    while (at < pieces.length - 1 && spans[i][0] >= pieces[at].boxes.at(-1)) at += 1;
    pieces[at].arrows.push(i);
  }
  return pieces.map((piece) => ({ boxes: piece.boxes, places: piece.arrows, arrows: piece.arrows.map((i) => arrows[i].map((one) => one - piece.boxes[0])) }));
}

/** By piece: middles of its boxes, and points of its arrows. */
function solve(library, space, pieces) {
  return pieces.map(({ sizes, arrows }) => {
    const graph = new library.graphlib.Graph({ multigraph: true });
    graph.setGraph({ ...space });
    sizes.forEach(([width, height], at) => graph.setNode(String(at), { width, height }));
    const isRead = new Set(arrows.map(([from]) => from));
    const reads = new Set(arrows.map(([, to]) => to));
    arrows.forEach(([from, to], at) => graph.setEdge(String(from), String(to), {}, `a${at}`));
    // the first box stays above all, the last one below: that is where the next piece begins
    const last = sizes.length - 1;
    for (let at = 1; at < sizes.length; at += 1) if (!reads.has(at)) graph.setEdge("0", String(at), { weight: 0 }, `t${at}`);
    for (let at = 0; at < last; at += 1) if (!isRead.has(at)) graph.setEdge(String(at), String(last), { weight: 0 }, `b${at}`);
    try {
      library.layout(graph);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // deeper than the library can go: a column, then
      sizes.forEach(([, height], at) => Object.assign(graph.node(String(at)), { x: 0, y: at * (height + space.ranksep) }));
      arrows.forEach(([from, to], at) => (graph.edge(String(from), String(to), `a${at}`).points = [from, to].map((one) => ({ ...graph.node(String(one)) }))));
    }
    const middles = sizes.map((_, at) => (({ x, y }) => ({ x, y }))(graph.node(String(at))));
    return { middles, lines: arrows.map(([from, to], at) => graph.edge(String(from), String(to), `a${at}`).points) };
  });
}

/** The pieces below each other, each beginning at the box where the one before it ends. */
function joined(sizes, arrows, pieces, found) {
  const places = sizes.map(() => ({ x: 0, y: 0 }));
  const lines = arrows.map(() => []);
  pieces.forEach((piece, i) => {
    const [first, { x, y }] = [places[piece.boxes[0]], found[i].middles[0]];
    const by = i ? { x: first.x - x, y: first.y - y } : { x: 0, y: 0 };
    const moved = (point) => ({ x: point.x + by.x, y: point.y + by.y });
    piece.boxes.forEach((box, at) => (places[box] = moved(found[i].middles[at])));
    piece.places.forEach((arrow, at) => (lines[arrow] = found[i].lines[at].map(moved)));
  });
  const points = [...places, ...lines.flat()];
  const half = [0, 1].map((side) => Math.max(0, ...sizes.map((size) => size[side])) / 2);
  const least = (of, margin) => points.reduce((low, point) => Math.min(low, point[of]), Infinity) - margin;
  const [left, top] = [least("x", half[0]), least("y", half[1])];
  for (const point of points) {
    point.x -= left;
    point.y -= top;
  }
  const most = (of, margin) => points.reduce((high, point) => Math.max(high, point[of]), 0) + margin;
  return { places, lines, width: most("x", half[0]), height: most("y", half[1]) };
}

/** What `solve` gives; the page stays usable meanwhile. */
function solved(pieces) {
  return new Promise((resolve) => {
    const here = () => resolve(solve(dagre(), SPACE, pieces));
    const text = `${dagre}\n${solve}\nonmessage = ({ data }) => postMessage(solve(dagre(), ...data));`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    let worker;
    try {
      worker = new Worker(url);
    } catch {
      return here(); // a page may forbid workers
    }
    const end = (how) => (event) => {
      worker.terminate();
      URL.revokeObjectURL(url);
      how(event);
    };
    worker.onmessage = end(({ data }) => resolve(data));
    worker.onerror = end(here);
    worker.postMessage([SPACE, pieces]);
  });
}
