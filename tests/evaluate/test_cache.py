from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.evaluate.cache import ValueCache


def array(value: int, size: int = 10) -> np.ndarray:
    return np.full(size, value, np.uint8)


def test_what_was_put_comes_back_read_only():
    cache = ValueCache(100)
    cache.put("a", array(1))
    found = cache.get("a")
    assert found is not None
    assert found.tolist() == [1] * 10
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 2
    assert cache.get("b") is None


def test_the_least_recently_used_goes_first():
    cache = ValueCache(30)
    for key in "abc":
        cache.put(key, array(0))
    cache.begin()
    assert cache.get("a") is not None
    cache.put("d", array(0))
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]


def test_an_evaluation_larger_than_the_budget_keeps_its_beginning():
    cache = ValueCache(30)
    for _ in range(3):
        cache.begin()
        hits = [cache.get(key) is not None for key in range(10)]
        for key in range(10):
            cache.put(key, array(key))
    assert hits == [True] * 3 + [False] * 7


def test_memory_is_given_back_once_a_quarter_of_the_budget_was_dropped(monkeypatch: pytest.MonkeyPatch):
    given_back: list[int] = []
    monkeypatch.setattr("qbench.evaluate.cache._give_back", lambda: given_back.append(at))
    cache = ValueCache(100)
    for at in range(20):  # once it is full, each drops what the first of the ten before it put
        cache.begin()
        cache.put(at, array(at, 10))
    assert given_back == [13, 16, 19]


def test_a_view_does_not_keep_its_base_alive():
    base = np.zeros(1000, np.uint8)
    cache = ValueCache(100)
    cache.put("a", base[:10])
    found = cache.get("a")
    assert found is not None
    assert not np.shares_memory(found, base)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.booleans()), max_size=60), st.integers(0, 60))
def test_never_more_than_the_budget_and_never_a_wrong_array(steps: list[tuple[int, int, bool]], budget: int):
    cache = ValueCache(budget)
    for key, size, begins in steps:
        if begins:
            cache.begin()
        cache.put((key, size), array(key, size))
        assert cache.nbytes <= budget
        found = cache.get((key, size))
        assert found is None or found.tolist() == [key] * size


def test_threads_share_it():
    cache = ValueCache(500)
    wrong = []

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, 100, 2000).tolist():
            cache.put(i, array(i))
            found = cache.get(i)
            if found is not None and found[0] != i:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.nbytes <= 500


def test_small_results():
    cache = ValueCache(0)
    cache.put_result("a", (1.0, 2.0))
    assert cache.get_result("a") == (1.0, 2.0)
    assert cache.get_result("b") is None
