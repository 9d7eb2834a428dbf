// Which words of two lines differ.

const WORD = /[%@]?[\w.\-]+|\s+|./gsu;
const MOST = 160;

/** Pieces of both lines: [[text, differs], ...] for the left one and the right one. */
export function compared(left, right) {
  const [a, b] = [left.match(WORD) ?? [], right.match(WORD) ?? []];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const kept = middle.every((words) => words.length <= MOST) ? common(...middle) : [new Set(), new Set()];
  return [a, b].map((words, side) => joined(words.map((word, i) => [word, i >= start && i < words.length - end && !kept[side].has(i - start)])));
}

/** Indexes of the longest common subsequence. */
function common(a, b) {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const found = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      found[0].add(i);
      found[1].add(j);
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

/** Neighbours of a kind as one; a space between two words that differ does, too. */
function joined(pieces) {
  const found = [];
  pieces.forEach(([text, differs], i) => {
    const between = !text.trim() && pieces[i - 1]?.[1] && pieces[i + 1]?.[1];
    if (found.length && found.at(-1)[1] === (differs || Boolean(between))) found.at(-1)[0] += text;
    else found.push([text, differs || Boolean(between)]);
  });
  return found;
}
