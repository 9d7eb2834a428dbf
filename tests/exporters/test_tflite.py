"""TFLite files that we write: LiteRT's reference kernels compute our integers from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from qbench.errors import ExportError
from qbench.exporters.tflite import tflite_model
from qbench.frontends import load
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.ops.float.recurrent import Recurrent
from qbench.passes.canonicalize import CanonicalizePass
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.runtime.interpreter import run
from qbench.session.export import export_onnx, export_tflite
from qbench.session.session import Session
from tests.forms.nets import CLAMPS
from tests.graphs import masked_softmax
from tests.passes.quantizable import every_op, node, sample
from tests.tflite_files import Tensor, constant, litert, model, operator

Feeds = dict[str, np.ndarray]

MODELS = (
    "mlperf_tiny/ad_autoencoder_int8", "mlperf_tiny/ic_resnet8_int8", "mlperf_tiny/kws_dscnn_old_int8",
    "mlperf_tiny/vww_mobilenetv1_025_int8", "tflite/mobilenet_v1_0.25_128_quant", "tflite/mobilenet_v2_1.0_224_quant",
)  # fmt: skip


def integers(graph: Graph, count: int, seed: int = 0) -> Feeds:
    """Random integers of the graph's own types; `count` samples, or as many as it takes."""
    rng, feeds = np.random.default_rng(seed), Feeds()
    for name, kind in graph.input_types().items():
        info = np.iinfo(kind.dtype)
        shape = [count if isinstance(size, str) else size for size in kind.shape]
        feeds[name] = rng.integers(info.min, info.max + 1, shape).astype(kind.dtype)
    return feeds


def integers_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-127, 128, shape).astype(np.int8)


def cut_before_softmax(graph: Graph) -> Graph:
    last = graph.nodes[-1]
    if "softmax" not in last.op:
        return graph
    return rebuild(graph, nodes=graph.nodes[:-1], outputs=last.inputs[:1])


def different(ours: Feeds, theirs: Feeds) -> int:
    return sum(int((theirs[name] != array).sum()) for name, array in ours.items())


@pytest.mark.parametrize("name", MODELS)
def test_an_untouched_import_written_again_changes_no_bit(shared_data: Path, tmp_path: Path, name: str) -> None:
    source = shared_data / "models" / f"{name}.tflite"
    graph = load(source)
    feeds = integers(graph, 2)
    session = Session(graph, calibration=feeds)
    written = export_tflite(session, tmp_path / "again.tflite")
    before, after = litert(source.read_bytes(), feeds), litert(written.read_bytes(), feeds)
    same = [name for name in before if name in after and before[name].shape == after[name].shape]
    assert {*graph.outputs, *graph.inputs} <= {*same}
    assert len(same) > len(graph.nodes) // 4
    assert different({name: before[name] for name in same}, after) == 0
    ours = cut_before_softmax(session.graph)
    assert different(run(ours, feeds), after) == 0
    again = load(written)
    assert [node.op for node in again.nodes] == [node.op for node in graph.nodes]
    assert again.constants == graph.constants
    assert again.qparams == graph.qparams


SLOPES = constant("a", integers_of(1, 1, 3), scale=0.01)
OF_TFLITE_ALONE = {
    "PRELU": ("PRELU", [SLOPES], {}),
    "PRELU of rows": ("PRELU", [constant("a", integers_of(8, 1), scale=0.01)], {}),
    "CONCATENATION": (
        "CONCATENATION",
        [constant("a", integers_of(2, 9, 8, 3).view(np.uint8), scale=0.02)],
        {"axis": 3},
    ),
    "SUM": ("SUM", [constant("a", np.array([1, 2], np.int32))], {"keep_dims": True}),
    "L2_NORMALIZATION": ("L2_NORMALIZATION", [], {}),
}


@pytest.mark.parametrize("name", OF_TFLITE_ALONE)
def test_operators_with_kernels_that_tflite_alone_has_are_written_as_they_were(tmp_path: Path, name: str) -> None:
    op, more, options = OF_TFLITE_ALONE[name]
    scale, zero = (1 / 128, 0) if op == "L2_NORMALIZATION" else (0.043, 3)
    dtype = "uint8" if op == "CONCATENATION" else "int8"
    ends = [Tensor(name, (2, 9, 8, 3), dtype, scale=scale, zero_point=zero) for name in ("x", "y")]
    data = model([*ends, *more], [operator(op, ["x", *(one.name for one in more)], ["y"], **options)])
    source, again = tmp_path / "model.tflite", tmp_path / "again.tflite"
    source.write_bytes(data)
    graph = load(source)
    written = tflite_model(graph)
    again.write_bytes(written)
    feeds = integers(graph, 2)
    theirs = litert(written, feeds)["y"]
    assert np.array_equal(theirs, litert(data, feeds)["y"])
    assert np.array_equal(theirs, run(graph, feeds)["y"])
    assert [node.op for node in load(again).nodes] == [node.op for node in graph.nodes]


