// What boxes are coloured by: from the rows of the layers that a box stands for to a class, and what it says.
import { decibels, duration } from "./numbers.js";

export const TINTS = [
  ["error", "own noise", [["low", "25 dB or more"], ["some", "15 to 25"], ["high", "less than 15"]]],
  ["bits", "bits", [["narrow", "8 or less"], ["wide", "more"], ["float", "float"]]],
  ["time", "time", [["low", "little"], ["some", "10 %"], ["high", "30 % of the slowest"]]],
  ["region", "edits", [["stretch", "in the stretch"], ["edited", "edited"], ["float", "float"]]],
];

/** Returns (rows) => [class, text]; `all` are the rows of all layers, `stretch` the names of those that are selected. */
export function tint(kind, all, stretch) {
  const slowest = all.reduce((high, row) => Math.max(high, row.ms ?? 0), 0);
  return {
    error: (rows) => {
      const noisy = rows.filter((row) => row.own !== null).sort((a, b) => b.own.share - a.own.share)[0];
      return noisy ? [noisy.own.level, `own ${decibels(noisy.own.sqnr_db)}${noisy.own.sqnr_db === "inf" ? "" : " dB"}`] : ["", ""];
    },
    bits: (rows) => {
      if (rows.some((row) => row.is_float)) return ["float", rows.find((row) => row.is_float).runs_as];
      const bits = Math.max(0, ...rows.map((row) => row.bits ?? 0));
      return bits ? [bits <= 8 ? "narrow" : "wide", `${bits} bits`] : ["", ""];
    },
    time: (rows) => {
      const ms = rows.reduce((sum, row) => sum + (row.ms ?? 0), 0);
      return slowest && ms ? [ms > 0.3 * slowest ? "high" : ms > 0.1 * slowest ? "some" : "low", duration(ms)] : ["", ""];
    },
    region: (rows) => {
      if (rows.some((row) => stretch.has(row.name))) return ["stretch", "in the stretch"];
      if (rows.some((row) => row.overridden.length)) return ["edited", "edited"];
      return rows.some((row) => row.is_float) ? ["float", "float"] : ["", ""];
    },
  }[kind];
}
