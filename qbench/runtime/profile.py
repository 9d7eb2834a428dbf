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
        slowest = max(own, key=lambda row: medians[row], default=None)
        macs = step.macs * samples
        if step.name in interpreted:
            rows.append(Timing(step.name, step.name, "interpreter", float(np.median(interpreted[step.name])), macs))
        for row in own:
            instruction = schedule.instructions[row]
            own_macs = macs if row == slowest and not step.reason else 0
            rows.append(Timing(step.name, instruction.label, instruction.kernel.name, float(medians[row]), own_macs))
    return rows
