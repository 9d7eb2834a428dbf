"""Long work on a thread of its own, of which only the newest request counts."""

import contextvars
import threading
from collections.abc import Callable


class Runner:
    """Does the same work again and again, on request.

    A request while the work is going on cancels it and has it start anew, so that what comes out is always of the
    newest state. The notebook stays usable meanwhile.

    Parameters
    ----------
    work
        Called on the thread, with an event that is set when it should stop. Must not raise.
    """

    def __init__(self, work: Callable[[threading.Event], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._wanted = False
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether work is going on, or about to."""
        with self._lock:
            return self._thread is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the work will be done once more after what goes on."""
        with self._lock:
            return self._wanted

    def request(self) -> None:
        """Have the work done; returns at once."""
        with self._lock:
            self._wanted = True
            self._cancel.set()
            if self._thread is None:
                # the caller's context: Jupyter's messages are sent as answers to the one that the caller handles
                run = contextvars.copy_context().run
                self._thread = threading.Thread(target=run, args=(self._loop,), name="qbench-run", daemon=True)
                self._thread.start()

    def cancel(self) -> None:
        """Have the work stop that goes on, and forget what was requested."""
        with self._lock:
            self._wanted = False
            self._cancel.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is left to do; False where that took longer than `timeout` seconds."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _loop(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._thread = None
                    return
                self._wanted = False
                self._cancel = cancel = threading.Event()
            self._work(cancel)
