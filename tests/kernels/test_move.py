"""Copies and gathers against NumPy's own strided arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.move import copy_fields, copy_kernel, copy_of, gather_kernel
from tests.kernels.harness import launch

ITEMS = (1, 2, 4, 8)
threads = st.integers(1, 3)


def numbers(item: int, count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256**item, count, dtype=f"u{item}", endpoint=False)


def strides_of(array: np.ndarray) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


@st.composite
def places(draw):
    """A shape, and an order of axes, gaps and steps for source and target."""
    shape = tuple(draw(st.lists(st.integers(0, 7) | st.integers(15, 35), min_size=1, max_size=4)))
    rank = len(shape)
    orders = [draw(st.permutations(range(rank))) for _ in range(2)]
    gaps = [draw(st.lists(st.integers(0, 2), min_size=rank, max_size=rank)) for _ in range(2)]
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, -1, -2]), min_size=rank, max_size=rank))
    return shape, orders, gaps, steps


@pytest.mark.parametrize("item", ITEMS)
@given(place=places(), flip=st.sampled_from([0, 0x80]), threads=threads)
def test_copy_between_any_two_places(item, place, flip, threads) -> None:
    shape, orders, gaps, steps = place
    sizes = [tuple(shape[i] + gap[i] for i in order) for order, gap in zip(orders, gaps, strict=True)]
    source_size = tuple(shape[i] * abs(steps[i]) + gaps[0][i] for i in orders[0])
    source = numbers(item, int(np.prod(source_size))).reshape(source_size).transpose(np.argsort(orders[0]))
    ends = zip(shape, steps, strict=True)
    x = source[tuple(slice(None, n * s, s) if s > 0 else slice(n * -s - 1, None, s) for n, s in ends)]
    x = x[tuple(slice(0, n) for n in shape)]
    target = numbers(item, int(np.prod(sizes[1]))).reshape(sizes[1]).transpose(np.argsort(orders[1]))
    out = target[tuple(slice(0, n) for n in shape)]
    wanted = target.copy()
    wanted[tuple(slice(0, n) for n in shape)] = x ^ target.dtype.type(flip)
    fields = copy_fields(shape, strides_of(x), strides_of(out))
    lowest = x.__array_interface__["data"][0] - fields["x_start"] * item
    kernel, fields = copy_of(item, lowest, out.ctypes.data, shape, strides_of(x), strides_of(out), flip)
    launch(kernel, threads, **fields)
    np.testing.assert_array_equal(target, wanted)


@pytest.mark.parametrize(("item", "run", "words"), [(1, 2, 2), (1, 8, 8), (2, 2, 4), (2, 4, 8), (4, 2, 8), (4, 4, 4)])
@given(shape=st.tuples(*[st.integers(1, 5)] * 3), flip=st.sampled_from([0, 0x80]), threads=threads)
def test_runs_of_a_few_elements_are_copied_as_one(item, run, words, shape, flip, threads) -> None:
    x = numbers(item, int(np.prod(shape)) * run).reshape(*shape, run)
    out = np.zeros((shape[1], shape[0], shape[2], run), x.dtype)
    strides = strides_of(out.transpose(1, 0, 2, 3))
    kernel, fields = copy_of(item, x.ctypes.data, out.ctypes.data, x.shape, strides_of(x), strides, flip)
    assert kernel is copy_kernel(words)
    launch(kernel, threads, **fields)
    np.testing.assert_array_equal(out, x.transpose(1, 0, 2, 3) ^ x.dtype.type(flip))


@pytest.mark.parametrize("item", [1, 4])
@given(
    rows=st.integers(1, 2),
    lines=st.integers(1, 600),
    columns=st.integers(2, 45),
    flip=st.sampled_from([0, 0x80]),
    threads=threads,
)
def test_images_are_turned_to_channels_last(item, rows, lines, columns, flip, threads) -> None:
    x = numbers(item, columns * rows * lines).reshape(columns, rows, lines)
    out = np.zeros((rows, lines, columns), x.dtype)
    turned = x.transpose(1, 2, 0)
    given = x.ctypes.data, out.ctypes.data, out.shape, strides_of(turned), strides_of(out), flip
    kernel, fields = copy_of(item, *given)
    launch(kernel, threads, **fields)
    np.testing.assert_array_equal(out, turned ^ x.dtype.type(flip))


@pytest.mark.parametrize("item", ITEMS)
@given(rows=st.integers(1, 600), columns=st.integers(1, 9), apart=st.integers(0, 4), threads=threads)
def test_a_few_neighbours_of_many_pixels(item, rows, columns, apart, threads) -> None:
    source = numbers(item, rows * (columns + apart)).reshape(rows, columns + apart)
    target = np.zeros((rows, 2 * columns + 1), source.dtype)
    x, out = source[:, :columns], target[:, 1 : columns + 1]
    kernel, fields = copy_of(item, x.ctypes.data, out.ctypes.data, x.shape, strides_of(x), strides_of(out), 1)
    launch(kernel, threads, **fields)
    np.testing.assert_array_equal(out, x ^ source.dtype.type(1))
    assert not target[:, 0].any() and not target[:, columns + 1 :].any()


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), threads=threads)
def test_a_repeated_element(shape, threads) -> None:
    out = np.zeros(shape, np.uint16)
    fields = copy_fields(shape, [0] * len(shape), strides_of(out))
    launch(copy_kernel(2), threads, x=np.full(1, 513, np.uint16), out=out, flip=0, **fields)
    assert np.all(out == 513)


def test_too_many_axes_are_refused() -> None:
    array = np.zeros((2,) * 8)
    with pytest.raises(ValueError, match="8 axes that cannot be merged"):
        copy_fields(array.shape, strides_of(array), strides_of(array)[::-1])


@pytest.mark.parametrize("item", ITEMS)
@given(
    data=st.data(), n=st.integers(0, 3), run=st.sampled_from([1, 3, 20]), ends=st.tuples(*[st.integers(0, 2)] * 2),
    gap=st.integers(0, 2), threads=threads,
)  # fmt: skip
def test_gather(item, data, n, run, ends, gap, threads) -> None:
    shape = (3, 4, 5)
    x = numbers(item, 3 * 4 * 5 * run).reshape(*shape, run)
    rows, lines, pixels = (np.array(data.draw(st.lists(st.integers(-1, s - 1), min_size=1, max_size=6))) for s in shape)
    rows = rows[:n]
    fill = x.dtype.type(9)
    inside = (rows >= 0)[:, None, None, None] & (lines >= 0)[:, None, None] & (pixels >= 0)[:, None]
    found = np.where(inside, x[rows][:, lines][:, :, pixels], fill)
    wanted = np.pad(found, (*[(0, 0)] * 3, ends), constant_values=fill)
    width = wanted.shape[3]
    out = np.zeros((*wanted.shape[:3], width + gap), x.dtype)
    tables = [np.where(t < 0, -1, t * s) for t, s in zip((rows, lines, pixels), (20 * run, 5 * run, run), strict=True)]
    launch(
        gather_kernel(item), threads, x=x, extent=x.size, out=out, sizes=found.shape, before=ends[0], after=ends[1],
        out_stride=strides_of(out)[:3], table0=tables[0], table1=tables[1], table2=tables[2], filler=9,
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., :width], wanted)
    assert not out[..., width:].any()
