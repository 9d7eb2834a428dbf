// Elements. Children that are strings become text nodes: names from models are never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: h("p", { class: "note", onclick: f }, "text", child). */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A name that no other view of the page has: each has its own copy of this module. */
export function unique(name) {
  return `${name}-${Math.random().toString(36).slice(2)}`;
}

/** Set attributes; functions are listeners, null and false take an attribute away. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

/**
 * Have these children, in this order. Where they are those already, nothing is touched: an element that leaves the page,
 * if only to come back, loses its focus, its place, and the click that it is in the middle of.
 */
export function fill(element, children) {
  if (children.length !== element.childElementCount || children.some((one, at) => element.children[at] !== one)) element.replaceChildren(...children);
}

function filled(element, attributes, children) {
  set(element, attributes).append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}
