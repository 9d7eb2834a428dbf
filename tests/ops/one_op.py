"""One op of TFLite beside the qnn op that stands for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.ir.op import OPS
from qbench.ir.qparams import QParams
from tests.tflite_files import Resolver, Tensor, litert, model, operator

few = settings(max_examples=20)
"""Each example is a file made, loaded and run by LiteRT."""

SEED = st.integers(0, 2**32 - 1)
WIDTH = st.sampled_from(["int8", "uint8", "int16"])


def qparams(dtype: str, scale: st.SearchStrategy[float] | None = None) -> st.SearchStrategy[QParams]:
    """qparams as TFLite takes them: 16 bits are symmetric."""
    info = np.iinfo(dtype)
    zero_points = st.just(0) if dtype == "int16" else st.integers(info.min, info.max)
    return st.builds(
        QParams, st.floats(2.0**-12, 8.0, width=32) if scale is None else scale, zero_points, st.just(dtype)
    )


def every(dtype: str) -> np.ndarray[Any, Any]:
    """All integers of a type."""
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype)


def some(seed: int, dtype: str, shape: Sequence[int], low: int | None = None) -> np.ndarray[Any, Any]:
    """Random integers of a type: over its whole range, or near its ends."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    if rng.random() < 0.2:
        return rng.choice([info.min, info.min + 1, 0, info.max - 1, info.max], shape).astype(dtype)
    return rng.integers(info.min if low is None else low, info.max + 1, shape).astype(dtype)


def reference(
    op: str,
    inputs: Sequence[tuple[np.ndarray[Any, Any], QParams | None]],
    out: QParams | None,
    constants: Sequence[np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], QParams]] = (),
    shape: Sequence[int] = (1,),
    dtype: str | None = None,
    resolver: Resolver = "BUILTIN_REF",
    **options: Any,
) -> np.ndarray[Any, Any]:
    """What LiteRT makes of the inputs, behind which the op takes the constants."""
    tensors, feeds = list[Tensor](), dict[str, np.ndarray[Any, Any]]()
    for i, (array, q) in enumerate(inputs):
        tensors.append(_tensor(f"x{i}", array.shape, array.dtype.name, q))
        feeds[f"x{i}"] = array
    for i, constant in enumerate(constants):
        array, q = constant if isinstance(constant, tuple) else (constant, None)
        tensors.append(_tensor(f"c{i}", array.shape, array.dtype.name, q, array))
    names = [tensor.name for tensor in tensors]
    tensors.append(_tensor("y", shape, dtype or (out.dtype if out else "float32"), out))
    return litert(model(tensors, [operator(op, names, ["y"], **options)], [*feeds], ["y"]), feeds, resolver)["y"]


def _tensor(name: str, shape: Sequence[int], dtype: str, q: QParams | None, data: Any = None) -> Tensor:
    scale: Any = None if q is None else q.scale if q.axis is None else list(q.scales)
    zero: Any = 0 if q is None else q.zero_point if q.axis is None else list(q.zero_points)
    return Tensor(name, shape, dtype, data, scale=scale, zero_point=zero, axis=0 if q is None else q.axis or 0)


def ours(
    op: str,
    arrays: Sequence[np.ndarray[Any, Any]],
    qin: Sequence[QParams | None],
    out: QParams | None,
    **attrs: Any,
) -> np.ndarray[Any, Any]:
    """What the qnn op makes of them."""
    bound = OPS[op](qin=tuple(qin), qout=(out,), **attrs)  # type: ignore[call-arg]
    return bound.compute_all(tuple(arrays))[0]


def requantized(
    accumulator: np.ndarray[Any, Any], scale: float | Sequence[float], out: QParams, rounding: str, axis: int = -1
) -> np.ndarray[Any, Any]:
    """An accumulator at the scale of an output, by qnn.requantize."""
    dtype: Any = accumulator.dtype.name
    per_axis = not isinstance(scale, float)
    q = (
        QParams(tuple(scale), (0,) * len(scale), dtype, axis % accumulator.ndim)
        if per_axis
        else QParams(scale, 0, dtype)
    )
    return ours("qnn.requantize", [accumulator], [q], out, rounding=rounding)


def nchw(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From TFLite's layout to ours."""
    return array.transpose(0, 3, 1, 2)


def nhwc(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Back."""
    return array.transpose(0, 2, 3, 1)
