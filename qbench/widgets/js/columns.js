// The columns of the layer table: what each says, what it is sorted by, and how a cell looks.
import { h } from "./dom.js";
import { brief, decibels, duration, number, percent, short } from "./numbers.js";

const MOST = 400; // letters of a name that a tip shows

/** [key, label, tip, value to sort by, cell, whether the largest comes first, kind] */
export const COLUMNS = [
  ["name", "Layer", "Name of the layer in the model", (row) => row.name, nameCell, false],
  ["op", "Op", "What the layer does", (row) => row.op, (row) => row.op, false],
  ["shape", "Output", "Shape of what the layer makes", (row) => size(row.shape), (row) => row.shape.replaceAll(" x ", "\u00d7"), true],
  ["runs_as", "Runs as", "What the layer computes with, and why where that is float", (row) => row.runs_as, runsAs, false],
  ["bits", "Bits", "Of the integers that the layer makes", (row) => row.bits, (row) => row.bits ?? null, false, "number"],
  ["scale", "Scale", "One step of the integers; of all channels where each has its own", (row) => largest(row.scale), (row) => number(row.scale, 3), true, "number"],
  ["clipped", "Clipped", "Fraction of the values outside of what the integers can say", (row) => row.clipped, (row) => percent(row.clipped), true, "number"],
  ["error", "SQNR", "Signal to all quantization noise at the layer's output, in dB", ratio("error"), (row) => decibels(row.error?.sqnr_db), false, "number"],
  ["own", "Own error", "Signal to the noise that the layer makes itself, in dB, had those before it been exact: a longer bar is more error", ratio("own"), (row) => noise(row.own, "own"), false, "number"],
  ["inherited", "Inherited", "Signal to the noise that the layers before it leave here, in dB: a longer bar is more error", ratio("inherited"), (row) => noise(row.inherited, "inherited"), false, "number"],
  ["macs", "MACs", "Multiply-accumulates per sample", (row) => row.macs, (row) => (row.macs ? brief(row.macs) : null), true, "number"],
  ["ms", "Time", "What the layer's step takes in one run; a fused group's is at its first layer", (row) => row.ms, (row) => (row.ms === null ? null : duration(row.ms)), true, "number"],
].map(([key, label, tip, value, cell, descends, kind]) => ({ key, label, tip, value, cell, descends: Boolean(descends), kind: kind ?? "text" }));

/** Compares by a column; what has no value comes last, and equal ones stay in graph order. */
export function order(column, descends) {
  const sign = descends ? -1 : 1;
  return (a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || x === undefined || y === null || y === undefined) return (x ?? null) === (y ?? null) ? 0 : (x ?? null) === null ? 1 : -1;
    return x < y ? -sign : x > y ? sign : 0;
  };
}

/** A name of which both ends are seen, however little room there is. */
export function nameCell(row, marks = []) {
  const text = short(row.name, 200);
  const at = text.length > 16 ? text.length - 8 : text.length;
  return h(
    "div",
    { class: "qb-name", title: row.name.slice(0, MOST) },
    h("span", { class: "qb-start" }, text.slice(0, at)),
    h("span", { class: "qb-end" }, text.slice(at)),
    row.overridden.length ? h("span", { class: "qb-mark", title: `you set: ${row.overridden.join(", ")}` }, "edited") : null,
    marks,
  );
}

function runsAs(row) {
  const reason = row.reason ?? row.chosen_by;
  return h("div", { title: reason }, h("span", { class: row.is_float ? "qb-float" : "" }, row.runs_as), reason ? h("span", { class: "qb-sub" }, ` ${reason}`) : null);
}

function noise(one, kind) {
  if (one === null) return null;
  const width = `width:${(100 * one.share).toFixed(1)}%`;
  const text = decibels(one.sqnr_db);
  return h(
    "div",
    { class: "qb-noise", title: `${text} dB: ${one.level} error` },
    h("span", { class: "qb-bar", "aria-hidden": "true" }, h("span", { class: `qb-${one.level} qb-${kind}`, style: width })),
    h("span", { class: "qb-decibels" }, text),
  );
}

function ratio(key) {
  return (row) => {
    const db = row[key]?.sqnr_db;
    return db === undefined ? null : db === "inf" ? Infinity : db === "-inf" ? -Infinity : db;
  };
}

function largest(scale) {
  return Array.isArray(scale) ? scale.reduce((a, b) => Math.max(a, b), 0) : scale;
}

function size(shape) {
  return shape.split(" x ").reduce((product, part) => product * (Number(part) || 1), 1);
}
