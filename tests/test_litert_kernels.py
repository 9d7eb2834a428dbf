"""The table of differences between LiteRT's kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import litert_kernels


def test_every_op_of_the_table_is_measured_by_the_command() -> None:
    page = Path(litert_kernels.__file__).with_suffix(".md").read_text()
    listed = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ") and "%" in line]
    assert listed == [*litert_kernels.CASES]


@pytest.mark.parametrize("name", ["ADD int8", "FULLY_CONNECTED int8"])
def test_a_row(name: str) -> None:
    row = litert_kernels.measure(name, samples=1)
    assert row.name == name
    assert len(row.different) == len(row.largest) == 2
    assert all((share > 0) == (steps > 0) for share, steps in zip(row.different, row.largest, strict=True))
