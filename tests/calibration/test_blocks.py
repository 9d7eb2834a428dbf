"""A calibration in blocks gives what one pass gives, and what is known of a block is not looked for again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from qbench.calibration.blocks import Blocks, collect_blocks
from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.errors import DataError
from tests.networks import mlp, samples

X = samples(700)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("cuts", [[], [1], [255, 256, 600]])
def test_the_same_as_in_one_pass(workers, cuts):
    data = Dataset(mlp(), np.split(X, cuts))
    with ThreadPoolExecutor(2) as pool:
        assert collect_blocks(mlp(), data, Blocks(), pool if workers else None) == collect(mlp(), X)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_pass_that_was_stopped_goes_on(workers):
    blocks, numbers, data = Blocks(), [], Dataset(mlp(), X)

    def interrupt(done, total):
        if done >= 600:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
        collect_blocks(mlp(), data, blocks, pool if workers else None, interrupt)
    assert blocks.samples == 512
    found = collect_blocks(mlp(), data, blocks, progress=lambda done, total: numbers.append((done, total)))
    assert numbers[0] == (513, 700)
    assert numbers[-1] == (700, 700)
    assert found == collect(mlp(), X)


def test_more_data_costs_only_itself():
    kept, numbers = {}, []
    blocks = [Blocks(kept.get, kept.__setitem__) for _ in range(2)]
    collect_blocks(mlp(), Dataset(mlp(), X[:512]), blocks[0])
    found = collect_blocks(mlp(), Dataset(mlp(), X), blocks[1], progress=lambda done, total: numbers.append(done))
    assert numbers[0] == 513
    assert len(kept) == 3  # two of the first, which are here again, and one more
    assert found == collect(mlp(), X)


def test_a_bad_sample_has_its_number_in_all_data():
    x = samples(300).copy()
    x[290] = 3e38  # finite, and its products are not
    with np.errstate(all="ignore"), pytest.raises(DataError, match="calibration sample 290: tensor 'dense_1' has nan"):
        collect_blocks(mlp(), Dataset(mlp(), x), Blocks())
