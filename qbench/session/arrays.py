"""Data sets and statistics on disk; never pickled. What lies in files already is referred to."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from qbench.calibration.means import ChannelMeans
from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset, Survey
from qbench.data.images import ImageFolder, ImageForm
from qbench.data.known import remember
from qbench.data.places import place
from qbench.data.portions import Feeds, Kind
from qbench.data.shards import Shards
from qbench.errors import DataError, SessionError
from qbench.files import replacing, write_text
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph

_FILES = "files.json"


def save_dataset(data: Dataset, folder: Path) -> None:
    """Write the data as ``NUMBER.npz`` (inputs by number: zip archives limit names), and the labels.

    Of images and shards their paths alone, with the digests of what they hold: ``files.json``.
    """
    folder.mkdir()
    if isinstance(data.source, (ImageFolder, Shards)):
        write_text(folder / _FILES, _Files.of(data.source, data.survey, data.stamps).model_dump_json())
    else:
        for index, feeds in enumerate([data.whole()] if data.is_one_array else data):
            arrays = {f"input{i}": array for i, array in enumerate(feeds.values())}
            np.savez(folder / f"{index:08d}.npz", **arrays)  # pyright: ignore[reportArgumentType] the stub's allow_pickle
    if data.labels is not None:
        np.save(folder / "labels.npy", data.labels)


def load_dataset(graph: Graph, folder: Path, what: str, digest: str) -> Dataset:
    """Read what `save_dataset` wrote for that graph; SessionError where it is not what it was.

    Files that are referred to are read when they are needed; whoever finds them changed then says so.
    """
    saved, survey = _SavedItems(graph, sorted(folder.glob("*.npz"))), None
    labels, files = folder / "labels.npy", folder / _FILES
    try:
        items: object = list(saved) if len(saved.paths) == 1 else saved
        if files.exists():
            said = _Files.model_validate_json(files.read_bytes())
            items, survey = said.source(), said.survey
        classes = np.load(labels, allow_pickle=False) if labels.exists() else None
        data = Dataset(graph, items, classes, what=what, survey=survey)
    except (OSError, ValueError, EOFError, DataError) as error:
        raise SessionError(f"{folder}: the {what} data cannot be read: {error}") from error
    if data.digest != digest:
        raise SessionError(f"{folder}: the {what} data was changed after it was saved")
    return data


def recall_surveys(folder: Path) -> None:
    """Remember what the data of the session there was found to be: what is still as it was is not read again.

    Raises
    ------
    SessionError
        A part of the session is damaged.
    """
    for path in folder.glob(f"*/{_FILES}"):
        try:
            said = _Files.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise SessionError(f"{path} cannot be read: {error}") from error
        for stamp, (digest, _, kind) in zip(said.stamps, said.survey, strict=False):
            remember(stamp, digest, kind)


class _Files(pydantic.BaseModel, extra="forbid", frozen=True):
    """What ``files.json`` says."""

    kind: Literal["images", "shards"]
    paths: tuple[str, ...]
    form: ImageForm
    first: int = 0
    last: int | None = None
    survey: list[tuple[str, int, Kind]]
    stamps: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: ImageFolder | Shards, survey: Survey, stamps: tuple[str, ...]) -> _Files:
        here = [str(path if "://" in str(path) else path.resolve()) for path in source.files]
        span = (source.first, source.last) if isinstance(source, Shards) else (0, None)
        kind = "shards" if isinstance(source, Shards) else "images"
        return cls(
            kind=kind, paths=tuple(here), form=source.form, first=span[0], last=span[1], survey=[*survey], stamps=stamps
        )

    def source(self) -> ImageFolder | Shards:
        files = tuple(map(place, self.paths))
        if self.kind == "images":
            return ImageFolder(files, self.form)
        return Shards(files, self.form, self.first, self.last)


def save_statistics(statistics: Mapping[str, Statistics], path: Path) -> None:
    """Write the statistics of all tensors to one npz file."""
    numbers = list(statistics.values())
    channels = [s.channels and (s.channels.samples, *map(hex, s.channels.totals)) for s in numbers]  # beyond 64 bits
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            names=np.frombuffer(json.dumps(list(statistics)).encode(), np.uint8),
            ranges=np.array([(s.min, s.max) for s in numbers], np.float64),
            integers=np.array([(s.count, s.zeros, s.exponent) for s in numbers], np.int64),
            counts=np.stack([s.counts for s in numbers]) if numbers else np.zeros((0, 0), np.int64),
            channels=np.frombuffer(json.dumps(channels).encode(), np.uint8),
        )


def load_statistics(path: Path) -> dict[str, Statistics]:
    """Read what `save_statistics` wrote; SessionError where it is not that."""
    try:
        stored = stored_arrays(path)
        names = json.loads(stored["names"].tobytes())
        counts = stored["counts"]
        counts.flags.writeable = False
        channels = map(_channel_means, json.loads(stored["channels"].tobytes()))
        rows = zip(names, stored["ranges"].tolist(), stored["integers"].tolist(), counts, channels, strict=True)
        return {
            name: Statistics(low, high, count, zeros, exponent, row, means)
            for name, (low, high), (count, zeros, exponent), row, means in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "without that file they are collected again"
        raise SessionError(f"{path}: the statistics cannot be read: {error}; {remedy}") from error


def _channel_means(saved: list[Any] | None) -> ChannelMeans | None:
    return None if saved is None else ChannelMeans(tuple(int(total, 16) for total in saved[1:]), saved[0])


class _SavedItems:
    """The items of a data set on disk, read anew on each iteration."""

    def __init__(self, graph: Graph, paths: list[Path]) -> None:
        self.paths = paths
        self._dtypes = {name: numpy_dtype(type.dtype) for name, type in graph.input_types().items()}

    def __iter__(self) -> Iterator[Feeds]:
        for path in self.paths:
            arrays = stored_arrays(path)
            if len(arrays) != len(self._dtypes):
                raise SessionError(f"{path}: {len(arrays)} arrays, but the model has {len(self._dtypes)} inputs")
            # npz knows no bfloat16 and no int4: they come back as raw bytes of the same size
            yield {name: arrays[f"input{i}"].view(dtype) for i, (name, dtype) in enumerate(self._dtypes.items())}


def stored_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file; ValueError where it is damaged."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # NumPy takes what it does not know for a pickle, and says so
                raise zipfile.BadZipFile("this is no npz archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
    except (zipfile.BadZipFile, EOFError, AttributeError, TypeError, RuntimeError) as error:  # the last of zipfile, too
        raise ValueError(f"{path.name} is damaged: {error}") from error
