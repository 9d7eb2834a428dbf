"""Configs with their reports, kept under names, to be compared later."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from qbench.errors import ConfigError, SessionError
from qbench.quant.config import QuantConfig
from qbench.report.report import Report


@dataclass(frozen=True)
class Snapshot:
    """A config, and its report where it has been run."""

    config: QuantConfig
    report: Report | None


def dump_snapshots(snapshots: Mapping[str, Snapshot], data: str) -> str:
    """Snapshots by name as JSON text; `data` is the identity of what their reports were measured on."""
    said = {
        name: {"config": one.config.to_data(), "report": one.report.to_data() if one.report else None}
        for name, one in snapshots.items()
    }
    return json.dumps({"version": 1, "data": data, "snapshots": said}, indent=1)


def load_snapshots(text: str, data: str) -> dict[str, Snapshot]:
    """What `dump_snapshots` wrote, without the reports if they are of other data; SessionError where it is not that."""
    try:
        said = json.loads(text)
        if said["version"] != 1:
            raise SessionError(f"snapshots have format {said['version']}; this qbench reads format 1: update it")
        return {
            name: Snapshot(
                QuantConfig.from_json(json.dumps(one["config"])),
                Report.from_data(one["report"]) if one["report"] is not None and said["data"] == data else None,
            )
            for name, one in said["snapshots"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise SessionError(f"it cannot be read: {error}") from error
