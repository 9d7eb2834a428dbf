"""Turn an annotated graph with qparams into one of qnn ops: integers with scales, floats where a reason says so."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from qbench.forms import Arithmetic
from qbench.forms.tables import reaches_one
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.op import is_op
from qbench.ops.float.softmax import Softmax
from qbench.ops.qnn.border import FakeQuantize
from qbench.ops.qnn.dynamic import DynamicFakeQuantize
from qbench.passes.emitter import Emitter
from qbench.passes.groups import Group, remembered_groups
from qbench.passes.pipeline import Remembering
from qbench.passes.realize_group import realize_group
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics


@dataclass(frozen=True)
class RealizePass(Remembering):
    """Replace fake-quantized float ops by qnn ops on integers.

    Parameters
    ----------
    rounding
        Of every requantize and add.
    overrides
        Another rounding for single nodes; one for any node of a fused group holds for the group.
    semantics
        Whose arithmetic to compute in where no override says otherwise; `rounding` then plays no part.
    """

    name: ClassVar[str] = "realize"
    rounding: Rounding = "tflite_single"
    overrides: FrozenMap[str, Rounding] = field(default_factory=FrozenMap[str, Rounding])
    semantics: Semantics | None = None

    def __call__(self, graph: Graph, memo: Memo | None = None) -> Graph:
        """The qnn graph; GraphError where a point has no qparams."""
        emitter, memo = Emitter(graph), memo or Memo()
        for group in remembered_groups(graph, memo):
            chosen = self._override(group)
            arithmetic = Arithmetic(None if chosen else self.semantics, chosen or self.rounding)
            work = partial(_realize, group=group, arithmetic=arithmetic)
            make = partial(emitter.emitted, work)
            emission = memo.recall((self.name, group.head.name), (group, arithmetic), make, emitter.holds)
            if not emitter.add(emission):
                work(emitter)
        return emitter.finish()

    def _override(self, group: Group) -> Rounding | None:
        return next((self.overrides[node.name] for node in group.nodes if node.name in self.overrides), None)


def _realize(emitter: Emitter, group: Group, arithmetic: Arithmetic) -> None:
    data = emitter.known.producers.get(group.head.inputs[0]) if group.head.inputs else None
    if is_op(group.head, FakeQuantize):
        emitter.point(group.head, arithmetic.ties)
    elif is_op(group.head, DynamicFakeQuantize):
        return  # part of the layers that read it
    elif data is not None and is_op(data, DynamicFakeQuantize):
        emitter.dynamic(group.head, data)
    elif group.head.reason and not _runs_in_integers(emitter, group.head, arithmetic):
        emitter.float_node(group.head)
    else:
        realize_group(emitter, group, arithmetic)


def _runs_in_integers(emitter: Emitter, node: Node, arithmetic: Arithmetic) -> bool:
    """Whether onnxruntime puts an integer op in place of a softmax and the roundings before and after it.

    It does so in any file, whatever is wished; only what is kept float by the user, or would wrap around there, is
    exported otherwise.
    """
    if arithmetic.semantics != "onnx" or not is_op(node, Softmax) or node.reason != Softmax.float_reason:
        return False
    readers = emitter.known.consumers[node.output]
    if node.output in emitter.known.outputs or node.inputs[0] not in emitter.integers or len(readers) != 1:
        return False
    return is_op(readers[0], FakeQuantize) and reaches_one(emitter.encoding(readers[0]))
