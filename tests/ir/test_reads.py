"""What was looked up is the key: nothing else counts, and nothing of it is forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.ir.memo import Memo
from qbench.ir.reads import Reads

KEYS = st.sampled_from("abcd")
MAPPINGS = st.dictionaries(KEYS, st.integers(0, 2))


@given(before=MAPPINGS, after=MAPPINGS, asked=st.lists(KEYS))
def test_reads_hold_while_all_that_was_asked_is_what_it_was(
    before: dict[str, int], after: dict[str, int], asked: list[str]
) -> None:
    reads = Reads()
    view = reads.view("values", before)
    assert [view.get(key) for key in asked] == [before.get(key) for key in asked]
    same = all(before.get(key) == after.get(key) for key in asked)
    assert reads.hold({"values": after}) is same


def test_an_entry_that_was_missing_counts_too() -> None:
    reads = Reads()
    assert "a" not in reads.view("values", {})
    assert reads.hold({"values": {"b": 1}})
    assert not reads.hold({"values": {"a": None}})


def test_all_entries_at_once_cannot_be_asked_for() -> None:
    view = Reads().view("values", {"a": 1})
    with pytest.raises(TypeError, match="values can be asked for single entries only"):
        list(view)
    with pytest.raises(TypeError, match="single entries"):
        len(view)


def test_a_memo_makes_again_what_no_longer_holds() -> None:
    memo, values, made = Memo(), {"a": 1}, list[int]()

    def make() -> Reads:
        reads = Reads()
        made.append(reads.view("values", values)["a"])
        return reads

    for wanted, change in (([1], {}), ([1], {"b": 5}), ([1, 7], {"a": 7})):
        values.update(change)
        memo.recall("place", (), make, lambda reads: reads.hold({"values": values}))
        assert made == wanted
