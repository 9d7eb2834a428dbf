// A value that moves at the display's rate, sent now and then: the steps of one gesture have one name.

const EVERY = 120; // ms between two that are sent
const REST = 1000; // ms after which the next step is another gesture

/** `act(value, gesture, moves)` is called; `moves` while it may move on. Returns { soon(value), now(value), stop(), isPending() }. */
export function throttled(act) {
  const mine = Math.random().toString(36).slice(2);
  let timer = null;
  let wanted = null;
  let sent = null;
  let moved = -Infinity;
  let gesture = 0;
  const stop = () => {
    clearTimeout(timer);
    timer = null;
  };
  const send = (moves) => {
    stop();
    if (wanted !== sent) act(wanted, `${mine}-${gesture}`, moves);
    sent = wanted;
  };
  const step = (value) => {
    if (performance.now() - moved > REST) [gesture, sent] = [gesture + 1, null];
    moved = performance.now();
    wanted = value;
  };
  return {
    stop,
    isPending: () => timer !== null,
    /** It is there, and may move on. */
    soon(value) {
      step(value);
      timer ??= setTimeout(() => send(true), EVERY);
    },
    /** It rests: the next step is another gesture. */
    now(value) {
      step(value);
      send(false);
      moved = -Infinity;
    },
  };
}
