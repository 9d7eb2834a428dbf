// What was done, what was kept under names, and any two of those compared.
import { h, s, set } from "./dom.js";
import { decibels, number, percent, short } from "./numbers.js";
import { linear, logarithmic, xAxis, yAxis } from "./scales.js";

const STATES = { done: "", now: "now", undone: "undone" };
const MOST = 120; // letters of a label
const [WIDE, HIGH, TOP] = [640, 130, 60]; // px, px and dB

/** Returns { element, draw(view), compare(view), tell(status) }; `send(message)` talks to the kernel. */
export function historyPanel(send) {
  const say = (message) => send({ ...message, where: "history" });
  const small = (text, title, action) => h("button", { type: "button", class: "qb-small", title, onclick: action }, text);
  const summary = h("span", { class: "qb-sub" });
  const saved = h("p", { class: "qb-sub qb-saved" });

  const edits = h("ol", { class: "qb-edits", "aria-label": "Edits, oldest first" });
  const name = h("input", { type: "text", placeholder: "name", "aria-label": "Name of the snapshot", maxlength: 200, onkeydown: (event) => event.key === "Enter" && keep() });
  const keep = () => {
    say({ do: "snapshot", name: name.value });
    name.value = "";
  };
  const kept = h("ul", { class: "qb-kept", "aria-label": "Snapshots" });
  const path = h("input", { type: "text", value: "config.json", "aria-label": "File of the config, where the kernel runs", onkeydown: (event) => event.key === "Enter" && say({ do: "save_config", path: path.value }) });
  const file = h("input", { type: "file", accept: ".json,application/json", "aria-label": "Load a config from this computer", onchange: () => upload() });
  const upload = async () => {
    const [chosen] = file.files;
    if (chosen) say({ do: "load_config", name: chosen.name, text: await chosen.text() });
    file.value = "";
  };
  const before = h("select", { "aria-label": "Compare: before", onchange: (event) => ask(event) });
  const after = h("select", { "aria-label": "Compare: after", onchange: (event) => ask(event) });
  const ask = (event) => {
    if (event) event.target.dataset.isChosen = "true"; // from now on it stays, whatever is edited
    say({ do: "compare_versions", before: before.value, after: after.value });
  };
  const outcome = h("div", { class: "qb-comparison", "aria-live": "polite" });

  const element = h(
    "details",
    { class: "qb-section qb-history", "data-where": "history" },
    h("summary", {}, h("h3", {}, "History"), summary),
    h(
      "div",
      { class: "qb-history-body" },
      h("section", { "aria-label": "Edits" }, h("h4", {}, "Edits"), edits),
      h(
        "section",
        { "aria-label": "Snapshots and config" },
        h("h4", {}, "Snapshots"),
        h("div", { class: "qb-fields" }, name, small("Keep snapshot", "Keep the config that counts now, and its result, under this name", keep)),
        kept,
        h("h4", {}, "Config file"),
        h("div", { class: "qb-fields" }, path, small("Save", "Write the config to this file, where the kernel runs", () => say({ do: "save_config", path: path.value })), small("Load", "Read the config from this file, where the kernel runs", () => say({ do: "load_config", path: path.value }))),
        h("label", { class: "qb-fields" }, "or load from this computer ", file),
        saved,
      ),
      h("section", { class: "qb-compare", "aria-label": "Compare two versions" }, h("h4", {}, "Compare"), h("div", { class: "qb-fields" }, before, " with ", after, small("Compare", "Show what differs", () => ask())), outcome),
    ),
  );

  function fill(select, versions, wanted) {
    const old = select.dataset.isChosen ? select.value : wanted;
    select.replaceChildren(...versions.map(([key, label]) => h("option", { value: key }, label)));
    select.value = versions.some(([key]) => key === old) ? old : wanted;
  }

  return {
    element,
    draw(view) {
      const now = view.edits.findIndex((edit) => edit.state === "now");
      edits.replaceChildren(...view.edits.map((edit) => row(edit, () => say({ do: "go_to", position: edit.position }))));
      kept.replaceChildren(
        ...view.snapshots.map((one) =>
          h(
            "li",
            {},
            h("span", { class: "qb-grow qb-cut", title: one.name.slice(0, 400) }, short(one.name, MOST), one.is_now ? h("span", { class: "qb-mark" }, "now") : null),
            cost(one.outcome),
            small("Restore", `Make ${short(one.name)} count again`, () => say({ do: "restore", name: one.name })),
            small("\u2715", `Forget ${short(one.name)}`, () => say({ do: "forget", name: one.name })),
          ),
        ),
      );
      if (!view.snapshots.length) kept.replaceChildren(h("li", { class: "qb-sub" }, "None yet: a snapshot keeps a config and its result, to compare with or to return to."));
      const versions = [...(view.others ?? []).map((one) => [one.key, `session ${short(one.label, 30)}`]), ...view.snapshots.map((one) => [one.key, `snapshot ${short(one.name, 30)}`]), ...view.edits.map((edit) => [edit.key, `${edit.position}: ${short(edit.label, 50)}`]).reverse()];
      fill(before, versions, view.edits[0].key);
      fill(after, versions, view.edits[now].key);
      const count = (n, one) => `${n} ${n === 1 ? one : `${one}s`}`;
      summary.textContent = `${count(view.edits.length - 1, "edit")}, ${count(view.snapshots.length, "snapshot")}`;
    },
    compare(view) {
      outcome.replaceChildren(...(view.before ? differences(view) : []));
    },
    tell(status) {
      saved.textContent = status.path
        ? `Each step is saved to ${status.path}. After a restart of the kernel, Session.resume(${JSON.stringify(status.path)}) goes on from here.`
        : "Nothing is saved: the session has no path. A restart of the kernel loses it; Session(\u2026, path=\"model.session\") keeps each step.";
      saved.classList.toggle("qb-unsaved", !status.path);
    },
  };
}

