"""What all views have in common: they turn into plain JSON."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast


class View:
    """Base of the frozen dataclasses that are pictures."""

    def to_dict(self) -> dict[str, Any]:
        """The view as strict JSON data; see `plain`."""
        return cast("dict[str, Any]", plain(self))


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists; JSON has no infinities, so they are the strings ``inf`` and ``-inf``."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (tuple, list)):
        return [item if type(item) is int else plain(item) for item in cast("list[Any]", value)]  # counts are many
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value
