"""Strict, frozen pydantic models whose complaints are ConfigErrors that name the path and the nearest right name."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from qbench.errors import ConfigError, nearest, shown
from qbench.quant.config_paths import Path, shown_path

_QUOTED = re.compile(r"'([^']*)'")
_SHOULD_BE = "Input should be "  # as pydantic says it


class StrictModel(BaseModel):
    """A frozen model that takes no unknown key, no coerced type, no infinity; a mistake is a ConfigError."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _config_error(error, values) from None

    # pydantic marks its own __init__ so: nested models are then validated without it, and errors have whole paths.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess] an attribute of a function

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> object:
        for key in cast(Mapping[str, Any], data) if isinstance(data, Mapping) else ():
            if key not in cls.model_fields:
                hint = f"{nearest(key, cls.model_fields)} (known keys: {', '.join(cls.model_fields)})"
                raise fault((key,), f"unknown key{hint}")
        return cast(object, data)


class PartialModel(StrictModel):
    """A model in which None means "not said": such fields are left out of the JSON."""

    @model_serializer(mode="wrap")
    def _without_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


def fault(path: Path, message: str) -> PydanticCustomError:
    """An error for a validator to raise, about what lies at `path` below the model."""
    return PydanticCustomError("fault", "{message}", {"message": message, "path": path})


def read_json(text: str) -> Any:
    """Parse standard JSON; ConfigError for NaN, Infinity and keys that are given twice."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not valid JSON: {error}") from None


def tuples(data: Any) -> Any:
    """JSON-like data with its arrays as tuples, which is what the fields of strict, frozen models are."""
    if isinstance(data, list):
        return tuple(map(tuples, cast(list[Any], data)))
    if isinstance(data, dict):
        return {key: tuples(value) for key, value in cast(dict[str, Any], data).items()}
    return data


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON has")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {shown(twice)} is given twice in one object")
    return dict(pairs)


def _config_error(error: ValidationError, data: Any) -> ConfigError:
    """All complaints in one error, a line for each path."""
    found: dict[str, list[ErrorDetails]] = {}  # the members of a union each complain: those that went deepest count
    for details in error.errors(include_url=False):
        found.setdefault(_place(details, data), []).append(details)
    lines = {place: _joined(complaints) for place, complaints in found.items()}
    ends = [place for place in lines if not any(other != place and other.startswith(place) for other in lines)]
    return ConfigError("\n".join(f"{place}: {lines[place]}" for place in ends))


def _joined(complaints: Sequence[ErrorDetails]) -> str:
    """The first complaint, with what the others would have taken."""
    first, *others = complaints
    if not first["msg"].startswith(_SHOULD_BE):
        return _complaint(first)
    wanted = dict.fromkeys(
        other["msg"].removeprefix(_SHOULD_BE) for other in others if other["msg"].startswith(_SHOULD_BE)
    )
    return _complaint({**first, "msg": " or ".join([first["msg"], *wanted])})


def _place(details: ErrorDetails, data: Any) -> str:
    """The path of a complaint, without the names of union members that pydantic puts between keys."""
    location = details["loc"]
    path: list[int | str] = []
    for step, part in enumerate(location):
        missing = details["type"] == "missing" and step == len(location) - 1
        if isinstance(data, Mapping) and (part in data or missing):
            path.append(part)
            data = cast(Mapping[Any, Any], data).get(part)
        elif isinstance(data, tuple) and isinstance(part, int):
            path.append(part)
            data = cast(tuple[Any, ...], data)[part]
    path.extend(details.get("ctx", {}).get("path", ()))
    return shown_path(tuple(path)) or "config"


def _complaint(details: ErrorDetails) -> str:
    kind, text, given = details["type"], details["msg"].removeprefix("Value error, "), details["input"]
    if kind in ("fault", "value_error", "missing"):
        return text
    context = details.get("ctx", {})
    if kind == "union_tag_invalid":
        text, given = f"{context['discriminator']} should be one of {context['expected_tags']}", context["tag"]
    names = _QUOTED.findall(text) if isinstance(given, str) else ()
    return f"{text}, not {shown(given) + nearest(given, names) if isinstance(given, str) else shown(str(given))[1:-1]}"
