from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from qbench.ir.types import TensorType
from qbench.ops.tflite.resize import tflite_resize


@given(
    source=st.integers(1, 64),
    out=st.integers(1, 600),
    coordinates=st.sampled_from(["half_pixel", "align_corners", "asymmetric"]),
)
@example(source=33, out=513, coordinates="asymmetric")
def test_a_slope_stays_one_up_to_its_end(source, out, coordinates) -> None:
    """Positions in units of 2^-10, as TFLite's reference_ops/resize_bilinear.h has them, but never behind the end."""
    ends = coordinates == "align_corners" and out > 1
    scale = (1024 * (source - 1) + (out - 1) // 2) // (out - 1) if ends else (1024 * source + out // 2) // out
    place = np.arange(out) * scale + (scale // 2 - 512 if coordinates == "half_pixel" else 0)
    slope = np.arange(source, dtype=np.int8)
    wanted = np.floor(np.interp(place / 1024, np.arange(source), slope) + 0.5)
    op, tables = tflite_resize(TensorType((1, 1, source, 1), "int8"), (out, 1), coordinates)
    np.testing.assert_array_equal(op.compute(slope.reshape(1, 1, -1, 1), *tables.values()).ravel(), wanted)
