"""One call of every op: its operands, and the attributes that it cannot do without.

An op that is added to the registry without a sample here fails a test.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.ops.oracle import draw


class Sample(NamedTuple):
    operands: tuple[np.ndarray, ...]
    attrs: dict[str, Any]
    symbolic: bool = True
    """Whether axis 0 of the first operand may be of unknown size."""


def sample(*shapes: tuple[int, ...], symbolic: bool = True, **attrs: Any) -> Sample:
    return Sample(tuple(np.asarray(draw(shape, i)) for i, shape in enumerate(shapes)), attrs, symbolic)


IMAGE = (2, 4, 6, 6)
WINDOW = {"pool_size": (2, 3), "strides": (2, 1)}
BITS = np.asarray(draw((2, 3)) > 0)
POSITIVE = np.abs(draw((4,), 9)) + 1

SAMPLES: dict[str, Sample] = {
    "nn.conv2d": sample(IMAGE, (3, 4, 3, 3), strides=(2, 1), padding=(0, 1, 1, 1)),
    "nn.conv2d_transpose": sample(IMAGE, (4, 3, 3, 3), strides=(2, 2)),
    "nn.dense": sample((2, 5), (3, 5)),
    "nn.batch_matmul": sample((2, 3, 4), (4, 5)),
    "einsum": sample((2, 3, 4), (2, 4, 5), equation="bij,bjk->bki", symbolic=False),
    "nn.bias_add": sample(IMAGE, (4,)),
    "nn.batch_norm": Sample((draw(IMAGE), *(draw((4,), i) for i in range(3)), POSITIVE), {}),
    "nn.instance_norm": sample(IMAGE, (4,), (4,)),
    "nn.layer_norm": sample((2, 3, 4), (4,), (4,)),
    "nn.rms_norm": sample((2, 3, 4), (4,)),
    "nn.l2_normalize": sample((2, 3, 4), axis=1),
    "nn.lrn": sample(IMAGE, size=3),
    "clip": sample((2, 3), a_min=-0.5, a_max=0.5),
    "nn.prelu": sample(IMAGE, (4,)),
    "nn.max_pool2d": sample(IMAGE, **WINDOW),
    "nn.avg_pool2d": sample(IMAGE, **WINDOW),
    "nn.global_avg_pool2d": sample(IMAGE),
    "nn.global_max_pool2d": sample(IMAGE),
    "mean": sample((2, 3, 4), axes=(1,)),
    "sum": sample((2, 3, 4), axes=(1, 2), keepdims=False),
    "prod": sample((2, 3, 4), axes=(1,)),
    "max": sample((2, 3, 4), axes=(2,)),
    "min": sample((2, 3, 4), axes=(1,)),
    "argmax": sample((2, 3, 4), axis=1),
    "argmin": sample((2, 3, 4), axis=1, keepdims=False),
    "concatenate": sample((2, 3), (2, 3), axis=1, symbolic=False),
    "split": sample((2, 5), cuts=(2, 3), axis=1),
    "strided_slice": sample((2, 5), begin=(1,), end=(9,), strides=(2,), axes=(1,)),
    "reshape": sample((2, 3, 4), newshape=(-1, 4, 3)),
    "nn.batch_flatten": sample(IMAGE),
    "transpose": sample(IMAGE, axes=(0, 2, 3, 1)),
    "squeeze": sample((2, 1, 3), axes=(1,)),
    "expand_dims": sample((2, 3), axes=(1,)),
    "nn.pad": sample((2, 3), pad_width=((0, 0), (1, 2)), pad_value=1.0),
    "image.resize2d": sample(IMAGE, size=(9, 12), method="linear"),
    "image.grid_sample": sample(IMAGE, (2, 3, 5, 2), symbolic=False),
    "nn.depth_to_space": sample(IMAGE, block_size=2),
    "nn.space_to_depth": sample(IMAGE, block_size=2),
    "nn.softmax": sample((2, 3)),
    "nn.log_softmax": sample((2, 3)),
    "take": Sample((draw((4, 3)), np.array([[0, 3], [1, -1]])), {"axis": 0}, symbolic=False),
    "gather_nd": Sample((draw((2, 4, 3)), np.array([[[0], [3]], [[-1], [1]]])), {"batch_dims": 1}, symbolic=False),
    "cast": sample((2, 3), dtype="int32"),
    "broadcast_to": sample((2, 1), shape=(2, 3), symbolic=False),
    "nn.lstm": sample((3, 2, 4), (1, 12, 4), (1, 12, 3), (1, 24), (1, 2, 3), (1, 2, 3), symbolic=False),
    "nn.rnn": sample((3, 2, 4), (1, 3, 4), (1, 3, 3), (1, 6), (1, 2, 3), symbolic=False),
    "nn.dynamic_lstm": Sample(
        (
            draw((3, 1, 4)),
            np.rint(draw((1, 12, 4))),
            np.rint(draw((1, 12, 3))),
            *map(draw, [(1, 24), (1, 1, 3), (1, 1, 3)]),
        ),
        {"steps": (1.0, 1.0)},
        symbolic=False,
    ),
    **{
        f"integer.{cell}": Sample(
            (
                draw((3, 2, gates * 3)),
                np.rint(40 * draw((1, gates * 3, 3))).astype(np.int8),
                np.abs(draw((1, gates * 3))) / 40,
                draw((1, gates * 3)),
                *[draw((1, 2, 3))] * states,
            ),
            {},
            symbolic=False,
        )
        for cell, gates, states in (("lstm", 4, 2), ("rnn", 1, 1), ("gru", 3, 1))
    },
    "nn.gru": sample((3, 2, 4), (1, 9, 4), (1, 9, 3), (1, 18), (1, 2, 3), symbolic=False),
    "take_along_axis": Sample((draw((3, 4)), np.array([[2, 0, -1, 1]])), {"axis": 0}, symbolic=False),
    "scatter_elements": Sample((draw((3, 4)), np.array([[2, 0, 1, 1]]), draw((1, 4), 1)), {"axis": 0}, symbolic=False),
    "scatter_nd": Sample((draw((3, 4)), np.array([[2], [0]]), draw((2, 4), 1)), {}, symbolic=False),
    "topk": sample((2, 5), k=3),
    "cumsum": sample((2, 5), axis=1, exclusive=True),
    "one_hot": Sample((np.array([[0, 3], [-1, 2]]), draw((2,))), {"places": 4, "axis": 1}, symbolic=False),
    "triangle": sample((2, 3, 4), k=1),
    "mod": sample((2, 3), (3,), fmod=True),
    "sizes": Sample((), {"values": (2, 3), "shape": (2,)}, symbolic=False),
    "arange": Sample((), {"stop": 7, "start": 1, "step": 2}, symbolic=False),
    "tile": sample((2, 3), reps=(2, 1)),
    "where": Sample((BITS, draw((2, 3)), draw((3,))), {}, symbolic=False),
    "logical_and": Sample((BITS, BITS[:1]), {}),
    "logical_or": Sample((BITS, BITS[:1]), {}),
    "logical_not": Sample((BITS,), {}),
    "is_nan": sample((2, 3)),
    "vision.detections": sample(
        *((1, 8, 4), (1, 8, 3), (8, 4)), symbolic=False, classes=2, most=6, overlap=0.5, least=-0.5, scales=(1.0,) * 4
    ),
}
for _op in ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "squared_difference"):
    SAMPLES[_op] = sample((2, 3), (3,))
for _op in ("equal", "less", "less_equal", "greater", "greater_equal"):
    SAMPLES[_op] = sample((2, 3), (3,))
for _op in (
    *(
        "nn.relu",
        "nn.leaky_relu",
        "sigmoid",
        "tanh",
        "nn.hard_sigmoid",
        "nn.hard_swish",
        "nn.gelu",
        "nn.elu",
        "nn.silu",
    ),
    *(
        "nn.softplus",
        "exp",
        "erf",
        "sqrt",
        "log",
        "abs",
        "negative",
        "floor",
        "ceil",
        "round",
        "reciprocal",
        "rsqrt",
        "sin",
        "cos",
    ),
    "sign",
    *("tan", "atan", "sinh", "cosh", "asinh"),
):
    SAMPLES[_op] = sample((2, 3))
for _op in ("asin", "acos", "atanh"):
    SAMPLES[_op] = Sample((np.tanh(draw((2, 3))),), {})
SAMPLES["acosh"] = Sample((1 + np.abs(draw((2, 3))),), {})
