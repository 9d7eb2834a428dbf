"""Configs with their reports, kept under names, to be compared later."""

from __future__ import annotations

import json
from dataclasses import dataclass

from qbench.engine.report import Report
from qbench.errors import ConfigError, SessionError
from qbench.quant.config import QuantConfig

__all__ = ["Snapshot", "dump_snapshots", "load_snapshots"]


@dataclass(frozen=True)
class Snapshot:
    """A config, and its report where it has been run."""

    config: QuantConfig
    report: Report | None


def dump_snapshots(snapshots: dict[str, Snapshot]) -> str:
    """Snapshots by name as JSON text."""
    data = {
        name: {"config": one.config.to_json(), "report": one.report.dumps() if one.report else None}
        for name, one in snapshots.items()
    }
    return json.dumps({"version": 1, "snapshots": data}, indent=1)


def load_snapshots(text: str) -> dict[str, Snapshot]:
    """What `dump_snapshots` wrote; SessionError where it is not that."""
    try:
        data = json.loads(text)
        if data["version"] != 1:
            raise SessionError(f"snapshots have format {data['version']}; this qbench reads format 1: update it")
        return {
            name: Snapshot(
                QuantConfig.from_json(one["config"]), Report.loads(one["report"]) if one["report"] is not None else None
            )
            for name, one in data["snapshots"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise SessionError(f"the snapshots cannot be read: {error}") from error
