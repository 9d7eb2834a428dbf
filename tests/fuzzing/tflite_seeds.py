"""TFLite files to start from, and networks made wrong on purpose: whole fields, where a byte only breaks offsets."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tflite.loops import looping, recurrent
from tests.frontends.tflite.networks import Parts, quantized, real
from tests.tflite_files import TYPES, Tensor, constant, model, operator

NUMBERS = (-(2**31), -7, -2, -1, 0, 1, 2, 3, 5, 100, 2**16, 2**31 - 1)
REALS = (0.0, -1.0, 1e-45, 1e-30, 0.5, 1.0, 3e38, float("inf"), float("nan"))


def _one(op: str, *operands: Any, outputs: int = 1, dtype: str = "float32", **options: Any) -> Parts:
    """One op; arrays are constants, tuples shapes of inputs called x, and x again."""
    tensors: list[Tensor] = []
    quantization = {} if dtype == "float32" else {"scale": 0.05, "zero_point": 0}
    for number, operand in enumerate(operands):
        if isinstance(operand, tuple):
            tensors.append(Tensor("x" if number == 0 else f"x{number}", operand, dtype, **quantization))
        else:
            tensors.append(constant(f"k{number}", operand))
    names = [tensor.name for tensor in tensors]
    made = ["y" if number == 0 else f"y{number}" for number in range(outputs)]
    tensors += [Tensor(name, (1, 2, 2, 2), dtype, **quantization) for name in made]
    return tensors, [operator(op, names, made, **options)]


def _ints(*values: int) -> np.ndarray[Any, Any]:
    return np.asarray(values, np.int32)


IMAGE = (1, 4, 6, 4)
UNARY = (
    *("ABS", "ELU", "EXP", "HARD_SWISH", "L2_NORMALIZATION", "LOG", "LOGISTIC", "LOG_SOFTMAX", "NEG", "RELU", "RELU6"),
    *("RSQRT", "SQRT", "SQUARE", "TANH", "SHAPE"),
)
WINDOW = {"padding": "SAME", "stride_w": 2, "stride_h": 1}


def networks() -> Iterator[Parts]:
    """Valid networks that between them have every operator."""
    yield from (quantized(), real())
    for dtype in ("float32", "int8", "uint8", "int16"):
        for op in UNARY:
            yield _one(op, IMAGE, dtype=dtype)
        for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
            yield _one(op, IMAGE, (6, 1), dtype=dtype)
        for op in ("MEAN", "SUM", "REDUCE_MAX"):
            yield _one(op, IMAGE, _ints(1, 2), dtype=dtype, keep_dims=True)
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            yield _one(op, IMAGE, dtype=dtype, filter_width=2, filter_height=3, **WINDOW)
        for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
            yield _one(op, IMAGE, _ints(5, 7), dtype=dtype, align_corners=True)
        yield _one("SOFTMAX", IMAGE, dtype=dtype, beta=1.0)
        yield _one("LEAKY_RELU", IMAGE, dtype=dtype, alpha=0.1)
        yield _one("CONCATENATION", IMAGE, IMAGE, dtype=dtype, axis=3)
        yield _one("BATCH_MATMUL", (2, 3, 4), (2, 4, 5), dtype=dtype)
        yield _one("SPLIT", _ints(3), IMAGE, dtype=dtype, outputs=2, num_splits=2)
        yield _one("SPLIT_V", IMAGE, _ints(1, 3), _ints(3), dtype=dtype, outputs=2, num_splits=2)
        yield _one("PAD", IMAGE, _ints(*range(8)).reshape(4, 2), dtype=dtype)
        yield _one("MIRROR_PAD", IMAGE, _ints(0, 0, 1, 1, 2, 1, 0, 0).reshape(4, 2), dtype=dtype, mode="REFLECT")
        yield _one("STRIDED_SLICE", IMAGE, _ints(0, 1, 0), _ints(1, 3, 6), _ints(1, 1, 2), dtype=dtype, end_mask=1)
        yield _one("SLICE", IMAGE, _ints(0, 1, 0, 0), _ints(-1, 2, 3, 4), dtype=dtype)
        yield _one("GATHER", IMAGE, _ints(1, 0, 1), dtype=dtype, axis=2)
        yield _one("TILE", IMAGE, _ints(1, 2, 1, 3), dtype=dtype)
        yield _one("TRANSPOSE", IMAGE, _ints(2, 0, 1, 3), dtype=dtype)
        yield _one("EXPAND_DIMS", (2, 3, 4), _ints(1), dtype=dtype)
        yield _one("SQUEEZE", (1, 1, 1, 4), dtype=dtype, squeeze_dims=(1, 2))
        yield _one("RESHAPE", IMAGE, _ints(2, -1, 6), dtype=dtype)
        yield _one("PACK", (2, 3, 4), (2, 3, 4), dtype=dtype, axis=1, values_count=2)
        yield _one("UNPACK", (2, 3, 4), dtype=dtype, outputs=3, axis=1, num=3)
        yield _one("DEPTH_TO_SPACE", IMAGE, dtype=dtype, block_size=2)
        yield _one("SPACE_TO_DEPTH", IMAGE, dtype=dtype, block_size=2)
        yield _one("QUANTIZE", IMAGE, dtype=dtype)
        yield _one("CAST", IMAGE, dtype=dtype)
    yield _one("TRANSPOSE_CONV", _ints(1, 4, 12, 3), np.ones((3, 2, 2, 4), np.float32), IMAGE, **WINDOW)


def files() -> list[bytes]:
    """The networks as files, and loops."""
    loops = [looping(), *(recurrent(kind) for kind in ("lstm", "gru", "rnn"))]
    return loops + [model(tensors, operators, _inputs(tensors)) for tensors, operators in networks()]


def wrong(parts: Parts, rng: random.Random) -> bytes:
    """A network with a few fields changed to what no converter writes."""
    tensors, operators = list(parts[0]), list(parts[1])
    inputs = _inputs(tensors)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.6:
            index = rng.randrange(len(tensors))
            tensors[index] = dataclasses.replace(tensors[index], **_tensor_fault(tensors[index], rng))
        else:
            index = rng.randrange(len(operators))
            operators[index] = dataclasses.replace(operators[index], **_operator_fault(operators[index], tensors, rng))
    return model(tensors, operators, inputs)


def _inputs(tensors: list[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors if tensor.name.startswith("x")]


def _tensor_fault(tensor: Tensor, rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(7)
    shape = list(tensor.shape)
    if kind == 0 and tensor.data is not None and np.asarray(tensor.data).dtype == np.int32:
        data = np.array(tensor.data).ravel()
        data[rng.randrange(data.size)] = rng.choice(NUMBERS)
        return {"data": data, "shape": (data.size,)}
    if kind == 1:
        axes = rng.randrange(5)
        return {"shape": tuple(rng.choice(NUMBERS[2:9]) for _ in range(axes)), "signature": None}
    if kind == 2 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(NUMBERS)
        return {"shape": tuple(shape), "signature": (-1,) * len(shape) if rng.random() < 0.3 else None}
    if kind == 3:
        return {"dtype": rng.choice((*TYPES, 5, 10, 18, 99)), "raw": None if tensor.data is None else bytes(64)}
    if kind == 4:
        return {"scale": rng.choice((*REALS, [0.1, 0.2, 0.3], None)), "axis": rng.choice((0, 1, 3, -1, 9))}
    if kind == 5:
        return {"zero_point": rng.choice((*NUMBERS, 2**40)), "scale": tensor.scale or 0.1}
    return {"data": None, "raw": bytes(rng.choice((0, 1, 64)))} if rng.random() < 0.5 else {"variable": True}


def _operator_fault(op: Any, tensors: list[Tensor], rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(3)
    if kind == 0 and op.options:
        name = rng.choice(list(op.options))
        old = op.options[name]
        plain = isinstance(old, (int, str)) and not isinstance(old, bool)
        small = name in ("padding", "fused_activation_function", "mode", "out_type")
        new = rng.randrange(-3, 9) if small else rng.choice(NUMBERS) if plain else rng.choice(REALS)
        return {"options": {**op.options, name: new if plain or isinstance(old, float) else old}}
    wires = [
        rng.choice(tensors).name if rng.random() < 0.4 else name for name in (op.inputs if kind == 1 else op.outputs)
    ]
    if rng.random() < 0.3:
        wires = wires[:-1] if rng.random() < 0.5 else [*wires, ""]
    return {"inputs": wires} if kind == 1 else {"outputs": [name for name in wires if name]}
