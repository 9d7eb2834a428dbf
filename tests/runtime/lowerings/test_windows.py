"""Which taps of a window are needed."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.ops.float.conv import Conv2d
from qbench.ops.numeric.windows import Window
from qbench.runtime.lowerings.windows import Taps, taps_that_meet

PAIR = st.tuples(st.integers(1, 9), st.integers(1, 9))


def outputs(window: Window, size: tuple[int, int]) -> tuple[int, int]:
    padded = (size[axis] + window.padding[axis] + window.padding[axis + 2] for axis in (0, 1))
    height, width = ((s - r) // stride + 1 for s, r, stride in zip(padded, window.reach, window.strides, strict=True))
    return height, width


def test_the_middle_of_deeplab() -> None:
    op = Conv2d(padding=(36,) * 4, dilation=(36, 36))
    assert taps_that_meet(op, (3, 3), (14, 33), (14, 33)) == Taps((1, 2), (1, 2), (0, 0, 0, 0))
    assert taps_that_meet(op, (3, 3), (37, 36), (37, 36)) == Taps((0, 3), (1, 2), (36, 0, 36, 0))


@given(kernel=PAIR, strides=PAIR, dilation=PAIR, size=PAIR, padding=st.tuples(*[st.integers(0, 20)] * 4))
def test_taps_that_are_left_out_lie_in_the_padding(kernel, strides, dilation, size, padding) -> None:
    window = Window(kernel, strides, padding, dilation)
    out = outputs(window, size)
    assume(min(out) >= 1)
    op = Conv2d(strides=strides, padding=padding, dilation=dilation)
    taps = taps_that_meet(op, kernel, size, out)
    for axis, span in enumerate((taps.rows, taps.columns)):
        assert taps.padding[axis] >= 0
        for place, tap in product(range(out[axis]), range(kernel[axis])):
            inside = 0 <= place * strides[axis] + tap * dilation[axis] - padding[axis] < size[axis]
            assert span[0] <= tap < span[1] or not inside
    left = tuple(last - first for first, last in (taps.rows, taps.columns))
    assert min(left) >= 1
    enough = outputs(Window(left, strides, taps.padding, dilation), size)
    assert all(has >= needs for has, needs in zip(enough, out, strict=True))
