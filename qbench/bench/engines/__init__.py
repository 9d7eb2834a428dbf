"""What a process of the benchmark can run; each module knows one runtime, and imports it when it is asked to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from qbench.data.arrays import read_arrays, write_arrays

__all__ = [
    "Engine",
    "Gauge",
    "Outputs",
    "Profiled",
    "Task",
    "engine",
    "gauge",
    "quantize",
    "read_arrays",
    "write_arrays",
]

Outputs = Sequence[NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """What an engine is asked to run.

    Parameters
    ----------
    model
        An ONNX or TFLite file; for qbench an archive.
    dtype
        "int8" or "float32": what the model mostly computes in.
    threads
        How many it may use.
    inputs
        An ``.npz`` with the arrays to feed, by name.
    sizes
        What the symbols in the model's input shapes stand for.
    batched
        The inputs whose first axis counts samples, any number of them.
    """

    model: str
    dtype: str
    threads: int
    inputs: str
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    batched: Sequence[str] = ()


class Engine(Protocol):
    """A runtime with a model loaded and inputs at hand; made from a :class:`Task`."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What was set, for those who want to time it themselves; JSON."""
        ...

    def run(self) -> Outputs:
        """One inference; the model's outputs in their order, good until the next."""
        ...


@runtime_checkable
class Profiled(Protocol):
    """An engine that knows where its time goes."""

    def profile(self) -> list[tuple[str, str, float, int]]:
        """Name, kernel, seconds and multiply-accumulates of every step."""
        ...


class Gauge(Protocol):
    """Measures the machine itself."""

    def read(self) -> float | None:
        """One reading; None where the machine was too busy for it."""
        ...


def engine(name: str, task: Task) -> Engine:
    """Load a task's model: "qbench", "onnxruntime", "openvino" or "litert"."""
    return _module("program" if name == "qbench" else name).open_task(task)


def gauge(name: str, *settings: str) -> Gauge:
    """ "peak" (multiply-accumulates per second, given a dtype) or "round_trip" (seconds)."""
    return _module(name).Gauge(*settings)


def quantize(name: str, model: str, samples: Sequence[str], target: str) -> None:
    """Write the int8 form that a peer's own quantizer makes of an ONNX model: "onnxruntime" or "openvino" (NNCF)."""
    _module(name).quantize(Path(model), [Path(sample) for sample in samples], Path(target))


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")
