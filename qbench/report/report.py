"""What a quantized model costs, layer by layer and at its output: frozen data, a table, a DataFrame, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from qbench.errors import ExportError, SessionError, shown
from qbench.files import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Flip", "Latency", "LayerReport", "OutputReport", "Report"]

Number = float | tuple[float, ...] | None
_OF_LAYER = (
    "name", "op", "runs_as", "reason", "sqnr_db", "threshold", "scale", "zero_point", "calibrator",
    "own_sqnr_db", "inherited_sqnr_db", "shape", "macs", "ms",
)  # fmt: skip
_OF_OUTPUT = ("sqnr_db", "agreement", "top1_float", "top1", "flipped")


@dataclass(frozen=True, slots=True)
class Flip:
    """A sample that the quantized model puts into another class than the float model does.

    Parameters
    ----------
    sample
        Its index in the data that the report is of; see :meth:`qbench.session.session.Session.sample`.
    float_class, quantized_class
        What the two models predict.
    label
        The right class, where it is known.
    """

    sample: int
    float_class: int
    quantized_class: int
    label: int | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one run takes on this machine: medians.

    Parameters
    ----------
    quantized_ms, float_ms
        Of the integer model and of the float model, in milliseconds.
    threads, samples
        That take part in a run, and that a run is given.
    """

    quantized_ms: float
    float_ms: float
    threads: int
    samples: int


