"""What is chosen for a whole model by measurement must hold on samples that no choice was made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from qbench.ir.frozen import Constant
from qbench.quant.config import QuantConfig
from qbench.search.choices import choose
from qbench.search.judge import Worth
from qbench.search.proposals import global_repairs
from qbench.search.quality import Quality
from qbench.search.subject import Subject
from qbench.session.session import Session
from tests.networks import mlp
from tests.search.planted import X

PER_TENSOR = QuantConfig().with_value("weights.axis", None)
PLAIN = QuantConfig()
FIRST, SECOND = global_repairs(PLAIN)[:2]
CONFIGS = (PLAIN, FIRST.apply(PLAIN), SECOND.apply(FIRST.apply(PLAIN)))


@dataclass
class Planted:
    """What the test says of the plain config, and of it with one repair and with two."""

    fitted: tuple[float, ...]
    unseen: tuple[float, ...]
    metrics: tuple[float, ...] = ()

    @property
    def metric(self) -> object:
        return self.metrics or None

    def can_round(self, config: QuantConfig) -> bool:
        return True

    def can_equalize(self, config: QuantConfig) -> bool:
        return False

    def rung(self, samples: int, held_back: bool = False) -> Any:
        known = self.unseen if held_back else self.fitted

        def worths(configs: Sequence[QuantConfig]) -> list[Worth]:
            return [Worth(number_of(config, known), 1.0) for config in configs]

        return worths

    def probed(self, config: QuantConfig) -> float:
        return number_of(config, self.metrics)

    def quality(self, config: QuantConfig) -> Quality:
        number = number_of(config, self.metrics)
        return Quality(number, number, number / 2, None)


def number_of(config: QuantConfig, numbers: tuple[float, ...]) -> float:
    """Anything else is worth nothing."""
    known = [number for number, one in zip(numbers, CONFIGS, strict=False) if one == config]
    return known[0] if known else 0.0


def chosen(planted: Planted, **asks: bool) -> Any:
    return choose(cast("Subject", planted), PLAIN, **asks)


def test_what_helps_on_both_halves_stays():
    choice = chosen(Planted((10.0, 12.0, 13.0), (9.0, 10.0, 11.0)))
    assert (choice.config, choice.repairs) == (CONFIGS[2], (FIRST, SECOND))
    assert (choice.held_back_db, choice.plain_db) == (11.0, 9.0)
    assert str(choice) == f"auto: {FIRST}, {SECOND}; held back: SQNR 11.0 dB (9.0 dB plain)"


def test_what_is_worse_on_the_half_held_back_goes_the_last_first():
    fitted = (10.0, 12.0, 13.0)
    assert chosen(Planted(fitted, (9.0, 10.0, 8.0))).config == CONFIGS[1]
    nothing = chosen(Planted(fitted, (9.0, 8.0, 8.0)))
    assert (nothing.config, nothing.repairs, nothing.held_back_db) == (PLAIN, (), 9.0)
    assert "nothing is better" in str(nothing)


def test_a_metric_decides_where_it_is_asked():
    planted = Planted((10.0, 12.0), (9.0, 9.5), (0.8, 0.7))
    assert chosen(planted).config == CONFIGS[1]
    assert chosen(planted, ask_metric=True).repairs == ()
    choice = chosen(Planted((10.0, 12.0), (9.0, 9.5), (0.8, 0.9)), ask_metric=True)
    assert (choice.config, choice.metric, choice.metric_plain) == (CONFIGS[1], 0.45, 0.4)


def test_auto_is_an_edit_that_the_report_tells():
    graph = mlp(3, (12, 24, 24, 5))
    weight = np.asarray(graph.constants["dense_0.weight"].array, np.float32)
    uneven = Constant(weight * np.logspace(-2, 0, 24, dtype=np.float32)[:, None])
    graph = graph.rebound(constants={**graph.constants, "dense_0.weight": uneven})
    x = X[:, :12]
    session = Session(graph, x, x[:8], config=PER_TENSOR, preset="auto")
    start, auto = session.history.edits
    assert start.config == PER_TENSOR
    assert auto.label.startswith("auto: ")
    assert auto.config != PER_TENSOR
    report = session.run(progress=False)
    assert report.edits == (auto.label,)
    assert f"since the start: {auto.label[:20]}" in str(report)
    assert report.to_dict()["edits"] == (auto.label,)
    plain = Session(graph, x, x[:8], config=PER_TENSOR).run(progress=False)
    assert (report.output.sqnr_db or 0) > (plain.output.sqnr_db or 0)
    session.undo()
    assert session.run(progress=False).edits == ()
