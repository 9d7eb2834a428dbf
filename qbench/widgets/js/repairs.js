// What to do: repairs that were measured, the best first, with what each gives back and costs.
import { h, set } from "./dom.js";
import { statusLine } from "./frame.js";
import { NONE, bytes, decibels, duration, number, short } from "./numbers.js";

const FEW = 2; // names of layers that are said
const HEADS = ["", "Repair", "Gives back", "Time of a run", "Constants", "Why"];
const ASK = "Tries regions of the network in float and in 16 bits, other calibrators and bias correction, and measures what each gives back and costs.";

/**
 * Returns { element, draw(view), tell(status) }. `send(message)` talks to the kernel; `point(layers)` is called with
 * the layers of the repair that is pointed at, and with none when it is left.
 */
export function repairsPanel(send, point) {
  let rows = [];
  const find = h("button", { type: "button", class: "qb-button", title: ASK, onclick: () => send({ do: "repairs", where: "repairs" }) }, "Find repairs");
  const line = statusLine(send);
  set(line.element.firstChild, { role: null }); // it is said at the top already
  set(line.element, { hidden: true });
  const note = h("p", { class: "qb-sub qb-repairs-note" }, ASK);
  const body = h("tbody", {});
  const table = h("table", { class: "qb-repair-table", "aria-label": "Repairs, the best first" }, h("thead", {}, h("tr", {}, HEADS.map((name) => h(name ? "th" : "td", name ? { scope: "col" } : {}, name)))), body);
  const around = h("div", { class: "qb-repair-scroll", role: "region", "aria-label": "List of repairs", tabindex: 0, hidden: true }, table);
  const element = h("section", { class: "qb-repairs", "aria-label": "What to do", "data-where": "repairs" }, h("div", { class: "qb-repair-bar" }, h("h3", {}, "What to do"), find, line.element), note, around);

  const at = (event) => event.target.closest?.("tr[data-place]")?.dataset.place;
  const look = (event) => point(rows[at(event)]?.layers ?? []);
  const leave = () => point(rows[body.querySelector(":focus")?.closest("tr").dataset.place]?.layers ?? []);
  for (const kind of ["pointerover", "focusin"]) body.addEventListener(kind, look);
  for (const kind of ["pointerleave", "focusout"]) body.addEventListener(kind, leave);

  function line_of(row, place, metric) {
    const label = row.is_applied ? "Applied" : "Apply";
    const apply = () => (row.is_applied ? undefined : send({ do: "apply", repair: place, label: row.label, where: "repairs" }));
    const names = row.layers.length ? [...new Set(row.layers)] : row.where; // as the table of layers calls them
    const where = names.length ? names.slice(0, FEW).map((name) => short(name, 28)).join(", ") : "the whole model";
    const more = names.length > FEW ? ` and ${names.length - FEW} more` : "";
    return h(
      "tr",
      { "data-place": place, class: row.is_applied ? "qb-applied" : null },
      h("td", {}, h("button", { type: "button", class: "qb-small", "aria-disabled": row.is_applied ? "true" : null, "aria-label": `${label}: ${short(row.label, 200)}`, onclick: apply }, label)),
      h("th", { scope: "row", title: short(names.join(", "), 1000) || null }, h("span", {}, row.what), h("span", { class: "qb-sub" }, `${where}${more}`)),
      cell(gained(row, metric), bar(row.returned, "qb-gain"), `${Math.round(100 * row.returned)} % of what is lost comes back`),
      cell([signed(row.more_ms, duration), h("span", { class: "qb-sub" }, ` to ${duration(row.ms)}`)], bar(row.dearer, "qb-cost"), `${percent(row.dearer)} of the time of a run`),
      cell([signed(row.more_bytes, bytes), h("span", { class: "qb-sub" }, ` to ${bytes(row.bytes)}`)], bar(row.larger, "qb-cost"), `${percent(row.larger)} of the constants`),
      h("td", { class: "qb-why" }, row.why),
    );
  }

  return {
    element,
    draw(view) {
      const focused = body.querySelector(":focus")?.closest("tr").dataset.place;
      const isNew = view?.rows === undefined;
      rows = view?.rows ?? [];
      find.textContent = isNew ? "Find repairs" : "Find again";
      set(around, { hidden: !rows.length });
      around.classList.toggle("qb-stale", Boolean(view?.is_stale));
      note.textContent = isNew ? ASK : said(view);
      body.replaceChildren(...rows.map((row, place) => line_of(row, place, view.metric_name)));
      if (focused !== undefined) body.children[focused]?.querySelector("button").focus({ preventScroll: true });
    },
    tell(status) {
      const isFinding = Boolean(status.is_busy && status.is_finding);
      set(find, { hidden: isFinding });
      set(line.element, { hidden: !isFinding });
      line.draw({ ...status, is_busy: isFinding });
    },
  };
}

function said(view) {
  if (!view.rows.length) return "Nothing that was tried gives back 0.1 dB or more.";
  if (view.is_stale) return "Measured for an earlier config: what repairs give does not add up. Undo goes back to it; Find again measures for the config as it is now.";
  return "The best for its price first, each measured alone on all data. Applying one is an edit like any other, and Undo takes it back.";
}

/** The user's metric where there is one, and decibels. */
function gained(row, metric) {
  const db = row.gain_db === "inf" ? "exact" : Number.isFinite(row.gain_db) ? signed(row.gain_db, (value) => `${decibels(value)} dB`) : null;
  if (!metric) return db ?? NONE;
  const held = row.gain_held_back === null ? null : `, ${signed(row.gain_held_back, (value) => number(value, 2))} on held-back data`;
  return [signed(row.gain_metric, (value) => number(value, 3)), h("span", { class: "qb-sub", title: short(metric, 200) }, ` ${short(metric, 16)}${db ? `, ${db}` : ""}${held ?? ""}`)];
}

function cell(text, drawn, title) {
  return h("td", { title }, h("div", {}, text), drawn);
}

/** A share from 0 to 1 as a bar; what is told in words beside it is not told twice. */
function bar(share, kind) {
  const width = Math.min(100, Math.max(0, 100 * share));
  return h("span", { class: `qb-share ${kind}`, "aria-hidden": "true" }, h("span", { style: `width:${width.toFixed(1)}%` }));
}

function signed(value, format) {
  if (value === 0) return "\u00b10";
  return `${value > 0 ? "+" : "\u2212"}${format(Math.abs(value))}`;
}

function percent(share) {
  return signed(Math.round(100 * share), (value) => `${value} %`);
}
