"""What an imported file had behind the graph, as it goes back behind an exported one."""

import json
from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, defs, version_converter

from qbench.errors import ExportError, shown
from qbench.ir.build import TAIL
from qbench.ir.graph import Graph

OPSET = 21
"""Of all that is exported."""


def tail_of(graph: Graph) -> ModelProto:
    """The nodes behind the graph in the opset of the export; a model of none where there are none."""
    model = ModelProto()
    if TAIL not in graph.constants:
        return model
    model.ParseFromString(graph.constants[TAIL].array.tobytes())
    version = next((o.version for o in model.opset_import if o.domain in _STANDARD), OPSET)
    changed = {node.op_type for node in _nodes(model.graph) if _since(node, version) != _since(node, OPSET)}
    if not changed:
        return model
    try:
        made = version_converter.convert_version(model, OPSET)
    except (RuntimeError, ValueError) as error:
        listed = ", ".join(sorted(changed))
        raise ExportError(
            f"what lies behind {shown(graph.name)} ({listed}) is of opset {version}, and cannot be had in {OPSET}: "
            f"{error}; load(outputs={graph.outputs}) leaves it out"
        ) from error
    made.metadata_props.extend(model.metadata_props)
    return made


def outputs_of(graph: Graph, tail: ModelProto) -> tuple[str, ...]:
    """The outputs of the file that the graph was read from, or the graph's."""
    said = {prop.key: prop.value for prop in tail.metadata_props}
    return tuple(json.loads(said["outputs"])) if said else graph.outputs


def names_in(graph: GraphProto) -> set[str]:
    """All names of nodes and values, in bodies too."""
    found = {tensor.name for tensor in graph.initializer}
    for node in _nodes(graph):
        found.update((node.name, *node.input, *node.output))
        found.update(tensor.name for a in node.attribute for tensor in a.g.initializer)
    return found


_STANDARD = ("", "ai.onnx")


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


def _since(node: NodeProto, version: int) -> int:
    """From which opset on the op is as it is in one of them."""
    known = node.domain in _STANDARD and defs.has(node.op_type, version, "")
    return defs.get_schema(node.op_type, version, "").since_version if known else 0
