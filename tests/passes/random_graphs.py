"""Random networks over every quantizable op, and some that stay in float, with names made to collide."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import qbench.ops  # noqa: F401  fills the registry
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import bind
from qbench.ir.types import TensorType

_STEMS = ("x", "w", "t")
_SUFFIXES = (
    "", ".q", ".raw", ".quantized", ".dequantized", ".quantize", ".dequantize", ".requantize", ".requantized",
    ".accumulator", ".summed", ".widen", ".wide", ".2", ".q.2", ".for.t", ".requantize.mantissa", ".bias",
)  # fmt: skip
_NAMES = tuple(stem + suffix for suffix in _SUFFIXES for stem in _STEMS)


class _Draft:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.values, self.named = set[str](), set[str]()
        self.nodes: list[Node] = []
        self.constants: dict[str, Constant] = {}
        self.types: dict[str, TensorType] = {}

    def name(self, taken: set[str]) -> str:
        name = self.draw(st.sampled_from([name for name in _NAMES if name not in taken]))
        taken.add(name)
        return name

    def constant(self, *shape: int) -> str:
        """A constant of that shape: one that is there already, if the draw says so."""
        same = [name for name, constant in self.constants.items() if constant.shape == shape]
        if same and self.draw(st.booleans()):
            return self.draw(st.sampled_from(same))
        name = self.name(self.values)
        spread = 1 / math.sqrt(max(1, math.prod(shape[1:])))
        self.constants[name] = Constant(self.random.normal(0, spread, shape).astype(np.float32))
        self.types[name] = TensorType(shape, "float32")
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attrs: Attr) -> None:
        made = tuple(self.name(self.values) for _ in range(outputs))
        name = self.name(self.named)
        node = Node(name, op, inputs, made, FrozenMap(attrs), (name,))
        self.nodes.append(node)
        inferred = bind(node).infer_all(tuple(self.types[value] for value in inputs))
        self.types.update(zip(made, inferred, strict=True))

    def activations(self, like: TensorType | None = None) -> list[str]:
        real = [name for name in self.types if name not in self.constants]
        return [name for name in real if like is None or self.types[name] == like]

    def sizes(self, x: str) -> tuple[int, ...]:
        """All sizes but the batch's."""
        return tuple(int(dim) for dim in self.types[x].shape[1:])


Builder = Callable[[_Draft, str], None]


