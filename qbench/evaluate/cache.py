"""What earlier evaluations computed, kept within a memory budget."""

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import check_count
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.runtime.programs import Programs

_MAX_RESULTS = 1 << 17


class ValueCache:
    """Arrays and small results by key; safe to share between threads.

    Keys say everything that a value depends on (see :mod:`qbench.evaluate.keys`), so nothing is ever invalidated: what
    an edit makes stale is asked for under another key, and an undo finds the old one again.

    Arrays are dropped least recently used first, but never for an array of the same evaluation: an evaluation reads
    its data front to back, and where that is larger than the budget, plain LRU would drop each array just before use.

    Parameters
    ----------
    budget_bytes
        Memory that the arrays may take together. Results (numbers per layer) are tiny and not counted.
    """

    def __init__(self, budget_bytes: int) -> None:
        check_count("cache_bytes", budget_bytes, least=0)
        self.budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._arrays: OrderedDict[Hashable, tuple[int, NDArray[Any]]] = OrderedDict()  # key -> evaluation, array
        self._bytes = 0
        self._dropped = 0  # bytes since memory was last given back
        self._evaluation = 0
        self._programs = Memo()
        self.memo = Memo()
        """Of what evaluations work out from graphs."""
        self._results: OrderedDict[Hashable, Any] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held now."""
        return self._bytes

    def begin(self) -> None:
        """Say that another evaluation starts: what is not read again may now be dropped.

        Once a quarter of the budget was dropped, the system gets back what lies free between the arrays that are kept:
        the allocator would hold on to it, and hours of edits would take twice the budget and more.
        """
        with self._lock:
            self._evaluation += 1
            if self._dropped > self.budget_bytes // 4:
                self._dropped = 0
                _give_back()

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """The array of that key, or None."""
        with self._lock:
            found = self._arrays.get(key)
            if found is None:
                return None
            self._arrays[key] = (self._evaluation, found[1])
            self._arrays.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, array: NDArray[Any]) -> None:
        """Keep the array if there is room for it; it is made read-only and must not change any more."""
        array = _owned(array)
        with self._lock:
            if key in self._arrays or array.nbytes > self.budget_bytes:
                return
            while self._bytes + array.nbytes > self.budget_bytes:
                oldest, (evaluation, dropped) = next(iter(self._arrays.items()))
                if evaluation == self._evaluation:
                    return
                del self._arrays[oldest]
                self._bytes -= dropped.nbytes
                self._dropped += dropped.nbytes
            self._arrays[key] = (self._evaluation, array)
            self._bytes += array.nbytes

    def programs(self, kind: Hashable, graph: Graph, keep: tuple[str, ...]) -> Programs:
        """The programs of a graph, as they were the last time if that graph was the last one of its kind."""
        return self._programs.recall((kind, len(keep)), (graph, keep), lambda: Programs(graph, keep))

    def get_result(self, key: Hashable) -> Any:
        """The small result of that key, or None."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put_result(self, key: Hashable, result: object) -> None:
        """Keep a small result."""
        with self._lock:
            self._results[key] = result
            if len(self._results) > _MAX_RESULTS:
                self._results.popitem(last=False)


@lru_cache(maxsize=1)
def of_process() -> ValueCache:
    """Of a worker: programs and keys, but no values, which another worker would have and this one not."""
    return ValueCache(0)


def _give_back() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc has it
    if trim is not None:
        trim(0)


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """A view of a larger array would keep all of that alive, uncounted; a read-only one cannot be spoiled later."""
    if array.base is not None and array.nbytes < getattr(array.base, "nbytes", 0):
        array = np.array(array, copy=True)
    array = array.view()
    array.flags.writeable = False
    return array
