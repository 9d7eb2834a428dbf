"""Weights that were rounded on data, on disk: as integers, with what those mean."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.errors import SessionError
from qbench.files import replacing
from qbench.ir.dtypes import DType
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.qparams import QParams
from qbench.passes.round_weights import RoundedWeight
from qbench.quant.arithmetic import dequantize, quantize
from qbench.session.arrays import stored_arrays


def save_rounded(weights: Mapping[str, RoundedWeight], path: Path) -> None:
    """Write them to one npz file, whole or not at all."""
    arrays = dict[str, NDArray[Any]]()
    said = list[object]()
    for number, (name, one) in enumerate(weights.items()):
        integers = quantize(one.weight.array, one.qparams)
        arrays[f"weight{number}"] = integers.astype(np.int16 if one.qparams.qmax > np.iinfo(np.int8).max else np.int8)
        if one.bias is not None:
            arrays[f"bias{number}"] = one.bias[1].array
        said.append((name, _said(one.qparams), _said(one.given), None if one.bias is None else one.bias[0]))
    arrays["said"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType] the stub's allow_pickle


def load_rounded(path: Path) -> FrozenMap[str, RoundedWeight]:
    """Read what `save_rounded` wrote; SessionError where it is not that."""
    try:
        arrays = stored_arrays(path)
        return FrozenMap(
            {
                name: _rounded(number, _qparams(q), _qparams(given), bias, arrays)
                for number, (name, q, given, bias) in enumerate(json.loads(arrays["said"].tobytes()))
            }
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SessionError(
            f"{path.name}: the rounded weights cannot be read: {error}; without that file they are rounded again"
        ) from error


def _rounded(
    number: int, qparams: QParams, given: QParams, bias: str | None, arrays: Mapping[str, NDArray[Any]]
) -> RoundedWeight:
    weight = Constant(dequantize(arrays[f"weight{number}"], qparams).astype(np.float32))
    return RoundedWeight(weight, qparams, given, None if bias is None else (bias, Constant(arrays[f"bias{number}"])))


def _said(q: QParams) -> tuple[object, ...]:
    return q.scale, q.zero_point, q.dtype, q.axis, q.block


def _qparams(said: list[Any]) -> QParams:
    scale, zero_point, dtype, axis, block = said
    if isinstance(scale, list):
        scale, zero_point = tuple(cast("list[float]", scale)), tuple(zero_point)
    return QParams(scale, zero_point, cast(DType, dtype), axis, block)