@dataclass(frozen=True, kw_only=True)
class LayerReport:
    """One node of the prepared float graph, and what quantization did to it.

    Parameters
    ----------
    name, op, tensor
        The node, its op, and its (first) output.
    runs_as
        int8, uint8, int16, int32, float16 or float32: what a MAC op reads, what any other op makes; int32 also stands
        for indices, sizes and truth values.
    reason
        Why it stays in float; None where it does not.
    sqnr_db
        Signal of the float model's value over the difference to the quantized model's value there (the error of all
        layers before included), in dB; infinite where they are equal, None where there is nothing to compare. A node in
        the middle of a fused group is compared by its accumulator, or by the group's output where it has none.
    own_sqnr_db
        The same, had all layers before been exact: the layer computed in integers from the float model's own inputs,
        rounded to their encodings. Measured on a few samples; None where it was not.
    inherited_sqnr_db
        Signal of the float model's value over what the errors of the layers before make of it here: the difference
        between the quantized model's value and what the layer makes of exact inputs.
    clipped
        Fraction of the float model's elements that lie outside of what the encoding can say; None without encoding.
    encoded
        The tensor whose encoding the layer has: the output of its fused group, which is what an override of the layer
        changes. None where that is not quantized.
    threshold, scale, zero_point, bits, calibrator
        That encoding; tuples where it is per axis.
    chosen_by
        Which part of the config chose it: ``default: mse``, ``rule 2: ...``, ``override: threshold``.
    weight, weight_scale, weight_sqnr_db, weight_worst_channel_db
        The constant that a MAC op multiplies by, its scale, the SQNR of the rounded weights alone, and that of the
        channel (index of axis 0) where it is lowest.
    macs
        Multiply-accumulates per sample.
    shape
        Of the layer's output; a symbol stands for the number of samples.
    ms
        What its step takes in one run, in milliseconds: that of a fused group at its first node. None where it was not
        measured (see :meth:`qbench.session.session.Session.latency`), or is part of another layer's.
    """

    name: str
    op: str
    tensor: str
    runs_as: str
    encoded: str | None = None
    reason: str | None = None
    sqnr_db: float | None = None
    clipped: float | None = None
    threshold: Number = None
    scale: Number = None
    zero_point: int | tuple[int, ...] | None = None
    bits: int | None = None
    calibrator: str | None = None
    chosen_by: str | None = None
    weight: str | None = None
    weight_scale: Number = None
    weight_sqnr_db: float | None = None
    weight_worst_channel_db: float | None = None
    macs: int = 0
    shape: tuple[int | str, ...] = ()
    own_sqnr_db: float | None = None
    inherited_sqnr_db: float | None = None
    ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class OutputReport:
    """What comes out at the end.

    Parameters
    ----------
    sqnr_db
        As for a layer; the lowest where the model has several outputs.
    agreement
        Fraction of predictions (argmax of the first output along its class axis) that equal the float model's.
    top1_float, top1
        Fraction of right predictions of the float and the quantized model; None without labels.
    samples
        How many samples were evaluated.
    data
        "evaluation", or "calibration" where the session has no evaluation data (which flatters the result); "probe"
        where it is a small part of those.
    flipped
        How many predictions differ from the float model's; None where the output is no choice between classes.
    flips
        The first of the samples whose prediction differs, where a sample has one prediction.
    latency
        How long the model takes, where that was measured.
    """

    sqnr_db: float | None
    agreement: float | None
    top1_float: float | None = None
    top1: float | None = None
    samples: int = 0
    data: str = "evaluation"
    flipped: int | None = None
    flips: tuple[Flip, ...] = ()
    latency: Latency | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of one evaluation.

    Parameters
    ----------
    by_layer
        One entry per node of the prepared float graph, in execution order.
    output
        The end result.
    steps_ran
        Names of the integer graph's nodes that really ran (the rest was known from before), in execution order.
    reference_steps_ran
        The same for the float graph that it is compared with.
    """

    by_layer: tuple[LayerReport, ...]
    output: OutputReport
    steps_ran: tuple[str, ...] = ()
    reference_steps_ran: tuple[str, ...] = ()

    @cached_property
    def layers(self) -> pd.DataFrame:
        """The layers as a DataFrame, one row per layer, columns as in :class:`LayerReport`."""
        import pandas as pd  # takes longer to import than all of qbench

        return pd.DataFrame([asdict(layer) for layer in self.by_layer], columns=list(LayerReport.__dataclass_fields__))

    def layer(self, name: str) -> LayerReport:
        """The entry of that node."""
        return next(layer for layer in self.by_layer if layer.name == name)

    def to_dict(self) -> dict[str, Any]:
        """The content of ``report.json``: plain lists, dicts, finite numbers and None."""
        layers = [{key: _plain(getattr(layer, key)) for key in _OF_LAYER} for layer in self.by_layer]
        output = {key: _plain(getattr(self.output, key)) for key in _OF_OUTPUT}
        output["flips"] = [asdict(flip) for flip in self.output.flips]
        output["latency"] = self.output.latency and asdict(self.output.latency)
        return {"layers": layers, "output": output}

    def to_json(self) -> str:
        """``report.json`` as text (strict JSON: what is not finite is null)."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write ``report.json``; ExportError where that fails."""
        try:
            write_text(Path(path), self.to_json())
        except OSError as error:
            raise ExportError(f"cannot write the report to {shown(str(path))}: {error.strerror or error}") from error

    def to_data(self) -> dict[str, Any]:
        """All that is in the report, for :meth:`from_data`; infinities stay what they are (which is no strict JSON)."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Report:
        """The report that :meth:`to_data` gave, perhaps after a way through JSON; SessionError where it is none."""
        try:
            return Report(
                by_layer=tuple(LayerReport(**_with_tuples(layer)) for layer in data["by_layer"]),
                output=_output(data["output"]),
                steps_ran=tuple(data["steps_ran"]),
                reference_steps_ran=tuple(data["reference_steps_ran"]),
            )
        except (KeyError, TypeError) as error:
            raise SessionError(f"this is no saved report: {error}") from error

    def __str__(self) -> str:
        from qbench.report.table import report_table

        return report_table(self)


def _output(data: Mapping[str, Any]) -> OutputReport:
    flips = tuple(Flip(**flip) for flip in data.get("flips", ()))
    said = data.get("latency")
    latency = None if said is None else Latency(**said)
    return OutputReport(**{**data, "flips": flips, "latency": latency})  # pyright: ignore[reportArgumentType] JSON


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [_plain(item) for item in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in data.items()}
