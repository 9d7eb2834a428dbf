"""Memory that reports who touches what isn't theirs: the blocks of ``QBENCH_GUARD=1``.

Each block ends at a page that cannot be touched, and begins behind one; addresses are never used twice. So a read or
write behind a block, or in one that was given back, ends the process at once: a fault, whose place faulthandler prints.
A block is filled with a pattern, and so is what its pages hold before it, and behind it up to the page: bytes that may
be read, or that its alignment leaves. When the block is given back, a write there ends the process too.
"""

import ctypes
import mmap
import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = mmap.PAGESIZE

PATTERN = 0xA5
"""What each byte of a new block holds."""

_RESERVED = 1 << 44
"""Bytes of addresses, of which pages are made touchable one block at a time."""
_NO_ACCESS, _FIXED, _NORESERVE = 0, 0x10, 0x4000  # PROT_NONE, MAP_FIXED, MAP_NORESERVE of Linux


class _Pages:
    """Addresses that are given out one after the other, never twice."""

    def __init__(self) -> None:
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        word = ctypes.c_size_t
        self._libc.mmap.restype = word
        self._libc.mmap.argtypes = (word, word, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        self._libc.mprotect.argtypes = (word, word, ctypes.c_int)
        self._lock = threading.Lock()
        self._next = self._map(0, _RESERVED, 0)
        self._end = self._next + _RESERVED

    def _map(self, address: int, size: int, more: int) -> int:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | more
        found = self._libc.mmap(address, size, _NO_ACCESS, flags, -1, 0)
        if found == ctypes.c_size_t(-1).value:
            raise _refused("reserve", size)
        return found

    def take(self, size: int) -> int:
        """The address of so many whole pages, behind one that cannot be touched."""
        with self._lock:
            start = self._next + PAGE
            self._next = start + size
            if self._next + PAGE > self._end:
                raise MemoryError(
                    f"QBENCH_GUARD=1: {_RESERVED} bytes of addresses are used up; run fewer tests at once"
                )
        self.protect(start, size, mmap.PROT_READ | mmap.PROT_WRITE)
        return start

    def protect(self, start: int, size: int, access: int = _NO_ACCESS) -> None:
        """Say what may be done with pages."""
        if self._libc.mprotect(start, size, access):
            raise _refused("protect", size)

    def close(self, start: int, size: int) -> None:
        """Give pages back; their addresses stay out of use."""
        self._map(start, size, _FIXED)


def _refused(what: str, size: int) -> MemoryError:
    reason = os.strerror(ctypes.get_errno())
    return MemoryError(f"QBENCH_GUARD=1: the system doesn't {what} {size} bytes: {reason} (see vm.max_map_count)")


@cache
def _pages() -> _Pages:
    return _Pages()


class _Block:
    """What a guarded array stands on: it lives as long as the array and its views."""

    def __init__(self, size: int, slack: int, alignment: int, gaps: Sequence[tuple[int, int]]) -> None:
        self._pages, self._length = _pages(), -(-max(size + slack, 1) // PAGE) * PAGE
        self._start = self._pages.take(self._length)
        self._whole = np.ctypeslib.as_array((ctypes.c_uint8 * self._length).from_address(self._start))
        self._whole[:] = PATTERN
        self._size = size
        self._first = first = (self._length - size - slack) // alignment * alignment
        self._canaries = [(0, first), (first + size, self._length)]
        for start, end in gaps:
            page, last = -(-(first + start) // PAGE) * PAGE, (first + end) // PAGE * PAGE
            self._pages.protect(self._start + page, last - page)
            self._canaries += [(first + start, page), (last, first + end)]
        address = self._start + first
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}

    def __del__(self) -> None:
        for start, end in self._canaries:
            wrong = np.flatnonzero(self._whole[start:end] != PATTERN)
            if len(wrong):
                found = start + int(wrong[0]) - self._first
                said = (
                    f"QBENCH_GUARD=1: byte {found} of a block of {self._size} bytes was written, which isn't its own\n"
                )
                os.write(2, said.encode())
                os.abort()
        self._pages.close(self._start, self._length)


def guarded(size: int, slack: int, alignment: int, gaps: Sequence[tuple[int, int]] = ()) -> NDArray[np.uint8]:
    """A block of memory of its own pages.

    Parameters
    ----------
    size
        Bytes to be read and written, each 0xA5 at first.
    slack
        Bytes behind them to be read only, which end at the page's end as exactly as the alignment allows: up to
        ``alignment - 1`` further bytes can be read, and are only checked for writes.
    alignment
        The block starts at a multiple of this; a power of two of at most a page.
    gaps
        First byte and the one behind the last of what inside the block nobody may write; the whole pages among them
        can't be touched.

    Raises
    ------
    MemoryError
        The system gives no such pages.
    """
    return np.asarray(_Block(size, slack, alignment, gaps))
