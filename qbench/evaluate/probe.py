"""A few samples of the data, evenly spread, that every edit is tried on."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from qbench.data.dataset import Dataset
from qbench.errors import check_count
from qbench.evaluate.metric import picked
from qbench.ir.graph import Graph
from qbench.report.report import Report

PROBE_SAMPLES = 32


class Probe:
    """The probe batch of one data set; read when it is first asked for, and kept.

    Parameters
    ----------
    graph, data
        What takes the samples, and where they come from.
    samples
        How many; more where the graph takes a fixed number at a time, fewer where there are no more.
    """

    def __init__(self, graph: Graph, data: Dataset, samples: int = PROBE_SAMPLES) -> None:
        check_count("probe_samples", samples)
        step = data.layout.step
        pieces = np.asarray(data.spread(-(-samples // step)), np.int64)
        self.indices = (pieces[:, None] * step + np.arange(step)).ravel()
        """Of its samples in the data."""
        self._graph, self._source, self._pieces = graph, data, pieces.tolist()

    @cached_property
    def data(self) -> Dataset:
        """The samples, in memory."""
        labels = None if self._source.labels is None else self._source.labels[self.indices]
        truths = self._source.truths
        if truths is not None:
            truths = picked(truths, self.indices.tolist())
        pieces = self._source.pick(self._pieces)
        return Dataset(self._graph, pieces, labels, what="probe", truths=truths, uncut=self._source.uncut)

    def named(self, report: Report) -> Report:
        """A report of the probe, with the samples' indices in the whole data."""
        flips = tuple(replace(flip, sample=int(self.indices[flip.sample])) for flip in report.output.flips)
        return replace(report, output=replace(report.output, flips=flips))