def _conv(d: _Draft, x: str) -> None:
    channels, height, width = d.sizes(x)
    groups = d.draw(st.sampled_from([g for g in (1, 2, channels) if channels % g == 0]))
    kernel = d.draw(st.sampled_from([k for k in (1, 2, 3) if k <= min(height, width)]))
    pads = st.integers(0, kernel - 1)
    weight = d.constant(d.draw(st.sampled_from([channels, 4 * groups])), channels // groups, kernel, kernel)
    padding = d.draw(st.tuples(pads, pads, pads, pads))
    strides = d.draw(st.sampled_from([(1, 1), (2, 1)]))
    d.node("nn.conv2d", x, weight, padding=padding, strides=strides, groups=groups)


def _transposed(d: _Draft, x: str) -> None:
    channels, *_ = d.sizes(x)
    groups = d.draw(st.sampled_from([g for g in (1, 2) if channels % g == 0]))
    kernel, strides = d.draw(st.sampled_from([2, 3])), d.draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
    weight = d.constant(channels, d.draw(st.sampled_from([1, 3])), kernel, kernel)
    pads = st.integers(0, kernel - 1)
    padding = d.draw(st.tuples(pads, pads, pads, pads)) if min(d.sizes(x)[1:]) > 2 else (0, 0, 0, 0)
    more = d.draw(st.tuples(*(st.integers(0, stride - 1) for stride in strides)))
    attrs = {"strides": strides, "padding": padding, "output_padding": more, "groups": groups}
    d.node("nn.conv2d_transpose", x, weight, **attrs)


def _dense(d: _Draft, x: str) -> None:
    size = d.sizes(x)[-1]
    d.node("nn.dense", x, d.constant(d.draw(st.sampled_from([size, 4])), size))


def _matmul(d: _Draft, x: str) -> None:
    *_, rows, columns = d.sizes(x)
    kind = d.draw(st.sampled_from(["square", "right", "left"]))
    if kind == "square":
        d.node("nn.batch_matmul", x, x, transpose_rhs=True)
    elif kind == "right":
        d.node("nn.batch_matmul", x, d.constant(columns, d.draw(st.sampled_from([columns, 4]))))
    else:
        d.node("nn.batch_matmul", d.constant(d.draw(st.sampled_from([rows, 4])), rows), x)


def _vector(op: str) -> Builder:
    def make(d: _Draft, x: str) -> None:
        axis = d.draw(st.sampled_from(range(1, d.types[x].rank)))
        d.node(op, x, d.constant(d.sizes(x)[axis - 1]), axis=axis)

    return make


def _binary(op: str) -> Builder:
    def make(d: _Draft, x: str) -> None:
        sizes = d.sizes(x)
        shape = d.draw(st.sampled_from([None, (), (1,), sizes, sizes[-1:], (sizes[0], *[1] * (len(sizes) - 1))]))
        other = d.draw(st.sampled_from(d.activations(d.types[x]))) if shape is None else d.constant(*shape)
        d.node(op, *d.draw(st.permutations([x, other])))

    return make


def _plain(op: str, **attrs: Attr) -> Builder:
    return lambda d, x: d.node(op, x, **attrs)


def _clip(d: _Draft, x: str) -> None:
    d.node("clip", x, a_min=d.draw(st.sampled_from([-math.inf, -1.0, 0.0])), a_max=d.draw(st.sampled_from([0.5, 6.0])))


def _pool(op: str) -> Builder:
    def make(d: _Draft, x: str) -> None:
        size = min(2, *d.sizes(x)[1:]) + d.draw(st.integers(0, 1))
        pad = d.draw(st.integers(0, 1)) if size > 1 else 0
        pad = max(pad, size - min(d.sizes(x)[1:]))
        counted: dict[str, Attr] = {"count_include_pad": d.draw(st.booleans())} if op == "nn.avg_pool2d" else {}
        strides = d.draw(st.sampled_from([(1, 1), (2, 2)]))
        ceil = d.draw(st.booleans())
        d.node(op, x, pool_size=(size, size), strides=strides, padding=(pad,) * 4, ceil_mode=ceil, **counted)

    return make


def _reduce(op: str) -> Builder:
    def make(d: _Draft, x: str) -> None:
        rank = d.types[x].rank
        axes = d.draw(st.sets(st.integers(1, rank - 1), min_size=1, max_size=max(1, rank - 2)))
        d.node(op, x, axes=tuple(sorted(axes)), keepdims=rank < 3 or d.draw(st.booleans()))

    return make


def _concatenate(d: _Draft, x: str) -> None:
    other = d.draw(st.sampled_from(d.activations(d.types[x])))
    d.node("concatenate", x, other, axis=d.draw(st.integers(1, d.types[x].rank - 1)))


def _split(d: _Draft, x: str) -> None:
    axis = d.draw(st.integers(1, d.types[x].rank - 1))
    size = d.sizes(x)[axis - 1]
    cuts = (size // 2,) if size > 1 else ()
    d.node("split", x, outputs=len(cuts) + 1, cuts=cuts, axis=axis)


def _slice(d: _Draft, x: str) -> None:
    axis = d.draw(st.integers(1, d.types[x].rank - 1))
    size = d.sizes(x)[axis - 1]
    d.node("strided_slice", x, begin=(0,), end=(size,), strides=(2,), axes=(axis,))


def _transpose(d: _Draft, x: str) -> None:
    d.node("transpose", x, axes=(0, *d.draw(st.permutations(range(1, d.types[x].rank)))))


def _reshape(d: _Draft, x: str) -> None:
    sizes = d.sizes(x)
    d.node("reshape", x, newshape=(-1, *d.draw(st.sampled_from([(math.prod(sizes),), sizes[::-1], (1, *sizes)[-3:]]))))


def _pad(d: _Draft, x: str) -> None:
    mode = d.draw(st.sampled_from(["constant", "edge"]))
    widths = ((0, 0), *(d.draw(st.tuples(st.integers(0, 1), st.integers(0, 1))) for _ in d.sizes(x)))
    d.node("nn.pad", x, pad_width=widths, mode=mode, pad_value=d.draw(st.sampled_from([0.0, 0.5, -math.inf])))


def _resize(d: _Draft, x: str) -> None:
    size = d.draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    method = d.draw(st.sampled_from(["nearest", "linear", "cubic"]))
    mode = d.draw(st.sampled_from(["half_pixel", "asymmetric", "align_corners"]))
    d.node("image.resize2d", x, size=size, method=method, coordinate_transformation_mode=mode)


def _blocks(d: _Draft, x: str) -> None:
    channels, height, width = d.sizes(x)
    if channels % 4 == 0:
        d.node("nn.depth_to_space", x, block_size=2, mode=d.draw(st.sampled_from(["DCR", "CRD"])))
    elif height % 2 == width % 2 == 0:
        d.node("nn.space_to_depth", x, block_size=2)


def _repeat(d: _Draft, x: str) -> None:
    sizes = d.sizes(x)
    if len(sizes) < 3:
        d.node("expand_dims", x, axes=(1,))
    if 1 in sizes:
        d.node("squeeze", x, axes=(sizes.index(1) + 1,))
    d.node("tile", x, reps=(1, 2, *[1] * (len(sizes) - 1)))


_TABLES = (
    "sigmoid", "tanh", "nn.hard_sigmoid", "nn.hard_swish", "nn.gelu", "nn.elu", "nn.silu", "nn.softplus", "erf", "abs",
    "negative", "exp", "sin", "cos", "floor", "ceil", "round", "sign", "nn.leaky_relu",
)  # fmt: skip

_PARTIAL = ("sqrt", "log", "reciprocal")  # of sigmoids, since they are not defined everywhere


def _partial(d: _Draft, x: str) -> None:
    d.node("sigmoid", x)
    d.node(d.draw(st.sampled_from(_PARTIAL)), d.nodes[-1].output)


_ANY: tuple[Builder, ...] = (
    _plain("nn.relu"), _clip, _plain("nn.relu"), _clip,
    lambda d, x: d.node(d.draw(st.sampled_from(_TABLES)), x),
    _partial,
    _vector("nn.bias_add"), _vector("nn.bias_add"), _vector("nn.prelu"),
    _binary("add"), _binary("subtract"), _binary("multiply"), _binary("multiply"), _binary("maximum"),
    _concatenate, _split, _slice, _repeat, _transpose, _reshape, _pad,
    _reduce("mean"), _reduce("max"), _reduce("min"), _reduce("sum"),
    _plain("nn.softmax"), _plain("nn.batch_flatten"),
    _dense, _dense,
)  # fmt: skip
_IMAGE: tuple[Builder, ...] = (
    _conv, _conv, _conv, _transposed, _pool("nn.max_pool2d"), _pool("nn.avg_pool2d"), _plain("nn.global_avg_pool2d"),
    _plain("nn.global_max_pool2d"), _resize, _blocks,
)  # fmt: skip


@st.composite
def networks(draw: st.DrawFn, most_nodes: int = 8) -> Graph:
    """Networks over a symbolic batch; constants, values and outputs are shared at will."""
    d = _Draft(draw)
    inputs: dict[str, TensorType] = {}
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(st.sampled_from([(4, 4, 4), (4, 4), (4,), (2, 5, 3), (1, 1, 6), (6, 1, 1)]))
        inputs[d.name(d.values)] = TensorType(("N", *shape), "float32")
    d.types.update(inputs)
    for _ in range(draw(st.integers(1, most_nodes))):
        real = [name for name in d.activations() if d.sizes(name) and math.prod(d.sizes(name)) <= 512]
        x = draw(st.sampled_from(real[-3:]))
        rank = d.types[x].rank
        choices = _ANY + ((_matmul, _matmul) if rank >= 3 else ()) + (_IMAGE * 2 if rank == 4 else ())
        draw(st.sampled_from(choices))(d, x)
    last = d.activations()[-1]
    also = draw(st.lists(st.sampled_from(d.activations() + list(d.constants)), max_size=2))
    outputs = dict.fromkeys([last, *also])
    return build("random", inputs, outputs, d.nodes, d.constants)


BUILDERS = dict.fromkeys((*_IMAGE, *_ANY, _matmul))
"""What adds a node or two to a network, each once."""


@st.composite
def behind_a_cut(draw: st.DrawFn, builder: Builder) -> Graph:
    """Networks in which what a builder adds reads and makes parts of images, or whole ones that are parts of others."""
    d = _Draft(draw)
    x = d.name(d.values)
    inputs = {x: TensorType(("N", 3, 4, 4), "float32")}
    d.types.update(inputs)
    d.node("nn.conv2d", x, d.constant(draw(st.sampled_from([4, 5])), 3, 1, 1))  # images that it makes lie otherwise
    axis = draw(st.sampled_from([1, 1, 2, 3]))
    part = whole = d.nodes[-1].output
    if draw(st.booleans()):
        size = d.sizes(whole)[axis - 1]
        begin, step = draw(st.tuples(st.integers(0, 1), st.sampled_from([1, 1, 2])))
        d.node("strided_slice", whole, begin=(begin,), end=(size - 1 + begin,), strides=(step,), axes=(axis,))
        part = d.nodes[-1].output
    else:
        d.node("concatenate", *draw(st.permutations([whole, x] if axis == 1 else [whole] * 2)), axis=axis)
    if draw(st.integers(0, 3)) == 3:
        d.node("transpose", part, axes=(0, *draw(st.permutations(range(1, 4)))))
        part = d.nodes[-1].output
    builder(d, part)
    made = d.nodes[-1].outputs[-1]
    if draw(st.booleans()) and d.types[made].rank > 1:
        d.node("nn.relu", made)
        joined = draw(st.permutations([made, d.nodes[-1].output]))
        d.node("concatenate", *joined, axis=draw(st.integers(1, d.types[made].rank - 1)))
    return build("cut", inputs, dict.fromkeys([d.nodes[-1].outputs[-1], d.nodes[1].output]), d.nodes, d.constants)