def test_an_import_whose_real_numbers_are_moved_loads_in_onnxruntime(tmp_path: Path) -> None:
    """Images with channels last: a transpose behind the last DequantizeLinear, where onnxruntime would add a pair."""
    x, y = (Tensor(name, (1, 6, 5, 3)) for name in ("x", "y"))
    q, p = (Tensor(name, (1, 6, 5, 3), "int8", scale=0.05, zero_point=3) for name in ("q", "p"))
    pool = operator("MAX_POOL_2D", ["q"], ["p"], filter_height=3, filter_width=3, stride_h=1, stride_w=1)
    nodes = [operator("QUANTIZE", ["x"], ["q"]), pool, operator("DEQUANTIZE", ["p"], ["y"])]
    (tmp_path / "model.tflite").write_bytes(model([x, q, p, y], nodes))
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 6, 5, 3)).astype(np.float32)}
    session = Session(load(tmp_path / "model.tflite"), calibration=feeds)
    written = export_onnx(session, tmp_path / "model.onnx")
    (found,) = onnxruntime.InferenceSession(written).run(["y"], feeds)
    np.testing.assert_array_equal(found, run(session.graph, feeds)["y"])


def test_other_scales_are_written_too(shared_data: Path, tmp_path: Path) -> None:
    graph = load(shared_data / "models/mlperf_tiny/ic_resnet8_int8.tflite")
    feeds = integers(graph, 3)
    session = Session(graph, calibration=feeds)
    tensor = next(name for name, e in session.encodings.items() if "Relu" in name and e.qparams.axis is None)
    session.override(tensor, scale=0.07, zero_point=-120)
    session.recalibrate(next(node.name for node in session.prepared.nodes if node.op == "nn.dense"))
    ours = run(cut_before_softmax(session.graph), feeds)
    theirs = litert(export_tflite(session, tmp_path / "tuned.tflite").read_bytes(), feeds)
    assert different(ours, theirs) == 0
    assert different(run(cut_before_softmax(graph), feeds), theirs) > 0


@pytest.fixture(scope="module")
def digits(data_dir: Path) -> np.ndarray:
    return np.load(data_dir / "mnist_evaluation.npz")["x"][:50]


CONFIGS: dict[str, Callable[[], QuantConfig]] = {
    "default": QuantConfig,
    "int8": lambda: QuantConfig().with_value("activations.dtype", "int8"),
    "tensor": lambda: QuantConfig().with_value("weights.axis", None),
    "uint8": lambda: QuantConfig().with_value("weights.axis", None).with_value("weights.dtype", "uint8"),
    "int4": lambda: QuantConfig().with_value("weights.dtype", "int4"),
}


def compared(graph: Graph, x: np.ndarray, config: QuantConfig, tmp_path: Path) -> dict[str, int]:
    """Elements of every quantized tensor, and of the outputs, in which LiteRT differs from our integers."""
    session = Session(graph, x, config=config)
    path = export_tflite(session, tmp_path / "model.tflite")
    session.edit("TFLite's arithmetic", config.with_value("semantics", "tflite"))
    legal = session.graph
    wanted = [name for name in session.encodings if name in legal.types and name not in legal.constants]
    theirs = litert(path.read_bytes(), {graph.inputs[0]: x})
    found: dict[str, int] = {}
    for name, ours in run(legal, {graph.inputs[0]: x}, wanted).items():
        real = ours.dtype.kind == "f" and name not in graph.outputs
        if name not in theirs or name in graph.inputs or real:
            continue
        given = theirs[name]
        if ours.ndim == 4 and name not in graph.outputs:
            given = given.transpose(0, 3, 1, 2)
        if ours.dtype == np.uint8 and given.dtype == np.int8:
            ours = (ours.astype(np.int16) - 128).astype(np.int8)
        if name not in graph.outputs:
            found[name] = int((given != ours).sum())
        else:
            np.testing.assert_allclose(given, ours, atol=1e-5)
    return found


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn"])
def test_models_quantized_here_run_to_the_last_bit(
    data_dir: Path, digits: np.ndarray, tmp_path: Path, name: str, kind: str
) -> None:
    graph = load(data_dir / f"{name}.onnx")
    found = compared(graph, digits, CONFIGS[kind](), tmp_path)
    assert len(found) >= 2
    assert not any(found.values()), found


