"""Language models, from token ids to scores of the next one: step by step where they have a cache, else all at once."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError, GraphError, shown
from qbench.ir.dtypes import is_float, is_integer, numpy_dtype
from qbench.ir.graph import Graph, check_graph
from qbench.ir.op import Array
from qbench.ir.sizes import size_of
from qbench.ir.types import TensorType
from qbench.runtime.programs import Programs

Ids = Sequence[int] | NDArray[np.integer]


class Decoder:
    """A graph that scores what follows a sequence of token ids, one sequence at a time.

    Inputs of integers are, by their names, the mask (all ones) and the positions (counted from 0); the one that is left
    has the ids. An input of reals that grows by what an output of the same kind holds is part of the cache. Programs
    for new lengths are laid out when they come.

    Parameters
    ----------
    graph
        A float graph, or a session's integer one.
    scores
        The output with a score for each id of the vocabulary; the first that is no cache, unless given.
    context
        Further inputs, the same in each step: what an encoder has made, say.

    Raises
    ------
    GraphError
        Inputs that are none of these.
    """

    def __init__(self, graph: Graph, scores: str | None = None, context: Mapping[str, Array] | None = None) -> None:
        check_graph(graph)
        self.graph, self._context = graph, dict(context or {})
        self._programs = Programs(graph)
        self._caches = _caches(graph, self._context)
        known = {*self._caches, *self._context}
        given = {name: kind for name, kind in graph.input_types().items() if name not in known}
        ids = [name for name in given if not re.search("mask|position", name)]
        if len(ids) != 1 or not all(is_integer(kind.dtype) for kind in given.values()):
            told = ", ".join(f"{shown(name)} ({kind})" for name, kind in given.items()) or "no input"
            raise GraphError(f"no decoder of token ids: of {told} one must hold ids, others a mask or positions")
        self._ids, self._others = ids[0], {name: kind for name, kind in given.items() if name != ids[0]}
        rest = [name for name in graph.outputs if name not in {cache.output for cache in self._caches.values()}]
        self._scores = rest[0] if scores is None else scores
        if self._scores not in graph.outputs:
            raise GraphError(f"the graph has no output {shown(self._scores)}")

    @property
    def has_cache(self) -> bool:
        """Whether steps go on from what earlier ones left, and need not be given the whole sequence."""
        return bool(self._caches)

    def start(self) -> Mapping[str, Array]:
        """The cache before the first step: empty."""
        return {name: cache.empty for name, cache in self._caches.items()}

    def step(self, ids: Ids, cache: Mapping[str, Array]) -> tuple[Array, Mapping[str, Array]]:
        """The scores behind each of some more ids, [ids, vocabulary], and the cache that goes on from there.

        Raises
        ------
        DataError
            No ids, ids that are no integers, or a cache of another model or length.
        """
        known = np.asarray(ids)
        if known.ndim != 1 or not known.size or known.dtype.kind not in "iu":
            raise DataError(f"token ids must be a list of integers, at least one, not {known.dtype}{[*known.shape]}")
        if self.graph.types[self._ids].shape[-1] == 1 and known.size > 1:
            rows = list[Array]()
            for one in known:
                row, cache = self.step([one], cache)
                rows.append(row)
            return np.concatenate(rows), cache
        past = {name: array.shape[self._caches[name].axis] for name, array in cache.items() if name in self._caches}
        if past.keys() != self._caches.keys() or len({*past.values()}) > 1:
            wanted = ", ".join(map(shown, self._caches)) or "nothing"
            told = ", ".join(f"{shown(name)}: {length}" for name, length in past.items()) or "nothing"
            raise DataError(f"the cache must hold {wanted}, all of one length, not {told}")
        length = next(iter(past.values()), 0)
        feeds = {
            self._ids: known[None].astype(numpy_dtype(self.graph.types[self._ids].dtype)),
            **cache,
            **self._context,
        }
        for name, kind in self._others.items():
            row = np.arange(length, length + known.size) if "position" in name else np.ones(length + known.size)
            feeds[name] = row.astype(numpy_dtype(kind.dtype)).reshape((1,) * (kind.rank - 1) + row.shape)
        results = self._programs.of(feeds).run(feeds)
        scores = results[self._scores]
        grown = {name: np.ascontiguousarray(results[kept.output]) for name, kept in self._caches.items()}
        return scores.reshape(-1, scores.shape[-1])[-known.size :], grown

    def greedy(self, ids: Ids, most: int, stop: int | None = None) -> list[int]:
        """Go on with the likeliest id, again and again.

        Parameters
        ----------
        ids
            What the text begins with.
        most
            How many ids are added at most.
        stop
            The id behind which nothing is added.

        Returns
        -------
        list of int
            The ids that were added.
        """
        text, new, cache = [*ids], [*ids], self.start()
        added = list[int]()
        while len(added) < most and (stop is None or added[-1:] != [stop]):
            scores, cache = self.step(new if self.has_cache else text, cache)
            added.append(int(scores[-1].argmax()))
            text, new = [*text, added[-1]], added[-1:]
        return added

    def perplexity(self, windows: Iterable[Ids]) -> float:
        """How many ids the model wavers between: ``exp`` of the mean of ``-log p``, of all but each window's first id.

        Raises
        ------
        DataError
            A window of fewer than two ids, or with ids that the model does not score.
        """
        lost, count = 0.0, 0
        for window in windows:
            ids = np.asarray(window)
            if ids.ndim != 1 or ids.size < 2:
                raise DataError(f"a window must be a row of at least two token ids, not of shape {ids.shape}")
            scores = self.step(ids[:-1], self.start())[0].astype(np.float64)
            if not 0 <= ids.min() <= ids.max() < scores.shape[1]:
                raise DataError(f"token ids {ids.min()}..{ids.max()} go beyond a vocabulary of {scores.shape[1]}")
            top = scores.max(axis=1, keepdims=True)
            all_of_them = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
            lost += float((all_of_them - scores[np.arange(len(scores)), ids[1:]]).sum())
            count += len(scores)
        if not count:
            raise DataError("there are no windows to measure a perplexity on")
        return float(np.exp(lost / count))


@dataclass(frozen=True)
class _Cache:
    kind: TensorType
    axis: int
    output: str

    @cached_property
    def empty(self) -> Array:
        sizes = [size if isinstance(size, int) else 1 for size in self.kind.shape]
        sizes[self.axis] = 0
        return np.zeros(sizes, numpy_dtype(self.kind.dtype))


def _caches(graph: Graph, context: Collection[str]) -> dict[str, _Cache]:
    """The other inputs of reals, each with the output that is as long as it and the new ids."""
    found, free = dict[str, _Cache](), [*graph.outputs]
    for name, kind in graph.input_types().items():
        if not is_float(kind.dtype) or name in context:
            continue
        grown = [(output, axis) for output in free if (axis := _grown(kind, graph.types[output])) is not None]
        same = [pair for pair in grown if _place(pair[0]) == _place(name)] or grown
        if not same:
            raise GraphError(
                f"input {shown(name)} is {kind}: there is no output that it grows into, as a cache does; "
                "give what stays the same as context="
            )
        output, axis = same[0]
        free.remove(output)
        found[name] = _Cache(kind, axis, output)
    return found


def _grown(before: TensorType, after: TensorType) -> int | None:
    """The one axis along which a cache has become longer by what is open."""
    if before.dtype != after.dtype or before.rank != after.rank:
        return None
    axes = [axis for axis in range(before.rank) if before.shape[axis] != after.shape[axis]]
    if len(axes) != 1 or not isinstance(before.shape[axes[0]], str):
        return None
    return axes[0] if size_of(before.shape[axes[0]]).symbols <= size_of(after.shape[axes[0]]).symbols else None


def _place(name: str) -> list[str]:
    """What exporters call the same in ``past_key_values.0.key`` and ``present.0.key``: layer and part."""
    return re.findall(r"[0-9]+|key|value|[kv]$", name)
