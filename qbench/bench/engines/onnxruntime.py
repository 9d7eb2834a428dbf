"""onnxruntime: its own kernels, and its own quantizer for the int8 file that both peers run."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import version_converter

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.bench.engines.strategy import Strategy, fastest, joined, samples

_ERRORS_ONLY = 3
_PER_CHANNEL = 13  # the opset from which on DequantizeLinear has an axis
Run = Callable[[Mapping[str, NDArray[Any]]], Outputs]


def open_task(task: Task) -> Strategy:
    """A session on the CPU, all optimizations on, that takes the batch as a whole or one sample in each thread."""
    arrays, pieces = read_arrays(task.inputs), samples(task)
    run = _session(task, task.threads, task.sizes)
    strategies = [Strategy(_settings(task.threads), lambda: run(arrays))]
    if pieces:
        run_one = _session(task, 1, dict.fromkeys(task.sizes, 1))
        pool = ThreadPoolExecutor(task.threads)
        settings = {**_settings(1), "samples at once": task.threads}
        strategies.append(Strategy(settings, lambda: joined(list(pool.map(run_one, pieces)))))
    return fastest(strategies)


def _settings(threads: int) -> dict[str, object]:
    return {"intra_op_num_threads": threads, "inter_op_num_threads": 1}


def _session(task: Task, threads: int, sizes: Mapping[str, int]) -> Run:
    runtime: Any = import_module("onnxruntime")
    options = _options()
    for name, value in _settings(threads).items():
        setattr(options, name, value)
    for symbol, size in sizes.items():
        options.add_free_dimension_override_by_name(symbol, size)
    session = runtime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(None, arrays)


def _options() -> Any:
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    return options


def quantize(model: Path, samples: Sequence[Path], target: Path) -> None:
    """Write the int8 form of a float model: QDQ, uint8 activations, int8 weights per channel, ranges min to max."""
    _quantize(_prepared(model, target.with_suffix(".prepared.onnx")), samples, target)


def sweep(
    model: Path, calibration: Sequence[Path], evaluation: Sequence[Path], layers: Sequence[str], folder: Path
) -> float:
    """Seconds for `quantize` with each of the layers in float, one at a time, and the error of the output of each."""
    runtime: Any = import_module("onnxruntime")
    target, feeds = folder / "swept.onnx", [read_arrays(path) for path in evaluation]

    def outputs(path: Path) -> list[NDArray[Any]]:
        session = runtime.InferenceSession(str(path), _options(), providers=["CPUExecutionProvider"])
        return [session.run(None, feed)[0] for feed in feeds]

    begin = perf_counter()
    prepared = _prepared(model, folder / "swept.prepared.onnx")
    wanted = np.concatenate([output.ravel() for output in outputs(prepared)])
    for layer in layers:
        _quantize(prepared, calibration, target, [layer])
        np.square(np.concatenate([output.ravel() for output in outputs(target)]) - wanted).sum()
    return perf_counter() - begin


def _prepared(model: Path, target: Path) -> Path:
    """The file as its quantizer wants it: optimized, sizes told, and of an opset that knows scales per channel."""
    preparation: Any = import_module("onnxruntime.quantization.shape_inference")
    preparation.quant_pre_process(str(model), str(target), skip_symbolic_shape=True)
    onnx: Any = import_module("onnx")
    prepared = onnx.load(target)
    if any(opset.domain in ("", "ai.onnx") and opset.version < _PER_CHANNEL for opset in prepared.opset_import):
        onnx.save(version_converter.convert_version(prepared, _PER_CHANNEL), target)
    return target


def _quantize(prepared: Path, samples: Sequence[Path], target: Path, in_float: Sequence[str] = ()) -> None:
    quantization: Any = import_module("onnxruntime.quantization")
    quantization.quantize_static(
        str(prepared),
        str(target),
        _Samples(samples),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        reduce_range=False,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        calibrate_method=quantization.CalibrationMethod.MinMax,
        nodes_to_exclude=list(in_float),
    )


class _Samples:
    """Samples one by one, as onnxruntime's CalibrationDataReader gives them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._left = iter(paths)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        path = next(self._left, None)
        return None if path is None else read_arrays(path)
