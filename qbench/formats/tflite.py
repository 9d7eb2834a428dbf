"""Operators that TFLite has as well, in which order it has the axes of images, and what its padding means."""

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
"""Where each axis of the one layout lies in the other."""

FUNCTIONS = {
    "abs": ("ABS", "AbsOptions"),
    "ceil": ("CEIL", ""),
    "cos": ("COS", "CosOptions"),
    "exp": ("EXP", "ExpOptions"),
    "floor": ("FLOOR", ""),
    "log": ("LOG", ""),
    "nn.elu": ("ELU", ""),
    "nn.hard_swish": ("HARD_SWISH", "HardSwishOptions"),
    "round": ("ROUND", ""),
    "sigmoid": ("LOGISTIC", ""),
    "sign": ("SIGN", "SignOptions"),
    "sin": ("SIN", ""),
    "sqrt": ("SQRT", ""),
    "tanh": ("TANH", ""),
}
"""Of one element, by our names: the operator, and the table of its options where it has one."""

COMPARISONS = {
    "equal": ("EQUAL", "EqualOptions"),
    "greater": ("GREATER", "GreaterOptions"),
    "greater_equal": ("GREATER_EQUAL", "GreaterEqualOptions"),
    "less": ("LESS", "LessOptions"),
    "less_equal": ("LESS_EQUAL", "LessEqualOptions"),
}
"""The same of questions about two elements."""

REDUCTIONS = {"max": "REDUCE_MAX", "mean": "MEAN", "min": "REDUCE_MIN", "prod": "REDUCE_PROD", "sum": "SUM"}
"""Operators along some axes, by our names."""


def same_padding(size: int | str, window: int, stride: int, dilation: int) -> tuple[int, int] | None:
    """What stands before and after an axis so that size / stride windows fit, the larger half behind: SAME.

    None where that hangs on an open size.
    """
    reach = (window - 1) * dilation + 1
    if isinstance(size, str):
        total = reach - 1 if stride == 1 else None
    else:
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return None if total is None else (total // 2, total - total // 2)
