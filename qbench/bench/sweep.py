"""How long a sweep takes: one layer after the other in float while the others are quantized."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from qbench.bench.engines import write_arrays
from qbench.bench.interactive import first
from qbench.bench.machine import describe, installed
from qbench.bench.subject import find
from qbench.data.load import Samples
from qbench.data.samples import samples as each
from qbench.errors import ModelError
from qbench.frontends.tflite import is_tflite
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.progress import StageProgress
from qbench.session.session import Session

_CALIBRATION, _EVALUATION = 4, 32  # samples


@dataclass(frozen=True)
class Sweep:
    """What was measured.

    Parameters
    ----------
    model, data
        Which model, on what.
    samples
        How many the output was measured on.
    layers
        Names of the layers that were put in float, each by itself.
    qbench_s
        Seconds from the arrays to the table, calibration included.
    onnxruntime_s
        Of the same through onnxruntime's API: for each layer one `quantize_static` and a run of all samples. None
        where it is not installed, or does not read the file.
    """

    model: str
    data: str
    samples: int
    layers: tuple[str, ...]
    qbench_s: float
    onnxruntime_s: float | None

    def to_json(self) -> str:
        """Everything, and the machine."""
        return json.dumps({**asdict(self), "machine": describe()}, indent=1, allow_nan=False)

    def __str__(self) -> str:
        lines = [f"{len(self.layers)} layers", f"qbench       {self.qbench_s:8.2f} s"]
        if self.onnxruntime_s is not None:
            times = self.onnxruntime_s / self.qbench_s
            lines.append(f"onnxruntime  {self.onnxruntime_s:8.2f} s, {times:.1f} times as long")
        return "\n".join(lines)


def sweep(
    model: str,
    samples: Callable[[Graph], tuple[Samples, str]],
    shapes: Mapping[str, tuple[Dim, ...]],
    told: StageProgress | None = None,
) -> Sweep:
    """Time a sweep over all sums of products, here and in onnxruntime.

    Parameters
    ----------
    model, samples, shapes
        As for :func:`~qbench.bench.interactive.interactive`.
    told
        Called with how many of the two are done.

    Raises
    ------
    ModelError
        No such model, or one in which nothing is quantized.
    """

    def tell(done: int) -> None:
        if told is not None:
            told("sweeps", done, 2)

    with TemporaryDirectory() as place:
        (source,) = find([model], Path(place), shapes)
        (x, _), data = samples(source.graph)
        calibration, evaluation = first(x, _CALIBRATION), first(x, _EVALUATION)
        pieces = list(each(source.graph, evaluation))
        Session(source.graph, calibration, first(x, 1)).sensitivity(progress=False)  # machine code is made and loaded
        tell(0)
        begin = time.perf_counter()
        table = Session(source.graph, calibration, evaluation).sensitivity(progress=False)
        taken = time.perf_counter() - begin
        layers = tuple(map(str, table["name"]))
        if not layers:
            raise ModelError("nothing in this model is quantized, so there is nothing to sweep over")
        tell(1)
        peer = None
        if installed("onnxruntime") and not is_tflite(source.path):
            from qbench.bench.engines import onnxruntime

            files: list[Path] = []
            for number, sample in enumerate(pieces):
                files.append(Path(place) / f"sample_{number}.npz")
                write_arrays(files[-1], sample)
            peer = onnxruntime.sweep(source.path, files[:_CALIBRATION], files, layers, Path(place))
        tell(2)
        return Sweep(source.name, data, len(pieces), layers, taken, peer)
