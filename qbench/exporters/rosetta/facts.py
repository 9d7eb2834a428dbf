"""What files of other tools say, in the words of a config."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from qbench.errors import ConfigError, ExportError, shown
from qbench.ir.dtypes import integer_range
from qbench.quant.specs import TensorOverride
from qbench.quant.strict import read_json


@dataclass(frozen=True)
class Facts:
    """Scales and types by tensor, and what stays in float.

    Parameters
    ----------
    activations, weights
        Scale, zero point and dtype; lists where they are per channel.
    float_tensors
        What layers that compute in float give.
    float_layers
        Which compute in float, by their names in the model's file.
    """

    activations: Mapping[str, TensorOverride] = field(default_factory=dict[str, TensorOverride])
    weights: Mapping[str, TensorOverride] = field(default_factory=dict[str, TensorOverride])
    float_tensors: tuple[str, ...] = ()
    float_layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """One tool's file.

    Parameters
    ----------
    write, read
        Between facts and the content of a file. Both raise for what they cannot express: ExportError, ConfigError.
    cannot
        What the format has no word for.
    suffix
        How its files end.
    """

    write: Callable[[Facts], bytes]
    read: Callable[[bytes], Facts]
    cannot: str
    suffix: str = ".json"


def each(value: float | tuple[float, ...] | None) -> tuple[float, ...]:
    """The numbers of a setting that is one number or a list."""
    return value if isinstance(value, tuple) else () if value is None else (value,)


def override(scales: Iterable[float], zero_points: Iterable[int], dtype: str, per_channel: bool) -> TensorOverride:
    """A tensor's encoding; ConfigError where it is none."""
    scale, zero_point = tuple(map(float, scales)), tuple(map(int, zero_points))
    if not scale or len(scale) != len(zero_point) or (len(scale) > 1 and not per_channel):
        raise ConfigError(f"{len(scale)} scales and {len(zero_point)} zero points are no encoding")
    said: dict[str, Any] = {"scale": scale, "zero_point": zero_point}
    return TensorOverride(**(said if per_channel else {key: value[0] for key, value in said.items()}), dtype=dtype)  # pyright: ignore[reportArgumentType] checked by it


def text_of(data: bytes) -> str:
    """The text of a file; ConfigError where it is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text: {error}") from None


def bits_of(said: TensorOverride) -> int:
    """How many bits a tensor's integers have."""
    low, high = integer_range(said.dtype or "int8")
    return (high - low + 1).bit_length() - 1


def json_bytes(content: object) -> bytes:
    """The content of a JSON file."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object of a file; ConfigError where it is none."""
    found = read_json(text_of(data))
    if not isinstance(found, dict):
        raise ConfigError("not a JSON object")
    return cast("dict[str, Any]", found)


def without(letters: str, names: Iterable[str], what: str) -> None:
    """Raise ExportError for a name that has letters which a format gives another meaning."""
    for name in names:
        if any(letter in name for letter in letters):
            raise ExportError(f"{what} cannot write the name {shown(name)}: it has one of {shown(letters)}")
