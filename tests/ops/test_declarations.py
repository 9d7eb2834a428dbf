"""What every op in the registry must have, and do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from qbench.errors import GraphError
from qbench.ir.dtypes import dtype_of, numpy_dtype
from qbench.ir.op import OPS, Op, QuantRule
from qbench.ir.types import TensorType, dim_factors
from tests.ops.oracle import bound, evaluate
from tests.ops.samples import SAMPLES

FLOAT_OPS = sorted(name for name, cls in OPS.items() if cls.rule is not QuantRule.INTERNAL)


def test_no_sample_without_an_op() -> None:
    assert set(SAMPLES) <= set(OPS)


@pytest.mark.parametrize("name", sorted(OPS))
def test_declaration(name: str) -> None:
    cls = OPS[name]
    assert cls.name == name
    assert inspect.getdoc(cls) not in (None, inspect.getdoc(Op)), "an op says what it means"
    assert "__doc__" in vars(cls) and vars(cls)["__doc__"], "in its own words"
    assert all(operand.lstrip("*").isidentifier() for operand in cls.operands)
    assert isinstance(cls.rule, QuantRule)
    assert cls.float_reason.startswith(("unsupported: ", "default for this op: "))
    assert cls.infer is not Op.infer
    assert cls.compute is not Op.compute or cls.compute_all is not Op.compute_all


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_infers_what_it_gives(name: str) -> None:
    assert name in SAMPLES, "give it a sample in tests/ops/samples.py"
    operands, attrs, _ = SAMPLES[name]
    first, again = evaluate(name, *operands, **attrs), evaluate(name, *operands, **attrs)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [name for name in FLOAT_OPS if SAMPLES[name].symbolic])
@pytest.mark.parametrize("batch", [1, 3])
def test_carries_a_symbolic_batch(name: str, batch: int) -> None:
    operands, attrs, _ = SAMPLES[name]
    rest = [TensorType(array.shape, dtype_of(array.dtype)) for array in operands[1:]]
    op = bound(name, len(operands), **attrs)
    symbolic = op.infer_all((TensorType(("N", *operands[0].shape[1:]), dtype_of(operands[0].dtype)), *rest))
    data = np.resize(operands[0], (batch, *operands[0].shape[1:]))
    for inferred, result in zip(symbolic, op.compute_all((data, *operands[1:])), strict=True):
        sizes = [number * (batch if symbol else 1) for number, symbol in map(dim_factors, inferred.shape)]
        assert sizes == list(result.shape)
        assert any(symbol for _, symbol in map(dim_factors, inferred.shape))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FLOAT_OPS)
def test_half_precision(name: str, dtype: str) -> None:
    operands, attrs, _ = SAMPLES[name]
    half = numpy_dtype(dtype)
    lowered = [array.astype(half) if array.dtype == np.float32 else array for array in operands]
    wide = [array.astype(np.float32) if array.dtype == half else array for array in lowered]
    for low, high in zip(evaluate(name, *lowered, **attrs), evaluate(name, *wide, **attrs), strict=True):
        assert low.dtype == (half if high.dtype == np.float32 else high.dtype)
        np.testing.assert_array_equal(low.astype(np.float64), high.astype(low.dtype).astype(np.float64))


@pytest.mark.parametrize("name", [name for name in FLOAT_OPS if not "".join(OPS[name].operands[-1:]).startswith("*")])
def test_counts_its_operands(name: str) -> None:
    with pytest.raises(GraphError, match=r"takes \(.*\), not 7 inputs"):
        bound(name, 7, **SAMPLES[name].attrs)
