// What the whole network lost, beside what it lost before the last edit.
import { h } from "./dom.js";
import { bytes, count, decibels, number, percent } from "./numbers.js";

/** Returns { element, draw(view) }. */
export function resultPanel() {
  const element = h("section", { class: "qb-results", "aria-label": "Result" });
  return {
    element,
    draw(view) {
      const { now, before } = view;
      element.classList.toggle("qb-stale", view.is_stale);
      element.replaceChildren(
        card("Output SQNR", decibels(now.sqnr_db), "dB", change(now.sqnr_db, before?.sqnr_db, 1, "dB"), "sqnr"),
        card("Same prediction as float", ...split(percent(now.agreement)), change(now.agreement, before?.agreement, 100, "points"), "agreement"),
        card("Top-1", ...split(percent(now.top1)), now.top1 === null ? "no labels" : [`float ${percent(view.top1_float)}`, change(now.top1, before?.top1, 100, "points")], "top1"),
        card("Size of constants", ...split(bytes(view.bytes_now)), `float ${bytes(view.bytes_float)} (${number(view.bytes_float / Math.max(1, view.bytes_now), 2)}\u00d7)`, "size"),
        card("Evaluated on", count(view.samples), view.samples === 1 ? "sample" : "samples", `${view.data} data, ${view.steps_ran} of ${view.steps} steps ran`, "samples"),
      );
    },
  };
}

function card(title, value, unit, note, name) {
  return h(
    "div",
    { class: "qb-card", "data-name": name },
    h("div", { class: "qb-card-title" }, title),
    h("div", { class: "qb-card-value" }, `${value} `, h("span", { class: "qb-unit" }, unit)),
    h("div", { class: "qb-sub" }, note),
  );
}

function split(text) {
  const at = text.lastIndexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function change(now, before, factor, unit) {
  if (before === undefined || before === null || now === null) return null;
  const difference = factor * (Number(now) - Number(before));
  if (!Number.isFinite(difference)) return null;
  if (Math.abs(difference) < 0.005) return h("span", { class: "qb-change" }, "same after last edit");
  const better = difference > 0;
  const text = `${better ? "\u25b2 +" : "\u25bc \u2212"}${Math.abs(difference).toFixed(2)} ${unit} by last edit`;
  return h("span", { class: better ? "qb-change qb-better" : "qb-change qb-worse" }, text);
}
