"""Walks of four axes reach every element of arrays of any number of axes once, as NumPy does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.walk import row_major, strided, walks

SHAPES = st.lists(st.integers(1, 3), max_size=7).map(tuple)


def spread(small: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array that broadcasts to a shape."""
    return tuple(0 if size == 1 else step for size, step in zip(small, row_major(small), strict=True))


@given(shape=SHAPES, data=st.data())
def test_elements_are_those_of_numpy(shape: tuple[int, ...], data: st.DataObject):
    order = data.draw(st.permutations(range(len(shape))))  # in which the first operand lies
    small = tuple(size if data.draw(st.booleans()) else 1 for size in shape)
    turned = row_major([shape[i] for i in order])
    a = tuple(turned[order.index(i)] for i in range(len(shape)))
    steps = {"a": a, "b": spread(small, shape), "y": row_major(shape)}
    wanted = {
        tuple(int(np.dot(at, strides)) if shape else 0 for strides in steps.values()) for at in np.ndindex(*shape)
    }
    found = list[tuple[int, ...]]()
    for begins, fields in walks(shape, **steps):
        assert fields["y3"] == 1
        for at in np.ndindex(*(fields[f"n{i}"] for i in range(4))):
            places = (begins[name] + sum(at[i] * fields[f"{name}{i}"] for i in range(4)) for name in steps)
            found.append(tuple(places))
    assert len(found) == len(wanted)
    assert {*found} == wanted


def test_one_walk_is_enough_where_neighbours_lie_as_one():
    shape, bias = (5, 4, 8, 7, 7), (1, 8, 7, 7)
    (walk,) = walks(shape, a=row_major(shape), b=(0, *spread(bias, shape[1:])), y=row_major(shape))
    assert walk == ({"a": 0, "b": 0, "y": 0}, strided((20, 392), a=(392, 1), b=(0, 1), y=(392, 1)))


def test_of_too_many_axes_the_smallest_are_gone_through():
    shape, small = (60, 8, 4, 3, 2), (60, 1, 4, 3, 1)
    found = walks(shape, a=row_major(shape), b=spread(small, shape), y=row_major(shape))
    assert len(found) == 1, "the axes of 4 and 3 lie as one in both"
    shape, small = (60, 8, 4, 3, 2), (60, 1, 4, 1, 2)
    found = walks(shape, a=row_major(shape), b=spread(small, shape), y=row_major(shape))
    assert [begins for begins, _ in found] == [{"a": 2 * i, "b": 0, "y": 2 * i} for i in range(3)]
    assert {fields["n3"] for _, fields in found} == {2}
