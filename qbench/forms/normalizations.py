"""Layer and RMS normalization in integers, where a config asks for it: no runtime that files go to has one."""

import math

import numpy as np

from qbench.forms.form import Form, Integers, Step, narrowed
from qbench.forms.site import NoForm, Site
from qbench.ir.qparams import QParams
from qbench.ops.integer.normalize import GAMMA_BITS, MOST, UNIT

_BETA_BITS = 30
_TINY = 1e-30


def normalization(site: Site) -> Form:
    """An accumulator in units of gamma's scale, and the rounding after it."""
    if site.semantics is not None:
        raise NoForm(site.op.float_reason)
    site.per_tensor(0)
    site.need_targets()
    parameters = [operand.array for operand in site.operands[1:]]
    if any(array is None for array in parameters):
        raise NoForm("unsupported: its gamma and beta are no constants")
    gamma, *rest = (np.asarray(array, np.float64) for array in parameters)
    if gamma.size > MOST:
        raise NoForm(f"unsupported: more than {MOST} numbers in a row")
    largest = [float(np.abs(array).max(initial=0)) for array in (gamma, *rest)]
    scale = max(largest[0] / (2**GAMMA_BITS - 1), math.fsum(largest[1:]) / UNIT / 2**_BETA_BITS, _TINY)
    made = QParams(scale * UNIT, 0, "int32")
    constants = [Integers(np.rint(gamma / scale).astype(np.int16), QParams(scale, 0, "int16"), 1)]
    constants += [Integers(np.rint(beta / made.scales[0]).astype(np.int32), made, 2) for beta in rest]
    site.need_ratios(made)
    name = f"qnn.{site.op.short_name}"
    step = Step("accumulator", name, (0, *constants), made, {**site.node.attrs})
    return narrowed(site, step, name, before=(step,))
