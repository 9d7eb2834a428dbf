"""Integer convolutions and dense layers: programs give the interpreter's bits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import conv_graphs, dense_graphs


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=conv_graphs(), threads=st.integers(1, 3))
def test_convolutions(level, case, threads):
    assert_agree(*case, level=level, threads=threads)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=dense_graphs(), threads=st.integers(1, 3))
def test_dense_layers(level, case, threads):
    assert_agree(*case, level=level, threads=threads)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(case=conv_graphs(depthwise=True), threads=st.integers(1, 3))
def test_depthwise_convolutions(level, case, threads):
    assert_agree(*case, level=level, threads=threads)
