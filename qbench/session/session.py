"""The session: a model, its data, and what can be done with them; what was done is in its `Record`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from qbench.cluster.where import executor_of
from qbench.data.dataset import Dataset
from qbench.data.load import Samples
from qbench.errors import DataError, SessionError, check_kind, shown
from qbench.evaluate.metric import MetricFunction, resolve_metric
from qbench.evaluate.probe import PROBE_SAMPLES
from qbench.ir import archive
from qbench.ir.graph import Graph
from qbench.quant.config import Preset, QuantConfig
from qbench.quantize.quantized import check_config
from qbench.report.compare import compare
from qbench.report.report import Report
from qbench.runtime.ahead import compile_ahead
from qbench.session.arrays import recall_surveys
from qbench.session.folder import SessionFolder
from qbench.session.history import History
from qbench.session.model import Model
from qbench.session.quantizer import Quantizer
from qbench.session.searches import Searches
from qbench.session.snapshots import Snapshot
from qbench.session.state import State

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_CACHE_BYTES = 1 << 30


class Session(Searches):
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
        What accuracy is measured on: the same, or a pair (x, y) with the right class of each sample (with `metric`,
        whatever that compares with). None: SQNR and agreement are measured on the calibration data, and the report says
        so.
    path
        A folder to save everything to, after each step. One that holds a session of the same model goes on: its history
        is kept, its data replaced.
    config
        Where to start; None: as `preset` says.
    preset
        "default": what 8 bits would spoil stays in float, as little as is measured to be needed. "auto": from there (or
        from `config`) calibrator, bias correction, equalization and rounding are chosen at once, see :meth:`choose`;
        what was chosen is an edit, and stands in the report. "int8": all that can
        be is quantized. "dynamic", "weight_only" and "weight_only_int4": see :meth:`QuantConfig.of_preset`.
    executor
        Any ``concurrent.futures.Executor``: where calibration, evaluation and trials run; None: in this process.
    cluster
        A ``dask.distributed.Client``, in place of an executor: they run on its workers, with the same results.
    cache_bytes
        Memory for arrays that a later run can use again.
    fold_scale_axis
        Also fold constant multiplications per channel into weights, see :func:`qbench.passes.prepare.prepare`.
    fold_affine
        Fold scales and shifts by one number into the layers beside them; False for a config that names their tensors.
    probe_samples
        How many samples :meth:`probe` runs.
    float_model
        For a quantized model: the float one that it was made from, whose weights and biases then stand in the reports
        and in what is requantized. None: its own weights, dequantized.
    metric
        The measure of quality that matters: a callable, or ``"module:function"``, that is given the outputs by name
        (arrays, one sample after the other along axis 0) and y, and gives a number, the higher the better. Reports,
        probes and searches say it for the float and the quantized model.

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
        preset: Preset = "default",
        executor: Executor | None = None,
        cluster: object = None,
        cache_bytes: int = _CACHE_BYTES,
        fold_scale_axis: bool = False,
        fold_affine: bool = True,
        probe_samples: int = PROBE_SAMPLES,
        float_model: Graph | None = None,
        metric: str | MetricFunction | None = None,
    ) -> None:
        check_kind(graph, Graph, SessionError, "a session is made of a graph, not {}; qbench.load(path) reads one")
        compile_ahead()
        if path is not None:
            recall_surveys(Path(path))
        x, y = evaluation, None
        if isinstance(evaluation, tuple) and len(cast("tuple[object, ...]", evaluation)) == 2:
            x, y = cast("tuple[object, object]", evaluation)
        model, where = Model(graph, float_model, fold_scale_axis, fold_affine), executor_of(cluster, executor)
        cases = None if x is None else _cases(model, x, y, metric is not None, where)
        given = calibration.x if isinstance(calibration, Samples) else calibration
        data = Dataset(model.fed, model.reals(given), what="calibration", executor=where)
        quantizer = Quantizer(model, data, where, judges=cases is None)
        history, folder = History.start(config or model.config_of(preset)), None
        check_config(model.prepared, history.config)
        if path is not None:
            folder = SessionFolder.make(Path(path), model, data, cases, history.to_json())
            quantizer.folder = folder.path
        saved = folder.parsed("history.json", History.from_json) if folder else history
        found = None if metric is None else resolve_metric(metric)
        super().__init__(model, quantizer, cases, cache_bytes, folder, saved, probe_samples, found)
        if self.config != history.config:
            self._record.change(lambda saved: saved.push(history.edits[0]))
        if preset == "auto" and model.template is None:
            self.choose()

    @classmethod
    def resume(
        cls,
        path: str | Path,
        *,
        executor: Executor | None = None,
        cluster: object = None,
        cache_bytes: int = _CACHE_BYTES,
        probe_samples: int = PROBE_SAMPLES,
        metric: str | MetricFunction | None = None,
        truths: Sequence[Any] | NDArray[Any] | None = None,
    ) -> Session:
        """Go on where the session at `path` was left, or killed: same model, data, history, statistics, last report.

        Parameters
        ----------
        path
            Of the session's folder.
        executor, cluster, cache_bytes, probe_samples
            As for a new session.
        metric, truths
            The measure of quality and what it compares with, which are code and data of the user's: no session saves
            them.

        Raises
        ------
        SessionError
            No session is there, or one that is damaged; it says what.
        """
        folder = SessionFolder.open(Path(path))
        model, calibration, evaluation = folder.load()
        where = executor_of(cluster, executor)
        quantizer = Quantizer(model, calibration, where, folder.path, judges=evaluation is None)
        history = folder.parsed("history.json", History.from_json)
        session = cls.__new__(cls)
        found = None if metric is None else resolve_metric(metric)
        if truths is not None and evaluation is not None:
            evaluation.truths = truths
        State.__init__(session, model, quantizer, evaluation, cache_bytes, folder, history, probe_samples, found)
        return session

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

    def save(self, folder: str | Path) -> None:
        """Write the integer graph as an archive, which :func:`qbench.load` reads."""
        archive.save(self.graph, folder)

    def _report_of(self, name: str) -> Report:
        snapshot = self._record.snapshot(name)
        if snapshot.report is not None:
            return snapshot.report
        report = self._evaluate(snapshot.config)
        self._record.keep(name, Snapshot(snapshot.config, report))
        return report


def _cases(model: Model, x: object, y: object, has_metric: bool, executor: Executor | None) -> Dataset:
    """The evaluation data; y is the right class of each sample, or with a metric whatever that compares with."""
    if not has_metric or y is None:
        try:
            return Dataset(model.fed, model.reals(x), y, what="evaluation", executor=executor)
        except DataError as error:
            if isinstance(x, list) and len(cast("list[object]", x)) == 2:
                raise DataError(f"{error}; a list has batches, (x, y) with the classes is a tuple") from error
            raise
    if not (hasattr(y, "__len__") and hasattr(y, "__getitem__")):
        raise DataError(f"y is {type(y).__name__}: give an array or a list with one entry for each evaluation sample")
    return Dataset(model.fed, model.reals(x), what="evaluation", truths=cast("Sequence[Any]", y), executor=executor)
