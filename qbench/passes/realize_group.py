"""The qnn form of one fused group, by the quantization rule of its head."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import Attr, Node
from qbench.ir.op import OPS, Op, QuantRule, bind
from qbench.ir.qparams import QParams
from qbench.ops.numeric.exact import Accumulator
from qbench.passes.accumulators import (
    accumulator_dtype,
    averaged_axes,
    denominator,
    largest_product_sum,
    product_qparams,
    quantized_bias,
    reach,
)
from qbench.passes.annotate import FAKE
from qbench.passes.emitter import Emitter
from qbench.passes.groups import Group, bias_axis, rule_of
from qbench.passes.rewrite import joined_sources
from qbench.quant.arithmetic import quantize
from qbench.quant.rounding import POWER_OF_TWO, Rounding
from qbench.quant.semantics import Semantics, rounding_of

__all__ = ["realize_group"]

WIDENING = 2**8
"""A bias that follows no sum of products is added in units 256 times finer than its input's scale."""


def realize_group(emitter: Emitter, group: Group, rounding: Rounding, semantics: Semantics | None = None) -> None:
    """Emit the qnn nodes of an integer group, in a runtime's arithmetic or (None) all rounded in one way."""
    rule = rule_of(group.head)
    if rule == QuantRule.SAME:
        _move(emitter, group.head, rounding, semantics)
        return
    fake = next(node for node in emitter.graph.consumers[group.outputs[0]] if node.op == FAKE)
    emitted = _Step(emitter, group, rounding, semantics, str(fake.attrs["tensor"]), emitter.encoding(fake))
    if rule == QuantRule.MAC or group.head.op == "multiply":
        emitted.products()
    elif rule == QuantRule.ELEMENTWISE:
        emitted.sum()
    elif rule == QuantRule.AVERAGE:
        emitted.average()
    elif rule == QuantRule.TABLE:
        emitted.table()
    elif rule == QuantRule.CONCAT:
        emitted.concatenate()
    elif rule == QuantRule.BIAS:
        emitted.lone_bias()
    else:
        emitted.finish(emitter.integers[group.head.inputs[0]], group.nodes)
    emitter.integers[fake.output] = emitted.result


