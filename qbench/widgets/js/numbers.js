// Numbers as people read them. Python sends what is not finite as "inf" and "-inf".

const MINUS = "\u2212";
export const NONE = "\u2013";

/** Four significant digits: 0.02518, 6.422, 1234, 3.1e-7. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return NONE;
  if (Array.isArray(value)) return value.length ? span(value, digits) : NONE;
  const x = Number(value);
  if (!Number.isFinite(x)) return String(value) === "-inf" ? MINUS + "\u221e" : "\u221e";
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-4 || size >= 1e6) ? x.toExponential(digits - 2) : String(Number(x.toPrecision(digits)));
  return text.replaceAll("-", MINUS);
}

/** Decibels, one digit after the point; exact where there is no error at all. */
export function decibels(value) {
  if (value === null || value === undefined) return NONE;
  return value === "inf" ? "exact" : Number.isFinite(Number(value)) ? Number(value).toFixed(1).replace(/^-0.0$/, "0.0").replace("-", MINUS) : NONE;
}

/** A fraction in percent. */
export function percent(value, digits = 2) {
  if (value === null || value === undefined) return NONE;
  const x = 100 * value;
  return x > 0 && x < 10 ** -digits ? `< ${10 ** -digits} %` : `${x.toFixed(value === 0 ? 0 : digits)} %`;
}

/** A whole number with separators. */
export function count(value) {
  return Number(value).toLocaleString("en-US");
}

/** A large count in few letters: 1.2k, 30.1M, 4G. */
export function brief(value) {
  const power = Math.min(3, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${number(value / 1000 ** power, 3)}${["", "k", "M", "G"][power]}`;
}

/** Milliseconds in a unit that suits them. */
export function duration(ms) {
  return ms < 0.1 ? `${number(1000 * ms, 2)} \u00b5s` : ms < 1000 ? `${number(ms, 3)} ms` : `${number(ms / 1000, 3)} s`;
}

/** A size in memory. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(3, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${power ? (value / 1000 ** power).toPrecision(3) : value} ${units[power]}`;
}

/** Long names in the middle of which nothing is read anyway. */
export function short(name, limit = 48) {
  return name.length <= limit ? name : `${name.slice(0, limit - 12)}\u2026${name.slice(-10)}`;
}

function span(values, digits) {
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  return low === high ? number(low, digits) : `${number(low, digits - 1)}\u2026${number(high, digits - 1)}`;
}
