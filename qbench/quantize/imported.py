"""What is special about tuning an imported quantized model: tensors that share a scale, and scales of the file."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import cast

import numpy as np

from qbench.calibration.statistics import Statistics
from qbench.errors import ConfigError, shown
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import FrozenMap
from qbench.ir.op import Array
from qbench.passes.imported import Template, imported_override
from qbench.passes.pipeline import Trace
from qbench.quant.arithmetic import dequantize
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encoding, Encodings
from qbench.quant.points import Point
from qbench.quant.specs import TensorOverride


@dataclass(frozen=True)
class Imported(Trace):
    """How an imported quantized model became a float one; what `prepare` gives for a float model."""

    template: Template | None = None


def template_of(prepared: Trace) -> Template | None:
    """The imported model behind a prepared graph; None for one that was float from the start."""
    return prepared.template if isinstance(prepared, Imported) else None


def same_for_tied(template: Template, config: QuantConfig, tensors: Collection[str]) -> QuantConfig:
    """The config with the same override for all tensors that must have one scale.

    The user's choice for one of them counts for all.

    Raises
    ------
    ConfigError
        Two of them have different overrides of the user's.
    """
    given: dict[str, TensorOverride] = dict(config.tensors)
    for name in tensors:
        group = template.tied(name)
        if group == (name,):
            continue
        known = {other: config.tensors[other] for other in group if other in config.tensors}
        own = {other: said for other, said in known.items() if said != imported_override(template, other)}
        if len(set(own.values())) > 1:
            listed = ", ".join(map(shown, own))
            raise ConfigError(f"{listed} have one scale in this model, whatever it is, but different overrides")
        chosen = next(iter((own or known).values()), None)
        if chosen is not None and (own or name not in known):
            given[name] = chosen
    return config.model_copy(update={"tensors": FrozenMap(given)})


def shared_statistics(
    template: Template, statistics: Mapping[str, Statistics], tensors: Iterable[str]
) -> Mapping[str, Statistics]:
    """The statistics, those of tensors that must have one scale put together; of other sizes than one another, each
    keeps the means of its own channels."""
    found = dict(statistics)
    for name in tensors:
        group = [
            statistics[other] for other in {name: None, **dict.fromkeys(template.tied(name))} if other in statistics
        ]
        if len({len(one.channels.totals) for one in group if one.channels is not None}) > 1:
            merged = reduce(Statistics.merge, [replace(one, channels=None) for one in group])
            found[name] = replace(merged, channels=statistics[name].channels)
        elif len(group) > 1:
            found[name] = reduce(Statistics.merge, group)
    return found


def with_reasons(template: Template, encodings: Encodings, points: Mapping[str, Point]) -> Encodings:
    """The encodings, one for all that must have one, and ``imported`` as the reason where they are the file's."""
    found: dict[str, Encoding] = {}
    leaders: dict[tuple[str, ...], str] = {}
    for name, encoding in encodings.items():
        group = template.tied(name)
        if points[name].kind == "activation":
            leaders.setdefault(group, name)
        if (
            name in template.tensors
            and encoding.qparams == template.qparams(name)
            and encoding.calibrator == "override"
        ):
            encoding = replace(encoding, reason="imported", calibrator="imported")
        found[name] = encoding
    for name in found:
        leader = leaders.get(template.tied(name), name)
        if found[name].qparams != found[leader].qparams and found[name].calibrator != "imported":
            found[name] = replace(found[leader], reason=f"same scale as {leader}: {found[leader].reason}")
    return FrozenMap(found)


def recalibrated(template: Template, config: QuantConfig, tensors: Iterable[str]) -> QuantConfig:
    """The config without the scales of some tensors, and of those tied to them; types that are unusual are kept."""
    for name in dict.fromkeys(other for tensor in tensors for other in template.tied(tensor)):
        if name in config.tensors:
            config = config.without_tensor(name)
        constant = template.tensors[name] in template.graph.constants
        usual, q = (config.weights if constant else config.activations), template.qparams(name)
        unusual = {"dtype": q.dtype} if q.dtype != usual.dtype else {}
        if constant and q.axis is None and config.weights.axis is not None:
            unusual["axis"] = "tensor"
        if unusual:
            config = config.override_tensor(name, **unusual)
    return config


def restored(template: Template, config: QuantConfig, tensors: Iterable[str]) -> QuantConfig:
    """The config with the file's own scales for some tensors, and for those tied to them."""
    given: dict[str, TensorOverride] = dict(config.tensors)
    names = [other for name in tensors for other in template.tied(name)]
    given.update({name: imported_override(template, name) for name in names})
    return config.model_copy(update={"tensors": FrozenMap(given)})


def check_imported(template: Template, config: QuantConfig, tensors: Collection[str]) -> None:
    """Raise ConfigError for what cannot be changed in an imported model, all at once or tensor by tensor."""
    same_for_tied(template, config, tensors)
    said = [config.weights, *config.rules, *config.layers.values()]
    if any(one.equalize for one in said):
        raise ConfigError("equalize: the imported model has integer weights, whose channels cannot be scaled")
    if config.semantics != template.semantics:
        raise ConfigError(
            f"semantics: the imported model computes as {template.semantics}; to have it compute as "
            f"{config.semantics or 'the rounding of the config says'}, load it so: qbench.load(path, semantics=...)"
        )


def as_reals(template: Template, data: object) -> object:
    """Data for the float twin: arrays of the integers that the file takes become the real numbers they stand for.

    Arrays of anything else stay as they are; an iterable is read only when it is iterated over.
    """
    inputs = [name for name in template.source.inputs if name in template.source.qparams]
    if not inputs or isinstance(data, Iterator):
        return cast("object", data)
    if isinstance(data, np.ndarray):
        array = cast("Array", data)
        return _as_real(template, inputs[0], array) if len(template.source.inputs) == 1 else array
    if isinstance(data, Mapping):
        arrays = cast("Mapping[str, object]", data)
        return {
            name: _as_real(template, name, cast("Array", array)) if isinstance(array, np.ndarray) else array
            for name, array in arrays.items()
        }
    if isinstance(data, (list, tuple)):
        return [as_reals(template, item) for item in cast("Sequence[object]", data)]
    return _Reals(template, data)


def _as_real(template: Template, name: str, array: Array) -> Array:
    q = template.source.qparams.get(name)
    return dequantize(array, q) if q is not None and array.dtype == numpy_dtype(q.dtype) else array


class _Reals:
    """Items made real as they are read."""

    def __init__(self, template: Template, items: object) -> None:
        self._template, self._items = template, items

    def __iter__(self) -> Iterator[object]:
        return (as_reals(self._template, item) for item in cast("Iterable[object]", self._items))
