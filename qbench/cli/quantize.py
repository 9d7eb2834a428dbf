"""``qbench quantize MODEL --calibration X --evaluation X --out DIR``: the whole job, headless."""

from __future__ import annotations

import argparse
from typing import Any

from qbench.cli.sessions import add_session_options, session_of

__all__ = ["add"]


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("quantize", help="turn a float model into integers, and say what it cost")
    add_session_options(parser)
    parser.add_argument("--tflite", action="store_true", help="write model.tflite too (needs the extra tflite)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from qbench.session.export import export_all  # takes longer to import than all of the other commands
    from qbench.session.exports import USUAL

    session = session_of(options)
    print(session.run())
    files = (*USUAL, "model.tflite") if options.tflite else USUAL
    written = ", ".join(path.name for path in export_all(session, options.out, files))
    print(f"wrote {written} to {options.out}")
