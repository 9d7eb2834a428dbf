"""What makes the numbers of a report worth less than they seem: said beside them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import listed, shown
from qbench.ir.build import TAIL
from qbench.ir.types import numel
from qbench.report.text import unlike_text
from qbench.views.state import State

_FEW = 8  # calibration samples: ranges of less are those of some pictures, not of the network
_OTHER_SCALE = 8.0


def caveats(state: State, samples: tuple[Mapping[str, NDArray[Any]], ...] = ()) -> tuple[str, ...]:
    """Where an evaluation or the graph stopped, too few calibration samples, evaluation data unlike those.

    Parameters
    ----------
    state
        Of a session.
    samples
        Some of those that it is evaluated on, by input name.
    """
    found = [] if state.report.stopped is None else [f"The evaluation stopped: {state.report.stopped}"]
    found += [f"{text}." for text in unlike_text(state.report.unlike)]
    graph, unlike = state.quantized.prepared, {one.tensor for one in state.report.unlike}
    if TAIL in state.quantized.trace.source.constants:
        found.append(
            f"The graph ends at {listed(graph.outputs)}, and all numbers are about that: how much the file makes of it "
            "only a run knows. What lies behind stays in float, and comes back with export_onnx."
        )
    block, encodings = state.quantized.config.weights.axis, state.quantized.encodings.values()
    if isinstance(block, int) and not any(one.qparams.block for one in encodings):
        found.append(
            f"No weight has blocks of {block}, as weights.axis asks: they are for matrices that are only stored, and "
            "must divide their inputs. All have a scale for each channel."
        )
    for name in graph.inputs:
        seen, size = state.statistics.get(name), graph.types[name].shape[1:]
        if seen is None or not all(isinstance(length, int) for length in size):
            continue
        count = seen.count // max(1, numel(size))
        if count < _FEW:
            found.append(
                f"Only {count} calibration sample{'s' * (count > 1)}: other data reach beyond what so few say. Give 16 "
                "or more, as different as what the network will see."
            )
        calibrated = max(-seen.min, seen.max)
        evaluated = max((float(np.abs(sample[name]).max()) for sample in samples if sample[name].size), default=0.0)
        if name in unlike or not evaluated or not calibrated:
            continue
        if not 1 / _OTHER_SCALE <= evaluated / calibrated <= _OTHER_SCALE:
            found.append(
                f"Input {shown(name)} reaches {calibrated:.4g} in the calibration data but {evaluated:.4g} in what is "
                "evaluated: scale both in the same way."
            )
    return tuple(found)
