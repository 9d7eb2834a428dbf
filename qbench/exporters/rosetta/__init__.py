"""Encodings and layers kept in float, as files of other quantization tools have them, and back."""

from collections.abc import Mapping

from qbench.errors import ConfigError, nearest, shown
from qbench.exporters.rosetta import ai_edge, aimet, arrays, nncf, tensorrt
from qbench.exporters.rosetta.facts import Facts, Format

__all__ = ["FORMATS", "Facts", "Format", "format_of"]

_OF_AIMET = (
    "whether integers are signed (int8 with a zero point comes back as uint8), the axis of channels, "
    "a float layer whose output is quantized"
)
_HALF = f"{_OF_AIMET}, other floats than float16"
_OF_ARRAYS = "the axis of channels, layers in float"

FORMATS: Mapping[str, Format] = {
    "aimet": Format(aimet.write_1_0_0, aimet.read_encodings, _HALF, ".encodings"),
    "aimet-0.6.1": Format(aimet.write_0_6_1, aimet.read_encodings, _HALF, ".encodings"),
    "qualcomm": Format(aimet.write_overrides, aimet.read_encodings, _OF_AIMET),
    "tensorrt": Format(
        tensorrt.write_cache,
        tensorrt.read_cache,
        "zero points and types (all becomes symmetric int8 that reaches as far), weights, layers in float",
        ".cache",
    ),
    "trtexec": Format(
        tensorrt.write_precisions, tensorrt.read_precisions, "scales, zero points, bits; names with : or ,", ".txt"
    ),
    "nncf": Format(
        nncf.write_ignored,
        nncf.read_ignored,
        "scales, zero points, bits; reads no patterns or types; in OpenVINO, what makes an output goes by its name",
    ),
    "ai-edge": Format(
        ai_edge.write_recipe, ai_edge.read_recipe, "scales, zero points, other bits than 8; reads no other rules"
    ),
    "npz": Format(arrays.write_npz, arrays.read_npz, _OF_ARRAYS, ".npz"),
    "safetensors": Format(arrays.write_safetensors, arrays.read_safetensors, _OF_ARRAYS, ".safetensors"),
}
"""Formats by the names that users give them."""


def format_of(name: str) -> Format:
    """The format of that name; ConfigError where there is none."""
    if name not in FORMATS:
        raise ConfigError(f"{shown(name)} is none of {', '.join(FORMATS)}{nearest(name, FORMATS)}")
    return FORMATS[name]
