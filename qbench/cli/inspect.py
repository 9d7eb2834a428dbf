"""``qbench inspect FILE``: what is in a model, an archive, a config, a report or a file of arrays."""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np

from qbench.cli.options import add_shape_option, read_graph
from qbench.data.load import load_data
from qbench.errors import ConfigError, shown
from qbench.ir.graph import Graph, print_graph
from qbench.ir.op import Array
from qbench.quant.config import QuantConfig


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="model, .qbench archive, .json, .npz or .npy")
    parser.add_argument("--full", action="store_true", help="the exact IR text, with every scale and name in full")
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    path: Path = options.file
    if path.suffix.lower() == ".json":
        print(_json(path))
    elif path.suffix.lower() in (".npz", ".npy"):
        print(_arrays(path))
    else:
        graph = read_graph(path, options)
        print(print_graph(graph, short=not options.full), end="")
        print(_summary(graph))


def _summary(graph: Graph) -> str:
    """Counts, as comments of the IR's text."""
    ops = Counter(node.op for node in graph.nodes)
    bytes_by_dtype: Counter[str] = Counter()
    for constant in graph.constants.values():
        bytes_by_dtype[constant.dtype] += constant.array.nbytes
    lines = [
        f"# {len(graph.nodes)} nodes: {', '.join(f'{count} {op}' for op, count in ops.most_common())}",
        f"# {len(graph.constants)} constants: {', '.join(f'{n:,} bytes {d}' for d, n in bytes_by_dtype.items())}",
    ]
    reasons = Counter(node.reason for node in graph.nodes if node.reason)
    return "\n".join([*lines, *(f"# {count} in float: {shown(reason)}" for reason, count in reasons.most_common())])


def _json(path: Path) -> str:
    try:
        content: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if isinstance(content, dict) and "layers" in content and "output" in content:
        return json.dumps(cast("dict[str, Any]", content), indent=1)
    return QuantConfig.load(path).to_json()


def _arrays(path: Path) -> str:
    samples = load_data(path)
    arrays = samples.x if isinstance(samples.x, dict) else {"x": samples.x}
    if samples.y is not None:
        arrays = {**arrays, "y": samples.y}
    lines: list[str] = []
    for name, array in arrays.items():
        values: Array = np.asarray(array)
        extent = f", {values.min()} to {values.max()}" if values.size and values.dtype.kind in "iuf" else ""
        lines.append(f"{shown(name)}: {values.dtype} {values.shape}{extent}")
    return "\n".join(lines)
