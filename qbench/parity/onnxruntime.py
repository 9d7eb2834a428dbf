"""onnxruntime, with all that it computes on the way made visible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from qbench.errors import DataError, ModelError, shown
from qbench.ir.dtypes import is_dtype
from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ir.types import Dim, TensorType
from qbench.parity.peers import peer
from qbench.parity.runner import Made, Portion, Runner
from qbench.parity.theory import Mode

_ERRORS_ONLY = 3
_EXACT = "session.x64quantprecision"  # its option: signed weights become unsigned ones, whose sums are made otherwise
_NARROW = ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int32")


@dataclass(frozen=True)
class OnnxRuntime(Runner):
    """An ONNX file, run by onnxruntime on the CPU.

    Parameters
    ----------
    path
        The file; external data must lie in the same folder.
    optimizations
        Whether onnxruntime rewrites the graph first, as it does by default. Then a quantized model shows its integers
        only: between a DequantizeLinear and the next QuantizeLinear there is one fused kernel, and nothing to see.
    threads
        How many it may use.
    exact
        Whether its session option for exact sums is set, which costs time on processors where they saturate otherwise.
    """

    path: str | PathLike[str]
    optimizations: bool = True
    threads: int = 1
    exact: bool = False

    @property
    def label(self) -> str:
        """What tables call it."""
        how = (" without optimizations" * (not self.optimizations), f" with {_EXACT}" * self.exact)
        return f"onnxruntime{''.join(how)}"

    @property
    def caveat(self) -> str:
        """Where its sums saturate on this processor, that they do."""
        if self.exact or not any(made.dtype in ("int8", "uint8") for made in self.made.values()) or not saturates():
            return ""
        return (
            "onnxruntime adds pairs of 8-bit products in 16 bits on this processor, which has no VNNI: they saturate, "
            f"unless weights are uint8 or the session option {_EXACT} is 1 (here: exact=True, or --kernels exact)"
        )

    @property
    def inputs(self) -> Mapping[str, TensorType]:
        """What the file says of its inputs; open sizes are symbols."""
        return self._loaded.inputs

    @property
    def made(self) -> Mapping[str, Made]:
        """Every value that is no constant; integers only where a quantized graph is optimized."""
        return self._loaded.made

    def run(self, portion: Portion, names: Iterable[str]) -> Mapping[str, Array]:
        """Those values, from one run."""
        wanted = list(names)
        try:
            arrays: list[Array] = self._loaded.session.run(wanted, dict(portion.feeds))
        except Exception as error:  # its errors have no common base
            raise DataError(f"onnxruntime cannot run {self.path} on these data: {_first_line(error)}") from error
        return dict(zip(wanted, arrays, strict=True))

    def rounding(self, head: Node, requantize: Node) -> Mode | None:
        """Its kernels multiply by a float32 and round ties to even, all of them."""
        return "fp32_rne"

    @cached_property
    def _loaded(self) -> _Loaded:
        onnx, runtime = peer("onnx", "onnx"), peer("onnxruntime", "onnxruntime")
        try:
            model = onnx.load(Path(self.path))
            ops = _activations(model.graph)
            known = {output.name for output in model.graph.output}
            hidden = [name for name in ops if name not in known]
            everything = self._session(runtime, _showing(onnx, model, hidden), False)
            types = {value.name: _dtype(value.type) for value in everything.get_outputs()}
            if self.optimizations and any(types[name] in _NARROW for name in hidden):
                hidden = [name for name in hidden if types[name] in _NARROW]
            session = self._session(runtime, _showing(onnx, model, hidden), self.optimizations)
        except Exception as error:
            raise ModelError(f"onnxruntime cannot load {self.path}: {_first_line(error)}") from error
        visible = {*known, *hidden}
        made = {name: Made(op, types[name]) for name, op in ops.items() if name in visible and types[name]}
        return _Loaded(session, {value.name: _type_of(value) for value in session.get_inputs()}, made)

    def _session(self, runtime: Any, model: Any, optimizations: bool) -> Any:
        options = runtime.SessionOptions()
        levels = runtime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimizations else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry(_EXACT, str(int(self.exact)))
        return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@cache
def saturates() -> bool:
    """Whether onnxruntime's sums of products of unsigned and signed bytes are not exact on this processor.

    Raises
    ------
    ConfigError
        onnx or onnxruntime is not installed.
    """
    onnx, runtime = peer("onnx", "onnx"), peer("onnxruntime", "onnxruntime")
    given = {"a": np.full((1, 64), 255, np.uint8), "b": np.full((64, 16), 127, np.int8)}
    kinds, tensor = onnx.helper.np_dtype_to_tensor_dtype, onnx.helper.make_tensor_value_info
    inputs = [tensor(name, kinds(array.dtype), array.shape) for name, array in given.items()]
    node, output = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"]), tensor("y", onnx.TensorProto.INT32, None)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "sums", inputs, [output]),
        opset_imports=[onnx.helper.make_opsetid("", 13)],
        ir_version=8,
    )
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (sums,) = session.run(None, given)
    return bool((sums != 64 * 255 * 127).any())


@dataclass(frozen=True)
class _Loaded:
    session: Any
    inputs: Mapping[str, TensorType]
    made: Mapping[str, Made]


def _activations(graph: Any) -> dict[str, str]:
    """The op of each value that depends on the graph's inputs, in the file's order, which is one of execution."""
    constants = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    found: dict[str, str] = {}
    for node in graph.node:
        if all(name in constants for name in node.input if name):
            constants.update(node.output)
        else:
            found |= {name: str(node.op_type) for name in node.output if name}
    return found


def _showing(onnx: Any, model: Any, names: Iterable[str]) -> Any:
    """A copy of the model with those values among its outputs; onnxruntime finds their types by itself."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.output.extend([onnx.ValueInfoProto(name=name) for name in names])
    return copy


def _dtype(text: str) -> str:
    """The element type in ``tensor(uint8)``; nothing for sequences and the like."""
    inner = text.removeprefix("tensor(").removesuffix(")") if text.startswith("tensor(") else ""
    return {"float": "float32", "double": "float64"}.get(inner, inner)


def _type_of(value: Any) -> TensorType:
    dtype = _dtype(value.type)
    if not is_dtype(dtype):
        raise ModelError(f"input {shown(value.name)} is {value.type}, which cannot be fed")
    sizes = cast("list[int | str | None]", value.shape)
    dims: list[Dim] = [size if isinstance(size, int) else f"D{axis}" for axis, size in enumerate(sizes)]
    if dims and dims[0] == "D0":
        dims[0] = "N"
    return TensorType(tuple(dims), dtype)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
