"""Files that onnxruntime's own tool has quantized, op by op against onnxruntime; the whole list by a command.

``python -m tests.frontends.onnx`` does it for every model and every form.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest

import qbench as qb
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from tests.frontends.onnx.parity import Compared, compare, compare_program, fused_ops, runtime_values
from tests.frontends.onnx.quantizing import Form, feeds, quantized

CHOSEN = (
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    "mlperf_tiny/kws_dscnn_fp32_bn.onnx",
    "mlperf_tiny/ad_autoencoder_fp32.onnx",
    "zoo/rapidocr_cls.onnx",
)
FORMS = (Form(True, True, False), Form(True, False, True), Form(False, True, False), Form(False, False, True))
EXACT = ("conv2d", "dense", "pool", "sum")


class Case(NamedTuple):
    """A file as a graph, what it is fed with, what onnxruntime makes of that, and whether convolutions sum reals."""

    graph: Graph
    given: Mapping[str, Array]
    theirs: Mapping[str, Array]
    in_reals: bool


@pytest.fixture(scope="module", params=[(model, form) for model in CHOSEN for form in FORMS], ids=str)
def case(
    request: pytest.FixtureRequest,
    shared_data: Path,
    tmp_path_factory: pytest.TempPathFactory,
    exact_onnxruntime: None,
) -> Case:
    name, form = request.param
    path = quantized(shared_data / "models" / name, form, tmp_path_factory.mktemp("quantized"))
    model, graph = onnx.load(path), qb.load(path)
    given = feeds(model, seed=5)
    in_reals = fused_ops(model, graph)["Conv"] > 0  # on x86 a convolution of int8 data is not fused: it sums reals
    return Case(graph, given, runtime_values(model, graph, given), in_reals)


def bounded(found: list[Compared], reals: bool) -> None:
    """At most one step and 0.01 % of the elements of each op; 0 for products and pools, unless computed with reals."""
    assert len(found) > 3
    for op in {each.op for each in found}:
        values = [each for each in found if each.op == op]
        different, elements = sum(each.different for each in values), sum(each.elements for each in values)
        assert max(each.steps for each in values) <= 1, values
        assert different <= elements / 10_000 + (elements < 10_000), (op, values)
        if not reals and any(kind in op for kind in EXACT):
            assert different == 0, (op, values)


def test_every_op_gives_onnxruntimes_integers(case: Case) -> None:
    bounded(compare(case.graph, case.theirs, case.given), case.in_reals)


def test_every_op_of_a_program_gives_onnxruntimes_integers(case: Case) -> None:
    program = qb.plan(case.graph, keep=list(case.theirs), sizes=sizes(case.graph, case.given))
    bounded(compare_program(program, case.theirs, case.given), case.in_reals)


def sizes(graph: Graph, given: Mapping[str, Array]) -> dict[str, int]:
    """Numbers for the open sizes of a graph's inputs."""
    pairs = (zip(graph.types[name].shape, given[name].shape, strict=True) for name in graph.inputs)
    return {size: length for size, length in chain.from_iterable(pairs) if isinstance(size, str)}
