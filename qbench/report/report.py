"""What a quantized model costs, layer by layer and at its output: frozen data, a table, a DataFrame, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from qbench.errors import ExportError, SessionError, nearest, shown
from qbench.files import write_text
from qbench.report.entries import Flip, Latency, LayerReport, OutputLoss, OutputReport, SampleLoss, Unlike
from qbench.report.text import report_text, unlike_text

if TYPE_CHECKING:
    import pandas as pd

_OF_LAYER = (
    "name", "op", "runs_as", "reason", "sqnr_db", "threshold", "scale", "zero_point", "calibrator",
    "own_sqnr_db", "inherited_sqnr_db", "shape", "macs", "ms",
)  # fmt: skip
_OF_OUTPUT = ("sqnr_db", "agreement", "top1_float", "top1", "flipped")
_OF_METRIC = ("metric_name", "metric_float", "metric")
_OPTIONAL = float | None, int | None

Entry = TypeVar("Entry", LayerReport, OutputReport, Unlike)


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
    edits
        What was done to the config since the session was started, in order.
    stopped
        Where NaN arises on the way: the layer that makes it, what that reads, and what helps. Nothing after it, nor the
        output, was then measured. None where all is well.
    unlike
        The tensors of which many values are clipped, though few were in the calibration data, in execution order: the
        first is where to look.
    """

    by_layer: tuple[LayerReport, ...]
    output: OutputReport
    steps_ran: tuple[str, ...] = ()
    reference_steps_ran: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    stopped: str | None = None
    unlike: tuple[Unlike, ...] = ()

    @cached_property
    def layers(self) -> pd.DataFrame:
        """The layers as a DataFrame, one row per layer, columns as in :class:`LayerReport`."""
        import pandas as pd  # takes longer to import than all of qbench

        return pd.DataFrame([asdict(layer) for layer in self.by_layer], columns=list(LayerReport.__dataclass_fields__))

    def layer(self, name: str) -> LayerReport:
        """The entry of that node; SessionError where there is none."""
        found = {layer.name: layer for layer in self.by_layer}
        if name not in found:
            raise SessionError(f"the report has no layer {shown(str(name))}{nearest(name, found)}")
        return found[name]

    def to_dict(self) -> dict[str, Any]:
        """The content of ``report.json``: plain lists, dicts, finite numbers and None."""
        layers = [{key: _plain(getattr(layer, key)) for key in _OF_LAYER} for layer in self.by_layer]
        said = _OF_OUTPUT if self.output.metric is None else (*_OF_OUTPUT, *_OF_METRIC)
        output = {key: _plain(getattr(self.output, key)) for key in said}
        output["flips"] = [asdict(flip) for flip in self.output.flips]
        output["losses"] = [_plain(asdict(loss)) for loss in self.output.losses]
        output["latency"] = self.output.latency and asdict(self.output.latency)
        unlike = [_plain(asdict(one)) for one in self.unlike]
        last = ("edits", self.edits), ("stopped", self.stopped), ("unlike", unlike)
        return {"layers": layers, "output": output, **{key: value for key, value in last if value}}

    def to_json(self) -> str:
        """``report.json`` as text (strict JSON: what is not finite is null)."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write ``report.json``; ExportError where that fails."""
        try:
            write_text(Path(path), self.to_json())
        except OSError as error:
            raise ExportError(f"cannot write the report to {shown(str(path))}: {error.strerror or error}") from error

    @staticmethod
    def load(path: str | PathLike[str]) -> Report:
        """Read ``report.json``: what :meth:`save` left out is not in it; SessionError where it is no report."""
        try:
            data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            layers = [{"tensor": "", **layer} for layer in data["layers"]]
            whole = {"steps_ran": (), "reference_steps_ran": (), **data, "by_layer": layers}
            return Report.from_data(whole)
        except (OSError, ValueError, KeyError, TypeError, SessionError) as error:
            raise SessionError(f"report {shown(str(path))} cannot be read: {error}") from error

    def to_data(self) -> dict[str, Any]:
        """All that is in the report, for :meth:`from_data`; infinities stay what they are (which is no strict JSON)."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Report:
        """The report that :meth:`to_data` gave, perhaps after a way through JSON; SessionError where it is none."""
        try:
            return Report(
                by_layer=tuple(_checked(LayerReport(**_with_tuples(layer))) for layer in data["by_layer"]),
                output=_checked(_output(data["output"])),
                edits=tuple(data.get("edits", ())),
                steps_ran=tuple(data["steps_ran"]),
                reference_steps_ran=tuple(data["reference_steps_ran"]),
                stopped=data.get("stopped"),
                unlike=tuple(_checked(Unlike(**one)) for one in data.get("unlike", ())),
            )
        except (KeyError, TypeError) as error:
            raise SessionError(f"this is no saved report: {error}") from error

    def __str__(self) -> str:
        text = "\n".join([report_text(self.by_layer, self.output, self.edits), *unlike_text(self.unlike)])
        return text if self.stopped is None else f"{text}\nstopped: {self.stopped}"


def _checked(entry: Entry) -> Entry:
    """The same; TypeError where what must be a number is none."""
    for each in fields(entry):
        value: object = getattr(entry, each.name)
        is_number = isinstance(value, (int, float)) or (value is None and each.type in _OPTIONAL)
        if each.type in (float, int, *_OPTIONAL) and not is_number:
            raise TypeError(f"{each.name} is {shown(repr(value))}, not a number")
    return entry


def _output(data: Mapping[str, Any]) -> OutputReport:
    flips = tuple(Flip(**flip) for flip in data.get("flips", ()))
    said = data.get("latency")
    latency = None if said is None else Latency(**said)
    losses = tuple(_loss(loss) for loss in data.get("losses", ()))
    return OutputReport(**{**data, "flips": flips, "losses": losses, "latency": latency})  # pyright: ignore[reportArgumentType] JSON


def _loss(data: Mapping[str, Any]) -> OutputLoss:
    worst = tuple(SampleLoss(**one) for one in data["worst"])
    return OutputLoss(**{**data, "worst": worst})  # pyright: ignore[reportArgumentType] JSON


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    return [_plain(item) for item in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in data.items()}
