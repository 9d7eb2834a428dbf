"""Sums against integer.add and integer.add_float32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.kernels.add import add_codes_kernel, add_kernel, code_weights
from qbench.kernels.levels import Level
from qbench.kernels.rounding import is_plain
from qbench.kernels.walk import strided
from qbench.ops.integer.requantize import IntegerAdd, IntegerAddFloat32
from qbench.ops.onnx.add import OnnxAdd
from qbench.quant.rounding import FIXED_POINT
from tests.kernels.harness import RUNNABLE, codes, launch, padded, stored

TYPES = ("int8", "uint8", "int16")
mantissas = st.integers(-(2**31) + 1, 2**31 - 1)


@st.composite
def shapes(draw):
    """Three shapes, the last of which the others broadcast to, and gaps between rows."""
    shape = (*draw(st.lists(st.integers(1, 4), max_size=2)), draw(st.integers(1, 5) | st.integers(60, 140)))
    shape = (draw(st.integers(1, 3)), *shape)
    both = [tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in shape) for _ in range(2)]
    out = np.broadcast_shapes(*both)
    return (*both, out), [draw(st.integers(0, 2)) for _ in range(3)]


def place(values: np.ndarray, gap: int) -> tuple[np.ndarray, list[int]]:
    """Codes in memory with gaps behind the last axis, and their strides."""
    memory = np.full((*values.shape[:-1], values.shape[-1] + gap), 99, codes(values).dtype)
    memory[..., : values.shape[-1]] = codes(values)
    memory = padded(memory)
    return memory, [s // memory.itemsize if n > 1 else 0 for n, s in zip(values.shape, memory.strides, strict=True)]


def operands(seed, types, shape) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    infos = [np.iinfo(dtype) for dtype in types]
    return tuple(
        random.integers(info.min, info.max, size, info.dtype, endpoint=True)
        for info, size in zip(infos[:2], shape[:2], strict=True)
    )


def run(kernel, op, values, types, gaps, threads, **fields) -> None:
    wanted = op.compute(*values)
    (a, a_strides), (b, b_strides) = (place(v, gap) for v, gap in zip(values, gaps[:2], strict=True))
    out, _ = stored(types[2], (*wanted.shape[:-1], wanted.shape[-1] + gaps[2]))
    y_strides = [s // out.itemsize for s in out.strides]
    walk = strided(wanted.shape, a=a_strides, b=b_strides, y=y_strides)
    launch(kernel, threads, a=a, b=b, y=out, **walk, **fields)
    np.testing.assert_array_equal(out[..., : wanted.shape[-1]], codes(wanted))
    assert np.all(out[..., wanted.shape[-1] :] == 77)


def general(op, types, **parameters) -> dict:
    offsets = [128 if dtype == "int8" else 0 for dtype in types]
    info = np.iinfo(types[2])
    return {
        "zero_a": op.zero_points[0] + offsets[0], "zero_b": op.zero_points[1] + offsets[1],
        "zero_point": op.zero_point + offsets[2], "low": info.min + offsets[2], "high": info.max + offsets[2],
        **dict.fromkeys(("mantissa_a", "mantissa_b", "shift_a", "shift_b", "multiplier_a", "multiplier_b"), 0),
        **dict.fromkeys(("offset", "left", "mantissa_y", "shift_y"), 0),
        **parameters,
    }  # fmt: skip


def kernel_for(kind, types, rounding, plain=False):
    return add_kernel(kind, *(codes(np.zeros(1, dtype)).dtype.str[1:] for dtype in types), rounding, plain)


def zero_points(data, types) -> list[int]:
    return [data.draw(st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))) for dtype in types]


@pytest.mark.parametrize("types", [("int8", "uint8", "int8"), ("int16", "int16", "int16"), ("uint8", "int16", "uint8")])
@given(data=st.data(), seed=st.integers(0, 2**32), shape=shapes(), threads=st.integers(1, 3))
def test_exact_sums_rounded_once(types, data, seed, shape, threads) -> None:
    sizes, gaps = shape
    mantissa, shift = (data.draw(mantissas), data.draw(mantissas)), data.draw(st.integers(-40, 40))
    *zeros, zero_point = zero_points(data, types)
    rounding = data.draw(st.sampled_from(["tflite_single", "pow2_half_even"]))
    op = IntegerAdd(
        mantissa=mantissa, shift=(shift, shift), rounding=rounding, zero_points=tuple(zeros), zero_point=zero_point,
        dtype=types[2],
    )  # fmt: skip
    fields = general(op, types, mantissa_a=mantissa[0], mantissa_b=mantissa[1], shift_a=shift)
    run(kernel_for("once", types, rounding), op, operands(seed, types, sizes), types, gaps, threads, **fields)


@pytest.mark.parametrize("rounding", sorted(FIXED_POINT))
@given(data=st.data(), seed=st.integers(0, 2**32), shape=shapes(), threads=st.integers(1, 3))
def test_operands_rounded_by_themselves(rounding, data, seed, shape, threads) -> None:
    sizes, gaps = shape
    types = ("int8", "uint8", "int8")
    most = data.draw(st.sampled_from([0, 31]))
    mantissa, shift = (
        (data.draw(mantissas), data.draw(mantissas)),
        [data.draw(st.integers(-40, most)) for _ in range(2)],
    )
    *zeros, zero_point = zero_points(data, types)
    op = IntegerAdd(
        mantissa=mantissa, shift=tuple(shift), rounding=rounding, zero_points=tuple(zeros), zero_point=zero_point,
        dtype=types[2], per_operand=True,
    )  # fmt: skip
    fields = general(op, types, mantissa_a=mantissa[0], mantissa_b=mantissa[1], shift_a=shift[0], shift_b=shift[1])
    plain = is_plain(np.array(shift), rounding)
    run(kernel_for("each", types, rounding, plain), op, operands(seed, types, sizes), types, gaps, threads, **fields)


@pytest.mark.parametrize("types", [("int8", "uint8", "int8"), ("int16", "int16", "int16")])
@given(data=st.data(), seed=st.integers(0, 2**32), shape=shapes(), threads=st.integers(1, 3))
def test_sums_in_float32(types, data, seed, shape, threads) -> None:
    sizes, gaps = shape
    multipliers = tuple(data.draw(st.floats(-4, 4, width=32)) for _ in range(2))
    *zeros, zero_point = zero_points(data, types)
    op = IntegerAddFloat32(multipliers=multipliers, zero_points=tuple(zeros), zero_point=zero_point, dtype=types[2])
    fields = general(op, types, multiplier_a=multipliers[0], multiplier_b=multipliers[1])
    run(kernel_for("float32", types, "fp32_rne"), op, operands(seed, types, sizes), types, gaps, threads, **fields)


@pytest.mark.parametrize("types", [("int8",) * 3, ("uint8",) * 3])
@given(data=st.data(), seed=st.integers(0, 2**32), shape=shapes(), threads=st.integers(1, 3))
def test_sums_by_fused_multiply_add(types, data, seed, shape, threads) -> None:
    sizes, gaps = shape
    multipliers = tuple(data.draw(st.floats(0, 4, width=32)) for _ in range(2))
    offset = data.draw(st.floats(-300, 300, width=32))
    op = OnnxAdd(multipliers=multipliers, offset=offset, dtype=types[2])
    info, beyond = np.iinfo(types[2]), 128 if types[2] == "int8" else 0
    fields = dict.fromkeys(("mantissa_a", "mantissa_b", "mantissa_y", "shift_a", "shift_b", "shift_y", "left"), 0)
    fields |= {"zero_a": beyond, "zero_b": beyond, "zero_point": beyond, "offset": offset}
    fields |= {"multiplier_a": multipliers[0], "multiplier_b": multipliers[1]}
    fields |= {"low": info.min + beyond, "high": info.max + beyond}
    run(kernel_for("fused", types, "fp32_rne"), op, operands(seed, types, sizes), types, gaps, threads, **fields)


@pytest.mark.parametrize("level", [level for level in RUNNABLE if level != Level.PORTABLE])
@given(data=st.data(), seed=st.integers(0, 2**32), shape=shapes(), threads=st.integers(1, 3))
def test_codes_in_vectors(level, data, seed, shape, threads) -> None:
    sizes, gaps = shape
    assume(sizes[2][-1] > 1)  # gaps would lie between the elements of a row, which `in_vectors` refuses
    types = tuple(data.draw(st.sampled_from(TYPES)) for _ in range(3))
    near = st.integers(-(2**31) + 2**15, 2**31 - 2**16)
    mantissa, shift = (data.draw(near), data.draw(near)), data.draw(st.integers(-5, 8))
    *zeros, zero_point = zero_points(data, types)
    op = IntegerAdd(
        mantissa=mantissa, shift=(shift, shift), rounding="tvm_upward", zero_points=tuple(zeros), zero_point=zero_point,
        dtype=types[2],
    )  # fmt: skip
    offsets = [128 if dtype == "int8" else 0 for dtype in types]
    stored = "int16" if types[2] == "int16" else "uint8"
    low = data.draw(st.integers(int(np.iinfo(stored).min), int(np.iinfo(stored).max)))
    high = data.draw(st.integers(low, int(np.iinfo(stored).max)))
    elements = tuple(codes(np.zeros(1, dtype)).dtype.str[1:] for dtype in types)
    both = (zeros[0] + offsets[0], zeros[1] + offsets[1])
    weights = code_weights(mantissa, shift, both, zero_point + offsets[2], low, high, elements[:2])
    assume(weights is not None)

    class Clamped:
        @staticmethod
        def compute(*values):
            return np.clip(codes(op.compute(*values)), low, high).astype(stored)

    kernel = add_codes_kernel(level, *elements)
    run(kernel, Clamped, operands(seed, types, sizes), (*types[:2], stored), gaps, threads, **weights)


def test_usual_multipliers_have_code_weights() -> None:
    for shift in range(-8, 8):
        assert code_weights((2**30 + 12345, 2**31 - 2**16), shift, (128, 3), 77, 0, 255) is not None
    assert code_weights((2**31 - 1, 2**30), 0, (0, 0), 0, 0, 255) is None
    assert code_weights((2**30, 2**30), 20, (0, 0), 0, 0, 255) is None
    assert code_weights((2**30 + 12345, 2**31 - 2**16), 0, (0, 0), 0, -(2**15), 2**15 - 1, ("i2", "i2")) is not None
    assert code_weights((2**30, 2**30), 0, (-(2**15), -(2**15)), 0, -(2**15), 2**15 - 1, ("i2", "i2")) is None
