"""The command line: ``qbench quantize | inspect | diff | run | bench | check | golden | accuracy``."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from qbench.cli import accuracy, bench, check, diff, golden, inspect, quantize, run, tune
from qbench.errors import QBenchError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the program's name; None means those of the process.

    Returns
    -------
    int
        0; 1 where the answer is no, such as of ``qbench check`` where something differs; 2 after a mistake in the input
        or a file that cannot be written, which standard error tells about; 130 after an interruption.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int | None = options.run(options)
        sys.stdout.flush()
        return status or 0
    except BrokenPipeError:  # `qbench inspect model.onnx | head` is no mistake
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (QBenchError, OSError) as error:
        notes: list[str] = getattr(error, "__notes__", [])
        print("\n".join([f"qbench: {error}", *notes]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("qbench: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="qbench", description="Quantize neural networks, and see what it costs.")
    parser.add_argument("--version", action="version", version=f"qbench {version('qbench')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (quantize, tune, inspect, diff, run, bench, check, golden, accuracy):
        command.add(commands)
    return parser
