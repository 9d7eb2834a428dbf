"""A session's encodings as files of other tools, and such files as a config."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from qbench.errors import ConfigError, ExportError, check_kind, nearest, shown
from qbench.exporters.rosetta import Facts, format_of
from qbench.files import exported, write_bytes
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, check_graph
from qbench.ir.memo import Memo
from qbench.quant.config import QuantConfig
from qbench.quant.encodings import Encodings
from qbench.quant.specs import TensorOverride
from qbench.quantize.quantized import annotate
from qbench.session.model import Model
from qbench.session.session import Session


def export_encodings(session: Session, path: str | PathLike[str], *, format: str) -> Path:
    """Write scales, zero points and what stays in float, as far as a tool's format can say that.

    Parameters
    ----------
    session
        As its config is now.
    path
        Where to; replaced whole or not at all.
    format
        One of `qbench.exporters.rosetta.FORMATS`, which also tells what each cannot say.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ConfigError
        A format that is not known.
    ExportError
        A name that the format cannot write, or a path that cannot be written.
    """
    check_kind(session, Session, ExportError, "encodings are exported from a session, not {}")
    writer, path = format_of(format).write, Path(path)
    with exported(path):
        write_bytes(path, writer(_facts(session)))
    return path


def import_encodings(model: Session | Graph, path: str | PathLike[str], *, format: str) -> QuantConfig:
    """Read a tool's file as overrides of the config: of the session's, of the plainest one for a graph.

    What a file says of biases, and of tensors within a fused step, has no place and is left out.

    Parameters
    ----------
    model
        What the file is about; a session is not changed (``session.config = ...`` does that).
    path, format
        The file, and one of `qbench.exporters.rosetta.FORMATS`.

    Returns
    -------
    QuantConfig
        With an override for each tensor and layer that the file is about.

    Raises
    ------
    ConfigError
        A file that cannot be read or means nothing, or is about tensors or layers that the model does not have.
    """
    reader = format_of(format).read
    if isinstance(model, Session):
        config, source, prepared, points = model.config, model.source, model.prepared, model.points
    else:
        check_graph(model)
        trace = Model(model).prepared
        config, source, prepared = Model(model).config_of("int8"), model, trace.graph
        points = annotate(trace, FrozenMap(), Memo())[1]
    try:
        facts = reader(Path(path).read_bytes())
        layers = _layers(source, prepared, facts)
    except (OSError, ConfigError) as error:
        raise ConfigError(f"{format} file {shown(str(path))}: {error}") from error
    for name, said in {**facts.activations, **facts.weights}.items():
        if name in points:
            per_tensor = points[name].kind == "weight" and not isinstance(said.scale, tuple)
            settings = said.model_dump(exclude_none=True) | ({"axis": "tensor"} if per_tensor else {})
            if name in config.tensors:
                config = config.without_tensor(name)
            config = config.override_tensor(name, **settings)
    return config.override_many("layers", layers, keep_float=True) if layers else config


def _facts(session: Session) -> Facts:
    quantized = session.quantized()
    floats = [node for node in quantized.annotated.nodes if node.reason and node.name in quantized.prepared.by_name]
    layers = (name for node in floats for name in _names_in(session.source, node.sources) or (node.name,))
    tensors = (name for node in floats for name in quantized.prepared.node(node.name).outputs)
    constants = quantized.prepared.constants
    return Facts(
        _overrides(quantized.encodings, (name for name in quantized.encodings if name not in constants)),
        _overrides(quantized.encodings, (name for name in quantized.encodings if name in constants)),
        tuple(tensors),
        tuple(dict.fromkeys(layers)),
    )


def _names_in(source: Graph, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in source.by_name)


def _overrides(encodings: Encodings, names: Iterable[str]) -> dict[str, TensorOverride]:
    parts = {name: encodings[name].qparams for name in names}
    return {
        name: TensorOverride(scale=q.scale, zero_point=q.zero_point, dtype=q.dtype)  # pyright: ignore[reportArgumentType] a point's
        for name, q in parts.items()
    }


def _layers(source: Graph, prepared: Graph, facts: Facts) -> list[str]:
    """The layers that a file keeps in float; ConfigError for a tensor or layer that is nowhere."""
    known = {**source.types, **prepared.types, **source.constants, **prepared.constants}
    for name in (*facts.activations, *facts.weights, *facts.float_tensors):
        if name not in known:
            raise ConfigError(f"the model has no tensor {shown(name)}{nearest(name, known)}")
    found = dict.fromkeys(prepared.producers[name].name for name in facts.float_tensors if name in prepared.producers)
    for name in facts.float_layers:
        heirs = [node.name for node in prepared.nodes if name == node.name or name in node.sources]
        if not heirs and name not in source.by_name:
            raise ConfigError(f"the model has no layer {shown(name)}{nearest(name, source.by_name)}")
        found |= dict.fromkeys(heirs)
    return list(found)
