"""How long each instruction of a program takes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array
from qbench.runtime.run import Arenas, Run
from qbench.runtime.schedule import Schedule


@dataclass(frozen=True)
class Timing:
    """Where time went.

    Parameters
    ----------
    step
        Name of the step.
    label
        What the instruction makes.
    kernel
        Its name, or ``interpreter``.
    seconds
        Median over the runs, all samples together.
    macs
        Multiply-accumulates of the step, all samples together, in the row of its slowest instruction; elsewhere 0.
    """

    step: str
    label: str
    kernel: str
    seconds: float
    macs: int


def profile(
    schedule: Schedule, arenas: Arenas, arrays: Mapping[str, Array], samples: int, repeat: int, threads: int
) -> list[Timing]:
    """Time `repeat` runs; the clock is read between instructions, without Python in between."""
    seconds = np.empty((repeat, len(schedule.instructions)))
    interpreted: dict[str, list[float]] = {}
    for i in range(repeat):
        run = Run(schedule, arenas, arrays, samples, timed=True)
        run.run(threads)
        seconds[i] = run.seconds
        for name, took in run.interpreted_seconds.items():
            interpreted.setdefault(name, []).append(took)
    medians = np.median(seconds, axis=0)
    rows: list[Timing] = []
    for step in schedule.plan.steps:
        own = [row for row, other in enumerate(schedule.steps) if other is step]
        wholes: dict[int, list[int]] = {}
        for row in own:  # those of strips belong together
            instruction = schedule.instructions[row]
            wholes.setdefault(id(instruction.rows or instruction), []).append(row)
        times = {parts[0]: float(medians[parts].sum()) for parts in wholes.values()}
        slowest = max(times, key=times.__getitem__, default=None)
        macs = step.macs * samples
        if step.name in interpreted:
            rows.append(Timing(step.name, step.name, "interpreter", float(np.median(interpreted[step.name])), macs))
        for row, took in times.items():
            instruction = schedule.instructions[row]
            own_macs = macs if row == slowest and not step.reason else 0
            rows.append(Timing(step.name, instruction.label, instruction.kernel.name, took, own_macs))
    return rows
