"""Graphs on disk: a folder with the IR's text, the constants as safetensors, and a manifest of digests.

``graph.txt`` is exact (:mod:`qbench.ir.parser`), so that names, dtypes, qparams, sources and reasons come back as they
were. Constants that are mapped to memory from a file of the model's own stay there: the manifest says where. Types that
safetensors' NumPy reader lacks are stored as raw bits (bfloat16 as uint16; int4 and uint4 two to a byte, the first in
the lower half); the manifest has the type and shape of every constant. Nothing is ever pickled.
"""

import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from qbench.errors import ExportError, GraphError, ModelError, shown
from qbench.ir.bits import packed, signed, unpacked
from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.frozen import Constant
from qbench.ir.graph import BARE, Graph, check_graph, print_graph
from qbench.ir.mapped import Place
from qbench.ir.parser import parse_graph

VERSION = 2
"""Of the format; a reader refuses what is newer than itself. Archives that refer to no other files have version 1."""

_MANIFEST, _TEXT, _TENSORS = "manifest.json", "graph.txt", "constants.safetensors"
_PARTS = f"a qbench archive is a folder with {_MANIFEST}, {_TEXT} and {_TENSORS}"


class _Tensor(pydantic.BaseModel, extra="forbid", strict=True):
    key: str | None = None
    file: Place | None = None
    dtype: DType
    shape: list[Annotated[int, pydantic.Field(ge=0)]]
    digest: str


class _Versioned(pydantic.BaseModel, extra="ignore", strict=True):
    version: int


class _Manifest(pydantic.BaseModel, extra="forbid", strict=True):
    format: Literal["qbench.archive"] = "qbench.archive"
    version: int
    name: str
    file: str | None = None
    graph_sha256: str
    constants: dict[str, _Tensor]


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether the path looks like a folder that :func:`save` made."""
    with suppress(OSError, ValueError):  # a name that is too long, or that no file can have
        return (Path(path) / _MANIFEST).is_file()
    return False


def check_target(folder: str | os.PathLike[str]) -> None:
    """Raise ExportError where :func:`save` would overwrite what is no archive."""
    if Path(folder).exists() and not is_archive(folder):
        raise ExportError(f"{folder} is there and is not a qbench archive; remove it or choose another name")


def save(graph: Graph, folder: str | os.PathLike[str]) -> None:
    """Write a graph as an archive; an archive that is there already is replaced in one step.

    Parameters
    ----------
    graph
        Any graph, float or integer.
    folder
        By custom ``NAME.qbench``.

    Raises
    ------
    ExportError
        The folder cannot be written, or is there and no archive.
    """
    check_graph(graph)
    target = Path(folder)
    check_target(target)
    scratch = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        _write(graph, scratch / "new")
        if target.exists():
            target.rename(scratch / "old")
        (scratch / "new").rename(target)
    except (OSError, safetensors.SafetensorError) as error:
        if scratch is not None and (scratch / "old").exists() and not target.exists():
            (scratch / "old").rename(target)
        raise ExportError(f"cannot write the archive {target}: {error}") from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def load(folder: str | os.PathLike[str]) -> Graph:
    """Read the graph of an archive, equal to the one that was saved.

    Raises
    ------
    ModelError
        No archive, a file that is missing, changed or damaged, or a format newer than this qbench.
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    text = _read(source / _TEXT)
    if hashlib.sha256(text).hexdigest() != manifest.graph_sha256:
        raise ModelError(f"{source / _TEXT} was changed after it was saved (its SHA-256 differs from the manifest's)")
    constants = _read_constants(source / _TENSORS, manifest.constants)
    try:
        graph = parse_graph(text.decode(), constants)
    except (GraphError, UnicodeDecodeError) as error:
        raise ModelError(f"{source / _TEXT}: {error}") from error
    if unused := set(constants) - set(graph.constants):
        raise ModelError(f"{source}: constant {shown(min(unused))} is stored, but the graph has no such constant")
    return replace(graph, file=manifest.file or "")


