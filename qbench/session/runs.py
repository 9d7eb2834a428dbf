"""What a session measures: whole runs, probes on a few samples, times, and what each layer costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.sensitivity import sensitivity
from qbench.evaluate.values import Values, layer_values, weight_values
from qbench.garbage import set_aside
from qbench.progress import Cancel, StageProgress, showing
from qbench.quant.config import QuantConfig
from qbench.report.entries import Latency, OutputReport
from qbench.report.report import Report
from qbench.search.attribution import Attribution, attribute
from qbench.session.snapshots import Snapshot
from qbench.session.state import State

if TYPE_CHECKING:
    import pandas as pd


class Runs(State):
    """Reports of the config that counts now; only what is not known from before is computed."""

    @property
    def report(self) -> Report | None:
        """The newest report; see `is_stale`."""
        return self._record.report

    @property
    def last_probe(self) -> Report | None:
        """What the newest :meth:`probe` gave: of the newest config that was probed."""
        return self._record.probe

    @property
    def is_stale(self) -> bool:
        """Whether the report is of another config than the one that counts now, or missing."""
        return self._record.is_stale

    @set_aside()
    def run(self, progress: bool | StageProgress = True, cancel: Cancel | None = None) -> Report:
        """Calibrate if that was not done, quantize, evaluate; only what is not known from before is computed.

        After an interrupt, too, a later run goes on from what was computed.

        Parameters
        ----------
        progress
            True shows bars in a notebook or a terminal, once it takes long; False shows nothing; a callable is called
            now and then: on this thread, or on one that compiles kernels.
        cancel
            Something with ``is_set()``, such as a ``threading.Event``.

        Raises
        ------
        Cancelled
            `cancel` was set; a later run goes on from what was computed.
        """
        generation = self._record.generation  # asked first: the config is of this one, or newer
        history = self.history
        config, done = history.config, history.edits[1 : history.position + 1]
        report = replace(self._evaluate(config, progress, cancel), edits=tuple(edit.label for edit in done))
        self._record.note(generation, Snapshot(config, report))
        return report

    def probe(self, cancel: Cancel | None = None, told: Callable[[OutputReport], None] | None = None) -> Report:
        """What the config that counts now costs on a few samples, at once: for each step of an edit by hand.

        Parameters
        ----------
        cancel
            Something with ``is_set()``, such as a ``threading.Event``.
        told
            Called with what the whole network loses as soon as that is known; each layer's own error follows.

        Returns
        -------
        Report
            Its `output.data` is "probe". SQNR is measured on a fixed sample of each tensor's elements.

        Raises
        ------
        Cancelled
            `cancel` was set.
        """
        generation = self._record.generation  # asked first, as in a run
        config, probe = self.history.config, self._probe
        quantized = self._quantizer.quantize(config, cancel=cancel)
        report = evaluate(
            quantized,
            probe.data,
            self._cache,
            data_name="probe",
            probe=probe.data,
            metric=self._metric,
            cancel=cancel,
            told=told,
            seen=self._quantizer.statistics(config=config),
        )
        report = probe.named(report)
        report = self._timings.told(quantized, report)
        self._record.note_probe(generation, report)
        return report

    def attribution(self, cancel: Cancel | None = None) -> Attribution:
        """Where along the graph the error of the config that counts now arises, on the samples of :meth:`probe`.

        Raises
        ------
        Cancelled
            `cancel` was set.
        """
        return attribute(self.prepared, self.probe(cancel))

    def latency(self, cancel: Cancel | None = None) -> Latency:
        """Time the integer model and the float model on one sample, and each layer's step; reports say it from then on.

        Raises
        ------
        Cancelled
            `cancel` was set.
        """
        return self._timings.measure(self.quantized(), self._probe.data, cancel)

    def sensitivity(
        self,
        mode: Literal["float", "quantized"] = "float",
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
        *,
        on: Literal["evaluation", "probe"] = "evaluation",
    ) -> pd.DataFrame:
        """The layers that cost most, see :func:`qbench.evaluate.sensitivity.sensitivity`.

        Parameters
        ----------
        mode, progress, cancel
            As there, and as for :meth:`run`.
        on
            All data, or for a quick look the samples of :meth:`probe`.

        Raises
        ------
        Cancelled
            `cancel` was set.
        """
        model = self._quantizer
        data = self._probe.data if on == "probe" else self._evaluation or model.calibration
        with showing(progress) as tell:
            calibration, told = partial(tell, "calibration"), partial(tell, "sensitivity")
            settled = model.settled(self.history.config, calibration, cancel)
            return sensitivity(
                model.rounded(settled, calibration, cancel),
                model.statistics(calibration, cancel, settled),
                settled,
                data,
                self._cache,
                mode=mode,
                progress=told,
                cancel=cancel,
                executor=model.executor,
            )

    def values(
        self, layer: str, part: Literal["activation", "weight"] = "activation", cancel: Cancel | None = None
    ) -> Values:
        """What one layer makes of up to 8 samples of :meth:`probe`, in the float and in the quantized model.

        Parameters
        ----------
        layer
            Its name.
        part
            What its fused group makes, or the weight that it multiplies by.
        cancel
            As for :meth:`run`.

        Raises
        ------
        SessionError
            No layer has that name, or it has no such tensor, or that is not of real numbers.
        Cancelled
            `cancel` was set.
        """
        quantized = self._quantizer.quantize(self.history.config, cancel=cancel)
        if part == "weight":
            return weight_values(quantized, layer, self._cache)
        return layer_values(quantized, self._probe.data, layer, self._cache, cancel)

    def _evaluate(
        self, config: QuantConfig, progress: bool | StageProgress = True, cancel: Cancel | None = None
    ) -> Report:
        with showing(progress) as tell:
            quantized = self._quantizer.quantize(config, partial(tell, "calibration"), cancel)
            report = evaluate(
                quantized,
                self._evaluation or self._quantizer.calibration,
                self._cache,
                data_name="evaluation" if self._evaluation else "calibration",
                probe=self._probe.data,
                metric=self._metric,
                progress=partial(tell, "evaluation"),
                cancel=cancel,
                executor=self._quantizer.executor,
                seen=self._quantizer.statistics(config=config),
            )
            return self._timings.told(quantized, report)
