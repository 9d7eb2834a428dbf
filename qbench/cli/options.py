"""What several commands read: models, and data with the options that folders of images need."""

import argparse
import re
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np

from qbench.data.load import IMAGES_INSIDE, Samples, load_data
from qbench.data.shards import Shards
from qbench.errors import ConfigError, DataError
from qbench.frontends import load
from qbench.ir.graph import Graph
from qbench.ir.types import Dim, TensorType
from qbench.quant.semantics import SEMANTICS

DATA = (
    ".npz with x and optionally y, .npy, a folder of images (with labels.csv or not), of .npy or .npz files, .zarr, "
    ".parquet, WebDataset .tar, or a URL of those"
)
_SEEN = 16  # samples of a folder
_FOLDER_ONLY = ("mean", "std", "size", "layout", "channels")


def add_image_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how images become arrays."""
    group = parser.add_argument_group("how images become arrays: (x - mean) / std, both in 0..255 units")
    group.add_argument("--mean", type=_numbers, nargs="+", metavar="M", help="1 or 3 numbers (default: 0)")
    group.add_argument("--std", type=_numbers, nargs="+", metavar="S", help="1 or 3 numbers (default: 1)")
    group.add_argument("--size", type=_size, metavar="N|HxW", help="scale and crop to this size (default: the model's)")
    group.add_argument("--layout", choices=("NCHW", "NHWC"), help="order of the axes (default: the model's)")
    group.add_argument("--channels", choices=("RGB", "BGR", "L"), help="L is one grey channel (default: RGB)")


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    """The option that says where samples are run."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run samples on a Dask cluster: tcp://host:8786, local (processes on this machine) or local:N "
        "(needs the extra cluster); results are the same",
    )


@contextmanager
def cluster_of(options: argparse.Namespace) -> Generator[object]:
    """The client of the cluster that is asked for, or None, for as long as it is needed."""
    if options.cluster is None:
        yield None
    else:
        from qbench.cluster.connect import connected

        with connected(options.cluster) as client:
            yield client


def add_shape_option(parser: argparse.ArgumentParser) -> None:
    """The option for models that leave sizes open."""
    parser.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        metavar="INPUT=N,3,224,224",
        help="shape of a model's input in place of the one in the file (N: any batch); can be given again",
    )


def add_semantics_option(parser: argparse.ArgumentParser) -> None:
    """The option for files that are quantized already."""
    parser.add_argument(
        "--semantics",
        choices=SEMANTICS,
        help="whose arithmetic a quantized model is run in (default: that of the runtime that its file is made for)",
    )


def read_graph(path: Path, options: argparse.Namespace) -> Graph:
    """A model or an archive."""
    return load(path, shapes=dict(options.shape), semantics=getattr(options, "semantics", None))


def read_data(path: Path, options: argparse.Namespace, graph: Graph) -> Samples:
    """Data for a graph, images made as the options say; what a metric compares with need not be classes."""
    classes = getattr(options, "metric", None) is None
    if not _may_hold_images(path):
        return load_data(path, classes=classes)
    if len(graph.inputs) != 1 and not Shards.find(path):
        raise DataError(f"{path} is for one input, but the model has {len(graph.inputs)} inputs; give an .npz")
    wanted = graph.types[graph.inputs[0]]
    layout = options.layout or _layout_of(wanted)
    height, width = wanted.shape[layout.index("H") : layout.index("W") + 1] if wanted.rank == 4 else (None, None)
    return load_data(
        path,
        mean=[number for numbers in options.mean or ((0.0,),) for number in numbers],
        std=[number for numbers in options.std or ((1.0,),) for number in numbers],
        size=options.size or ((height, width) if isinstance(height, int) and isinstance(width, int) else None),
        layout=layout,
        channels=options.channels or "RGB",
        dtype="uint8" if wanted.dtype == "uint8" else "float32",
        classes=classes,
    )


def _layout_of(wanted: TensorType) -> Literal["NCHW", "NHWC"]:
    """Where an input has its 1 or 3 channels."""
    last = wanted.rank == 4 and wanted.shape[3] in (1, 3) and wanted.shape[1] not in (1, 3)
    return "NHWC" if last else "NCHW"


def sized_by(graph: Graph, path: Path, options: argparse.Namespace, *data: Samples) -> Graph:
    """The model again, with the sizes that its file leaves open (but for the batch) taken from data that agrees.

    Averages and resizing run in integers only where sizes are known. Lines of text or sentences, each as long as it is,
    leave their length open.
    """
    shapes = dict[str, tuple[Dim, ...]](options.shape)
    for name, kind in graph.input_types().items():
        given = {shape for samples in data for shape in _shapes(samples, name, name == graph.inputs[0])}
        if name in shapes or not given or {len(shape) for shape in given} != {kind.rank}:
            continue  # what does not fit is told where the data is read
        sizes = zip(kind.shape[1:], *(shape[1:] for shape in given), strict=True)
        known = [first if isinstance(size, str) and {*rest} <= {first} else size for size, first, *rest in sizes]
        if (kind.shape[0], *known) != kind.shape:
            shapes[name] = (kind.shape[0], *known)
    return load(path, shapes=shapes) if len(shapes) > len(options.shape) else graph


def _shapes(data: Samples, name: str, is_first: bool) -> Iterator[tuple[int, ...]]:
    """Of the values of an input: of all samples where they are one array, else of some."""
    if isinstance(data.x, (np.ndarray, dict)):
        rows = [data.x]
    else:
        some = np.linspace(0, len(data.x) - 1, min(len(data.x), _SEEN))
        rows = [data.x[int(number)] for number in some]
    for row in rows:
        value = row.get(name) if isinstance(row, Mapping) else row if is_first else None
        if value is not None and np.ndim(value) and len(value):
            yield np.shape(value)


def check_writable(option: str, path: Path) -> None:
    """Fail now rather than after all the work."""
    if path.is_dir():
        raise ConfigError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"{option} {path}: there is no folder {path.parent}")
    tempfile.TemporaryFile(dir=path.parent).close()


def check_image_options(options: argparse.Namespace, *paths: Path | None) -> None:
    """Refuse options for images where no folder of images is given."""
    given = [f"--{name}" for name in _FOLDER_ONLY if getattr(options, name) is not None]
    if given and not any(path is not None and _may_hold_images(path) for path in paths):
        raise DataError(f"{', '.join(given)} are for folders of images; arrays are taken as they are")


def _may_hold_images(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() in IMAGES_INSIDE


def words(text: str) -> tuple[str, ...]:
    """Words between commas, each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _shape(text: str) -> tuple[str, tuple[Dim, ...]]:
    name, equals, sizes = text.rpartition("=")
    if not equals or not sizes:
        raise argparse.ArgumentTypeError(f"{text!r} is not INPUT=SIZE,SIZE,...")
    return name, tuple(int(size) if size.strip().isdecimal() else size.strip() for size in sizes.split(","))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(",") if part.strip())


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor HEIGHTxWIDTH")
    return int(match[1]), int(match[2] or match[1])
