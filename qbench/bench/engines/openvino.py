"""OpenVINO, and NNCF's quantizer where it is installed."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.bench.engines.strategy import Strategy, fastest, joined, samples


def open_task(task: Task) -> Strategy:
    """A model compiled for the batch as a whole (hint: latency), or for one sample in each stream (throughput)."""
    pieces = samples(task)
    strategies = [_strategy(task, "LATENCY", [read_arrays(task.inputs)])]
    if pieces:
        strategies.append(_strategy(task, "THROUGHPUT", pieces))
    return fastest(strategies)


def _strategy(task: Task, hint: str, batches: Sequence[Mapping[str, NDArray[Any]]]) -> Strategy:
    openvino: Any = import_module("openvino")
    core = openvino.Core()
    model = core.read_model(task.model)
    model.reshape({name: list(array.shape) for name, array in batches[0].items()})
    settings: dict[str, object] = {"INFERENCE_NUM_THREADS": task.threads, "PERFORMANCE_HINT": hint}
    if task.dtype == "float32":  # by default it computes in bfloat16 where the processor can
        settings["INFERENCE_PRECISION_HINT"] = "f32"
    compiled = core.compile_model(model, "CPU", settings)
    held = [(compiled.create_infer_request(), arrays) for arrays in batches]  # requests do not keep arrays alive
    for request, arrays in held:
        for name, array in arrays.items():
            request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run() -> Outputs:
        if len(held) == 1:
            held[0][0].infer()
        else:
            for request, _ in held:
                request.start_async()
            for request, _ in held:
                request.wait()
        outputs = [[request.get_tensor(output).data for output in compiled.outputs] for request, _ in held]
        return joined(outputs) if len(held) > 1 else outputs[0]

    return Strategy({**settings, "requests": len(held)}, run)


def quantize(model: Path, samples: Sequence[Path], target: Path) -> None:
    """Write the int8 form that NNCF makes of a float model."""
    openvino: Any = import_module("openvino")
    nncf: Any = import_module("nncf")
    quantized = nncf.quantize(openvino.Core().read_model(model), nncf.Dataset([read_arrays(path) for path in samples]))
    openvino.save_model(quantized, target, compress_to_fp16=False)
