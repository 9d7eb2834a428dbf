"""ONNX files to start from, and models made wrong on purpose: whole fields, where a byte would only break lengths."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from ml_dtypes import int4
from onnx import ModelProto, TensorProto, helper

from tests.frontends.models import model, node
from tests.frontends.models import random as reals
from tests.frontends.test_bad_files import small

NUMBERS = (-(2**62), -(2**31), -7, -2, -1, 0, 1, 2, 3, 5, 100, 2**20, 2**31, 2**62)


def models() -> Iterator[ModelProto]:
    """Valid models of many ops: float, folded chains of sizes, quantized both ways."""
    yield small()
    image = {"x": ["N", 4, 6, 6]}
    weights = {"w": reals(4, 4, 3, 3), "b": reals(4), "s": np.float32(0.1), "z": np.uint8(3), "zw": np.int8(0)}
    yield model(
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1]),
            node("BatchNormalization", ["c", "b", "b", "b", "p"], ["n"]),
            node("Clip", ["n"], ["r"]),
            node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], ceil_mode=1),
            node("GlobalAveragePool", ["m"], ["g"]),
            node("Flatten", ["g"], ["y"]),
        ],
        image,
        constants={**weights, "p": np.abs(reals(4))},
    )
    yield model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("DequantizeLinear", ["wq", "s", "zw"], ["wd"]),
            node("Conv", ["d", "wd"], ["c"]),
            node("QuantizeLinear", ["c", "s", "z"], ["cq"]),
            node("DequantizeLinear", ["cq", "s", "z"], ["y"]),
        ],
        image,
        constants={**weights, "wq": np.ones((4, 4, 3, 3), np.int8)},
    )
    yield model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("QLinearConv", ["q", "s", "z", "wq", "s", "zw", "s", "z"], ["c"]),
            node("DequantizeLinear", ["c", "s", "z"], ["y"]),
        ],
        image,
        constants={**weights, "wq": np.ones((4, 4, 3, 3), np.int8)},
    )
    yield quantized()
    sizes = {
        "scales": np.array([1, 1, 2, 2], np.float32),
        "i": np.array([1]),
        "pads": np.arange(8),
        "axes": np.array([2]),
    }
    yield model(
        [
            node("Resize", ["x", "", "scales"], ["big"], mode="linear"),
            node("Pad", ["big", "pads"], ["padded"]),
            node("Slice", ["padded", "i", "axes", "axes"], ["cut"]),
            node("Transpose", ["cut"], ["t"], perm=[0, 2, 3, 1]),
            node("ReduceMean", ["t"], ["mean"], axes=[1, 2]),
            node("Concat", ["mean", "mean"], ["k"], axis=-1),
            node("Gather", ["k", "i"], ["taken"], axis=3),
            node("Shape", ["taken"], ["shape"]),
            node("Reshape", ["taken", "shape"], ["y"]),
        ],
        image,
        constants=sizes,
    )


def quantized() -> ModelProto:
    """Scales per channel, stored biases and weights of 4 bits, QLinear ops, and quantization at run time."""
    ms = {"domain": "com.microsoft"}
    proto = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["d"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
            node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0),
            node("Conv", ["d", "wd", "bd"], ["c"], pads=[1, 1, 1, 1]),
            node("Relu", ["c"], ["r"]),
            node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
            node("QLinearAdd", ["rq", "s", "z", "q", "s", "z", "s", "z"], ["sum"], **ms),
            node("QLinearAveragePool", ["sum", "s", "z", "s", "z"], ["pool"], kernel_shape=[2, 2], **ms),
            node("QLinearConcat", ["s", "z", "pool", "s", "z", "pool", "t", "z"], ["both"], axis=1, **ms),
            node("QLinearSigmoid", ["both", "s", "z", "t", "z"], ["sig"], **ms),
            node("DequantizeLinear", ["sig", "t", "z"], ["real"]),
            node("Flatten", ["real"], ["flat"]),
            node("DequantizeLinear", ["v", "t", "vz"], ["vd"]),
            node("Transpose", ["vd"], ["vt"], perm=[1, 0]),
            node("MatMul", ["flat", "vt"], ["m"]),
            node("QuantizeLinear", ["m", "t", "z"], ["mq"]),
            node("QLinearSoftmax", ["mq", "t", "z", "t", "z"], ["soft"], axis=1, opset=13, **ms),
            node("DequantizeLinear", ["soft", "t", "z"], ["sd"]),
            node("DynamicQuantizeLinear", ["sd"], ["dq", "ds", "dz"]),
            node("MatMulInteger", ["dq", "k", "dz"], ["y"]),
        ],
        {"x": ["N", 4, 6, 6]},
        constants={
            "s": np.float32(0.1), "t": np.float32(0.02), "z": np.uint8(3), "w": np.ones((4, 4, 3, 3), np.int8),
            "ws": np.full(4, 0.1, np.float32), "wz": np.zeros(4, np.int8), "b": np.arange(4, dtype=np.int32),
            "bs": np.full(4, 0.01, np.float32), "v": np.ones((5, 200), int4), "vz": np.zeros((), int4),
            "k": np.ones((5, 2), np.int8),
        },
        opset=21,
        dtypes={"y": TensorProto.INT32},
    )  # fmt: skip
    proto.opset_import.add(domain="com.microsoft", version=1)
    return proto


def files() -> list[bytes]:
    """The models as files."""
    return [proto.SerializeToString() for proto in models()]


def wrong(data: bytes, rng: random.Random) -> bytes:
    """A model with a few fields changed to what no exporter writes."""
    proto = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice((_attribute, _wire, _dims, _constant, _type))(proto, rng)
    return proto.SerializeToString()


def _attribute(proto: ModelProto, rng: random.Random) -> None:
    op = rng.choice(proto.graph.node)
    if not op.attribute or rng.random() < 0.1:
        op.attribute.append(helper.make_attribute(rng.choice(("axis", "pads", "to", "mode")), rng.choice(NUMBERS)))
        return
    attribute = rng.choice(op.attribute)
    if attribute.ints and rng.random() < 0.8:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
    elif attribute.ints:
        attribute.ints.append(rng.choice(NUMBERS))
    else:
        attribute.i = rng.choice(NUMBERS)


def _wire(proto: ModelProto, rng: random.Random) -> None:
    op, other = rng.choice(proto.graph.node), rng.choice(proto.graph.node)
    names = op.input if rng.random() < 0.7 else op.output
    if names:
        names[rng.randrange(len(names))] = rng.choice(["", *other.input, *other.output])


def _dims(proto: ModelProto, rng: random.Random) -> None:
    if proto.graph.initializer and rng.random() < 0.7:
        dims = rng.choice(proto.graph.initializer).dims
        if dims:
            dims[rng.randrange(len(dims))] = rng.choice(NUMBERS)
    else:
        shape = rng.choice(proto.graph.input).type.tensor_type.shape.dim
        rng.choice(shape).dim_value = rng.choice(NUMBERS)


def _constant(proto: ModelProto, rng: random.Random) -> None:
    if proto.graph.initializer:
        tensor = rng.choice(proto.graph.initializer)
        content = bytearray(tensor.raw_data)
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
            tensor.raw_data = bytes(content)


def _type(proto: ModelProto, rng: random.Random) -> None:
    if proto.graph.initializer:
        rng.choice(proto.graph.initializer).data_type = rng.choice(TensorProto.DataType.values())
