// The graph before and after some passes, aligned by name; what did not change is folded away.
import { h, set } from "./dom.js";

const MARKS = { same: " ", changed: "~", added: "+", removed: "\u2212" };
const WORDS = { same: "", changed: "changed", added: "added", removed: "removed" };
const CONTEXT = 1;

/** Returns { element, draw(view), mark(layer) }; `compare(before, after)` and `select(layer)` are called on demand. */
export function irDiff(compare, select) {
  const before = h("select", { "aria-label": "Before", onchange: () => ask() });
  const after = h("select", { "aria-label": "After", onchange: () => ask() });
  const summary = h("span", { class: "qb-sub" });
  const lines = h("div", { class: "qb-lines", role: "table", "aria-label": "The graph before and after" });
  const bar = h("div", { class: "qb-diff-bar" }, h("h3", {}, "Graph"), h("label", {}, "before ", before), h("label", {}, "after ", after), summary);
  const element = h("section", { class: "qb-diff", "aria-label": "Graph before and after" }, bar, lines);
  let rows = [];
  let chosen = null;
  const ask = () => compare(Number(before.value), Number(after.value));

  const mark = (layer) => {
    chosen = layer;
    for (const row of rows) row.element.classList.toggle("qb-here", row.layer !== null && row.layer === layer);
  };
  const line = (entry) => {
    const button = entry.layer === null ? {} : { onclick: () => select(entry.layer) };
    const cells = [
      h("span", { class: "qb-gutter", role: "cell", "aria-label": WORDS[entry.kind] || null, title: WORDS[entry.kind] }, MARKS[entry.kind]),
      h("code", { role: "cell" }, entry.left),
      h("code", { role: "cell" }, entry.right),
    ];
    const row = h("div", { class: `qb-line qb-${entry.kind}`, role: "row", title: entry.notes.join("\n") || null, ...button }, cells);
    rows.push({ element: row, layer: entry.layer });
    return row;
  };
  const fold = (entries) => {
    const button = h("button", { type: "button", class: "qb-fold" }, `${entries.length} lines the same`);
    button.addEventListener("click", () => {
      button.replaceWith(...entries.map(line));
      mark(chosen);
    });
    return button;
  };

  return {
    element,
    mark,
    draw(view) {
      for (const [list, value] of [[before, view.before], [after, view.after]]) {
        list.replaceChildren(...view.steps.map((name, i) => h("option", { value: i, selected: i === value }, `${i} ${name}`)));
        list.value = String(value);
      }
      const tally = (kind) => view.lines.filter((entry) => entry.section === "node" && entry.kind === kind).length;
      summary.textContent = ["changed", "added", "removed", "same"].map((kind) => `${tally(kind)} ${kind}`).join(", ");
      rows = [];
      lines.replaceChildren(...groups(view.lines).map((group) => (group.same ? fold(group.entries) : group.entries.map(line))).flat());
      mark(chosen);
    },
  };
}

function groups(entries) {
  const differs = entries.map((entry) => entry.kind !== "same");
  const near = (i) => differs.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some(Boolean);
  const found = [];
  entries.forEach((entry, i) => {
    const same = !near(i);
    if (found.at(-1)?.same !== same) found.push({ same, entries: [] });
    found.at(-1).entries.push(entry);
  });
  return found.map((group) => (group.entries.length < 3 ? { ...group, same: false } : group));
}
