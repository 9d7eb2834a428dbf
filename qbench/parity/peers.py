"""Runtimes of others: imported only when one is asked for."""

from importlib import import_module
from pathlib import Path
from typing import Any

from qbench.errors import ConfigError, ModelError


def peer(module: str, package: str) -> Any:
    """A peer's module; ConfigError that says what to install where it is missing."""
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(f"{package} is not installed, and is what to compare with: pip install {package}") from None


def chosen(what: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a setting that is none of those known."""
    if value not in known:
        raise ConfigError(f"{what} {value!r} is none of {', '.join(known)}")


def file_bytes(path: Path) -> bytes:
    """What is in a model file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
