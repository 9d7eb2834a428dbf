"""NNCF's ignored scope, which OpenVINO's models are quantized with: the arguments of ``nncf.IgnoredScope`` as JSON."""

from typing import Any, cast

from qbench.errors import ConfigError, shown
from qbench.exporters.rosetta.facts import Facts, json_bytes, json_object


def write_ignored(facts: Facts) -> bytes:
    """For ``nncf.quantize(..., ignored_scope=nncf.IgnoredScope(**json.load(file)))``."""
    return json_bytes({"names": list(facts.float_layers)})


def read_ignored(data: bytes) -> Facts:
    """The layers of an ignored scope; ConfigError where it gives something else than names."""
    content = json_object(data)
    other = [key for key, value in content.items() if value and key not in ("names", "validate")]
    if other:
        raise ConfigError(f"only names of an ignored scope can be read, not {shown(other[0])}; write them out")
    names: Any = content.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[Any]", names)):
        raise ConfigError("names of an ignored scope is not a list of strings")
    return Facts(float_layers=tuple(cast("list[str]", names)))
