"""``qbench quantize MODEL --calibration X --evaluation X --out DIR``: the whole job, headless."""

import argparse

from qbench.cli.options import cluster_of
from qbench.cli.sessions import add_session_options, session_of
from qbench.garbage import lasting


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_session_options(parser)
    parser.add_argument("--tflite", action="store_true", help="write model.tflite too (needs the extra tflite)")
    parser.add_argument(
        "--encodings",
        action="append",
        default=[],
        metavar="FORMAT",
        help="write the encodings for another tool too (aimet, tensorrt, nncf, ...); can be given again",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    with lasting():
        from qbench.exporters.rosetta import format_of
        from qbench.session.export import export_all  # takes longer to import than all of the other commands
        from qbench.session.exports import USUAL
        from qbench.session.rosetta import export_encodings

    formats = {name: format_of(name) for name in options.encodings}  # a wrong name is told before anything long begins
    with cluster_of(options) as cluster:
        session = session_of(options, cluster)
        report = session.run()
        files = (*USUAL, "model.tflite") if options.tflite else USUAL
        paths = export_all(session, options.out, files)
        for name, format in formats.items():
            paths.append(export_encodings(session, options.out / f"{name}{format.suffix}", format=name))
    print(report)  # when all is written: whoever listens may have gone
    print(f"wrote {', '.join(path.name for path in paths)} to {options.out}")
