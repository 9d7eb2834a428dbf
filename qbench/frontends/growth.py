"""A graph that grows while a file is read, one node of the file at a time, with types known at every step.

What a file's node becomes is pending until it is finished: only then is it known which of the new values has the name
of the file's tensor, and which of the new nodes has the name of the file's node.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np

import qbench.ops  # noqa: F401  # pyright: ignore[reportUnusedImport] fills the registry
from qbench.errors import GraphError, ModelError, QParamsError, UnsupportedOpsError, shown
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr, Node
from qbench.ir.mapped import release
from qbench.ir.names import claimed
from qbench.ir.op import OPS, Array, QuantRule, bind, is_op
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType
from qbench.ops.qnn.border import Dequantize

HELPERS = frozenset(
    {"expand_dims", "nn.pad", "qnn.dequantize", "qnn.quantize", "qnn.reinterpret", "reshape", "squeeze", "transpose"}
)
"""Ops that stand before or after the main node of a conversion."""

MAX_ELEMENTS = 2**28
"""No constant that a model computes may be larger."""


class Unsupported(UnsupportedOpsError):
    """One node that cannot be converted, with the reason; the importer collects them all."""


class Open(Unsupported):
    """One node whose sizes only the run knows: the graph can end before it, and the rest be kept as it is."""


@dataclass(frozen=True, eq=False)
class Grown:
    """What a tensor of the file became: a value of the graph, or an array known while importing.

    The array may have dtype object and hold sizes that are known only at run time.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: str
    array: Array | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def constant(self) -> Array | None:
        """The array, where it is known and all its elements are plain numbers."""
        return None if self.array is None or self.array.dtype == object else self.array

    def axis(self, axis: int) -> int:
        """An axis counted from the front; ModelError where there is none such."""
        if not -self.rank <= axis < self.rank:
            raise ModelError(f"axis {axis} is outside {shown(self.name)}, which has {self.rank} dimensions")
        return axis % self.rank

    def integers(self) -> tuple[int, ...]:
        """The elements of a known list of ints; Unsupported where it is computed at run time."""
        if self.constant is None:
            raise Open(f"{shown(self.name)} must be constant")
        return tuple(int(element) for element in self.constant.ravel())


class Source(Protocol):
    """A node of a file; `str` of it stands in messages."""

    @property
    def name(self) -> str:
        """What its main node will be called."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tensors that it makes."""
        ...


def has_damage(array: Array) -> bool:
    """Whether NaN stands among other elements; alone it fills places that mean nothing, as infinity does."""
    return not _is_finite(array) and np.isnan(array).any() != np.isnan(array).all()


def _is_finite(array: Array) -> bool:
    finite = array.dtype.kind not in "fV" or bool(np.isfinite(array).all())
    release(array)
    return finite


class Growth:
    """The graph so far. `begin` and `settle` are called around each node of the file.

    Parameters
    ----------
    inputs
        The graph's inputs.
    taken
        Names of the file, which nothing new may take.
    """

    def __init__(self, inputs: Mapping[str, TensorType], taken: Iterable[str]) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Constant] = {}
        self.qparams: dict[str, QParams] = {}
        self.inputs = dict(inputs)
        self._taken = set(taken)
        self._producers: dict[str, Node] = {}
        self._pending: list[Node] = []
        self._source: Source | None = None

    def begin(self, source: Source) -> None:
        """Begin to convert a node."""
        self._source, self._pending = source, []

    def add(
        self,
        op: str,
        operands: Sequence[tuple[str, TensorType]],
        attrs: Mapping[str, Attr],
        outputs: Sequence[str],
        qparams: Sequence[QParams | None] = (),
    ) -> tuple[TensorType, ...]:
        """Add a node; attributes equal to the op's default are left out.

        Parameters
        ----------
        op
            Name of an op.
        operands
            Name and type of each input.
        outputs
            Names that `fresh` gave, one for each output.
        qparams
            Of the outputs, where they are quantized.
        """
        if OPS[op].rule is QuantRule.MAC:
            self._check_weights(operands)
        source = self.now()
        names = tuple(name for name, _ in operands)
        node = Node(source.name, op, names, tuple(outputs), OPS[op].given(**attrs), (source.name,))
        self.qparams |= {name: q for name, q in zip(outputs, qparams, strict=False) if q is not None}
        try:
            types = bind(node, self.qparams).infer_all(tuple(kind for _, kind in operands))
        except (GraphError, QParamsError) as error:
            seen = ", ".join(f"{shown(name)}: {kind}" for name, kind in operands)
            is_open = any(isinstance(size, str) for _, kind in operands for size in kind.shape)
            hint = "; if it holds for some sizes only, fix the open ones with shapes=" if is_open else ""
            raise ModelError(f"node {source}: {op}({seen}): {error}{hint}") from error
        self._pending.append(node)
        self._producers.update(dict.fromkeys(outputs, node))
        return types

    def _check_weights(self, operands: Iterable[tuple[str, TensorType]]) -> None:
        """Infinity hides elements elsewhere; in the weights of a layer it is damage."""
        for name, _ in operands:
            constant = self.constants.get(name)
            if constant is not None and not _is_finite(constant.array):
                raise ModelError(
                    f"weight {shown(name)} contains NaN or infinity: the model is damaged, export it again"
                )

    def settle(self, renamed: Mapping[str, str]) -> None:
        """Take the pending nodes into the graph: values renamed, the main node called as the file calls it.

        That is the first layer, or where there is none the first node that does more than move elements.
        """
        source = self.now()
        self._taken.difference_update(renamed)
        layers = (node for node in self._pending if OPS[node.op].rule is QuantRule.MAC and self._has_weight(node))
        others = (node for node in self._pending if node.op not in HELPERS)
        main = next(chain(layers, others, self._pending), None)
        for node in self._pending:
            name = source.name if node is main else self.fresh(f"{source.name}.{node.op.split('.')[-1]}")
            node = dataclasses.replace(node.renamed(renamed), name=name)
            self.nodes.append(node)
            self._producers.update(dict.fromkeys(node.outputs, node))
        for old in self.qparams.keys() & renamed.keys():
            self.qparams[renamed[old]] = self.qparams.pop(old)

    def _has_weight(self, node: Node) -> bool:
        """Whether it reads a constant as its weight, real or dequantized."""
        if not OPS[node.op].has_weight():
            return False
        weight = node.inputs[1]
        return weight in self.constants or is_op(self._producers.get(weight), Dequantize)

    def made(self) -> set[str]:
        """The values that pending nodes make."""
        return {output for node in self._pending for output in node.outputs}

    def constant(self, name: str, constant: Constant) -> str:
        """Add a constant; gives its name, which is another one where that is taken by something else."""
        if self.constants.get(name) not in (None, constant) or name in self._producers or name in self.inputs:
            name = self.fresh(name)
        self.constants[name] = constant
        return name

    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        return claimed(base, self._taken)

    def now(self) -> Source:
        """The node that is being converted."""
        if self._source is None:
            raise RuntimeError("a converter runs between begin and finish")
        return self._source
