"""TensorRT's calibration cache, and the text of trtexec's ``--layerPrecisions``."""

import struct

from qbench.errors import ConfigError, shown
from qbench.exporters.rosetta.facts import Facts, each, override, text_of, without
from qbench.ir.dtypes import integer_range
from qbench.quant.specs import TensorOverride

_HEADER = "TRT-8601-EntropyCalibration2"
_FLOATS = ("fp32", "fp16")


def write_cache(facts: Facts) -> bytes:
    """A line for each activation: its name, and the bits of the float32 scale of its int8, highest byte first."""
    without("\r\n", facts.activations, "a calibration cache")
    lines = [f"{name}: {struct.pack('>f', _int8_scale(said)).hex()}" for name, said in facts.activations.items()]
    return ("\n".join([_HEADER, *lines]) + "\n").encode()


def read_cache(data: bytes) -> Facts:
    """The scales of a calibration cache, as symmetric int8; ConfigError where it is none."""
    header, *lines = text_of(data).splitlines() or [""]
    if not header.startswith("TRT-"):
        raise ConfigError(f"a calibration cache begins with TRT-..., not {shown(header)}")
    found: dict[str, TensorOverride] = {}
    for line in filter(str.strip, lines):
        name, _, digits = line.rpartition(": ")
        try:
            (scale,) = struct.unpack(">f", bytes.fromhex(digits))
            found[name] = override([scale], [0], "int8", per_channel=False)
        except (struct.error, ValueError, ConfigError) as error:
            raise ConfigError(f"{shown(line)} is no scale of a tensor: {error}") from error
    return Facts(activations=found)


def write_precisions(facts: Facts) -> bytes:
    """``*:int8`` and each float layer; to be given together with ``--precisionConstraints=prefer`` or ``obey``."""
    without(":,", facts.float_layers, "--layerPrecisions")
    return (",".join(["*:int8", *(f"{name}:fp32" for name in facts.float_layers)]) + "\n").encode()


def read_precisions(data: bytes) -> Facts:
    """The layers that stay in float; ConfigError for a precision that is neither int8 nor float."""
    precisions = dict[str, str]()
    for part in filter(None, text_of(data).strip().split(",")):
        name, _, precision = part.rpartition(":")
        if not name or precision not in ("int8", *_FLOATS) or (name == "*" and precision != "int8"):
            raise ConfigError(f"{shown(part)} is not LAYER:int8, LAYER:fp16, LAYER:fp32 or *:int8")
        precisions[name] = precision
    return Facts(float_layers=tuple(name for name, precision in precisions.items() if precision in _FLOATS))


def _int8_scale(said: TensorOverride) -> float:
    """That of int8 itself; of anything else, the scale at which 127 reaches as far."""
    (scale,), (zero_point,) = each(said.scale), each(said.zero_point)
    if said.dtype == "int8" and zero_point == 0:
        return scale
    return scale * max(abs(bound - zero_point) for bound in integer_range(said.dtype or "int8")) / 127
