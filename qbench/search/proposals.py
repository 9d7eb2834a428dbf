"""Which repairs are tried: of the whole model, of fused groups, and of what they read and make."""

from collections.abc import Iterable, Iterator, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import QuantRule
from qbench.passes.choices import choices_of, has_form, nodes_with
from qbench.passes.equalize import equalized_pairs
from qbench.passes.groups import find_groups, group_of, rule_of
from qbench.quant.calibrator_specs import MaxSpec, MseSpec, PercentileSpec
from qbench.quant.config import QuantConfig
from qbench.search.regions import groups_of
from qbench.search.repairs import (
    Calibrate,
    CorrectBias,
    Equalize,
    KeepFloat,
    MeasureRange,
    PerChannel,
    Repair,
    RoundWeights,
    Spare,
    SplitScales,
    Widen,
)
from qbench.search.subject import Subject

_UNEVEN = "channels of small range lose most, and the next layer can take up what scales them"
_NO_BEST = "no calibrator is best for every model, nor for every tensor; this one was measured"
_SPECS = MseSpec(), MaxSpec(), PercentileSpec()
_COARSE = "coarse weights: what one loses, others and later layers can make up for"
_SPOILED = "one scale for all channels spoils those whose weights are small"
_SHIFTED = "rounded weights shift what a layer makes; taking the shift back helps most models"
_UNFIT = "where means over the calibration data do not fit the data, corrected biases harm"
_APART = "one scale for all that is joined leaves few steps to the parts of small range"
_MOVES = QuantRule.SAME, QuantRule.CONCAT
_NARROW = "int4", "uint4"
_MEASURED = "as the default preset does: measured until every output is good, and no more than that needs"
_EACH = "a range for all samples is wider than that of any one"


def global_repairs(config: QuantConfig, can_round: bool = True, can_equalize: bool = False) -> tuple[Repair, ...]:
    """The few edits of the whole model that change this config; see `Subject.can_round` and `can_equalize`."""
    tried: Iterable[Repair] = (
        *(Calibrate(_NO_BEST, calibrator=spec) for spec in _SPECS),
        CorrectBias(_SHIFTED, on=True),
        CorrectBias(_UNFIT, on=False),
        PerChannel(_SPOILED),
        *((Equalize(_UNEVEN),) if can_equalize else ()),
        *((RoundWeights(_COARSE),) if can_round and _coarse(config) else ()),
    )
    return tuple(repair for repair in tried if repair.apply(config) != config)


def can_spare(subject: Subject, config: QuantConfig) -> bool:
    """Whether a config leaves all in 8 bits that the default preset would measure."""
    return config.mode == "static" and config.activations.least_db is None and subject.can_round(config)


def spare_repairs(subject: Subject, config: QuantConfig) -> Iterator[Repair]:
    """What the default preset spares, where a config of 8 bits spares nothing by itself."""
    if not can_spare(subject, config):
        return
    repaired = Spare("").apply(config)
    now, then = subject.quantized(config), subject.quantized(repaired)
    floats = {node.name for node in now.annotated.nodes if node.reason}
    where = [node.name for node in then.annotated.nodes if node.reason and node.name not in floats]
    for name, encoding in then.encodings.items():
        if encoding.qparams.dtype == "int16" and name in now.encodings and now.encodings[name].qparams.dtype != "int16":
            where.append(name)
    equalized = subject.settle(repaired, subject.cancel).weights.equalize
    if where or equalized != config.weights.equalize:
        yield Spare(_MEASURED, tuple(where))


def in_float(graph: Graph, groups: Sequence[str], why: str) -> KeepFloat:
    """Fused groups in float."""
    members = groups_of(graph)
    return KeepFloat(why, tuple(name for group in groups for name in members[group]))


