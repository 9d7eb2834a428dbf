"""An ONNX file to plain data. Whatever is wrong with the file becomes a ModelError here."""

import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper
from onnx.checker import ValidationError
from onnx.inliner import inline_local_functions, inline_selected_functions
from onnx.shape_inference import InferenceError, infer_shapes

from qbench.errors import ModelError, listed, nearest, shown
from qbench.frontends.onnx.source import Array, SourceInput, SourceModel, SourceNode
from qbench.frontends.onnx.table import CONVERTERS
from qbench.frontends.onnx.tensors import read_tensor
from qbench.ir.names import fresh

_LOG = logging.getLogger(__name__)

OPSETS = range(7, 29)
"""Versions of the standard op set that can be imported."""

_STANDARD = ("", "ai.onnx")


def read_model(path: Path) -> SourceModel:
    """Read and check an ONNX file: names, references and attribute values, not yet the ops."""
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise ModelError(f"{shown(str(path))} is a directory but no qbench archive (no manifest.json)") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ModelError(f"cannot read {shown(str(path))}: {getattr(error, 'strerror', None) or error}") from None
    if not data:
        raise ModelError(f"{shown(str(path))} is empty")
    model = ModelProto()
    try:
        model.ParseFromString(data)
        if not model.HasField("graph"):
            raise ModelError(f"{shown(str(path))} is not an ONNX model (it holds no graph)")
        return _model(model, path)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{shown(str(path))} is not an ONNX model, or is cut off: {error}") from None


def _model(model: ModelProto, path: Path) -> SourceModel:
    folder, graph = path.parent, model.graph
    if model.functions:
        return _model(_inlined(model), path)
    if graph.sparse_initializer:
        raise ModelError("sparse initializers are not supported: export the model with dense weights")
    opsets = _opsets(model)
    if spelled := _spelled(graph, opsets[""]):
        flat = _written_out(model, spelled)
        if _spelled(flat.graph, opsets[""]) != spelled:
            return _model(flat, path)
    initializers: dict[str, Array] = {}
    for tensor in graph.initializer:
        if tensor.name in initializers:
            raise ModelError(f"two initializers are called {shown(tensor.name)}")
        initializers[tensor.name] = read_tensor(tensor, folder, f"initializer {shown(tensor.name)}")
    inputs = tuple(_input(info) for info in graph.input if info.name not in initializers)
    nodes = _nodes(graph, opsets, folder, {node.name for node in graph.node}, frozenset())
    infos = {o.name: o for o in graph.output}
    outputs = tuple(o.name for o in graph.output)
    source = SourceModel(graph.name or path.stem, inputs, outputs, nodes, initializers, infos)
    _check_references(source)
    return source


def _nodes(
    graph: GraphProto, opsets: dict[str, int], folder: Path, taken: set[str], seen: frozenset[str]
) -> tuple[SourceNode, ...]:
    names = _node_names(graph, taken, seen)
    return tuple(_node(node, name, opsets, folder, taken) for node, name in zip(graph.node, names, strict=True))


def _branch(graph: GraphProto, opsets: dict[str, int], folder: Path, taken: set[str]) -> SourceModel:
    """The body of a node such as If."""
    initializers = {t.name: read_tensor(t, folder, f"initializer {shown(t.name)}") for t in graph.initializer}
    inputs, outputs = tuple(map(_input, graph.input)), tuple(output.name for output in graph.output)
    nodes = _nodes(graph, opsets, folder, taken, frozenset(taken))
    return SourceModel(graph.name, inputs, outputs, nodes, initializers)


def _inlined(model: ModelProto) -> ModelProto:
    """The model with the bodies of its own functions in place of their calls."""
    names = ", ".join(shown(f.name) for f in model.functions)
    try:
        flat = inline_local_functions(model)
    except (RuntimeError, ValueError, ValidationError) as error:
        raise ModelError(f"the model defines functions of its own ({names}) that make no sense: {error}") from None
    if flat.functions:
        raise ModelError(f"the model defines functions of its own ({names}) for another opset: inline them first")
    return flat


def _spelled(graph: GraphProto, opset: int) -> set[str]:
    """Ops without a converter that ONNX itself spells in terms of others."""
    found = {op for node in graph.node for a in node.attribute for op in _spelled(a.g, opset)}
    unknown = {str(node.op_type) for node in graph.node if node.domain in _STANDARD} - {op for _, op in CONVERTERS}
    schemas: dict[str, Any] = {op: defs.get_schema(op, opset) for op in unknown if defs.has(op, opset, "")}
    return found | {op for op, s in schemas.items() if s.has_function or s.has_context_dependent_function}


def _written_out(model: ModelProto, ops: Iterable[str]) -> ModelProto:
    """The model with what ONNX says of these ops in their place; as it is, where the types that this takes are open."""
    typed = ModelProto()
    typed.CopyFrom(model)
    opset = _opsets(model)[""]
    for node in (node for node in typed.graph.node if node.op_type in ops and node.domain in _STANDARD):
        given = {attribute.name for attribute in node.attribute}
        schema: Any = defs.get_schema(node.op_type, opset)
        defaults = {name: one.default_value for name, one in schema.attributes.items()}
        node.attribute.extend(one for name, one in defaults.items() if one.type and name not in given)
    typed.graph.value_info.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in model.graph.initializer
    )
    try:
        typed = infer_shapes(typed)
        return inline_selected_functions(typed, [("", op) for op in ops], inline_schema_functions=True)
    except (AssertionError, InferenceError, RuntimeError, TypeError, ValueError) as error:
        _LOG.warning("%s cannot be written out: %s", ", ".join(ops), error)
        return model


