"""Where the error arises, against a slow enumeration of all paths, and against errors put in on purpose."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.ir.graph import Graph
from qbench.passes.groups import find_groups
from qbench.quant.config import QuantConfig
from qbench.report.entries import LayerReport, OutputReport
from qbench.report.report import Report
from qbench.search.attribution import CLEAN_DB, attribute
from qbench.session.session import Session
from tests.networks import mlp, residual

GRAPH = residual(blocks=2)
GROUPS = find_groups(GRAPH)
IMAGES = np.random.default_rng(1).normal(size=(16, 3, 6, 7)).astype(np.float32)


def report_of(graph: Graph, ratios: Sequence[float | None]) -> Report:
    """A report that says this SQNR of every node of the first group, the second..."""
    known = {node.name: ratio for group, ratio in zip(find_groups(graph), ratios, strict=True) for node in group.nodes}
    layers = [
        LayerReport(name=n.name, op=n.op, tensor=n.output, runs_as="uint8", sqnr_db=known[n.name]) for n in graph.nodes
    ]
    return Report(by_layer=tuple(layers), output=OutputReport(sqnr_db=None, agreement=None, samples=1, data="probe"))


def paths(graph: Graph, value: str) -> Iterator[list[str]]:
    """Every way from a value to an output: the values on it."""
    if value in graph.outputs:
        yield [value]
    for reader in graph.consumers[value]:
        yield from ([value, *rest] for rest in paths(graph, reader.output))


@given(st.lists(st.floats(-20, 60), min_size=len(GROUPS), max_size=len(GROUPS)))
def test_what_lasts_is_what_no_later_value_on_some_path_makes_up_for(ratios: list[float]):
    found = attribute(GRAPH, report_of(GRAPH, ratios))
    ends = {group.outputs[0]: ratio for group, ratio in zip(GROUPS, ratios, strict=True)}
    for group, step in zip(GROUPS, found.steps, strict=True):
        own = {node.output for node in group.nodes}
        read = {name for node in group.nodes for name in node.inputs} - own - {*GRAPH.constants}
        reaching = min(ends.get(name, math.inf) for name in read)
        stays = min(max(ends[v] for v in path if v in ends) for path in paths(GRAPH, group.outputs[0]))
        assert step.reaching_db == reaching
        assert step.sqnr_db == ends[group.outputs[0]]
        assert step.lasting_db == max(0.0, np.clip(reaching, 0, CLEAN_DB) - np.clip(stays, 0, CLEAN_DB))
    assert found.output_db == ends["y"]
    lost = [step.lasting_db for step in found.falls]
    assert lost == sorted(lost, reverse=True)
    assert 0 not in lost


def test_what_cannot_be_measured_takes_what_reaches_it():
    ratios: list[float | None] = [30.0] * len(GROUPS)
    ratios[2] = None
    step = attribute(GRAPH, report_of(GRAPH, ratios)).steps[2]
    assert (step.sqnr_db, step.fall_db, step.lasting_db, step.cause) == (30.0, 0.0, 0.0, "")


def test_a_layer_that_is_spoiled_stands_first_and_those_behind_it_inherit():
    coarse = QuantConfig().override_tensor("conv_1.weight", dtype="int4", threshold=0.02)
    found = Session(GRAPH, IMAGES, config=coarse).attribution()
    first = found.falls[0]
    assert (first.name, first.cause) == ("conv_1", "own")
    assert first.nodes == ("conv_1", "bias_1", "relu_1")
    assert first.own_db is not None
    assert first.own_db < 15
    harmless = next(step for step in found.steps if step.name == "pool")
    assert harmless.own_db is not None
    assert harmless.own_db > 30
    assert harmless.lasting_db < first.lasting_db


def test_a_table_of_it():
    found = Session(mlp(), np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32)).attribution()
    table = found.frame()
    assert list(table.name) == [step.name for step in found.steps]
    assert list(table.columns[:4]) == ["name", "op", "runs_as", "reaching_db"]
    assert table.columns[-1] == "cause"
    assert table.reaching_db[0] == pytest.approx(math.inf)


def test_float_everywhere_loses_nothing():
    config = QuantConfig().with_rule(op="*", keep_float=True)
    found = Session(GRAPH, IMAGES, config=config).attribution()
    assert found.falls == ()
    assert found.output_db == math.inf
    assert all(step.cause == "" for step in found.steps)


def test_an_error_from_outside_is_told_as_amplified():
    found = attribute(GRAPH, report_of(GRAPH, [30.0] * len(GROUPS)))
    step = replace(found.steps[1], reaching_db=30, sqnr_db=10, fall_db=20, own_db=35, inherited_db=10.1)
    assert step.cause == "amplified"
    assert replace(step, own_db=10.1, inherited_db=35).cause == "own"
