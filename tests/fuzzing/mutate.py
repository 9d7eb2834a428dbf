"""Ways to damage a file: bytes, words, spans, and what another file has in their place."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

WORDS = (0, 1, 2, 3, 4, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)


def mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """The file with a few damages."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if len(damaged) > 8:
            rng.choice(_WAYS)(damaged, others, rng)
    return bytes(damaged)


Way = Callable[[bytearray, Sequence[bytes], random.Random], None]


def _flip(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    data[_place(data, rng)] ^= 1 << rng.randrange(8)


def _byte(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    data[_place(data, rng)] = rng.randrange(256)


def _word(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    place = min(_place(data, rng) & ~3, len(data) - 4)
    old = struct.unpack_from("<I", data, place)[0]
    new = rng.choice((*WORDS, len(data), old + 1, old - 1, old + 4, old - 4, old * 2, rng.getrandbits(32)))
    struct.pack_into("<I", data, place, new & 0xFFFFFFFF)


def _swap(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    a, b = (min(_place(data, rng) & ~3, len(data) - 4) for _ in range(2))
    data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


def _remove(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    start = _place(data, rng)
    del data[start : start + rng.choice((1, 2, 4, 16, 64))]


def _repeat(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    start, length = _place(data, rng), rng.choice((1, 4, 16, 64))
    data[start:start] = data[start : start + length] * rng.choice((1, 2, 50))


def _cut(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    del data[rng.randrange(8, len(data)) :]


def _splice(data: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    other = rng.choice(others)
    start, length = rng.randrange(len(other)), rng.choice((4, 16, 64, 256))
    place = _place(data, rng)
    data[place : place + length] = other[start : start + length]


_WAYS: tuple[Way, ...] = (
    _flip,
    _byte,
    _byte,
    _word,
    _word,
    _word,
    _word,
    _swap,
    _swap,
    _remove,
    _repeat,
    _cut,
    _splice,
)


def _place(data: bytearray, rng: random.Random) -> int:
    """Anywhere behind the identifier; half the time near an end, where both formats keep what is no weight."""
    if rng.random() < 0.5 or len(data) < 4096:
        return rng.randrange(8, len(data))
    near = rng.randrange(8, 4096)
    return near if rng.random() < 0.5 else len(data) - near
