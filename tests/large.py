"""A made model with its weights in another file, imported, calibrated and exported: ``python -m tests.large --gib 4``.

It says what was resident at most in each step, and ends with status 1 where that is more than 1.3 times the weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import onnx
from onnx import TensorProto, helper

import qbench as qb
from qbench.calibration.collect import collect
from qbench.exporters.onnx_qdq import write_onnx
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from tests.memory import resident

T = TypeVar("T")


def make(folder: Path, layers: int, width: int) -> Path:
    """Dense layers, float32[width, width] each, one after the other in one file."""
    rng, nodes, weights, value = np.random.default_rng(0), list[onnx.NodeProto](), list[TensorProto](), "x"
    with (folder / "weights.bin").open("wb") as file:
        for number in range(layers):
            array = rng.standard_normal((width, width), np.float32) / np.float32(width**0.5)
            name = f"w{number}"
            tensor = TensorProto(name=name, dims=array.shape, data_type=TensorProto.FLOAT)
            tensor.data_location = TensorProto.EXTERNAL
            places = {"location": "weights.bin", "offset": file.tell(), "length": array.nbytes}
            for key, place in places.items():
                tensor.external_data.add(key=key, value=str(place))
            file.write(array.tobytes())
            nodes.append(helper.make_node("Gemm", [value, name], [f"d{number}"], f"dense{number}", transB=1))
            nodes.append(helper.make_node("Relu", [f"d{number}"], [f"r{number}"], f"relu{number}"))
            weights.append(tensor)
            value = f"r{number}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    return folder / "large.onnx"


def job(model: Path, width: int, tell: Callable[[str], object] = print) -> qb.Graph:
    """Import, calibrate, quantize, export; the integer graph."""

    def step(what: str, work: Callable[[], T]) -> T:
        made = work()
        tell(f"{what}: {resident() / 2**30:.3f} GiB now, at most {resident('VmHWM') / 2**30:.3f} GiB so far")
        return made

    graph = step("import", lambda: qb.load(model))
    prepared = step("prepare", lambda: prepare(graph))
    x = np.random.default_rng(1).standard_normal((4, width), np.float32)
    found = step("calibrate", lambda: collect(prepared.graph, x))
    config = QuantConfig.of_preset("int8")
    quantized = step("quantize", lambda: quantize_graph(prepared, found, config))
    step("export", lambda: write_onnx(quantized.annotated, model.with_name("large.qdq.onnx")))
    return quantized.graph


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--width", type=int, default=4096)
    options = parser.parse_args()
    layers = round(options.gib * 2**30 / 4 / options.width**2)
    with TemporaryDirectory() as folder:
        model = make(Path(folder), layers, options.width)
        before = resident()
        print(f"{layers} layers; {before / 2**30:.3f} GiB before")
        job(model, options.width)
    ratio = resident("VmHWM") / (layers * options.width**2 * 4)
    print(f"at most {ratio:.2f} times the weights")
    return int(ratio > 1.3)


if __name__ == "__main__":
    sys.exit(main())
