// The chosen layer: its histogram and channels, the controls of its threshold and scale, its curves.
import { channels } from "./channels.js";
import { curves } from "./curves.js";
import { h, set } from "./dom.js";
import { channelOf, finite, gridOf, limits, lossOf, ratio } from "./estimate.js";
import { answer } from "./glance.js";
import { histogram } from "./histogram.js";
import { count, decibels, number, percent, short } from "./numbers.js";
import { throttled } from "./throttle.js";

const STEPS = 1000;
const BESIDE = 900;
const GAP = 24;

/**
 * Returns { element, draw(view), offer(choices), tell(status), resize(width) }; `send(message)` talks to the kernel. `shows` says which of
 * "histogram" and "curves" are there.
 */
export function tensorPanel(send, shows = ["histogram", "curves"]) {
  let view = null;
  let data = null; // what the histogram shows: of the tensor, or of one of its channels
  let channel = null;
  let whole = 480;
  let drawn = 0; // how wide
  const override = (settings, how = {}) => send({ do: "override", layer: view.layer, part: view.part, settings, ...how });
  const commit = throttled((threshold, gesture, moves) => override({ threshold: here("thresholds", Number(threshold.toPrecision(5))) }, { gesture, moves }));
  const picture = histogram(
    (threshold) => {
      show(threshold);
      commit.soon(threshold);
    },
    (threshold) => commit.now(threshold),
  );
  const glance = channels((index) => {
    commit.stop();
    look(index);
  });
  const costs = curves({
    choose: (calibrator) => act({ calibrator }),
    apply: (threshold) => act({ threshold: Number(threshold.toPrecision(5)) }),
    cost: (threshold) => lossOf(view.histogram, gridOf(view.histogram, threshold)),
    hint: shows.includes("histogram") ? "Point at the curves, or walk along them with the arrow keys: what a threshold costs is told here." : "",
  });
  const act = (settings) => {
    commit.stop();
    override(settings);
  };
  /** A setting of what is shown: where that is one channel of many scales, all others as they are. */
  const here = (list, value) => {
    if (channel === null || view.histogram.channels === 1) return value;
    const all = view.histogram.by_channel[list];
    const widest = Math.max(...all);
    return all.map((one, i) => (i === channel ? value : one || widest));
  };

  const heading = h("h3", { class: "qb-name" });
  const about = h("div", { class: "qb-sub" });
  const tabs = ["activation", "weight"].map((part) =>
    h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "select", layer: view.layer, part }) }, part),
  );
  const absent = h("p", { class: "qb-absent" });
  const facts = h("p", { class: "qb-facts" });
  const live = h("p", { class: "qb-live", "aria-live": "polite" });

  const slider = h("input", { type: "range", min: 1, max: STEPS, step: 1, "aria-label": "Threshold", oninput: () => slid(), onchange: () => commit.now(fromSlider()) });
  let typing = null; // the field that has the beginning of a number: what is drawn meanwhile must not replace it
  const entry = (label, key) => {
    const field = h("input", { type: "number", min: 0, step: "any", "aria-label": label, oninput: () => (typing = field), onchange: () => typed(field, key), onblur: () => typing === field && untyped(field, key) });
    return field;
  };
  const put = (field, value) => {
    if (field !== typing) field.value = String(Number(value.toPrecision(5)));
  };
  const threshold = entry("Threshold", "threshold");
  const scale = entry("Scale", "scale");
  const keep = h("input", { type: "checkbox", onchange: () => act({ keep_float: keep.checked ? true : null }) });
  const back = h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "reset", layer: view.layer, part: view.part }) }, "Take back edits");
  const kinds = h("span", { class: "qb-fields" }); // type, scales, symmetry and calibrator, where the kernel says what there is
  let offered = null;
  let shownKinds = "";
  const offer = () => {
    const choices = view ? (offered?.[view.part] ?? []) : [];
    const kind = JSON.stringify(choices);
    if (kind === shownKinds) return; // or a list that is open would close
    shownKinds = kind;
    kinds.replaceChildren(
      ...choices.map(({ key, label, choices: values }) =>
        h(
          "label",
          {},
          `${label} `,
          h(
            "select",
            { onchange: ({ target }) => (act({ [key]: values[Number(target.value)].value }), (target.value = "")) },
            h("option", { value: "" }, "\u2013 as is"),
            values.map((one, at) => h("option", { value: at }, one.label)),
          ),
        ),
      ),
    );
  };
  const fields = h("div", { class: "qb-fields" }, h("label", { class: "qb-grow" }, "Threshold ", slider, threshold), h("label", {}, "Scale ", scale));
  const choices = h("div", { class: "qb-fields qb-edit" }, h("label", {}, keep, " keep this layer in float"), kinds, back);

  const top = h("div", { class: "qb-head" }, h("div", { class: "qb-grow" }, heading, about), h("div", { class: "qb-tabs", role: "group", "aria-label": "Tensor" }, tabs));
  const side = (name, ...children) => h("div", { class: `qb-side qb-${name}` }, children);
  const drawings = shows.includes("histogram") ? [side("glance", glance.element), side("values", picture.element, live, fields, facts, choices)] : [];
  const sides = h("div", { class: "qb-sides" }, drawings, shows.includes("curves") ? side("costs", costs.element) : null);
  const element = h("section", { class: "qb-tensor", "aria-label": "Chosen layer" }, top, absent, sides);

  /** Where there is room, the curves stand beside the histogram, or where there are none the channels. */
  function arrange() {
    const two = shows.includes("histogram") && (shows.includes("curves") && view?.curves ? "qb-costly" : view?.histogram?.by_channel ? "qb-channelled" : "");
    const beside = whole >= BESIDE && Boolean(two);
    sides.className = beside ? `qb-sides qb-beside ${two}` : "qb-sides";
    const width = beside ? (whole - GAP) / 2 : whole;
    if (width === drawn) return;
    drawn = width;
    for (const one of [picture, glance, costs]) one.resize(width);
  }

  const largest = () => Math.max(-data.min, data.max);
  const fromSlider = () => (Number(slider.value) / STEPS) * largest();
  const slid = () => {
    picture.move(fromSlider());
    show(fromSlider());
    commit.soon(fromSlider());
  };
  const typed = (field, key) => {
    const value = Number(field.value);
    typing = null;
    if (field.value !== "" && value > 0 && Number.isFinite(value)) act({ [key]: here(`${key}s`, value) });
    else untyped(field, key);
  };
  const untyped = (field, key) => {
    typing = null;
    put(field, key === "scale" ? data.scale : data.threshold);
  };

  /** What a threshold would do, while it moves. */
  function show(value) {
    costs.move(value);
    const grid = gridOf(data, value);
    const { clipped, rounding, clipping, error, signal } = lossOf(data, grid);
    slider.value = String(Math.round((value / (largest() || 1)) * STEPS));
    put(threshold, value);
    put(scale, grid.scale);
    const whose = data.channel === undefined ? "this tensor" : "this channel";
    live.textContent =
      `Threshold ${number(value)}: clips ${percent(clipped, 3)} of the ${view.part === "weight" ? "weights" : "calibration data's values"}, rounding error ${number(Math.sqrt(rounding), 3)} and ` +
      `clipping error ${number(Math.sqrt(clipping), 3)} rms, SQNR of ${whose} alone ${decibels(ratio(signal, error))} dB`;
    picture.say(`${number(value)}, clips ${percent(clipped)}, SQNR ${decibels(ratio(signal, error))} dB`);
  }

  let told = null; // what the newest probe has found out, of which tensor and threshold
  let isGoing = false; // whether it is of an edit that is not evaluated yet
  function recall() {
    const isHere = told?.at && told.tensor === data.tensor && (isGoing || Math.abs(picture.at() / told.at - 1) < 1e-3);
    if (!isHere) told = null;
    picture.tell(isHere ? `${answer(told.glance)} at ${number(told.at)}` : "");
  }

  /** Show a channel, null for the whole tensor. */
  function look(index) {
    channel = index;
    glance.draw(view.histogram.by_channel && { ...view.histogram.by_channel, ends: limits(view.histogram.dtype) }, index);
    data = index === null ? view.histogram : channelOf(view.histogram, index);
    const movable = data.channels === 1;
    for (const one of [fields, live]) set(one, { hidden: !movable });
    facts.textContent = describe(data);
    picture.draw(data, commit.isPending());
    if (movable) show(picture.at());
    recall();
  }

  function describe(data) {
    const zeros = data.zeros ? `, ${percent(data.zeros / data.count, 1)} of them zero` : "";
    const [low, high] = data.channel === undefined ? [data.low, data.high] : ((grid) => [grid.least * grid.scale, grid.most * grid.scale])(gridOf(data, data.threshold));
    const steps = data.channels > 1 ? `a scale for each of ${data.channels} channels, thresholds ${number(data.narrowest)} to ${number(data.threshold)}` : `scale ${number(data.told ?? data.scale, 5)}, zero point ${data.zero_point}`;
    const what = data.channel === undefined ? "" : `Channel ${data.channel}: `;
    return `${what}${count(data.count)} value${data.count === 1 ? "" : "s"} from ${number(data.min)} to ${number(data.max)}${zeros}. ${data.dtype}: ${steps}, reaches ${number(low)} to ${number(high)}. Chosen by ${data.reason}.`;
  }

  return {
    element,
    draw(next) {
      const same = view && view.layer === next.layer && view.part === next.part;
      if (!same) {
        commit.stop();
        typing = null;
      }
      view = { ...next, histogram: next.histogram && finite(next.histogram) };
      costs.draw(next.curves); // what is gone is not drawn in a new width
      arrange();
      const there = next.histogram !== null;
      offer();
      set(kinds, { hidden: !there });
      heading.textContent = short(next.layer ?? "no layer", 60);
      heading.title = (next.layer ?? "").slice(0, 400);
      about.textContent = next.about;
      tabs.forEach((tab) => set(tab, { "aria-pressed": tab.textContent === next.part ? "true" : "false", disabled: !next.parts.includes(tab.textContent) }));
      absent.textContent = there && !next.curves && !shows.includes("histogram") ? "Each channel has a threshold of its own: there is no one curve." : next.absent;
      for (const one of [picture.element, glance.element, facts, fields, live]) set(one, { hidden: !there });
      set(back, { hidden: !next.overridden });
      set(choices, { hidden: !next.can_keep_float && !next.overridden });
      keep.checked = next.keep_float;
      set(keep.parentElement, { hidden: !next.can_keep_float });
      set(absent, { hidden: absent.textContent === "" });
      if (!there) return;
      const many = next.histogram.by_channel?.scales.length ?? 0;
      look(same && channel !== null && channel < many ? channel : null);
    },
    /** What can be set for a tensor, by its part. */
    offer(choices) {
      offered = choices;
      offer();
    },
    /** What a probe has found out about a threshold of this tensor; it stays for as long as the handle is there. */
    tell({ glance }) {
      isGoing = Boolean(glance);
      if (glance) told = { glance, tensor: data?.tensor, at: data && glance.thresholds[data.tensor] };
      recall();
    },
    resize(width) {
      whole = width;
      arrange();
    },
  };
}