def _write(graph: Graph, folder: Path) -> None:
    folder.mkdir()
    text = print_graph(graph).encode()
    (folder / _TEXT).write_bytes(text)
    tensors = {name: _tensor(constant, _key(name, i)) for i, (name, constant) in enumerate(graph.constants.items())}
    arrays = {one.key: _packed(graph.constants[name]) for name, one in tensors.items() if one.key is not None}
    (folder / _TENSORS).write_bytes(safetensors.numpy.save(arrays))
    version = VERSION if len(arrays) < len(tensors) else 1
    sha256 = hashlib.sha256(text).hexdigest()
    manifest = _Manifest(
        version=version, name=graph.name, file=graph.file or None, graph_sha256=sha256, constants=tensors
    )
    content = json.dumps(manifest.model_dump(exclude_none=True), indent=1)
    (folder / _MANIFEST).write_text(content + "\n", encoding="utf-8")


def _tensor(constant: Constant, key: str) -> _Tensor:
    """What the manifest says: the constant is stored by that key, unless a file has it already."""
    place = Place.of(constant.array)
    return _Tensor(
        key=key if place is None else None,
        file=place,
        dtype=constant.dtype,
        shape=list(constant.shape),
        digest=constant.digest,
    )


def _key(name: str, index: int) -> str:
    """The name itself, so that other tools find it, unless it is one that safetensors might refuse."""
    return name if re.fullmatch(BARE, name) and name != "__metadata__" else f"#{index}"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; {_PARTS}") from error


def _read_manifest(source: Path) -> _Manifest:
    path = source / _MANIFEST
    text = _read(path)
    try:
        version = _Versioned.model_validate_json(text).version
        if version > VERSION:
            raise ModelError(f"{source} has archive format {version}; this qbench reads up to {VERSION}: update it")
        return _Manifest.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole file"
        raise ModelError(f"{path} is not an archive's manifest: {place}: {first['msg']}") from None


def _read_constants(path: Path, tensors: Mapping[str, _Tensor]) -> dict[str, Constant]:
    content = _read(path)
    try:
        stored = safetensors.numpy.load(content)
    except (ValueError, KeyError, safetensors.SafetensorError) as error:
        raise ModelError(f"{path} is damaged or no safetensors file: {error}") from error
    constants: dict[str, Constant] = {}
    for name, tensor in tensors.items():
        if tensor.file is not None:
            constants[name] = _elsewhere(tensor.file, name, tensor, path)
            continue
        try:
            constants[name] = Constant(_unpacked(stored[str(tensor.key)], tensor.dtype, tuple(tensor.shape)))
        except (KeyError, ValueError, TypeError) as error:
            raise ModelError(f"{path}: constant {shown(name)} is missing or not as the manifest says") from error
        if constants[name].digest != tensor.digest:
            raise ModelError(f"{path}: constant {shown(name)} was changed after it was saved (its digest differs)")
    return constants


def _elsewhere(place: Place, name: str, tensor: _Tensor, path: Path) -> Constant:
    """A constant in a file of the model's own; it is read only where that may have been changed."""
    told = f"{path.parent}: constant {shown(name)} lies in {shown(place.path)}"
    try:
        array = place.array(numpy_dtype(tensor.dtype), tuple(tensor.shape))
        if place.is_as_it_was:
            return Constant.known(array, tensor.digest)
    except (OSError, ValueError) as error:
        raise ModelError(f"{told}, which cannot be read: {error}; put the file back") from error
    if Constant(array).digest != tensor.digest:
        raise ModelError(f"{told}, which was changed after the archive was saved (its digest differs); put it back")
    return Constant.known(array, tensor.digest)


def _packed(constant: Constant) -> NDArray[np.generic]:
    if constant.dtype == "bfloat16":
        return constant.array.view(np.uint16)
    if constant.dtype not in ("int4", "uint4"):
        return constant.array
    return packed(constant.array.astype(np.int8).view(np.uint8).ravel() & 15)


def _unpacked(stored: NDArray[Any], dtype: DType, shape: tuple[int, ...]) -> NDArray[np.generic]:
    wanted = numpy_dtype(dtype)
    if dtype == "bfloat16":
        return stored.view(wanted).reshape(shape)
    if dtype not in ("int4", "uint4"):
        return stored.astype(wanted, casting="no", copy=False).reshape(shape)
    halves = unpacked(stored)[: math.prod(shape)]
    return (signed(halves) if dtype == "int4" else halves).astype(wanted).reshape(shape)
