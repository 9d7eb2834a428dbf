from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import QParamsError
from qbench.quant.fixed_point import power_of_two_shift, quantized_multiplier

multipliers = st.floats(min_value=5e-324, max_value=1e300, exclude_min=False)


@given(multipliers)
def test_mantissa_and_shift_are_the_nearest_fixed_point_number(real: float) -> None:
    mantissa, shift = (int(part) for part in quantized_multiplier(real))
    assert 2**30 <= mantissa < 2**31
    unit = Fraction(2) ** (shift - 31)
    error = abs(mantissa * unit - Fraction(real))
    assert error <= unit / 2


@pytest.mark.parametrize(
    ("real", "mantissa", "shift"),
    [
        (0.25, 2**30, -1),
        (1.0, 2**30, 1),
        (2.0, 2**30, 2),
        (1 / 3, 1431655765, -1),
        (np.nextafter(1.0, 0), 2**30, 1),  # rounds to 2^31, which becomes 2^30 and one more in the exponent
        ((2**30 + 0.5) / 2**31, 2**30 + 1, 0),  # a tie goes up, as C's round does
    ],
)
def test_known_multipliers(real: float, mantissa: int, shift: int) -> None:
    assert tuple(map(int, quantized_multiplier(real))) == (mantissa, shift)


def test_shapes_are_kept() -> None:
    mantissa, shift = quantized_multiplier([[0.5, 0.25, 0.125]])
    assert mantissa.shape == shift.shape == (1, 3)
    assert mantissa.dtype == shift.dtype == np.int32


@pytest.mark.parametrize("function", [quantized_multiplier, power_of_two_shift])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_multiplier_is_positive_and_finite(function: object, bad: float) -> None:
    assert callable(function)
    with pytest.raises(QParamsError, match="positive and finite"):
        function([0.5, bad])


@given(st.integers(-126, 127))
def test_powers_of_two_become_shifts(exponent: int) -> None:
    assert power_of_two_shift(2.0**exponent) == -exponent


def test_other_multipliers_cannot_be_shifts() -> None:
    with pytest.raises(QParamsError, match=r"0\.3 is not a power of two"):
        power_of_two_shift([0.5, 0.3])
