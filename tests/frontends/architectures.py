"""Small networks with random weights, in the op sequences that PyTorch's and Keras' exporters write."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.frontends.models import model, node


class Net:
    """Collects nodes; each method returns the name of its output."""

    def __init__(self, *shape: int | str, opset: int = 17, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs = {"input": list(shape)}
        self.opset = opset
        self.dtypes: dict[str, int] = {}

    def op(self, op: str, *inputs: str | np.ndarray, outputs: int = 1, **attrs: Any) -> Any:
        names = [self.constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        made = [f"/{op}_{len(self.nodes)}_output_{i}" for i in range(outputs)]
        self.nodes.append(node(op, names, made, f"/layers/{op}_{len(self.nodes)}", **attrs))
        return made[0] if outputs == 1 else made

    def constant(self, array: np.ndarray) -> str:
        name = f"onnx::const_{len(self.constants)}"
        self.constants[name] = array
        return name

    def weight(self, *shape: int) -> str:
        fan = int(np.prod(shape[1:])) or 1
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def conv(
        self, x: str, inputs: int, outputs: int, k: int = 1, stride: int = 1, groups: int = 1, bias: bool = True
    ) -> str:
        p = k // 2
        parameters = [self.weight(outputs, inputs // groups, k, k)] + ([self.weight(outputs)] if bias else [])
        attrs = {
            "kernel_shape": [k, k],
            "strides": [stride, stride],
            "pads": [p] * 4,
            "group": groups,
            "dilations": [1, 1],
        }
        return self.op("Conv", x, *parameters, **attrs)

    def norm(self, x: str, channels: int) -> str:
        vectors = [self.constant((self.rng.random(channels) + 0.5).astype(np.float32)) for _ in range(4)]
        return self.op("BatchNormalization", x, *vectors, epsilon=1e-5, momentum=0.9)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """As nn.Linear on three dimensions is exported: MatMul, then Add with the bias first."""
        return self.op("Add", self.weight(outputs), self.op("MatMul", x, self.weight(inputs, outputs)))

    def head(self, x: str, inputs: int, outputs: int = 10) -> ModelProto:
        flat = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        return self.finish(self.op("Gemm", flat, self.weight(outputs, inputs), self.weight(outputs), transB=1))

    def finish(self, output: str) -> ModelProto:
        self.nodes[-1].output[0] = "output"
        assert output
        return model(self.nodes, self.inputs, ["output"], self.constants, opset=self.opset, dtypes=self.dtypes)


def number(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


def mobilenet_v3() -> ModelProto:
    """Squeeze and excitation with HardSigmoid, HardSwish, depthwise convolutions, ReduceMean at the end."""
    net = Net("batch_size", 3, 32, 32)
    x = net.op("HardSwish", net.norm(net.conv("input", 3, 16, 3, 2, bias=False), 16))
    y = net.op("Relu", net.norm(net.conv(x, 16, 16, 3, 1, 16, bias=False), 16))
    s = net.op("Relu", net.conv(net.op("GlobalAveragePool", y), 16, 8))
    s = net.op("HardSigmoid", net.conv(s, 8, 16), alpha=1 / 6)
    x = net.op("Add", x, net.conv(net.op("Mul", s, y), 16, 16))
    h = net.op("Clip", net.op("Add", x, number(3)), number(0), number(6))
    x = net.op("Div", net.op("Mul", x, h), number(6))
    m = net.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    return net.finish(net.op("Gemm", m, net.weight(10, 16), net.weight(10), transB=1))


def efficientnet() -> ModelProto:
    """SiLU as x * sigmoid(x), squeeze and excitation, TensorFlow's asymmetric SAME pads."""
    net = Net("N", 3, 32, 32, opset=13)
    p = net.op("Pad", "input", ints(0, 0, 0, 0, 0, 0, 1, 1), number(0), mode="constant")
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    x = net.norm(net.op("Conv", p, net.weight(8, 3, 3, 3), **attrs), 8)
    x = net.op("Mul", x, net.op("Sigmoid", x))
    y = net.conv(x, 8, 24)
    y = net.op("Mul", y, net.op("Sigmoid", y))
    y = net.op("Conv", y, net.weight(24, 1, 5, 5), auto_pad="SAME_UPPER", strides=[2, 2], group=24)
    s = net.op("ReduceMean", y, axes=[-2, -1], keepdims=1)
    s = net.conv(s, 24, 4)
    s = net.conv(net.op("Mul", s, net.op("Sigmoid", s)), 4, 24)
    return net.head(net.conv(net.op("Mul", y, net.op("Sigmoid", s)), 24, 12), 12)


