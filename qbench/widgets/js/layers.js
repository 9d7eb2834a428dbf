// The table of all layers: what each runs as, and what that costs. Only the rows in sight are in the page.
import { bulkBar } from "./bulk.js";
import { columnChooser } from "./chooser.js";
import { COLUMNS, nameCell, order, runsAs } from "./columns.js";
import { fill, h, set, unique } from "./dom.js";
import { grouped, layersOf, unfolded } from "./groups.js";

const ROW = 26; // px, as in layers.css
const SPARE = 6; // rows drawn beyond what is in sight
const PATIENCE = 150; // ms between the layers that are looked at while a key is held
const FORGET = 3000; // ms until an answer of the kernel counts again that is not the one waited for
const FILTERS = [
  ["all", "all layers", () => true],
  ["quantized", "quantized", (row) => !row.is_float],
  ["float", "in float", (row) => row.is_float],
  ["edited", "edited", (row) => row.overridden.length > 0],
  ["imported", "imported", (row) => row.imported.length > 0],
  ["error", "SQNR below 25 dB", (row) => row.error !== null && row.error.level !== "low"],
  ["own", "own SQNR below 25 dB", (row) => row.own !== null && row.own.level !== "low"],
  ["selected", "selected", (row, selected) => selected.has(row.name)],
];
const BOX = 30; // px of the checkbox
const SPARED = ["ms", "op", "why"]; // columns that go first where there is little room

