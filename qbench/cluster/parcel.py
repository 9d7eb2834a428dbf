"""What travels to workers: an object as bytes, its large constants beside it, each known by its content.

Whoever sends a network a thousand times sends its weights once: a parcel names them, and a worker's shelf has them.
"""

import hashlib
import io
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

import cloudpickle
from numpy.typing import NDArray

from qbench.errors import ClusterError, DataError, shown
from qbench.ir.frozen import Constant

_LARGE = 1 << 12  # bytes of a constant that is sent by itself
_OPEN = 8  # parcels that a worker keeps opened, with all that their objects have planned
_PACKAGES = ("qbench", "numpy", "numba", "cloudpickle")

SHELF: dict[str, Any] = {}
"""Of a worker: bytes of parcels and arrays of constants, by digest."""


class Missing(LookupError):
    """A worker does not have, or no longer has, what a parcel needs: it is to be sent again."""


@dataclass(frozen=True)
class Parcel:
    """An object to be opened elsewhere.

    Parameters
    ----------
    digest
        Of its bytes, which name the constants it needs by theirs.
    content
        The bytes; None where the worker has them on its shelf.
    """

    digest: str
    content: bytes | None


def packed(thing: object) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """An object as bytes, and the arrays of its large constants by digest; ClusterError where it cannot travel."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    try:
        pickler.dump(thing)
    except Exception as error:  # whatever the user's objects raise
        raise ClusterError(
            f"{_named(thing)} cannot be sent to the workers of a cluster: {error}; give what is made of plain values, "
            "and define functions and classes at the top of a module that the workers can import"
        ) from error
    return stream.getvalue(), pickler.constants


def call(sent: Mapping[str, str], function: Parcel, *arguments: Any) -> Any:
    """What the function makes of the arguments, run by a worker.

    Parameters
    ----------
    sent
        `versions` of whoever asks.
    function
        Opened once in each process, and kept.
    arguments
        Parcels, or what other calls gave.

    Raises
    ------
    ClusterError
        A package has another version here, or something cannot be imported here.
    Missing
        What was delivered was taken back meanwhile.
    """
    here = versions()
    other = [f"{name} {here[name]} instead of {wanted}" for name, wanted in sent.items() if here[name] != wanted]
    if other:
        raise ClusterError(f"a worker has {', '.join(other)}: install the same versions everywhere")
    try:
        work = _opened(function)
        given = [_opened(one, keep=False) if isinstance(one, Parcel) else one for one in arguments]
    except ImportError as error:
        raise ClusterError(
            f"a worker cannot import {shown(error.name or str(error))}: put the module where the workers find it "
            "(on their PYTHONPATH, or by client.upload_file)"
        ) from error
    try:
        return work(*given)
    except DataError as error:
        cause = error.__cause__
        while isinstance(cause, DataError):
            cause = cause.__cause__
        if isinstance(cause, OSError):
            raise DataError(f"on a worker: {error}; what is read must be at the same place on each machine") from error
        raise


def versions() -> dict[str, str]:
    """Of Python (without its last number) and the packages that must be the same on both sides."""
    return {"python": python_version().rpartition(".")[0], **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(none)"


class _Pickler(cloudpickle.Pickler):  # pyright: ignore[reportUntypedBaseClass, reportUnknownMemberType]
    """Takes large constants out, by digest."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)  # pyright: ignore[reportUnknownMemberType]
        self.constants: dict[str, NDArray[Any]] = {}

    def persistent_id(self, obj: object) -> str | None:
        """The digest of what is not packed."""
        if not isinstance(obj, Constant) or obj.array.nbytes < _LARGE:
            return None
        self.constants[obj.digest] = obj.array
        return obj.digest


class _Unpickler(pickle.Unpickler):
    """Puts them back, the same object for each parcel that has it."""

    def persistent_load(self, pid: str) -> Constant:
        """The constant of that digest."""
        found = _from_shelf(pid)
        if not isinstance(found, Constant):
            found = SHELF[pid] = Constant(found)
        return found


_kept: OrderedDict[str, Callable[..., Any]] = OrderedDict()
_opening = threading.Lock()


def _opened(parcel: Parcel, keep: bool = True) -> Any:
    with _opening:
        if parcel.digest in _kept:
            _kept.move_to_end(parcel.digest)
            return _kept[parcel.digest]
        content = _from_shelf(parcel.digest) if parcel.content is None else parcel.content
        thing = _Unpickler(io.BytesIO(content)).load()
        if keep:
            _kept[parcel.digest] = thing
            while len(_kept) > _OPEN:
                _kept.popitem(last=False)
        return thing


def _from_shelf(digest: str) -> Any:
    try:
        return SHELF[digest]
    except KeyError:
        raise Missing(digest) from None


def _named(thing: object) -> str:
    name = getattr(thing, "__qualname__", None)
    return shown(name) if isinstance(name, str) else f"a {type(thing).__name__}"


def digest_of(content: bytes) -> str:
    """Identity of bytes."""
    return hashlib.sha256(content).hexdigest()
