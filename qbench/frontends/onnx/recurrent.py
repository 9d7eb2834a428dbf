"""LSTM, GRU and plain recurrent layers, and onnxruntime's LSTM with weights of 8 bits."""

from typing import Any

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.lengths import by_length
from qbench.frontends.onnx.source import Array, SourceNode
from qbench.frontends.onnx.table import converter
from qbench.ir.graph import Attr

_ATTRS = "activation_alpha activation_beta activations clip direction hidden_size layout"
_USUAL = {"lstm": ("Sigmoid", "Tanh", "Tanh"), "gru": ("Sigmoid", "Tanh"), "rnn": ("Tanh",)}
_USUAL["dynamic_lstm"] = _USUAL["lstm"]


@converter("LSTM", "X W R B? sequence_lens? initial_h? initial_c? P?", _ATTRS + " input_forget")
def lstm(builder: Builder, node: SourceNode, *given: Any) -> tuple[Value, ...]:
    """Gates: input, output, forget, cell."""
    x, w, r, b, lengths, hidden, cell, peepholes = given
    if node.flag("input_forget"):
        w, r = _in_one(w, 4), _in_one(r, 4)
        b, peepholes = b and _in_one(b, 8), peepholes and _in_one(peepholes, 3)
    return _recurrent(builder, node, "lstm", {}, x, w, r, b, lengths, hidden, cell, peepholes)


@converter("GRU", "X W R B? sequence_lens? initial_h?", _ATTRS + " linear_before_reset")
def gru(builder: Builder, node: SourceNode, *given: Any) -> tuple[Value, ...]:
    """Gates: update, reset, hidden."""
    return _recurrent(builder, node, "gru", {"linear_before_reset": node.flag("linear_before_reset")}, *given)


@converter("RNN", "X W R B? sequence_lens? initial_h?", _ATTRS)
def rnn(builder: Builder, node: SourceNode, *given: Any) -> tuple[Value, ...]:
    """One gate."""
    return _recurrent(builder, node, "rnn", {}, *given)


def _in_one(weight: Value, gates: int) -> Value:
    """What makes the forget gate 1 less the input gate: the sigmoid of the opposite, its weights are the opposite."""
    if weight.constant is None:
        raise Unsupported("input and forget gates in one, of weights that are not constant")
    parts = np.split(weight.constant, gates, axis=1)
    parts[2::4] = [-part for part in parts[::4]]
    return Value.known(weight.name, np.concatenate(parts, axis=1))


@converter(
    "DynamicQuantizeLSTM",
    "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale R_zero_point",
    _ATTRS + " input_forget",
    domain="com.microsoft",
)
def dynamic_lstm(
    builder: Builder, node: SourceNode, x: Value, w: Value, r: Value, *rest: Value | None
) -> tuple[Value, ...]:
    """Its weights are stored turned round, (directions, in, gates * units)."""
    b, lengths, hidden, cell, peepholes, w_scale, w_zero, r_scale, r_zero = rest
    if node.flag("input_forget"):
        raise Unsupported("input and forget gates in one")
    (kernel, first), (recurrence, second) = _real(w, w_scale, w_zero), _real(r, r_scale, r_zero)
    both = np.broadcast_arrays(first, second)
    steps: dict[str, Attr] = {"steps": tuple(np.stack(both).ravel().tolist())}
    given = x, kernel, recurrence, b, lengths, hidden, cell, peepholes
    return _recurrent(builder, node, "dynamic_lstm", steps, *given)


def _real(weight: Value, scale: Value | None, zero_point: Value | None) -> tuple[Value, Array]:
    """The real numbers of a weight, and their scales: (directions, 1 or rows)."""
    arrays = [value and value.constant for value in (weight, scale, zero_point)]
    integers, scales, zeros = arrays
    if integers is None or scales is None or zeros is None:
        raise Unsupported("weights, scales and zero points must be constant")
    aligned = [a.astype(np.float32).reshape(len(a) if a.ndim else 1, 1, -1) for a in (scales, zeros)]
    real = (integers.astype(np.float32) - aligned[1]) * aligned[0]
    return Value.known(weight.name, np.ascontiguousarray(real.transpose(0, 2, 1))), aligned[0][:, 0]


def _recurrent(
    builder: Builder, node: SourceNode, op: str, attrs: dict[str, Attr], x: Value, w: Value, r: Value, b: Value | None,
    lengths: Value | None, hidden: Value | None, cell: Value | None = None, peepholes: Value | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    states = [hidden, cell] if op.endswith("lstm") else [hidden]
    count, units, turned = w.size(0), r.size(2), node.integer("layout", 0)
    _check(node, op)
    if x.rank != 3:
        raise ModelError(f"node {node}: its data has {x.rank} dimensions, not 3")
    if turned:
        x = builder.emit("transpose", x, axes=(1, 0, 2))
    offset = b or Value.known(builder.fresh(f"{node.name}.offset"), np.zeros((count, 2 * w.size(1)), x.dtype))
    given: list[Value] = []
    for state in states:
        if state is None:
            zero = Value.known(builder.fresh(f"{node.name}.zero"), np.zeros((1, 1, 1), x.dtype))
            given.append(builder.emit("broadcast_to", zero, shape=(count, x.shape[1], units)))
        else:
            given.append(builder.emit("transpose", state, axes=(1, 0, 2)) if turned else state)
    if peepholes is not None and (peepholes.constant is None or peepholes.constant.any()):
        given.append(peepholes)
    attrs = attrs | {"direction": node.text("direction", "forward")}
    if lengths is not None and lengths.same() != x.shape[0]:
        if op == "dynamic_lstm" or any(node.outputs[2:]):
            raise Unsupported("sequences of different lengths in one batch, of 8 bits or with the last state of cells")
        y, *last = by_length(builder, op, (x, w, r, offset, *given), lengths, 1 + len(states), attrs)
    else:
        y, *last = builder.emit_many(f"nn.{op}", (x, w, r, offset, *given), 1 + len(states), **attrs)
    if turned:
        y = builder.emit("transpose", y, axes=(2, 0, 1, 3))
        last = [builder.emit("transpose", state, axes=(1, 0, 2)) for state in last]
    return y, *last


def _check(node: SourceNode, op: str) -> None:
    given = node.attrs.get("activations", _USUAL[op])
    if given not in (_USUAL[op], 2 * _USUAL[op]):  # onnxruntime writes the default of two directions for one as well
        raise Unsupported(f"activations {given}")
    for name in ("activation_alpha", "activation_beta", "clip"):
        if node.attrs.get(name):
            raise Unsupported(name)