function row(edit, go) {
  const isNow = edit.state === "now";
  const button = h(
    "button",
    { type: "button", class: `qb-step qb-${edit.state}`, "aria-current": isNow ? "step" : null, title: isNow ? "This config counts now" : `Make this config count: ${edit.label.slice(0, 400)}`, onclick: go },
    h("span", { class: "qb-at" }, String(edit.position)),
    h("span", { class: "qb-grow qb-cut" }, short(edit.label, MOST)),
    STATES[edit.state] ? h("span", { class: "qb-mark" }, STATES[edit.state]) : null,
    cost(edit.outcome),
  );
  return h("li", {}, button);
}

function cost(outcome) {
  if (!outcome) return h("span", { class: "qb-sub", title: "This config was not evaluated on all data" }, "not evaluated");
  const same = outcome.agreement === null ? "" : `, ${percent(outcome.agreement, 1)} as float`;
  const metric = outcome.metric === null || outcome.metric === undefined ? "" : `, metric ${number(outcome.metric)}`;
  return h("span", { class: "qb-sub qb-cost" }, `${decibels(outcome.sqnr_db)} dB${same}${metric}`);
}

function differences(view) {
  const { before, after, settings, layers } = view;
  const found = [];
  const results = [
    ["output SQNR", "sqnr_db", decibels, 1, " dB"],
    ["agrees with float", "agreement", percent, 100, " points"],
    ["top-1", "top1", percent, 100, " points"],
    ["metric", "metric", number, 1, ""],
    ["flipped predictions", "flipped", String, null, ""],
  ];
  const both = before.outcome && after.outcome;
  if (both) {
    const rows = results
      .filter(([, key]) => (before.outcome[key] ?? null) !== null && (after.outcome[key] ?? null) !== null)
      .map(([label, key, say, factor, unit]) => {
        const [a, b] = [before.outcome[key], after.outcome[key]];
        return [label, say(a), say(b), signed((factor ?? -1) * (Number(b) - Number(a)), factor === null ? number(Math.abs(b - a)) : null, unit)];
      });
    found.push(table("Result", ["", short(before.label, 40), short(after.label, 40), "change"], rows));
  } else {
    const missing = [before, after].filter((one) => !one.outcome).map((one) => short(one.label, 40));
    found.push(h("p", { class: "qb-sub" }, `Not evaluated: ${missing.join(" and ")}. Return to it and Re-run to compare results; the settings compare anyway.`));
  }
  const same = settings.length ? [] : [h("p", { class: "qb-sub" }, "The two configs are the same.")];
  found.push(...same);
  if (settings.length) found.push(table("Settings", ["setting", "before", "after"], settings.map((one) => [one.path, one.before ?? "not said", one.after ?? "not said"])));
  const chart = profiles(view);
  if (chart) found.push(chart);
  const overlaid = histograms(view);
  if (overlaid) found.push(overlaid);
  if (layers.length) {
    const rows = layers.map((one) => {
      const kind = one.runs_before === one.runs_after ? "" : ` (${one.runs_before} \u2192 ${one.runs_after})`;
      return [`${short(one.name, 60)}${kind}`, decibels(one.before_db), decibels(one.after_db), signed(one.gain_db, null, " dB")];
    });
    const more = view.more_layers ? ` (and ${view.more_layers} more)` : "";
    found.push(table(`Layers whose SQNR changed${more}`, ["layer", "before dB", "after dB", "change"], rows));
  } else if (both && settings.length) found.push(h("p", { class: "qb-sub" }, "No layer changed by 0.05 dB or more."));
  return found;
}

