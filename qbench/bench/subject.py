"""A model, made ready for every engine that it is timed in: the same weights, the same inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.bench.engines import write_arrays
from qbench.bench.networks import NETWORKS
from qbench.calibration.collect import collect
from qbench.data.samples import samples
from qbench.errors import ModelError, nearest, shown
from qbench.evaluate.measure import deviation
from qbench.frontends import load
from qbench.frontends.tflite import is_tflite
from qbench.ir import archive
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import Dim, dim_factors
from qbench.ops.products import macs
from qbench.passes.imported import Template, find_twin
from qbench.passes.legalize import LegalizePass
from qbench.passes.prepare import prepare
from qbench.quant.config import QuantConfig
from qbench.quantize.imported import as_reals
from qbench.quantize.quantized import quantize_graph
from qbench.runtime import interpreter
from qbench.runtime.programs import plan

_EQUAL_DB = 200.0  # stands for infinitely many
_SAMPLES = 4  # that ranges are measured on: enough for a speed, not for an accuracy


@dataclass(frozen=True)
class Subject:
    """A model on disk in the forms that engines read.

    Parameters
    ----------
    name
        As the table shows it.
    folder
        Where its files are.
    source
        The file that peers read.
    graph
        The prepared float graph; of a quantized file the file's own graph.
    macs
        Multiply-accumulates per sample.
    samples
        Files of arrays that ranges are measured on.
    reference
        The first output for the first sample, by `graph`.
    template
        A quantized file's float twin; None for a float file.
    """

    name: str
    folder: Path
    source: Path
    graph: Graph
    macs: float
    samples: tuple[Path, ...]
    reference: NDArray[Any]
    template: Template | None = None

    @property
    def is_tflite(self) -> bool:
        """Whether the file is LiteRT's; ONNX else."""
        return is_tflite(self.source)

    def archive(self, dtype: str) -> Path:
        """What qbench runs: the integer graph, or the prepared float graph (of a quantized file the float twin)."""
        return self.folder / f"{dtype}.qbench"

    def inputs(self, batch: int, dtype: str = "int8") -> dict[str, Any]:
        """The part of an engine's task (see `Task`) that says what to feed: a batch of random numbers.

        The float twin of a quantized file gets those that the integers stand for.

        Raises
        ------
        ModelError
            The model has another batch size, and only that.
        """
        symbol, fixed = _batch(self.graph)
        if symbol is None and fixed != batch:
            raise ModelError(
                f"the file fixes the batch at {fixed}; where the model allows, --shape INPUT=N,... opens it"
            )
        real = self.template is not None and dtype == "float32"
        path = self.folder / f"batch_{batch}{'_real' * real}.npz"
        if not path.exists():
            arrays = _random(self.graph, batch)
            write_arrays(path, cast("Any", as_reals(self.template, arrays)) if self.template and real else arrays)
        kinds = self.graph.input_types().items()
        batched = [name for name, kind in kinds if kind.shape and kind.shape[0] == symbol]
        return {"inputs": str(path), "sizes": {symbol: batch} if symbol else {}, "batched": batched}

    def sqnr_db(self, output: NDArray[Any]) -> float | None:
        """How close an engine's first output is to the float model's; None where it has no real numbers to compare."""
        ours = output[: len(self.reference)] if self.reference.ndim else output
        if ours.shape != self.reference.shape or self.reference.dtype.kind != "f":
            return None
        found = deviation(self.reference, ours).sqnr_db
        return None if found is None else min(found, _EQUAL_DB)


@dataclass(frozen=True)
class Source:
    """A model: the name that tables show, its ONNX or TFLite file, and what qbench reads there."""

    name: str
    path: Path
    graph: Graph


def find(models: Sequence[str], folder: Path, shapes: Mapping[str, tuple[Dim, ...]]) -> list[Source]:
    """Read all models, each once; networks that we know are written to `folder`.

    Raises
    ------
    ModelError
        Neither a network that we know nor a file, not a model, or one that leaves more open than the batch.
    """
    sources = [_read(model, folder, shapes) for model in dict.fromkeys(models)]
    names = [source.name for source in sources]
    given = dict.fromkeys(models)
    return [replace(s, name=s.name if names.count(s.name) == 1 else m) for s, m in zip(sources, given, strict=True)]


