"""QuantConfig: the document that the user tunes and takes away."""

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, cast, get_args

import numpy as np
from pydantic import AfterValidator, PlainSerializer, model_validator

from qbench.errors import ConfigError, nearest, shown
from qbench.files import exported, write_text
from qbench.ir.dtypes import DType
from qbench.ir.frozen import FrozenMap
from qbench.quant.config_paths import format_path, parse_path, with_part
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics
from qbench.quant.specs import LayerOverride, Mode, Rule, TensorOverride, TensorSpec, WeightSpec
from qbench.quant.strict import PartialModel, StrictModel, fault, read_json, tuples

Preset = Literal["default", "auto", "int8", "dynamic", "weight_only", "weight_only_int4"]

Override = TypeVar("Override", bound=PartialModel)


def _dumped(overrides: Mapping[str, PartialModel]) -> dict[str, Any]:
    return {name: override.model_dump(mode="json") for name, override in overrides.items()}


ByName = Annotated[Mapping[str, Override], AfterValidator(FrozenMap), PlainSerializer(_dumped)]


class QuantConfig(StrictModel):
    """Everything that decides how a model is quantized; immutable, and the same thing as its JSON.

    A tensor's settings come from its override, else from the last rule that fits, else from the defaults.

    Raises
    ------
    ConfigError
        An unknown key, a value of the wrong type or out of range; the message names the path.
    """

    version: Literal[1] = 1
    mode: Mode = "static"
    """How layers are quantized that no rule or override gives another mode."""
    activations: TensorSpec = TensorSpec()
    weights: WeightSpec = WeightSpec()
    rounding: Rounding = "tflite_single"
    """How accumulators become integers, in every layer that no rule or override speaks of."""
    semantics: Semantics | None = None
    """Whose arithmetic integers are computed in: it then decides, in place of `rounding`, how each op rounds."""
    float_dtype: Literal["float32", "float16"] = "float32"
    """Type of what stays in float."""
    rules: tuple[Rule, ...] = ()
    tensors: ByName[TensorOverride] = FrozenMap()
    """Overrides by tensor name."""
    layers: ByName[LayerOverride] = FrozenMap()
    """Overrides by the name of a node of the prepared graph."""

    @cached_property
    def by_shifts(self) -> bool:
        """Whether anything here rounds by shifts: a multiplier is then a power of two, and so are all scales."""
        roundings = [self.rounding, *(part.rounding for part in (*self.rules, *self.layers.values()))]
        return any(rounding is not None and rounding.startswith("pow2") for rounding in roundings)

    @model_validator(mode="after")
    def _zero_points(self) -> Self:
        """A zero point whose dtype is not said must suit one of the types that the config can give it."""
        dtypes: list[DType | None] = [self.activations.dtype, self.weights.dtype]
        for rule in self.rules:
            dtypes += (rule.dtype, rule.weights_dtype)
        known: list[DType] = [dtype for dtype in dict.fromkeys(dtypes) if dtype]
        for name, override in self.tensors.items():
            complaint = None if override.dtype else override.zero_point_complaint(*known)
            if complaint:
                raise fault(("tensors", name, "zero_point"), complaint)
        return self

    @classmethod
    def of_preset(cls, preset: Preset = "default") -> Self:
        """The config that a session starts with where none is given.

        Parameters
        ----------
        preset
            "default": what 8 bits would spoil stays in float, as little as the model needs, and weights are rounded on
            data where outputs gain by it. "auto": the same, from which a session chooses by measurement. "int8": all
            that can be is quantized, as where a config says nothing else. "dynamic": dense layers quantize their data
            by the range that each sample has. "weight_only": weights are stored in 8 bits. "weight_only_int4": in 4
            bits, those of dense layers with a scale for every 32 inputs, rounded on data where outputs gain by it. All
            else then stays in float.

        Raises
        ------
        ConfigError
            There is no such preset.
        """
        match preset:
            case "default" | "auto":
                return cls(activations=TensorSpec(least_db="measured"), weights=WeightSpec(rounding="measured"))
            case "int8":
                return cls()
            case "weight_only_int4":
                weights = WeightSpec(dtype="uint4", symmetric=False, narrow=False, axis=32, rounding="measured")
                return cls(mode="weight_only", weights=weights)
            case "dynamic" | "weight_only":
                return cls(mode=preset)
            case _:  # pyright: ignore[reportUnnecessaryComparison] anything may come at run time
                known = get_args(Preset)
                raise ConfigError(f"there is no preset {shown(preset)}{nearest(preset, known)} ({', '.join(known)})")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The config that a JSON text says; ConfigError names the path of what is wrong."""
        return cls.from_data(read_json(text))

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """The config that parsed JSON says; ConfigError names the path of what is wrong."""
        if not isinstance(data, dict):
            raise ConfigError(f"a config is a JSON object, not {shown(str(data))}")
        return cls(**tuples(cast(dict[str, Any], data)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a config from a JSON file; ConfigError where it cannot be read or means nothing."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, TypeError, UnicodeDecodeError, ConfigError) as error:
            raise ConfigError(f"config {shown(str(path))}: {error}") from None

    def to_data(self) -> dict[str, Any]:
        """The config as plain objects, lists, strings and numbers, as in its JSON."""
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        """The config as JSON; two configs are equal exactly where their texts are."""
        return json.dumps(self.to_data(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, whole or not at all; ExportError where that fails."""
        with exported(path, "the config to "):
            write_text(Path(path), self.to_json())

    def with_value(self, path: str, value: Any) -> Self:
        """A copy with another value at a path such as ``weights.axis`` or ``tensors["conv1.out"].threshold``.

        Parameters
        ----------
        path
            See `qbench.quant.config_paths`. An override that is not there yet is made.
        value
            What the JSON would hold, or the Python object that stands for it. None takes back a setting of a rule or
            an override, and an override that says nothing any more goes.
        """
        try:
            data = with_part(self.to_data(), parse_path(path), json.loads(json.dumps(value, default=_plain)))
        except (ConfigError, TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{shown(path)} cannot be set to {shown(repr(value))}: {error}") from None
        for kind in ("tensors", "layers"):
            if isinstance(data[kind], Mapping):
                data[kind] = {name: override for name, override in data[kind].items() if _says(override)}
        return self.from_data(data)

    def override_tensor(self, name: str, **settings: Any) -> Self:
        """A copy with these fields of `TensorOverride` set for a tensor; the others that it has are kept.

        Of threshold, scale and calibrator, which each decide the range, a new one replaces the others; so do
        zero_point and ``symmetric=True``.
        """
        return self._with_override("tensors", name, _revised(self.to_data()["tensors"].get(name, {}), settings))

    def override_layer(self, name: str, **settings: Any) -> Self:
        """A copy with these fields of `LayerOverride` set for a layer; the others that it has are kept."""
        return self._with_override("layers", name, _revised(self.to_data()["layers"].get(name, {}), settings))

    def override_many(self, kind: Literal["tensors", "layers"], names: Iterable[str], **settings: Any) -> Self:
        """A copy with the same settings for many tensors or layers, as if they were given one after the other."""
        try:
            given = tuples(json.loads(json.dumps(settings, default=_plain)))
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{kind} cannot be overridden by {shown(repr(settings))}: {error}") from None
        known: Mapping[str, PartialModel] = getattr(self, kind)
        before = {name: dict(known[name]) if name in known else {} for name in names}
        after = {**known} | {name: _revised(override, given) for name, override in before.items()}
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        fields[kind] = {name: override for name, override in after.items() if _says(override)}
        return type(self)(**fields)

    def without_tensor(self, name: str) -> Self:
        """A copy without the override of a tensor; ConfigError where there is none."""
        return self._without("tensors", name)

    def without_layer(self, name: str) -> Self:
        """A copy without the override of a layer; ConfigError where there is none."""
        return self._without("layers", name)

    def without_many(self, kind: Literal["tensors", "layers"], names: Collection[str | None]) -> Self:
        """A copy without the overrides of tensors or layers of those names."""
        kept = {name: override for name, override in self.to_data()[kind].items() if name not in names}
        return self.with_value(kind, kept)

    def with_rule(self, **settings: Any) -> Self:
        """A copy with one more rule, which wins over those before it; `settings` are the fields of `Rule`."""
        return self.with_value("rules", [*self.to_data()["rules"], settings])

    def _with_override(self, kind: str, name: str, settings: Mapping[str, Any]) -> Self:
        return self.with_value(format_path((kind, name)), settings)

    def _without(self, kind: str, name: str) -> Self:
        overrides = self.to_data()[kind]
        if name not in overrides:
            raise ConfigError(f"{kind}: there is no override of {shown(name)}{nearest(name, overrides)}")
        return self.with_value(format_path((kind, name)), {})


def _revised(override: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """An override with further settings, without those that they replace."""
    deciders = ("threshold", "scale", "calibrator")
    replaced = {
        *(deciders if any(settings.get(key) is not None for key in deciders) else ()),
        *(("symmetric",) if settings.get("zero_point") is not None else ()),
        *(("zero_point",) if settings.get("symmetric") else ()),
    }
    return {key: value for key, value in override.items() if key not in replaced} | dict(settings)


def _says(override: Any) -> bool:
    """Whether an override has any setting (what is no object at all is left for validation to complain about)."""
    if not isinstance(override, Mapping):
        return True
    return any(value is not None for value in cast(Mapping[str, Any], override).values())


def _plain(value: Any) -> Any:
    """What JSON does not know as something that it does: models, NumPy numbers and arrays."""
    if isinstance(value, StrictModel):
        return value.model_dump(mode="json")
    if isinstance(value, (np.generic, np.ndarray)):
        return cast(Any, value).tolist()
    raise TypeError(f"{type(value).__name__} is unknown to JSON")