def shufflenet() -> ModelProto:
    """Channel split and shuffle, with the sizes taken from Shape."""
    net = Net("N", 3, 32, 32)
    x = net.op("Relu", net.norm(net.conv("input", 3, 16, 3, 2), 16))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    a, b = net.op("Split", x, ints(8, 8), axis=1, outputs=2)
    b = net.op("Relu", net.conv(net.conv(net.op("Relu", net.conv(b, 8, 8)), 8, 8, 3, 1, 8), 8, 8))
    x = net.op("Concat", a, b, axis=1)
    shape = net.op("Shape", x)
    n, c, h, w = (net.op("Gather", shape, np.asarray(i), axis=0) for i in range(4))
    half = net.op("Cast", net.op("Div", c, np.asarray(2)), to=TensorProto.INT64)
    parts = [net.op("Unsqueeze", v, ints(0)) for v in (n, half, h, w)]
    x = net.op("Reshape", x, net.op("Concat", parts[0], ints(2), parts[1], parts[2], parts[3], axis=0))
    x = net.op("Transpose", x, perm=[0, 2, 1, 3, 4])
    x = net.op("Reshape", x, net.op("Concat", parts[0], ints(-1), parts[2], parts[3], axis=0))
    return net.head(net.op("Slice", x, ints(4), ints(2**31 - 1), ints(1), ints(1)), 12)


def densenet_inception() -> ModelProto:
    """Norm before convolution, concatenation, average pools with and without padding, 1x7 and 7x1 windows."""
    net = Net(2, 3, 33, 33)
    x = net.conv("input", 3, 8, 3, 2)
    y = net.conv(net.op("Relu", net.norm(x, 8)), 8, 6, 3)
    x = net.op("Concat", x, y, axis=1)
    x = net.op("AveragePool", net.conv(net.op("Relu", net.norm(x, 14)), 14, 8), kernel_shape=[2, 2], strides=[2, 2])
    a = net.op("Conv", x, net.weight(5, 8, 1, 7), pads=[0, 3, 0, 3])
    a = net.op("Relu", net.op("Conv", a, net.weight(5, 5, 7, 1), pads=[3, 0, 3, 0]))
    b = net.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    c = net.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], ceil_mode=0, storage_order=0)
    x = net.op("Dropout", net.op("Concat", a, net.op("Relu", net.conv(b, 8, 6)), c, axis=1))
    return net.head(x, 19)


