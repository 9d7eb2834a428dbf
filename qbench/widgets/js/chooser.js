// Which columns of a table are shown: ticked in a list, and remembered by the browser.
import { h } from "./dom.js";

const KEY = "qbench.columns";

/** Returns { element, shown(), isChosen() }; `changed()` is called when another choice was made. */
export function columnChooser(columns, changed) {
  const kept = remembered();
  let isChosen = kept !== null;
  const shown = new Set(kept ?? columns.filter((one) => one.isShown).map((one) => one.key));
  shown.add(columns[0].key); // the name is always there
  const boxes = columns.slice(1).map((column) =>
    h(
      "label",
      { title: column.tip },
      h("input", { type: "checkbox", checked: shown.has(column.key), onchange: (event) => pick(column.key, event.target.checked) }),
      column.label,
    ),
  );
  const element = h("details", { class: "qb-columns" }, h("summary", { class: "qb-small" }, "Columns"), h("div", { class: "qb-columns-list", role: "group", "aria-label": "Columns" }, boxes));
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !element.open) return;
    element.open = false;
    element.firstChild.focus();
    event.stopPropagation();
  });
  function pick(key, isShown) {
    if (isShown) shown.add(key);
    else shown.delete(key);
    isChosen = true;
    try {
      localStorage.setItem(KEY, JSON.stringify([...shown]));
    } catch {
      // a page without storage forgets
    }
    changed();
  }
  return { element, shown: () => columns.filter((one) => shown.has(one.key)), isChosen: () => isChosen };
}

function remembered() {
  try {
    const keys = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(keys) ? keys : null;
  } catch {
    return null;
  }
}
