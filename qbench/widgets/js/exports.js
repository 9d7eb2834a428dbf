// The dialog that asks what to write, and where to.
import { h, set, unique } from "./dom.js";

/** Returns { element, open(), tell(status) }; `send(message)` talks to the kernel. */
export function exportDialog(send) {
  let known = "";
  const title = unique("qb-export");
  const folder = h("input", { type: "text", class: "qb-grow", "aria-label": "Folder, where the kernel runs", required: true });
  const files = h("fieldset", {}, h("legend", {}, "Files"));
  const done = h("p", { class: "qb-sub", role: "status" });
  const write = h("button", { type: "submit" }, "Export");
  const close = h("button", { type: "button", onclick: () => element.close() }, "Close");
  const form = h(
    "form",
    { method: "dialog" },
    h("h3", { id: title }, "Export"),
    h("label", { class: "qb-fields" }, "Folder ", folder),
    files,
    done,
    h("div", { class: "qb-fields qb-buttons" }, close, write),
  );
  const element = h("dialog", { class: "qb-dialog", "aria-label": "Export", "data-where": "export" }, form);
  const chosen = () => [...files.querySelectorAll("input:checked")].map((box) => box.value);
  const check = () => set(write, { disabled: !chosen().length || !folder.value.trim() });
  form.addEventListener("input", check);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    done.textContent = "Writing\u2026";
    send({ do: "export", folder: folder.value.trim(), files: chosen(), where: "export" });
  });
  return {
    element,
    open() {
      done.textContent = "";
      element.showModal();
      folder.focus();
      check();
    },
    tell(status) {
      if (status.message || status.error) done.textContent = status.error ? "" : status.message;
      const key = JSON.stringify([status.files, status.folder]);
      if (key === known) return;
      known = key;
      folder.value = status.folder;
      files.replaceChildren(
        files.firstChild,
        ...Object.entries(status.files).map(([name, about]) => {
          const box = h("input", { type: "checkbox", value: name });
          box.checked = status.usual.includes(name);
          return h("label", {}, box, h("span", {}, name, h("span", { class: "qb-sub" }, ` ${about}`)));
        }),
      );
      check();
    },
  };
}
