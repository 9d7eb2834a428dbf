"""A model and what calibration saw in it: quantizes by any config."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from qbench.calibration.blocks import Blocks, blocks_of, collect_blocks
from qbench.calibration.extremes import channel_extremes
from qbench.calibration.stages import is_large
from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.errors import SessionError, shown
from qbench.evaluate.keys import value_keys
from qbench.files import write_text
from qbench.ir.frozen import FrozenMap
from qbench.ir.memo import Memo
from qbench.ir.qparams import QParams
from qbench.passes.choices import nodes_with
from qbench.passes.equalize import EqualizePass, equalized_pairs, watched_values
from qbench.passes.pipeline import Step, Trace
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.progress import Cancel, Progress, showing
from qbench.quant.config import QuantConfig
from qbench.quant.specs import Mode, WeightSpec
from qbench.quantize.imported import template_of
from qbench.quantize.quantized import Quantized, encode, quantize_graph
from qbench.quantize.sequential import round_sequentially
from qbench.search.floor import measure_spared
from qbench.search.least import measure_least_db
from qbench.search.rounding import measure_rounding, round_on_rest, unseen
from qbench.search.spared import Spared
from qbench.session.arrays import load_statistics, save_statistics
from qbench.session.model import Model
from qbench.session.rounded import load_rounded, save_rounded

_REMEMBERED = 8
_NONE = frozenset[str]()


class Quantizer:
    """Collects statistics once, when they are first wanted, and remembers the graphs of the last few configs.

    Parameters
    ----------
    model, calibration
        The model, and the data that ranges are measured on.
    executor
        Where samples are run; None: here.
    folder
        Where statistics are kept between processes; None: nowhere.
    judges
        Whether calibration data also tell how good the result is: then weights are not rounded on the last quarter.
    """

    def __init__(
        self,
        model: Model,
        calibration: Dataset,
        executor: Executor | None = None,
        folder: Path | None = None,
        judges: bool = False,
    ) -> None:
        self.prepared = model.prepared
        self.is_imported = model.template is not None
        self.calibration = calibration
        self.held_back = unseen(calibration) if judges else range(0)
        self.memo = Memo()
        self.executor = executor
        self.folder = folder
        self._statistics: dict[frozenset[str], Mapping[str, Statistics]] = {}  # by the layers that are equalized
        self._equalized: dict[frozenset[str], Trace] = {}
        self._measured: Spared | None = None
        self._blocks, self._blocks_equalized = Blocks(self._load_block, self._save_block), Blocks()
        self._collecting = threading.Lock()
        self._quantized: dict[QuantConfig, Quantized] = {}
        self._remembering = threading.Lock()
        self._rounded: dict[tuple[int, frozenset[str], FrozenMap[str, QParams]], tuple[Trace, Trace]] = {}
        """By identity of the model that is rounded, which is kept so that no other takes its place."""
        self._rounding = threading.Lock()
        self._by_default: RoundedTrace | None = None
        self._if_better: dict[tuple[Mode, WeightSpec], RoundedTrace] = {}

    @property
    def is_calibrated(self) -> bool:
        """Whether statistics are there without running the model."""
        return _NONE in self._statistics or (self._path is not None and self._path.exists())

    def statistics(
        self, progress: Progress | None = None, cancel: Cancel | None = None, config: QuantConfig | None = None
    ) -> Mapping[str, Statistics]:
        """What calibration saw, by tensor, of what a config quantizes; a second thread waits for the first."""
        layers = _NONE if config is None else self._layers(config)
        with self._collecting:
            if layers not in self._statistics:
                trace = self._equalize(layers, cancel)
                path = self._path_of(trace)
                known = None if layers else self._loaded()
                found = self._statistics[layers] = known or self._collected(trace, progress, cancel)
                _forget(self._statistics)
                if known is None:
                    self._save(lambda: path is None or save_statistics(found, path))
            return self._statistics[layers]

    def base(self, config: QuantConfig, cancel: Cancel | None = None) -> Trace:
        """How the model became the float graph that a config quantizes."""
        with self._collecting:
            return self._equalize(self._layers(config), cancel)

    def _layers(self, config: QuantConfig) -> frozenset[str]:
        """The first layers of the pairs that a config equalizes, or that were measured to need it."""
        if config.activations.least_db == "measured" and self._known is not None and self._known.equalize:
            config = config.with_value("weights.equalize", True)
        said = config.weights, *config.rules, *config.layers.values()
        if self.is_imported or not any(one.equalize for one in said):
            return _NONE
        return nodes_with(self.prepared.graph, config, "equalize") & {*self.pairs}

    @cached_property
    def pairs(self) -> Mapping[str, str]:
        """The layers whose ranges can be shared out, each with the one that reads it."""
        return equalized_pairs(self.prepared.graph)

    def _equalize(self, layers: frozenset[str], cancel: Cancel | None) -> Trace:
        if not layers:
            return self.prepared
        if layers not in self._equalized:
            graph = self.prepared.graph
            extremes = channel_extremes(graph, self.calibration, watched_values(graph, layers), cancel)
            done = EqualizePass(extremes, layers)
            self._equalized[layers] = self.prepared.then(Step(done.name, done(graph)))
            _forget(self._equalized)
        return self._equalized[layers]

    def quantize(
        self, config: QuantConfig, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> Quantized:
        """The model quantized by a config."""
        with self._remembering:
            known = self._quantized.get(config)
        if known is not None and '"callable"' not in config.to_json():  # the user's own may be another by now
            return known
        settled = self.settled(config, progress, cancel)
        statistics = self.statistics(progress, cancel, settled)
        made = quantize_graph(self.rounded(settled, progress, cancel), statistics, settled, self.memo)
        with self._remembering:
            self._quantized[config] = made
            _forget(self._quantized)
        return made

    def is_settled(self, config: QuantConfig) -> bool:
        """Whether a config leaves nothing to be measured that was not measured yet."""
        known = (
            (config.activations.least_db == "measured", self._measured, self._measured_path),
            (_has_default_weights(config), self._by_default, self._rounded_path),
        )
        return self.is_imported or all(
            not asked or found is not None or (path is not None and path.exists()) for asked, found, path in known
        )

    def settled(
        self, config: QuantConfig, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> QuantConfig:
        """The config with a number where it says that something is to be measured: once, as statistics are.

        A model of more than 1 GiB is not measured: it would be planned as a whole.
        """
        if config.activations.least_db != "measured" or self.is_imported or is_large(self.prepared.graph):
            return config
        statistics = self.statistics(progress, cancel)
        with self._collecting:
            found = self._known
            if found is None:
                path, measured = self._measured_path, self._measure(statistics, cancel)
                if measured.weights is not None:
                    self._keep_rounded(measured.weights)
                self._save(lambda: path is None or write_text(path, measured.to_json()))
                found = self._measured = measured
        return found.applied(self.prepared.graph, config)

    def _measure(self, statistics: Mapping[str, Statistics], cancel: Cancel | None) -> Spared:
        base = QuantConfig.of_preset("default")
        least = measure_least_db(self.prepared, statistics, base, self.calibration, self.memo, cancel)
        base = base.with_value("activations.least_db", least)
        with showing() as tell:
            told, rounding = partial(tell, "trials of what 8 bits spoil"), partial(tell, "rounding of weights")
            given = self.prepared, statistics, base, self.calibration, self.memo, rounding, cancel, self.executor
            fit = partial(round_on_rest, *given)
            equalized = partial(self._equalize, frozenset(self.pairs), cancel) if self.pairs else None
            data = self.calibration
            return measure_spared(self.prepared, base, data, fit, equalized, told, cancel, self.executor)

    def rounded(self, config: QuantConfig, progress: Progress | None = None, cancel: Cancel | None = None) -> Trace:
        """The prepared model, with weights rounded on the calibration data where a config asks for that.

        Two configs that say the same of weights share one rounding; all that leave it to be measured do.
        """
        base = self.base(config, cancel)
        layers = nodes_with(base.graph, config, "weights_rounding")
        if not layers or template_of(base) is not None:
            return base
        if config.weights.rounding == "measured" and not _rounds_some(config):
            if base is not self.prepared or is_large(base.graph):
                return base
            by = self._rounded_by_default if _has_default_weights(config) else partial(self._rounded_if_better, config)
            return by(progress, cancel)
        settled = self.settled(config, progress, cancel)
        _, _, encodings = encode(base, self.statistics(progress, cancel, config), settled, self.memo)
        weights = {name: encoding for name, encoding in encodings.items() if name in base.graph.constants}
        key = id(base), layers, FrozenMap({name: encoding.qparams for name, encoding in weights.items()})
        with self._rounding:
            if key not in self._rounded:
                found = round_sequentially(
                    base.graph,
                    weights,
                    self.calibration,
                    layers,
                    config.weights.narrow,
                    progress,
                    cancel,
                    self.executor,
                    range(self.calibration.pieces - len(self.held_back)),
                )
                self._rounded[key] = base, _rounded_trace(base, found)
                _forget(self._rounded)
            return self._rounded[key][1]

    def _rounded_by_default(self, progress: Progress | None, cancel: Cancel | None) -> Trace:
        """The prepared model with weights rounded as the default config has them, once, as far as that helps."""
        if self._by_default is None:
            self.statistics(progress, cancel)  # which are saved with what was rounded
            config = self.settled(QuantConfig.of_preset("default"), progress, cancel)
            with self._rounding:
                if self._by_default is None:
                    self._keep_rounded(self._helpful(config, cancel))
        return self._by_default or self.prepared

    def _rounded_if_better(self, config: QuantConfig, progress: Progress | None, cancel: Cancel | None) -> Trace:
        """The same with weights as a config has them: of other types, or blocks."""
        key = config.mode, config.weights
        plain = QuantConfig(mode=config.mode, activations=config.activations, weights=config.weights)
        plain = self.settled(plain, progress, cancel)
        with self._rounding:
            if key not in self._if_better:
                self._if_better[key] = _rounded_trace(self.prepared, self._helpful(plain, cancel))
                _forget(self._if_better)
            return self._if_better[key]

    def _helpful(self, config: QuantConfig, cancel: Cancel | None) -> FrozenMap[str, RoundedWeight]:
        plain, statistics = config.with_value("weights.rounding", "nearest"), self.statistics(cancel=cancel)
        with showing() as tell:
            told = partial(tell, "rounding of weights")
            given = self.prepared, statistics, plain, self.calibration, self.memo, told, cancel, self.executor
            return measure_rounding(*given)

    def _keep_rounded(self, found: FrozenMap[str, RoundedWeight]) -> None:
        """As those of the default config."""
        path = self._rounded_path
        self._save(lambda: path is None or save_rounded(found, path))
        self._by_default = _rounded_trace(self.prepared, found)

    def _loaded(self) -> Mapping[str, Statistics] | None:
        if self._rounded_path is not None and self._rounded_path.exists():
            self._by_default = _rounded_trace(self.prepared, load_rounded(self._rounded_path))
        return load_statistics(self._path) if self._path is not None and self._path.exists() else None

    @property
    def _known(self) -> Spared | None:
        """What was measured, here or by an earlier process."""
        if self._measured is None and self._measured_path is not None and self._measured_path.exists():
            self._measured = _read_measured(self._measured_path)
        return self._measured

    @property
    def _measured_path(self) -> Path | None:
        """The file of what was measured beside the statistics."""
        return None if self._path is None else self._path.with_suffix(".json")

    @property
    def _rounded_path(self) -> Path | None:
        """The file of the weights that were rounded by default."""
        return None if self._path is None else self._path.with_suffix(".rounded.npz")

    def _collected(self, trace: Trace, progress: Progress | None, cancel: Cancel | None) -> Mapping[str, Statistics]:
        equalized = trace is not self.prepared
        blocks = self._blocks_equalized if equalized else self._blocks
        found = collect_blocks(trace.graph, self.calibration, blocks, self.executor, progress, cancel)
        if equalized:
            self._blocks_equalized = Blocks()
        else:
            self._blocks = Blocks(self._load_block, self._save_block)
            self._forget_blocks()
        return found

    def _load_block(self, digest: str) -> Mapping[str, Statistics] | None:
        path = self._block_path(digest)
        return load_statistics(path) if path is not None and path.exists() else None

    def _save_block(self, digest: str, found: Mapping[str, Statistics]) -> None:
        path = self._block_path(digest)
        if path is not None:
            path.parent.mkdir(exist_ok=True)
            self._save(lambda: save_statistics(found, path))

    def _forget_blocks(self) -> None:
        """Remove those of other data."""
        wanted = {self._block_path(block.digest) for block in blocks_of(self.calibration)}
        for path in () if self.folder is None else self.folder.glob("blocks-*/*.npz"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _block_path(self, digest: str) -> Path | None:
        """The file of what was seen in one block of samples: of any data that has this block."""
        return None if self.folder is None else self.folder / f"blocks-{self._values}" / f"{digest[:32]}.npz"

    @cached_property
    def _values(self) -> str:
        """Identity of the float graph's values."""
        said = json.dumps(sorted(value_keys(self.prepared.graph).items()))
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def _save(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            raise SessionError(
                f"cannot save the session's statistics: {error}; what is in memory is whole: make room and run again"
            ) from error

    @cached_property
    def _path(self) -> Path | None:
        return self._path_of(self.prepared)

    def _path_of(self, trace: Trace) -> Path | None:
        """The file of the statistics; its name says all that they depend on: the data, and the float graph's values."""
        if self.folder is None:
            return None
        said = json.dumps([self.calibration.digest, sorted(value_keys(trace.graph).items())])
        return self.folder / f"statistics-{hashlib.sha256(said.encode()).hexdigest()[:16]}.npz"


def _rounded_trace(base: Trace, weights: FrozenMap[str, RoundedWeight]) -> RoundedTrace:
    return RoundedTrace(base.source, base.steps, weights)


def _has_default_weights(config: QuantConfig) -> bool:
    """Whether a config says of weights what the default does, of which the rounding was measured."""
    return config.weights == QuantConfig.of_preset("default").weights


def _rounds_some(config: QuantConfig) -> bool:
    """Whether a rule or an override asks for weights that are rounded with the data in mind."""
    return any(one.weights_rounding == "sequential" for one in (*config.rules, *config.layers.values()))


def _forget(known: dict[Any, Any]) -> None:
    """Keep only the last few, and what no layer is equalized for."""
    for key in [key for key in known if key != _NONE][:-_REMEMBERED]:
        del known[key]


def _read_measured(path: Path) -> Spared | None:
    """What an earlier process measured; None where it measured less."""
    try:
        return Spared.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SessionError(
            f"{path.name} cannot be read: {shown(str(error))}; without that file it is measured again"
        ) from error
