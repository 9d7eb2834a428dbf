"""``python -m tests.frontends.onnx [WORD ...]``: every model in every form that onnxruntime's tool knows, op by op.

Words choose models by a part of their name. For each file: how many elements differ from onnxruntime's own, with its
optimizations and without, each op fed with onnxruntime's integers; and the first value that differs end to end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

import qbench as qb
from qbench.runtime.interpreter import run
from tests.conftest import ROOT
from tests.frontends.onnx.parity import INTEGERS, Compared, compare, compared, fused_ops, runtime_values
from tests.frontends.onnx.quantizing import FORMS, MODELS, Form, feeds, quantized


def main(words: list[str]) -> None:
    """Print a line for each model and form."""
    data = Path(os.environ.get("QBENCH_SHARED_DATA", ROOT.parent / "shared" / "data")) / "models"
    for name in MODELS:
        if not words or any(word in name for word in words):
            for form in FORMS:
                print(f"{Path(name).stem}, {form}: {_line(data / name, form)}", flush=True)


def _line(path: Path, form: Form) -> str:
    with TemporaryDirectory() as folder:
        try:
            file = quantized(path, form, Path(folder))
        except Exception as error:  # the tool fails in many ways
            return f"onnxruntime's tool fails: {str(error)[:80]}"
        model, graph = onnx.load(file), qb.load(file)
        given = feeds(model, seed=5)
        theirs = runtime_values(model, graph, given)
        in_reals = fused_ops(model, graph)["Conv"]
        parts = [_differences(compare(graph, theirs, given))]
        parts += [f"{in_reals} convolutions summed in reals"] if in_reals else []
        ours = run(graph, given, keep=[value for value in theirs if value in graph.types])
        values = [
            compared(graph, name, ours[name], theirs[name])
            for name in graph.activations()
            if name in theirs and graph.types[name].dtype in INTEGERS
        ]
        first = next((value for value in values if value.different), None)
        return "; ".join([*parts, f"end to end {first.op} {first.name!r} is first" if first else "end to end equal"])


def _differences(found: list[Compared]) -> str:
    by_op: dict[str, list[Compared]] = {}
    for value in found:
        by_op.setdefault(value.op, []).append(value)
    text: list[str] = []
    for op, values in by_op.items():
        different, elements = sum(v.different for v in values), sum(v.elements for v in values)
        if different:
            text.append(f"{op} {different} of {elements} by {max(v.steps for v in values)}")
    return ", ".join(text) or f"equal in {len(found)} values"


if __name__ == "__main__":
    main(sys.argv[1:])
