"""What a session stands on: its model, its data, what was computed, and the record of what was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.metric import Metric
from qbench.evaluate.probe import Probe
from qbench.evaluate.timings import Timings
from qbench.ir.graph import Graph
from qbench.passes.imported import integer_borders
from qbench.passes.pipeline import Trace
from qbench.progress import showing
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings
from qbench.quantize.quantized import Quantized, check_config
from qbench.session.folder import SessionFolder
from qbench.session.history import History
from qbench.session.model import Model
from qbench.session.quantizer import Quantizer
from qbench.session.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


class State:
    """The model quantized by the config that counts now, and all that this is made of.

    Parameters
    ----------
    model, quantizer
        What is quantized, and how; the quantizer has the calibration data.
    evaluation
        What accuracy is measured on; None: the calibration data.
    cache_bytes
        Memory for arrays that a later run can use again.
    folder, history
        Where everything is saved, if anywhere, and all configs so far.
    probe_samples
        How many samples a probe runs.
    metric
        The user's measure of quality.
    """

    def __init__(
        self,
        model: Model,
        quantizer: Quantizer,
        evaluation: Dataset | None,
        cache_bytes: int,
        folder: SessionFolder | None,
        history: History,
        probe_samples: int,
        metric: Metric | None = None,
    ) -> None:
        self._metric = metric
        self._model, self._quantizer, self._evaluation = model, quantizer, evaluation
        self._cache = ValueCache(cache_bytes)
        self._probe = Probe(model.fed, evaluation or quantizer.calibration, probe_samples)
        self._timings = Timings()
        data = [quantizer.calibration] if evaluation is None else [quantizer.calibration, evaluation]
        self._record = Record(history, folder, " ".join(one.digest + one.labels_digest for one in data))

    @property
    def history(self) -> History:
        """All configs so far, and which one counts."""
        return self._record.history

    @property
    def generation(self) -> int:
        """A number that grows with each change of the config: to drop results that come late."""
        return self._record.generation

    @property
    def path(self) -> Path | None:
        """The folder that each step is saved to; None where nothing is saved."""
        return self._record.path

    @property
    def source(self) -> Graph:
        """The model as it was given."""
        return self._model.graph

    @property
    def is_imported(self) -> bool:
        """Whether the model was quantized before it was loaded."""
        return self._model.template is not None

    @property
    def imported(self) -> QuantConfig | None:
        """The scales that the model's file came with, as a config; None where it came in float."""
        return self._model.config if self.is_imported else None

    @property
    def prepared(self) -> Graph:
        """The float graph that is quantized; its nodes are the layers of the reports."""
        return self._quantizer.prepared.graph

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """What calibration saw, by tensor, in the graph that counts now; the first use runs it."""
        with showing() as tell:
            return self._quantizer.statistics(partial(tell, "calibration"), config=self.history.config)

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
        if config is not None:
            check_config(self._quantizer.prepared, config, self._quantizer.memo)
        with showing() as tell:
            return self._quantizer.quantize(config or self.history.config, partial(tell, "calibration"))

    def sample(self, index: int) -> Mapping[str, NDArray[Any]]:
        """One sample of the evaluation data (of the calibration data where there is none), by input name.

        Raises
        ------
        DataError
            There is no such sample.
        """
        return (self._evaluation or self._quantizer.calibration).sample(index)

    def watch(self, callback: Callable[[], None]) -> None:
        """Call it after each change of config, report or snapshots, on the thread that made it; it must not raise.

        A bound method counts only as long as its object is alive, and until `unwatch`.
        """
        self._record.watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Call it no more."""
        self._record.watchers.remove(callback)
