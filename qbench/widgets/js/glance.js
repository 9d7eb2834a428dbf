// What the newest probe says of the whole network, in few words: for beside the handle, and for a bar that stays in sight.
import { h, set } from "./dom.js";
import { count, decibels, percent } from "./numbers.js";

const SAME = 0.05; // dB: a smaller change is none

/** The words beside the handle: 18.4 dB, 31 of 32 agree. */
export function answer({ now, samples }) {
  return [ratio(now.sqnr_db), agreement(now, samples)].filter(Boolean).join(", ");
}

/** The result in one line: { element, draw(result), tell(status) }. What a probe has just found comes before the result. */
export function resultLine() {
  const numbers = h("strong", {});
  const moved = h("span", {});
  const where = h("span", { class: "qb-mark qb-probe" }, "probe");
  const element = h("div", { class: "qb-outcome" }, numbers, " ", moved, where);
  let result = null;
  let glance = null;
  function paint() {
    const shown = glance ?? result;
    if (!shown) return;
    numbers.textContent = answer(shown);
    const by = shown.before ? Number(shown.now.sqnr_db) - Number(shown.before.sqnr_db) : NaN;
    const isNews = Number.isFinite(by) && Math.abs(by) >= SAME && !shown.is_stale;
    moved.textContent = isNews ? `${by > 0 ? "\u25b2 +" : "\u25bc \u2212"}${Math.abs(by).toFixed(1)} dB` : "";
    moved.className = by > 0 ? "qb-better" : "qb-worse";
    set(where, { hidden: shown.samples === undefined || (!glance && result.data !== "probe"), title: `of ${count(shown.samples)} samples` });
    set(element, { class: !glance && result.is_stale ? "qb-outcome qb-stale" : "qb-outcome", title: "Output SQNR and agreement with the float model, and what the last edit changed" });
  }
  return {
    element,
    draw(view) {
      result = view;
      paint();
    },
    tell(status) {
      glance = status.glance ?? null;
      paint();
    },
  };
}

function ratio(db) {
  const text = decibels(db);
  return db === null ? "" : text === "exact" ? text : `${text} dB`;
}

/** A count where each sample has one prediction, else a share; nothing where the output is no choice. */
function agreement(now, samples) {
  if (now.agreement === null) return "";
  const isCount = samples - Math.round(now.agreement * samples) === now.flipped;
  return isCount ? `${count(samples - now.flipped)} of ${count(samples)} agree` : `${percent(now.agreement)} agree`;
}