def many_ops() -> Graph:
    """What TFLite can say of the quantizable ops."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> Constant:
        return Constant((rng.normal(size=shape) * 0.4).astype(np.float32))

    nodes = [
        node("conv1", "nn.conv2d", "x w1", "c1", padding=(1, 1, 1, 1)),
        node("conv1.bias_add", "nn.bias_add", "c1 b1", "c1b"),
        node("relu1", "nn.relu", "c1b", "r1"),
        node("depthwise", "nn.conv2d", "r1 w2", "d1", padding=(0, 1, 2, 1), groups=8),
        node("relu6", "clip", "d1", "k1", a_min=0.0, a_max=6.0),
        node("add", "add", "k1 r1", "a1"),
        node("tanh", "tanh", "a1", "t1"),
        node("leaky", "nn.leaky_relu", "t1", "l1", alpha=0.2),
        node("gate", "multiply", "l1 a1", "m1"),
        node("abs", "abs", "m1", "e1"),
        node("pool", "nn.max_pool2d", "e1", "p1", pool_size=(2, 2), strides=(2, 2), padding=(1, 1, 1, 1)),
        node("average", "nn.avg_pool2d", "e1", "p2", pool_size=(2, 2), strides=(2, 2)),
        node("cut", "strided_slice", "p1", "s1", begin=(0, 0), end=(4, 4), strides=(1, 1), axes=(2, 3)),
        node("concat", "concatenate", "s1 p2", "cc", axis=1),
        node(
            "resize",
            "image.resize2d",
            "cc",
            "rz",
            size=(8, 8),
            method="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        ),
        node("strided", "nn.conv2d", "rz w4", "dc", strides=(2, 2), padding=(0, 0, 1, 1)),
        node("bounded", "clip", "dc", "bd", a_min=-0.5, a_max=1.5),
        node("pad", "nn.pad", "bd", "pd", pad_width=((0, 0), (0, 0), (1, 0), (0, 2)), pad_value=0.5),
        node("difference", "subtract", "pd pd", "df"),
        node("sum", "add", "df pd", "sm"),
        node("rows", "reshape", "sm", "rw", newshape=(-1, 4, 30)),
        node("turned", "transpose", "rw", "tr", axes=(0, 2, 1)),
        node("matmul", "nn.batch_matmul", "rw tr", "mm"),
        node("mean", "mean", "mm", "me", axes=(2,), keepdims=False),
        node("fc", "nn.dense", "me w3", "f1"),
        node("fc.bias_add", "nn.bias_add", "f1 b3", "f2"),
        node("softmax", "nn.softmax", "f2", "y"),
    ]
    constants = {
        "w1": weights(8, 3, 3, 3), "b1": weights(8), "w2": weights(8, 1, 3, 3), "w4": weights(4, 16, 3, 3),
        "w3": weights(10, 4), "b3": weights(10),
    }  # fmt: skip
    return build("many_ops", {"x": TensorType(("N", 3, 8, 8), "float32")}, ["y", "f2"], nodes, constants)


@pytest.mark.parametrize("kind", ["int8", "tensor", "int4"])
def test_every_op_that_tflite_has(tmp_path: Path, kind: str) -> None:
    graph = many_ops()
    config = CONFIGS[kind]().with_value("activations.dtype", "int8")
    found = compared(graph, sample(graph, 5), config, tmp_path)
    assert len(found) > 12
    assert not any(found.values()), found


@pytest.mark.parametrize("kind", ["default", "int8", "tensor"])
@pytest.mark.parametrize(("strides", "clamp"), [((2, 2), "relu"), ((2, 1), "relu6"), ((1, 1), "")])
def test_transposed_convolutions_and_what_is_fused_behind_them(
    tmp_path: Path, kind: str, strides: tuple[int, int], clamp: str
) -> None:
    rng = np.random.default_rng(2)
    nodes = [
        node("up", "nn.conv2d_transpose", "x w", "u", strides=strides),
        node("up.bias_add", "nn.bias_add", "u b", "ub" if clamp else "y"),
        *([CLAMPS[clamp]("ub", "y")] if clamp else []),
        node("pool", "nn.max_pool2d", "y", "z", pool_size=(2, 2), strides=(1, 1)),
    ]
    constants = {
        "w": Constant(rng.normal(size=(4, 6, 3, 3)).astype(np.float32)),
        "b": Constant(np.arange(6, dtype="f4")),
    }
    graph = build("up", {"x": TensorType((1, 4, 5, 4), "float32")}, ["z"], nodes, constants)
    x = rng.normal(size=(1, 4, 5, 4)).astype(np.float32)
    found = compared(graph, x, CONFIGS[kind](), tmp_path)
    assert {*found} == {"y"}
    assert not any(found.values()), found


def test_layers_in_float_are_float_operators(tmp_path: Path) -> None:
    graph = many_ops()
    config = CONFIGS["int8"]().with_rule(name="conv1*", keep_float=True).with_rule(name="fc*", keep_float=True)
    config = config.with_rule(op="multiply", keep_float=True)
    found = compared(graph, sample(graph, 5), config, tmp_path)
    assert sum(found.values()) <= 2  # LiteRT's float sums go in another order, so that a value may round otherwise


def as_tflite(session: Session) -> Quantized:
    """In TFLite's arithmetic, with all that it has not got."""
    return session.quantized(session.config.with_value("semantics", "tflite"))


