"""A calibration in blocks of samples: what was seen in each is kept as it comes, and not looked for again."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from qbench.calibration.collect import check, collect, observed
from qbench.calibration.counter import Counter, Found, Seen, counter_of, merged
from qbench.calibration.statistics import Statistics
from qbench.cluster.where import Cluster, in_turn
from qbench.data.dataset import Dataset
from qbench.ir.graph import Graph
from qbench.progress import Cancel, Progress

_BLOCK = 256  # samples
_PART = 32  # samples of a block that one worker of a cluster is given


@dataclass
class Blocks:
    """What was seen so far, in which blocks of the data; a pass that was stopped goes on from there.

    Parameters
    ----------
    load
        What an earlier process kept of a block, by digest, if anything.
    save
        Keeps what was found in a block.
    """

    load: Callable[[str], Mapping[str, Statistics] | None] = lambda digest: None
    save: Callable[[str, Mapping[str, Statistics]], object] = lambda digest, found: None
    found: Found = field(default_factory=Found)
    samples: int = 0
    _done: set[int] = field(default_factory=set[int])

    def has(self, block: Dataset) -> bool:
        """Whether it need not be run."""
        known = block.start in self._done
        if not known and (saved := self.load(block.digest)) is not None:
            self._add(block, {**saved})
            return True
        return known

    def put(self, block: Dataset, found: Found, among: Dataset) -> None:
        """What was found in a block of the data; where it is all of that, whoever asked keeps it himself."""
        self._add(block, found)
        if block.pieces < among.pieces:
            self.save(block.digest, found)

    def _add(self, block: Dataset, found: Found) -> None:
        self._done.add(block.start)
        self.samples, self.found = merged((self.samples, self.found), (block.pieces, found))


def collect_blocks(
    graph: Graph,
    data: Dataset,
    blocks: Blocks,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Statistics]:
    """As :func:`~qbench.calibration.collect.collect`, of those blocks that are not known.

    Parameters
    ----------
    graph, data, executor, cancel
        As for `collect`. Workers of a cluster read data in files themselves.
    blocks
        What is known; it grows while this runs.
    progress
        Is told the number of samples done, those known from before among them, and of all.

    Raises
    ------
    DataError, Cancelled
        As `collect`; what was seen in whole blocks is kept.
    """
    names = observed(graph)

    def told(done: int) -> None:
        if progress is not None:
            progress(done, data.pieces)

    todo = (block for block in blocks_of(data) if not blocks.has(block))
    if isinstance(executor, Cluster):
        for block, found in _in_parts(counter_of(graph, names), todo, executor, cancel):
            blocks.put(block, found, data)
            told(blocks.samples)
    else:
        for block in todo:
            before, first = blocks.samples, block.start // data.layout.step
            found = collect(
                graph,
                block.checked(),
                executor=executor,
                progress=lambda done, _, before=before: told(before + done),
                cancel=cancel,
                first=first,
            )
            blocks.put(block, found, data)
    return {name: blocks.found[name] for name in names if name in blocks.found}


def blocks_of(data: Dataset) -> Iterator[Dataset]:
    """The blocks that data is cut into: those of its beginning stay the same when more comes behind it."""
    return data.portions(_BLOCK)


def _in_parts(
    counter: Counter, blocks: Iterator[Dataset], executor: Cluster, cancel: Cancel | None
) -> Iterator[tuple[Dataset, Found]]:
    """Blocks in order, several at a time, each in parts that any worker takes."""

    def begun() -> Iterator[tuple[Dataset, Future[Seen]]]:
        for block in blocks:
            calls = [(part.start // part.layout.step, part) for part in block.portions(_PART)]
            yield block, executor.submit_merged(counter, calls, merged)

    ahead = 2 + executor.ahead * _PART // _BLOCK
    with closing(in_turn(begun(), ahead, partial(check, cancel))) as results:
        for block, (_, found) in results:
            yield block, found
