"""The command line: ``qbench COMMAND``."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from qbench.errors import QBenchError
from qbench.garbage import lasting

COMMANDS = {
    "quantize": "turn a float model into integers, and say what it cost",
    "tune": "search for a config within a budget of quality, time and size",
    "inspect": "show a model, an archive, a config, a report or arrays",
    "diff": "compare two models or archives layer by layer, two configs, or two reports",
    "run": "run an archive (or a model) on data",
    "bench": "time models in qbench, onnxruntime, OpenVINO and LiteRT",
    "check": "compare a model with another runtime, layer by layer",
    "golden": "write what every layer makes of some inputs, as npz and C header",
    "accuracy": "how often classifiers of images are right, here and in other runtimes",
}
"""What each does; its module in this package is imported when it is asked for."""


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
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of any alphabet, on a terminal of another
    try:
        with lasting():
            options = _parser(arguments).parse_args(arguments)
        status: int | None = options.run(options)
        if isinstance(sys.stdout, io.TextIOBase):  # there is none where the caller closed it
            sys.stdout.flush()
        return status or 0
    except BrokenPipeError:  # `qbench inspect model.onnx | head` is no mistake
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (QBenchError, OSError) as error:
        notes: list[str] = getattr(error, "__notes__", [])
        print("\n".join([f"qbench: {error}", *notes]), file=sys.stderr)
        return 2
    except (KeyboardInterrupt, ImportError) as error:
        if isinstance(error, ImportError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise  # libraries of C that are being imported make the one error of the other
        print("qbench: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """What reads the arguments; of all commands only the one that they name is declared."""
    parser = argparse.ArgumentParser(prog="qbench", description="Quantize neural networks, and see what it costs.")
    parser.add_argument("--version", action="version", version=f"qbench {version('qbench')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name in arguments[:1]:
            import_module(f"qbench.cli.{name}").declare(command)
    return parser
