"""From a float graph, statistics and a config to the integer graph: every step kept, to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qbench.calibration.resolve import resolve
from qbench.calibration.statistics import Statistics
from qbench.ir.graph import Graph
from qbench.passes.annotate import AnnotatePass, bind_qparams
from qbench.passes.choices import excluded_nodes, node_roundings
from qbench.passes.float16 import Float16Pass
from qbench.passes.legalize import LegalizePass
from qbench.passes.pipeline import Pipeline, Step, Trace
from qbench.passes.realize import RealizePass
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings

__all__ = ["Quantized", "quantize_graph"]


@dataclass(frozen=True)
class Quantized:
    """One model, quantized by one config.

    Parameters
    ----------
    config
        What decided.
    prepared
        The float graph that is quantized: what reports list, and what the integers are compared with.
    annotated
        The prepared graph with its points, their qparams filled in: runs as it stands, fake-quantized in float.
    encodings
        qparams and reason by tensor.
    graph
        The integer graph.
    trace
        The graph after every pass, from the source model to `graph`.
    """

    config: QuantConfig
    prepared: Graph
    annotated: Graph
    encodings: Encodings
    graph: Graph
    trace: Trace


def quantize_graph(prepared: Trace, statistics: Mapping[str, Statistics], config: QuantConfig) -> Quantized:
    """Choose an encoding for every point of a prepared graph and turn it into integers.

    Parameters
    ----------
    prepared
        What :func:`qbench.passes.prepare.prepare` gave.
    statistics
        Of every float activation of the prepared graph, by tensor name.
    config
        What decides.

    Raises
    ------
    ConfigError
        A selector of the config matches nothing in this graph.
    CalibrationError
        A threshold cannot be computed.
    """
    graph = prepared.graph
    annotated = AnnotatePass(excluded_nodes(graph, config), config.weights.narrow)(graph)
    encodings = resolve(annotated, statistics, config)
    bound = bind_qparams(annotated, {tensor: encoding.qparams for tensor, encoding in encodings.items()})
    passes = [RealizePass(config.rounding, node_roundings(graph, config)), LegalizePass()]
    if config.float_dtype == "float16":
        passes.append(Float16Pass())
    rest = Pipeline(passes).run(bound)
    trace = Trace(prepared.source, (*prepared.steps, Step(AnnotatePass.name, bound), *rest.steps))
    return Quantized(config, graph, bound, encodings, rest.graph, trace)
