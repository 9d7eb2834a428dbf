from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.frontends import load
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array
from qbench.passes.canonicalize import CanonicalizePass
from qbench.passes.common_subexpressions import CommonSubexpressionsPass
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.fold_affine import FoldAffinePass
from qbench.passes.fold_batch_norm import FoldBatchNormPass
from qbench.passes.fold_constants import FoldConstantsPass
from qbench.passes.fold_scale_axis import FoldScaleAxisPass
from qbench.passes.infer_types import InferTypesPass
from qbench.passes.pipeline import Pass
from qbench.passes.prepare import prepare
from qbench.runtime.interpreter import run
from tests.passes.graphs import IMAGE, array, difference, graph, node, norm, norm_inputs, ops

CHANNELS = IMAGE[1]
PASSES: dict[str, Pass] = {
    made.name: made
    for made in (
        InferTypesPass(),
        FoldConstantsPass(),
        DeadCodePass(),
        CommonSubexpressionsPass(),
        CanonicalizePass(),
        FoldBatchNormPass(),
        FoldAffinePass(),
        FoldScaleAxisPass(),
    )
}
KINDS = (
    "conv",
    "depthwise",
    "norm",
    "relu",
    "relu6",
    "silu",
    "hard_swish",
    "pool",
    "scale",
    "shift",
    "times",
    "plus",
    "turn",
    "add",
    "multiply",
)


class Net:
    """A random network under construction: every value has the shape of `IMAGE`, so that any two can be added."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {"three": np.float32([3]), "six": np.float32([6]), "zero": np.float32([0])}
        self.values = ["x"]

    def add(self, op: str, *inputs: str, **attrs: object) -> str:
        name = f"n{len(self.nodes)}_{op.rpartition('.')[2]}"
        self.nodes.append(node(name, op, *inputs, **attrs))  # type: ignore[arg-type]
        return name

    def constant(self, *shape: int, low: float = -1) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array(*shape, seed=len(self.constants), low=low)
        return name

    def grow(self, kind: str, x: str, other: str) -> str:
        if kind in ("conv", "depthwise"):
            if len(self.nodes) % 2:
                padded = self.add("nn.pad", x, pad_width=((0, 0), (0, 0), (1, 1), (0, 2)))
                attrs: dict[str, object] = {}
            else:
                padded, attrs = x, {"padding": (1, 0, 1, 2)}
            groups = CHANNELS if kind == "depthwise" else 1
            weight = self.constant(CHANNELS, CHANNELS // groups, 3, 3)
            return self.add("nn.conv2d", padded, weight, **attrs, **({"groups": groups} if groups > 1 else {}))
        if kind == "norm":
            prefix = f"p{len(self.nodes)}"
            self.constants |= norm(CHANNELS, len(self.nodes), prefix)
            return self.add("nn.batch_norm", x, *norm_inputs(prefix))
        if kind == "relu":
            return self.add("maximum", x, "zero")
        if kind == "relu6":
            return self.add("clip", x, a_min=0.0, a_max=6.0)
        if kind == "silu":
            return self.add("multiply", x, self.add("sigmoid", x))
        if kind == "hard_swish":
            bounded = self.add("clip", self.add("add", x, "three"), a_min=0.0, a_max=6.0)
            return self.add("divide", self.add("multiply", x, bounded), "six")
        if kind == "pool":
            padded = self.add("nn.pad", x, pad_width=((0, 0), (0, 0), (1, 1), (1, 1)))
            return self.add("nn.max_pool2d", padded, pool_size=(3, 3), strides=(1, 1))
        if kind == "scale":
            return self.add("divide", x, self.constant(CHANNELS, 1, 1, low=0.5))
        if kind == "shift":
            return self.add("subtract", x, self.constant(1, CHANNELS, 1, 1))
        if kind in ("times", "plus"):
            name = f"c{len(self.constants)}"
            self.constants[name] = np.float32([1.5 - len(self.constants) % 4])
            return self.add({"times": "multiply", "plus": "add"}[kind], name, x)
        if kind == "turn":
            turned = self.add("transpose", x, axes=(0, 2, 3, 1))
            return self.add("transpose", self.add("reshape", turned, newshape=(*IMAGE[:1], 6, 6, 4)), axes=(0, 3, 1, 2))
        return self.add(kind, x, other)


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    net = Net()
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(KINDS))
        # Mostly chains, sometimes a residual: fusions must see both.
        x = net.values[-1] if draw(st.booleans()) else draw(st.sampled_from(net.values))
        net.values.append(net.grow(kind, x, draw(st.sampled_from(net.values))))
    made = net.values[1:]
    outputs = {made[-1], *draw(st.lists(st.sampled_from(made), max_size=1))}
    return graph(*net.nodes, outputs=sorted(outputs), **net.constants)


@settings(max_examples=150, deadline=None)
@given(networks(), st.booleans(), st.booleans())
def test_random_networks_mean_the_same(g: Graph, fold_scale_axis: bool, fold_affine: bool) -> None:
    trace = prepare(g, fold_scale_axis, fold_affine)
    assert trace.graph.outputs == g.outputs
    assert difference(g, trace.graph) <= 1e-4
    assert "nn.batch_norm" not in ops(trace.graph)
    assert {s for n in trace.graph.nodes for s in n.sources} <= {n.name for n in g.nodes}
    for step in trace.steps:
        assert PASSES[step.name](step.graph) is step.graph


MODELS = (
    "imagenet/efficientnet_lite0_bn",
    "imagenet/squeezenet1.1_fp32_opset13",
    "cifar/resnet20_cifar10_bn",
    "mlperf_tiny/ic_resnet8_fp32",
    "mlperf_tiny/vww_mobilenetv1_025_fp32",
    "mlperf_tiny/ad_autoencoder_fp32",
    "mlperf_tiny/kws_dscnn_fp32_bn",
    "zoo/ort_mnist",
    "zoo/ort_ultraface_rfb320",
    "zoo/rapidocr_cls",
    "zoo/ort_superresolution_core_op18",
    "zoo/mtcnn_onet",
)


def sample(g: Graph, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {k: [1 if isinstance(d, str) else d for d in t.shape] for k, t in g.input_types().items()}
    return {k: rng.uniform(-1, 1, shape).astype(np.float32) for k, shape in shapes.items()}


def assert_prepared_like_onnxruntime(path: Path, shapes: dict[str, tuple[int | str, ...]] | None = None) -> None:
    g = load(path, shapes=shapes)
    prepared = prepare(g).graph
    fed = sample(g)
    given = run(prepared, fed)
    wanted = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(list(g.outputs), fed)
    for name, reference in zip(g.outputs, wanted, strict=True):
        assert np.max(np.abs(given[name] - reference)) <= 1e-4 * np.max(np.abs(reference))
    assert "nn.batch_norm" not in ops(prepared)
    assert prepare(prepared).graph == prepared


@pytest.mark.parametrize("model", ["mnist_mlp", "mnist_cnn"])
def test_own_models(model: str, data_dir: Path) -> None:
    assert_prepared_like_onnxruntime(data_dir / f"{model}.onnx")


@pytest.mark.parametrize("model", MODELS)
def test_real_models(model: str, shared_data: Path) -> None:
    shapes = {"x": ("N", 3, 48, 192)} if "rapidocr" in model else None
    assert_prepared_like_onnxruntime(shared_data / "models" / f"{model}.onnx", shapes)
