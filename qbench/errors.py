"""Every error that qbench raises on purpose. Each message says what is wrong, where, and what to do about it."""

import difflib
import sys
from collections.abc import Collection, Iterable
from itertools import islice
from numbers import Integral

__all__ = [
    "CalibrationError",
    "Cancelled",
    "ClusterError",
    "ConfigError",
    "DataError",
    "ExportError",
    "GraphError",
    "ModelError",
    "NotANumberError",
    "ParseError",
    "QBenchError",
    "QParamsError",
    "SessionError",
    "UnsupportedOpsError",
    "check_count",
    "check_kind",
    "listed",
    "nearest",
    "shown",
]


class QBenchError(Exception):
    """Base of all errors that name a mistake in the input rather than a bug in qbench."""


class ModelError(QBenchError):
    """A model file cannot be read, or says something that qbench does not understand."""


class UnsupportedOpsError(ModelError):
    """A model uses ops that qbench has no meaning for; the message lists every such node."""


class GraphError(QBenchError):
    """A graph breaks a rule of the IR: unknown op, undefined value, wrong type, cycle."""


class ParseError(GraphError):
    """IR text that cannot be parsed; the message has line and column."""


class QParamsError(QBenchError):
    """Quantization parameters that mean nothing: scale not positive, zero point out of range."""


class ConfigError(QBenchError):
    """A config with unknown keys, bad values, or selectors that match nothing."""


class DataError(QBenchError):
    """Data of the wrong shape, dtype or content (NaN, infinity, empty)."""


class NotANumberError(DataError):
    """A value that would be quantized holds NaN.

    Parameters
    ----------
    value
        Its name in the graph that ran.
    sample
        Of the run.
    """

    def __init__(self, value: str, sample: int) -> None:
        super().__init__(value, sample)
        self.value, self.sample = value, sample

    def __str__(self) -> str:
        return (
            f"value {shown(self.value)} holds NaN, which cannot be quantized (in sample {self.sample} of the run): "
            "the layers before it overflow, or divide zero by zero"
        )


class CalibrationError(QBenchError):
    """Statistics or thresholds that cannot be computed."""


class ExportError(QBenchError):
    """A model or config that cannot be written in the format asked for."""


class SessionError(QBenchError):
    """A session that cannot be made, resumed or edited as asked."""


class ClusterError(QBenchError):
    """A cluster that cannot be reached, or workers that cannot do what they are sent."""


class Cancelled(QBenchError):
    """Long work stopped because the user asked for it; nothing that was finished is lost."""


def check_kind(given: object, kinds: type | tuple[type, ...], error: type[QBenchError], told: str) -> None:
    """Raise an error unless a caller gave one of these types; ``{}`` in what is told stands for the type that it is."""
    if not isinstance(given, kinds):
        raise error(told.format(type(given).__name__))


def check_count(what: str, given: object, least: int = 1, most: int = sys.maxsize) -> None:
    """Raise DataError unless a caller gave a whole number from `least` to `most`; `what` is the argument's name."""
    if not isinstance(given, Integral) or not least <= int(given) <= most:
        upper = "" if most == sys.maxsize else f" and at most {most}"
        raise DataError(f"{what}={given!r}: it must be a whole number, at least {least}{upper}")


def shown(name: str, limit: int = 120) -> str:
    """Quote a name that comes from a file, so that control characters and 10,000 letters cannot spoil a message."""
    text = repr(name)
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-limit // 4 :]} ({len(name)} characters)"


_LISTED = 3


def listed(names: Collection[str]) -> str:
    """Quote the first few names, and count the others."""
    more = len(names) - _LISTED
    return ", ".join(map(shown, islice(names, _LISTED))) + (f" and {more} more" if more > 0 else "")


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the candidate closest to `name`, or an empty string."""
    matches = difflib.get_close_matches(str(name), list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {shown(matches[0])}?" if matches else ""