def test_what_tflite_cannot_say_is_listed_at_once(tmp_path: Path) -> None:
    graph = every_op()
    config = QuantConfig().override_tensor("th", dtype="int16", symmetric=True)
    session = Session(graph, sample(graph, 4), config=config)
    target = tmp_path / "none.tflite"
    with pytest.raises(ExportError, match=r"'average'(.|\n)*'tanh'.*of 8 and of 16 bits") as caught:
        export_tflite(as_tflite(session), target)
    assert "dilated" not in str(caught.value)
    assert not target.exists()


def of_two_widths() -> Session:
    rng = np.random.default_rng(0)
    nodes = [
        node("a", "nn.dense", "x w", "a"),
        node("b", "nn.dense", "a w", "b"),
        node("c", "add", "b x", "c"),
        node("d", "nn.dense", "c w", "y"),
    ]
    constants = {"w": Constant(rng.normal(size=(4, 4)).astype(np.float32))}
    graph = build("two", {"x": TensorType((1, 4), "float32")}, ["y"], nodes, constants)
    config = QuantConfig.of_preset("int8").override_tensor("a", dtype="int16", symmetric=True)
    config = config.override_tensor("c", dtype="int16", symmetric=True)
    return Session(graph, rng.normal(size=(8, 4)).astype(np.float32), config=config)


def test_layers_between_8_and_16_bits_are_in_integers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = of_two_widths()
    path = export_tflite(session, tmp_path / "two.tflite")
    assert not caplog.text
    x = np.random.default_rng(1).normal(size=(1, 4)).astype(np.float32)
    ours = run(as_tflite(session).qnn, {"x": x})["y"]
    assert np.array_equal(litert(path.read_bytes(), {"x": x})["y"], ours)
    exact = run(session.prepared, {"x": x})["y"]
    assert np.abs(ours - exact).max() < np.abs(exact).max() / 20


