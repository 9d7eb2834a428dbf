"""Ops over volumes: their results are onnxruntime's, in float, quantized, and exported again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench import Session, export_onnx
from qbench.errors import ModelError, UnsupportedOpsError
from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import run
from tests.frontends.models import check, model, node, random, reference, save
from tests.frontends.onnx.quantizing import Form, quantized

VOLUME = random(2, 4, 5, 6, 7)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
NONE = np.zeros(0, np.float32)

triples = st.tuples(*[st.integers(1, 3)] * 3)
small = st.tuples(*[st.integers(0, 1)] * 3)


def one(folder: Path, op: str, constants: dict[str, np.ndarray], opset: int = 17, **attrs: Any) -> Path:
    proto = model(
        [node(op, ["x", *constants], ["y"], "layer", **attrs)],
        {"x": ["N", *VOLUME.shape[1:]]},
        constants={name: array for name, array in constants.items() if name},
        opset=opset,
    )
    return save(proto, folder)


def layers(graph: Graph) -> list[str]:
    return [n.name for n in graph.nodes if "conv2d" in n.op]


@given(
    kernel=triples, strides=triples, dilations=triples, pads=st.tuples(small, small), groups=st.sampled_from([1, 2, 4])
)
@settings(max_examples=60, deadline=None)
def test_convolutions(kernel: tuple, strides: tuple, dilations: tuple, pads: tuple, groups: int) -> None:
    sizes = zip(VOLUME.shape[2:], kernel, dilations, *pads, strict=True)
    assume(all((k - 1) * d < size + front + back for size, k, d, front, back in sizes))
    window = {"strides": strides, "dilations": dilations, "pads": [*pads[0], *pads[1]]}
    constants = {"w": random(8, 4 // groups, *kernel), "b": random(8)}
    with TemporaryDirectory() as folder:
        path = one(Path(folder), "Conv", constants, group=groups, **window)
        graph = check(path, {"x": VOLUME})
    assert layers(graph) == ["layer"]
    if kernel[1:] == (1, 1) and not any((*pads[0][1:], *pads[1][1:])):
        assert [n.op for n in graph.nodes if n.op not in ("reshape", "strided_slice")] == ["nn.conv2d", "nn.bias_add"]
        assert ("strided_slice" in [n.op for n in graph.nodes]) == (strides[1:] != (1, 1))


@given(
    kernel=st.tuples(*[st.integers(1, 4)] * 3),
    strides=triples,
    dilations=triples,
    pads=st.tuples(small, small),
    extra=small,
    groups=st.sampled_from([1, 2, 4]),
)
@settings(max_examples=80, deadline=None)
def test_transposed_convolutions(
    kernel: tuple, strides: tuple, dilations: tuple, pads: tuple, extra: tuple, groups: int
) -> None:
    extra = tuple(min(more, stride - 1) for more, stride in zip(extra, strides, strict=True))
    attrs = {"output_padding": extra, "pads": [*pads[0], *pads[1]]}
    constants = {"w": random(4, 8 // groups, *kernel), "b": random(8)}
    with TemporaryDirectory() as folder:
        path = one(
            Path(folder), "ConvTranspose", constants, group=groups, strides=strides, dilations=dilations, **attrs
        )
        graph = check(path, {"x": VOLUME})
    assert "layer" in layers(graph)


@pytest.mark.parametrize(
    "attrs", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"output_shape": [10, 12, 17]}], ids=str
)
def test_transposed_convolutions_of_a_wanted_size(tmp_path: Path, attrs: dict) -> None:
    path = one(tmp_path, "ConvTranspose", {"w": random(4, 6, 3, 2, 4)}, strides=[2, 2, 2], **attrs)
    check(path, {"x": VOLUME})


def test_taps_that_do_not_overlap_are_one_layer(tmp_path: Path) -> None:
    path = one(tmp_path, "ConvTranspose", {"w": random(4, 6, 2, 2, 2), "b": random(6)}, strides=[2, 2, 2])
    graph = check(path, {"x": VOLUME})
    assert layers(graph) == ["layer"]
    assert not {"concatenate", "strided_slice", "nn.pad"} & {n.op for n in graph.nodes}


def test_volumes_too_thin_for_their_windows(tmp_path: Path) -> None:
    for op, attrs in (("Conv", {"dilations": [3, 1, 1]}), ("ConvTranspose", {"pads": [4, 0, 0, 4, 0, 0]})):
        with pytest.raises(ModelError, match=r"'layer'.*no window fits into the 5 planes of 'x' and its pads"):
            load(one(tmp_path, op, {"w": random(4, 4, 3, 2, 2)}, **attrs))


def test_weights_computed_at_run_time(tmp_path: Path) -> None:
    w = random(6, 4, 3, 1, 1)
    proto = model([node("Conv", ["x", "w"], ["y"])], {"x": VOLUME.shape, "w": w.shape})
    check(save(proto, tmp_path), {"x": VOLUME, "w": w})
    proto = model([node("ConvTranspose", ["x", "w"], ["y"])], {"x": VOLUME.shape, "w": [4, 6, 3, 1, 1]})
    with pytest.raises(UnsupportedOpsError, match="over volumes must be constant"):
        load(save(proto, tmp_path))


def positions(coordinates: str, size: int, made: int, scale: float) -> np.ndarray:
    x = np.arange(made)
    if coordinates == "asymmetric":
        return x / scale
    if coordinates == "align_corners":
        return x * (size - 1) / max(made - 1, 1)
    return x * 0.0 if coordinates == "pytorch_half_pixel" and made == 1 else (x + 0.5) / scale - 0.5


@given(
    mode=st.sampled_from(["nearest", "linear"]),
    coordinates=st.sampled_from(COORDINATES),
    rounding=st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
    sizes=st.tuples(*[st.integers(1, 11)] * 3),
    by_scales=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_resizes(mode: str, coordinates: str, rounding: str, sizes: tuple, by_scales: bool) -> None:
    old = VOLUME.shape[2:]
    factors = np.float32([1, 1, *(new / size for new, size in zip(sizes, old, strict=True))])
    made = [int(np.float32(size) * factor) for size, factor in zip(old, factors[2:], strict=True)]
    assume(min(made) > 0)
    last: dict[str, np.ndarray] = (
        {"": NONE, "scales": factors} if by_scales else {"r": NONE, "s": NONE, "sizes": np.array([2, 4, *sizes])}
    )
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attrs["nearest_mode"] = rounding
        for axis in range(3):  # onnxruntime has positions in float32: what lies between two elements may go either way
            places = positions(coordinates, old[axis], made[axis] if by_scales else sizes[axis], factors[axis + 2])
            near = places + (0 if rounding in ("floor", "ceil") else 0.5)
            assume(sizes[axis] == old[axis] or np.abs(near - np.rint(near)).min() > 1e-4)
    proto = model(
        [node("Resize", ["x", *last], ["y"], "layer", **attrs)],
        {"x": VOLUME.shape},
        constants={name: array for name, array in last.items() if name},
        opset=13,
    )
    with TemporaryDirectory() as folder:
        graph = check(save(proto, Path(folder)), {"x": VOLUME})
    resized = [n for n in graph.nodes if n.op == "image.resize2d"]
    changed = [new != size for new, size in zip(sizes, old, strict=True)]
    assert len(resized) == changed[0] + (changed[1] or changed[2])
    assert not resized or resized[0].name == "layer"


def test_upsampling_that_asks_to_be_smooth_and_other_forms(tmp_path: Path) -> None:
    twice = {"": NONE, "scales": np.float32([1, 1, 2, 2, 2])}
    check(one(tmp_path, "Resize", twice, 18, mode="linear", antialias=1), {"x": VOLUME})
    check(one(tmp_path, "Resize", {"scales": twice["scales"]}, 10, mode="nearest"), {"x": VOLUME})
    check(one(tmp_path, "Upsample", {"scales": twice["scales"]}, 9, mode="linear"), {"x": VOLUME})
    depth = {"": NONE, "scales": np.float32([3])}
    check(one(tmp_path, "Resize", depth, 18, mode="linear", axes=[2]), {"x": VOLUME})
    tf = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    check(one(tmp_path, "Resize", {"r": NONE, "scales": np.float32([1, 1, 2, 2, 1])}, 11, **tf), {"x": VOLUME})


@pytest.mark.parametrize(
    ("factors", "attrs", "told"),
    [
        ([1, 1, 2, 2, 2], {"mode": "cubic"}, "export it with mode nearest or linear"),
        ([1, 1, 0.5, 1, 1], {"mode": "linear", "antialias": 1}, "antialiased resizing of volumes"),
        ([1, 2, 2, 2, 1], {"mode": "nearest"}, "only what follows the first two"),
    ],
)
def test_what_volumes_are_not_resized_by(tmp_path: Path, factors: list, attrs: dict, told: str) -> None:
    with pytest.raises(UnsupportedOpsError, match=told):
        load(one(tmp_path, "Resize", {"": NONE, "scales": np.float32(factors)}, 18, **attrs))


def network(folder: Path) -> Path:
    """Up and down through every kind of layer."""
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], "whole", pads=[1] * 6),
        node("Relu", ["c0"], ["r0"]),
        node("MaxPool", ["r0"], ["p"], kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
        node("Conv", ["p", "w1", "b1"], ["c1"], "planes", pads=[0, 1, 1, 0, 1, 1]),
        node("Conv", ["c1", "w2", "b2"], ["c2"], "depth", pads=[1, 0, 0, 1, 0, 0]),
        node("Relu", ["c2"], ["r2"]),
        node("ConvTranspose", ["r2", "w3", "b3"], ["t3"], "twice", strides=[2, 2, 2]),
        node("Resize", ["p", "", "scales"], ["z"], "resize", mode="linear"),
        node("Concat", ["t3", "z"], ["joined"], axis=1),
        node("ConvTranspose", ["joined", "w4"], ["y"], "overlap", strides=[2, 1, 1], pads=[1] * 6),
    ]
    shapes = {"w0": (8, 3, 3, 3, 3), "w1": (12, 8, 1, 3, 3), "w2": (8, 12, 3, 1, 1), "w3": (8, 6, 2, 2, 2)}
    shapes |= {"w4": (14, 5, 3, 3, 3), "b0": (8,), "b1": (12,), "b2": (8,), "b3": (6,)}
    constants = {name: random(*shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
    constants["scales"] = np.float32([1, 1, 2, 2, 2])
    return save(model(nodes, {"x": ["N", 3, 4, 6, 8]}, constants=constants), folder)


def test_a_quantized_network_and_its_export(tmp_path: Path) -> None:
    x = random(16, 3, 4, 6, 8)
    graph = check(network(tmp_path), {"x": x})
    names = ["whole", "planes", "depth", "twice", "overlap"]
    assert [name for name in layers(graph) if "." not in name] == names
    session = Session(graph, calibration=x, config=QuantConfig(rounding="fp32_rne"))
    session.run()
    made = session.graph
    for name in names:
        q = made.qparams[made.by_name[name].inputs[1]]
        assert (q.dtype, q.axis) == ("int8", 1 if name in ("twice", "overlap") else 0)
    want, got = run(graph, {"x": x})["y"], run(made, {"x": x})["y"]
    assert 10 * np.log10(np.square(want).mean() / np.square(want - got).mean()) > 25
    export_onnx(session, path := tmp_path / "q.onnx")
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    step = made.qparams[made.by_name["y.dequantize"].inputs[0]].scales[0]
    assert np.abs(theirs - got).max() <= 2.01 * step
    assert (np.abs(theirs - got) > 0.01 * step).mean() < 0.05
    np.testing.assert_array_equal(run(load(path), {"x": x})["y"], got)


@pytest.mark.parametrize("per_channel", [True, False])
def test_files_that_onnxruntime_quantized(tmp_path: Path, per_channel: bool) -> None:
    """Scales per channel go where the taps of a transposed convolution go."""
    graph = load(path := quantized(network(tmp_path), Form(True, per_channel, False), tmp_path))
    x = random(8, 3, 4, 6, 8)
    got, theirs = run(graph, {"x": x})["y"], reference(path, {"x": x})["y"]
    apart = np.abs(got - theirs) / np.abs(theirs[theirs != 0]).min()
    assert apart.max() < 1.01  # of their steps: a tie or two, since they sum in another order
    assert (apart > 0.01).mean() < 0.005
    assert {graph.constants[name].array.dtype.name for name in graph.constants if name[0] == "w"} == {"int8"}


def test_integers_are_rounded_once_whatever_is_resized(tmp_path: Path) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("Resize", ["q", "", "scales"], ["r"], mode="linear"),
        node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.03), "z": np.uint8(128), "scales": np.float32([1, 1, 2, 2, 2])}
    path = save(model(nodes, {"x": VOLUME.shape}, constants=constants), tmp_path)
    got, theirs = run(load(path), {"x": VOLUME})["y"], reference(path, {"x": VOLUME})["y"]
    assert np.abs(got - theirs).max() < 0.031  # theirs are cut, not rounded
