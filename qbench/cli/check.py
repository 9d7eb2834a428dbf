"""``qbench check MODEL --against litert|onnxruntime --input X``: whether a runtime gives the same integers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from qbench.cli.options import (
    DATA,
    add_image_options,
    add_semantics_option,
    add_shape_option,
    check_image_options,
    check_writable,
    read_data,
    read_graph,
)
from qbench.cli.runtimes import add_kernels_option, runtime
from qbench.errors import ConfigError, shown
from qbench.files import write_text
from qbench.progress import showing

if TYPE_CHECKING:
    from qbench.parity import Runner


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Run a model here and in another runtime, and compare every value that both have. Each op is also "
        "fed with the other's own integers, so that what one op does otherwise is not counted again behind it. "
        "Exit status: 0 where nothing differs, 1 where something does, 2 where it cannot be told."
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="TFLite or ONNX model")
    parser.add_argument(
        "--against",
        required=True,
        metavar="litert|onnxruntime|F.npz",
        help="the runtime, or an array for each value as somebody saved it (see qbench golden)",
    )
    add_kernels_option(parser)
    parser.add_argument("--input", type=Path, required=True, metavar="X", help=DATA)
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N samples")
    parser.add_argument("--json", type=Path, metavar="F", help="write everything to this file")
    add_semantics_option(parser)
    add_image_options(parser)
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from qbench.data.inputs import first, quantized_inputs
    from qbench.parity import compare  # with numba behind it: nobody else's commands wait for it

    check_image_options(options, options.input)
    if options.json is not None:
        check_writable("--json", options.json)
    other = _runner(options)
    graph = read_graph(options.model, options)
    data = quantized_inputs(graph, first(read_data(options.input, options, graph).x, options.limit))
    with showing() as told:
        found = compare(graph, other, data, progress=lambda done, total: told("comparing", done, total))
    print(found)
    if options.json is not None:
        write_text(options.json, found.to_json())
        print(f"wrote {options.json}")
    return 1 if found.different or found.different_end_to_end else 0


def _runner(options: argparse.Namespace) -> Runner:
    from qbench.parity import Recorded

    against = str(options.against)
    if not against.endswith(".npz"):
        return runtime(against, "--against", options.model, options.kernels)
    if options.kernels is not None:
        raise ConfigError(f"--kernels {shown(options.kernels)}: a recording has none; leave it out")
    return Recorded(against)
