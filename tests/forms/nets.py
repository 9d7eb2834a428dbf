"""One small network for each quantizable op, with every clamp that may follow it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.types import TensorType
from tests.passes.quantizable import node

CLAMPS: dict[str, Callable[[str, str], Node]] = {
    "relu": lambda value, result: node("clamp", "nn.relu", value, result),
    "relu6": lambda value, result: node("clamp", "clip", value, result, a_min=0.0, a_max=6.0),
    "one": lambda value, result: node("clamp", "clip", value, result, a_min=-1.0, a_max=1.0),
}
"""What may be fused behind an op."""

_TABLES = (
    "sigmoid", "tanh", "nn.hard_sigmoid", "nn.hard_swish", "nn.gelu", "nn.elu", "nn.leaky_relu", "abs", "negative",
    "exp", "erf", "nn.silu", "nn.softplus", "floor",
)  # fmt: skip


class _Net:
    def __init__(self) -> None:
        self.random = np.random.default_rng(5)
        self.constants: dict[str, Constant] = {}

    def weight(self, name: str, *shape: int) -> str:
        spread = np.linspace(0.1, 1.0, shape[0]).reshape(-1, *[1] * (len(shape) - 1))
        self.constants[name] = Constant((self.random.normal(size=shape) * 0.4 * spread).astype(np.float32))
        return name

    def graph(self, nodes: list[Node]) -> Graph:
        inputs = {"x": TensorType(("N", 4, 6, 5), "float32"), "z": TensorType(("N", 4, 6, 5), "float32")}
        used = {value for each in nodes for value in each.inputs}
        kept = {name: kind for name, kind in inputs.items() if name in used}
        return build("net", kept, [nodes[-1].output], nodes, self.constants)


def _of(op: str, inputs: str, clamp: str = "", **attrs: Attr) -> Graph:
    net = _Net()
    for name, shape in _SHAPES.items():
        if name in inputs.split():
            net.weight(name, *shape)
    nodes = [node("head", op, inputs, "y", **attrs)]
    return net.graph(nodes if not clamp else [*nodes, CLAMPS[clamp]("y", "r")])


_SHAPES = {
    "w": (6, 4, 3, 3), "dw": (4, 1, 3, 3), "tw": (4, 6, 3, 3), "wd": (7, 5), "slopes": (4,), "factor": (4, 1, 1),
    "bias": (4,), "right": (5, 3), "half": (1,),
}  # fmt: skip


def _biased(op: str, inputs: str, channels: int, axis: int, clamp: str = "", **attrs: Attr) -> Graph:
    net = _Net()
    for name in inputs.split()[1:]:
        net.weight(name, *_SHAPES[name])
    net.weight("b", channels)
    nodes = [node("head", op, inputs, "y", **attrs), node("bias", "nn.bias_add", "y b", "s", axis=axis)]
    return net.graph(nodes if not clamp else [*nodes, CLAMPS[clamp]("s", "r")])


def _moved(op: str, **attrs: Attr) -> Graph:
    nodes = [node("table", "sigmoid", "x", "s"), node("head", op, "s", "y", **attrs), node("after", "tanh", "y", "r")]
    return _Net().graph(nodes)


def _attention() -> Graph:
    net = _Net()
    nodes = [
        node("before", "nn.dense", "x wd", "d"),
        node("head", "nn.softmax", "d", "p", axis=3),
        node("after", "nn.dense", "p we", "r"),
    ]
    net.weight("wd", 7, 5)
    net.constants["wd"] = Constant(net.constants["wd"].array * 300)  # some results are 1, which the integers reach
    net.weight("we", 5, 7)
    return net.graph(nodes)


def _cases() -> dict[str, Callable[[], Graph]]:
    found: dict[str, Callable[[], Graph]] = {}
    pads: dict[str, Attr] = {"padding": (1, 1, 1, 1)}
    for clamp in ("", *CLAMPS):
        tail = f".{clamp}" if clamp else ""
        for name, make in {
            "conv": lambda c: _of("nn.conv2d", "x w", c, **pads),
            "conv.bias": lambda c: _biased("nn.conv2d", "x w", 6, 1, c, **pads),
            "depthwise": lambda c: _biased("nn.conv2d", "x dw", 4, 1, c, groups=4, strides=(2, 2)),
            "transposed": lambda c: _of("nn.conv2d_transpose", "x tw", c, strides=(2, 2)),
            "transposed.bias": lambda c: _biased("nn.conv2d_transpose", "x tw", 6, 1, c, strides=(2, 1)),
            "dense": lambda c: _of("nn.dense", "x wd", c),
            "dense.bias": lambda c: _biased("nn.dense", "x wd", 7, 3, c),
            "matmul": lambda c: _of("nn.batch_matmul", "x right", c),
            "matmul.pair": lambda c: _of("nn.batch_matmul", "x z", c, transpose_rhs=True),
            "add": lambda c: _of("add", "x z", c),
            "subtract": lambda c: _of("subtract", "x z", c),
            "multiply": lambda c: _of("multiply", "x z", c),
            "add.constant": lambda c: _of("add", "x factor", c),
            "multiply.constant": lambda c: _of("multiply", "x factor", c),
            "multiply.number": lambda c: _of("multiply", "x half", c),
            "add.number": lambda c: _of("add", "half x", c),
            "average": lambda c: _of("nn.avg_pool2d", "x", c, pool_size=(3, 2), strides=(2, 1)),
            "average.padded": lambda c: _of(
                "nn.avg_pool2d", "x", c, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)
            ),
            "average.counted": lambda c: _of(
                "nn.avg_pool2d", "x", c, pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1), count_include_pad=True
            ),
            "mean": lambda c: _of("mean", "x", c, axes=(2, 3), keepdims=True),
            "mean.rows": lambda c: _of("mean", "x", c, axes=(2,), keepdims=False),
            "global": lambda c: _of("nn.global_avg_pool2d", "x", c),
            "bias": lambda c: _of("nn.bias_add", "x bias", c),
        }.items():  # fmt: skip
            found[name + tail] = lambda make=make, clamp=clamp: make(clamp)
    for function in _TABLES:
        found[function] = lambda function=function: _of(function, "x")
    found |= {
        "clip": lambda: _of("clip", "x", a_min=-0.5, a_max=1.0),
        "lone_relu": lambda: _of("nn.relu", "x"),
        "prelu": lambda: _of("nn.prelu", "x slopes"),
        "concat": lambda: _of("concatenate", "x z", axis=1),
        "concat.last": lambda: _of("concatenate", "x z x", axis=3),
    }
    return found | {
        "softmax": _attention,
        "max": lambda: _moved("nn.max_pool2d", pool_size=(2, 2), strides=(2, 2), padding=(1, 0, 1, 1)),
        "reshape": lambda: _moved("reshape", newshape=(-1, 120)),
        "transpose": lambda: _moved("transpose", axes=(0, 3, 1, 2)),
        "pad": lambda: _moved("nn.pad", pad_width=((0, 0), (0, 0), (1, 0), (0, 2)), pad_value=0.5),
        "slice": lambda: _moved("strided_slice", begin=(1,), end=(5,), strides=(2,), axes=(2,)),
        "resize": lambda: _moved("image.resize2d", size=(12, 10), method="nearest"),
        "resize.linear": lambda: _moved("image.resize2d", size=(11, 9), method="linear"),
    }


CASES = _cases()
