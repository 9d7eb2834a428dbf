"""What a search found: a point for each config, those that no other beats, and the one to take."""

from collections.abc import Iterator
from dataclasses import dataclass

from qbench.ir.graph import Graph
from qbench.quant.config import QuantConfig
from qbench.search.front import Front
from qbench.views.view import View


@dataclass(frozen=True)
class FrontPoint(View):
    """One config.

    Parameters
    ----------
    label, metric, held_back, sqnr_db, ms, bytes
        As in :class:`~qbench.search.front.Found`.
    on_front, is_best, is_current
        Whether no other beats it, whether it is the one to take, and whether it is the config that counts now.
    layers
        The layers that it treats otherwise than where the search began.
    """

    label: str
    metric: float
    held_back: float | None
    sqnr_db: float | None
    ms: float
    bytes: int
    on_front: bool
    is_best: bool
    is_current: bool = False
    layers: tuple[str, ...] = ()


@dataclass(frozen=True)
class FrontView(View):
    """All that a search measured.

    Parameters
    ----------
    points
        In the order in which they were found.
    metric_name
        Of the user's metric; None: SQNR.
    metric_float, at_least, max_ms
        The float model's metric, and what is wanted.
    met, stopped
        Whether something meets what is wanted, and whether not all was tried.
    """

    points: tuple[FrontPoint, ...]
    metric_float: float
    at_least: float | None
    max_ms: float | None
    metric_name: str | None = None
    met: bool = True
    stopped: bool = False


def front_view(
    front: Front, config: QuantConfig | None = None, prepared: Graph | None = None, metric_name: str | None = None
) -> FrontView:
    """A picture of what a search found.

    Parameters
    ----------
    front
        All that was measured so far.
    config, prepared
        The config that counts now, and the float graph, for the layers of each point.
    metric_name
        What the metric is called.
    """
    kept, best, start = {id(row) for row in front.pareto}, front.best, front.rows[0].config
    points = tuple(
        FrontPoint(
            label=row.label,
            metric=row.metric,
            held_back=row.metric_held_back,
            sqnr_db=row.sqnr_db,
            ms=row.ms,
            bytes=row.bytes,
            on_front=id(row) in kept,
            is_best=row is best,
            is_current=row.config == config,
            layers=() if prepared is None else tuple(dict.fromkeys(_changed(start, row.config, prepared))),
        )
        for row in front.rows
    )
    limits = front.limits
    return FrontView(
        points, front.metric_float, limits.at_least, limits.max_ms, metric_name, front.met, stopped=front.stopped
    )


def _changed(start: QuantConfig, config: QuantConfig, prepared: Graph) -> Iterator[str]:
    """Layers whose override, or whose tensor's, is another one."""
    for name, layer in config.layers.items():
        if start.layers.get(name) != layer:
            yield name
    for name, tensor in config.tensors.items():
        if start.tensors.get(name) != tensor:
            maker = prepared.producers.get(name)
            yield from [maker.name] if maker else [node.name for node in prepared.consumers.get(name, ())]
