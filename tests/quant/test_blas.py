"""BLAS has one thread where that is asked for, and as many as before when the last one who asked is gone."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from qbench.quant.blas import _LIBRARY, one_blas_thread


def test_one_thread_until_the_last_one_leaves() -> None:
    if _LIBRARY.functions is None:
        pytest.skip("NumPy has another BLAS than OpenBLAS")
    threads, _ = _LIBRARY.functions
    before = threads()
    first, second = ExitStack(), ExitStack()
    for one in (first, second):
        one.enter_context(one_blas_thread())
        assert threads() == 1
    first.close()
    assert threads() == 1
    with pytest.raises(KeyError), second:
        raise KeyError
    assert threads() == before