/** What reaches each layer before and after, one line over the other. */
function profiles({ profile, before, after }) {
  const finite = (db) => (db === "inf" ? TOP : Number.isFinite(db) ? db : null);
  const steps = (profile ?? []).map(([name, ...both]) => [name, ...both.map(finite)]).filter(([, a, b]) => a !== null && b !== null);
  if (steps.length < 2) return null;
  const [left, right, top, bottom] = [40, WIDE - 8, 16, HIGH - 6];
  const x = linear([0, steps.length - 1], [left, right]);
  const y = linear([Math.min(0, ...steps.flatMap(([, a, b]) => [a, b])), TOP], [bottom, top]);
  const line = (which) => steps.map((step, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(Math.min(TOP, step[which])).toFixed(1)}`).join("");
  const worst = steps.reduce((one, step) => (Math.abs(step[2] - step[1]) > Math.abs(one[2] - one[1]) ? step : one));
  const said = `SQNR of ${steps.length} layers in the order of the graph, before and after; most differs ${short(worst[0], 40)}: ${decibels(worst[1])} and ${decibels(worst[2])} dB`;
  return h(
    "figure",
    { class: "qb-profiles" },
    s("svg", { class: "qb-plot", role: "img", "aria-label": said, viewBox: `0 0 ${WIDE} ${HIGH}` }, yAxis(y, left, right, 3, "SQNR, dB", 10), s("path", { class: "qb-before", d: line(1) }), s("path", { class: "qb-after", d: line(2) })),
    h("figcaption", { class: "qb-sub" }, `dashed: ${short(before.label, 30)}, whole: ${short(after.label, 30)}. ${said}.`),
  );
}

/** The chosen tensor's values before and after, one outline over the other, with what the integers reach. */
function histograms({ histograms: both, before, after }) {
  if (both?.length !== 2) return null;
  const [left, right, top, bottom] = [40, WIDE - 8, 16, HIGH - 24];
  const ends = both.flatMap((one) => [one.start, one.start + one.width * one.counts.length]);
  const x = linear([Math.min(0, ...ends), Math.max(0, ...ends)], [left, right]);
  const shares = both.map((one) => one.counts.map((count) => count / (one.width * Math.max(1, one.count))));
  const most = Math.max(...shares.flat());
  if (!(most > 0)) return null;
  const y = logarithmic([most * 1e-5, most * 1.5], [bottom, top]);
  const line = (one, at) => `M${x(one.start).toFixed(1)} ${bottom}${shares[at].map((share, i) => `V${(share ? y(share) : bottom).toFixed(1)}H${x(one.start + one.width * (i + 1)).toFixed(1)}`).join("")}V${bottom}`;
  const reach = ({ low, high }) => [low, high].filter((at) => at >= x.inverse(left) && at <= x.inverse(right)).map((at) => `M${x(at).toFixed(1)} ${top}V${bottom}`).join("");
  const kinds = ["qb-before", "qb-after"];
  const told = both.map((one) => `${one.dtype} from ${number(one.low)} to ${number(one.high)}`).join(" and ");
  const said = `Values of ${short(both[1].tensor, 40)} before and after, logarithmic; the integers reach ${told}`;
  return h(
    "figure",
    { class: "qb-profiles qb-overlaid" },
    s("svg", { class: "qb-plot", role: "img", "aria-label": said, viewBox: `0 0 ${WIDE} ${HIGH}` }, xAxis(x, bottom, right - left, "", right), both.map((one, at) => s("path", { class: kinds[at], d: line(one, at) + reach(one) }))),
    h("figcaption", { class: "qb-sub" }, `dashed: ${short(before.label, 30)}, whole: ${short(after.label, 30)}. ${said}, where the vertical lines are.`),
  );
}

function signed(value, text, unit) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "";
  if (Math.abs(value) < 0.005) return "same";
  const better = value > 0;
  const size = text ?? Math.abs(value).toFixed(2);
  return h("span", { class: better ? "qb-better" : "qb-worse" }, `${better ? "\u25b2 better" : "\u25bc worse"} by ${size}${unit}`);
}

function table(title, heads, rows) {
  return h(
    "div",
    { class: "qb-differences", tabindex: 0, role: "region", "aria-label": title },
    h(
      "table",
      {},
      h("caption", {}, title),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((cell) => h("td", {}, cell))))),
    ),
  );
}
