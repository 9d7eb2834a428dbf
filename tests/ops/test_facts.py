"""What ops say about themselves, held against what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.ir.dtypes import dtype_of
from qbench.ir.op import OPS, Channels, Epilogue, Op, QuantRule, Role
from qbench.ir.types import TensorType
from tests.ops.oracle import bound, evaluate
from tests.ops.samples import SAMPLES

FLOAT_OPS = sorted(name for name, cls in OPS.items() if cls.rule is not QuantRule.INTERNAL)


def _sampled(name: str) -> tuple[Op, list[np.ndarray], list[TensorType]]:
    operands, attrs, _ = SAMPLES[name]
    op = bound(name, len(operands), **attrs)
    return op, list(operands), [TensorType(array.shape, dtype_of(array.dtype)) for array in operands]


def _those(fact: str) -> list[str]:
    return [name for name in FLOAT_OPS if getattr(OPS[name], fact)]


@pytest.mark.parametrize("name", sorted(OPS))
def test_roles(name: str) -> None:
    cls = OPS[name]
    if not cls.operands:
        return
    roles = [cls.role(index) for index in range(len(cls.operands))]
    assert roles[0] is Role.DATA
    assert roles.count(Role.WEIGHT) <= 1 and roles.count(Role.BIAS) <= 1
    assert (Role.BIAS in roles) == (cls.rule is QuantRule.BIAS)
    assert cls.role(99) is roles[-1]


@pytest.mark.parametrize("name", sorted(OPS))
def test_an_integer_op_names_a_float_op(name: str) -> None:
    form = OPS[name].form_of
    assert form is None or (OPS[name].rule is QuantRule.INTERNAL and OPS[form].rule is not QuantRule.INTERNAL)


@pytest.mark.parametrize("name", sorted(OPS))
def test_what_is_absorbed_comes_in_order(name: str) -> None:
    order = list(Epilogue)
    absorbed = [order.index(what) for what in OPS[name].absorbs]
    assert absorbed == sorted(set(absorbed))
    assert (OPS[name].rule is QuantRule.CLAMP) == (OPS[name].epilogue is Epilogue.CLAMP)


@pytest.mark.parametrize("name", _those("elementwise"))
def test_an_elementwise_op_reads_one_element(name: str) -> None:
    op, operands, _ = _sampled(name)
    (before,) = evaluate(name, *operands, **SAMPLES[name].attrs)
    assert before.shape == np.broadcast_shapes(before.shape, operands[0].shape)
    changed = operands[0].copy()
    changed[(0,) * changed.ndim] = changed[(-1,) * changed.ndim] if changed.dtype != bool else ~changed.flat[0]
    (after,) = op.compute_all((changed, *operands[1:]))
    same = np.ones(before.shape, bool)
    same[np.broadcast_to(changed != operands[0], before.shape)] = False
    np.testing.assert_array_equal(before[same], after[same])


@pytest.mark.parametrize("name", _those("moves"))
def test_a_mover_computes_nothing(name: str) -> None:
    op, operands, _ = _sampled(name)
    given = {float(x) for array in operands for x in array.flat} | {float(getattr(op, "pad_value", 0.0))}
    for result in evaluate(name, *operands, **SAMPLES[name].attrs):
        assert {float(x) for x in result.flat} <= given


@pytest.mark.parametrize("name", _those("keeps_order"))
def test_order_is_kept(name: str) -> None:
    _, operands, _ = _sampled(name)
    (result,) = evaluate(name, *operands, **SAMPLES[name].attrs)
    np.testing.assert_array_equal(result.ravel(), operands[0].ravel())


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_signs_and_bounds(name: str) -> None:
    op, operands, _ = _sampled(name)
    with np.errstate(all="ignore"):
        results = op.compute_all(tuple(operands))
        folded = op.compute_all(tuple(np.abs(array) if array.dtype != bool else array for array in operands))
    for result, positive in zip(results, folded, strict=True):
        if result.dtype.kind == "f":
            lowest, highest = op.within
            assert lowest <= np.nanmin(result) and np.nanmax(result) <= highest
            assert not op.keeps_sign or np.nanmin(positive) >= 0
    assert (op.bounds is not None) == (op.rule is QuantRule.CLAMP)


def _has_channels_apart(name: str) -> bool:
    """Whether the op knows channels, and has operands that do not sum over them."""
    return _sampled(name)[0].channels != Channels() and name not in ("nn.batch_matmul", "nn.lrn")


@pytest.mark.parametrize("name", [*filter(_has_channels_apart, FLOAT_OPS)])
def test_channels_stay_apart(name: str) -> None:
    """Another weight for one channel, or other data where nothing is summed, changes that channel alone."""
    op, operands, _ = _sampled(name)
    (before,) = op.compute_all(tuple(operands))
    which = 1 if op.channels.weight is not None else 0
    axis = op.channel_axis_of("weight" if which else "data", operands[which].ndim)
    out = op.channel_axis_of("output", before.ndim)
    assert axis is not None and out is not None
    changed = operands[which].copy()
    np.moveaxis(changed, axis, 0)[1] += 1
    (after,) = op.compute_all((*operands[:which], changed, *operands[which + 1 :]))
    differs = np.moveaxis(before != after, out, 0).reshape(before.shape[out], -1).any(axis=1)
    assert differs.tolist() == [channel == 1 for channel in range(before.shape[out])]


@pytest.mark.parametrize(
    "name",
    [
        "nn.conv2d",
        "nn.dense",
        "nn.batch_matmul",
        "einsum",
        "nn.conv2d_transpose",
        "nn.avg_pool2d",
        "nn.global_avg_pool2d",
    ],
)
def test_depth_and_macs_are_counted_by_ones(name: str) -> None:
    operands = [np.ones_like(array) for array in SAMPLES[name].operands]
    attrs = {key: value for key, value in SAMPLES[name].attrs.items() if key != "padding"}
    op = bound(name, len(operands), **attrs)
    types = tuple(TensorType(array.shape, dtype_of(array.dtype)) for array in operands)
    (result,) = op.compute_all(tuple(operands))
    if op.rule is QuantRule.AVERAGE:
        counted = op.compute_all((np.eye(1, operands[0].size, dtype=np.float32).reshape(operands[0].shape),))[0].max()
        assert op.depth(*types) == round(1 / float(counted)) and op.macs(*types) == 0
        return
    assert op.macs(*types) == result.sum()
    least = result.max()
    assert op.depth(*types) >= least if name == "nn.conv2d_transpose" else op.depth(*types) == least


@pytest.mark.parametrize("name", [name for name in sorted(OPS) if "weight" in OPS[name].operands])
def test_a_weight_has_an_axis_of_channels(name: str) -> None:
    cls = OPS[name]
    op = cls()
    assert op.channels.weight is not None and op.channels.output is not None
    assert Epilogue.BIAS in cls.absorbs
