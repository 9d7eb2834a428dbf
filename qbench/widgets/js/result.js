// What the whole network lost, beside what it lost before the last edit; the samples whose prediction flipped.
import { h, set } from "./dom.js";
import { bytes, count, decibels, duration, number, percent, short } from "./numbers.js";

const LAST = "last edit";
const SAME = 0.005; // a smaller change is none
const DATA = {
  evaluation: "evaluation data",
  calibration: "calibration data, which flatters: the session has no evaluation data",
  probe: "a probe, for a quick look: the whole data follows, or Re-run",
};

/** Returns { element, flips, draw(view) }; flips is the part of it that can stand elsewhere; `send(message)` talks to the kernel. */
export function resultPanel(send) {
  let shown = null;
  let since = LAST;
  const caveats = h("ul", { class: "qb-caveats", "aria-label": "What to know of these numbers" });
  const cards = h("div", { class: "qb-results" });
  const baseline = h("select", { "aria-label": "Compare the result with", onchange: () => {
    since = baseline.value;
    draw(shown);
  } });
  const compared = h("label", { class: "qb-sub qb-since", hidden: true }, "changes since ", baseline);
  const heard = h("p", { class: "qb-heard", role: "status" });
  const list = h("ul", { class: "qb-flip-list" });
  const title = h("h3", {});
  const flips = h("section", { class: "qb-flips", "aria-label": "Samples whose prediction flipped" }, title, list);
  const element = h("section", { class: "qb-result", "aria-label": "Result", "data-where": "result" }, caveats, cards, compared, heard, flips);

  function draw(view) {
    shown = view;
    const others = (view.baselines ?? []).map((one) => one.label);
    const choices = [LAST, ...others];
    if (!choices.includes(since)) since = LAST;
    set(compared, { hidden: !others.length || (!view.before && others.length === 1) }); // at the start there is nothing else
    baseline.replaceChildren(...choices.map((name) => h("option", { value: name, selected: name === since }, name)));
    const { now } = view;
    const before = since === LAST ? view.before : view.baselines.find((one) => one.label === since).outcome;
    const isProbe = view.data === "probe";
    const few = isProbe ? counted(now, view.samples) : null;
    const moved = (...what) => (view.is_stale ? null : change(...what.slice(0, 4), since, what[4]));
    cards.classList.toggle("qb-stale", view.is_stale);
    set(caveats, { hidden: !view.caveats?.length });
    caveats.replaceChildren(...(view.caveats ?? []).map((text) => h("li", {}, text)));
    const badge = () => (isProbe ? h("span", { class: "qb-mark qb-probe", title: `of ${count(view.samples)} samples` }, "probe") : null);
    const smaller = number(view.bytes_float / Math.max(1, view.bytes_now), 2);
    cards.replaceChildren(
      card("sqnr", "Output SQNR", badge(), decibels(now.sqnr_db), unit(now.sqnr_db), moved(now.sqnr_db, before?.sqnr_db, 1, "dB")),
      card("agreement", "Agrees with float", badge(), ...(few ? few.value : split(percent(now.agreement))), now.agreement === null ? "the output is no choice between classes" : few ? [few.interval, moved(now.agreement, before?.agreement, view.samples, "samples", 0)] : [isSaid(now.nats_lost) ? `loses ${now.nats_lost.toFixed(4)} nats` : null, moved(now.agreement, before?.agreement, 100, "points")]),
      card("top1", "Top-1", badge(), ...split(percent(now.top1)), now.top1 === null ? "no labels" : [`float ${percent(view.top1_float)}`, isProbe ? moved(now.top1, before?.top1, view.samples, "samples", 0) : moved(now.top1, before?.top1, 100, "points")]),
      ...said(now, before, badge, moved),
      ...(view.metric_name ? [card("metric", short(view.metric_name, 22), badge(), number(now.metric), "", [`float ${number(view.metric_float)}`, moved(now.metric, before?.metric, 1, "", 4)])] : []),
      card("size", "Size of constants", null, ...split(bytes(view.bytes_now)), `float ${bytes(view.bytes_float)} (${smaller}\u00d7)`),
      latency(view.latency, send),
      card("samples", "Measured on", null, count(view.samples), view.samples === 1 ? "sample" : "samples", [DATA[view.data] ?? view.data, isProbe ? null : h("span", { class: "qb-change" }, view.steps_ran ? `${count(view.steps_ran)} of ${count(view.steps)} steps ran` : "nothing had to run")]),
    );
    if (!isProbe && !view.is_stale) announce(heard, view);
    const flipped = now.flipped;
    set(flips, { hidden: !flipped });
    if (!flipped) return;
    const some = view.flips.length < flipped ? `, the first ${view.flips.length}` : "";
    title.textContent = `${count(flipped)} ${flipped === 1 ? "prediction" : "predictions"} flipped${some}${isProbe ? " (of the probe)" : ""}`;
    set(title, { title: "Class that the float model predicts, then the quantized one; \u2713 is right" });
    const fresh = new Set(view.flips.filter((flip) => flip.is_new).map((flip) => flip.sample));
    list.replaceChildren(...view.flips.map((flip) => sample(flip, fresh.size < view.flips.length && flip.is_new)));
  }
  return { element, flips, draw };
}

