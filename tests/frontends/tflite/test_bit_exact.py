"""Every layer of real quantized models, on fifty inputs: LiteRT's reference kernels, to the last bit.

Photographs go into the models that see. The others hear, and there are no recordings here: they get made-up
spectrograms, smooth in time and falling with frequency, which fill the range of the input as real ones do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import qbench as qb
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import quantize
from qbench.runtime.interpreter import run
from tests.frontends.tflite.checking import Array, in_file_layout, shared_values
from tests.frontends.tflite.test_real_models import QUANTIZED, model_path

COUNT, INTERPRETED = 50, 2


def photographs(shared_data: Path, shape: tuple[int, ...], q: QParams) -> Array:
    """Images of the calibration set at the model's size, their bytes as its integers."""
    files = sorted((shared_data / "imagenet" / "calib").glob("*.jpg"))[::4][:COUNT]
    size = (shape[2], shape[1])
    pixels = [np.asarray(Image.open(file).convert("RGB").resize(size, Image.Resampling.BICUBIC)) for file in files]
    return (np.stack(pixels).astype(np.int16) + q.qmin).astype(q.dtype)


def spectrograms(shared_data: Path, shape: tuple[int, ...], q: QParams) -> Array:
    """Noise smoothed along time, louder at low frequencies, as wide as the input's integers reach."""
    rng = np.random.default_rng(7)
    frames = (5, 128) if shape == (1, 640) else (shape[1], shape[2])
    noise = rng.standard_normal((COUNT, frames[0] + 4, frames[1]))
    smooth = sum(noise[:, i : i + frames[0]] for i in range(5)) / np.sqrt(5)
    low, high = q.ranges[0]
    loudness = np.linspace(0.8, 0.2, frames[1]) + smooth * 0.2
    return quantize((low + (high - low) * loudness).astype(np.float32), q).reshape(COUNT, *shape[1:])


class Reference:
    """LiteRT's interpreter, its tensors by name."""

    def __init__(self, path: Path) -> None:
        lite = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert has no wheel here")
        self.interpreter = lite.Interpreter(
            str(path),
            experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self.interpreter.allocate_tensors()
        self.numbers = {detail["name"]: detail["index"] for detail in self.interpreter.get_tensor_details()}

    def __call__(self, x: Array) -> Callable[[str], Array]:
        self.interpreter.set_tensor(self.interpreter.get_input_details()[0]["index"], x)
        self.interpreter.invoke()
        return lambda name: self.interpreter.get_tensor(self.numbers[name])


@pytest.mark.parametrize("name", QUANTIZED)
def test_every_layer_is_equal_to_the_last_bit(shared_data: Path, name: str) -> None:
    path = model_path(shared_data, name)
    graph, reference = qb.load(path), Reference(path)
    source = graph.inputs[0]
    shape = tuple(1 if isinstance(size, str) else size for size in graph.types[source].shape)
    make = spectrograms if "ad_" in name or "kws" in name else photographs
    inputs = make(shared_data, shape, graph.qparams[source])
    names = shared_values(graph, reference.numbers)
    assert len(inputs) == COUNT
    assert len(names) >= len(reference.interpreter._get_ops_details())  # each operator's result, and the input
    program, fused = qb.plan(graph, keep=names), qb.plan(graph)
    for number, x in enumerate(inputs[:, np.newaxis]):
        theirs = reference(x)
        made: list[dict[str, Any]] = [program.run({source: x}, keep=names)]
        (output,) = graph.outputs
        assert np.array_equal(fused.run({source: x})[output], made[0][output]), f"input {number}"
        if number < INTERPRETED:
            made.append(run(graph, {source: x}, keep=names))
        for ours in made:
            for value in names:
                got, want = in_file_layout(graph, value, ours[value]), theirs(value)
                assert np.array_equal(got, want), f"input {number}, {value}: {(got != want).sum()} differ"
