// The columns of the layer table: what each says, what it is sorted by, and how a cell looks.
import { h } from "./dom.js";
import { brief, decibels, duration, number, percent, short } from "./numbers.js";

const MOST = 400; // letters of a name that a tip shows

/** [key, label, tip, value to sort by, cell, whether the largest comes first, kind, least and most width, whether shown at first] */
export const COLUMNS = [
  ["name", "Layer", "Name of the layer in the model; one row for what is fused into one step, to unfold", (row) => row.name, nameCell, false, "text", "minmax(150px, 2.2fr)", true],
  ["op", "Op", "What the layer does", (row) => row.op, (row) => h("div", { title: row.op }, row.op), false, "text", "minmax(84px, 1fr)", true],
  ["shape", "Output", "Shape of what the layer makes", (row) => size(row.shape), (row) => row.shape.replaceAll(" x ", "\u00d7"), true, "text", "minmax(92px, 1fr)", false],
  ["runs_as", "Runs as", "What the layer computes with: its data, and its weights where it has some", runsAs, (row) => h("span", { class: row.is_float ? "qb-float" : "" }, runsAs(row)), false, "text", "82px", true],
  ["why", "Why", "Why the layer runs in float, or who chose its scale", (row) => reason(row), why, false, "text", "minmax(116px, 1.4fr)", true],
  ["bits", "Bits", "Of the integers that the layer makes; within a fused step are sums of 32", bits, bits, false, "number", "48px", false],
  ["scale", "Scale", "One step of the integers that the layer makes; of all channels where each has its own", (row) => largest(row.scale), (row) => number(row.scale, 3), true, "number", "74px", false],
  ["threshold", "Threshold", "Where the values that the layer makes are clipped", (row) => largest(row.threshold), (row) => number(row.threshold, 3), true, "number", "80px", false],
  ["clipped", "Clipped", "Fraction of the values outside of what the integers can say, on the data that is evaluated: beside the histogram stands that of the calibration data", (row) => row.clipped, (row) => percent(row.clipped), true, "number", "80px", true],
  ["error", "SQNR", "Signal to all quantization noise at the layer's output, in dB", ratio("error"), (row) => decibels(row.error?.sqnr_db), false, "number", "60px", true],
  ["own", "Own SQNR", "Signal to the noise that the layer makes itself, in dB, had those before it been exact: a longer bar is more noise", ratio("own"), (row) => noise(row.own, "own"), false, "number", "92px", true],
  ["inherited", "Inherited", "Signal to the noise that the layers before it leave here, in dB: a longer bar is more noise", ratio("inherited"), (row) => noise(row.inherited, "inherited"), false, "number", "92px", true],
  ["alone", "In float", "What the output's SQNR gains where this layer alone runs in float, in dB, on the samples of the probe: Sensitivity measures it", (row) => row.alone_db ?? null, (row) => ((row.alone_db ?? null) === null ? null : `${row.alone_db < 0 ? "\u2212" : "+"}${Math.abs(row.alone_db).toFixed(1)}`), true, "number", "64px", true],
  ["weights", "Weights", "Type of the layer's weights", (row) => row.weight_dtype, (row) => row.weight_dtype, false, "text", "66px", false],
  ["weight", "Weight SQNR", "Signal to the noise of rounding the layer's weights, in dB", (row) => finite(row.weight_sqnr_db), (row) => decibels(row.weight_sqnr_db), false, "number", "92px", false],
  ["channel", "Worst channel", "The same of the channel whose weights lose most, in dB", (row) => finite(row.weight_worst_channel_db), (row) => decibels(row.weight_worst_channel_db), false, "number", "104px", false],
  ["macs", "MACs", "Multiply-accumulates per sample", (row) => row.macs, (row) => (row.macs ? brief(row.macs) : null), true, "number", "64px", false],
  ["ms", "Time", "What the layer's step takes in one run", (row) => row.ms, (row) => (row.ms === null ? null : duration(row.ms)), true, "number", "68px", true],
].map(([key, label, tip, value, cell, descends, kind, width, isShown]) => ({ key, label, tip, value, cell, descends, kind, width, isShown }));

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
export function nameCell(row, marks = [], fold = null) {
  const text = short(row.name, 200);
  const at = text.length > 16 ? text.length - 8 : text.length;
  return h(
    "div",
    { class: row.within ? "qb-name qb-within" : "qb-name", title: row.name.slice(0, MOST) },
    fold,
    h("span", { class: "qb-start" }, text.slice(0, at)),
    h("span", { class: "qb-end" }, text.slice(at)),
    row.overridden.length ? h("span", { class: "qb-mark", title: `you set: ${row.overridden.join(", ")}` }, "edited") : null,
    row.imported.length ? h("span", { class: "qb-mark qb-imported", title: `from the file: ${row.imported.join(", ")}` }, "imported") : null,
    marks,
  );
}

/** Such as uint8×int4. */
export function runsAs(row) {
  return row.weight_dtype ? `${row.runs_as}\u00d7${row.weight_dtype}` : row.runs_as;
}

function bits(row) {
  const isWithin = row.within && row.within.members.at(-1).name !== row.name;
  return isWithin ? null : (row.bits ?? null);
}

/** Why in the fewest words: what is said of every layer of its kind goes without saying. */
function why(row) {
  const text = reason(row);
  return text ? h("div", { class: "qb-sub", title: text }, text.replace(/^default(?: for this op)?: /, "")) : null;
}

function reason(row) {
  return row.reason ?? row.chosen_by;
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
  return (row) => finite(row[key]?.sqnr_db);
}

function finite(db) {
  return db === undefined ? null : db === "inf" ? Infinity : db === "-inf" ? -Infinity : db;
}

function largest(scale) {
  return Array.isArray(scale) ? scale.reduce((a, b) => Math.max(a, b), 0) : scale;
}

function size(shape) {
  return shape.split(" x ").reduce((product, part) => product * (Number(part) || 1), 1);
}