def _opsets(model: ModelProto) -> dict[str, int]:
    versions = {"" if o.domain in _STANDARD else o.domain: o.version for o in model.opset_import}
    version = versions.get("", 0)
    if version not in OPSETS:
        raise ModelError(
            f"the model uses opset {version or 'none'} of ONNX; qbench reads {OPSETS[0]} to {OPSETS[-1]}: "
            f"export it again for one of those, or convert it with onnx.version_converter"
        )
    return versions


def _input(info: ValueInfoProto) -> SourceInput:
    if not info.name:
        raise ModelError("a graph input has no name")
    if info.type.WhichOneof("value") != "tensor_type":
        raise ModelError(f"input {shown(info.name)} is not a tensor")
    tensor = info.type.tensor_type
    if tensor.elem_type not in TensorProto.DataType.values() or tensor.elem_type == TensorProto.UNDEFINED:
        raise ModelError(f"input {shown(info.name)} has the unknown element type {tensor.elem_type}")
    dtype = "string" if tensor.elem_type == TensorProto.STRING else _dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return SourceInput(info.name, None, dtype)
    fields = [(dim.WhichOneof("value"), dim) for dim in tensor.shape.dim]
    sizes = (d.dim_value if kind == "dim_value" else (d.dim_param or None) for kind, d in fields)
    return SourceInput(info.name, tuple(sizes), dtype)


def _dtype_name(elem_type: int) -> str:
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)).name


def _node_names(graph: GraphProto, taken: set[str], given: frozenset[str]) -> list[str]:
    """Nameless nodes are called after their first output; the second node of a name gets another one."""
    seen, names, twice = {*given}, list[str](), list[str]()
    for index, node in enumerate(graph.node):
        name = node.name
        if not name or name in seen:
            name = fresh(name or next(filter(None, node.output), f"{node.op_type}_{index}"), taken)
        if node.name and node.name in seen:
            twice.append(node.name)
        seen.add(name)
        taken.add(name)
        names.append(name)
    if twice:
        _LOG.warning("names of earlier nodes are numbered here: %s", listed(twice))
    return names


def _no_duplicates(names: Iterable[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ModelError(f"two {what} are called {', '.join(map(shown, twice))}")


def _node(node: NodeProto, name: str, opsets: dict[str, int], folder: Path, taken: set[str]) -> SourceNode:
    domain = "" if node.domain in _STANDARD else node.domain
    if domain not in opsets:
        raise ModelError(f"node {shown(name)} uses the domain {shown(domain)}, which the model does not import")
    _no_duplicates((a.name for a in node.attribute), f"attributes of node {shown(name)}")
    bodies = {a.name: _branch(a.g, opsets, folder, taken) for a in node.attribute if a.type == AttributeProto.GRAPH}
    attrs = {a.name: _attribute(a, name, folder) for a in node.attribute} | bodies
    return SourceNode(name, node.op_type, domain, opsets[domain], tuple(node.input), tuple(node.output), attrs, node)


def _attribute(a: AttributeProto, node: str, folder: Path) -> object:
    if a.ref_attr_name:
        raise ModelError(f"node {shown(node)}: attribute {shown(a.name)} refers to a function's parameter")
    if a.type == AttributeProto.INT:
        return a.i
    if a.type == AttributeProto.FLOAT:
        return _shortest(a.f)
    if a.type == AttributeProto.STRING:
        return _text(a.s)
    if a.type == AttributeProto.INTS:
        return tuple(a.ints)
    if a.type == AttributeProto.FLOATS:
        return tuple(map(_shortest, a.floats))
    if a.type == AttributeProto.STRINGS:
        return tuple(map(_text, a.strings))
    if a.type == AttributeProto.TENSOR:
        return read_tensor(a.t, folder, f"the tensor of node {shown(node)}")
    return a  # sparse tensors, types: no converter reads them


def _text(content: bytes) -> str | bytes:
    """A string; bytes where it holds data, such as the whole model of a tokenizer."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


def _shortest(value: float) -> float:
    """The decimal that a person wrote: the file's float32 of 0.01 comes back as 0.01, not 0.00999999977."""
    return float(str(np.float32(value)))


def _check_references(source: SourceModel) -> None:
    given = [i.name for i in source.inputs] + list(source.initializers)
    made = [output for node in source.nodes for output in node.outputs if output]
    _no_duplicates(given + made, "values")
    known = {"", *given, *made}
    for node in source.nodes:
        for value in node.inputs:
            if value not in known:
                raise ModelError(f"node {node} reads {shown(value)}, which nothing defines{nearest(value, known)}")
    if not source.outputs:
        raise ModelError("the model has no outputs")
    _no_duplicates(source.outputs, "outputs")
    for value in source.outputs:
        if value not in known - {""}:
            raise ModelError(f"graph output {shown(value)} is made by no node{nearest(value, known)}")
