"""Put weights that were rounded with the data in mind, and the biases that go with them, in place of the float ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.passes.pipeline import Trace


@dataclass(frozen=True)
class RoundedWeight:
    """One weight on the levels of its qparams.

    Parameters
    ----------
    weight
        float32: real numbers that the qparams can say exactly.
    qparams
        What its integers mean.
    given
        What they meant before: scales may have been chosen anew.
    bias
        Name and new value of the bias that is added after it; None where there is none.
    """

    weight: Constant
    qparams: QParams
    given: QParams
    bias: tuple[str, Constant] | None

    def constants(self, weight: str) -> dict[str, Constant]:
        """What stands in place of the float weight of that name, and of its bias."""
        return {weight: self.weight} | dict(() if self.bias is None else (self.bias,))


@dataclass(frozen=True)
class RoundedTrace(Trace):
    """How a model was prepared, and how its weights were then rounded on calibration data."""

    rounded: FrozenMap[str, RoundedWeight] = field(default_factory=FrozenMap[str, RoundedWeight])


def rounded_of(prepared: Trace) -> Mapping[str, RoundedWeight] | None:
    """The weights that were rounded on data, by name; None where that was not done."""
    return prepared.rounded if isinstance(prepared, RoundedTrace) else None


@dataclass(frozen=True)
class RoundWeightsPass:
    """Replace weights and biases; the annotated graph needs the qparams that the weights were rounded to.

    Parameters
    ----------
    weights
        By name of the constant.
    """

    name: ClassVar[str] = "round-weights"
    weights: FrozenMap[str, RoundedWeight]

    def __call__(self, graph: Graph) -> Graph:
        """The same nodes on other constants."""
        constants = dict(graph.constants)
        for name, rounded in self.weights.items():
            constants |= rounded.constants(name)
        return graph if constants == graph.constants else graph.rebound(constants=constants)
