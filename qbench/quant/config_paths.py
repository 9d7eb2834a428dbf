"""Paths into a config, as text: ``weights.axis``, ``rules[0].dtype``, ``tensors["conv1/out.1"].threshold``.

A key of letters, digits and ``_ / : -`` may stand bare after a dot; any other key (one with a dot, a bracket, a space)
is written as a JSON string in brackets. A number in brackets is a position in a list.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from qbench.errors import ConfigError, shown

Path = tuple[str | int, ...]

_PART = re.compile(r'(\.?)([\w/:-]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_BARE = re.compile(r"[\w/:-]+")


def parse_path(text: str) -> Path:
    """The keys and positions of a path; ConfigError where it cannot be read."""
    path: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or (match[2] and bool(match[1]) != bool(path)):
            raise ConfigError(
                f"path {shown(text)} cannot be read from position {at}: "
                'write a name that has dots, brackets or spaces as a JSON string, tensors["a.b"].threshold'
            )
        path.append(match[2] or (int(match[3]) if match[3] else _json_string(match[4], text)))
        at = match.end()
    if not path:
        raise ConfigError("the path is empty")
    return tuple(path)


def format_path(path: Path) -> str:
    """The text of a path; `parse_path` gives the path back."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text


def _json_string(quoted: str, text: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        raise ConfigError(f"path {shown(text)}: {shown(quoted)} is not a JSON string") from None


def shown_path(path: Path) -> str:
    """The text of a path for a message, which a key of 10,000 letters cannot spoil."""
    text = format_path(path)
    return text if len(text) <= 200 else shown(text)


def with_part(data: Any, path: Path, value: Any) -> Any:
    """A copy of JSON-like data with the value at a path replaced; keys of objects are made where they are missing."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(data, dict) and isinstance(part, str):
        known = cast(dict[str, Any], data)
        return known | {part: with_part(known.get(part, {}), rest, value)}
    if isinstance(data, (list, tuple)) and isinstance(part, int):
        items = list(cast(Sequence[Any], data))
        if part < len(items):
            return [*items[:part], with_part(items[part], rest, value), *items[part + 1 :]]
        raise ConfigError(f"there is no [{part}] in a list of {len(items)}")
    raise ConfigError(f"{shown(str(cast(object, data)))} has no part {format_path((part,))}")


def leaves(data: Any, path: Path = ()) -> dict[Path, Any]:
    """The values at the ends of JSON-like data, by path; empty objects and lists have none."""
    if isinstance(data, dict) and data:
        parts = list(cast(dict[str, Any], data).items())
    elif isinstance(data, (list, tuple)) and data:
        parts = list(enumerate(cast(Sequence[Any], data)))
    else:
        return {} if isinstance(data, (dict, list, tuple)) else {path: data}
    return {end: value for part, inner in parts for end, value in leaves(inner, (*path, part)).items()}
