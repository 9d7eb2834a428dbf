"""What trials cost is measured in earnest by its own tests alone: elsewhere one turn says enough."""

from collections.abc import Iterator

import pytest

from qbench.search import cost


@pytest.fixture(autouse=True, scope="module")
def one_turn() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "_MOST", 0.0)
        yield
