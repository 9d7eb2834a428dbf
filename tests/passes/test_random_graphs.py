"""Any network of quantizable ops, quantized in any way: each integer step is as near as rounding allows to the floats.

Each step is judged by itself, on the integers that the graph itself made before it, so that no error of an earlier
one excuses it or adds to it.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from qbench.ir.build import rebuild
from qbench.ir.graph import Graph, Node
from qbench.ir.op import QuantRule, is_op
from qbench.ir.qparams import QParams
from qbench.ir.verify import verify
from qbench.ops.qnn.border import FakeQuantize
from qbench.passes.annotate import quantized_value
from qbench.passes.groups import rule_of
from qbench.passes.legalize import LegalizePass
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.rounding import Rounding
from qbench.runtime.interpreter import run, step
from tests.passes.calibrated import Calibrated, Values, calibrated
from tests.passes.quantizable import every_value

BORDER = ("qnn.quantize", "qnn.dequantize")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(calibrated())
def test_each_step_rounds_what_the_float_op_gives(network: Calibrated) -> None:
    graph, feeds, rounding = network.graph, network.feeds, network.rounding
    fake, realized = network.fake, network.realized
    legal = LegalizePass()(realized)
    for after in (network.annotated, fake, realized, legal):
        check_structure(graph, after)
    check_floats_have_reasons(legal, rounding)
    plain = run(network.annotated, feeds)
    for output in graph.outputs:
        np.testing.assert_array_equal(plain[output], network.values[output])
    integers = every_value(legal, feeds)
    for value, array in every_value(realized, feeds).items():
        np.testing.assert_array_equal(integers[value], array)
    Oracle(fake, realized, network.q, rounding).compare(feeds, integers)


def check_structure(graph: Graph, after: Graph) -> None:
    verify(after)
    assert rebuild(after) == after
    assert (after.inputs, after.outputs) == (graph.inputs, graph.outputs)
    assert [after.types[value] for value in after.outputs] == [graph.types[value] for value in graph.outputs]
    assert set(graph.by_name) <= set(after.by_name)
    assert {source for node in after.nodes for source in node.sources} <= set(graph.by_name)
    slopes = {node.inputs[1] for node in graph.nodes if node.op == "nn.prelu"}  # they are in the tables
    assert set(graph.constants) - slopes <= set(after.constants)


def check_floats_have_reasons(legal: Graph, rounding: Rounding) -> None:
    for node in legal.nodes:
        floats = any(legal.types[value].dtype == "float32" for value in (*node.inputs, *node.outputs))
        multiplies = rounding == "fp32_rne" and node.op == "integer.requantize_float32"
        assert bool(node.reason) == (floats and node.op not in BORDER and not multiplies), node


class Oracle:
    """The fake-quantized graph, run on what the integers before each node stand for."""

    def __init__(self, fake: Graph, realized: Graph, q: dict[str, QParams], rounding: Rounding) -> None:
        self.fake, self.realized, self.q, self.rounding = fake, realized, q, rounding

    def compare(self, feeds: Values, integers: Values) -> None:
        reals = feeds | {name: constant.array for name, constant in self.fake.constants.items()}
        for node in self.fake.nodes:
            made = step(self.fake, node, [reals[value] for value in node.inputs])
            for value, array in zip(node.outputs, made, strict=True):
                reals[value] = self._compared(node, value, array, reals, integers)
        for value in self.fake.outputs:
            np.testing.assert_array_equal(reals[value], integers[value])

    def _compared(
        self, node: Node, value: str, array: NDArray[np.generic], reals: Values, integers: Values
    ) -> NDArray[np.generic]:
        """What the integers of a value stand for, if it has any; the value itself if not."""
        if node.reason or (is_op(node, FakeQuantize) and node.inputs[0] in self.fake.constants):
            return array
        if not is_op(node, FakeQuantize) and rule_of(node) != QuantRule.SAME:
            return array  # within a fused group: it is looked at where it ends
        found = quantized_value(self.realized, str(node.attrs["tensor"]) if is_op(node, FakeQuantize) else value)
        assert found is not None, value
        q = self.realized.qparams[found]
        assert q == self.q.get(str(node.attrs.get("tensor")), q)
        wanted = quantize(reals[node.inputs[0]] if is_op(node, FakeQuantize) else array, q).astype(np.int64)
        off = int(np.abs(integers[found].astype(np.int64) - wanted).max(initial=0))
        assert off <= self._tolerance(node, found, q), f"{node} is off by {off}"
        return dequantize(integers[found], q)

    def _tolerance(self, node: Node, value: str, q: QParams) -> int:
        if node.op == "image.resize2d":
            return 1
        if not is_op(node, FakeQuantize):
            return 0
        summed = self.realized.producers.get(value)
        while summed is not None and summed.op in ("clip", "qnn.requantize"):
            summed = self.realized.producers.get(summed.inputs[0])
        if summed is not None and summed.op == "nn.bias_add":  # a bias is rounded to a multiple of its sums' scale
            return 1 + math.ceil(max(self.realized.qparams[summed.inputs[1]].scales) / 2 / q.scales[0])
        coarse = self.rounding == "tflite_double" and q.dtype == "int16"  # its multipliers have 15 bits there
        rest = math.ceil((q.qmax - min(q.zero_points)) * 2.0**-15) if coarse else 0
        return rest + (2 if self.rounding.startswith("tvm") else 1)  # TVM's mode rounds each operand of an add
