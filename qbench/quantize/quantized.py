"""From a float graph, statistics and a config to the integer graph: every step kept, to be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from qbench.calibration.bulk import UNMEASURED_DB, rounds_to_zero, wide_tensors
from qbench.calibration.overrides import check_overrides
from qbench.calibration.resolve import resolve
from qbench.calibration.statistics import Statistics
from qbench.calibration.weights import with_room_for_bias
from qbench.errors import ConfigError, check_kind
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, QuantRule
from qbench.ir.qparams import QParams
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.choices import (
    check_modes,
    check_weights,
    choices_of,
    node_roundings,
    nodes_with,
)
from qbench.passes.correct_bias import CorrectBiasPass
from qbench.passes.equalize import equalized_pairs
from qbench.passes.float16 import Float16Pass
from qbench.passes.imported import AnnotateTwinPass, RealizeTwinPass, integer_borders
from qbench.passes.legalize import LegalizePass
from qbench.passes.norm_parts import divisors, norm_parts
from qbench.passes.pipeline import Pass, Pipeline, Step, Trace
from qbench.passes.realize import RealizePass
from qbench.passes.round_weights import RoundedWeight, RoundWeightsPass, rounded_of
from qbench.quant.config import QuantConfig
from qbench.quant.config_checks import check_selectors
from qbench.quant.config_paths import shown_path
from qbench.quant.encodings import Encoding, Encodings
from qbench.quant.points import Point
from qbench.quant.specs import Mode
from qbench.quantize.imported import check_imported, same_for_tied, shared_statistics, template_of, with_reasons

_STATIC = FrozenMap[str, Mode]()


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

    @property
    def qnn(self) -> Graph:
        """The graph of qnn ops, the form before `graph`; that of an imported model takes and gives what it does."""
        template = template_of(self.trace)
        realized = next(step.graph for step in self.trace.steps if step.name == RealizePass.name)
        return realized if template is None else integer_borders(realized, template.borders)

    def without_trace(self) -> Quantized:
        """What those need who run it: it travels light."""
        return replace(self, annotated=self.prepared, trace=Trace(self.prepared))


def quantize_graph(
    prepared: Trace,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    memo: Memo | None = None,
    trial: bool = False,
) -> Quantized:
    """Choose an encoding for every point of a prepared graph and turn it into integers.

    Parameters
    ----------
    prepared
        What :func:`qbench.passes.prepare.prepare` gave.
    statistics
        Of every float activation of the prepared graph, by tensor name.
    config
        What decides.
    memo
        Of earlier calls, for any config: what has not changed since the last of them is not worked out again.
    trial
        One of many: the config is known to be about something in the graph, and to be possible; no graph is verified.

    Raises
    ------
    ConfigError
        A selector of the config matches nothing in this graph, or an override does not suit its tensor.
    CalibrationError
        A threshold cannot be computed.
    """
    graph, memo = prepared.graph, memo or Memo()
    annotated, marked, encodings = encode(prepared, statistics, config, memo, trial)
    template, roundings = template_of(prepared), node_roundings(graph, config)
    realize = (
        RealizePass(config.rounding, roundings, config.semantics)
        if template is None
        else RealizeTwinPass(template, roundings)
    )
    rounded = _rounded(prepared, config, encodings)
    encodings = encodings if not rounded else _with_rounded(encodings, rounded, marked, config.by_shifts)
    bound = annotated.rebound(qparams={point.value: encodings[tensor].qparams for tensor, point in marked.items()})
    correct: list[Pass] = [RoundWeightsPass(rounded)] if rounded else []
    corrected = nodes_with(graph, config, "bias_correction")
    correct += [_bias_correction(statistics, corrected, memo)] if corrected else []
    to_half = [Float16Pass()] if config.float_dtype == "float16" else []
    done = Pipeline((*correct, realize, LegalizePass(), *to_half), not trial).run(bound, memo=memo)
    steps = (*prepared.steps, Step(AnnotatePass.name, bound), *done.steps)
    bound = done.steps[len(correct) - 1].graph if correct else bound
    return Quantized(config, graph, bound, encodings, done.graph, replace(prepared, steps=steps))


def encode(
    prepared: Trace, statistics: Mapping[str, Statistics], config: QuantConfig, memo: Memo, trial: bool = False
) -> tuple[Graph, dict[str, Point], Encodings]:
    """The annotated graph without qparams, its points, and an encoding for each; arguments as for `quantize_graph`."""
    graph = prepared.graph
    if not trial:
        check_config(prepared, config, memo)
    choices, narrow = choices_of(graph, config, memo), config.weights.narrow
    excluded, included, modes = choices.excluded, choices.included, choices.modes
    least = config.activations.least_db
    if least is not None:
        parts = memo.recall("norm parts", (graph,), lambda: norm_parts(graph))
        excluded = FrozenMap({name: why for name, why in parts.items() if name not in included} | dict(excluded))
    annotated, marked = annotate(prepared, excluded, memo, narrow, None, included, modes)
    template = template_of(prepared)
    if template is not None:
        shared = shared_statistics(template, statistics, marked)
        tied = same_for_tied(template, config, marked)
        encodings = resolve(marked.values(), annotated, shared, tied, memo)
        return annotated, marked, with_reasons(template, encodings, marked)
    encodings = resolve(marked.values(), annotated, statistics, config, memo)
    divided_by = memo.recall("divisors", (graph,), lambda: divisors(graph))
    if least is None and _divides_by_zero(divided_by.keys() - config.tensors.keys(), encodings, statistics):
        return encode(prepared, statistics, config.with_value("activations.least_db", 0.0), memo, trial)
    if least is not None:
        least = UNMEASURED_DB if least == "measured" else least
        wide = wide_tensors(marked.values(), encodings, statistics, least, config.tensors, memo)
        wide = FrozenMap({**divided_by, **wide})
        named = frozenset(config.tensors)
        annotated, marked = annotate(prepared, excluded, memo, narrow, wide, included, modes, named)
        encodings = resolve(marked.values(), annotated, statistics, config, memo)
    return annotated, marked, encodings


def _divides_by_zero(divided_by: Set[str], encodings: Encodings, statistics: Mapping[str, Statistics]) -> bool:
    """Whether a value that others are divided by would be rounded to zero: what the user has decided about is not
    asked for."""
    named = divided_by & encodings.keys() & statistics.keys()
    return any(rounds_to_zero(statistics[name], encodings[name].qparams) for name in named)


def annotate(
    prepared: Trace,
    excluded: FrozenMap[str, str],
    memo: Memo,
    narrow: bool = True,
    wide: FrozenMap[str, str] | None = None,
    included: frozenset[str] = frozenset(),
    modes: FrozenMap[str, Mode] = _STATIC,
    named: frozenset[str] = frozenset(),
) -> tuple[Graph, dict[str, Point]]:
    """The annotated graph, without qparams, and its points; arguments as for `AnnotatePass`."""
    template = template_of(prepared)

    def work() -> tuple[Graph, dict[str, Point]]:
        if template is None:
            annotated = AnnotatePass(excluded, narrow, wide, included, modes, named)(prepared.graph, memo)
        else:
            annotated = AnnotateTwinPass(template, excluded, narrow)(prepared.graph)
        return annotated, points(annotated)

    place = AnnotatePass.name, bool(excluded), narrow, wide is None
    return memo.recall(place, (prepared.graph, excluded, wide, included, modes, named), work)


def _rounded(prepared: Trace, config: QuantConfig, encodings: Encodings) -> FrozenMap[str, RoundedWeight]:
    """The weights that were rounded on data, as far as the config still has them in integers of the same kind."""
    wanted = nodes_with(prepared.graph, config, "weights_rounding")
    if not wanted:
        return FrozenMap()
    found, measured = rounded_of(prepared), config.weights.rounding == "measured"
    if found is None and measured:
        return FrozenMap()
    if found is None:
        raise ConfigError("weights.rounding 'sequential' needs calibration data, not only statistics: use a session")

    def kind(q: QParams) -> object:
        return q if measured else (q.dtype, q.axis, q.block)

    weights = {prepared.graph.node(name).inputs[1] for name in wanted} & encodings.keys() & found.keys()
    fits = {name for name in weights if kind(encodings[name].qparams) == kind(found[name].given)}
    return FrozenMap({name: rounded for name, rounded in found.items() if name in fits})


def _with_rounded(
    encodings: Encodings, rounded: Mapping[str, RoundedWeight], marked: Mapping[str, Point], shifts: bool
) -> Encodings:
    """Encodings of the rounded weights; their biases are new, and data that have 16 bits by now are in finer steps."""
    said = dict[str, Encoding]()
    for name, one in rounded.items():
        data, qparams = encodings.get(marked[name].data or ""), one.qparams
        if one.bias is not None and data is not None:
            qparams = with_room_for_bias(qparams, one.bias[1].array, data.qparams.scales[0], shifts)
        reason = f"{encodings[name].reason}; rounded sequentially, scale for the least error of the output"
        said[name] = replace(encodings[name], qparams=qparams, reason=reason)
    return Encodings({**encodings, **said})


def _bias_correction(statistics: Mapping[str, Statistics], layers: frozenset[str], memo: Memo) -> CorrectBiasPass:
    means = {tensor: found.channels for tensor, found in statistics.items() if found.channels is not None}
    given = {
        tensor: memo.recall(("means", tensor), (seen,), lambda seen=seen: tuple(seen.values.tolist()))
        for tensor, seen in means.items()
    }
    return CorrectBiasPass(FrozenMap(given), layers)


def check_config(prepared: Trace, config: QuantConfig, memo: Memo | None = None) -> None:
    """Raise ConfigError unless every rule and override is about something in the graph, and can be carried out.

    An override of a tensor may stay while the layers around it are kept in float: it counts again once they are not.
    One that was measured may have been about what is there only while other layers are.
    """
    what = "a config is a QuantConfig, not {}; QuantConfig.load(path) reads one from a file"
    check_kind(config, QuantConfig, ConfigError, what)
    graph, template = prepared.graph, template_of(prepared)
    check_modes(graph, config)
    known = memo or Memo()
    check_weights(graph, config, lambda: known.recall("pairs", (graph,), lambda: equalized_pairs(graph)))
    both = dict.fromkeys([(FrozenMap[str, str](), frozenset[str](), FrozenMap[str, Mode]())])
    if config.tensors or config.rules:  # what they are about may be there only while some layers are in float
        choices = choices_of(graph, config, known)
        both[choices.excluded, choices.included, choices.modes] = None
    annotated = [annotate(prepared, out, known, included=kept, modes=modes) for out, kept, modes in both]
    tensors = [tensor for _, marked in annotated for tensor in marked]
    measured = (name for name, override in config.tensors.items() if override.reason)  # which no user has written
    tensors += [name for name in measured if name in graph.types]
    check_selectors(config, {node.name: node.op for node in graph.nodes}, tensors)
    if template is not None:
        check_imported(template, config, dict.fromkeys(tensors))
    for marked_graph, marked in annotated:
        check_overrides(marked.values(), marked_graph, config)
    for name, layer in config.layers.items():
        op = OPS[graph.node(name).op]
        if layer.keep_float is False and op.rule == QuantRule.FLOAT and not op.by_choice:
            raise ConfigError(f"{shown_path(('layers', name, 'keep_float'))}: cannot be false: {op.float_reason}")