@pytest.mark.parametrize(("axis", "shape"), [(1, (2, 4, 5, 3)), (2, (2, 5, 4)), (1, (6, 4))])
def test_slopes_by_channel_are_integers(axis: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    """And those of the file can be tuned: its float twin has the slopes as they broadcast."""
    rng = np.random.default_rng(0)
    slopes = Constant(rng.uniform(-0.3, 0.4, 4).astype(np.float32))
    graph = build("slopes", {"x": TensorType(shape, "float32")}, ["y"], [node("p", "nn.prelu", "x a", "y", axis=axis)],
                  {"a": slopes})  # fmt: skip
    x = rng.normal(size=shape).astype(np.float32)
    session = Session(graph, x, preset="int8")
    path = export_tflite(session, tmp_path / "prelu.tflite")
    found = litert(path.read_bytes(), {"x": x})["y"]
    assert np.array_equal(found, run(as_tflite(session).qnn, {"x": x})["y"])
    assert np.abs(found - run(graph, {"x": x})["y"]).max() < 0.06
    again = Session(load(path), x)
    assert np.array_equal(run(again.graph, {"x": x})["y"], found)
    again.recalibrate()
    assert np.abs(run(again.graph, {"x": x})["y"] - run(graph, {"x": x})["y"]).max() < 0.06


def test_tensors_of_one_scale_and_other_channels(tmp_path: Path) -> None:
    """A layer's result, joined to what the next one makes of it: one range, but the means of their own channels."""
    rng = np.random.default_rng(0)
    tensors = [Tensor("x", (1, 4, 4, 3), "int8", scale=0.05)]
    steps, window = [], {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    for name, data, depth, count, scale in (("a", "x", 3, 5, 0.1), ("b", "a", 5, 4, 0.1), ("y", "j", 9, 2, 0.4)):
        w, b = rng.integers(-127, 128, (count, 1, 1, depth)).astype(np.int8), np.zeros(count, np.int32)
        unit = 0.01 * (0.05 if data == "x" else 0.1)
        tensors += [constant(f"w{name}", w, scale=0.01), constant(f"b{name}", b, scale=unit)]
        tensors += [Tensor(name, (1, 4, 4, count), "int8", scale=scale)]
        steps += [operator("CONV_2D", [data, f"w{name}", f"b{name}"], [name], **window)]
    tensors += [Tensor("j", (1, 4, 4, 9), "int8", scale=0.1)]
    steps.insert(2, operator("CONCATENATION", ["a", "b"], ["j"], axis=3))
    source = tmp_path / "joined.tflite"
    source.write_bytes(model(tensors, steps))
    feeds = {"x": rng.integers(-128, 128, (1, 4, 4, 3)).astype(np.int8)}
    session = Session(load(source), calibration=feeds)
    session.run()
    again = export_tflite(session, tmp_path / "again.tflite")
    assert np.array_equal(litert(again.read_bytes(), feeds)["y"], litert(source.read_bytes(), feeds)["y"])
    session.recalibrate()
    session.run()


@pytest.mark.parametrize("op", ["GELU", "LOGISTIC", "TANH", "ABS", "EXP"])
def test_functions_of_16_bits_that_tflite_has_are_written_again(tmp_path: Path, op: str) -> None:
    out = 2.0**-15 if op in ("LOGISTIC", "TANH") else 0.001
    tensors = [Tensor("x", (1, 64), "int16", scale=2.0**-12), Tensor("y", (1, 64), "int16", scale=out)]
    source = tmp_path / "one.tflite"
    source.write_bytes(model(tensors, [operator(op, ["x"])]))
    feeds = {"x": np.linspace(-32768, 32767, 64).astype(np.int16)[None]}
    again = export_tflite(Session(load(source), calibration=feeds), tmp_path / "again.tflite")
    assert np.array_equal(litert(again.read_bytes(), feeds)["y"], litert(source.read_bytes(), feeds)["y"])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_product_with_what_is_computed_is_written_again(tmp_path: Path, dtype: str) -> None:
    zero = 7 if dtype == "int8" else 0
    tensors = [
        Tensor("x", (4, 8), dtype, scale=0.02, zero_point=zero),
        Tensor("z", (6, 8), dtype, scale=0.03, zero_point=zero),
        Tensor("y", (4, 6), dtype, scale=0.3 if dtype == "int8" else 9.0, zero_point=zero),
    ]  # fmt: skip
    source = tmp_path / "product.tflite"
    source.write_bytes(model(tensors, [operator("FULLY_CONNECTED", ["x", "z"])], inputs=("x", "z")))
    graph = load(source)
    feeds = integers(graph, 1)
    again = export_tflite(Session(graph, calibration=feeds), tmp_path / "again.tflite")
    assert np.array_equal(litert(again.read_bytes(), feeds)["y"], litert(source.read_bytes(), feeds)["y"])


def test_the_best_of_integers_and_where_they_stand(tmp_path: Path) -> None:
    tensors = [
        Tensor("x", (2, 9), "int8", scale=0.1), constant("k", np.int32(3)), Tensor("y", (2, 3), "int8", scale=0.1),
        Tensor("i", (2, 3), "int32"),
    ]  # fmt: skip
    source = tmp_path / "best.tflite"
    source.write_bytes(model(tensors, [operator("TOPK_V2", ["x", "k"], ["y", "i"])], outputs=("y", "i")))
    feeds = {"x": integers_of(2, 9)}
    session = Session(load(source), calibration=feeds)
    session.run()
    again = litert(export_tflite(session, tmp_path / "again.tflite").read_bytes(), feeds)
    assert all(np.array_equal(again[name], array) for name, array in run(session.graph, feeds).items())


def test_functions_of_16_bits_are_in_float_in_tflite(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The integers around them stay what they are: the file gives what the session gives with those in float."""
    rng = np.random.default_rng(0)
    nodes = [
        node("a", "nn.dense", "x w", "a"),
        node("c", "nn.relu", "a", "b"),
        node("t", "tanh", "b", "t"),
        node("d", "nn.dense", "t w", "y"),
    ]
    constants = {"w": Constant(rng.normal(size=(4, 4)).astype(np.float32))}
    graph = build("tanh", {"x": TensorType((1, 4), "float32")}, ["y"], nodes, constants)
    config = QuantConfig().with_value("activations.dtype", "int16").with_value("activations.symmetric", True)
    session = Session(graph, rng.normal(size=(8, 4)).astype(np.float32), config=config)
    path = export_tflite(session, tmp_path / "tanh.tflite")
    assert "1 layer is in float in the TFLite file, which has no integers for it: 't'" in caplog.text
    x = rng.normal(size=(1, 4)).astype(np.float32)
    session.edit("t", session.config.with_value("semantics", "tflite").override_many("layers", ["t"], keep_float=True))
    theirs = litert(path.read_bytes(), {"x": x})["y"]
    assert np.array_equal(theirs, run(session.graph, {"x": x})["y"])


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("strided_slice", {"begin": (1,), "end": ("S",), "strides": (1,), "axes": (1,)}),
        ("nn.pad", {"pad_width": ((0, 0), (0, "S"), (0, 0))}),
        ("tile", {"reps": (1, "S", 1)}),
    ],
)
def test_open_sizes_are_named(tmp_path: Path, op: str, attrs: dict[str, Attr]) -> None:
    graph = build("open", {"x": TensorType(("N", "S", 4), "float32")}, ["y"], [node("one", op, "x", "y", **attrs)], {})
    with pytest.raises(ExportError, match=r"'one'.*the size 'S.*load the model with shapes="):
        export_tflite(graph, tmp_path / "none.tflite")


def test_a_rounding_of_ones_own_is_not_tflites(tmp_path: Path) -> None:
    graph = many_ops()
    session = Session(graph, sample(graph, 4), preset="int8")
    session.override("conv1", rounding="fp32_rne")
    with pytest.raises(ExportError, match="the rounding fp32_rne"):
        export_tflite(as_tflite(session), tmp_path / "none.tflite")


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    graph = many_ops()
    session = Session(graph, sample(graph, 4), preset="int8")
    with pytest.raises(ExportError, match="cannot write"):
        export_tflite(session, tmp_path / "missing" / "model.tflite")


def test_a_float_model_stays_one(data_dir: Path, digits: np.ndarray) -> None:
    graph = load(data_dir / "mnist_cnn.onnx")
    theirs = litert(tflite_model(prepare(graph).graph), {graph.inputs[0]: digits})
    for name, array in run(graph, {graph.inputs[0]: digits}).items():
        np.testing.assert_allclose(theirs[name], array, atol=1e-4)


@pytest.mark.parametrize(("op", "beta"), [("nn.layer_norm", ["beta"]), ("nn.rms_norm", [])])
@pytest.mark.parametrize("axis", [-1, 1])
def test_normalizations_are_written_in_parts(op: str, beta: list[str], axis: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(1, 2, size=(2, 3, 8)).astype(np.float32)
    names = ["gamma", *beta]
    constants = {name: Constant(rng.normal(size=x.shape[axis:]).astype(np.float32)) for name in names}
    nodes = [node("norm", op, " ".join(["x", *names]), "y", axis=axis, epsilon=1e-3)]
    graph = build("norm", {"x": TensorType(x.shape, "float32")}, ["y"], nodes, constants)
    np.testing.assert_allclose(litert(tflite_model(graph), {"x": x})["y"], run(graph, {"x": x})["y"], atol=1e-5)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("pads", [((0, 0), (0, 0), (1, 1), (0, 1)), ((0, 0), (2, 0), (1, 3), (0, 0))])
def test_edges_are_repeated(tmp_path: Path, pads: tuple[tuple[int, int], ...], quantized: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    nodes = [
        node("add", "add", "x x", "a"),
        node("pool", "nn.max_pool2d", "a", "p", pool_size=(2, 2), strides=(1, 1)),
        node("pad", "nn.pad", "p", "e", pad_width=pads, mode="edge"),
        node("again", "nn.max_pool2d", "e", "y", pool_size=(1, 2), strides=(1, 1)),
    ]
    graph = build("edges", {"x": TensorType(x.shape, "float32")}, ["y"], nodes, {})
    session = Session(graph, x, config=QuantConfig(semantics="tflite") if quantized else None)
    ours = session.graph if quantized else graph
    data = export_tflite(session, tmp_path / "m.tflite").read_bytes() if quantized else tflite_model(graph)
    assert any(q.dtype == "uint8" for q in ours.qparams.values()) == quantized
    np.testing.assert_array_equal(litert(data, {"x": x})["y"], run(ours, {"x": x})["y"])


def test_inputs_and_outputs_of_uint8_stay_so(tmp_path: Path) -> None:
    """A file that computes in int8 between two QUANTIZE, as converters write it."""
    (x, xi), (yi, y) = (
        [Tensor(f"{name}{dtype}", (2, 6), dtype, scale=scale, zero_point=zero) for dtype, zero in zeros]
        for name, scale, zeros in (
            ("x", 0.05, [("uint8", 131), ("int8", 3)]),
            ("y", 1 / 256, [("int8", -128), ("uint8", 0)]),
        )
    )
    nodes = [
        operator("QUANTIZE", [x.name], [xi.name]),
        operator("LOGISTIC", [xi.name], [yi.name]),
        operator("QUANTIZE", [yi.name], [y.name]),
    ]
    (tmp_path / "m.tflite").write_bytes(model([x, xi, yi, y], nodes, inputs=[x.name], outputs=[y.name]))
    graph = load(tmp_path / "m.tflite")
    feeds = {x.name: np.arange(12, dtype=np.uint8).reshape(2, 6) * 23}
    again = export_tflite(Session(graph, feeds), tmp_path / "again.tflite")
    theirs = litert(again.read_bytes(), feeds)[y.name]
    np.testing.assert_array_equal(theirs, run(graph, feeds)[y.name])
    assert theirs.dtype == np.uint8
    read = load(again)
    assert (read.inputs, read.outputs) == (graph.inputs, graph.outputs)
    assert [node.op for node in read.nodes] == [node.op for node in graph.nodes]


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3])
@pytest.mark.parametrize("axis", [-1, 1])
def test_l2_normalization_is_one_operator_where_it_has_that_epsilon(tmp_path: Path, axis: int, epsilon: float) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    x[0] *= 1e-4
    nodes = [node("norm", "nn.l2_normalize", "x", "y", axis=axis, epsilon=epsilon)]
    graph = build("norm", {"x": TensorType(x.shape, "float32")}, ["y"], nodes, {})
    data = tflite_model(graph)
    np.testing.assert_allclose(litert(data, {"x": x})["y"], run(graph, {"x": x})["y"], atol=1e-6)
    (tmp_path / "model.tflite").write_bytes(data)
    again = CanonicalizePass()(load(tmp_path / "model.tflite"))
    found = [dict(node.attrs) for node in again.nodes if node.op == "nn.l2_normalize"]
    assert [attrs["epsilon"] for attrs in found] == [pytest.approx(epsilon)]


@pytest.mark.parametrize("compare", ["equal", "greater", "greater_equal", "less", "less_equal"])
def test_choices_by_comparisons(compare: str) -> None:
    x = np.random.default_rng(0).integers(-2, 3, size=(2, 3, 4, 5)).astype(np.float32)
    nodes = [
        node("compared", compare, "x half", "compared"),
        node("small", "less", "x one", "small"),
        node("both", "logical_and", "compared small", "both"),
        node("not", "logical_not", "small", "large"),
        node("either", "logical_or", "both large", "either"),
        node("chosen", "where", "either x half", "y"),
    ]
    constants = {"half": Constant(np.zeros((3, 1, 1), np.float32)), "one": Constant(np.ones((1,), np.float32))}
    graph = build("logic", {"x": TensorType(x.shape, "float32")}, ["y"], nodes, constants)
    assert np.array_equal(litert(tflite_model(graph), {"x": x})["y"], run(graph, {"x": x})["y"])


def test_a_row_that_is_masked_altogether() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    graph = prepare(masked_softmax(x.shape)).graph
    wanted = run(graph, {"x": x})["y"]
    assert (wanted[:, :, 1] == 0).all() and (wanted[:, :, 0].sum(axis=-1) > 0.9).all()
    np.testing.assert_allclose(litert(tflite_model(graph), {"x": x})["y"], wanted, atol=1e-5)


def test_what_is_not_a_number_differs_from_itself() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    nodes = [node("root", "sqrt", "x", "root"), node("nan", "is_nan", "root", "y")]
    graph = build("nan", {"x": TensorType(x.shape, "float32")}, ["y"], nodes, {})
    assert np.array_equal(litert(tflite_model(graph), {"x": x})["y"], x < 0)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("nn.silu", {}),
        ("nn.softmax", {"axis": 2}),
        ("nn.log_softmax", {"axis": 0}),
        ("nn.gelu", {"approximate": "none"}),
        ("nn.gelu", {"approximate": "tanh"}),
        ("nn.hard_sigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("nn.softplus", {}),
        ("reciprocal", {}),
        ("cumsum", {"axis": 1, "exclusive": True, "reverse": True}),
        ("cumsum", {"axis": -1}),
        ("broadcast_to", {"shape": (3, 2, 3, 4, 6)}),
        ("argmax", {"axis": 1, "keepdims": True}),
        ("argmin", {"axis": -1, "keepdims": False}),
    ],
)
@pytest.mark.parametrize("behind", ["", "pool"])
def test_functions_that_tflite_has_in_parts_or_under_another_name(op: str, attrs: dict[str, Attr], behind: str) -> None:
    """Behind a pool the file has channels last."""
    x = np.random.default_rng(0).normal(scale=30, size=(2, 3, 4, 6)).astype(np.float32)
    nodes = [node("last", op, "p" if behind else "x", "y", **attrs)]
    pool = node("pool", "nn.max_pool2d", "x", "p", pool_size=(1, 1), strides=(1, 1))
    graph = build("parts", {"x": TensorType(x.shape, "float32")}, ["y"], [pool, *nodes] if behind else nodes, {})
    theirs = litert(tflite_model(graph), {"x": x})["y"]
    np.testing.assert_allclose(theirs, run(graph, {"x": x})["y"], rtol=1e-4, atol=1e-4)
    assert theirs.dtype == graph.types["y"].dtype


def test_elements_are_picked_by_their_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, 7)).astype(np.float32)
    nodes = [
        Node("best", "topk", ("x",), ("values", "places"), FrozenMap({"k": 3})),
        node("picked", "gather_nd", "values where", "y"),
    ]
    constants = {"where": Constant(np.array([[0, 2], [3, 1]], np.int64))}
    graph = build("picks", {"x": TensorType(x.shape, "float32")}, ["y", "places"], nodes, constants)
    theirs = litert(tflite_model(graph), {"x": x})
    for name, array in run(graph, {"x": x}).items():
        assert np.array_equal(theirs[name], array)
        assert theirs[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("op", "attrs", "why"),
    [
        ("topk", {"k": 2, "largest": False}, "the smallest ones"),
        ("topk", {"k": 2, "axis": 1}, "another axis than the last"),
    ],
)
def test_picks_that_tflite_has_not_are_named(op: str, attrs: dict[str, Attr], why: str) -> None:
    kinds = {"x": TensorType((2, 3, 4), "float32")}
    graph = build("picks", kinds, ["y"], [Node("pick", op, ("x",), ("y", "z"), FrozenMap(attrs))], {})
    with pytest.raises(ExportError, match=why):
        tflite_model(graph)


@pytest.mark.parametrize(
    ("op", "attrs"), [("nn.lstm", {}), ("nn.gru", {}), ("nn.gru", {"linear_before_reset": True}), ("nn.rnn", {})]
)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent_layers_are_written_out(op: str, attrs: dict[str, Attr], direction: str) -> None:
    rng, kind = np.random.default_rng(0), OPS[op]
    assert issubclass(kind, Recurrent)
    ways, steps, batch, units, rows = 1 + (direction == "bidirectional"), 4, 2, 3, 3 * kind.gates
    shapes = {"w": (ways, rows, 5), "r": (ways, rows, units), "b": (ways, 2 * rows)}
    constants = {name: Constant(rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()}
    states = ["h", "c"][: kind.states]
    feeds = {"x": rng.normal(size=(steps, batch, 5)).astype(np.float32)}
    feeds |= {name: rng.normal(size=(ways, batch, units)).astype(np.float32) for name in states}
    outputs = ("y", *(f"last {name}" for name in states))
    layer = Node("layer", op, ("x", *shapes, *states), outputs, FrozenMap({**attrs, "direction": direction}))
    types = {name: TensorType(array.shape, "float32") for name, array in feeds.items()}
    graph = build("recurrent", types, outputs, [layer], constants)
    file = tflite_model(graph)
    theirs = litert(file, feeds)
    for name, array in run(graph, feeds).items():
        np.testing.assert_allclose(theirs[name], array, rtol=1e-4, atol=1e-5)
    weights = constants["r"].array[0, -units:].tobytes()
    assert file.count(weights) == 1  # all steps share them
