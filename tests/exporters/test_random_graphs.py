"""Any network goes out to ONNX, through onnxruntime and back in: as it is, and with fake-quantized points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from qbench.exporters import write_onnx
from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, QuantRule
from qbench.passes.annotate import AnnotatePass
from qbench.passes.prepare import prepare
from qbench.runtime.interpreter import run
from tests.exporters.parity import session
from tests.passes.quantizable import bind_qparams, every_value, min_max_qparams
from tests.passes.random_graphs import networks


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    graph=networks(),
    dtype=st.sampled_from(["uint8", "int8"]),
    per_channel=st.booleans(),
    default=st.booleans(),
    seed=st.integers(0, 99),
)
def test_onnxruntime_and_the_importer_read_what_is_exported(
    tmp_path_factory: pytest.TempPathFactory,
    graph: Graph,
    dtype: str,
    per_channel: bool,
    default: bool,
    seed: int,
) -> None:
    random, path = np.random.default_rng(seed), tmp_path_factory.mktemp("models") / "model.onnx"
    feeds = {k: random.normal(size=(2, *t.shape[1:])).astype(np.float32) for k, t in graph.input_types().items()}
    values = every_value(graph, feeds)
    assume(all(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e4 for array in values.values()))

    def compare(given: dict[str, Array], wanted: dict[str, Array], tolerance: float) -> None:
        assert list(given) == list(graph.outputs)
        for output, array in wanted.items():
            largest = max(1e-3, np.abs(values[output]).max(initial=0))
            np.testing.assert_allclose(given[output], array, rtol=0, atol=tolerance * largest)

    def in_onnxruntime(model: Path) -> dict[str, Array]:
        return dict(zip(graph.outputs, session(model, default=default).run(list(graph.outputs), feeds), strict=True))

    # onnxruntime's integer kernel counts what ceil mode adds beyond the padding; its float kernel does not
    pools = [node.attrs for node in graph.nodes if node.op == "nn.avg_pool2d"]
    assume(not any(a.get("ceil_mode") and a.get("count_include_pad") and any(a["padding"]) for a in pools))
    # onnxruntime's optimizer refuses int8 that is dequantized and then only moved about; integers may be its own
    default &= dtype == "uint8"
    # with exact sums asked for, it makes a weight unsigned once for each product that reads it, all under one name
    weights = [node.inputs[1] for node in graph.nodes if OPS[node.op].rule is QuantRule.MAC]
    default &= len(weights) == len({*weights})
    exact = {output: values[output] for output in graph.outputs}
    compare(in_onnxruntime(write_onnx(graph, path)), exact, 1e-4)
    again = load(path)
    assert set(again.inputs) == set(graph.inputs)
    compare(run(again, feeds), exact, 1e-4)
    compare(run(prepare(again).graph, feeds), exact, 1e-3)
    annotated = AnnotatePass()(graph)
    fake = bind_qparams(annotated, min_max_qparams(annotated, values, dtype, per_channel))
    compare(in_onnxruntime(write_onnx(fake, path)), run(fake, feeds), 0.1)  # kernels round here and there by a step
