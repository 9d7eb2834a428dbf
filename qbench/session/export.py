"""Files to take away."""

import logging
from collections.abc import Callable, Collection
from os import PathLike
from pathlib import Path

from qbench.errors import ExportError, check_kind, listed, shown
from qbench.exporters import write_onnx, write_tensor_quant_overrides
from qbench.exporters.tflite import inexpressible, write_tflite
from qbench.files import exported
from qbench.ir.graph import Graph
from qbench.passes.groups import Group
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized
from qbench.search.spared import in_float, integer_groups, sums_in_16_bits
from qbench.session.exports import FILES, USUAL
from qbench.session.session import Session

_LOG = logging.getLogger(__name__)


def export_onnx(model: Session | Quantized | Graph, path: str | PathLike[str], *, nbits: bool = False) -> Path:
    """Write a QDQ ONNX file (opset 21, IR 10), which onnxruntime and OpenVINO run in integers.

    Its inputs and outputs are real numbers, those of an import too that takes and gives integers.

    Parameters
    ----------
    model
        A session (as its config is now), a quantized model, or any float or annotated graph.
    path
        Where to; replaced whole or not at all.
    nbits
        Write dense layers of which only the weights are quantized with onnxruntime's own ``MatMulNBits``.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ExportError
        An op without an ONNX form, or a path that cannot be written.
    """
    _check(model)
    if isinstance(model, Session):
        model = model.quantized()
    if isinstance(model, Quantized):
        return write_onnx(model.annotated, path, float16=model.config.float_dtype == "float16", nbits=nbits)
    return write_onnx(model, path, nbits=nbits)


def export_tflite(model: Session | Quantized | Graph, path: str | PathLike[str]) -> Path:
    """Write a TFLite file, which LiteRT runs in integers; needs the extra ``tflite``.

    TFLite has one arithmetic: a session whose config has another is exported as it would be with
    ``semantics="tflite"``. Its uint8 tensors become int8 (the same real numbers) unless weights are uint8 too; inputs
    and outputs keep their type. What a
    session has in integers that TFLite has no operator for, such as a function of 16 bits, is in float in the file, and
    a warning in the log names it. Layers between 8 and 16 bits compute in 16, as TFLite's kernels do.

    Parameters
    ----------
    model
        A session (as its config is now), a quantized model, or a graph that :func:`qbench.load` read.
    path
        Where to; replaced whole or not at all.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ExportError
        All that TFLite cannot express, or a path that cannot be written.
    """
    _check(model)
    if isinstance(model, Session):
        wanted = model.config if model.is_imported else model.config.with_value("semantics", "tflite")
        model = model.quantized(wanted) if model.is_imported else _expressible(model, wanted)
    return write_tflite(model if isinstance(model, Graph) else model.qnn, path)


def _check(model: object) -> None:
    check_kind(
        model, (Session, Quantized, Graph), ExportError, "a session or a graph is exported, not {}; it comes first"
    )


def _expressible(session: Session, config: QuantConfig) -> Quantized:
    """The model with those groups in float that TFLite has no integers for: each may leave a neighbour without.

    Sums that become real numbers, which its layers of integers cannot make, are rounded to 16 bits.
    """
    floats, first = dict[str, None](), session.quantized(config)
    config = sums_in_16_bits(first, "TFLite has no layer that makes real numbers of integers").applied(
        first.prepared, config
    )
    while True:
        quantized = session.quantized(config)
        refused = inexpressible(quantized.qnn)
        names = {name for node in refused for name in (node, *quantized.qnn.node(node).sources)}
        groups = [group for group in integer_groups(quantized) if not names.isdisjoint(_names(group))]
        spared = in_float(groups, "TFLite has no integers for it")
        changed = spared.applied(quantized.prepared, config)
        if changed == config:
            break
        config, floats = changed, floats | dict.fromkeys(group.head.name for group in groups)
    if floats:
        count = "1 layer is" if len(floats) == 1 else f"{len(floats)} layers are"
        _LOG.warning("%s in float in the TFLite file, which has no integers for it: %s", count, listed(floats))
    return quantized


def _names(group: Group) -> set[str]:
    return {name for node in group.nodes for name in (node.name, *node.sources)}


def export_overrides(session: Session, path: str | PathLike[str]) -> Path:
    """Write every scale and zero point as onnxruntime's ``TensorQuantOverrides``, for its own quantizer.

    Parameters
    ----------
    session
        Whose scales, as its config is now.
    path
        Where to; replaced whole or not at all.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ExportError
        A path that cannot be written.
    """
    check_kind(session, Session, ExportError, "scales are exported from a session, not {}")
    return write_tensor_quant_overrides(session.encodings, path)


def export_all(session: Session, folder: str | PathLike[str], files: Collection[str] = USUAL) -> list[Path]:
    """Write files to a folder; gives what was written.

    Parameters
    ----------
    session
        Which is run first, where its report is stale.
    folder
        Made where it is not there yet; each file is replaced whole or not at all.
    files
        Some of `qbench.session.exports.FILES`.

    Raises
    ------
    ExportError
        A file that is none of those, a folder that cannot be written, or a model that has something that ONNX has no
        word for.
    """
    unknown = [name for name in files if name not in FILES]
    if unknown or not files:
        wrong = f", not {shown(unknown[0])}" if unknown else ""
        raise ExportError(f"choose what to write of {', '.join(FILES)}{wrong}")
    report, folder = session.report, Path(folder)
    if report is None or session.is_stale:
        report = session.run()
    writers: dict[str, Callable[[Path], object]] = {
        "config.json": session.config.save,
        "report.json": report.save,
        "model.qbench": session.save,
        "model.qdq.onnx": lambda path: export_onnx(session, path),
        "model.tflite": lambda path: export_tflite(session, path),
        "overrides.json": lambda path: export_overrides(session, path),
    }
    written: list[Path] = []
    with exported(folder, "to "):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for name in files:
                writers[name](folder / name)
                written.append(folder / name)
        except ExportError as error:
            if written:
                error.add_note(f"Written before that: {', '.join(path.name for path in written)}.")
            raise
    return written
