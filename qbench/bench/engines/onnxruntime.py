"""onnxruntime: its own kernels, and its own quantizer for the int8 file that both peers run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.bench.engines.strategy import Strategy, fastest, joined, samples

__all__ = ["open_task", "quantize"]

_ERRORS_ONLY = 3
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
    options = runtime.SessionOptions()
    for name, value in _settings(threads).items():
        setattr(options, name, value)
    options.log_severity_level = _ERRORS_ONLY
    for symbol, size in sizes.items():
        options.add_free_dimension_override_by_name(symbol, size)
    session = runtime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(None, arrays)


def quantize(model: Path, samples: Sequence[Path], target: Path) -> None:
    """Write the int8 form of a float model: QDQ, uint8 activations, int8 weights per channel, ranges min to max."""
    quantization: Any = import_module("onnxruntime.quantization")
    preparation: Any = import_module("onnxruntime.quantization.shape_inference")
    prepared = target.with_suffix(".prepared.onnx")
    preparation.quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
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
    )


class _Samples:
    """Samples one by one, as onnxruntime's CalibrationDataReader gives them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._left = iter(paths)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        path = next(self._left, None)
        return None if path is None else read_arrays(path)
