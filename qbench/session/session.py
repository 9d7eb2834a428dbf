"""The session: a model, its data, the history of its config, and the results so far. The only state in qbench."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from qbench.calibration.collect import collect
from qbench.calibration.statistics import Statistics
from qbench.engine.cache import ValueCache
from qbench.engine.compare import compare
from qbench.engine.dataset import Dataset
from qbench.engine.evaluate import evaluate
from qbench.engine.keys import value_keys
from qbench.engine.quantized import Quantized, quantize_graph
from qbench.engine.report import Report
from qbench.engine.sensitivity import sensitivity
from qbench.engine.side_by_side import Cancel
from qbench.errors import SessionError, nearest, shown
from qbench.ir import archive
from qbench.ir.graph import Graph
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.choices import excluded_nodes
from qbench.passes.pipeline import Trace
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings
from qbench.session.arrays import load_statistics, save_statistics
from qbench.session.changes import SessionDiff, session_diff
from qbench.session.folder import SessionFolder
from qbench.session.history import Edit, History
from qbench.session.names import find, overridden, without
from qbench.session.snapshots import Snapshot, dump_snapshots, load_snapshots

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Session", "StageProgress"]

StageProgress = Callable[[str, int, int], object]
"""Called with the stage ("calibration", "evaluation"), how much is done, and how much there is to do."""

_CACHE_BYTES = 1 << 30
_REMEMBERED = 8


class Session:
    """Quantize a model, look, change, run again; everything can be undone, and nothing is lost.

    All methods may be called from any thread: each works on an immutable snapshot of the config, and the result of a
    run never replaces that of a newer config.

    Parameters
    ----------
    graph
        A float model, as :func:`qbench.load` gives it.
    calibration
        What ranges are measured on: an array, a mapping of input name to array, or a list or other re-iterable of
        those (see :class:`~qbench.engine.dataset.Dataset`).
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
        if graph.qparams:
            raise SessionError("this graph is quantized already; start from the float model")
        pair = cast("tuple[object, ...]", evaluation) if isinstance(evaluation, tuple) else (evaluation, None)
        x, y = pair if len(pair) == 2 else (evaluation, None)
        cases = None if x is None else Dataset(graph, x, y, what="evaluation")
        data = Dataset(graph, calibration, what="calibration")
        self._set_up(graph, data, cases, executor, cache_bytes, fold_scale_axis)
        self._history = History.start(config or QuantConfig())
        if path is not None:
            self._folder = SessionFolder.make(Path(path), graph, fold_scale_axis, data, cases)
            saved = self._folder.read("history.json")
            if saved is not None:
                start = Edit("start", config or QuantConfig(), starts=True)
                self._history = History.from_json(saved).push(start)
            self._snapshots = load_snapshots(self._folder.read("snapshots.json") or dump_snapshots({}))
            self._folder.write("history.json", self._history.to_json())

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
        session = cls.__new__(cls)
        session._set_up(graph, calibration, evaluation, executor, cache_bytes, folder.manifest.fold_scale_axis)
        history = folder.read("history.json")
        session._history = History.start(QuantConfig()) if history is None else History.from_json(history)
        session._snapshots = load_snapshots(folder.read("snapshots.json") or dump_snapshots({}))
        last = load_snapshots(folder.read("report.json") or dump_snapshots({}))
        session._last = last.get("last")
        session._folder = folder
        return session

    def _set_up(
        self,
        graph: Graph,
        calibration: Dataset,
        evaluation: Dataset | None,
        executor: Executor | None,
        cache_bytes: int,
        fold_scale_axis: bool,
    ) -> None:
        self._graph, self._prepared = graph, prepare(graph, fold_scale_axis)
        self._calibration, self._evaluation = calibration, evaluation
        self._executor, self._cache = executor, ValueCache(cache_bytes)
        self._folder: SessionFolder | None = None
        self._lock = threading.RLock()  # all below, and the folder; never held while something long runs
        self._generation = self._last_generation = 0
        self._last: Snapshot | None = None
        self._snapshots: dict[str, Snapshot] = {}
        self._quantized: dict[str, Quantized] = {}
        self._statistics: Mapping[str, Statistics] | None = None
        self._collecting = threading.Lock()

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
        return self._prepared.graph

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """What calibration saw, by tensor; the first use runs it."""
        return self._collect(None, None)

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
        return self._quantize(config or self.config, self._collect(None, None))

    # what can be done

    def run(self, progress: StageProgress | None = None, cancel: Cancel | None = None) -> Report:
        """Calibrate if that was not done, quantize, evaluate; only what is not known from before is computed.

        Parameters
        ----------
        progress
            Called now and then, on this thread.
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
                self._save("report.json", dump_snapshots({"last": self._last}))
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
        said = ", ".join(f"{key}={value!r}" for key, value in settings.items())
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
        """Make another config count; the history notes it under `label`. The same config again changes nothing."""
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
            before, after, statistics = self._history.base, self._history.config, self._statistics
        if statistics is None:
            return session_diff(before, after, None)
        return session_diff(before, after, (self._quantize(before, statistics), self._quantize(after, statistics)))

    def snapshot(self, name: str) -> None:
        """Keep the config that counts now, and its report where there is one, under a name."""
        with self._lock:
            report = None if self.is_stale else self.report
            self._snapshots[name] = Snapshot(self._history.config, report)
            self._save("snapshots.json", dump_snapshots(self._snapshots))

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
        progress: StageProgress | None = None,
        cancel: Cancel | None = None,
    ) -> pd.DataFrame:
        """The layers that cost most, see :func:`qbench.engine.sensitivity.sensitivity`."""
        statistics = self._collect(progress, cancel)
        told = partial(progress, "sensitivity") if progress else None
        data = self._evaluation or self._calibration
        return sensitivity(
            self._prepared, statistics, self.config, data, self._cache, mode=mode, progress=told, cancel=cancel
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
        self._save("history.json", history.to_json())

    def _points(self, settings: Mapping[str, Any]) -> list[str]:
        """The tensors that are quantized now, or will be once a layer is no longer kept in float."""
        excluded = {} if "keep_float" in settings else excluded_nodes(self.prepared, self._history.config)
        return list(points(AnnotatePass(excluded)(self.prepared)))

    def _collect(self, progress: StageProgress | None, cancel: Cancel | None) -> Mapping[str, Statistics]:
        with self._collecting:
            if self._statistics is None:
                self._statistics = self._saved_statistics() or self._collected(progress, cancel)
            return self._statistics

    def _collected(self, progress: StageProgress | None, cancel: Cancel | None) -> Mapping[str, Statistics]:
        told = partial(progress, "calibration") if progress else None
        found = collect(self.prepared, self._calibration, executor=self._executor, progress=told, cancel=cancel)
        if self._folder is not None:
            save_statistics(found, self._folder.statistics(self._statistics_key()))
        return found

    def _saved_statistics(self) -> Mapping[str, Statistics] | None:
        if self._folder is None:
            return None
        path = self._folder.statistics(self._statistics_key())
        return load_statistics(path) if path.exists() else None

    def _statistics_key(self) -> str:
        """What statistics depend on: the data, and every tensor of the float graph."""
        said = json.dumps([self._calibration.digest, sorted(value_keys(self.prepared).items())])
        return hashlib.sha256(said.encode()).hexdigest()

    def _quantize(self, config: QuantConfig, statistics: Mapping[str, Statistics]) -> Quantized:
        key = config.to_json()
        with self._lock:
            known = self._quantized.get(key)
        if known is not None:
            return known
        made = quantize_graph(self._prepared, statistics, config)
        with self._lock:
            self._quantized[key] = made
            while len(self._quantized) > _REMEMBERED:
                del self._quantized[next(iter(self._quantized))]
        return made

    def _evaluate(self, config: QuantConfig, progress: StageProgress | None, cancel: Cancel | None) -> Report:
        quantized = self._quantize(config, self._collect(progress, cancel))
        return evaluate(
            quantized,
            self._evaluation or self._calibration,
            self._cache,
            data_name="evaluation" if self._evaluation else "calibration",
            progress=partial(progress, "evaluation") if progress else None,
            cancel=cancel,
        )

    def _report_of(self, name: str) -> Report:
        with self._lock:
            if name not in self._snapshots:
                raise SessionError(f"there is no snapshot {shown(name)}{nearest(name, self._snapshots)}")
            snapshot = self._snapshots[name]
        if snapshot.report is not None:
            return snapshot.report
        report = self._evaluate(snapshot.config, None, None)
        with self._lock:
            self._snapshots[name] = Snapshot(snapshot.config, report)
            self._save("snapshots.json", dump_snapshots(self._snapshots))
        return report

    def _save(self, part: Literal["history.json", "report.json", "snapshots.json"], text: str) -> None:
        if self._folder is not None:
            self._folder.write(part, text)
