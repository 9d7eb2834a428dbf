"""A program: a plan, and how it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from qbench.errors import DataError, check_count, shown
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.runtime.feeds import check_feeds
from qbench.runtime.interpreter import named_feeds
from qbench.runtime.listing import listing, table
from qbench.runtime.plan import Plan
from qbench.runtime.port import is_batched, whole_shape
from qbench.runtime.profile import Timing, profile
from qbench.runtime.run import Arenas, Run
from qbench.runtime.schedule import Schedule
from qbench.runtime.tallies import Tally
from qbench.runtime.team import checked_threads

if TYPE_CHECKING:
    import pandas as pd

_MANY_SCHEDULES = 64
TOGETHER = 8
"""Samples that go through layers side by side, where one of them alone would read all weights for itself."""


@dataclass(frozen=True, eq=False)
class Program(Plan):
    """A plan that runs here, on the processor's kernels.

    Parameters
    ----------
    plan_of_several
        Plans the same graph with `TOGETHER` samples as one; None where a sample by itself takes no longer.
    """

    plan_of_several: Callable[[], Plan] | None = None

    def run(
        self,
        x: Array | Mapping[str, Array] | None = None,
        *,
        start: Mapping[str, Array] | None = None,
        keep: Iterable[str] = (),
        sample: int | Mapping[str, int] | None = None,
        observe: Mapping[str, Tally] | None = None,
        cancel: Cancel | None = None,
        threads: int | None = None,
        finite: bool = True,
    ) -> dict[str, Array]:
        """Run the steps that the outputs and the kept values need. Any number of threads may call this at once.

        Parameters
        ----------
        x
            The array for a graph with one input, or arrays by input name. An input that no step needs may be missing.
        start
            Values that are known: what only they need is not run.
        keep
            Names of further values wanted.
        sample
            Give only every so many elements of the kept values, counted in the order of the value's axes from the
            first element of each sample: arrays of shape (samples, elements). A mapping says it by name: kept values
            that it has not come whole. Outputs are always whole.
        observe
            Counts the float values of these names; they are changed in place, sample by sample. Such a run takes one
            thread, and no other may have the same tallies meanwhile. Not together with `sample`.
        cancel
            Looked at every two milliseconds, between instructions.
        threads
            As many as there are processors, unless given; fewer take part while other runs have the processors. No
            more than 64, or eight for each processor that this process may use. A batch of at least so many samples is
            divided among them, else they share each instruction. The result has the same bits for any number.
        finite
            Whether NaN and infinity are refused in `x` and `start`; not where these are what another network made.

        Returns
        -------
        dict
            The outputs, then the kept values, by name. A kept value may be a transposed view.

        Raises
        ------
        DataError
            A missing or unknown input, a wrong dtype or shape, NaN or infinity; it names the value. Not for what is
            observed: see ``tally["bad"]``.
        GraphError
            A value to keep or to start from that the graph doesn't have, or that was fused away.
        Cancelled
            `cancel` was set.
        """
        schedule, arrays, samples = self._prepared(x, start or {}, keep, sample, observe or {}, finite)
        if samples == 0:
            return self._nothing(schedule)
        threads = checked_threads(threads)
        if schedule is self._plain and samples >= TOGETHER and self._several is not None:
            return self._by_several(self._several, arrays, samples, threads, cancel)
        run = Run(schedule, self._arenas, arrays, samples, cancel, tallies=observe)
        run.run(1 if observe else threads)
        return run.results()

    @cached_property
    def _several(self) -> Program | None:
        return None if self.plan_of_several is None else Program(**vars(self.plan_of_several()))

    def _by_several(
        self, several: Program, arrays: Mapping[str, Array], samples: int, threads: int, cancel: Cancel | None
    ) -> dict[str, Array]:
        """The outputs of as many samples as can be taken together, then of the others; axis 0 of all counts samples."""
        ends, made = (0, samples // TOGETHER * TOGETHER, samples), list[dict[str, Array]]()
        for program, (first, last) in zip((several, self), pairwise(ends), strict=True):
            if first == last:
                continue
            per = {name: len(array) // samples for name, array in arrays.items()}
            part = {name: array[first * per[name] : last * per[name]] for name, array in arrays.items()}
            count = (last - first) // (TOGETHER if program is several else 1)
            run = Run(program._plain, program._arenas, part, count, cancel)
            run.run(threads)
            made.append(run.results())
        batched = {name for name in made[0] if is_batched(self.graph.types[name])}
        first, *rest = made
        return {n: np.concatenate([one[n] for one in made]) if rest and n in batched else first[n] for n in first}

    def profile(self, x: Array | Mapping[str, Array], repeat: int = 20, threads: int | None = None) -> list[Timing]:
        """How long each instruction takes, in the order of execution.

        Parameters
        ----------
        x
            As for `run`.
        repeat
            How many runs the medians are taken over.
        threads
            As for `run`; they share each instruction, for any number of samples.
        """
        schedule, arrays, samples = self._prepared(x, {}, (), None)
        if samples == 0:
            raise DataError("the batch has no samples: there is nothing to time")
        check_count("repeat", repeat)
        return profile(schedule, self._arenas, arrays, samples, repeat, checked_threads(threads))

    def table(self) -> pd.DataFrame:
        """One row per step: what it stands for, reads and makes, its kernels, and where its first output lies."""
        return table(self)

    def __str__(self) -> str:
        return listing(self)

    @cached_property
    def _arenas(self) -> Arenas:
        """The memory of runs."""
        return Arenas(self.arena_bytes, self.gaps)

    @cached_property
    def _plan(self) -> Plan:
        """The plan alone, for schedules: one that held on to its program would keep it until garbage is collected."""
        return Plan(**{each.name: getattr(self, each.name) for each in fields(Plan)})

    @cached_property
    def _plain(self) -> Schedule:
        """Of runs that know nothing but the inputs, and give nothing but the outputs."""
        return self._schedule((), (), None, {})

    @cached_property
    def _schedules(self) -> dict[Hashable, Schedule]:
        return {}

    def _prepared(
        self,
        x: Array | Mapping[str, Array] | None,
        start: Mapping[str, Array],
        keep: Iterable[str],
        sample: int | Mapping[str, int] | None,
        observe: Mapping[str, Tally] | None = None,
        finite: bool = True,
    ) -> tuple[Schedule, dict[str, Array], int]:
        """The schedule, the arrays that are known, and the number of samples in them."""
        feeds = {} if x is None else dict(named_feeds(self.graph, x))
        if start:
            inputs = self.graph.inputs
            feeds |= {name: array for name, array in start.items() if name in inputs}
            start = {name: array for name, array in start.items() if name not in inputs}
        plain = sample is None and not (start or keep or observe)
        schedule = self._plain if plain else self._schedule(start, keep, sample, observe or {})
        sizes = check_feeds(self.graph, feeds, start, schedule.inputs, finite)
        return schedule, {**feeds, **start} if start else feeds, next(iter(sizes.values()), 1)

    def _schedule(
        self,
        start: Iterable[str],
        keep: Iterable[str],
        sample: int | Mapping[str, int] | None,
        observe: Mapping[str, Tally],
    ) -> Schedule:
        """Of runs of this kind, made when the first of them is."""
        keep = tuple(dict.fromkeys(keep))
        every = sample if isinstance(sample, Mapping) else {} if sample is None else dict.fromkeys(keep, sample)
        for step in every.values() if sample is None or isinstance(sample, Mapping) else (sample,):
            check_count("sample", step)  # where nothing is kept, too
        sampled = tuple((name, every[name]) for name in keep if name in every)
        if observe and sampled:
            raise DataError("a run either observes values or gives samples of them")
        observed = tuple((name, tally.axis) for name, tally in observe.items())
        key = frozenset(start), keep, sampled, observed
        schedule = self._schedules.get(key)
        if schedule is None:
            schedule = Schedule(self._plan, *key)
            if len(self._schedules) >= _MANY_SCHEDULES:
                self._schedules.clear()
            self._schedules[key] = schedule
        return schedule

    def _nothing(self, schedule: Schedule) -> dict[str, Array]:
        """The results for no samples."""
        found: dict[str, Array] = {}
        for name in schedule.wanted:
            kind = self.graph.types[name]
            if not is_batched(kind):
                raise DataError(f"the batch has no samples, and {shown(name)} is {kind} for any batch; feed some")
            array = np.empty(whole_shape(kind, 0), numpy_dtype(kind.dtype))
            elements = math.prod(whole_shape(kind, 1))
            every = schedule.sampled.get(name)
            found[name] = array if every is None else array.reshape(0, -(-elements // every))
        return found
