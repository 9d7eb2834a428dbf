"""From an imported graph to the float graph that is quantized."""

from qbench.ir.graph import Graph
from qbench.passes.canonicalize import CanonicalizePass
from qbench.passes.common_subexpressions import CommonSubexpressionsPass
from qbench.passes.dead_code import DeadCodePass
from qbench.passes.fold_affine import FoldAffinePass
from qbench.passes.fold_batch_norm import FoldBatchNormPass
from qbench.passes.fold_constants import FoldConstantsPass
from qbench.passes.fold_scale_axis import FoldScaleAxisPass
from qbench.passes.infer_types import InferTypesPass
from qbench.passes.pipeline import Pipeline, Trace


def prepare(graph: Graph, fold_scale_axis: bool = False, fold_affine: bool = True) -> Trace:
    """Run the passes that quantization relies on; the result computes the same, up to float rounding.

    Parameters
    ----------
    graph
        A float graph, as a frontend gives it.
    fold_scale_axis
        Also move multiplications by a constant per channel into weights; see `FoldScaleAxisPass` for what that costs.
    fold_affine
        Move numbers that whole tensors are multiplied by, or that are added to them, into weights and biases.

    Returns
    -------
    Trace
        Its `graph` is the prepared one, its `steps` show what each pass did.
    """
    passes = (
        InferTypesPass(),
        FoldConstantsPass(),
        DeadCodePass(),
        CommonSubexpressionsPass(),
        CanonicalizePass(),
        FoldBatchNormPass(),
        *((FoldAffinePass(),) if fold_affine else ()),
        *((FoldScaleAxisPass(),) if fold_scale_axis else ()),
    )
    return Pipeline(passes).run(graph)
