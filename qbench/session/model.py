"""What a session is about: a float model, or an imported quantized one with its float twin."""

from dataclasses import dataclass
from functools import cached_property

from qbench.errors import GraphError, SessionError
from qbench.ir.graph import Graph
from qbench.passes.imported import Template, find_twin, imported_config, with_float_weights
from qbench.passes.pipeline import Step, Trace
from qbench.passes.prepare import prepare
from qbench.quant.config import Preset, QuantConfig
from qbench.quantize.imported import Imported, as_reals


@dataclass(frozen=True, eq=False)
class Model:
    """A model, and what was said about how to prepare it.

    Parameters
    ----------
    graph
        As it was loaded.
    float_model
        For a quantized graph: the float model that it was made from; None: its own weights, dequantized.
    fold_scale_axis, fold_affine
        For a float graph, see :func:`qbench.passes.prepare.prepare`.

    Raises
    ------
    SessionError
        On first use: nodes that have no meaning in real numbers, or a float model that is of something else.
    """

    graph: Graph
    float_model: Graph | None = None
    fold_scale_axis: bool = False
    fold_affine: bool = True

    @cached_property
    def template(self) -> Template | None:
        """A quantized graph beside its float twin; None for a float one."""
        if not self.graph.qparams:
            if self.float_model is not None:
                raise SessionError("float_model= goes with a quantized model, but this one is float itself")
            return None
        try:
            template = find_twin(self.graph)
            return template if self.float_model is None else with_float_weights(template, self.float_model)
        except GraphError as error:
            raise SessionError(f"this quantized model cannot be tuned: {error}") from error

    @cached_property
    def prepared(self) -> Trace:
        """How the model became the float graph that is quantized."""
        if self.template is None:
            return prepare(self.graph, self.fold_scale_axis, self.fold_affine)
        return Imported(self.graph, (Step("dequantize", self.template.twin),), self.template)

    @property
    def fed(self) -> Graph:
        """The graph whose inputs data is for."""
        return self.graph if self.template is None else self.template.twin

    @cached_property
    def config(self) -> QuantConfig:
        """The config that a session starts with."""
        return self.config_of("default")

    def config_of(self, preset: Preset) -> QuantConfig:
        """What a preset means for this model: a quantized one keeps what it came with."""
        return QuantConfig.of_preset(preset) if self.template is None else imported_config(self.template)

    def reals(self, data: object) -> object:
        """Data with the integers that the file takes made real numbers; anything else as it is."""
        return data if self.template is None else as_reals(self.template, data)
