"""LiteRT, with the XNNPACK delegate that it takes by default: its fastest."""

from importlib import import_module
from typing import Any

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.bench.engines.strategy import Strategy


def open_task(task: Task) -> Strategy:
    """An interpreter, its inputs set once: only the inference is timed."""
    lite: Any = import_module("ai_edge_litert.interpreter")
    interpreter = lite.Interpreter(model_path=task.model, num_threads=task.threads)
    # both list a model's inputs in the file's order
    given = list(zip(interpreter.get_input_details(), read_arrays(task.inputs).values(), strict=True))
    for detail, array in given:
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in given:
        interpreter.set_tensor(detail["index"], array)
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run() -> Outputs:
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return Strategy({"num_threads": task.threads, "kernels": "XNNPACK"}, run)
