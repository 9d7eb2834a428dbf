"""What the whole network lost, now and before the last edit, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbench.engine.report import OutputReport, Report
from qbench.ir.dtypes import integer_range, is_integer, numpy_dtype
from qbench.ir.graph import Graph
from qbench.views.state import State
from qbench.views.view import View

__all__ = ["Outcome", "ResultView", "result_view"]


@dataclass(frozen=True)
class Outcome(View):
    """The numbers of one report, as in :class:`~qbench.engine.report.OutputReport`."""

    sqnr_db: float | None
    agreement: float | None
    top1: float | None


@dataclass(frozen=True, kw_only=True)
class ResultView(View):
    """The result of the last evaluation.

    Parameters
    ----------
    now
        Its numbers.
    before
        Those of the result that was shown before it; None where there is none.
    top1_float
        Of the float model; None without labels.
    samples, data
        How many, and of which data.
    bytes_float, bytes_now
        Size of all constants of the model as it came, and of the integer graph.
    steps_ran, steps
        How many nodes of the integer graph had to run for it, of how many.
    is_stale
        Whether the config was changed since.
    """

    now: Outcome
    before: Outcome | None
    top1_float: float | None
    samples: int
    data: str
    bytes_float: int
    bytes_now: int
    steps_ran: int
    steps: int
    is_stale: bool


def result_view(state: State, before: Report | None = None) -> ResultView:
    """The result of a session's state, beside that of an earlier report."""
    output, graph = state.report.output, state.quantized.graph
    return ResultView(
        now=_outcome(output),
        before=None if before is None else _outcome(before.output),
        top1_float=output.top1_float,
        samples=output.samples,
        data=output.data,
        bytes_float=constant_bytes(state.quantized.trace.source),
        bytes_now=constant_bytes(graph),
        steps_ran=len(state.report.steps_ran),
        steps=len(graph.nodes),
        is_stale=state.is_stale,
    )


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants; two int4 values share one."""
    bits = 0
    for constant in graph.constants.values():
        low, high = integer_range(constant.dtype) if is_integer(constant.dtype) else (0, 0)
        each = (high - low).bit_length() or 8 * numpy_dtype(constant.dtype).itemsize
        bits += each * int(np.prod(constant.shape, dtype=np.int64))
    return (bits + 7) // 8


def _outcome(output: OutputReport) -> Outcome:
    return Outcome(output.sqnr_db, output.agreement, output.top1)
