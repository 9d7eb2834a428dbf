"""``qbench bench [MODEL...]``: how fast, next to the runtimes that are installed."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qbench.cli.options import (
    DATA,
    add_image_options,
    add_shape_option,
    check_image_options,
    check_writable,
    read_data,
    words,
)
from qbench.errors import ConfigError, nearest, shown
from qbench.files import write_text
from qbench.progress import showing

if TYPE_CHECKING:
    from qbench.data.load import Samples
    from qbench.ir.graph import Graph

_NETWORKS = "resnet18, resnet50, mobilenetv2, inception_v3"
_ALL = _NETWORKS.split(", ")
_DTYPES = ("int8", "float32")
_NEAR = 4  # folders up from a model's file, where its images may be
_MEAN, _STD = ((127.0,),), ((128.0,),)  # as for EfficientNet-Lite; a speed hardly depends on them


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "models",
        nargs="*",
        default=_ALL,
        metavar="MODEL",
        help=f"{_NETWORKS} (made on the spot with random weights; default: all of them), or an ONNX or TFLite file",
    )
    parser.add_argument(
        "--peers",
        type=words,
        metavar="P,P",
        help="default: onnxruntime,openvino for ONNX, litert for TFLite; '' for none",
    )
    parser.add_argument("--threads", type=_counts, metavar="T,T", help="default: 1,2")
    parser.add_argument("--batch", type=_counts, default=(1, 16), metavar="B,B", help="default: 1,16")
    parser.add_argument("--dtype", type=words, default=_DTYPES, metavar="D,D", help="default: int8,float32")
    parser.add_argument("--rounds", type=_count, default=7, metavar="R", help="turns that each has (default: 7)")
    parser.add_argument("--seconds", type=_seconds, default=2.0, metavar="S", help="of all its turns (default: 2)")
    parser.add_argument("--layers", action="store_true", help="the time of every step, not of the slowest alone")
    parser.add_argument("--json", type=Path, metavar="F", help="write everything to this file")
    parser.add_argument(
        "--interactive",
        action="store_true",
        help="the time from an edit to its answer, for edits of twenty layers of one model (default: mobilenetv2)",
    )
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="the time of a sweep that puts each layer of one model in float by itself, beside onnxruntime's",
    )
    parser.add_argument(
        "--workers",
        type=_counts,
        metavar="W,W",
        help="the time of one calibration of one model by so many processes of a Dask cluster here, such as 1,2,4",
    )
    meant = f"for --interactive, --sweep and --workers: {DATA} (default: imagenet/dev beside the model)"
    parser.add_argument("--data", type=Path, metavar="X", help=meant)
    add_image_options(parser)
    add_shape_option(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.interactive or options.sweep or options.workers:
        _one_model(options)
    else:
        _contest(options)


def _one_model(options: argparse.Namespace) -> None:
    from qbench.bench.interactive import interactive, random_samples
    from qbench.bench.scaling import scaling
    from qbench.bench.sweep import sweep

    known = {"interactive": interactive, "sweep": sweep, "workers": partial(scaling, workers=options.workers)}
    asked = [name for name in known if getattr(options, name)]
    if len(asked) > 1:
        raise ConfigError(f"{' and '.join(f'--{name}' for name in asked)} are several measurements: give one of them")
    models = ["mobilenetv2"] if options.models is _ALL else options.models
    if len(models) != 1:
        raise ConfigError(f"--{asked[0]} is for one model at a time, not {len(models)}")
    (model,) = models
    path: Path | None = options.json
    if path is not None:
        check_writable("--json", path)
    folders = [parent / "imagenet" / "dev" for parent in Path(model).resolve().parents[:_NEAR]]
    near = next((folder for folder in folders if folder.is_dir()), None)
    data: Path | None = options.data or near

    def samples(graph: Graph) -> tuple[Samples, str]:
        ranks = [kind.rank for kind in graph.input_types().values()]
        if data is None or (data is near and ranks != [4]):
            print("qbench: no data is there, so random numbers stand for it; --data gives some", file=sys.stderr)
            return random_samples(graph)
        return read_data(data, options, graph), str(data)

    if data is not None and data.is_dir() and options.mean is None and options.std is None:
        options.mean, options.std = _MEAN, _STD
    check_image_options(options, data)
    with showing() as told:
        answers = known[asked[0]](model, samples, dict(options.shape), told)
    print(f"{answers.model}, {answers.samples} samples of {answers.data}\n\n{answers}")
    if path is not None:
        write_text(path, answers.to_json())
        print(f"\nwrote {path}")


def _contest(options: argparse.Namespace) -> None:
    from qbench.bench.competitors import (
        PACKAGES,
        PEERS,
    )  # with onnx and numba behind it: nobody else's commands wait for them
    from qbench.bench.machine import cores, describe, installed
    from qbench.bench.measure import Plan, measure
    from qbench.bench.result import Result
    from qbench.bench.text import bench_table

    if not options.dtype:
        raise ConfigError(f"--dtype: name at least one of {', '.join(_DTYPES)}")
    _check_names("--dtype", options.dtype, _DTYPES)
    _check_names("--peers", options.peers or (), PEERS)
    threads: Sequence[int] = options.threads or range(1, min(2, cores()) + 1)
    if max(threads) > cores():
        raise ConfigError(f"--threads {max(threads)}: this process has {cores()} cores; give at most that many")
    path: Path | None = options.json
    if path is not None:
        check_writable("--json", path)
    peers = PEERS if options.peers is None else options.peers
    result = Result(describe())
    for peer in peers:
        if not installed(package := PACKAGES.get(peer, peer)):
            result.note(f"{peer} is not installed, and left out: pip install {package}")
    plan = Plan(
        models=options.models,
        peers=[peer for peer in peers if installed(PACKAGES.get(peer, peer))],
        dtypes=options.dtype,
        threads=threads,
        batches=options.batch,
        rounds=options.rounds,
        seconds=options.seconds,
        shapes=dict(options.shape),
    )
    for note in result.notes:
        print(f"qbench: {note}", file=sys.stderr)
    try:
        with showing() as told:
            measure(plan, result, told)
    finally:  # after Ctrl-C as well: what was measured was measured
        if result.timings or result.failures:
            print(bench_table(result, all_steps=options.layers))
            if path is not None:
                write_text(path, result.to_json())
                print(f"\nwrote {path}")


def _check_names(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"{option}: {shown(name)} is none of {', '.join(known)}{nearest(name, known)}")


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(map(_count, text.split(","))))


def _count(text: str) -> int:
    return int(_number(text, int, "a whole number from 1 on"))


def _seconds(text: str) -> float:
    return _number(text, float, "a number of seconds above 0")


def _number(text: str, kind: Callable[[str], float], wanted: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not {wanted}")
    return value
