"""The session: a model, its data, and what can be done with them; what was done is in its `Record`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.data.load import Samples
from qbench.errors import SessionError, shown
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.probe import PROBE_SAMPLES, Probe
from qbench.evaluate.sensitivity import sensitivity
from qbench.evaluate.timings import Timings
from qbench.ir import archive
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.passes.choices import excluded_nodes
from qbench.passes.pipeline import Trace
from qbench.passes.unbake import integer_borders
from qbench.progress import Cancel, StageProgress, showing
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings
from qbench.quantize.imported import recalibrated, restored
from qbench.quantize.quantized import Quantized, annotate, check_config
from qbench.report.compare import compare
from qbench.report.entries import Latency
from qbench.report.report import Report
from qbench.search.attribution import Attribution, attribute
from qbench.session.changes import SessionDiff, session_diff
from qbench.session.folder import SessionFolder
from qbench.session.history import Edit, History
from qbench.session.model import Model
from qbench.session.names import find, overridden, without
from qbench.session.quantizer import Quantizer
from qbench.session.record import Record
from qbench.session.snapshots import Snapshot

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["Session"]

_CACHE_BYTES = 1 << 30
_LONGEST = 60
_FEW = 3


class Session:
    """Quantize a model, look, change, run again; everything can be undone, and nothing is lost.

    All methods may be called from any thread: each works on an immutable snapshot of the config, and the result of a
    run never replaces that of a newer config.

    Parameters
    ----------
    graph
        A model, as :func:`qbench.load` gives it. One that is quantized already starts with its own scales as overrides;
        as long as they are untouched it computes the same bits.
    calibration
        What ranges are measured on: an array, a mapping of input name to array, a list or other re-iterable of those
        (see :class:`~qbench.data.dataset.Dataset`), or what :func:`qbench.data.load.load_data` gave.
    evaluation
        What accuracy is measured on: the same, or a pair (x, y) with the right class of each sample. None: SQNR and
        agreement are measured on the calibration data, and the report says so.
    path
        A folder to save everything to, after each step. One that holds a session of the same model goes on: its history
        is kept, its data replaced.
    config
        Where to start; None: the defaults.
    executor
        Any ``concurrent.futures.Executor`` for the calibration pass.
    cache_bytes
        Memory for arrays that a later run can use again.
    fold_scale_axis
        Also fold constant multiplications per channel into weights, see :func:`qbench.passes.prepare.prepare`.
    probe_samples
        How many samples :meth:`probe` runs.
    float_model
        For a quantized model: the float one that it was made from, whose weights and biases then stand in the reports
        and in what is requantized. None: its own weights, dequantized.

    Raises
    ------
    DataError
        NaN, infinity, nothing at all, wrong shape or dtype in the data.
    SessionError
        A quantized graph that cannot be tuned, or a float model of something else; or `path` holds something else.
    """

    def __init__(
        self,
        graph: Graph,
        calibration: object,
        evaluation: object = None,
        *,
        path: str | Path | None = None,
        config: QuantConfig | None = None,
        executor: Executor | None = None,
        cache_bytes: int = _CACHE_BYTES,
        fold_scale_axis: bool = False,
        probe_samples: int = PROBE_SAMPLES,
        float_model: Graph | None = None,
    ) -> None:
        if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance] anything may come at run time
            kind = type(graph).__name__  # pyright: ignore[reportUnreachable]
            raise SessionError(f"a session is made of a graph, not {kind}; qbench.load(path) reads one")
        x, y = evaluation, None
        if isinstance(evaluation, tuple) and len(cast("tuple[object, ...]", evaluation)) == 2:
            x, y = cast("tuple[object, object]", evaluation)
        model = Model(graph, float_model, fold_scale_axis)
        cases = None if x is None else Dataset(model.fed, model.reals(x), y, what="evaluation")
        given = calibration.x if isinstance(calibration, Samples) else calibration
        data = Dataset(model.fed, model.reals(given), what="calibration")
        quantizer = Quantizer(model, data, executor)
        history, folder = History.start(config or model.config), None
        check_config(model.prepared, history.config)
        if path is not None:
            folder = SessionFolder.make(Path(path), model, data, cases, history.to_json())
            quantizer.folder = folder.path
        saved = History.from_json(folder.read("history.json")) if folder else history
        self._set_up(model, quantizer, cases, cache_bytes, folder, saved, probe_samples)
        if self.config != history.config:
            self._record.change(lambda saved: saved.push(history.edits[0]))

    @classmethod
    def resume(
        cls,
        path: str | Path,
        *,
        executor: Executor | None = None,
        cache_bytes: int = _CACHE_BYTES,
        probe_samples: int = PROBE_SAMPLES,
    ) -> Session:
        """Go on where the session at `path` was left, or killed: same model, data, history, statistics, last report.

        Raises
        ------
        SessionError
            No session is there, or one that is damaged; it says what.
        """
        folder = SessionFolder.open(Path(path))
        model, calibration, evaluation = folder.load()
        quantizer = Quantizer(model, calibration, executor, folder.path)
        session = cls.__new__(cls)
        history = History.from_json(folder.read("history.json"))
        session._set_up(model, quantizer, evaluation, cache_bytes, folder, history, probe_samples)
        return session

    def _set_up(
        self,
        model: Model,
        quantizer: Quantizer,
        evaluation: Dataset | None,
        cache_bytes: int,
        folder: SessionFolder | None,
        history: History,
        probe_samples: int,
    ) -> None:
        self._model, self._quantizer, self._evaluation = model, quantizer, evaluation
        self._cache = ValueCache(cache_bytes)
        self._probe = Probe(model.fed, evaluation or quantizer.calibration, probe_samples)
        self._timings = Timings()
        data = [quantizer.calibration] if evaluation is None else [quantizer.calibration, evaluation]
        self._record = Record(history, folder, " ".join(one.digest + one.labels_digest for one in data))

    # what there is

    @property
    def config(self) -> QuantConfig:
        """The config that counts now."""
        return self.history.config

    @config.setter
    def config(self, config: QuantConfig) -> None:
        self.edit("set config", config)

    @property
    def history(self) -> History:
        """All configs so far, and which one counts."""
        return self._record.history

    @property
    def generation(self) -> int:
        """A number that grows with each change of the config: to drop results that come late."""
        return self._record.generation

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

    @property
    def source(self) -> Graph:
        """The model as it was given."""
        return self._model.graph

    @property
    def is_imported(self) -> bool:
        """Whether the model was quantized before it was loaded."""
        return self._model.template is not None

    @property
    def prepared(self) -> Graph:
        """The float graph that is quantized; its nodes are the layers of the reports."""
        return self._quantizer.prepared.graph

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """What calibration saw, by tensor; the first use runs it."""
        with showing() as tell:
            return self._quantizer.statistics(partial(tell, "calibration"))

    @property
    def encodings(self) -> Encodings:
        """qparams and reason by tensor, for the config that counts now."""
        return self.quantized().encodings

    @property
    def graphs(self) -> Trace:
        """The graph after each pass, from the source model to integers, for the config that counts now."""
        return self.quantized().trace

    @property
    def graph(self) -> Graph:
        """The integer graph, for the config that counts now; that of an imported model takes and gives what it does."""
        graph, template = self.quantized().graph, self._model.template
        return graph if template is None else integer_borders(graph, template.borders)

    def quantized(self, config: QuantConfig | None = None) -> Quantized:
        """The model quantized by a config; None: the one that counts now."""
        with showing() as tell:
            return self._quantizer.quantize(config or self.config, partial(tell, "calibration"))

    # what can be done

    def run(self, progress: bool | StageProgress = True, cancel: Cancel | None = None) -> Report:
        """Calibrate if that was not done, quantize, evaluate; only what is not known from before is computed.

        After an interrupt, too, a later run goes on from what was computed.

        Parameters
        ----------
        progress
            True shows bars in a notebook or a terminal, once it takes long; False shows nothing; a callable is called
            now and then, on this thread.
        cancel
            Something with ``is_set()``, such as a ``threading.Event``.

        Raises
        ------
        Cancelled
            `cancel` was set; a later run goes on from what was computed.
        """
        generation = self._record.generation  # asked first: the config is of this one, or newer
        config = self.config
        report = self._evaluate(config, progress, cancel)
        self._record.note(generation, Snapshot(config, report))
        return report

    def probe(self, cancel: Cancel | None = None) -> Report:
        """What the config that counts now costs on a few samples, at once: for each step of an edit by hand.

        Parameters
        ----------
        cancel
            Something with ``is_set()``, such as a ``threading.Event``.

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
        quantized = self._quantizer.quantize(self.config, cancel=cancel)
        probe = self._probe
        report = evaluate(quantized, probe.data, self._cache, data_name="probe", probe=probe.data, cancel=cancel)
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

    def sample(self, index: int) -> Mapping[str, NDArray[Any]]:
        """One sample of the evaluation data (of the calibration data where there is none), by input name.

        Raises
        ------
        DataError
            There is no such sample.
        """
        return (self._evaluation or self._quantizer.calibration).sample(index)

    def override(self, name: str, **settings: Any) -> None:
        """Change how one layer or tensor is quantized.

        Parameters
        ----------
        name
            Of a node, else of a tensor. A node stands for the output of its fused group (dense + bias_add + relu); name
            a weight's tensor to change the weight.
        settings
            ``keep_float`` and ``rounding`` for a layer; ``threshold``, ``scale``, ``zero_point``, ``dtype``,
            ``symmetric``, ``calibrator`` and ``axis`` for a tensor. None takes one back.

        Raises
        ------
        SessionError
            Nothing is called so, or the setting would have no effect.
        ConfigError
            A setting is unknown or has a wrong value.
        """
        self._override(shown(name), [name], settings)

    def override_many(self, names: Iterable[str], **settings: Any) -> None:
        """Change several layers or tensors at once, as one edit: all of them, or where one is wrong none.

        Parameters
        ----------
        names, settings
            As for :meth:`override`.

        Raises
        ------
        SessionError, ConfigError
            As for :meth:`override`; says which of the names.
        """
        several = list(dict.fromkeys(names))
        if not several:
            raise SessionError("nothing to override: give the names of layers or tensors")
        self._override(_few(several), several, settings)

    def reset(self, name: str) -> None:
        """Take back all overrides of one layer or tensor; SessionError where there are none.

        What an imported model came with counts again.
        """
        self._reset(shown(name), [name])

    def reset_many(self, names: Iterable[str]) -> None:
        """Take back all overrides of several layers or tensors, as one edit; SessionError where none has any."""
        several = list(dict.fromkeys(names))
        self._reset(_few(several), several)

    def recalibrate(self, *names: str) -> None:
        """Drop the scales that an imported model came with: the config's calibrators choose anew.

        Parameters
        ----------
        names
            Of layers or tensors, as for :meth:`override`; none: all. Tensors that must have one scale go together.

        Raises
        ------
        SessionError
            The model was not quantized when it was loaded, or nothing of that name is quantized.
        """
        template = self._model.template
        if template is None:
            raise SessionError("this model came without scales: they are calibrated anyway")

        def drop(config: QuantConfig) -> QuantConfig:
            if not names:
                return recalibrated(template, config, template.tensors)
            targets = find(self.source, self.prepared, self._points(config), names)
            tensors = [target.tensor for target in targets if target.tensor is not None]
            if len(tensors) < len(targets):
                raise SessionError(f"nothing of {shown(names[[t.tensor for t in targets].index(None)])} is quantized")
            return recalibrated(template, config, tensors)

        self._change(f"recalibrate {', '.join(map(shown, names)) or 'all'}", drop)

    def edit(self, label: str, config: QuantConfig) -> None:
        """Make another config count; the history notes it under `label`. The same config again changes nothing.

        Raises
        ------
        ConfigError
            A rule or override that is about nothing in the model.
        """
        self._change(label, lambda _: config)

    def undo(self) -> None:
        """Take back the last change of the config; SessionError where there is none."""
        self._record.change(History.undo)

    def redo(self) -> None:
        """Make the change again that was last undone; SessionError where there is none."""
        self._record.change(History.redo)

    def go_to(self, position: int) -> None:
        """Undo or redo until the config is that after so many edits; SessionError where there are not that many."""
        self._record.change(lambda history: history.at(position))

    def join_edits(self) -> None:
        """Make the newest edit and the one before it one of the history, such as the steps of a drag."""
        self._record.change(History.joined)

    def watch(self, callback: Callable[[], None]) -> None:
        """Call it after each change of config, report or snapshots, on the thread that made it; it must not raise.

        A bound method counts only as long as its object is alive, and until `unwatch`.
        """
        self._record.watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Call it no more."""
        self._record.watchers.remove(callback)

    @property
    def path(self) -> Path | None:
        """The folder that each step is saved to; None where nothing is saved."""
        return self._record.path

    def diff(self) -> SessionDiff:
        """What has changed since the session was started, in the config, and in the graph once it was calibrated."""
        history = self.history
        before, after = history.base, history.config
        if not self._quantizer.is_calibrated:
            return session_diff(before, after, None)
        return session_diff(before, after, (self.quantized(before), self.quantized(after)))

    def snapshot(self, name: str) -> None:
        """Keep the config that counts now, and its report where there is one, under a name."""
        self._record.keep(name)

    def restore(self, name: str) -> None:
        """Make a snapshot's config count again, as an edit; SessionError where nothing has that name."""
        self.edit(f"restore snapshot {shown(name)}", self._record.snapshot(name).config)

    def forget(self, name: str) -> None:
        """Drop what was kept under a name; SessionError where nothing was."""
        self._record.forget(name)

    @property
    def snapshots(self) -> Mapping[str, Snapshot]:
        """All that was kept under names."""
        return self._record.snapshots

    def compare(self, before: str, after: str | None = None) -> pd.DataFrame:
        """Two snapshots, layer by layer; None stands for the config that counts now. See `qbench.report.compare`."""
        return compare(self._report_of(before), self.run() if after is None else self._report_of(after))

    def sensitivity(
        self,
        mode: Literal["float", "quantized"] = "float",
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
    ) -> pd.DataFrame:
        """The layers that cost most, see :func:`qbench.evaluate.sensitivity.sensitivity`."""
        model = self._quantizer
        data = self._evaluation or model.calibration
        with showing(progress) as tell:
            statistics = model.statistics(partial(tell, "calibration"), cancel)
            told = partial(tell, "sensitivity")
            return sensitivity(
                model.prepared, statistics, self.config, data, self._cache, mode=mode, progress=told, cancel=cancel
            )

    def save(self, folder: str | Path) -> None:
        """Write the integer graph as an archive, which :func:`qbench.load` reads."""
        archive.save(self.graph, folder)

    # how it is done

    def _change(self, label: str, edit: Callable[[QuantConfig], QuantConfig]) -> None:
        def push(history: History) -> History:
            config = edit(history.config)
            check_config(self._quantizer.prepared, config, self._quantizer.memo)
            return history.push(Edit(label, config))

        self._record.change(push)

    def _override(self, said: str, names: Sequence[str], settings: Mapping[str, Any]) -> None:
        if not settings:
            raise SessionError(f"nothing to set for {said}: give threshold=, scale=, dtype=, keep_float= or others")

        def override(config: QuantConfig) -> QuantConfig:
            targets = find(self.source, self.prepared, self._points(config, settings), names)
            return overridden(config, targets, settings)

        what = ", ".join(f"{key}={_brief(value)}" for key, value in settings.items())
        self._change(f"override {said}: {what}", override)

    def _reset(self, said: str, names: Sequence[str]) -> None:
        if not names:
            raise SessionError("nothing to reset: give the names of layers or tensors")

        def reset(config: QuantConfig) -> QuantConfig:
            targets = find(self.source, self.prepared, self._points(config), names)
            config, template = without(config, targets), self._model.template
            tensors = [target.tensor for target in targets if target.tensor is not None]
            return config if template is None else restored(template, config, tensors)

        self._change(f"reset {said}", reset)

    def _points(self, config: QuantConfig, settings: Collection[str] = ()) -> list[str]:
        """The tensors that are quantized now, or will be once a layer is no longer kept in float."""
        excluded = FrozenMap[str, str]() if "keep_float" in settings else excluded_nodes(self.prepared, config)
        return list(annotate(self._quantizer.prepared, excluded, self._quantizer.memo)[1])

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
                progress=partial(tell, "evaluation"),
                cancel=cancel,
            )
            return self._timings.told(quantized, report)

    def _report_of(self, name: str) -> Report:
        snapshot = self._record.snapshot(name)
        if snapshot.report is not None:
            return snapshot.report
        report = self._evaluate(snapshot.config)
        self._record.keep(name, Snapshot(snapshot.config, report))
        return report


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:_FEW])) + (f" and {len(names) - _FEW} more" if names[_FEW:] else "")


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
