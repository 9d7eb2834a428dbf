"""TFLite's average pool: a sum of the integers as they stand, divided, ties away from zero."""

import numpy as np

from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ops.float.pool import Pool2d
from qbench.ops.numeric.windows import pool_counts, pool_sum


@register
class TfliteAvgPool2d(Pool2d):
    """``(sum +- count / 2) / count``, truncated, over the elements of each window that are not padding.

    Zero points do not matter where ties go up; here they do: ties go away from the integer 0, whatever it stands for.
    """

    name = "integer.tflite_avg_pool2d"
    form_of = "nn.avg_pool2d"
    absorbs = (Epilogue.CLAMP,)
    rule = QuantRule.INTERNAL

    def compute(self, data: Array) -> Array:
        sums = pool_sum(data.astype(np.int64), self.window)
        counts = pool_counts((data.shape[2], data.shape[3]), self.window, False)
        away = (np.abs(sums) + counts // 2) // counts
        return (np.sign(sums) * away).astype(data.dtype)
