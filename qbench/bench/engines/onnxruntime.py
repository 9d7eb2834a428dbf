"""onnxruntime: its own kernels, and its own quantizer for the int8 file that both peers run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbench.bench.engines import Outputs, Task, read_arrays

__all__ = ["Session", "quantize"]

_ERRORS_ONLY = 3


class Session:
    """A session on the CPU, all optimizations on."""

    def __init__(self, task: Task) -> None:
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = task.threads, 1
        options.log_severity_level = _ERRORS_ONLY
        for symbol, size in task.sizes.items():
            options.add_free_dimension_override_by_name(symbol, size)
        self._session = runtime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
        self._inputs = read_arrays(task.inputs)
        self.settings = {"intra_op_num_threads": task.threads, "inter_op_num_threads": 1}

    def run(self) -> Outputs:
        """One inference."""
        return self._session.run(None, self._inputs)


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