def _read(model: str, folder: Path, shapes: Mapping[str, tuple[Dim, ...]]) -> Source:
    name, path = model, Path(model)
    if model in NETWORKS:
        path = folder / f"{model}.onnx"
        path.write_bytes(NETWORKS[model]().SerializeToString())
    elif path.is_file():
        name = path.stem
    elif path.is_dir():
        raise ModelError(f"{shown(model)} is a folder; give an ONNX or TFLite file, which the other runtimes read too")
    else:
        networks = ", ".join(NETWORKS)
        raise ModelError(f"{shown(model)} is neither a file nor one of {networks}{nearest(model, NETWORKS)}")
    graph = load(path, shapes=shapes)
    for tensor, kind in graph.input_types().items():
        if any(isinstance(size, str) for size in kind.shape[1:]):
            raise ModelError(
                f"input {shown(tensor)} of {name} is {kind}; give its sizes, such as --shape {tensor}=N,3,224,224"
            )
    return Source(name, path, graph)


def make_subject(source: Source, folder: Path) -> Subject:
    """Quantize a float model on a few random samples, and write what the engines read into a new folder."""
    if source.graph.qparams:
        return _quantized_subject(source, folder)
    prepared = prepare(source.graph)
    graph = prepared.graph
    folder.mkdir()
    pieces = list(samples(graph, _random(graph, _SAMPLES)))
    quantized = quantize_graph(prepared, collect(graph, pieces), QuantConfig())
    files = tuple(folder / f"sample_{number}.npz" for number in range(len(pieces)))
    for file, piece in zip(files, pieces, strict=True):
        write_arrays(file, piece)
    work = sum(macs(graph, node) for node in graph.nodes) / _batch(graph)[1]
    reference = interpreter.run(graph, pieces[0])[graph.outputs[0]]
    subject = Subject(source.name, folder, source.path, graph, work, files, reference)
    archive.save(quantized.graph, subject.archive("int8"))
    archive.save(graph, subject.archive("float32"))
    return subject


def _quantized_subject(source: Source, folder: Path) -> Subject:
    """A file that is quantized already, beside its float twin."""
    folder.mkdir()
    graph, template = LegalizePass()(source.graph), find_twin(source.graph)
    work = sum(macs(graph, node) for node in graph.nodes) / _batch(graph)[1]
    (first, *_) = samples(graph, _random(graph, _batch(graph)[1]))
    reference = plan(graph).run(first)[graph.outputs[0]]
    subject = Subject(source.name, folder, source.path, source.graph, work, (), reference, template)
    archive.save(graph, subject.archive("int8"))
    archive.save(prepare(template.twin).graph, subject.archive("float32"))
    return subject


def _batch(graph: Graph) -> tuple[str | None, int]:
    """The symbol that counts samples, or how many there are."""
    sizes = [dim_factors(kind.shape[0]) for kind in graph.input_types().values() if kind.shape]
    symbol = next((symbol for _, symbol in sizes if symbol is not None), None)
    return symbol, 1 if symbol is not None else max((number for number, _ in sizes), default=1)


def _random(graph: Graph, batch: int) -> dict[str, NDArray[Any]]:
    """Normal noise for floats and quantized inputs, zeros and ones for what may be an index.

    The first samples do not depend on `batch`.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind in graph.input_types().items():
        shape = [number * (batch if symbol else 1) for number, symbol in map(dim_factors, kind.shape)]
        values = np.random.default_rng(list(name.encode())).standard_normal(shape, np.float32)
        dtype = numpy_dtype(kind.dtype)
        if name in graph.qparams:  # all codes, however wide the scale
            low, high = graph.qparams[name].qmin, graph.qparams[name].qmax
            values = np.rint((low + high) / 2 + values * (high - low) / 6).clip(low, high)
            arrays[name] = values.astype(dtype)
            continue
        arrays[name] = (values if dtype.kind == "f" else values > 0).astype(dtype)
    return arrays
