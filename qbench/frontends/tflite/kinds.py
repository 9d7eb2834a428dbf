"""What the converters share: in which numbers an operator computes, its fused activation, its padding."""

from collections.abc import Sequence

from qbench.errors import ModelError, shown
from qbench.formats.tflite import same_padding
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.source import SourceOperator, SourceTensor
from qbench.ir.dtypes import integer_range, is_dtype, is_integer
from qbench.ir.types import Dim
from qbench.ops.numeric.windows import Padding, Pair
from qbench.quant.activations import ACTIVATION_BOUNDS, activation_bounds

_SAME, _VALID = 0, 1
_QUANTIZED = ("int4", "int8", "uint8", "int16")
_ACTIVATIONS = ("none", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")


def is_quantized(builder: Builder, *operands: Value) -> bool:
    """Whether an operator computes in quantized integers, False if in real numbers.

    Raises
    ------
    Unsupported
        It mixes the two, or has integers without a scale.
    """
    kinds = [(value.name, value.dtype, value.q) for value in operands]
    kinds += [(tensor.name, tensor.dtype, tensor.qparams) for tensor in builder.results]
    if builder.is_real:
        kinds = [(name, "float32" if q is not None else dtype, q) for name, dtype, q in kinds]
    reals = [shown(name) for name, dtype, _ in kinds if dtype.startswith(("float", "bfloat"))]
    if len(reals) == len(kinds):
        return False
    if reals:
        rest = [f"{shown(name)} is {dtype}" for name, dtype, _ in kinds if not dtype.startswith(("float", "bfloat"))]
        raise Unsupported(f"{', '.join(reals)} {'is' if len(reals) == 1 else 'are'} float, but {', '.join(rest)}")
    for name, dtype, q in kinds:
        if q is None:
            raise Unsupported(f"{shown(name)} is {dtype} without a scale")
        if dtype not in _QUANTIZED:
            raise Unsupported(f"{shown(name)} is quantized to {dtype}, not to {', '.join(_QUANTIZED)}")
    return True


def hybrid_weights(inputs: Sequence[SourceTensor], output: SourceTensor) -> list[SourceTensor]:
    """The constants of an operator on floats that are stored as integers: here it computes with their real numbers.

    LiteRT quantizes the operator's input anew in every run, by its range ("dynamic range quantization"); how the graph
    is to compute is for its config to say.
    """
    weights = [t for t in inputs if t.array is not None and t.qparams is not None and t.dtype != "int32"]
    rest = [t for t in inputs if t not in weights]
    is_hybrid = output.dtype == "float32" and len(inputs) > 1 and all(t.qparams is None for t in rest)
    return weights if is_hybrid else []


def same_integers(builder: Builder, *operands: Value) -> None:
    """The operands and the results have one scale and zero point, as an operator that compares integers needs."""
    for value in operands:
        if value.q != builder.q:
            raise Unsupported(f"{shown(value.name)} is quantized otherwise than {shown(builder.result.name)}")


def clipped(builder: Builder, value: Value, name: str) -> Value:
    """A value, bounded as the activation of that name bounds it."""
    if value.q is None:
        least, most = ACTIVATION_BOUNDS[name]
        return (
            builder.emit("nn.relu", value) if name == "RELU" else builder.emit("clip", value, a_min=least, a_max=most)
        )
    low, high = activation_bounds(name, value.q)
    if (low, high) == integer_range(value.q.dtype):
        return value  # the type bounds it already
    return builder.emit("clip", value, q=value.q, a_min=float(low), a_max=float(high))


def activated(builder: Builder, op: SourceOperator, value: Value) -> Value:
    """A value with the operator's fused activation behind it."""
    number = op.integer("fused_activation_function")
    if not 0 <= number < len(_ACTIVATIONS):
        raise ModelError(f"operator {op} has the unknown activation {number}")
    name = _ACTIVATIONS[number]
    if name == "none":
        return value
    if name == "TANH" and value.q is None:
        return builder.emit("tanh", value)
    if name not in ACTIVATION_BOUNDS:
        raise Unsupported(f"the fused activation {name}")
    return clipped(builder, value, name)


def pair(op: SourceOperator, kind: str, default: int = 0) -> Pair:
    """Something for rows and for columns: ``stride`` reads stride_h and stride_w."""
    names = {"filter": ("filter_height", "filter_width"), "dilation": ("dilation_h_factor", "dilation_w_factor")}
    height, width = names.get(kind, (f"{kind}_h", f"{kind}_w"))
    return op.integer(height, default), op.integer(width, default)


def padding(op: SourceOperator, sizes: Sequence[Dim], window: Pair, strides: Pair, dilation: Pair = (1, 1)) -> Padding:
    """Top, left, bottom and right: with SAME padding, what gives size / stride windows, the larger half behind."""
    scheme = op.integer("padding", _SAME)
    if scheme not in (_SAME, _VALID):
        raise ModelError(f"operator {op} has the unknown padding {scheme}")
    if min(*window, *strides, *dilation) < 1:
        raise ModelError(f"operator {op}: window {window}, strides {strides} and dilation {dilation} must be positive")
    if scheme == _VALID:
        return 0, 0, 0, 0
    pads: list[Pair] = []
    for size, *given in zip(sizes, window, strides, dilation, strict=True):
        found = same_padding(size, *given)
        if found is None:
            raise Unsupported(f"SAME padding with stride {given[1]} of the open size {size}: fix it with shapes=")
        pads.append(found)
    return pads[0][0], pads[1][0], pads[0][1], pads[1][1]


def is_plain_integer(value: Value) -> bool:
    """Whether it holds integers that stand for themselves."""
    return is_dtype(value.dtype) and is_integer(value.dtype) and value.q is None
