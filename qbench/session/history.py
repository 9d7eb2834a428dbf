"""The configs that a session has had, in order, and which of them counts now: undo and redo as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from qbench.errors import ConfigError, SessionError
from qbench.quant.config import QuantConfig


@dataclass(frozen=True)
class Edit:
    """One config and what was done to get it.

    Parameters
    ----------
    label
        Such as ``override 'dense_1' threshold=2.5``.
    config
        The whole config after the edit.
    starts
        Whether a session was started with this config: what a diff compares with.
    """

    label: str
    config: QuantConfig
    starts: bool = False

    @cached_property
    def json(self) -> str:
        """As JSON text, made once: every edit saves all those before it."""
        said = {"label": self.label, "starts": self.starts, "config": self.config.to_data()}
        return json.dumps(said, allow_nan=False)


@dataclass(frozen=True)
class History:
    """Edits, oldest first; those after `position` were undone and wait to be redone.

    Raises
    ------
    SessionError
        No edits, or a position outside of them.
    """

    edits: tuple[Edit, ...]
    position: int = 0

    def __post_init__(self) -> None:
        if self.position not in range(len(self.edits)):
            raise SessionError(f"position {self.position} is outside a history of {len(self.edits)} edits")

    @classmethod
    def start(cls, config: QuantConfig) -> History:
        """The history of a new session."""
        return cls((Edit("start", config, starts=True),))

    @property
    def config(self) -> QuantConfig:
        """The config that counts now."""
        return self.edits[self.position].config

    @property
    def base(self) -> QuantConfig:
        """The config that the session was last started with."""
        return next((e.config for e in reversed(self.edits[: self.position + 1]) if e.starts), self.edits[0].config)

    def push(self, edit: Edit) -> History:
        """One more edit, in place of those that were undone; the same history where it changes nothing."""
        if edit.config == self.config and not edit.starts:
            return self
        return History((*self.edits[: self.position + 1], edit), self.position + 1)

    def joined(self) -> History:
        """The newest edit and the one before it as one: for the steps of a handle that is dragged."""
        if self.position < 2 or self.edits[self.position - 1].starts:
            return self
        return History((*self.edits[: self.position - 1], self.edits[self.position]), self.position - 1)

    def at(self, position: int) -> History:
        """As after that many edits; SessionError where there are not that many."""
        return self if position == self.position else History(self.edits, position)

    def undo(self) -> History:
        """One step back; SessionError at the beginning."""
        if self.position == 0:
            raise SessionError("nothing to undo: this is the config that the session was started with")
        return History(self.edits, self.position - 1)

    def redo(self) -> History:
        """One step forward; SessionError at the end."""
        if self.position == len(self.edits) - 1:
            raise SessionError("nothing to redo: no edit was undone")
        return History(self.edits, self.position + 1)

    def to_json(self) -> str:
        """All edits and the position as JSON text."""
        edits = ",\n".join(edit.json for edit in self.edits)
        return f'{{"version": 1, "position": {self.position}, "edits": [\n{edits}\n]}}\n'

    @staticmethod
    def from_json(text: str) -> History:
        """The history that a JSON text says; SessionError where it says none."""
        try:
            data = cast("Mapping[str, Any]", json.loads(text))
            if data["version"] != 1:
                raise SessionError(f"the history has format {data['version']}; this qbench reads format 1: update it")
            edits = tuple(
                Edit(str(e["label"]), QuantConfig.from_json(json.dumps(e["config"])), bool(e["starts"]))
                for e in data["edits"]
            )
            return History(edits, int(data["position"]))
        except (ValueError, KeyError, TypeError, ConfigError) as error:
            raise SessionError(f"the history cannot be read: {error}") from error
