"""Hypothesis strategies for graphs and what they are made of: valid, but as odd as files from strangers can be."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import qbench.ops  # noqa: F401  fills the registry
from qbench.ir.build import build
from qbench.ir.dtypes import DTYPES, DType, integer_range, is_float, is_integer, numpy_dtype
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import bind
from qbench.ir.qparams import EXACT_SCALES, QParams
from qbench.ir.types import TensorType

INTEGERS: tuple[DType, ...] = tuple(d for d in DTYPES if is_integer(d))

HOSTILE_NAMES = (
    "",
    '"',
    "\\",
    '\\"',
    "a\nb",
    "\r\t\x00\x7f",
    "%x",
    "@x",
    "// not a comment",
    "# nor this",
    "a b",
    "a:0",
    "a:",
    "-",
    "/model/conv1/Conv",
    "<script>alert(1)</script>",
    "x" * 10_000,
    "层/畳み込み",
    "e\u0301",
    "\u202eevil",
    "😀",
    "__metadata__",
    "../../etc/passwd",
    "#0",
    "def",
    "name=",
    "0",
    "\\u{41}",
    "...",
)


def names() -> st.SearchStrategy[str]:
    """Plain names, hostile ones and any text."""
    plain = st.from_regex(r"[a-z][a-z0-9_./]{0,8}", fullmatch=True)
    return plain | st.sampled_from(HOSTILE_NAMES) | st.text(max_size=12)


def scales(dtype: DType = "int8") -> st.SearchStrategy[float]:
    """Every positive finite float32, as a float; of accumulators every positive finite double."""
    if dtype in EXACT_SCALES:
        return st.floats(min_value=5e-324, allow_infinity=False)
    return st.floats(min_value=2.0**-149, max_value=3.4028234663852886e38, width=32)


@st.composite
def qparams(draw: st.DrawFn, kind: TensorType) -> QParams:
    """qparams that fit a value of that type: of its own dtype, or of any where it is float."""
    dtype = draw(st.sampled_from(INTEGERS)) if is_float(kind.dtype) else kind.dtype
    low, high = integer_range(dtype)
    axes = [axis for axis, dim in enumerate(kind.shape) if isinstance(dim, int) and dim > 0]
    axis = draw(st.none() | st.sampled_from(axes)) if axes else None
    points = st.integers(low, high)
    if axis is None:
        return QParams(draw(scales(dtype)), draw(points), dtype)
    count = int(kind.shape[axis])
    many = draw(st.lists(scales(dtype), min_size=count, max_size=count))
    zeros = draw(st.lists(points, min_size=count, max_size=count) | points.map(lambda point: [point] * count))
    return QParams(tuple(many), tuple(zeros), dtype, axis)


@st.composite
def constants(draw: st.DrawFn, shape: tuple[int, ...] | None = None, dtype: DType | None = None) -> Constant:
    """Arrays of any dtype of the IR, of any bits (floats may be NaN or infinite)."""
    dims = shape if shape is not None else tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    numpy = numpy_dtype(dtype or draw(st.sampled_from(DTYPES)))
    count = math.prod(dims)
    raw = np.frombuffer(draw(st.binary(min_size=2 * count, max_size=2 * count)), np.int16)
    with np.errstate(all="ignore"):
        return Constant(raw.astype(np.float32).astype(numpy).reshape(dims))


def special_floats() -> st.SearchStrategy[float]:
    """Floats of every kind but NaN, which is not equal to itself."""
    return st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 5e-324, 1e16])


class _Draft:
    """Nodes and values drawn so far."""

    def __init__(self, draw: st.DrawFn, hostile: bool) -> None:
        self.draw = draw
        self.hostile = hostile
        self.taken: dict[str, set[str]] = {"value": set(), "node": set()}
        self.nodes: list[Node] = []
        self.constants: dict[str, Constant] = {}
        self.types: dict[str, TensorType] = {}

    def fresh(self, what: str, plain: str) -> str:
        """A name not taken yet."""
        taken = self.taken[what]
        name = self.draw(names()) if self.hostile else f"{plain}_{len(taken)}"
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    def constant(self, *shape: int, dtype: DType = "float32") -> str:
        """A new constant of small numbers (no NaN: these graphs can be run)."""
        count = math.prod(shape)
        numbers = self.draw(st.lists(st.integers(-8, 7), min_size=count, max_size=count))
        name = self.fresh("value", "const")
        self.constants[name] = Constant((np.reshape(numbers, shape) / 8).astype(numpy_dtype(dtype)))
        self.types[name] = TensorType(shape, dtype)
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attrs: Attr) -> None:
        """A new node; what it makes can be read by the next ones."""
        made = tuple(self.fresh("value", op.rpartition(".")[2]) for _ in range(outputs))
        same = self.draw(st.booleans()) and made[0] not in self.taken["node"]
        name = made[0] if same else self.fresh("node", "node")
        self.taken["node"].add(name)
        sources = self.draw(st.just((name,)) | st.lists(names(), max_size=3).map(tuple)) if self.hostile else (name,)
        reason = self.draw(st.just("") | names()) if self.hostile else ""
        node = Node(name, op, inputs, made, FrozenMap(attrs), sources, reason)
        self.nodes.append(node)
        inferred = bind(node).infer_all(tuple(self.types[value] for value in inputs))
        self.types.update(zip(made, inferred, strict=True))

    def graph(self, inputs: dict[str, TensorType], outputs: list[str], known: dict[str, QParams]) -> Graph:
        name = self.draw(names()) if self.hostile else "model"
        return build(name, inputs, outputs, self.nodes, self.constants, known)


def _unary(op: str) -> Callable[[_Draft, str], None]:
    return lambda draft, x: draft.node(op, x)


def _leaky_relu(draft: _Draft, x: str) -> None:
    draft.node("nn.leaky_relu", x, alpha=draft.draw(special_floats().filter(math.isfinite)))


def _clip(draft: _Draft, x: str) -> None:
    low, high = sorted((draft.draw(special_floats()), draft.draw(special_floats())))
    draft.node("clip", x, a_min=low, a_max=high)


def _dense(draft: _Draft, x: str) -> None:
    last = draft.types[x].shape[-1]
    assert isinstance(last, int)
    draft.node("nn.dense", x, draft.constant(draft.draw(st.integers(1, 4)), last))


def _bias_add(draft: _Draft, x: str) -> None:
    shape = draft.types[x].shape
    axis = draft.draw(st.sampled_from([axis for axis, dim in enumerate(shape) if isinstance(dim, int)]))
    draft.node("nn.bias_add", x, draft.constant(int(shape[axis])), **({} if axis == 1 else {"axis": axis}))


def _binary(op: str) -> Callable[[_Draft, str], None]:
    def make(draft: _Draft, x: str) -> None:
        kind = draft.types[x]
        same = [name for name, other in draft.types.items() if other == kind and name not in draft.constants]
        last = kind.shape[-1]
        assert isinstance(last, int)
        other = draft.draw(st.sampled_from(same)) if draft.draw(st.booleans()) else draft.constant(last)
        draft.node(op, *draft.draw(st.permutations([x, other])))

    return make


def _transpose(draft: _Draft, x: str) -> None:
    rank = draft.types[x].rank
    draft.node("transpose", x, axes=(0, *draft.draw(st.permutations(range(1, rank)))))


def _flatten(draft: _Draft, x: str) -> None:
    draft.node("reshape", x, newshape=("N", -1))


def _softmax(draft: _Draft, x: str) -> None:
    draft.node("nn.softmax", x)


def _split(draft: _Draft, x: str) -> None:
    last = draft.types[x].shape[-1]
    assert isinstance(last, int)
    cuts = tuple(sorted(draft.draw(st.sets(st.integers(1, last - 1), min_size=1, max_size=2)))) if last > 1 else ()
    draft.node("split", x, outputs=len(cuts) + 1, cuts=cuts, axis=draft.types[x].rank - 1)


def _concatenate(draft: _Draft, x: str) -> None:
    draft.node("concatenate", x, x, axis=draft.types[x].rank - 1)


_OPS: tuple[Callable[[_Draft, str], None], ...] = (
    _unary("nn.relu"),
    _unary("sigmoid"),
    _unary("nn.hard_swish"),
    _leaky_relu,
    _clip,
    _dense,
    _bias_add,
    _binary("add"),
    _binary("subtract"),
    _binary("multiply"),
    _transpose,
    _flatten,
    _softmax,
    _split,
    _concatenate,
)


@st.composite
def graphs(draw: st.DrawFn, *, hostile: bool = False, quantized: bool = False, most_nodes: int = 8) -> Graph:
    """Valid float graphs over a symbolic batch: one or two inputs, several outputs, shared values, dead ends.

    Parameters
    ----------
    hostile
        Names, sources and reasons are any text.
    quantized
        Some values, floats as well, carry qparams.
    most_nodes
        How many nodes at most.
    """
    draft = _Draft(draw, hostile)
    inputs: dict[str, TensorType] = {}
    for _ in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        inputs[draft.fresh("value", "x")] = TensorType(("N", *sizes), "float32")
    draft.types.update(inputs)
    for _ in range(draw(st.integers(0, most_nodes))):
        activations = [name for name in draft.types if name not in draft.constants]
        draw(st.sampled_from(_OPS))(draft, draw(st.sampled_from(activations)))
    activations = [name for name in draft.types if name not in draft.constants]
    outputs = draw(st.lists(st.sampled_from(activations), min_size=1, max_size=3))
    known = {}
    if quantized:
        values = draw(st.sets(st.sampled_from(list(draft.types)), max_size=6))
        known = {value: draw(qparams(draft.types[value])) for value in sorted(values)}
    return draft.graph(inputs, outputs, known)
