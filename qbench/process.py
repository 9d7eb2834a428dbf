"""Work in a process of its own, over a pipe: a request a line, a reply a line; JSON, no pickle.

Every line is an object; ``do`` names the request, the rest are its arguments. A reply has ``error`` where it went
wrong, and then the process goes on. It ends when the pipe is closed, so that nothing is left behind whatever ends the
parent.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

from qbench.errors import QBenchError

_SECONDS_TO_END = 5.0
_SHOWN = 300


class WorkerError(QBenchError):
    """A worker could not do what it was asked for; the message says what it said."""


class Process:
    """A worker process. Leaving the ``with`` block ends it, whatever it is doing.

    Parameters
    ----------
    name
        For messages.
    program
        What the process runs: text that ends in :func:`serve_parent`.
    threads
        How many threads libraries with pools of their own may use.
    """

    def __init__(self, name: str, program: str, threads: int = 1) -> None:
        self.name = name
        count = str(threads)
        environment = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}
        # The same modules as here, and none from the folder that the user happens to be in.
        command = [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 closed in __exit__
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **environment},
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises
        ------
        WorkerError
            It went wrong, or the process is gone.
        """
        try:
            self._requests.write(json.dumps({"do": do, **arguments}) + "\n")
            self._requests.flush()
            line = self._replies.readline()
        except BrokenPipeError:
            line = ""
        if not line.endswith("\n"):
            raise WorkerError(f"{self.name}: {self._last_words()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{self.name}: {_one_line(reply['error'])}")
        return reply

    def _last_words(self) -> str:
        try:
            status = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            return "the process closed its pipe"
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        self._said.seek(0)
        said = self._said.read().decode("utf-8", "replace").strip()
        return f"the process ended with {how}" + (f": {_one_line(said.splitlines()[-1])}" if said else "")

    def kill(self) -> None:
        """End the process, whatever it is doing: who waits for a reply hears that it is gone."""
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the pipe, which an idle worker takes as the end; one that is busy is killed."""
        with suppress(BrokenPipeError):
            self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_TO_END if kind is None else 0)
        self.kill()
        self._process.wait()
        self._replies.close()
        self._said.close()


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line[:_SHOWN]) + ("..." if len(line) > _SHOWN else "")


def serve(worker: object, requests: Iterable[str], replies: IO[str]) -> None:
    """Answer by the methods of `worker`, until there are no more requests."""
    for line in requests:
        request: dict[str, Any] = json.loads(line)
        answer: Callable[..., dict[str, Any]] = getattr(worker, request.pop("do"))
        try:
            reply = answer(**request)
        except Exception as error:  # whatever goes wrong is the parent's to tell
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def serve_parent(worker: object) -> None:
    """Serve the parent; Ctrl-C is its business, and what libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        serve(worker, sys.stdin, replies)