class _Step:
    """One group on its way from the integers it reads to the integers it makes."""

    def __init__(
        self,
        emitter: Emitter,
        group: Group,
        rounding: Rounding,
        semantics: Semantics | None,
        tensor: str,
        q: QParams,
    ) -> None:
        self.emitter, self.graph = emitter, emitter.graph
        self.group, self.head = group, group.head
        self.rounding: Rounding = rounding
        self.semantics: Semantics | None = semantics
        self.tensor, self.q = tensor, q
        self.result = emitter.integer_name(tensor)
        self.inputs = tuple(emitter.integers.get(value, value) for value in self.head.inputs)

    def products(self) -> None:
        """Sum of products, bias, requantize, clip."""
        lhs, rhs = self.head.inputs
        if self.head.op == "multiply" and self._is_weight(lhs):
            lhs, rhs = rhs, lhs  # the factor with a scale per channel stands right
        data, weight = self.emitter.q(lhs), self.emitter.q(rhs)
        op = f"qnn.{self.head.op.removeprefix('nn.')}"
        self._round_after(op)
        sums = product_qparams(self.semantics, op, data, weight, self._channel_axis(rhs, weight), self.q)
        bias = self._bias(sums)
        dtype = accumulator_dtype(self._bound(data, weight, rhs), bias)
        if self.semantics == "tflite" and data.dtype == "int16" and self.head.op != "multiply":
            dtype = "int64"  # whatever fits, since it decides how TFLite rounds
        sums = dataclasses.replace(sums, dtype=dtype)
        attrs = dict(self.head.attrs) | _accumulating(dtype)
        value = self._accumulator_name(self.head)
        integers = (self.emitter.integers[lhs], self.emitter.integers[rhs])
        self.emitter.emit(self.head, op, integers, (value,), sums, **attrs)
        self._bias_and_finish(value, bias, sums, self.group.nodes[1:])

    def sum(self) -> None:
        """Addition or subtraction, straight at the scale of the output."""
        clamps = self.group.nodes[1:]
        value = self.emitter.fresh(f"{self.head.output}.summed") if clamps else self.result
        op = f"qnn.{self.head.op}"
        self._round_after(op)
        attrs = self._in_semantics({"rounding": self.rounding})
        self.emitter.emit(self.head, op, self.inputs, (value,), self.q, **attrs)
        self._clamp(value, clamps)

    def average(self) -> None:
        """A sum whose scale holds the division, requantize, clip.

        Under power-of-two rounding a shift cannot divide by 49; such an average is rounded in fixed point.
        """
        source = self.emitter.q(self.head.inputs[0])
        windows = bind(self.head)
        if self.semantics == "tflite" and not (getattr(windows, "count_include_pad", False) and any(_pads(windows))):
            self._tflite_average(source)
            return
        self._round_after("qnn.sum")
        count = denominator(self.graph, self.head)
        dtype = accumulator_dtype(reach(source) * count, None)
        attrs = dict(self.head.attrs) | _accumulating(dtype)
        op = "qnn.sum_pool2d" if self.head.op == "nn.avg_pool2d" else "qnn.sum"
        if op == "qnn.sum_pool2d":
            attrs["denominator"] = count
        else:
            attrs["axes"] = averaged_axes(self.graph, self.head)
        if self.rounding in POWER_OF_TWO and count & (count - 1):
            self.rounding = "tflite_single"
        value = self._accumulator_name(self.head)
        sums = QParams(source.scales[0] / count, 0, dtype)
        self.emitter.emit(self.head, op, self.inputs, (value,), sums, **attrs)
        self.finish(value, self.group.nodes[1:])

    def _tflite_average(self, source: QParams) -> None:
        """TFLite's own kernels. Its average pool keeps the scale of its input, so that another one is a step more."""
        clamps, attrs = self.group.nodes[1:], dict(self.head.attrs)
        windows = self.head.op == "nn.avg_pool2d"
        apart = windows and source != self.q
        value = self.emitter.fresh(f"{self.tensor}.averaged") if clamps or apart else self.result
        op, q = ("qnn.avg_pool2d", source) if windows else ("qnn.mean", self.q)
        if not windows:
            attrs = {
                "axes": averaged_axes(self.graph, self.head),
                "keepdims": getattr(bind(self.head), "keepdims", True),
            }
        attrs = {key: value for key, value in attrs.items() if value is not True} | {"semantics": "tflite"}
        self.emitter.emit(self.head, op, self.inputs, (value,), q, **attrs)
        if apart:
            self._round_after("qnn.requantize")
            self.finish(value, clamps)
        else:
            self._clamp(value, clamps)

    def table(self) -> None:
        """A function of one element."""
        function, axis, slopes = self.head.op, None, ()
        parameters: tuple[Attr, ...] = tuple((key, value) for key, value in self.head.attrs.items())
        if len(self.head.inputs) > 1:
            alpha = self.graph.constants[self.head.inputs[1]].array
            slopes = tuple(float(slope) for slope in alpha.reshape(-1))
            rank = self.graph.types[self.head.inputs[0]].rank
            axis, parameters = (getattr(bind(self.head), "axis", 1) % rank if len(slopes) > 1 else None), ()
        attrs: dict[str, Attr] = {"function": function}
        attrs |= {"parameters": parameters} if parameters else {}
        attrs |= {"slopes": slopes} if slopes else {}
        attrs |= {"axis": axis} if axis is not None else {}
        attrs = self._in_semantics(attrs)
        self.emitter.emit(self.head, "qnn.unary", self.inputs[:1], (self.result,), self.q, **attrs)

    def concatenate(self) -> None:
        """Inputs brought to the qparams of the output, then joined."""
        self._round_after("qnn.requantize")
        parts = tuple(self._requantized(value, f"{value}.for.{self.head.name}") for value in self.inputs)
        self.emitter.emit(self.head, "concatenate", parts, (self.result,), self.q, **self.head.attrs)

    def lone_bias(self) -> None:
        """A bias that follows no sum of products: added in finer units than those of the input."""
        source = self.emitter.q(self.head.inputs[0])
        sums = QParams(source.scales[0] / WIDENING, 0, "int32")
        bias = self._bias(sums)
        sums = dataclasses.replace(sums, dtype=accumulator_dtype(reach(source) * WIDENING, bias))
        node = self._helper(f"{self.head.name}.widen")
        value = self.emitter.fresh(f"{self.head.inputs[0]}.wide")
        self.emitter.emit(node, "qnn.requantize", self.inputs[:1], (value,), sums, rounding=self.rounding)
        self._bias_and_finish(value, bias, sums, self.group.nodes)

    def finish(self, value: str, clamps: tuple[Node, ...]) -> None:
        """Requantize to the point's qparams, then clip."""
        before = clamps[0].inputs[0] if clamps else self.tensor
        requantized = self.emitter.fresh(f"{before}.requantized") if clamps else self.result
        node = self._helper(f"{self.head.name}.requantize")
        self.emitter.emit(node, "qnn.requantize", (value,), (requantized,), self.q, rounding=self.rounding)
        self._clamp(requantized, clamps)

    def _clamp(self, value: str, clamps: tuple[Node, ...]) -> None:
        for clamp in clamps:
            declared = bind(clamp)
            bounds = np.asarray([getattr(declared, "a_min", 0.0), getattr(declared, "a_max", np.inf)], np.float32)
            low, high = (float(integer) for integer in quantize(bounds.clip(*_FINITE), self.q))
            self.emitter.emit(clamp, "clip", (value,), (self.result,), self.q, a_min=low, a_max=high)

    def _bias_and_finish(
        self, value: str, bias: NDArray[np.int64] | None, sums: QParams, followers: tuple[Node, ...]
    ) -> None:
        if bias is not None:
            node = followers[0]
            q = dataclasses.replace(sums, axis=None if sums.axis is None else 0)
            constant = self.emitter.constant(node.inputs[1], Constant(bias.astype(numpy_dtype(sums.dtype))), q)
            summed = self._accumulator_name(node)
            self.emitter.emit(node, "nn.bias_add", (value, constant), (summed,), sums, **node.attrs)
            value, followers = summed, followers[1:]
        self.finish(value, followers)

    def _bias(self, sums: QParams) -> NDArray[np.int64] | None:
        node = next((node for node in self.group.nodes if rule_of(node) == QuantRule.BIAS), None)
        return None if node is None else quantized_bias(self.graph.constants[node.inputs[1]].array, sums)

    def _bound(self, data: QParams, weight: QParams, rhs: str) -> NDArray[np.int64] | int:
        shape = [dim for dim in self.graph.types[rhs].shape if isinstance(dim, int)]
        if self.head.op in ("nn.conv2d", "nn.dense"):
            constant = self.emitter.constants.get(self.emitter.integers[rhs])
            array = None if constant is None else constant.array
            return largest_product_sum(data, weight, array, math.prod(shape[1:]))
        return largest_product_sum(data, weight, None, max(shape, default=1) if self.head.op != "multiply" else 1)

    def _channel_axis(self, rhs: str, weight: QParams) -> int:
        if self.head.op == "multiply" and weight.axis is not None:
            return weight.axis + self.graph.types[self.head.output].rank - self.graph.types[rhs].rank
        return bias_axis(self.graph, self.head)

    def _is_weight(self, value: str) -> bool:
        producer = self.graph.producers.get(value)
        return producer is not None and producer.op == FAKE and producer.inputs[0] in self.graph.constants

    def _accumulator_name(self, node: Node) -> str:
        """Sums keep the float tensor's name, unless that is the group's output, whose name its integers have."""
        last = node is self.group.nodes[-1]
        return self.emitter.fresh(f"{self.tensor}.accumulator") if last else node.output

    def _requantized(self, value: str, name: str) -> str:
        if self.emitter.qparams[value] == self.q:
            return value
        node, result = self._helper(f"{name}.requantize"), self.emitter.fresh(name)
        self.emitter.emit(node, "qnn.requantize", (value,), (result,), self.q, rounding=self.rounding)
        return result

    def _round_after(self, op: str) -> None:
        """Round as the runtime does after an op."""
        if self.semantics is not None:
            self.rounding = rounding_of(self.semantics, op)

    def _in_semantics(self, attrs: dict[str, Attr]) -> dict[str, Attr]:
        return attrs | _speaking(self.semantics)

    def _helper(self, name: str) -> Node:
        return Node(self.emitter.fresh(name), "", (), (), sources=joined_sources(*self.group.nodes))


