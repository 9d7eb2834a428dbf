"""OpenVINO, and NNCF's quantizer where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from qbench.bench.engines import Outputs, Task, read_arrays

__all__ = ["Session", "quantize"]


class Session:
    """A compiled model and one request; inputs and outputs are shared with NumPy."""

    def __init__(self, task: Task) -> None:
        openvino: Any = import_module("openvino")
        core = openvino.Core()
        model = core.read_model(task.model)
        self._inputs = read_arrays(task.inputs)  # requests do not keep them alive
        model.reshape({name: list(array.shape) for name, array in self._inputs.items()})
        settings: dict[str, object] = {"INFERENCE_NUM_THREADS": task.threads, "PERFORMANCE_HINT": "LATENCY"}
        if task.dtype == "float32":  # by default it computes in bfloat16 where the processor can
            settings["INFERENCE_PRECISION_HINT"] = "f32"
        self.settings = settings
        compiled = core.compile_model(model, "CPU", settings)
        self._request = compiled.create_infer_request()
        for name, array in self._inputs.items():
            self._request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        self._outputs = [self._request.get_tensor(output) for output in compiled.outputs]

    def run(self) -> Outputs:
        """One inference."""
        self._request.infer()
        return [tensor.data for tensor in self._outputs]


def quantize(model: Path, samples: Sequence[Path], target: Path) -> None:
    """Write the int8 form that NNCF makes of a float model."""
    openvino: Any = import_module("openvino")
    nncf: Any = import_module("nncf")
    quantized = nncf.quantize(openvino.Core().read_model(model), nncf.Dataset([read_arrays(path) for path in samples]))
    openvino.save_model(quantized, target, compress_to_fp16=False)
