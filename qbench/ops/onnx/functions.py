"""Functions of one real number as onnxruntime's MLAS computes them in float32: rational approximations."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.quant.fused import fused_multiply_add

Reals = NDArray[np.float32]


def _polynomial(x: Reals, *coefficients: float) -> Reals:
    """Horner's rule from the highest power down, each step rounded once."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fused_multiply_add(value, x, np.float32(coefficient))
    return value


def logistic(x: Reals) -> Reals:
    """1 / (1 + exp(-x)) within a few steps of float32."""
    x = np.clip(x, np.float32(-18), np.float32(18))
    square = x * x
    odd = _polynomial(
        square, 4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03,
        2.48287947061529e-01,
    )  # fmt: skip
    even = _polynomial(
        square, 6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06, 1.70198817374094e-03,
        1.16817656904453e-01, 9.93151921023180e-01,
    )  # fmt: skip
    return np.clip(odd * x / even + np.float32(0.5), np.float32(0), np.float32(1))


def tanh(x: Reals) -> Reals:
    """The hyperbolic tangent within a few steps of float32."""
    x = np.clip(x, np.float32(-9), np.float32(9))
    square = x * x
    odd = _polynomial(
        square, -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
        1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
    )  # fmt: skip
    even = _polynomial(square, 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
    return odd * x / even


FUNCTIONS: Mapping[str, Callable[[Reals], Reals]] = {"sigmoid": logistic, "tanh": tanh}
"""By the name of the float op."""
