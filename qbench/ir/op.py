"""What an op is: one class that declares its name, operands, attributes, type rule and NumPy meaning.

`register` makes a frozen dataclass of it. Its fields are its attributes, with their types and defaults; an instance
stands for one node, and also knows the qparams of that node's inputs and outputs.

    @register
    class LeakyRelu(Op):
        "x where x > 0, else alpha * x."

        name = "nn.leaky_relu"
        rule = QuantRule.TABLE
        alpha: float = 0.01

        def infer(self, data: TensorType) -> TensorType:
            return data

        def compute(self, data: Array) -> Array:
            return np.where(data > 0, data, data * self.alpha)
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import numpy as np
import pydantic
from numpy.typing import NDArray

from qbench.errors import GraphError, nearest, shown
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType

Array = NDArray[Any]


class QuantRule(StrEnum):
    """How annotate, realize and the config treat an op."""

    MAC = "mac"
    """Products of data and weight summed in a wide accumulator: convolution, dense, batch matmul."""
    BIAS = "bias"
    """Adds a constant per channel to an accumulator."""
    CLAMP = "clamp"
    """Bounds its input (relu, clip): fused into the node before it, and the range is taken after it."""
    TABLE = "table"
    """A function of one element: a table over all integers."""
    ELEMENTWISE = "elementwise"
    """add, subtract, multiply of two tensors."""
    AVERAGE = "average"
    """A sum over a window or axes, then a division: average pools, mean."""
    SAME = "same"
    """Moves or selects elements: output has the qparams of its input."""
    CONCAT = "concat"
    """Joins tensors: inputs are brought to the qparams of the output."""
    FLOAT = "float"
    """Stays in float; `float_reason` says why."""
    INTERNAL = "internal"
    """Made by passes (quantize, requantize...); never asked how it should be quantized."""


class Role(StrEnum):
    """What an operand is to its op, by its name."""

    DATA = "data"
    """What flows through the network; also named lhs, rhs and condition."""
    WEIGHT = "weight"
    """What data is multiplied by: usually constant, and quantized with a scale per channel."""
    BIAS = "bias"
    """A constant per channel that is added to an accumulator, in the accumulator's own scale."""
    PARAMETER = "parameter"
    """What has any other name: slopes, tables, indices, multipliers."""


class Epilogue(StrEnum):
    """What may be done to each element of a result before it is stored."""

    CAST = "cast"
    SCALE = "scale"  # by a number that is known at run time, or one for each channel; behind a cast only
    BIAS = "bias"
    REQUANTIZE = "requantize"
    ADD = "add"
    """Another value is added, element by element: what kernels can do, while quantization treats sums by themselves."""
    CLAMP = "clamp"
    DEQUANTIZE = "dequantize"


class Channels(NamedTuple):
    """The axes that count channels, from the end where negative; None where there is none."""

    data: int | None = None
    """Of the first operand."""
    weight: int | None = None
    """Of the second one: the axis that its scales may run along, one for each channel of the output."""
    output: int | None = None