/** What is left of what the outputs say, where that is where something is, how numbers vary, or texts: of the worst. */
function said(now, before, badge, moved) {
  const cards = [];
  for (const [name, title, field] of [["found", "Where it finds", "found_db"], ["varies", "How it varies", "varies_db"]]) {
    if (isSaid(now[field])) cards.push(card(name, title, badge(), decibels(now[field]), unit(now[field]), moved(now[field], before?.[field], 1, "dB")));
  }
  if (isSaid(now.texts_alike)) cards.push(card("texts", "Texts read alike", badge(), ...split(percent(now.texts_alike)), moved(now.texts_alike, before?.texts_alike, 100, "points")));
  return cards;
}

function isSaid(value) {
  return value !== null && value !== undefined;
}

function card(name, title, badge, value, suffix, note) {
  return h(
    "div",
    { class: "qb-card", "data-name": name },
    h("div", { class: "qb-card-title" }, title, badge),
    h("div", { class: "qb-card-value" }, `${value} `, h("span", { class: "qb-unit" }, suffix)),
    h("div", { class: "qb-sub" }, note),
  );
}

function latency(view, send) {
  if (view === null) {
    const button = h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "latency", where: "result" }) }, "Measure");
    return h("div", { class: "qb-card", "data-name": "latency" }, h("div", { class: "qb-card-title" }, "Latency"), h("div", { class: "qb-card-action" }, button), h("div", { class: "qb-sub" }, "not measured yet"));
  }
  const faster = number(view.float_ms / view.quantized_ms, 2);
  const how = `${view.threads} ${view.threads === 1 ? "thread" : "threads"}, ${view.samples} ${view.samples === 1 ? "sample" : "samples"} a run`;
  return card("latency", "Latency", null, ...split(duration(view.quantized_ms)), [`float ${duration(view.float_ms)} (${faster}\u00d7)`, h("span", { class: "qb-change" }, how)]);
}

/** One sample: its picture, what both models say, and who is right in words. */
function sample(flip, isNew) {
  const right = { float: "float is right", quantized: "the quantized model is right", neither: `neither is right: it is ${flip.names?.[2] ?? flip.label}` }[flip.verdict] ?? null;
  const [one, other] = flip.names ?? [flip.float_class, flip.quantized_class];
  const said = `sample ${flip.sample}: float says ${one}, quantized ${other}${right ? `; ${right}` : ""}${isNew ? "; new with the last edit" : ""}`;
  const look = flip.picture
    ? h("img", { src: `data:image/png;base64,${flip.picture.png}`, alt: `Sample ${flip.sample}`, width: flip.picture.width, height: flip.picture.height })
    : h("span", { class: "qb-no-picture" }, `#${flip.sample}`);
  const marks = { float: ["\u2713", "\u2717"], quantized: ["\u2717", "\u2713"], neither: ["\u2717", "\u2717"] }[flip.verdict] ?? ["", ""];
  return h(
    "li",
    { title: said, class: isNew ? "qb-new" : "" },
    look,
    h("span", { class: "qb-heard" }, said),
    h("span", { "aria-hidden": "true" }, `${short(String(one), 18)}${marks[0]} \u2192 ${short(String(other), 18)}${marks[1]}`),
    h("span", { class: "qb-sub", "aria-hidden": "true" }, isNew ? "new" : `#${flip.sample}`),
  );
}

/** Tell a screen reader the numbers once they are those of the whole data. */
function announce(heard, view) {
  const { now, before } = view;
  const was = before && before.sqnr_db !== null ? `, before the last edit ${decibels(before.sqnr_db)} dB` : "";
  const same = now.agreement === null ? "" : `; ${percent(now.agreement)} of the predictions as in float`;
  const text = `Output SQNR ${decibels(now.sqnr_db)} dB${was}${same}`;
  if (heard.textContent !== text) heard.textContent = text;
}

function unit(db) {
  return db === null || db === "inf" ? "" : "dB";
}

function split(text) {
  const at = text.lastIndexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** Few samples as a count, and what that says of many: a 95 % interval (Wilson 1927). Null where a sample has not one prediction. */
function counted(now, samples) {
  if (now.agreement === null || samples - Math.round(now.agreement * samples) !== now.flipped) return null;
  const z = 1.96;
  const middle = now.agreement + z ** 2 / (2 * samples);
  const half = z * Math.sqrt((now.agreement * (1 - now.agreement)) / samples + z ** 2 / (4 * samples ** 2));
  const [low, high] = [middle - half, middle + half].map((share) => Math.min(1, Math.max(0, share / (1 + z ** 2 / samples))));
  return { value: [count(samples - now.flipped), `of ${count(samples)}`], interval: `of all: ${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)} %` };
}

function change(now, before, factor, name, since, digits = 2) {
  if (before === undefined || before === null || now === null) return null;
  const difference = factor * (Number(now) - Number(before));
  if (!Number.isFinite(difference)) return null;
  if (Math.abs(difference) < SAME) return h("span", { class: "qb-change" }, since === LAST ? "same after last edit" : `same as at ${since}`);
  const better = difference > 0;
  const text = `${better ? "\u25b2 +" : "\u25bc \u2212"}${Math.abs(difference).toFixed(digits)} ${name} ${since === LAST ? "by last edit" : `since ${since}`}`;
  return h("span", { class: better ? "qb-change qb-better" : "qb-change qb-worse" }, text);
}
