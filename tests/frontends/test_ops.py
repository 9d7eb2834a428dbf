"""Each ONNX op, in the opsets where its meaning changed, gives onnxruntime's outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontends.models import check, model, node, random, save


@dataclass
class Case:
    """One node. `inputs` are arrays to feed, or constants where the name begins with ``c``."""

    op: str
    inputs: dict[str, np.ndarray]
    attrs: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    batch: bool = True

    def __str__(self) -> str:
        shapes = "_".join("x".join(map(str, a.shape)) for a in self.inputs.values())
        return f"{self.op}-{self.opset}-{shapes}-" + "-".join(f"{k}={v}" for k, v in self.attrs.items())


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = random(2, 4, 6, 8)
LINE = random(2, 3, 10)
VOLUME = random(2, 4, 5, 6, 7)
POSITIVE = np.abs(X) + np.float32(0.1)
NONE = np.zeros(0)  # an absent optional input


def unary() -> list[Case]:
    plain = "Abs Ceil Cos Erf Exp Floor HardSwish IsNaN Neg Relu Round Sigmoid Sign Sin Softplus Softsign Tanh Mish"
    cases = [Case(op, {"x": X}, opset=18) for op in (*plain.split(), "Identity")]
    cases += [Case(op, {"x": POSITIVE}) for op in ("Log", "Reciprocal", "Sqrt")]
    cases += [Case(op, {"x": np.tanh(X)}) for op in ("Acos", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan")]
    cases += [
        Case("LeakyRelu", {"x": X}),
        Case("LeakyRelu", {"x": X}, {"alpha": 0.2}, 7),
        Case("Elu", {"x": X}, {"alpha": 0.7}),
        Case("Celu", {"x": X}, {"alpha": 0.7}),
        Case("Celu", {"x": X}),
        Case("Selu", {"x": X}),
        Case("HardSigmoid", {"x": X}),
        Case("HardSigmoid", {"x": X}, {"alpha": 1 / 6, "beta": 0.5}),
        Case("ThresholdedRelu", {"x": X}, {"alpha": 0.3}),
        Case("Shrink", {"x": X}),
        Case("Shrink", {"x": X}, {"bias": 0.3, "lambd": 0.7}),
        Case("IsInf", {"x": X}, opset=20),
        Case("Gelu", {"x": X}, opset=20),
        Case("Gelu", {"x": X}, {"approximate": "tanh"}, 20),
        Case("Swish", {"x": X}, {"alpha": 1.5}, 24),
        Case("Clip", {"x": X}, {"min": 0.0, "max": 6.0}, 7),
        Case("Clip", {"x": X}, {"max": 0.5}, 10),
        Case("Clip", {"x": X}, {"min": 0.0}, 10),
        Case("Clip", {"x": X, "c0": np.float32(-0.5), "c1": np.float32(0.5)}, opset=11),
        Case("Clip", {"x": X, "c0": np.float32(-np.inf), "c1": np.float32(0.5)}),
        Case("Clip", {"x": X, "": NONE, "c1": np.float32(0.5)}),
        Case("Clip", {"x": X, "c0": np.float32(0.7), "c1": np.float32(0.2)}),
        Case("Clip", {"x": X}),
        Case("Clip", {"x": X, "low": np.float32(0.1)}),
        Case("Clip", {"x": ints(*range(-4, 5)), "c0": np.int64(-2), "c1": np.int64(3)}),
        Case("Clip", {"x": ints(-(2**41), 2**25, 2**41), "c0": np.int64(-(2**40) - 1), "c1": np.int64(2**25 + 1)}),
        Case("Clip", {"x": np.arange(-4, 5, dtype=np.int32), "": NONE, "c1": np.int32(3)}),
        Case("PRelu", {"x": X, "c": random(4, 1, 1)}),
        Case("PRelu", {"x": X, "c": random(1)}),
        Case("PRelu", {"x": X, "c": random(8)}),
        Case("PRelu", {"x": X, "c": random(4, 6, 8)}),
        Case("PRelu", {"x": X, "slope": random(4, 1, 1)}, opset=9),
        Case("Dropout", {"x": X}, {"ratio": 0.4}, 7),
        Case("Dropout", {"x": X, "c0": np.float32(0.4)}, opset=13),
        Case("Dropout", {"x": X, "c0": np.float32(0.4), "c1": np.array(False)}, opset=13),
    ]
    for axis in (None, 0, 1, 2, -1):
        attrs = {} if axis is None else {"axis": axis}
        cases += [
            Case(op, {"x": X}, attrs, opset, batch=axis != 0) for op in ("Softmax", "LogSoftmax") for opset in (11, 13)
        ]
    cases += [Case("Softmax", {"x": random(2, 5, 1, 1)}, {"axis": 1}, 11), Case("Softmax", {"x": random(2, 5)}, {}, 7)]
    return cases


def binary() -> list[Case]:
    cases = [
        Case(op, {"x": X, "y": random(1, 4, 1, 8, seed=1)})
        for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean"]
    ]
    cases += [Case(op, {"c": random(8, seed=1), "x": X}) for op in ["Add", "Sub", "Mul", "Div", "Max", "Min"]]
    cases += [
        Case(op, {"x": X, "y": X[:, :, ::-1].copy()})
        for op in ["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"]
    ]
    flags = {"x": X > 0, "y": X > 0.5}
    cases += [Case(op, flags) for op in ("And", "Or", "Xor")] + [Case("Not", {"x": X > 0})]
    return [
        *cases,
        Case("Div", {"x": ints(-7, 7, 5), "c": ints(2, -2, 5)}),
        Case("Pow", {"x": POSITIVE, "c": np.float32(2.5)}),
        Case("Pow", {"x": POSITIVE, "c": np.int64(2)}),
        Case("Pow", {"x": POSITIVE, "y": np.full((8,), 3, np.int32)}),
        Case("Where", {"f": X > 0, "x": X, "c": np.float32(-2)}),
        Case("Sum", {"x": X, "y": X, "z": X}),
        Case("Mean", {"x": X, "y": X, "z": X}),
        Case("Max", {"x": X}),
        Case("Cast", {"x": X * 9}, {"to": TensorProto.INT32}),
        Case("Cast", {"x": X}, {"to": TensorProto.FLOAT}),
        Case("Cast", {"x": X > 0}, {"to": TensorProto.FLOAT}),
        Case("CastLike", {"x": X * 9, "c": ints(1)}),
    ]


def convolutions() -> list[Case]:
    w, b = random(6, 4, 3, 3, seed=1), random(6, seed=2)
    line = random(5, 3, 4, seed=1)
    wt = random(4, 3, 3, 3, seed=1)
    return [
        Case("Conv", {"x": X, "cw": w}),
        Case("Conv", {"x": X, "cw": w, "cb": b}, {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
        Case("Conv", {"x": X, "cw": random(8, 2, 3, 3)}, {"group": 2, "kernel_shape": [3, 3]}),
        Case("Conv", {"x": X, "cw": random(4, 1, 3, 3)}, {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        Case("Conv", {"x": X, "cw": random(4, 1, 4, 4)}, {"group": 4, "auto_pad": "SAME_LOWER"}),
        Case("Conv", {"x": X, "cw": w}, {"auto_pad": "VALID"}),
        Case("Conv", {"x": X, "w": w, "b": b}, opset=11),
        Case("Conv", {"x": LINE, "cw": line, "cb": random(5)}, {"pads": [1, 2], "strides": [2]}),
        Case("Conv", {"x": LINE, "w": line}, {"dilations": [2]}),
        Case("ConvTranspose", {"x": X, "cw": wt, "cb": random(3)}, {"strides": [2, 2]}),
        Case(
            "ConvTranspose",
            {"x": X, "cw": wt},
            {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]},
        ),
        Case("ConvTranspose", {"x": X, "cw": wt}, {"strides": [2, 2], "output_shape": [12, 15]}),
        Case("ConvTranspose", {"x": X, "cw": wt}, {"strides": [2, 3], "auto_pad": "SAME_UPPER"}),
        Case("ConvTranspose", {"x": X, "cw": wt}, {"strides": [2, 3], "auto_pad": "SAME_LOWER"}),
        Case("ConvTranspose", {"x": X, "cw": random(4, 2, 3, 3)}, {"group": 2, "dilations": [2, 1]}),
        Case("ConvTranspose", {"x": LINE, "cw": random(3, 2, 4)}, {"strides": [2]}),
        Case("Col2Im", {"x": random(2, 12, 12), "c0": ints(6, 8), "c1": ints(2, 2)}, {"strides": [2, 2]}, 18),
        Case("Col2Im", {"x": random(2, 12, 9), "c0": ints(7, 6), "c1": ints(2, 2)}, {"strides": [2, 2]}, 18),
        Case("Col2Im", {"x": random(2, 18, 15), "c0": ints(5, 7), "c1": ints(3, 3)}, {}, 18),
        Case(
            "Col2Im",
            {"x": random(2, 12, 12), "c0": ints(5, 7), "c1": ints(2, 3)},
            {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]},
            18,
        ),
        Case("DeformConv", {"x": X, "cw": random(6, 4, 3, 3), "offset": random(2, 18, 4, 6)}, {}, 19),
        Case(
            "DeformConv",
            {
                "x": X,
                "cw": random(6, 2, 3, 2),
                "off": random(2, 24, 3, 6),
                "cb": random(6),
                "mask": random(2, 12, 3, 6),
            },
            {"offset_group": 2, "group": 2, "strides": [2, 1], "pads": [1, 0, 0, 1], "dilations": [1, 3]},
            19,
        ),
    ]


def volumes() -> list[Case]:
    w, window = random(6, 4, 3, 2, 3, seed=1), {"kernel_shape": [2, 3, 2]}
    padded = {"pads": [1, 0, 2, 0, 1, 1], "strides": [2, 1, 2]}
    return [
        Case("Conv", {"x": VOLUME, "cw": w}),
        Case("Conv", {"x": VOLUME, "cw": w, "cb": random(6)}, {**padded, "dilations": [1, 2, 1]}),
        Case("Conv", {"x": VOLUME, "cw": w}, {"dilations": [2, 1, 1]}),
        Case("Conv", {"x": VOLUME, "w": random(6, 2, 2, 3, 3)}, {"group": 2}),
        Case("Conv", {"x": VOLUME, "cw": random(8, 1, 3, 3, 3)}, {"group": 4, "pads": [1] * 6}),
        Case("Conv", {"x": VOLUME, "cw": random(3, 4, 1, 3, 3)}, {"auto_pad": "SAME_UPPER", "strides": [1, 2, 2]}),
        Case("Conv", {"x": VOLUME, "cw": random(3, 4, 3, 2, 2)}, {"auto_pad": "SAME_LOWER", "strides": [2, 2, 1]}),
        Case("MaxPool", {"x": VOLUME}, window),
        Case("MaxPool", {"x": VOLUME}, {**window, "pads": [1, 1, 0, 0, 1, 1], "strides": [1, 2, 2]}),
        Case("MaxPool", {"x": VOLUME}, {**window, "strides": [2, 2, 2], "ceil_mode": 1, "dilations": [2, 1, 1]}),
        Case("AveragePool", {"x": VOLUME}, {**window, "strides": [2, 1, 2]}),
        Case("AveragePool", {"x": VOLUME}, {**window, "pads": [1, 1, 0, 0, 1, 1]}),
        Case("AveragePool", {"x": VOLUME}, {**window, "pads": [1, 1, 0, 0, 1, 1], "count_include_pad": 1}),
        Case("GlobalAveragePool", {"x": VOLUME}),
        Case("GlobalMaxPool", {"x": VOLUME}),
    ]


def pools() -> list[Case]:
    k = {"kernel_shape": [3, 2]}
    whole = k | {"strides": [2, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1, "ceil_mode": 1}
    return [
        Case("MaxPool", {"x": X}, k),
        Case("MaxPool", {"x": X}, k | {"strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1}, 11),
        Case("MaxPool", {"x": X}, k | {"dilations": [2, 1]}, 12),
        Case("MaxPool", {"x": X}, k | {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, 8),
        Case("MaxPool", {"x": LINE}, {"kernel_shape": [3], "strides": [2]}),
        Case("AveragePool", {"x": X}, k | {"strides": [2, 2], "pads": [1, 0, 1, 1]}, 7),
        Case("AveragePool", {"x": X}, whole, 19),
        Case("AveragePool", {"x": X}, k | {"strides": [2, 3], "ceil_mode": 1}, 19),
        Case("AveragePool", {"x": X}, k | {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
        Case("AveragePool", {"x": LINE}, {"kernel_shape": [4], "pads": [1, 2]}),
        *(Case(op, {"x": x}) for op in ("GlobalAveragePool", "GlobalMaxPool") for x in (X, LINE)),
    ]


def norms() -> list[Case]:
    c = {name: np.abs(random(4, seed=i)) + np.float32(0.1) for i, name in enumerate(("c0", "c1", "c2", "c3"))}
    two = {"c0": c["c0"], "c1": c["c1"]}
    return [
        Case("BatchNormalization", {"x": X} | c, {"epsilon": 1e-3}, 7),
        Case("BatchNormalization", {"x": X} | c, {"momentum": 0.8}, 9),
        Case("BatchNormalization", {"x": random(3, 4)} | c, {}, 15),
        Case("InstanceNormalization", {"x": X} | two),
        Case("InstanceNormalization", {"x": random(2, 4, 9)} | two, {"epsilon": 1e-2}),
        Case("LayerNormalization", {"x": X, "c0": random(8), "c1": random(8)}),
        Case("LayerNormalization", {"x": X, "c0": random(6, 8)}, {"axis": 2, "epsilon": 1e-3}),
        Case("GroupNormalization", {"x": X, "c0": random(4), "c1": random(4)}, {"num_groups": 2}, 21),
        Case("LRN", {"x": X}, {"size": 3, "alpha": 0.1}),
        Case("LpNormalization", {"x": X}, {"axis": 1}),
        Case("LpNormalization", {"x": X}, {"p": 1}),
        Case("LpNormalization", {"x": X * (np.arange(4) > 1)[:, None, None].astype(np.float32)}, {"axis": 3}),
        Case("MeanVarianceNormalization", {"x": X}),
    ]


def reductions() -> list[Case]:
    cases: list[Case] = []
    for kind in ("Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp", "LogSum"):
        op = f"Reduce{kind}"
        attr = 11 if op == "ReduceSum" else 17
        cases.append(Case(op, {"x": POSITIVE}, {"axes": [2, -1], "keepdims": 0}, attr))
        cases.append(Case(op, {"x": POSITIVE}, {}, attr))
        cases.append(Case(op, {"x": POSITIVE, "c": ints(1)}, {}, 18))
    return [
        *cases,
        Case("ReduceSum", {"x": X}, {"noop_with_empty_axes": 1}, 13),
        Case("ReduceMean", {"x": X, "": NONE}, {"keepdims": 0}, 18),
        Case("ArgMax", {"x": X}, {"axis": -1}),
        Case("ArgMax", {"x": X.round()}, {"axis": 2, "select_last_index": 1}),
        Case("ArgMin", {"x": X.round()}, {"axis": 1, "keepdims": 0, "select_last_index": 1}),
        Case("Hardmax", {"x": X.round()}, {"axis": 1}),
        Case("Hardmax", {"x": X.round()}, {"axis": 3}, 11),
        Case("ReduceMax", {"x": X > 1, "c": ints(1)}, opset=20),
        Case("ReduceMin", {"x": X > -1, "c": ints(2, 3)}, {"keepdims": 0}, 20),
        Case("ArgMin", {"x": X}, {"axis": 1, "keepdims": 0}),
    ]


def movements() -> list[Case]:
    return [
        Case("Reshape", {"x": X, "c": ints(0, -1)}),
        Case("Reshape", {"x": X, "c": ints(-1, 4, 48)}),
        Case("Reshape", {"x": X, "c": ints(2, 192)}, {"allowzero": 1}, batch=False),
        Case("Flatten", {"x": X}),
        Case("Flatten", {"x": X}, {"axis": 0}),
        Case("Flatten", {"x": X}, {"axis": -1}, 13),
        Case("Flatten", {"x": X}, {"axis": 4}),
        Case("Transpose", {"x": X}, {"perm": [0, 2, 3, 1]}),
        Case("Transpose", {"x": X}),
        Case("Squeeze", {"x": random(2, 1, 3, 1)}, {"axes": [1]}, 7),
        Case("Squeeze", {"x": random(2, 1, 3, 1), "c": ints(-1)}, {}, 13),
        Case("Squeeze", {"x": random(2, 1, 3, 1)}, {}, 13),
        Case("Unsqueeze", {"x": LINE}, {"axes": [1, 4]}, 7),
        Case("Unsqueeze", {"x": LINE, "c": ints(-1, 0)}, {}, 13),
        Case("DepthToSpace", {"x": X}, {"blocksize": 2}, 7),
        Case("DepthToSpace", {"x": X}, {"blocksize": 2, "mode": "CRD"}, 11),
        Case("SpaceToDepth", {"x": X}, {"blocksize": 2}),
        Case("Concat", {"x": X, "y": X[:, :2], "c": random(2, 3, 6, 8)}, {"axis": 1}, batch=False),
        Case("Concat", {"x": X, "y": X}, {"axis": -1}),
        Case("Concat", {"x": X}, {"axis": 1}),
        Case("Split", {"x": X}, {"axis": 1}, 7, outputs=2),
        Case("Split", {"x": X}, {"axis": 1, "split": [1, 3]}, 11, outputs=2),
        Case("Split", {"x": X, "c": ints(1, 2, 5)}, {"axis": -1}, 13, outputs=3),
        Case("Split", {"x": X}, {"axis": 3, "num_outputs": 3}, 18, outputs=3),
        Case("Slice", {"x": X}, {"starts": [1, -3], "ends": [3, 100], "axes": [1, 3]}, 9),
        Case("Slice", {"x": X}, {"starts": [0, 1], "ends": [2**31 - 1, 3]}, 7),
        Case("Slice", {"x": X, "c0": ints(1, 7), "c1": ints(-1, -(2**63)), "c2": ints(2, -1), "c3": ints(1, -2)}),
        Case("Slice", {"x": X, "c0": ints(0), "c1": ints(2**63 - 1), "c2": ints(0)}),
        Case("Slice", {"x": X, "c0": ints(0, 1), "c1": ints(2**31 - 1, 3)}),
        Case("Pad", {"x": X}, {"pads": [0, 0, 1, 2, 0, 0, 3, 4], "value": 0.5}, 7),
        Case("Pad", {"x": X, "c0": ints(0, 1, 1, 2, 0, 0, 3, 4), "c1": np.float32(2)}, {}, 11),
        Case("Pad", {"x": X, "c0": ints(0, 0, 1, 2, 0, 0, 3, 4)}, {"mode": "reflect"}),
        Case("Pad", {"x": X, "c0": ints(0, 0, -1, 2, 0, 0, 3, -4)}, {"mode": "edge"}),
        Case("Pad", {"x": X, "c0": ints(0, 0, -1, 2, 0, 0, 3, -2)}, {"mode": "wrap"}, 19),
        Case("Pad", {"x": X, "c0": ints(1, 0), "c1": np.float32(2), "c2": ints(-1)}, {"mode": "wrap"}, 19),
        Case("Pad", {"x": X, "c0": ints(1, 2), "c1": np.float32(2), "c2": ints(-1)}, {}, 18),
        Case("GatherND", {"x": X, "c": np.array([[0, 3], [1, -1]])}, opset=13, batch=False),
        Case("GatherND", {"x": X, "c": np.array([[[0, 5]], [[-2, 1]]])}, {"batch_dims": 1}, 13, batch=False),
        *(
            Case("Einsum", {"x": random(2, 3, 4), "y": random(2, 5, 4, seed=1)}, {"equation": said}, 13, batch=False)
            for said in ("bij,bkj->bik", "bij, bkj -> bki", "bij,bkj->ibk", "bij,bkj", "bij,akj->baik")
        ),
        Case(
            "Einsum", {"x": random(2, 3, 4, 5), "c": random(4, 5, 6)}, {"equation": "...ij,ijk->...k"}, 13, batch=False
        ),
        Case("Einsum", {"x": random(2, 3, 4)}, {"equation": "b...->..."}, 13, batch=False),
        Case("Gather", {"x": X, "c": np.int64(-1)}, {"axis": 1}),
        Case("Gather", {"x": X, "c": ints(1, 2)}, {"axis": 2}),
        Case("Gather", {"x": X, "c": ints(3, 0, -1)}, {"axis": -1}),
        Case("Gather", {"c": random(9, 4), "i": np.array([[3, 1], [8, 0]])}),
        Case("Tile", {"x": X, "c": ints(1, 2, 1, 3)}),
        Case("Expand", {"x": random(3, 1, 5), "c": ints(2, 1, 4, 1)}, batch=False),
    ]


def resizes() -> list[Case]:
    cases = [
        Case("Upsample", {"x": X}, {"scales": [1.0, 1.0, 2.0, 3.0]}, 7),
        Case("Upsample", {"x": X, "c": np.float32([1, 1, 2, 2])}, {"mode": "linear"}, 9),
        Case("Resize", {"x": X, "c": np.float32([1, 1, 1.5, 2])}, {}, 10),
        Case("Resize", {"x": X, "c": np.float32([1, 1, 2, 2])}, {"mode": "linear"}, 10),
        Case("Resize", {"x": LINE, "": NONE, "c": np.float32([1, 1, 2])}, {}, 13),
        Case("Resize", {"x": X, "": NONE, "c": np.float32([2, 2])}, {"axes": [2, 3], "mode": "linear"}, 18),
        Case("Resize", {"x": X, "": NONE, "c": np.float32([1, 2, 2, 1])}, {"mode": "linear"}, 13, batch=False),
    ]
    coordinates = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    for mode in ("nearest", "linear", "cubic"):
        for coordinate in coordinates:
            attrs = {"mode": mode, "coordinate_transformation_mode": coordinate}
            cases.append(Case("Resize", {"x": X, "": NONE, "c": np.float32([1, 1, 1.7, 0.6])}, attrs, 13))
            none = np.zeros(0, np.float32)
            sizes = {"x": X, "c0": none, "c1": none, "c2": ints(2, 4, 9, 5)}
            cases.append(Case("Resize", sizes, attrs, 11, batch=False))
    factors = ((0.5, 0.6), (0.21, 1.7), (1.0, 0.9))
    for mode, bound in product(("linear", "cubic"), (0, 1)):
        attrs = {"mode": mode, "antialias": 1, "exclude_outside": bound}
        cases += [Case("Resize", {"x": X, "": NONE, "c": np.float32([1, 1, a, b])}, attrs, 18) for a, b in factors]
    cases.append(
        Case("Resize", {"x": X, "": NONE, "c": np.float32([1, 1, 2, 3])}, {"mode": "cubic", "exclude_outside": 1}, 18)
    )
    for nearest in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
        attrs = {"nearest_mode": nearest, "coordinate_transformation_mode": "asymmetric"}
        cases.append(Case("Resize", {"x": X, "": NONE, "c": np.float32([1, 1, 2.5, 0.7])}, attrs, 19))
    return cases


CASES = [*unary(), *binary(), *convolutions(), *volumes(), *pools(), *norms(), *reductions(), *movements(), *resizes()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_op(tmp_path: Path, case: Case) -> None:
    feeds = {k: np.asarray(v) for k, v in case.inputs.items() if k and not k.startswith("c")}
    constants = {k: v for k, v in case.inputs.items() if k.startswith("c")}
    outputs = ["out"] if case.outputs == 1 else [f"out{i}" for i in range(case.outputs)]
    proto = model(
        [node(case.op, list(case.inputs), outputs, "the_node", **case.attrs)],
        {k: (["N", *v.shape[1:]] if case.batch and v.shape[:1] == (2,) else v.shape) for k, v in feeds.items()},
        outputs,
        constants,
        opset=case.opset,
        dtypes={k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in feeds.items()},
    )
    for output in proto.graph.output:
        output.ClearField("type")  # onnxruntime infers what is left open
    graph = check(save(proto, tmp_path), feeds)
    assert "the_node" in graph.by_name or [n.name for n in graph.nodes] == ["out.copy"]


def test_what_grows_is_not_smoothed(tmp_path: Path) -> None:
    """PyTorch asks for it anyway; without it, resizing has an integer form."""
    inputs = ["x", "", "scales"]
    for factor, smooth in ((2.0, False), (0.5, True)):
        one = node("Resize", inputs, ["y"], mode="linear", antialias=1)
        proto = model([one], {"x": X.shape}, constants={"scales": np.float32([1, 1, factor, factor])}, opset=18)
        graph = check(save(proto, tmp_path), {"x": X})
        assert bool(graph.nodes[0].attrs.get("antialias")) == smooth