@dataclass(frozen=True, kw_only=True)
class Op(ABC):
    """Base of all op declarations; see the module's text for how one is written.

    What follows the name are facts, each with a default that fits an op about which there is nothing to say.
    """

    name: ClassVar[str]
    operands: ClassVar[tuple[str, ...]] = ("data",)
    """Names of the inputs, which say their roles (see `Role`); the last one may be ``*name`` for any number."""
    rule: ClassVar[QuantRule] = QuantRule.FLOAT
    float_reason: ClassVar[str] = "unsupported: no integer form of this op"
    reads_integers: ClassVar[bool] = False
    """Of an op that stays in float: its first operand and what may be `stored` are integers all the same."""
    by_choice: ClassVar[bool] = False
    """Of an op that stays in float: it has an integer form, for configs that say ``keep_float: false``."""
    form_of: ClassVar[str | None] = None
    """Name of the float op that this op computes on integers."""
    epilogue: ClassVar[Epilogue | None] = None
    """What it is to an op before it that absorbs it."""
    absorbs: ClassVar[tuple[Epilogue, ...]] = ()
    """What may follow it before anything is rounded or stored, in this order; of clamps any number."""
    elementwise: ClassVar[bool] = False
    """Each element of the result depends on one element, at the same place, of each operand, which may broadcast."""
    moves: ClassVar[bool] = False
    """Each element of the result is an element of an operand, or a constant: nothing is computed."""
    keeps_order: ClassVar[bool] = False
    """The same elements in the same row-major order: only the shape changes."""
    only_shaped: ClassVar[bool] = False
    """What may be open in its attributes says nothing but the result's shape: a sample by itself has that for one."""
    picks: ClassVar[bool] = False
    """Its results are a list of the best of what it reads: by a small error there, two may change places."""
    samples: ClassVar[int | None] = 0
    """The axis of all operands along which samples may lie, where no attribute names others; None: along none."""
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """No result lies beyond these, whatever the operands are; of a clamp, see `bounds`."""
    keeps_sign: ClassVar[bool] = False
    """The result has no negative element where its operands have none."""

    qin: tuple[QParams | None, ...] = ()
    """qparams of the node's inputs (not an attribute)."""
    qout: tuple[QParams | None, ...] = ()
    """qparams of the node's outputs (not an attribute)."""

    # *Any, **Any: the signature that any declaration may narrow to its own operands.
    @abstractmethod
    def infer(self, *types: Any, **_: Any) -> TensorType | tuple[TensorType, ...]:
        """Types of the outputs from types of the inputs; GraphError where they do not fit."""

    @abstractmethod
    def compute(self, *arrays: Any, **_: Any) -> Array | tuple[Array, ...]:
        """The meaning, in NumPy."""

    def infer_all(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """`infer`, with the result always a tuple."""
        # the same nodes are inferred, and verified, again and again: with an open batch, and with one sample
        known: dict[tuple[TensorType, ...], tuple[TensorType, ...]] = vars(self).setdefault("_inferred", {})
        found = known.get(types)
        if found is None:
            result = self.infer(*types)
            found = result if isinstance(result, tuple) else (result,)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[types] = found
        return found

    def compute_all(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """`compute`, with the result always a tuple of arrays (never NumPy scalars)."""
        result = self.compute(*arrays)
        return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)

    @property
    def float_form(self) -> str | None:
        """Name of the float op that this op computes on integers; None for a float op."""
        return self.form_of

    @property
    def short_name(self) -> str:
        """The name without its dialect."""
        return self.name.rpartition(".")[2]

    @property
    def channels(self) -> Channels:
        """The axes that count channels; see `channel_axis_of`."""
        return Channels()

    @property
    def stored(self) -> Mapping[int, int]:
        """What may be stored as integers although the op runs in float, weights or a table: by its index among the
        operands the axis that its scales may run along."""
        axis = self.channels.weight
        return {1: axis} if self.has_weight() and axis is not None else {}

    def channel_axis_of(self, tensor: Literal["data", "weight", "output"], rank: int) -> int | None:
        """The axis that counts channels, from the front.

        Parameters
        ----------
        tensor
            The first operand, the second one or the result.
        rank
            Number of dimensions of that tensor.

        Returns
        -------
        int | None
            None where the op knows no channels there.
        """
        axis: int | None = getattr(self.channels, tensor)
        return None if axis is None else axis % rank

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the largest result of a clamp; None for all other ops."""
        return None

    @property
    def within(self) -> tuple[float, float]:
        """No result lies beyond these, whatever the operands are and the attributes say."""
        return self.bounds or self.ends

    @property
    def identity(self) -> bool:
        """Whether it gives back its first operand where the one result has the same type."""
        return self.keeps_order

    def obstacle(self, *types: TensorType) -> str:
        """Why a node that reads these types cannot run in integers although its op can; empty where it can."""
        return ""

    def depth(self, *types: TensorType) -> int:
        """The most elements, or products, that are summed into one element of the result; 0 where none are.

        Parameters
        ----------
        types
            Of the operands; open sizes count as 1.
        """
        return 0

    def macs(self, *types: TensorType) -> int:
        """Multiply-accumulates for operands of these types, open sizes counted as 1; 0 where there are none."""
        return 0

    def as_op(self, kind: type[Kind], **more: Any) -> Kind:
        """Another declaration with the attributes that both have, and `more`."""
        shared = self.attributes().keys() & kind.attributes().keys()
        return kind(**{**{name: getattr(self, name) for name in shared}, **more})

    @classmethod
    def role(cls, index: int) -> Role:
        """What the operand at an index is to the op."""
        name = cls.operands[min(index, len(cls.operands) - 1)].lstrip("*")
        return _ROLES.get(name, Role.PARAMETER)

    @classmethod
    def has_weight(cls) -> bool:
        """Whether its second operand is a weight."""
        return len(cls.operands) > 1 and cls.role(1) is Role.WEIGHT

    @classmethod
    def attributes(cls) -> dict[str, dataclasses.Field[Any]]:
        """The attribute fields by name."""
        return {f.name: f for f in dataclasses.fields(cls) if f.name not in ("qin", "qout")}

    @classmethod
    def given(cls, **attrs: Attr) -> FrozenMap[str, Attr]:
        """Attributes of a node, without those that are the op's default."""
        fields = cls.attributes()
        return FrozenMap({key: v for key, v in attrs.items() if key not in fields or v != fields[key].default})


_REMEMBERED = 32  # sets of types for each node: lines of text have many widths
_ROLES = {**dict.fromkeys(("data", "lhs", "rhs", "condition"), Role.DATA), "weight": Role.WEIGHT, "bias": Role.BIAS}

OPS: dict[str, type[Op]] = {}
"""All declared ops by name. `qbench.ops` fills it."""

Kind = TypeVar("Kind", bound=Op)
OpClass = TypeVar("OpClass", bound=type[Op])


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register(cls: OpClass) -> OpClass:
    """Make an op declaration a frozen dataclass of its attributes, and add it to the registry."""
    if cls.name in OPS:
        raise ValueError(f"op {cls.name} is declared twice")
    # one without attributes of its own has all methods from its base: making them anew takes half of a millisecond
    made = dataclass(frozen=True, kw_only=True)(cls) if _has_own_fields(cls) else cls
    OPS[cls.name] = made
    return made


def _has_own_fields(cls: type[Op]) -> bool:
    made = "__dataclass_params__" in vars(cls)
    return not made and (len(cls.__bases__) > 1 or bool(vars(cls).get("__annotations__")))


def is_op(node: Node | None, *kinds: type[Op]) -> bool:
    """Whether a node is of one of these declarations, or of one derived from them; False for no node.

    Examples
    --------
    >>> is_op(graph.producers.get(value), Dequantize)  # doctest: +SKIP
    """
    return node is not None and node.op in OPS and issubclass(OPS[node.op], kinds)


@cache
def _adapters(cls: type[Op]) -> tuple[dict[str, pydantic.TypeAdapter[Any]], tuple[str, ...]]:
    """What checks each attribute, and the names of those that a node must give."""
    hints, missing, fields = get_type_hints(cls), dataclasses.MISSING, cls.attributes()
    adapters = {name: pydantic.TypeAdapter(hints[name], config={"strict": True}) for name in fields}
    return adapters, tuple(name for name, f in fields.items() if f.default is missing and f.default_factory is missing)


def _checked(cls: type[Op], node: Node) -> dict[str, Attr]:
    attrs: Mapping[str, Attr] = node.attrs
    adapters, required = _adapters(cls)
    values: dict[str, Attr] = {}
    for key, value in attrs.items():
        if key not in adapters:
            known = f"{nearest(key, adapters)} (it has {', '.join(adapters) or 'none'})"
            raise GraphError(f"node {shown(node.name)}: {node.op} has no attribute {shown(key)}{known}")
        try:
            values[key] = adapters[key].validate_python(value)
        except pydantic.ValidationError as error:
            raise GraphError(
                f"node {shown(node.name)}: attribute {key}={value!r}: {error.errors()[0]['msg']}"
            ) from None
    for key in required:
        if key not in values:
            raise GraphError(f"node {shown(node.name)}: {node.op} needs the attribute {key}")
    return values


def bind(node: Node, qparams: Mapping[str, QParams] | None = None) -> Op:
    """The op declaration of a node with the node's attributes and qparams filled in.

    Parameters
    ----------
    node
        Any node.
    qparams
        qparams by value name, usually ``graph.qparams``.

    Raises
    ------
    GraphError
        Unknown op, unknown, missing or mistyped attribute, wrong number of inputs.
    """
    place = "plain" if qparams is None else "bound"
    bound: Op | None = getattr(node, place, None)
    if bound is not None and qparams is None:
        return bound
    known = qparams or {}
    qin, qout = tuple(map(known.get, node.inputs)), tuple(map(known.get, node.outputs))
    if bound is not None and bound.qin == qin and bound.qout == qout:
        return bound
    if node.op not in OPS:
        raise GraphError(f"node {shown(node.name)}: unknown op {shown(node.op)}{nearest(node.op, OPS)}")
    cls = OPS[node.op]
    variadic = bool(cls.operands) and cls.operands[-1].startswith("*")
    fixed = len(cls.operands) - variadic
    if len(node.inputs) < fixed or (len(node.inputs) > fixed and not variadic):
        wants = ", ".join(cls.operands)
        raise GraphError(f"node {shown(node.name)}: {node.op} takes ({wants}), not {len(node.inputs)} inputs")
    bound = cls(**_checked(cls, node), qin=qin, qout=qout)  # pyright: ignore[reportArgumentType, reportCallIssue]
    object.__setattr__(node, place, bound)
    return bound
