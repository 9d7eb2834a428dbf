"""Pools over windows."""

from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.kinds import activated, is_quantized, padding, pair, same_integers
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr

_OPTIONS = "Pool2DOptions padding stride_w stride_h filter_width filter_height fused_activation_function"


def _window(op: SourceOperator, data: Value) -> dict[str, Attr]:
    window, strides = pair(op, "filter"), pair(op, "stride")
    return {"pool_size": window, "strides": strides, "padding": padding(op, data.shape[2:], window, strides)}


@converter("MAX_POOL_2D", "input", _OPTIONS)
def max_pool_2d(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """The largest element of each window; integers stand as they are."""
    is_quantized(builder, x)
    data = builder.nchw(x)
    return activated(builder, op, builder.emit("nn.max_pool2d", data, q=builder.q, attrs=_window(op, data)))


@converter("AVERAGE_POOL_2D", "input", _OPTIONS)
def average_pool_2d(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """The mean of each window, padding not counted."""
    data = builder.nchw(x)
    window = _window(op, data)
    if not is_quantized(builder, x):
        return activated(builder, op, builder.emit("nn.avg_pool2d", data, attrs=window))
    same_integers(builder, x)
    return activated(builder, op, quantized(builder, "nn.avg_pool2d", (data,), window))
