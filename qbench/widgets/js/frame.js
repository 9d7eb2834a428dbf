// What all widgets share: the kernel's traits drawn as they change, progress, errors where they happened, undo by key.
import { h, set } from "./dom.js";
import { short } from "./numbers.js";

const PATIENCE = 4000; // ms until a kernel that does not answer is busy
const ORPHANED = ["comm_live_update", "comm:close"]; // what ipywidgets says of a model that has lost its kernel

/**
 * The render function of a widget.
 *
 * `part(send)` returns { element, draw: { trait: (view) => ... }, resize?(width), where? }. `send(message)` goes to the
 * kernel; what goes wrong with a message that says `where` is shown in the element that has `data-where` of that value,
 * else at the top. `draw.status` is called with the state of the evaluation.
 */
export function frame(part) {
  return ({ model, el }) => {
    let isDead = false; // whether the kernel that knew this view is gone
    let waiting = null; // for the kernel to answer
    let newest = null; // message that the kernel has not answered
    let count = 0;
    const mine = Math.random().toString(36).slice(2); // views of one model tell their messages apart
    const send = (message) => {
      if (isDead) return;
      newest = `${mine}-${++count}`;
      sayBusy();
      waiting ??= setTimeout(() => set(busy, { hidden: false }), PATIENCE);
      model.send({ ...message, id: newest });
    };
    const answered = () => {
      newest = null;
      clearTimeout(waiting);
      waiting = null;
      set(busy, { hidden: true });
    };
    /** From what is asked for here until all that came of it is there. */
    const sayBusy = () => {
      const isBusy = !isDead && (newest !== null || (model.get("status")?.is_busy ?? false));
      for (const name of ["data-busy", "aria-busy"]) set(root, { [name]: String(isBusy) });
    };
    const busy = h("div", { class: "qb-busy", role: "status", hidden: true }, "The kernel is busy with something else, such as a cell: what was asked for here comes when that is done.");
    const inner = part(send);
    const line = statusLine(send);
    const trouble = h("div", { class: "qb-error", role: "alert", hidden: true });
    const root = h(
      "div",
      { class: "qb", "data-busy": "false", "data-lm-suppress-shortcuts": "true" },
      inner.hasStatus ? null : line.element,
      busy,
      trouble,
      inner.element,
    );
    el.replaceChildren(root);

    const complain = (error) => {
      const place = error?.where ? root.querySelector(`[data-where="${CSS.escape(error.where)}"]`) : null;
      if (place?.checkVisibility()) (place.querySelector(":scope > summary, :scope > form > h3") ?? { after: (one) => place.prepend(one) }).after(trouble);
      else inner.element.before(trouble);
      set(trouble, { hidden: !error });
      const button = (text, action) => h("button", { type: "button", class: "qb-small", onclick: () => send({ do: action }) }, text);
      const buttons = error ? [error.code ? copying(error.code) : null, error.can_undo ? button("Undo", "undo") : null, error.can_close === false ? null : button("Close", "dismiss")] : [];
      trouble.replaceChildren(...(error ? [h("span", { class: "qb-grow" }, error.text), ...buttons.filter(Boolean)] : []));
    };
    const draw = {
      ...inner.draw,
      status: (view) => {
        if (view.answered?.includes(newest)) answered();
        sayBusy();
        line.draw(view);
        complain(view.error);
        inner.draw.status?.(view);
      },
    };
    const guarded = (name) => () => {
      try {
        draw[name](model.get(name));
      } catch (error) {
        complain({ text: `The ${name} cannot be drawn: ${error.message}. Run the cell again.`, can_close: false });
        reportError(error); // and the other parts are drawn
      }
    };
    const handlers = Object.keys(draw).map((name) => [`change:${name}`, guarded(name)]);
    for (const [name, handler] of handlers) {
      handler();
      model.on(name, handler);
    }
    root.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
        event.preventDefault(); // no shortcut of the notebook works in here but this one
        event.stopPropagation();
        el.parentElement?.dispatchEvent(new KeyboardEvent("keydown", event));
        return;
      }
      const action = shortcut(event);
      if (!action) return kept(event);
      event.preventDefault();
      event.stopPropagation();
      send({ do: action });
    });
    root.addEventListener("keypress", kept);
    /** The kernel died or was restarted: nothing here can be answered any more, and what to do about it stands here. */
    const orphaned = () => {
      isDead = true;
      answered();
      const { path } = model.get("status") ?? {};
      const code = path ? `import qbench as qb; session = qb.Session.resume(${JSON.stringify(path)}); qb.Workbench(session)` : null;
      const way = code ? `in a cell: ${code}` : "the cells above again (a session with path= would have kept all of it)";
      root.classList.add("qb-dead");
      for (const one of root.querySelectorAll("button, input, select")) set(one, { disabled: true });
      sayBusy();
      line.draw({ message: "", is_busy: false, progress: null });
      inner.draw.status?.({ ...model.get("status"), is_busy: false, message: "", undo: null, redo: null });
      complain({ text: `The kernel of this view was restarted, or has died. What is shown is what it last said; nothing can be changed.\nTo go on run ${way}`, can_close: false, code });
    };
    for (const event of ORPHANED) model.on(event, orphaned);
    const sizes = new ResizeObserver(() => {
      if (inner.element.clientWidth > 0) inner.resize?.(inner.element.clientWidth);
    });
    sizes.observe(inner.element);
    send({ do: "opened" });
    return () => {
      sizes.disconnect();
      for (const [name, handler] of handlers) model.off(name, handler);
      for (const event of ORPHANED) model.off(event, orphaned);
      try {
        send({ do: "closed" });
      } catch {
        // the kernel is gone, too
      }
      clearTimeout(waiting);
    };
  };
}

/** A button that takes a line of code to the clipboard, or where a page may not do that selects it: no view can run a cell. */
function copying(line) {
  const button = h("button", { type: "button", class: "qb-small", title: "To be pasted into a cell" }, "Copy the line");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "Copied: paste it into a cell";
    } catch {
      const text = button.parentElement.querySelector("span").firstChild;
      const from = text.data.indexOf(line);
      getSelection().setBaseAndExtent(text, from, text, from + line.length);
      button.textContent = "Selected: copy it with Ctrl+C";
    }
  });
  return button;
}

/** What goes on in the kernel, with a bar and a way to stop it: { element, draw(status) }. */
export function statusLine(send) {
  const text = h("span", { class: "qb-status", role: "status" });
  const bar = h("progress", { class: "qb-progress", max: 1, "aria-label": "Progress of the evaluation" });
  const stop = h("button", { type: "button", class: "qb-small", onclick: () => send({ do: "cancel" }) }, "Cancel");
  const element = h("div", { class: "qb-status-line" }, text, bar, stop);
  return {
    element,
    draw(view) {
      text.textContent = view.message;
      for (const one of [bar, stop]) set(one, { hidden: !view.is_busy });
      set(bar, { value: view.progress });
      set(element, { title: view.message && short(view.message, 400) });
    },
  };
}

/** Keys in a field are the field's: JupyterLab would take Enter, and the number that was typed would not count. */
function kept(event) {
  if (event.target.closest("input, select, textarea")) event.stopPropagation();
}

/** Ctrl+Z and Ctrl+Shift+Z (or Ctrl+Y) undo and redo, except while a number or a name is typed. */
function shortcut(event) {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest("input:not([type=checkbox], [type=range]), textarea")) return null;
  const key = event.key.toLowerCase();
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" ? "redo" : null;
}