def attention(net: Net, x: str, dim: int, heads: int, tokens: int) -> str:
    """Multi-head attention from one joint projection, as timm writes it."""
    qkv = net.op("Reshape", net.linear(x, dim, 3 * dim), ints(0, tokens, 3, heads, dim // heads))
    qkv = net.op("Transpose", qkv, perm=[2, 0, 3, 1, 4])
    q, k, v = (net.op("Gather", qkv, np.asarray(i), axis=0) for i in range(3))
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.op("Mul", scores, number((dim // heads) ** -0.5))
    y = net.op("Transpose", net.op("MatMul", net.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return net.linear(net.op("Reshape", y, ints(0, tokens, dim)), dim, dim)


def layer_norm(net: Net, x: str, dim: int) -> str:
    if net.opset >= 17:
        return net.op("LayerNormalization", x, net.weight(dim), net.weight(dim), axis=-1, epsilon=1e-6)
    mean = net.op("ReduceMean", x, axes=[-1])
    centred = net.op("Sub", x, mean)
    variance = net.op("ReduceMean", net.op("Pow", centred, number(2)), axes=[-1])
    normal = net.op("Div", centred, net.op("Sqrt", net.op("Add", variance, number(1e-6))))
    return net.op("Add", net.op("Mul", normal, net.weight(dim)), net.weight(dim))


def gelu(net: Net, x: str) -> str:
    if net.opset >= 20:
        return net.op("Gelu", x)
    erf = net.op("Erf", net.op("Div", x, number(np.sqrt(2))))
    return net.op("Mul", net.op("Mul", x, net.op("Add", erf, number(1))), number(0.5))


def vision_transformer(opset: int = 17) -> ModelProto:
    """Patches, a class token for any batch, positions, blocks of attention and GELU, the token picked at the end."""
    net, dim = Net("batch", 3, 16, 16, opset=opset), 12
    x = net.op("Conv", "input", net.weight(dim, 3, 4, 4), net.weight(dim), kernel_shape=[4, 4], strides=[4, 4])
    shape = net.op("Shape", x)
    n = net.op("Slice", shape, ints(0), ints(1), ints(0))
    x = net.op("Reshape", x, net.op("Concat", net.op("Slice", shape, ints(0), ints(2), ints(0)), ints(-1), axis=0))
    x = net.op("Transpose", x, perm=[0, 2, 1])
    token = net.op(
        "Expand",
        net.weight(1, 1, dim),
        net.op("Concat", n, ints(1), ints(1), axis=0),
    )
    x = net.op("Add", net.op("Concat", token, x, axis=1), net.weight(1, 17, dim))
    for _ in range(2):
        x = net.op("Add", x, attention(net, layer_norm(net, x, dim), dim, 3, 17))
        y = net.linear(layer_norm(net, x, dim), dim, 24)
        x = net.op("Add", x, net.linear(gelu(net, y), 24, dim))
    x = net.op("Gather", layer_norm(net, x, dim), np.asarray(0), axis=1)
    return net.finish(net.op("Gemm", x, net.weight(10, dim), net.weight(10), transB=1))


def text_classifier() -> ModelProto:
    """Token ids, embeddings, a padding mask made from comparisons, and the mean over what is not padding."""
    net, dim, length = Net("batch", 9, opset=14), 12, 9
    net.dtypes["input"] = TensorProto.INT64
    x = net.op("Gather", net.weight(30, dim), "input")
    positions = net.op("Range", np.asarray(0), np.asarray(length), np.asarray(1))
    x = layer_norm(net, net.op("Add", x, net.op("Gather", net.weight(20, dim), positions)), dim)
    real = net.op("Cast", net.op("Greater", "input", np.asarray(0)), to=TensorProto.FLOAT)
    mask = net.op("Unsqueeze", net.op("Unsqueeze", real, ints(1)), ints(2))
    mask = net.op("Mul", net.op("Sub", number(1), mask), number(-10000))
    q, k, v = (
        net.op("Transpose", net.op("Reshape", net.linear(x, dim, dim), ints(0, 0, 3, 4)), perm=[0, 2, 1, 3])
        for _ in range(3)
    )
    scores = net.op("Div", net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2])), number(2))
    scores = net.op("Softmax", net.op("Add", scores, mask), axis=3)
    y = net.op("Transpose", net.op("MatMul", scores, v), perm=[0, 2, 1, 3])
    x = net.op("Add", x, net.linear(net.op("Reshape", y, ints(0, 0, dim)), dim, dim))
    weights = net.op("Unsqueeze", real, ints(-1))
    total = net.op("ReduceSum", net.op("Mul", x, weights), ints(1), keepdims=0)
    count = net.op("Clip", net.op("ReduceSum", weights, ints(1), keepdims=0), number(1e-9))
    x = net.op("Tanh", net.linear(net.op("Div", total, count), dim, dim))
    return net.finish(net.op("Gemm", x, net.weight(4, dim), net.weight(4), transB=1))


def unet() -> ModelProto:
    """Down, up by ConvTranspose and by bilinear Resize, skip connections, group normalization, leaky relu."""
    net = Net("N", 3, 16, 16, opset=13)
    a = net.op("LeakyRelu", net.conv("input", 3, 8, 3), alpha=0.1)
    b = net.op("LeakyRelu", net.conv(a, 8, 16, 3, 2), alpha=0.1)
    g = net.op(
        "InstanceNormalization", net.op("Reshape", b, ints(0, 4, -1)), np.ones(4, np.float32), np.zeros(4, np.float32)
    )
    g = net.op("Reshape", g, net.op("Shape", b))
    b = net.op("Add", net.op("Mul", g, net.weight(16, 1, 1)), net.weight(16, 1, 1))
    up = net.op("ConvTranspose", b, net.weight(16, 8, 2, 2), net.weight(8), strides=[2, 2])
    x = net.conv(net.op("Concat", up, a, axis=1), 16, 8, 3)
    sizes = net.op("Concat", net.op("Slice", net.op("Shape", x), ints(0), ints(2)), ints(32, 32), axis=0)
    x = net.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    return net.finish(net.op("Sigmoid", net.conv(x, 8, 1)))


ARCHITECTURES = {
    "mobilenet v3": mobilenet_v3,
    "efficientnet": efficientnet,
    "shufflenet": shufflenet,
    "densenet and inception": densenet_inception,
    "vision transformer, opset 13": lambda: vision_transformer(13),
    "vision transformer, opset 17": vision_transformer,
    "text classifier": text_classifier,
    "unet": unet,
}


def feeds(proto: ModelProto, batch: int = 2) -> dict[str, np.ndarray]:
    (given,) = proto.graph.input
    shape = [dim.dim_value or batch for dim in given.type.tensor_type.shape.dim]
    rng = np.random.default_rng(5)
    if given.type.tensor_type.elem_type == TensorProto.INT64:
        return {given.name: rng.integers(0, 30, shape)}
    return {given.name: rng.standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(1))}
