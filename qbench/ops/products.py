"""What sums of products are, in every dialect: their operands, channels, how many products they sum, their cost."""

from dataclasses import dataclass

from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Channels, Epilogue, Op, QuantRule, Role, bind
from qbench.ir.types import TensorType, dim_factors, numel
from qbench.ops.numeric.windows import Padding, Pair


class SumOfProducts(Op):
    """Each element of the result is a sum of products; a bias and clamps may follow before it is rounded."""

    operands = ("data", "weight")
    roles = (Role.DATA, Role.WEIGHT)
    absorbs = (Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP, Epilogue.DEQUANTIZE)
    groups: int = 1

    def macs(self, *types: TensorType) -> int:
        return numel(self.infer_all(types)[0].shape) * self.depth(*types)


@dataclass(frozen=True, kw_only=True)
class Convolution(SumOfProducts):
    """NCHW data, OIHW weight."""

    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def channels(self) -> Channels:
        return Channels(data=1, weight=0, output=1)

    def depth(self, *types: TensorType) -> int:
        return numel(types[1].shape[1:])


@dataclass(frozen=True, kw_only=True)
class TransposedConvolution(SumOfProducts):
    """NCHW data, IOHW weight, its output axis starting again in each group: no scale could belong to one channel."""

    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    output_padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def channels(self) -> Channels:
        return Channels(data=1, weight=1 if self.groups == 1 else None, output=1)

    def depth(self, *types: TensorType) -> int:
        shape = types[1].shape
        return numel((shape[0], *shape[2:])) // self.groups

    def macs(self, *types: TensorType) -> int:
        return numel(types[0].shape) * numel(types[1].shape[1:])


class DenseProduct(SumOfProducts):
    """Data (..., in), weight (units, in)."""

    @property
    def channels(self) -> Channels:
        return Channels(data=-1, weight=0, output=-1)

    def depth(self, *types: TensorType) -> int:
        return numel(types[1].shape[1:])


@dataclass(frozen=True, kw_only=True)
class MatrixProduct(SumOfProducts):
    """Two matrices, either of them transposed first where asked; the right one has no scales of its channels."""

    operands = ("lhs", "rhs")
    roles = (Role.DATA,)
    transpose_lhs: bool = False
    transpose_rhs: bool = False

    @property
    def channels(self) -> Channels:
        return Channels(data=-2 if self.transpose_lhs else -1, output=-1)

    def depth(self, *types: TensorType) -> int:
        return dim_factors(types[0].shape[-2 if self.transpose_lhs else -1])[0]


def is_layer(graph: Graph, node: Node) -> bool:
    """Whether a node multiplies data by constant weights."""
    op = OPS[node.op]
    return op.rule is QuantRule.MAC and op.has_weight() and node.inputs[1] in graph.constants


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of a node per sample (per batch where that is fixed).

    Parameters
    ----------
    graph
        Any graph.
    node
        One of its nodes.
    """
    return bind(node, graph.qparams).macs(*(graph.types[name] for name in node.inputs))