/** Returns { element, draw(view, chosen), mark(name), point(names), resize() }; `send(message)` talks to the kernel, `picks(names)` is told which layers are selected. */
export function layerTable(send, picks = () => {}) {
  const id = unique("qb-layers");
  let view = { rows: [], worst: null };
  let groups = []; // a row for each fused group
  let rows = []; // those that the filter leaves, sorted, and the layers of groups that are open
  let columns = COLUMNS;
  let heads = [];
  let chosen = null;
  let sorted = null; // { column, descends }
  let anchor = null; // where a range of selected layers starts
  let awaited = null; // { name, until }: what the kernel was asked for
  let told = 0;
  let timer = null;
  let isPlaced = false; // whether the chosen row was scrolled to
  let isHeld = false; // whether the reader has been in the table: from then on it scrolls for no number
  const selected = new Set();
  let hinted = new Set(); // layers of a repair that is pointed at
  const open = new Set(); // groups whose layers have rows of their own
  const known = new Map(); // elements of rows by name

  const search = h("input", { type: "search", class: "qb-search", placeholder: "Filter layers", "aria-label": "Filter layers by name, op, type or reason", oninput: () => arrange(true) });
  const filter = h("select", { "aria-label": "Which layers", onchange: () => arrange(true) }, FILTERS.map(([key, label]) => h("option", { value: key }, label)));
  const tally = h("span", { class: "qb-sub", role: "status" });
  const legend = h(
    "span",
    { class: "qb-sub qb-legend" },
    h("span", { class: "qb-bar" }, h("span", { class: "qb-own" })), " own noise",
    h("span", { class: "qb-bar" }, h("span", { class: "qb-inherited" })), " inherited: longer is more",
  );
  const bulk = bulkBar((message) => send({ ...message, where: "layers" }), () => choose(new Set()));
  const everyone = h("input", { type: "checkbox", tabindex: -1, "aria-label": "Select all layers shown", onchange: () => choose(new Set(everyone.checked ? rows.flatMap(layersOf) : [])) });
  const unfold = h("input", { type: "checkbox", onchange: () => fold(unfold.checked) });
  const chooser = columnChooser(COLUMNS, () => build());
  const measure = h("button", { type: "button", class: "qb-small", title: "Put each layer alone in float and measure what the output gains: on the samples of the probe, in the background; Stop ends it", onclick: () => send({ do: "sensitivity", where: "layers" }) }, "Sensitivity");
  const tip = h("p", { class: "qb-sub qb-tip", "aria-live": "polite", hidden: true });
  const head = h("div", { role: "row", class: "qb-row qb-heads", "aria-rowindex": 1 });
  const body = h("div", { role: "rowgroup", class: "qb-body" });
  const grid = h(
    "div",
    { role: "grid", class: "qb-table", tabindex: 0, "aria-label": "Layers", "aria-multiselectable": "true" },
    h("div", { role: "rowgroup", class: "qb-head-group" }, head),
    body,
  );
  const nothing = h("p", { class: "qb-nothing", hidden: true }, "No layer fits the filter. ", h("button", { type: "button", class: "qb-small", onclick: () => clear() }, "Show all layers"));
  const element = h(
    "section",
    { class: "qb-layers", "aria-label": "Layers", "data-where": "layers" },
    h("div", { class: "qb-table-bar" }, search, filter, h("label", { title: "A row for each layer of a fused step too" }, unfold, "unfold"), chooser.element, measure, tally, legend),
    tip,
    bulk.element,
    grid,
    nothing,
  );

  // which rows, and where

  function arrange(top = false) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [, , fits] = FILTERS.find(([key]) => key === filter.value);
    const asked = (row) => (row.members ?? [row]).some((one) => fits(one, selected));
    rows = unfolded(groups, open).filter((row) => asked(row) && words.every((word) => said(row).includes(word)));
    if (sorted) rows.sort(order(sorted.column, sorted.descends));
    columns.forEach((column, i) => {
      const direction = sorted?.column !== column ? "none" : sorted.descends ? "descending" : "ascending";
      set(heads[i], { "aria-sort": direction });
    });
    const [all, some] = [groups, rows].map((list) => list.reduce((sum, row) => sum + layersOf(row).length, 0));
    tally.textContent = some === all ? `${all} ${all === 1 ? "layer" : "layers"}` : `${some} of ${all} layers`;
    set(grid, { "aria-rowcount": rows.length + 1 });
    set(nothing, { hidden: rows.length > 0 || all === 0 });
    body.style.height = `${rows.length * ROW}px`;
    grid.style.setProperty("--qb-rows", String(Math.max(3, rows.length)));
    if (top) grid.scrollTop = 0;
    paint();
  }
  function sort(column) {
    const first = sorted?.column !== column;
    const done = !first && sorted.descends !== column.descends;
    sorted = done ? null : { column, descends: first ? column.descends : !column.descends };
    arrange(true);
  }
  function fold(isOpen) {
    for (const row of groups) if (isOpen && row.members) open.add(row.name);
    if (!isOpen) open.clear();
    known.clear();
    arrange();
    reveal();
  }
  function toggleGroup(name) {
    if (!open.delete(name)) open.add(name);
    known.clear();
    arrange();
  }
  /** The heads of the chosen columns, and how wide all are. */
  function build() {
    columns = fitting();
    heads = columns.map((column, i) => {
      const button = h("button", { type: "button", tabindex: i ? -1 : 0, title: `${column.tip}. Click to sort.`, onclick: () => sort(column) }, h("span", {}, column.label), h("span", { class: "qb-arrow", "aria-hidden": "true" }));
      return h("div", { role: "columnheader", "aria-colindex": i + 2, "aria-sort": "none", class: `qb-cell qb-${column.kind} qb-col-${column.key}` }, button);
    });
    head.replaceChildren(h("div", { role: "columnheader", class: "qb-cell qb-check", "aria-colindex": 1 }, everyone), ...heads);
    set(grid, { "aria-colcount": columns.length + 1 });
    grid.style.setProperty("--qb-columns", [`${BOX}px`, ...columns.map((column) => column.width)].join(" "));
    grid.style.setProperty("--qb-least", `${least(columns)}px`);
    if (sorted && !columns.includes(sorted.column)) sorted = null;
    known.clear();
    arrange();
  }
  /** The chosen columns; where nobody chose, those that there is room for. */
  function fitting() {
    const isMeasured = view.rows.some((row) => (row.alone_db ?? null) !== null);
    let found = chooser.shown().filter((column) => isMeasured || column.key !== "alone");
    if (chooser.isChosen() || !element.clientWidth) return found;
    for (const key of SPARED) if (least(found) > element.clientWidth) found = found.filter((column) => column.key !== key);
    return found;
  }
  function clear() {
    search.value = "";
    filter.value = "all";
    arrange();
    grid.focus();
  }

  // drawing

  function paint() {
    const height = Math.max(grid.clientHeight, 14 * ROW);
    const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - SPARE);
    const last = Math.min(rows.length, Math.ceil((grid.scrollTop + height) / ROW) + SPARE);
    const shown = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    const active = placeOf(chosen);
    if (active >= 0 && (active < first || active >= last)) shown.push(active); // a screen reader is there
    const lines = shown.map(place);
    fill(body, lines);
    set(grid, { "aria-activedescendant": active < 0 ? null : `${id}-${active}` });
    const count = rows.filter((row) => isPicked(row)).length;
    everyone.checked = count > 0 && count === rows.length;
    everyone.indeterminate = count > 0 && count < rows.length;
  }
  /** Where a layer is: its own row, or that of its group while that is folded. */
  function placeOf(name) {
    return rows.findIndex((row) => layersOf(row).includes(name));
  }
  function isPicked(row) {
    return layersOf(row).every((name) => selected.has(name));
  }
  /** The element of a row, made once for each time that there are new numbers. */
  function place(index) {
    const row = rows[index];
    if (!known.has(row.name)) known.set(row.name, line(row));
    const element = known.get(row.name);
    const isSelected = isPicked(row);
    element.dataset.index = index;
    element.style.top = `${index * ROW}px`;
    element.querySelector("input").checked = isSelected;
    element.classList.toggle("qb-hinted", layersOf(row).some((name) => hinted.has(name)));
    return set(element, {
      id: `${id}-${index}`,
      "aria-rowindex": index + 2,
      "aria-selected": isSelected ? "true" : "false",
      "aria-current": index === placeOf(chosen) ? "true" : null,
    });
  }
  function line(row) {
    const isWorst = layersOf(row).includes(view.worst);
    const worst = isWorst ? h("span", { class: "qb-mark qb-worst", title: view.worst_why }, "worst") : null;
    const box = h("input", { type: "checkbox", tabindex: -1, "aria-label": `Select ${row.name.slice(0, 200)}` });
    const cells = columns.map((column, i) =>
      h("div", { role: "gridcell", "aria-colindex": i + 2, class: `qb-cell qb-${column.kind} qb-col-${column.key}` }, column.key === "name" ? nameCell(row, worst, folder(row)) : (column.cell(row) ?? dash())),
    );
    return h("div", { role: "row", class: "qb-row" }, h("div", { role: "gridcell", class: "qb-cell qb-check", "aria-colindex": 1 }, box), cells);
  }
  function folder(row) {
    const isOpen = row.within?.name === row.name;
    if (!row.members && !isOpen) return null;
    const said = `${isOpen ? "Fold" : "Unfold"} the ${(row.within ?? row).members.length} layers of this step`;
    return h("button", { type: "button", tabindex: -1, class: "qb-fold", "aria-expanded": isOpen ? "true" : "false", "aria-label": said, title: said }, isOpen ? "\u25be" : "\u25b8");
  }
  /** Scroll the table, and never the page, to the chosen row. */
  function reveal() {
    const index = placeOf(chosen);
    const room = grid.clientHeight - head.offsetHeight;
    if (index < 0 || room <= 0) return;
    if (!isPlaced) grid.scrollTop = (index + 0.5) * ROW - room / 2; // at first in the middle
    else if (grid.scrollTop > index * ROW) grid.scrollTop = index * ROW;
    else if (grid.scrollTop < (index + 1) * ROW - room) grid.scrollTop = (index + 1) * ROW - room;
    isPlaced = true;
    paint();
  }

  // choosing one to look at, and selecting many to edit

  function look(index) {
    const row = rows[index];
    if (!row || (row.name === chosen && index === placeOf(chosen))) return reveal();
    chosen = row.name;
    awaited = { name: chosen, until: Date.now() + FORGET };
    reveal();
    clearTimeout(timer);
    const ask = () => {
      told = Date.now();
      send({ do: "select", layer: chosen });
    };
    const rest = told + PATIENCE - Date.now();
    if (rest <= 0) ask();
    else timer = setTimeout(ask, rest);
  }
  /** Have a row in sight. */
  function show(index) {
    if (index >= 0 && (index * ROW < grid.scrollTop || (index + 2) * ROW > grid.scrollTop + grid.clientHeight)) grid.scrollTop = index * ROW;
  }
  function choose(names) {
    selected.clear();
    for (const one of names) selected.add(one);
    picks([...selected]);
    bulk.draw(view.bulk, picked());
    if (filter.value === "selected") arrange();
    else paint();
  }
  /** What is selected: groups where all of their layers are. */
  function picked() {
    return groups.flatMap((row) => (isPicked(row) ? [row] : (row.members ?? []).filter((one) => selected.has(one.name))));
  }
  function toggle(index) {
    const [names, row] = [new Set(selected), rows[index]];
    const isSelected = isPicked(row);
    for (const name of layersOf(row)) isSelected ? names.delete(name) : names.add(name);
    anchor = row.name;
    choose(names);
  }
  function range(index, more) {
    const start = placeOf(anchor ?? chosen);
    const [low, high] = [Math.min(start < 0 ? index : start, index), Math.max(start, index)];
    anchor ??= chosen;
    choose(new Set([...(more ? selected : []), ...rows.slice(low, high + 1).flatMap(layersOf)]));
  }

  const at = (event) => Number(event.target.closest(".qb-row[data-index]")?.dataset.index ?? -1);
  body.addEventListener("mousedown", (event) => {
    if (event.shiftKey) event.preventDefault(); // selects rows, not text
  });
  body.addEventListener("click", (event) => {
    const index = at(event);
    if (index < 0) return;
    grid.focus({ preventScroll: true });
    if (event.target.closest(".qb-fold")) return toggleGroup(rows[index].name);
    const boxed = event.target.closest(".qb-check");
    if (event.shiftKey) range(index, true);
    else if (boxed || event.ctrlKey || event.metaKey) toggle(index);
    if (event.shiftKey || boxed) return;
    anchor = rows[index].name;
    look(index);
  });
  grid.addEventListener("keydown", (event) => {
    if (event.target !== grid) return;
    const index = placeOf(chosen);
    const page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
    const last = rows.length - 1;
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: last, Enter: index }[event.key];
    if (to !== undefined && last >= 0) {
      const goal = Math.min(last, Math.max(0, to));
      if (event.shiftKey) range(goal, false);
      else anchor = rows[goal].name;
      look(goal);
    } else if (event.key === " " && index >= 0) toggle(index);
    else if (event.key === "ArrowRight" && rows[index]?.members) toggleGroup(rows[index].name);
    else if (event.key === "ArrowLeft" && rows[index]?.within) toggleGroup(rows[index].within.name);
    else if (event.key === "Escape" && selected.size) choose(new Set());
    else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) choose(new Set(rows.flatMap(layersOf)));
    else if (event.key === "/") search.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  head.addEventListener("keydown", (event) => {
    const buttons = heads.map((one) => one.firstChild);
    const index = buttons.indexOf(event.target);
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (index < 0 || !buttons[to]) return;
    event.preventDefault();
    buttons[to].focus();
  });
  head.addEventListener("focusin", (event) => {
    if (event.target === everyone) return;
    for (const { firstChild } of heads) set(firstChild, { tabindex: firstChild === event.target ? 0 : -1 });
    explain(event);
  });
  head.addEventListener("pointerover", explain);
  for (const leaves of ["focusout", "pointerleave"]) head.addEventListener(leaves, () => set(tip, { hidden: true }));
  function explain(event) {
    const at = heads.findIndex((one) => one.contains(event.target));
    if (at >= 0) tip.textContent = `${columns[at].label}: ${columns[at].tip}.`;
    set(tip, { hidden: at < 0 });
  }
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && event.key !== "Enter" && event.key !== "ArrowDown") return;
    if (event.key === "Escape") clear();
    else grid.focus();
    event.preventDefault();
  });
  grid.addEventListener("scroll", paint, { passive: true });
  for (const act of ["wheel", "pointerdown", "keydown", "touchmove"]) grid.addEventListener(act, () => (isHeld = true), { passive: true });
  new ResizeObserver(() => paint()).observe(grid);
  build();

  return {
    element,
    draw(next, name) {
      view = next;
      groups = grouped(view.rows);
      known.clear();
      if (name !== undefined && !awaited) chosen = name;
      const names = new Set(view.rows.map((row) => row.name));
      for (const one of selected) if (!names.has(one)) selected.delete(one);
      bulk.draw(view.bulk, picked());
      if (fitting().length === columns.length) arrange();
      else build();
    },
    /** Layers are selected elsewhere; the first of them comes in sight. */
    choose(names) {
      choose(new Set(names));
      show(rows.findIndex((row) => isPicked(row) && selected.size));
    },
    /** Layers are pointed at elsewhere: they are marked while they are, and the first of them comes in sight. */
    point(names) {
      hinted = new Set(names);
      show(rows.findIndex((row) => layersOf(row).some((name) => hinted.has(name))));
      paint();
    },
    /** Another layer is shown; while one is asked for, answers to earlier requests do not count. */
    mark(name) {
      if (awaited && awaited.name !== name && Date.now() < awaited.until) return;
      awaited = null;
      if (name === chosen) return;
      chosen = name;
      reveal();
    },
    resize() {
      const before = columns.length;
      if (element.clientWidth > 0 && fitting().length !== before) build();
      if (!isHeld) reveal();
    },
  };
}

/** px that columns take at least. */
function least(columns) {
  return columns.reduce((sum, { width }) => sum + Number(width.match(/\d+/)[0]), BOX);
}

function said(row) {
  return (row.members ?? [row]).map((one) => `${one.name} ${one.op} ${runsAs(one)} ${one.reason ?? ""} ${one.chosen_by ?? ""}`).join(" ").toLowerCase();
}

function dash() {
  return h("span", { class: "qb-none", "aria-label": "none" }, "\u2013");
}
