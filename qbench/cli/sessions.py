"""A session made of a command's options: model, data, config."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from qbench.cli.options import (
    DATA,
    add_cluster_option,
    add_image_options,
    add_shape_option,
    check_image_options,
    read_data,
    read_graph,
    sized_by,
)
from qbench.data.places import place
from qbench.errors import ConfigError, shown
from qbench.ir import archive
from qbench.quant.config import Preset, QuantConfig

if TYPE_CHECKING:
    from qbench.session.session import Session


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Declare what a session is made of, and the folder for what comes of it."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file, float or quantized")
    parser.add_argument("--calibration", type=place, required=True, metavar="X", help=DATA)
    parser.add_argument(
        "--evaluation", type=place, metavar="X", help="the same; without it, cost is measured on --calibration"
    )
    parser.add_argument(
        "--config", type=Path, metavar="C", help="QuantConfig in JSON (default: qbench's; the file's own scales)"
    )
    parser.add_argument(
        "--preset",
        choices=get_args(Preset),
        default="default",
        help="without --config: keep in float what 8 bits would spoil (default), from there choose calibrator, bias "
        "correction, equalization and rounding by measurement (auto), quantize all that can be (int8), data "
        "by the range of each run (dynamic), or weights alone, in 8 bits (weight_only) or 4 (weight_only_int4)",
    )
    parser.add_argument(
        "--set",
        type=_assignment,
        action="append",
        default=[],
        metavar="PATH=JSON",
        help="change the config, such as weights.axis=null; can be given again",
    )
    parser.add_argument(
        "--metric",
        metavar="MODULE:FUNCTION",
        help="what matters: (outputs by name, y of --evaluation) -> a number, the higher the better",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to; made if need be")
    add_cluster_option(parser)
    add_image_options(parser)
    add_shape_option(parser)


def session_of(options: argparse.Namespace, cluster: object) -> Session:
    """The session, which runs on a cluster if one is given.

    A wrong option, and a folder that cannot be written to, are told before anything long begins.
    """
    from qbench.evaluate.metric import resolve_metric
    from qbench.session.model import Model  # these take longer to import than all of the other commands
    from qbench.session.session import Session

    check_image_options(options, options.calibration, options.evaluation)
    if options.metric is not None:
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))  # where a user's own module lies
        resolve_metric(options.metric)
    config = QuantConfig.of_preset(options.preset) if options.config is None else QuantConfig.load(options.config)
    config = _changed(config, options)  # a wrong change is told before anything long begins
    graph = read_graph(options.model, options)
    out: Path = options.out
    _check_writable(out)
    calibration = read_data(options.calibration, options, graph)
    evaluation = None if options.evaluation is None else read_data(options.evaluation, options, graph)
    graph = sized_by(graph, options.model, options, calibration, *([] if evaluation is None else [evaluation]))
    if options.config is None and graph.qparams:
        config = _changed(Model(graph).config_of(options.preset), options)
    return Session(
        graph,
        calibration=calibration.x,
        evaluation=evaluation,
        config=config,
        preset=options.preset,
        metric=options.metric,
        cluster=cluster,
    )


def _changed(config: QuantConfig, options: argparse.Namespace) -> QuantConfig:
    for path, value in options.set:
        config = config.with_value(path, value)
    return config


def _check_writable(out: Path) -> None:
    """Fail now rather than after all the work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.strerror}; name a folder that can be written to") from error
    archive.check_target(out / "model.qbench")


def _assignment(text: str) -> tuple[str, Any]:
    """``PATH=JSON``; a bare word is a string, so that nobody has to quote quotes for the shell."""
    match = re.fullmatch(r"((?:[^=\"]|\"(?:[^\"\\]|\\.)*\")+)=(.*)", text, re.DOTALL)
    if match is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not PATH=JSON, such as weights.axis=null")
    path, value = match.groups()
    try:
        return path, json.loads(value)
    except (ValueError, RecursionError):
        if re.fullmatch(r"[A-Za-z_]\w*", value):
            return path, value
        said = f"{shown(value)} is not JSON for {shown(path)} (strings need quotes: '\"...\"')"
        raise argparse.ArgumentTypeError(said) from None
