"""Values that lie inside of a border, where a convolution reads its padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qbench.quant.fixed_point import quantized_multiplier
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.runtime.lowerings.graphs import graph_of


@pytest.fixture
def graph():
    random = np.random.default_rng(0)
    mantissa, shift = quantized_multiplier(np.float64(0.002))
    return graph_of(
        {"x": ("uint8", ("N", 3, 9, 9))},
        ("clip", "x", "v", {"a_min": 3.0, "a_max": 240.0}),
        ("integer.conv2d", "v w", "sums", {"data_zero_point": 77, "padding": (1, 1, 2, 1)}),
        ("integer.requantize", "sums m s", "y", {"dtype": "uint8", "zero_point": 128, "rounding": "tflite_single"}),
        constants={"w": random.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8), "m": mantissa, "s": shift},
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_a_given_value_gets_its_border(graph, threads):
    program = plan(graph)
    assert program.borders
    given = np.random.default_rng(1).integers(0, 256, (3, 3, 9, 9)).astype(np.uint8)
    wanted = interpreter.step(graph, graph.nodes[1], [given, graph.constants["w"].array])[0]
    wanted = interpreter.step(graph, graph.nodes[2], [wanted, *(graph.constants[name].array for name in "ms")])[0]
    np.testing.assert_array_equal(program.run(start={"v": given}, threads=threads)["y"], wanted)


def test_what_the_interpreter_makes_gets_its_border(graph):
    program = plan(graph)
    made = next(step for step in program.steps if "v" in step.outputs)
    by_hand = {made.name: replace(made, inputs=("x",), reason="a test", instructions=())}
    steps = [by_hand.get(step.name, step) for step in program.steps]
    program = replace(program, steps=tuple(steps))
    assert list(program.fallbacks.values()) == ["a test"]
    x = np.random.default_rng(1).integers(0, 256, (3, 3, 9, 9)).astype(np.uint8)
    np.testing.assert_array_equal(program.run(x)["y"], interpreter.run(graph, {"x": x})["y"])
