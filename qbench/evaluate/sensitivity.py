"""Which layers cost the accuracy: change one at a time and look at the output."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Literal

from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate_output
from qbench.ir.memo import Memo
from qbench.ir.op import OPS, QuantRule
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel, Progress
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.report.entries import OutputReport

if TYPE_CHECKING:
    import pandas as pd


def sensitivity(
    prepared: Trace,
    statistics: Mapping[str, Statistics],
    config: QuantConfig,
    data: Dataset,
    cache: ValueCache,
    *,
    mode: Literal["float", "quantized"] = "float",
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Put one sum of products at a time in float (or quantize it alone), and measure the output.

    Parameters
    ----------
    prepared, statistics, config
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data, cache, executor
        As for :func:`~qbench.evaluate.evaluate.evaluate`.
    mode
        "float": all but one layer are quantized, and the table shows what is gained. "quantized": that layer alone is,
        and the table shows what it costs.
    progress
        Called with the layers done and their number.

    Returns
    -------
    DataFrame
        Columns ``name``, ``op``, ``sqnr_db`` and ``agreement`` of the output; the worst layer first.
    """
    import pandas as pd  # takes longer to import than all of qbench

    layers = [node for node in prepared.graph.nodes if OPS[node.op].rule == QuantRule.MAC]
    rows, memo = list[dict[str, object]](), Memo()

    def measured(tried: QuantConfig, keep: bool) -> OutputReport:
        return evaluate_output(quantize_graph(prepared, statistics, tried, memo), data, cache, cancel, executor, keep)

    start = config
    for layer in layers if mode == "quantized" else ():
        start = start.override_layer(layer.name, keep_float=True)
    measured(start, keep=True)  # which all others share with up to their layer
    for done, layer in enumerate(layers):
        output = measured(start.override_layer(layer.name, keep_float=mode == "float"), keep=False)
        rows.append({"name": layer.name, "op": layer.op, "sqnr_db": output.sqnr_db, "agreement": output.agreement})
        if progress is not None:
            progress(done + 1, len(layers))
    table = pd.DataFrame(rows, columns=["name", "op", "sqnr_db", "agreement"])
    return table.sort_values("sqnr_db", ascending=mode == "quantized", kind="stable", ignore_index=True)
