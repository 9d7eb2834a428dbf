"""Arrays joined without a copy where they lie side by side, also those with nothing in them."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.data.owned import joined, owned
from qbench.errors import DataError


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3), (1,)])
def test_what_lies_side_by_side_is_joined_as_it_is(shape: tuple[int, ...]) -> None:
    arrays = [np.full(shape, number, np.float32) for number in range(3)]
    mine = owned(arrays)
    assert isinstance(mine, list)
    made = joined(mine)  # pyright: ignore[reportUnknownArgumentType]
    np.testing.assert_array_equal(made, np.concatenate(arrays))
    assert np.shares_memory(made, mine[0]) == bool(made.size)


def test_masked_values_are_refused() -> None:
    masked = np.ma.masked_array(np.arange(3), [0, 1, 0])
    for data in (masked, [masked], [{"x": masked}], {"x": masked}):
        with pytest.raises(DataError, match="data is masked in places"):
            owned(data)
