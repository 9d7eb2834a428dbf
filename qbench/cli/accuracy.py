"""``qbench accuracy MODEL... --images FOLDER --labels CSV --peers litert``: how often classifiers are right."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from qbench.cli.options import (
    add_cluster_option,
    add_image_options,
    add_semantics_option,
    add_shape_option,
    check_writable,
    cluster_of,
    read_data,
    read_graph,
    words,
)
from qbench.cli.runtimes import add_kernels_option, runtime
from qbench.data.images import ImageFolder, read_labels
from qbench.data.places import place
from qbench.errors import ConfigError, DataError
from qbench.files import write_text
from qbench.progress import showing

if TYPE_CHECKING:
    from qbench.bench.accuracy import Accuracy


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Classify images here and in other runtimes. Images are scaled (bicubic) to the model's size; "
        "of 1001 outputs the first one, the background, is left out."
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="TFLite or ONNX classifiers")
    parser.add_argument("--images", type=place, required=True, metavar="FOLDER", help="folder of images")
    parser.add_argument(
        "--labels", type=Path, metavar="CSV", help="columns file and class_index (default: FOLDER_labels.csv)"
    )
    parser.add_argument(
        "--peers", type=words, default=(), metavar="P,P", help="litert for TFLite files, onnxruntime for ONNX files"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N images")
    parser.add_argument("--json", type=Path, metavar="F", help="write everything to this file")
    add_kernels_option(parser)
    add_semantics_option(parser)
    add_image_options(parser)
    add_cluster_option(parser)
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from qbench.bench.accuracy import accuracies, accuracy_table  # with numba behind it: nobody else's commands wait
    from qbench.cluster.where import executor_of
    from qbench.data.inputs import first, quantized_inputs

    if options.json is not None:
        check_writable("--json", options.json)
    if options.cluster is not None and options.peers:
        raise ConfigError("--cluster is for qbench alone: peers run in this process; leave out one of them")
    if not options.images.exists():
        raise DataError(f"--images {options.images}: there is no such folder or file")
    rows: list[Accuracy] = []
    with showing() as told, cluster_of(options) as cluster:
        executor = executor_of(cluster)
        for path in options.models:
            graph = read_graph(path, options)
            peers = [runtime(peer, "--peers", path, options.kernels) for peer in options.peers]
            samples = read_data(options.images, options, graph)
            labels = samples.y
            if options.labels is not None:
                if not isinstance(samples.x, ImageFolder):
                    raise DataError(f"--labels is for a folder of images; {options.images} holds arrays or shards")
                labels = read_labels(options.labels, samples.x.files)
            if labels is None:
                raise DataError(f"{options.images} has no labels with it: give --labels")
            data = quantized_inputs(graph, first(samples.x, options.limit))
            rows += accuracies(
                path.stem,
                graph,
                peers,
                data,
                labels[: len(data)],
                lambda done, total, name=path.stem: told(name, done, total),
                executor,
            )
    print(accuracy_table(rows))
    if options.json is not None:
        write_text(options.json, json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n")
        print(f"wrote {options.json}")
