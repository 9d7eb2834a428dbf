"""Where 8 and 16 bits meet in TFLite's arithmetic: LiteRT computes the same integers from the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbench.exporters.tflite import tflite_model
from qbench.frontends import load
from qbench.ir.op import OPS, QuantRule
from qbench.passes.annotate import AnnotatePass, points
from qbench.passes.realize import RealizePass
from qbench.runtime.interpreter import run
from qbench.runtime.programs import Programs
from tests.forms.nets import CASES
from tests.forms.test_round_trip import in_tflite
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams
from tests.tflite_files import litert

_RULES = (QuantRule.MAC, QuantRule.ELEMENTWISE, QuantRule.AVERAGE)
_NAMES = [
    name
    for name, make in CASES.items()
    if OPS[make().nodes[0].op].rule in _RULES and ".number" not in name and in_tflite(name, "int16")
]
WIDE = [(name, wide) for name in _NAMES for wide in (*CASES[name]().inputs, "result")]
"""The networks, and which of their tensors has 16 bits where the others have 8."""


@pytest.mark.parametrize(("name", "wide"), WIDE)
def test_kernels_of_16_bits_compute_what_8_and_16_bits_make(name: str, wide: str, tmp_path: Path) -> None:
    graph, random = CASES[name](), np.random.default_rng(3)
    feeds = {
        name: random.normal(size=(2, *kind.shape[1:])).astype(np.float32) for name, kind in graph.input_types().items()
    }
    annotated = AnnotatePass()(graph)
    values = every_value(graph, feeds)
    result = graph.outputs[0] if wide == "result" else wide
    narrow, broad = (
        min_max_qparams(annotated, values, dtype, True, "int8", (dtype == "int16", True))
        for dtype in ("uint8", "int16")
    )
    bound = bind_qparams(annotated, {**narrow, result: broad[result]})
    kinds = {bound.qparams[point.value].dtype for point in points(bound).values() if point.kind == "activation"}
    assert kinds >= {"uint8", "int16"}
    ours = RealizePass(semantics="tflite")(bound)
    data = tflite_model(ours)
    (tmp_path / "net.tflite").write_bytes(data)
    made, output = run(ours, feeds), graph.outputs[0]
    np.testing.assert_array_equal(litert(data, feeds)[output], made[output])
    np.testing.assert_array_equal(Programs(ours).of(feeds).run(feeds)[output], made[output])
    np.testing.assert_array_equal(run(load(tmp_path / "net.tflite"), feeds)[output], made[output])
    step = (broad if wide == "result" else narrow)[output].scales[0]
    bound_of = 2 * step + 0.02 * np.abs(values[output]).max()
    np.testing.assert_allclose(made[output], run(bound, feeds)[output], atol=bound_of)
