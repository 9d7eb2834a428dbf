"""Other runtimes by the names that commands take for them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbench.errors import ConfigError, nearest, shown
from qbench.frontends.tflite import is_tflite
from qbench.ir.archive import is_archive

if TYPE_CHECKING:
    from qbench.parity import Runner

RUNTIMES = ("litert", "onnxruntime")
_OF_LITERT = ("reference", "builtin", "xnnpack")
_OF_ONNXRUNTIME = ("optimized", "unoptimized", "exact")


def add_kernels_option(parser: argparse.ArgumentParser) -> None:
    """The option that says which of a runtime's kernels run."""
    parser.add_argument(
        "--kernels",
        metavar="K",
        help=f"of LiteRT: {', '.join(_OF_LITERT)}; of onnxruntime: {', '.join(_OF_ONNXRUNTIME)} (default: the first)",
    )


def runtime(name: str, option: str, model: Path, kernels: str | None) -> Runner:
    """A model file in the runtime of that name; ConfigError, which tells of `option`, where that cannot be."""
    from qbench.parity import LiteRT, OnnxRuntime  # with numba behind it: nobody else's commands wait for it

    if name not in RUNTIMES:
        raise ConfigError(f"{option} {shown(name)} is none of {', '.join(RUNTIMES)}{nearest(name, RUNTIMES)}")
    runs_tflite = name == "litert"
    if is_archive(model) or is_tflite(model) != runs_tflite:
        raise ConfigError(f"{option} {name} runs {'TFLite' if runs_tflite else 'ONNX'} files, and {model} is none")
    known: tuple[Any, ...] = _OF_LITERT if runs_tflite else _OF_ONNXRUNTIME
    if kernels not in (None, *known):
        raise ConfigError(f"--kernels {shown(kernels or '')} is none of {', '.join(known)}, which {name} has")
    chosen: Any = kernels or known[0]
    if runs_tflite:
        return LiteRT(model, chosen)
    return OnnxRuntime(model, chosen != "unoptimized", exact=chosen == "exact")
