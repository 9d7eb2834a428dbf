// The graph before and after some passes, aligned by name; what did not change is folded away.
import { h, set } from "./dom.js";
import { compared } from "./tokens.js";

const MARKS = { same: " ", changed: "~", added: "+", removed: "\u2212" };
const CONTEXT = 1;
const FEW = 3; // fewer lines are not worth a fold
const NEAR = 20; // lines around one that is gone to
const FRAMES = 3;

/** Returns { element, draw(view), mark(layer) }; `compare(before, after)` and `select(layer)` are called on demand. */
export function irDiff(compare, select) {
  const before = h("select", { "aria-label": "Before", onchange: () => ask(Number(before.value), Number(after.value)) });
  const after = h("select", { "aria-label": "After", onchange: () => ask(Number(before.value), Number(after.value)) });
  const button = (text, label, action) => h("button", { type: "button", class: "qb-small", title: label, "aria-label": label, onclick: action }, text);
  const back = button("\u25c2", "What the pass before did", () => ask(view.after - 2, view.after - 1));
  const on = button("\u25b8", "What the next pass does", () => ask(view.after, view.after + 1));
  const whole = h("button", { type: "button", class: "qb-small", "aria-pressed": "false", onclick: () => unfold() }, "all lines");
  const summary = h("span", { class: "qb-sub qb-grow", role: "status" });
  const field = h("input", { type: "search", placeholder: "Search", "aria-label": "Search both graphs", oninput: () => search(), onkeydown: (event) => searched(event) });
  const hits = h("span", { class: "qb-sub", role: "status" });
  const lines = h("div", { class: "qb-lines", role: "grid", "aria-label": "The graph before and after", "aria-colcount": 3 });
  const notes = h("div", { class: "qb-notes qb-sub", role: "status" });
  const bar = h("div", { class: "qb-diff-bar" }, h("h3", {}, "Graph"), h("label", {}, "before ", before), h("label", {}, "after ", after), h("span", {}, back, on), whole, summary, field, hits);
  const element = h("section", { class: "qb-diff", "aria-label": "Graph before and after" }, bar, lines, notes);
  let view = null;
  let rows = []; // of the entries that are shown, and the folds between them, in order
  let open = new Set(); // first lines of folds that were opened
  let all = false;
  let chosen = null;
  let found = [];
  let at = -1;
  let byElement = new Map();
  const sight = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) {
        if (!isIntersecting) continue;
        write(byElement.get(target));
        sight.unobserve(target);
      }
    },
    { root: lines, rootMargin: "400px" },
  );

  const ask = (first, second) => compare(first, second);
  const unfold = () => {
    all = !all;
    open = new Set();
    fill();
  };

  function fill() {
    const top = lines.scrollTop;
    const focused = rows.find((row) => row.element === element.ownerDocument.activeElement)?.first;
    set(whole, { "aria-pressed": all ? "true" : "false" });
    const names = ["", `before: ${view.steps[view.before]}`, `after: ${view.steps[view.after]}`];
    const head = h("div", { class: "qb-line qb-diff-head", role: "row" }, names.map((name) => h("span", { role: "columnheader" }, name)));
    rows = groups(view.lines).flatMap(({ first, entries, same }) =>
      same && !all && !open.has(first) ? [fold(first, entries)] : entries.map((entry, i) => line(entry, first + i)),
    );
    sight.disconnect();
    lines.replaceChildren(head, ...rows.map((row) => row.element));
    byElement = new Map(rows.map((row) => [row.element, row]));
    for (const row of rows) if (row.isEmpty) sight.observe(row.element);
    rows.slice(0, NEAR).forEach(write);
    set(lines, { "aria-rowcount": view.lines.length + 1 });
    lines.scrollTop = top;
    mark(chosen, false);
    flag();
    const again = rows.find((row) => row.first === focused);
    reach(again ?? rows[0]);
    if (again) again.element.focus({ preventScroll: true });
  }

  function line(entry, index) {
    const row = h("div", { class: `qb-line qb-${entry.kind}${entry.layer === null ? "" : " qb-leads"}`, role: "row", "aria-hidden": "true", tabindex: -1, "aria-rowindex": index + 2 });
    return { element: row, entry, layer: entry.layer, first: index, last: index, isEmpty: true };
  }

  /** The text of a line, once it comes in sight: most of a long graph never does. */
  function write(row) {
    if (!row.isEmpty) return;
    row.isEmpty = false;
    const { kind, left, right } = row.entry;
    const sides = kind === "changed" ? compared(left, right) : [[[left, false]], [[right, false]]];
    const code = (pieces) => h("code", { role: "gridcell" }, pieces.map(([text, differs]) => (differs ? h("mark", {}, text) : text)));
    set(row.element, { "aria-hidden": null });
    row.element.append(h("span", { class: "qb-gutter", role: "gridcell", "aria-label": kind, title: kind }, MARKS[kind]), ...sides.map(code));
  }

  function fold(first, entries) {
    const text = `${entries.length} lines the same`;
    const cell = h("span", { role: "gridcell", class: "qb-fold" }, `\u22ef ${text}: show them`);
    const row = h("div", { class: "qb-line", role: "row", tabindex: -1, "aria-rowindex": first + 2 }, cell);
    return { element: row, first, last: first + entries.length - 1, layers: new Set(entries.map((entry) => entry.layer)), text, cell };
  }

  /** Where only texts are others than before, as after most edits, only those lines are written that changed. */
  function renew() {
    for (const row of rows) {
      if (row.layers) continue;
      const { left, right } = row.entry;
      row.entry = view.lines[row.first];
      if (row.isEmpty || (row.entry.left === left && row.entry.right === right)) continue;
      row.element.replaceChildren();
      row.isEmpty = true;
      write(row);
    }
  }

  /** The row that the tab key leads to. */
  function reach(row) {
    for (const one of rows) if (one.element.tabIndex === 0) set(one.element, { tabindex: -1 });
    if (row) set(row.element, { tabindex: 0 });
  }

  /** Scroll the lines, and never the page, to a row; again as the rows near it are laid out, which takes some frames. */
  function reveal(row) {
    const index = rows.indexOf(row);
    rows.slice(Math.max(0, index - NEAR), index + NEAR).forEach(write);
    const follow = (frames) => {
      if (!row.element.isConnected) return;
      scroll(row);
      if (frames) requestAnimationFrame(() => follow(frames - 1));
    };
    follow(FRAMES);
  }

  function scroll(row) {
    const top = row.element.offsetTop - lines.firstChild.offsetHeight;
    const bottom = row.element.offsetTop + row.element.offsetHeight - lines.clientHeight;
    if (lines.scrollTop > top) lines.scrollTop = top;
    else if (lines.scrollTop < bottom) lines.scrollTop = bottom;
  }

  function mark(layer, scrolls = true) {
    chosen = layer;
    const here = (row) => layer !== null && (row.layers ? row.layers.has(layer) : row.layer === layer);
    for (const row of rows) {
      const is = here(row);
      if (row.isHere === is) continue;
      row.isHere = is;
      row.element.classList.toggle("qb-here", is);
      if (row.cell) row.cell.textContent = `\u22ef ${row.text}${is ? ", the chosen layer among them" : ""}: show them`;
      else set(row.element, { "aria-selected": is ? "true" : "false" });
    }
    const marked = rows.filter(here);
    const seen = (row) => row.element.offsetTop >= lines.scrollTop && row.element.offsetTop < lines.scrollTop + lines.clientHeight;
    if (scrolls && marked.length && !marked.some(seen)) reveal(marked[0]);
  }

  function use(row) {
    if (!row) return;
    focus(row);
    if (row.layers) {
      open.add(row.first);
      fill();
      focus(rows.find((one) => one.first === row.first));
    } else if (row.layer !== null && row.layer !== chosen) {
      mark(row.layer, false);
      select(row.layer);
    }
  }

  function focus(row) {
    if (!row) return;
    write(row); // what is hidden from screen readers cannot have the focus
    reach(row);
    row.element.focus({ preventScroll: true });
    reveal(row);
  }

  const rowOf = (event) => byElement.get(event.target.closest(".qb-line"));
  lines.addEventListener("click", (event) => use(rowOf(event)));
  lines.addEventListener("keydown", (event) => {
    const index = rows.findIndex((row) => row.element === event.target);
    if (index < 0) return;
    if (event.key === "Enter" || event.key === " ") use(rows[index]);
    else {
      const last = rows.length - 1;
      const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + 10, PageUp: index - 10, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      focus(rows[Math.max(0, Math.min(last, to))]);
    }
    event.preventDefault();
    event.stopPropagation();
  });
  const explain = (event) => {
    const entry = rowOf(event)?.entry;
    if (entry) notes.textContent = [entry.kind, ...entry.notes].join(" \u00b7 ");
  };
  lines.addEventListener("focusin", explain);
  lines.addEventListener("pointerover", explain);

  function search() {
    const wanted = field.value.toLowerCase();
    found = wanted ? view.lines.flatMap((entry, i) => (`${entry.left}\n${entry.right}`.toLowerCase().includes(wanted) ? [i] : [])) : [];
    at = found.length ? 0 : -1;
    show();
  }

  function searched(event) {
    event.stopPropagation();
    if (event.key === "Escape" && field.value) {
      field.value = "";
      search();
    } else if (event.key === "Enter" && found.length) {
      at = (at + (event.shiftKey ? -1 : 1) + found.length) % found.length;
      show();
    }
  }

  /** The hit that it is at, its fold opened. */
  function show() {
    const index = found[at];
    const hidden = index !== undefined && rows.find((row) => row.layers && row.first <= index && index <= row.last);
    if (hidden) {
      open.add(hidden.first);
      fill();
    }
    flag();
    const row = rows.find((one) => one.first === index);
    if (row) reveal(row);
  }

  function flag() {
    const hit = new Set(found);
    for (const row of rows) {
      row.element.classList.toggle("qb-hit", !row.layers && hit.has(row.first));
      row.element.classList.toggle("qb-hit-now", !row.layers && row.first === found[at]);
    }
    hits.textContent = field.value ? (found.length ? `${at + 1} of ${found.length}` : "not found") : "";
  }

  return {
    element,
    mark,
    draw(next) {
      const alike = view && view.lines.length === next.lines.length && view.lines.every((entry, i) => entry.kind === next.lines[i].kind && entry.layer === next.lines[i].layer);
      const other = !view || view.before !== next.before || view.after !== next.after;
      view = next;
      for (const [list, value] of [[before, view.before], [after, view.after]]) {
        list.replaceChildren(...view.steps.map((name, i) => h("option", { value: i, selected: i === value }, `${i} ${name}`)));
        list.value = String(value);
      }
      set(back, { disabled: view.after < 2 });
      set(on, { disabled: view.after >= view.steps.length - 1 });
      const tally = (kind) => view.lines.filter((entry) => entry.section === "node" && entry.kind === kind).length;
      summary.textContent = `nodes: ${["changed", "added", "removed", "same"].map((kind) => `${tally(kind)} ${kind}`).join(", ")}`;
      if (other) {
        open = new Set();
        lines.scrollTop = 0;
        notes.textContent = "";
      }
      const was = at;
      found = [];
      if (alike && !other) renew();
      else fill();
      if (field.value) {
        search();
        at = Math.min(Math.max(was, 0), found.length - 1);
        flag();
      }
      if (other) mark(chosen);
    },
  };
}

function groups(entries) {
  const near = new Uint8Array(entries.length);
  entries.forEach((entry, i) => entry.kind !== "same" && near.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1));
  const found = [];
  entries.forEach((entry, i) => {
    const same = !near[i];
    if (found.at(-1)?.same !== same) found.push({ same, first: i, entries: [] });
    found.at(-1).entries.push(entry);
  });
  return found.map((group) => (group.entries.length < FEW ? { ...group, same: false } : group));
}
