"""The session: a model, its data, the history of its config, and the results so far. The only state in qbench."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from qbench.calibration.statistics import Statistics
from qbench.engine.cache import ValueCache
from qbench.engine.compare import compare
from qbench.engine.data import Samples
from qbench.engine.dataset import Dataset
from qbench.engine.evaluate import evaluate
from qbench.engine.quantized import Quantized, check_config
from qbench.engine.report import Report
from qbench.engine.sensitivity import sensitivity
from qbench.errors import SessionError, nearest, shown
from qbench.ir import archive
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.choices import excluded_nodes
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel, StageProgress, showing
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings
from qbench.session.changes import SessionDiff, session_diff
from qbench.session.folder import SessionFolder
from qbench.session.history import Edit, History
from qbench.session.names import find, overridden, without
from qbench.session.quantizer import Quantizer
from qbench.session.snapshots import Snapshot, dump_snapshots, load_snapshots

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Session"]

SnapshotPart = Literal["report.json", "snapshots.json"]

_CACHE_BYTES = 1 << 30
_LONGEST = 60


class Session:
    """Quantize a model, look, change, run again; everything can be undone, and nothing is lost.

    All methods may be called from any thread: each works on an immutable snapshot of the config, and the result of a
    run never replaces that of a newer config.

    Parameters
    ----------
    graph
        A float model, as :func:`qbench.load` gives it.
    calibration
        What ranges are measured on: an array, a mapping of input name to array, a list or other re-iterable of those
        (see :class:`~qbench.engine.dataset.Dataset`), or what :func:`qbench.engine.data.load_data` gave.
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

    Raises
    ------
    DataError
        NaN, infinity, nothing at all, wrong shape or dtype in the data.
    SessionError
        The graph is quantized already, or `path` holds something else.
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
    ) -> None:
        if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance] anything may come at run time
            kind = type(graph).__name__  # pyright: ignore[reportUnreachable]
            raise SessionError(f"a session is made of a graph, not {kind}; qbench.load(path) reads one")
        if graph.qparams:
            raise SessionError("this graph is quantized already; start from the float model")
        x, y = evaluation, None
        if isinstance(evaluation, tuple) and len(cast("tuple[object, ...]", evaluation)) == 2:
            x, y = cast("tuple[object, object]", evaluation)
        cases = None if x is None else Dataset(graph, x, y, what="evaluation")
        data = Dataset(graph, calibration.x if isinstance(calibration, Samples) else calibration, what="calibration")
        model = Quantizer(graph, data, executor, fold_scale_axis)
        history, folder = History.start(config or QuantConfig()), None
        check_config(model.prepared.graph, history.config)
        if path is not None:
            folder = SessionFolder.make(Path(path), graph, fold_scale_axis, data, cases, history.to_json())
            model.folder = folder.path
        saved = History.from_json(folder.read("history.json")) if folder else history
        self._set_up(graph, model, cases, cache_bytes, folder, saved)
        if self._history.config != history.config:
            self._move_to(self._history.push(history.edits[0]))

    @classmethod
    def resume(cls, path: str | Path, *, executor: Executor | None = None, cache_bytes: int = _CACHE_BYTES) -> Session:
        """Go on where the session at `path` was left, or killed: same model, data, history, statistics, last report.

        Raises
        ------
        SessionError
            No session is there, or one that is damaged; it says what.
        """
        folder = SessionFolder.open(Path(path))
        graph, calibration, evaluation = folder.load()
        quantizer = Quantizer(graph, calibration, executor, folder.manifest.fold_scale_axis, folder.path)
        session = cls.__new__(cls)
        history = History.from_json(folder.read("history.json"))
        session._set_up(graph, quantizer, evaluation, cache_bytes, folder, history)
        return session

    def _set_up(
        self,
        graph: Graph,
        quantizer: Quantizer,
        evaluation: Dataset | None,
        cache_bytes: int,
        folder: SessionFolder | None,
        history: History,
    ) -> None:
        self._graph, self._quantizer, self._evaluation = graph, quantizer, evaluation
        self._cache = ValueCache(cache_bytes)
        self._lock = threading.RLock()  # all below, and the folder; never held while something long runs
        self._folder = folder
        self._generation = self._last_generation = 0
        self._history = history
        self._snapshots = self._load("snapshots.json")
        self._last = self._load("report.json").get("last")

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
        with self._lock:
            return self._history

    @property
    def generation(self) -> int:
        """A number that grows with each change of the config: to drop results that come late."""
        with self._lock:
            return self._generation

    @property
    def report(self) -> Report | None:
        """The newest report; see `is_stale`."""
        with self._lock:
            return self._last.report if self._last else None

    @property
    def is_stale(self) -> bool:
        """Whether the report is of another config than the one that counts now, or missing."""
        with self._lock:
            return self._last is None or self._last.config != self._history.config

    @property
    def source(self) -> Graph:
        """The model as it was given."""
        return self._graph

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
        """The integer graph, for the config that counts now."""
        return self.quantized().graph

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
        with self._lock:
            config, generation = self._history.config, self._generation
        report = self._evaluate(config, progress, cancel)
        with self._lock:
            if generation >= self._last_generation:
                self._last, self._last_generation = Snapshot(config, report), generation
                self._save("report.json", {"last": self._last})
        return report

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
        if not settings:
            raise SessionError(
                f"nothing to set for {shown(name)}: give threshold=, scale=, dtype=, keep_float= or others"
            )
        said = ", ".join(f"{key}={_brief(value)}" for key, value in settings.items())
        with self._lock:
            target = find(self._graph, self.prepared, self._points(settings), name)
            config = overridden(self._history.config, target, name, settings)
            self.edit(f"override {shown(name)}: {said}", config)

    def reset(self, name: str) -> None:
        """Take back all overrides of one layer or tensor; SessionError where there are none."""
        with self._lock:
            target = find(self._graph, self.prepared, self._points({}), name)
            self.edit(f"reset {shown(name)}", without(self._history.config, target, name))

    def edit(self, label: str, config: QuantConfig) -> None:
        """Make another config count; the history notes it under `label`. The same config again changes nothing.

        Raises
        ------
        ConfigError
            A rule or override that is about nothing in the model.
        """
        check_config(self.prepared, config)
        with self._lock:
            self._move_to(self._history.push(Edit(label, config)))

    def undo(self) -> None:
        """Take back the last change of the config; SessionError where there is none."""
        with self._lock:
            self._move_to(self._history.undo())

    def redo(self) -> None:
        """Make the change again that was last undone; SessionError where there is none."""
        with self._lock:
            self._move_to(self._history.redo())

    def diff(self) -> SessionDiff:
        """What has changed since the session was started, in the config, and in the graph once it was calibrated."""
        with self._lock:
            before, after = self._history.base, self._history.config
        if not self._quantizer.is_calibrated:
            return session_diff(before, after, None)
        return session_diff(before, after, (self.quantized(before), self.quantized(after)))

    def snapshot(self, name: str) -> None:
        """Keep the config that counts now, and its report where there is one, under a name."""
        with self._lock:
            report = None if self.is_stale else self.report
            self._snapshots[name] = Snapshot(self._history.config, report)
            self._save("snapshots.json", self._snapshots)

    @property
    def snapshots(self) -> Mapping[str, Snapshot]:
        """All that was kept under names."""
        with self._lock:
            return dict(self._snapshots)

    def compare(self, before: str, after: str | None = None) -> pd.DataFrame:
        """Two snapshots, layer by layer; None stands for the config that counts now. See `qbench.engine.compare`."""
        return compare(self._report_of(before), self.run() if after is None else self._report_of(after))

    def sensitivity(
        self,
        mode: Literal["float", "quantized"] = "float",
        progress: bool | StageProgress = True,
        cancel: Cancel | None = None,
    ) -> pd.DataFrame:
        """The layers that cost most, see :func:`qbench.engine.sensitivity.sensitivity`."""
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

    def _move_to(self, history: History) -> None:
        if history is self._history:
            return
        self._history = history
        self._generation += 1
        if self._folder is not None:
            self._folder.write("history.json", history.to_json())

    def _points(self, settings: Mapping[str, Any]) -> list[str]:
        """The tensors that are quantized now, or will be once a layer is no longer kept in float."""
        excluded = (
            FrozenMap[str, str]() if "keep_float" in settings else excluded_nodes(self.prepared, self._history.config)
        )
        return list(points(AnnotatePass(excluded)(self.prepared)))

    def _evaluate(
        self, config: QuantConfig, progress: bool | StageProgress = True, cancel: Cancel | None = None
    ) -> Report:
        with showing(progress) as tell:
            quantized = self._quantizer.quantize(config, partial(tell, "calibration"), cancel)
            return evaluate(
                quantized,
                self._evaluation or self._quantizer.calibration,
                self._cache,
                data_name="evaluation" if self._evaluation else "calibration",
                progress=partial(tell, "evaluation"),
                cancel=cancel,
            )

    def _report_of(self, name: str) -> Report:
        with self._lock:
            if name not in self._snapshots:
                raise SessionError(f"there is no snapshot {shown(name)}{nearest(name, self._snapshots)}")
            snapshot = self._snapshots[name]
        if snapshot.report is not None:
            return snapshot.report
        report = self._evaluate(snapshot.config)
        with self._lock:
            self._snapshots[name] = Snapshot(snapshot.config, report)
            self._save("snapshots.json", self._snapshots)
        return report

    def _load(self, part: SnapshotPart) -> dict[str, Snapshot]:
        folder = self._folder
        return load_snapshots(folder.read(part), self._data_key) if folder and folder.has(part) else {}

    def _save(self, part: SnapshotPart, snapshots: Mapping[str, Snapshot]) -> None:
        if self._folder is not None:
            self._folder.write(part, dump_snapshots(snapshots, self._data_key))

    @property
    def _data_key(self) -> str:
        """What reports depend on beside a config: the statistics, and the data that they are measured on."""
        data = (self._quantizer.calibration, self._evaluation)
        return " ".join(one.digest + one.labels_digest for one in data if one is not None)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
