"""``qbench golden MODEL --input X --out DIR``: what every layer makes of some inputs, as npz and C header."""

import argparse
from pathlib import Path

from qbench.cli.options import (
    DATA,
    add_image_options,
    add_semantics_option,
    add_shape_option,
    check_image_options,
    read_data,
    read_graph,
)
from qbench.progress import showing


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model or .qbench archive")
    parser.add_argument("--input", type=Path, required=True, metavar="X", help=DATA)
    parser.add_argument("--limit", type=int, default=1, metavar="N", help="the first N samples (default: 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to; made if need be")
    parser.add_argument("--name", default="golden", metavar="NAME", help="of the two files (default: golden)")
    parser.add_argument("--constants", action="store_true", help="write weights, biases and multipliers as well")
    add_semantics_option(parser)
    add_image_options(parser)
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from qbench.data.inputs import first, quantized_inputs
    from qbench.parity import golden  # with numba behind it: nobody else's commands wait for it

    check_image_options(options, options.input)
    graph = read_graph(options.model, options)
    data = quantized_inputs(graph, first(read_data(options.input, options, graph).x, options.limit))
    with showing() as told:
        written = golden(
            graph,
            data,
            options.out,
            name=options.name,
            constants=options.constants,
            progress=lambda done, total: told("running", done, total),
        )
    print(f"wrote {', '.join(path.name for path in written)} to {options.out}")
