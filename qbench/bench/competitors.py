"""Who runs what: qbench, and the peers that are installed, on the same model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qbench.bench.machine import installed
from qbench.bench.subject import Subject
from qbench.bench.worker import PROGRAM
from qbench.process import Process, WorkerError

PEERS = ("onnxruntime", "openvino", "litert")
"""The runtimes that qbench is timed against; LiteRT on TFLite files, the others on ONNX files."""

PACKAGES = {"litert": "ai-edge-litert"}
"""What a peer's package is called, where that is not the peer's own name."""


@dataclass(frozen=True)
class Competitor:
    """A line of the table to be.

    Parameters
    ----------
    label
        What the table calls it.
    engine
        What :func:`qbench.bench.engines.engine` calls it.
    dtype
        "int8" or "float32".
    model
        The file to load.
    error
        Why there is no such file.
    """

    label: str
    engine: str
    dtype: str
    model: Path
    error: str = ""


def competitors(subject: Subject, peers: Sequence[str], dtypes: Sequence[str]) -> list[Competitor]:
    """Write the peers' int8 files, and say who runs which.

    A file that is quantized already is run as it is, by us and by its own peers; its float twin by us alone. Of a
    float ONNX file both peers run onnxruntime's own int8 file, on which OpenVINO is at its fastest too; NNCF's is
    OpenVINO's second.
    """
    found = [Competitor("qbench", "qbench", dtype, subject.archive(dtype)) for dtype in dtypes]
    peers = [peer for peer in peers if (peer == "litert") == subject.is_tflite]
    if subject.template is not None or subject.is_tflite:
        own = "float32" if subject.template is None else "int8"
        return found + [Competitor(peer, peer, own, subject.source) for peer in peers if own in dtypes]
    if "float32" in dtypes:
        found += [Competitor(peer, peer, "float32", subject.source) for peer in peers]
    if "int8" in dtypes and peers:
        target = subject.folder / "qdq.onnx"
        error = _quantized("onnxruntime", subject, target)
        found += [Competitor(peer, peer, "int8", target, error) for peer in peers]
        if "openvino" in peers and installed("nncf"):
            target = subject.folder / "nncf.xml"
            error = _quantized("openvino", subject, target)
            found.append(Competitor("openvino nncf", "openvino", "int8", target, error))
    return found


def _quantized(quantizer: str, subject: Subject, target: Path) -> str:
    """Make an int8 file; gives what went wrong."""
    if not installed(quantizer):
        return f"{quantizer} makes the int8 file, and is not installed: pip install {quantizer}"
    with Process(f"{quantizer}'s quantizer", PROGRAM) as process:
        try:
            samples = [str(path) for path in subject.samples]
            process.ask("quantize", quantizer=quantizer, model=str(subject.source), samples=samples, target=str(target))
        except WorkerError as error:
            return str(error)
    return ""
