"""One way to write each thing, so that the passes after it need to know one only."""

from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.graph import Graph
from qbench.ir.op import OPS
from qbench.ops.float.activation import Clip, Relu
from qbench.ops.float.conv import Conv2d
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.einsum import Einsum
from qbench.ops.float.elementwise import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from qbench.ops.float.logic import Where
from qbench.ops.float.pool import AvgPool2d, MaxPool2d
from qbench.ops.float.reduce import Mean
from qbench.ops.float.reshape import Transpose
from qbench.ops.float.select import BroadcastTo
from qbench.passes.canonicalize.activations import ANCHORS, recognize_activation
from qbench.passes.canonicalize.bounds import (
    clip_to_relu,
    extremum_to_clip,
    merge_clips,
    scaled_maximum_to_leaky_relu,
)
from qbench.passes.canonicalize.constants import (
    add_to_bias_add,
    divide_to_multiply,
    merge_biases,
    power_to_product,
    subtract_to_add,
)
from qbench.passes.canonicalize.contractions import einsum_to_matmul
from qbench.passes.canonicalize.identities import remove_broadcast, remove_identity
from qbench.passes.canonicalize.lengths import recognize_l2_normalize
from qbench.passes.canonicalize.norms import ROOTS, recognize_norm
from qbench.passes.canonicalize.padding import merge_pad
from qbench.passes.canonicalize.rule import apply_rules, by_op
from qbench.passes.canonicalize.shapes import (
    RESHAPES,
    average_to_global,
    mean_to_global,
    merge_reshapes,
    merge_transposes,
    round_pool_down,
)
from qbench.passes.canonicalize.softmax import guarded_softmax_to_safe
from qbench.passes.rewrite import Rewriter

_PHASES = (
    by_op(
        {recognize_norm: ROOTS, recognize_activation: ANCHORS}
    ),  # first, while the ops are as the exporter wrote them
    by_op(
        {
            remove_identity: OPS,
            remove_broadcast: (BroadcastTo,),
            recognize_l2_normalize: (Divide, Multiply),
            scaled_maximum_to_leaky_relu: (Maximum,),
            extremum_to_clip: (Maximum, Minimum),
            merge_clips: (Clip, Relu),
            clip_to_relu: (Clip,),
            recognize_norm: ("sqrt",),
            recognize_activation: ANCHORS,
            einsum_to_matmul: (Einsum,),
            power_to_product: (Power,),
            divide_to_multiply: (Divide,),
            subtract_to_add: (Subtract,),
            add_to_bias_add: (Add,),
            merge_biases: (BiasAdd,),
            merge_pad: (Conv2d, AvgPool2d, MaxPool2d),
            round_pool_down: (AvgPool2d, MaxPool2d),
            merge_transposes: (Transpose,),
            merge_reshapes: RESHAPES,
            mean_to_global: (Mean,),
            average_to_global: (AvgPool2d,),
            guarded_softmax_to_safe: (Where,),
        }
    ),
)
"""Rules, each with the ops of the nodes that it starts from."""


@dataclass(frozen=True)
class CanonicalizePass:
    """Rewrite until no rule applies.

    - ops that change nothing go, and two reshapes, transposes, clips or biases in a row become one;
    - activation functions written as several ops become nn.gelu, nn.silu, nn.hard_swish or nn.hard_sigmoid;
    - normalizations written as several ops become nn.layer_norm, nn.rms_norm, nn.instance_norm or nn.l2_normalize;
    - broadcasts that those who read them do anyway go;
    - maximum and minimum with a number become clip, clip(0, inf) becomes nn.relu, max(x, a * x) nn.leaky_relu;
    - division by a constant becomes a product, subtraction of one a sum, and a sum after a layer nn.bias_add;
    - zero padding goes into the convolution or pool after it;
    - einsums that multiply matrices become nn.batch_matmul;
    - a softmax whose NaN are replaced by zero becomes a safe one;
    - pools that round their size up have padding in its place;
    - averages of whole images become nn.global_avg_pool2d.

    The last node of what is replaced gives the new node its name and its output's name.
    """

    name: ClassVar[str] = "canonicalize"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        for rules in _PHASES:
            apply_rules(rw, rules)
        return rw.finish()
