"""``qbench tune MODEL --calibration X --evaluation X --metric module:function --at-least V --max-ms M --out DIR``."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from qbench.cli.options import cluster_of
from qbench.cli.sessions import add_session_options, session_of
from qbench.files import write_bytes

if TYPE_CHECKING:
    from qbench.search.front import Front


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_session_options(parser)
    parser.add_argument("--at-least", type=float, metavar="V", help="of the metric: the fastest such config is taken")
    parser.add_argument("--max-ms", type=float, metavar="M", help="milliseconds of one run")
    parser.add_argument("--max-bytes", type=int, metavar="B", help="bytes of the constants")
    parser.add_argument("--seconds", type=float, metavar="S", help="how long to search (default: until nothing helps)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from qbench.plots import front_figure, png  # these take longer to import than all of the other commands
    from qbench.search.front import Limits
    from qbench.session.export import export_all
    from qbench.views import front_view

    Limits(options.at_least, options.max_ms, options.max_bytes, options.seconds)  # told before anything long begins
    out = Path(options.out)
    with cluster_of(options) as cluster:
        session = session_of(options, cluster)
        front = session.search(
            at_least=options.at_least,
            max_ms=options.max_ms,
            max_bytes=options.max_bytes,
            seconds=options.seconds,
            trials=out / "trials.json",
            tell=_said,
        )
        session.edit(f"tune: {front.best.label}; {front.best.measured}", front.best.config)
        report = session.run()
        written = export_all(session, out)
        front.save(out / "front.json")
        write_bytes(out / "front.png", png(front_figure(front_view(front))))
    print(report)  # when all is written: whoever listens may have gone
    print(front)
    names = ", ".join([path.name for path in written] + ["front.json", "front.png"])
    print(f"wrote {names} to {out}")


def _said(front: Front) -> None:
    """The newest config and the best so far, as they come; the search goes on where nobody listens any more."""
    new, best = front.rows[-1], front.best
    with suppress(OSError):
        print(f"metric {new.metric:.4g}, {new.ms:.2f} ms: {new.label}; best so far {best.metric:.4g}", flush=True)
