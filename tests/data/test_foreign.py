"""Data of other libraries is what its arrays are. Torch and Hugging Face are played by classes of their protocols."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import cloudpickle
import dask.array
import dask.bag
import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import DataError
from tests.networks import mlp, samples

X = samples(100)


def made() -> dict[str, Any]:
    array = dask.array.from_array(X, chunks=(30, 5))
    bag = dask.bag.from_sequence([*X[:, None]], npartitions=7)
    columns = {"x": X.tolist(), "label": [0] * 100}
    return {
        "array": array,
        "bag": bag,
        "loader": Loader([(Tensor(X[i : i + 16]), Tensor(np.arange(i, i + 16))) for i in range(0, 100, 16)]),
        "loader of mappings": Loader([{"x": Tensor(X[i : i + 16]), "y": 0} for i in range(0, 100, 16)]),
        "columns": Columns(columns),
    }


class Tensor:
    """As torch's, as far as it is asked."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def numpy(self) -> np.ndarray:
        return self.array


class Loader:
    """As torch.utils.data.DataLoader."""

    def __init__(self, batches: list[Any], sampler: object = None) -> None:
        self.dataset, self.batch_size, self.sampler = batches, 16, sampler

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset)


class RandomSampler:
    """As torch.utils.data.RandomSampler."""


class Columns:
    """As datasets.Dataset."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self.column_names = columns, [*columns]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: column[index] for name, column in self.columns.items()}

    def select(self, indices: range) -> Columns:
        return Columns({name: [column[index] for index in indices] for name, column in self.columns.items()})


@pytest.mark.parametrize("kind", made())
def test_it_is_the_same_data(kind: str):
    data, whole = Dataset(mlp(), made()[kind]), Dataset(mlp(), X)
    assert (data.digest, data.samples) == (whole.digest, 100)
    assert np.array_equal(data.sample(57)["x"], X[57:58])
    parts = [*data.portions(32)]
    again = [pickle.loads(cloudpickle.dumps(part)) for part in parts]  # noqa: S301  our own
    for some in (parts, again):
        assert np.array_equal(np.concatenate([piece["x"] for part in some for piece in part.checked()]), X)


def test_a_part_of_a_dask_array_travels_without_the_rest():
    whole = dask.array.from_array(np.zeros((10_000, 12), np.float32), chunks=(10, 12))
    part = next(Dataset(mlp(), whole).portions(32))
    assert len(cloudpickle.dumps(part)) < 30_000


def test_what_cannot_be_read_twice_the_same_is_refused():
    with pytest.raises(DataError, match="shuffle=False"):
        Dataset(mlp(), Loader([Tensor(X)], RandomSampler()))


def test_a_column_that_is_missing_is_named():
    with pytest.raises(DataError, match=r"no column 'x' for that input .*it has 'label'"):
        Dataset(mlp(), Columns({"label": [1]}))
