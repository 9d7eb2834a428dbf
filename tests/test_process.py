"""The pipe to a worker, with workers made up on the spot."""

import os
import time
from contextlib import ExitStack

import pytest

from qbench.process import Process, WorkerError

FAKE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    {what}
"""


def fake(what: str) -> Process:
    return Process("fake", program=f"exec({FAKE.format(what=what)!r})")


def test_requests_and_replies_are_lines_of_json() -> None:
    with fake("print(json.dumps({'got': request}), flush=True)") as process:
        assert process.ask("turn", seconds=0.5, name="\n\u2028é") == {
            "got": {"do": "turn", "seconds": 0.5, "name": "\n\u2028é"}
        }
        assert process.ask("profile") == {"got": {"do": "profile"}}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("sys.exit('out of\\x1b memory')", r"^fake: the process ended with status 1: out of\? memory$"),
        ("import os; os.kill(os.getpid(), 11)", "^fake: the process ended with SIGSEGV$"),
        ("print(json.dumps({'error': 'ValueError: a\\nb'}), flush=True)", "^fake: ValueError: a b$"),
    ],
)
def test_what_goes_wrong_is_one_line_that_names_the_worker(what: str, message: str) -> None:
    with fake(what) as process, pytest.raises(WorkerError, match=message):
        process.ask("turn", seconds=1)


def test_a_process_that_is_gone_stays_gone() -> None:
    with fake("sys.exit(3)") as process:
        for _ in range(2):
            with pytest.raises(WorkerError, match="status 3"):
                process.ask("turn", seconds=1)


def test_an_interruption_leaves_no_process_behind() -> None:
    pids: list[int] = []
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        for _ in range(2):
            process = stack.enter_context(
                fake("import os; print(json.dumps({'pid': os.getpid()}), flush=True)\n    while 1: pass")
            )
            pids.append(process.ask("turn")["pid"])
        raise KeyboardInterrupt
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert time.monotonic() - start < 60
