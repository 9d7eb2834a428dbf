"""AIMET's encodings, versions 1.0.0 (lists) and 0.6.1 (by name); Qualcomm's quantization_overrides, which are alike.

Offsets are those of unsigned integers, negated: ``real = scale * (unsigned + offset)``.
"""

from collections.abc import Mapping
from typing import Any, cast

from qbench.errors import ConfigError, listed, shown
from qbench.exporters.rosetta.facts import Facts, bits_of, each, json_bytes, json_object, override
from qbench.ir.dtypes import DType, integer_range
from qbench.quant.specs import TensorOverride

Entry = dict[str, Any]

_PARTS = "activation_encodings", "param_encodings"
_HALF = 16  # bits of the one kind of float that AIMET reads


def write_1_0_0(facts: Facts) -> bytes:
    """The content of a file of version 1.0.0."""
    activations = [{"name": name, **_listed(said)} for name, said in facts.activations.items()]
    floats = [{"name": name, "dtype": "FLOAT", "bw": _HALF, "enc_type": "PER_TENSOR"} for name in _floats(facts)]
    weights = [{"name": name, **_listed(said)} for name, said in facts.weights.items()]
    return json_bytes({"version": "1.0.0", "activation_encodings": activations + floats, "param_encodings": weights})


def write_0_6_1(facts: Facts) -> bytes:
    """The content of a file of version 0.6.1."""
    return json_bytes({"version": "0.6.1", **_by_name(facts, _HALF)})


def write_overrides(facts: Facts) -> bytes:
    """The content of a file for ``--quantization_overrides``."""
    return json_bytes(_by_name(facts, 32))


def read_encodings(data: bytes) -> Facts:
    """What a file of any of these says; ConfigError for what means nothing, or what qbench has no word for."""
    content = json_object(data)
    found: dict[str, dict[str, TensorOverride]] = {}
    floats: list[str] = []
    if not content.keys() & {*_PARTS}:
        raise ConfigError(f"a file of encodings has {' or '.join(_PARTS)}; this one has {listed([*content])}")
    for part in _PARTS:
        found[part] = {}
        for name, entries in _entries(content.get(part, {}), part):
            try:
                if str(entries[0].get("dtype", "int")).lower() == "float":
                    floats.append(name)
                elif _width(entries[0]) < 32:  # biases are said too, but follow from other scales here
                    found[part][name] = _read(entries)
            except (KeyError, IndexError, TypeError, ValueError, ConfigError) as error:
                raise ConfigError(f"{part} of {shown(name)} cannot be read: {error!r}") from error
    return Facts(found["activation_encodings"], found["param_encodings"], tuple(floats))


def _entries(part: Any, where: str) -> list[tuple[str, list[Entry]]]:
    """Names with their entries; one entry of lists is written as many."""
    try:
        if isinstance(part, Mapping):
            return [(name, list(entries)) for name, entries in cast("Mapping[str, list[Entry]]", part).items()]
        return [(str(entry["name"]), [entry]) for entry in cast("list[Entry]", part)]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{where} holds no encodings") from error


def _read(entries: list[Entry]) -> TensorOverride:
    first = entries[0]
    kind = first.get("enc_type", "PER_CHANNEL" if len(entries) > 1 else "PER_TENSOR")
    if kind not in ("PER_TENSOR", "PER_CHANNEL"):
        raise ConfigError(f"encodings of the kind {shown(str(kind))} are not known")
    bits = _width(first)
    symmetric = str(first.get("is_sym", first.get("is_symmetric", False))).lower() == "true"
    dtype = cast("DType", f"int{bits}" if symmetric or bits > 8 else f"uint{bits}")
    pairs = [pair for entry in entries for pair in _pairs(entry, bits)]
    low = integer_range(dtype)[0]
    zeros = [low - round(offset) for _, offset in pairs]
    return override([scale for scale, _ in pairs], zeros, dtype, kind == "PER_CHANNEL")


def _width(entry: Entry) -> int:
    return int(entry.get("bw", entry.get("bitwidth", 8)))


def _pairs(entry: Entry, bits: int) -> list[tuple[float, float]]:
    """Scales with offsets; what Qualcomm's files may leave out follows from the range."""
    if "scale" not in entry:
        scale = (float(entry["max"]) - float(entry["min"])) / (2**bits - 1)
        return [(scale, round(float(entry["min"]) / scale))]
    scales, offsets = entry["scale"], entry["offset"]
    if not isinstance(scales, list):
        return [(scales, offsets)]
    return list(zip(cast("list[float]", scales), cast("list[float]", offsets), strict=True))


def _listed(said: TensorOverride) -> Entry:
    kind = "PER_CHANNEL" if isinstance(said.scale, tuple) else "PER_TENSOR"
    return {
        "dtype": "INT",
        "bw": bits_of(said),
        "enc_type": kind,
        "is_sym": _symmetric(said),
        "scale": list(each(said.scale)),
        "offset": _offsets(said),
    }


def _by_name(facts: Facts, width: int) -> dict[str, dict[str, list[Entry]]]:
    floats = {name: [{"bitwidth": width, "dtype": "float"}] for name in _floats(facts)}
    activations = {name: _one_by_one(said) for name, said in facts.activations.items()}
    weights = {name: _one_by_one(said) for name, said in facts.weights.items()}
    return {"activation_encodings": activations | floats, "param_encodings": weights}


def _one_by_one(said: TensorOverride) -> list[Entry]:
    bits, symmetric = bits_of(said), str(_symmetric(said))
    return [
        {
            "bitwidth": bits,
            "dtype": "int",
            "is_symmetric": symmetric,
            "min": scale * offset,
            "max": scale * (offset + 2**bits - 1),
            "offset": offset,
            "scale": scale,
        }
        for scale, offset in zip(each(said.scale), _offsets(said), strict=True)
    ]


def _floats(facts: Facts) -> list[str]:
    return [name for name in facts.float_tensors if name not in facts.activations]


def _symmetric(said: TensorOverride) -> bool:
    return integer_range(said.dtype or "int8")[0] < 0 and not any(each(said.zero_point))


def _offsets(said: TensorOverride) -> list[int]:
    low = integer_range(said.dtype or "int8")[0]
    return [low - int(zero_point) for zero_point in each(said.zero_point)]