def group_repairs(subject: Subject, config: QuantConfig, groups: Sequence[str], why: str) -> Iterator[Repair]:
    """Fused groups in float, and what they make in 16 bits, if it is quantized."""
    yield in_float(subject.prepared, groups, why)
    encodings, made = subject.quantized(config).encodings, group_of(subject.prepared)
    tensors = tuple(dict.fromkeys(made[name] for name in groups if made[name] in encodings))
    if tensors:
        yield Widen(why, tensors)


def cheap_repairs(subject: Subject, config: QuantConfig, groups: Sequence[str]) -> Iterator[Repair]:
    """What costs groups hardly any time: calibrators, scales by channel, biases, ranges, rounding, scales split."""
    graph, encodings, made = subject.prepared, subject.quantized(config).encodings, group_of(subject.prepared)
    can_round = subject.can_round(config)
    tensors = tuple(dict.fromkeys(made[name] for name in groups if made[name] in encodings))
    if tensors:
        yield from (Calibrate(_NO_BEST, tensors, spec) for spec in _SPECS if spec != config.activations.calibrator)
    heads = [graph.node(name) for name in groups if rule_of(graph.node(name)) == QuantRule.MAC]
    layers = {node.name: node.inputs[1] for node in heads if node.inputs[1] in encodings}
    grids = {name: encodings[weight].qparams for name, weight in layers.items()}
    coarse = {name for name, grid in grids.items() if grid.axis is None or grid.dtype in _NARROW}
    whole = tuple(layers[name] for name, grid in grids.items() if grid.axis is None)
    if whole:
        yield PerChannel(_SPOILED, whole)
    yield from _about_biases(graph, config, tuple(layers))
    first = tuple(name for name, second in equalized_pairs(graph).items() if coarse.intersection((name, second)))
    if can_round and first and not nodes_with(graph, config, "equalize").intersection(first):
        yield Equalize(_UNEVEN, first)
    asked = config if config.weights.rounding == "sequential" else config.with_value("weights.rounding", "nearest")
    rounded = coarse - nodes_with(graph, asked, "weights_rounding")
    if can_round and rounded:
        yield RoundWeights(_COARSE, tuple(name for name in layers if name in rounded))
    modes = choices_of(graph, config).modes
    by_range = tuple(name for name in layers if name not in modes and has_form(graph, graph.node(name), "dynamic"))
    if by_range:
        yield MeasureRange(_EACH, by_range)
    for name in groups:
        apart = _moved_to_output(graph, name) if rule_of(graph.node(name)) == QuantRule.CONCAT else ()
        if apart:
            yield SplitScales(_APART, apart)


def _about_biases(graph: Graph, config: QuantConfig, layers: Sequence[str]) -> Iterator[Repair]:
    """Of the layers that have a bias: corrected where they are not, and the other way round."""
    biased = {
        group.head.name for group in find_groups(graph) if any(rule_of(n) == QuantRule.BIAS for n in group.nodes[1:])
    }
    corrected = nodes_with(graph, config, "bias_correction")
    for on, why in ((True, _SHIFTED), (False, _UNFIT)):
        where = tuple(name for name in layers if name in biased and (name in corrected) is not on)
        if where:
            yield CorrectBias(why, where, on)


def _moved_to_output(graph: Graph, name: str) -> tuple[str, ...]:
    """A node and all that follows it, where that only moves elements until they leave the network; else nothing."""
    node = graph.node(name)
    readers = [reader for value in node.outputs for reader in graph.consumers[value]]
    found = [_moved_to_output(graph, reader.name) for reader in readers if rule_of(reader) in _MOVES]
    if len(found) < len(readers) or not all(found) or not (readers or {*node.outputs} & {*graph.outputs}):
        return ()
    return tuple(dict.fromkeys((name, *(each for some in found for each in some))))


def _coarse(config: QuantConfig) -> bool:
    """Whether any weights have 4 bits, or one scale for all channels: rounding them with care is worth its time."""
    said = [config.weights.dtype, *(rule.weights_dtype for rule in config.rules)]
    said += [override.dtype for override in config.tensors.values()]
    return config.weights.axis is None or any(dtype in _NARROW for dtype in said)
