"""Recurrent layers as one operator."""

import numpy as np

from qbench.frontends.tflite.builder import Array, Builder, Unsupported, Value
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter

_TANH = 4
"""Among the activations of TFLite's schema."""
_ALL_THERE_IS = 10.0
"""The bound on cells that converters write, which Keras has not; the tanh of a cell beyond is 1 in float32 anyway."""


@converter(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "x wi? wf wc wo ri? rf rc ro pi? pf? po? bi? bf bc bo projection? projected? hidden cell ni? nf? nc? no?",
    "UnidirectionalSequenceLSTMOptions fused_activation_function cell_clip proj_clip time_major "
    "asymmetric_quantize_inputs diagonal_recurrent_tensors",
)
def lstm(builder: Builder, op: SourceOperator, x: Value, *given: Value | None) -> Value:
    """Gates in the order input, forget, cell, output; its states are zero at first, in each run.

    Wide bounds on its cells are left out.
    """
    kernels, recurrences, peepholes, offsets = (given[a:b] for a, b in ((0, 4), (4, 8), (8, 11), (11, 15)))
    if any(given[15:17]) or any(given[19:]):
        raise Unsupported("a projection, or normalized gates")
    if x.q is not None or op.integer("fused_activation_function") != _TANH:
        raise Unsupported("an LSTM of integers, or with another activation than tanh")
    if 0 < op.real("cell_clip") < _ALL_THERE_IS:
        raise Unsupported(f"cells between bounds of {op.real('cell_clip')}")
    kernel, recurrence = (np.concatenate(_gates(parts)) for parts in (kernels, recurrences))
    units = recurrence.shape[1]
    bias = np.concatenate([*_gates(offsets), np.zeros(4 * units)])
    steps = x if op.flag("time_major") else builder.emit("transpose", x, axes=(1, 0, 2))
    state = builder.known(np.zeros((1, 1, 1), np.float32))
    state = builder.emit("broadcast_to", state, shape=(1, steps.shape[1], units))
    operands = [steps, *(builder.known(a.astype(np.float32)) for a in (kernel[None], recurrence[None], bias[None]))]
    operands += [state, state]
    if any(peepholes):
        at_input, at_output, at_forget, _ = _gates((peepholes[0], peepholes[1], peepholes[1], peepholes[2]))
        operands.append(builder.known(np.concatenate([at_input, at_output, at_forget])[None]))
    y, *_ = builder.emit_many("nn.lstm", operands, (None, None, None), {}, nchw=False)
    y = builder.emit("squeeze", y, axes=(1,))
    return y if op.flag("time_major") else builder.emit("transpose", y, axes=(1, 0, 2))


def _gates(parts: tuple[Value | None, ...]) -> list[Array]:
    """Of the gates in the op's order: input, output, forget, cell. An absent input gate is 1 less the forget gate."""
    at_input, at_forget, at_cell, at_output = (None if part is None else _array(part) for part in parts)
    if at_forget is None or at_cell is None or at_output is None:
        raise Unsupported("gates without weights")
    return [-at_forget if at_input is None else at_input, at_output, at_forget, at_cell]


def _array(value: Value) -> Array:
    if value.constant is None:
        raise Unsupported("weights that are computed")
    return value.constant
