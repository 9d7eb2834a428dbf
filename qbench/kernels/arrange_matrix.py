"""Matrices of activations, less their zero points, in the order in which products of whole matrices read them."""

from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

_FIELDS = (
    "x", "out", "bias", "added", "starts", "batch", "columns", "depth", "column_step", "depth_step", "zero_x", "zero",
    "parts", "steps",
)  # fmt: skip
WIDTH, _GROUP = 32, 4
"""Columns of a panel; codes that lie side by side."""

STEP_BYTES = 64 * WIDTH
"""Of a panel's part, for each step."""


@register_jitable
def _put(out: Any, place: Any, value: Any, parts: Any, part_bytes: Any) -> None:
    """A number as the sum of `parts` numbers of 8 bits."""
    for part in range(parts):
        here = min(max(value, -128), 127)
        out[at(part * part_bytes + place)] = here
        value -= here


@makes_kernels
def arrange_matrix_kernel() -> Kernel:
    """Codes of matrices x, less `zero`, int8 ``[batch, panels, parts, steps, 16, 32, 4]`` whose parts add up to them.

    `starts` (int64[batch]) says where the matrices begin, `column_step` and `depth_step` where the next elements are;
    what is beyond them is zero. At `bias`, int32 ``[batch, panels, 32]`` becomes `added` (int32[columns]) less `zero_x`
    times the sum of each column.
    """

    def arrange(args: Any, bases: Any, thread: int, threads: int) -> None:
        columns, depth, zero, parts = args.columns, args.depth, args.zero, args.parts
        column_step, depth_step, part_bytes = args.column_step, args.depth_step, args.steps * STEP_BYTES
        panels, line = (columns + WIDTH - 1) // WIDTH, WIDTH * _GROUP
        starts, added = view(bases, args.starts, args.batch, np.int64), view(bases, args.added, columns, np.int32)
        for unit in range(*share(args.batch * panels, thread, threads)):
            n, first = unit // panels, unit % panels * WIDTH
            count, start = min(WIDTH, columns - first), starts[n] + first * column_step
            out = view(bases, args.out + unit * parts * part_bytes, parts * part_bytes, np.int8)
            bias = view(bases, args.bias + unit * WIDTH * 4, WIDTH, np.int32)
            out[:], bias[:] = 0, 0
            x = view(bases, args.x + start, (count - 1) * column_step + (depth - 1) * depth_step + 1, np.uint8)
            for k in range(depth):
                place = k // _GROUP * line + k % _GROUP
                for c in range(count):
                    value = np.int32(x[at(k * depth_step + c * column_step)]) - np.int32(zero)
                    bias[at(c)] += value
                    _put(out, place + c * _GROUP, value, parts, part_bytes)
            for c in range(count):
                bias[at(c)] = added[at(first + c)] - np.int32(args.zero_x) * bias[at(c)]

    return Kernel("arrange.matrix", record(**dict.fromkeys(_FIELDS, "i8")), arrange)
