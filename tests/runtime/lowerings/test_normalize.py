"""Normalization of integers in programs: bit for bit what the interpreter gives, at every level."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from tests.runtime.lowerings.test_tflite import SEED, agree, legal, q_of, some


@settings(max_examples=12, deadline=None)
@given(
    seed=SEED, dtype=st.sampled_from(["int8", "uint8", "int16"]), centred=st.booleans(),
    shape=st.sampled_from([(3, 10), (2, 4, 65), (1, 5, 3, 4)]), last=st.booleans(),
)  # fmt: skip
def test_rows(seed: int, dtype: DType, centred: bool, shape: tuple[int, ...], last: bool) -> None:
    rng, axis = np.random.default_rng(seed), -1 if last else -2
    x, inner = some(rng, dtype, shape), shape[axis:]
    gamma = rng.integers(-(2**15) + 1, 2**15, inner).astype(np.int16)
    beta = rng.integers(-(2**30), 2**30, inner).astype(np.int32)
    name, more = ("layer", {"beta": beta}) if centred else ("rms", {})
    out = QParams(1e-6, 0, "int32")
    node = (f"qnn.{name}_norm", " ".join(["x", "gamma", *more]), "y", {"axis": axis, "epsilon": 1e-5})
    agree(legal({"x": x}, {"x": q_of(rng, dtype), "y": out}, [node], {"gamma": gamma, **more}), {"x": x})
