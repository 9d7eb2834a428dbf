// The table of all layers: what each runs as, and what that costs.
import { h, set } from "./dom.js";
import { count, decibels, number, percent, short } from "./numbers.js";

const GOOD_DB = 50;

/** Returns { element, draw(view, selected) }; `select(name)` is called with the layer that was chosen. */
export function layerTable(select) {
  const body = h("tbody");
  const heads = [
    ["Layer", "", "op and shape of the output"],
    ["Runs as", "", "what the layer computes with, and why where that is float"],
    ["Scale", "qb-number", "one step of the integers, and their zero point"],
    ["Clipped", "qb-number", "fraction of the values outside of what the integers can say"],
    ["SQNR dB", "qb-number", "signal to quantization noise at the layer's output, errors of earlier layers included"],
  ];
  const head = h("tr", {}, heads.map(([text, kind, title]) => h("th", { class: kind, scope: "col", title }, text)));
  const table = h("table", { class: "qb-layers", "aria-label": "Layers" }, h("thead", {}, head), body);
  const element = h("div", { class: "qb-scroll" }, table);
  let rows = [];
  let chosen = null;

  const mark = (name) => {
    chosen = name;
    for (const row of rows) {
      set(row.element, { "aria-selected": row.name === name ? "true" : "false", tabindex: row.name === name ? 0 : -1 });
    }
    if (rows.length && !rows.some((row) => row.name === name)) set(rows[0].element, { tabindex: 0 });
    reveal(rows.find((row) => row.name === name)?.element);
  };
  /** Scroll the table, and never the page, to a row. */
  const reveal = (row) => {
    if (!row) return;
    const top = row.offsetTop - head.offsetHeight;
    const bottom = row.offsetTop + row.offsetHeight - element.clientHeight;
    if (element.scrollTop > top) element.scrollTop = top;
    else if (element.scrollTop < bottom) element.scrollTop = bottom;
  };
  const choose = (row) => {
    if (!row) return;
    row.element.focus({ preventScroll: true });
    if (row.name === chosen) return;
    mark(row.name);
    select(row.name);
  };
  body.addEventListener("click", (event) => choose(rows.find((row) => row.element.contains(event.target))));
  body.addEventListener("keydown", (event) => {
    const index = rows.findIndex((row) => row.element === event.target);
    const last = rows.length - 1;
    const to = { ArrowDown: Math.min(index + 1, last), ArrowUp: Math.max(index - 1, 0), Home: 0, End: last, Enter: index }[event.key];
    if (index < 0 || to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    choose(rows[to]);
  });

  return {
    element,
    mark,
    draw(view, selected) {
      const focused = rows.find((row) => row.element === element.ownerDocument.activeElement)?.name;
      rows = view.rows.map((row) => ({ name: row.name, element: line(row, row.name === view.worst) }));
      body.replaceChildren(...rows.map((row) => row.element));
      mark(selected);
      rows.find((row) => row.name === focused)?.element.focus({ preventScroll: true });
    },
  };
}

function line(row, worst) {
  const isFloat = row.runs_as.includes("float");
  const bits = row.bits === null ? "" : `${row.bits} bit${Array.isArray(row.scale) ? ", per channel" : ""}`;
  const set_by = row.overridden.length ? h("span", { class: "qb-mark", title: `you set: ${row.overridden.join(", ")}` }, "edited") : null;
  return h(
    "tr",
    { role: "row", "aria-label": row.name.slice(0, 200) },
    h(
      "td",
      {},
      h("div", { class: "qb-name", title: row.name.slice(0, 400) }, short(row.name, 40), set_by),
      h("div", { class: "qb-sub" }, `${row.op} \u00b7 ${row.shape.replaceAll(" x ", "\u00d7")}`),
    ),
    h(
      "td",
      {},
      h("div", { class: isFloat ? "qb-float" : "" }, row.runs_as),
      h("div", { class: "qb-sub", title: row.reason ?? row.chosen_by ?? "" }, row.reason ?? row.chosen_by ?? ""),
    ),
    h("td", { class: "qb-number" }, h("div", {}, number(row.scale)), h("div", { class: "qb-sub" }, bits)),
    h("td", { class: "qb-number" }, percent(row.clipped)),
    h("td", { class: "qb-number" }, quality(row, worst)),
  );
}

function quality(row, worst) {
  if (row.sqnr_db === null) return decibels(null);
  const db = row.sqnr_db === "inf" ? Infinity : Number(row.sqnr_db);
  const share = Math.max(0, Math.min(1, db / GOOD_DB));
  const level = db < 15 ? "bad" : db < 25 ? "poor" : "good";
  const weight = row.weight_sqnr_db === null ? null : h("div", { class: "qb-sub" }, `weight ${decibels(row.weight_sqnr_db)}`);
  const work = row.macs ? `${count(row.macs)} multiply-adds per sample` : null;
  return h(
    "div",
    { title: work },
    h("div", { class: "qb-spread" }, worst ? h("span", { class: "qb-worst", title: "the lowest of all layers" }, "lowest") : null, h("span", {}, decibels(row.sqnr_db))),
    h("div", { class: "qb-bar" }, h("div", { class: `qb-${level}`, style: `width:${(100 * share).toFixed(1)}%` })),
    weight,
  );
}
