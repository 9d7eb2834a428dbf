"""How often classifiers of images are right, in qbench and in other runtimes, image by image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.data.dataset import Dataset
from qbench.errors import DataError, shown
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.parity.graph_runner import GraphRunner
from qbench.parity.runner import Portion, Runner
from qbench.progress import Progress
from qbench.report.text import aligned, shortened

__all__ = ["Accuracy", "accuracies", "accuracy_table", "ranks"]

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

    Raises
    ------
    DataError
        Images or labels that do not fit, or an output that is none of classes.
    """
    dataset = Dataset(graph, images, labels, what="image")
    if len(graph.outputs) != 1:
        raise DataError(f"{shown(model)} has {len(graph.outputs)} outputs: which of them are classes?")
    (output,) = graph.outputs
    runners: list[Runner] = [GraphRunner(graph), *peers]
    found = [list[NDArray[np.int64]]() for _ in runners]
    same = [0] * len(runners)
    for chunk in dataset.chunks():
        portion = Portion(chunk.feeds, chunk.start, chunk.stop, dataset.samples)
        count = chunk.stop - chunk.start
        outputs = [runner.run(portion, [output])[output].reshape(count, -1) for runner in runners]
        for index, scores in enumerate(outputs):
            found[index].append(ranks(scores, labels[chunk.start : chunk.stop], model))
            same[index] += int(np.count_nonzero((scores == outputs[0]).all(axis=1)))
        if progress is not None:
            progress(chunk.stop, dataset.samples)
    rows: list[Accuracy] = []
    for runner, parts, equal in zip(runners, found, same, strict=True):
        rank = np.concatenate(parts)
        top1, top5 = float(np.mean(rank < 1)), float(np.mean(rank < 5))
        rows.append(Accuracy(model, runner.label, dataset.samples, top1, top5, equal))
    return rows


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