def _pads(op: Op) -> tuple[int, ...]:
    return getattr(op, "padding", ())


def _accumulating(dtype: Accumulator) -> dict[str, Attr]:
    """The attribute of an op whose sums have this type, where that is not the default."""
    return {"accumulator": dtype} if dtype != "int32" else {}


def _speaking(semantics: Semantics | None) -> dict[str, Attr]:
    """The attribute of an op that says whose arithmetic it has, where that is not the default."""
    return {} if semantics in (None, "tvm") else {"semantics": semantics}


_FINITE = (float(np.finfo(np.float32).min), float(np.finfo(np.float32).max))


def _move(emitter: Emitter, node: Node, rounding: Rounding, semantics: Semantics | None) -> None:
    """An op that moves elements does so with integers; only what it fills in must be quantized."""
    source = emitter.integers[node.inputs[0]]
    q = emitter.qparams[source]
    attrs: dict[str, Attr] = dict(node.attrs)
    op = node.op
    if op == "image.resize2d" and attrs.get("method") == "linear":
        op = "qnn.resize_linear"
        attrs = {key: value for key, value in attrs.items() if key in OPS[op].attributes()}
        if semantics == "tflite":
            attrs |= _speaking(semantics)
        elif (rounding if semantics is None else rounding_of(semantics, op)) in ("fp32_rne", "pow2_half_even"):
            attrs |= {"ties_to_even": True}
    if op == "nn.pad":
        fill = np.asarray([getattr(bind(node), "pad_value", 0.0)], np.float32).clip(*_FINITE)
        attrs["pad_value"] = float(quantize(fill, q)[0])
    outputs = tuple(emitter.integer_name(value) for value in node.outputs)
    emitter.emit(node, op, (source,), outputs, q, **attrs)
    emitter.integers.update(zip(node.outputs, outputs, strict=True))
