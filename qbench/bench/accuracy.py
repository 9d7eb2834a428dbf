"""How often classifiers of images are right, in qbench and in other runtimes, image by image."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qbench.data.dataset import Chunk, Dataset
from qbench.errors import DataError, shown
from qbench.evaluate.chunks import alone, check, submitted
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.parity.graph_runner import GraphRunner
from qbench.parity.runner import Portion, Runner
from qbench.progress import Progress
from qbench.report.text import aligned, shortened

_WITH_BACKGROUND = 1001
"""Outputs of the ImageNet classifiers that have a class for no object, at index 0, which no label means."""


_HEADERS = ("model", "runtime", "images", "top-1", "top-5", "outputs as qbench's")


@dataclass(frozen=True)
class Accuracy:
    """One model in one runtime.

    Parameters
    ----------
    model, runtime
        Who.
    images
        How many were classified.
    top1, top5
        The fraction whose label is the class with the largest output, or one of the five largest.
    same
        How many images have an output that is the same as qbench's, to the last bit.
    """

    model: str
    runtime: str
    images: int
    top1: float
    top5: float
    same: int


def accuracies(
    model: str,
    graph: Graph,
    peers: Iterable[Runner],
    images: object,
    labels: NDArray[np.int64],
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> list[Accuracy]:
    """Classify the same images in qbench and in its peers.

    Parameters
    ----------
    model
        What the table calls it.
    graph
        A classifier: its one output has a number for each class.
    peers
        The same model in other runtimes.
    images
        As for a session.
    labels
        The class of each image.
    progress
        Told how many images are done.
    executor
        Where images are classified, if there are no peers; None: here.

    Raises
    ------
    DataError
        Images or labels that do not fit, or an output that is none of classes.
    """
    dataset = Dataset(graph, images, labels, what="image", executor=executor)
    if len(graph.outputs) != 1:
        raise DataError(f"{shown(model)} has {len(graph.outputs)} outputs: which of them are classes?")
    (output,) = graph.outputs
    runners: list[Runner] = [GraphRunner(graph), *peers]
    classify = _Classify(runners, output, model, labels, dataset.samples)
    look = partial(check, dataset.samples, progress, None)
    results = (
        alone(classify, dataset.chunks(), look)
        if executor is None or len(runners) > 1
        else submitted(executor, classify, dataset.batches(1), look)
    )
    with closing(results):
        each = [*results]
    found = [[ranks for ranks, _ in some] for some in zip(*each, strict=True)]
    same = [sum(equal for _, equal in some) for some in zip(*each, strict=True)]
    rows: list[Accuracy] = []
    for runner, parts, equal in zip(runners, found, same, strict=True):
        rank = np.concatenate(parts)
        top1, top5 = float(np.mean(rank < 1)), float(np.mean(rank < 5))
        rows.append(Accuracy(model, runner.label, dataset.samples, top1, top5, equal))
    return rows


@dataclass(frozen=True)
class _Classify:
    """Of a chunk of images: by runner, the ranks of the right classes, and how many outputs are the first runner's."""

    runners: Sequence[Runner]
    output: str
    model: str
    labels: NDArray[np.int64]
    samples: int

    def __call__(self, chunk: Chunk) -> list[tuple[NDArray[np.int64], int]]:
        portion = Portion({**chunk.feeds}, chunk.start, chunk.stop, self.samples)
        count, labels = chunk.stop - chunk.start, self.labels[chunk.start : chunk.stop]
        outputs = [runner.run(portion, [self.output])[self.output].reshape(count, -1) for runner in self.runners]
        same = [int(np.count_nonzero((scores == outputs[0]).all(axis=1))) for scores in outputs]
        return [(ranks(scores, labels, self.model), equal) for scores, equal in zip(outputs, same, strict=True)]


def ranks(scores: Array, labels: NDArray[np.int64], model: str = "the model") -> NDArray[np.int64]:
    """How many classes come before the right one: those with a larger number, and equal ones of a smaller index.

    Parameters
    ----------
    scores
        [images, classes]; of 1001 the first one is the background, and left out.
    labels
        [images].
    model
        For messages.
    """
    values: NDArray[np.float64] = scores.astype(np.float64)  # exact for integers of 32 bits, and nothing to overflow
    values = values[:, 1:] if values.shape[1] == _WITH_BACKGROUND else values
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < values.shape[1]:
        raise DataError(
            f"{shown(model)} tells {values.shape[1]} classes apart, but labels go from {labels.min()} to {labels.max()}"
        )
    right: NDArray[np.float64] = values[np.arange(len(labels)), labels][:, np.newaxis]
    places: NDArray[np.int64] = np.arange(values.shape[1], dtype=np.int64)
    larger = np.count_nonzero(np.greater(values, right), axis=1)
    earlier = np.logical_and(np.equal(values, right), np.less(places, labels.reshape(-1, 1)))
    return larger + np.count_nonzero(earlier, axis=1)


def accuracy_table(rows: Sequence[Accuracy]) -> str:
    """A line for each model and runtime."""
    lines = [
        (
            shortened(row.model, 48),
            row.runtime,
            str(row.images),
            f"{row.top1:.4f}",
            f"{row.top5:.4f}",
            f"{row.same} of {row.images}",
        )
        for row in rows
    ]
    return aligned(_HEADERS, lines, left=_HEADERS[:2])
