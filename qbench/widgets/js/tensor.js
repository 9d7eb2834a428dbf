// The chosen layer: its histogram, the controls of its threshold and scale, its curves.
import { curves } from "./curves.js";
import { h, set } from "./dom.js";
import { clippedRange, outside, ratio, scaleOf, valueAt } from "./estimate.js";
import { histogram } from "./histogram.js";
import { count, decibels, number, percent, short } from "./numbers.js";

const PATIENCE = 250; // ms without another key before a threshold is sent to the kernel
const STEPS = 1000;

/** Returns { element, draw(view), resize(width) }; `send(message)` talks to the kernel. */
export function tensorPanel(send) {
  let view = null;
  let timer = null;
  const settle = (threshold) => {
    clearTimeout(timer);
    timer = setTimeout(() => override({ threshold: Number(threshold.toPrecision(5)) }), PATIENCE);
  };
  const override = (settings) => {
    clearTimeout(timer);
    send({ do: "override", layer: view.layer, part: view.part, settings });
  };
  const picture = histogram((threshold) => show(threshold), settle);
  const costs = curves((calibrator) => override({ calibrator }));

  const heading = h("h3", { class: "qb-name" });
  const about = h("div", { class: "qb-sub" });
  const tabs = ["activation", "weight"].map((part) =>
    h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "select", layer: view.layer, part }) }, part),
  );
  const absent = h("p", { class: "qb-absent" });
  const facts = h("p", { class: "qb-facts" });
  const live = h("p", { class: "qb-live", "aria-live": "polite" });

  const slider = h("input", { type: "range", min: 1, max: STEPS, step: 1, "aria-label": "Threshold", oninput: () => slid(), onchange: () => settle(fromSlider()) });
  const threshold = h("input", { type: "number", min: 0, step: "any", "aria-label": "Threshold", onchange: () => typed(threshold, "threshold") });
  const scale = h("input", { type: "number", min: 0, step: "any", "aria-label": "Scale", onchange: () => typed(scale, "scale") });
  const keep = h("input", { type: "checkbox", onchange: () => override({ keep_float: keep.checked ? true : null }) });
  const back = h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "reset", layer: view.layer, part: view.part }) }, "Take back edits");
  const fields = h("div", { class: "qb-fields" }, h("label", { class: "qb-grow" }, "Threshold ", slider, threshold), h("label", {}, "Scale ", scale));
  const choices = h("div", { class: "qb-fields" }, h("label", {}, keep, " keep this layer in float"), back);

  const top = h("div", { class: "qb-head" }, h("div", { class: "qb-grow" }, heading, about), h("div", { class: "qb-tabs", role: "group", "aria-label": "Tensor" }, tabs));
  const element = h("section", { class: "qb-tensor", "aria-label": "Chosen layer" }, top, absent, picture.element, live, fields, facts, choices, costs.element);

  const largest = () => Math.max(-view.histogram.min, view.histogram.max);
  const fromSlider = () => (Number(slider.value) / STEPS) * largest();
  const slid = () => {
    picture.move(fromSlider());
    show(fromSlider());
  };
  const typed = (field, key) => {
    const value = Number(field.value);
    if (field.value !== "" && value > 0) override({ [key]: value });
    else field.value = String(Number((key === "scale" ? view.histogram.scale : view.histogram.threshold).toPrecision(5)));
  };

  /** What a threshold would do, while it moves. */
  function show(value) {
    const { histogram: data, curves: curve } = view;
    costs.move(value);
    slider.value = String(Math.round((value / largest()) * STEPS));
    threshold.value = String(Number(value.toPrecision(5)));
    const lost = `clips ${percent(outside(data, ...clippedRange(data, value)), 3)} of the values`;
    const mse = curve?.curves.find((one) => one.name === "mse");
    const cost = mse ? `, SQNR of this tensor alone ${decibels(ratio(curve.signal, valueAt(mse, value)))} dB` : "";
    live.textContent = `Threshold ${number(value)}: ${lost}${cost}`;
    if (value !== data.threshold) scale.value = String(Number(scaleOf(data, value).toPrecision(5)));
    else if (data.scale !== null) scale.value = String(Number(data.scale.toPrecision(5)));
  }

  function describe(data) {
    const zeros = data.zeros ? `, ${percent(data.zeros / data.count, 1)} of them zero` : "";
    const steps = data.channels > 1 ? `a scale for each of ${data.channels} channels, thresholds ${number(data.narrowest)} to ${number(data.threshold)}` : `scale ${number(data.scale, 5)}, zero point ${data.zero_point}`;
    return `${count(data.count)} values from ${number(data.min)} to ${number(data.max)}${zeros}. ${data.dtype}: ${steps}, reaches ${number(data.low)} to ${number(data.high)}. Chosen by ${data.reason}.`;
  }

  return {
    element,
    draw(next) {
      if (!view || view.layer !== next.layer || view.part !== next.part) clearTimeout(timer);
      view = next;
      const data = next.histogram;
      const movable = data !== null && data.channels === 1;
      heading.textContent = short(next.layer ?? "no layer", 60);
      heading.title = (next.layer ?? "").slice(0, 400);
      about.textContent = next.about;
      tabs.forEach((tab) => set(tab, { "aria-pressed": tab.textContent === next.part ? "true" : "false", disabled: !next.parts.includes(tab.textContent) }));
      absent.textContent = next.absent;
      for (const one of [picture.element, facts]) set(one, { hidden: data === null });
      for (const one of [fields, live]) set(one, { hidden: !movable });
      set(absent, { hidden: data !== null });
      set(back, { hidden: !next.overridden });
      set(choices, { hidden: !next.can_keep_float && !next.overridden });
      keep.checked = next.keep_float;
      set(keep.parentElement, { hidden: !next.can_keep_float });
      costs.draw(next.curves);
      if (data === null) return;
      facts.textContent = describe(data);
      picture.draw(data);
      if (movable) show(data.threshold);
    },
    resize(width) {
      picture.resize(width);
      costs.resize(width);
    },
  };
}
