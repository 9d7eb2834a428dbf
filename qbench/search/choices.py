"""The few choices about a whole model, made by measurement: calibrator, bias correction, equalization, rounding."""

from dataclasses import dataclass

from qbench.garbage import set_aside
from qbench.quant.config import QuantConfig
from qbench.search.proposals import global_repairs
from qbench.search.repairs import Repair
from qbench.search.subject import Subject

_SAMPLES = 16
LEAST_DB = 0.2
"""What an edit must give on calibration data to stay."""


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Parameters
    ----------
    config
        With the edits that help; the plain one where none does.
    repairs
        Those edits, in order.
    held_back_db, plain_db
        The output's SQNR on calibration samples that no choice was made on: by this config, and by the plain one.
    metric, metric_plain
        The user's metric on the samples that no choice was made on; None where there is none.
    """

    config: QuantConfig
    repairs: tuple[Repair, ...]
    held_back_db: float
    plain_db: float
    metric: float | None = None
    metric_plain: float | None = None

    def __str__(self) -> str:
        said = ", ".join(map(str, self.repairs)) or "nothing is better than the plain default"
        metric = f", metric {self.metric:.4g} ({self.metric_plain:.4g} plain)" if self.metric is not None else ""
        return f"auto: {said}; held back: SQNR {self.held_back_db:.1f} dB ({self.plain_db:.1f} dB plain){metric}"


@set_aside()
def choose(subject: Subject, config: QuantConfig, ask_metric: bool = False) -> Choice:
    """Take one after the other the edits of the whole model by which it gains.

    Choices are made on half of a few calibration samples. What they give together must show on the other half, too: a
    choice is never worse there than the plain config.

    Parameters
    ----------
    subject
        The model, its data and metric.
    config
        The plain one.
    ask_metric
        Whether the metric decides on each edit, on the half of the evaluation data that choices are made on, and not
        the SQNR alone.
    """
    fitted, held_back = subject.rung(_SAMPLES), subject.rung(_SAMPLES, held_back=True)
    asks = ask_metric and subject.metric is not None
    tried: list[tuple[QuantConfig, tuple[Repair, ...]]] = [(config, ())]
    (now,) = fitted([config])
    best = subject.probed(config) if asks else 0.0
    for repair in global_repairs(config, subject.can_round(config), subject.can_equalize(config)):
        before, repairs = tried[-1]
        edited = repair.apply(before)
        (worth,) = fitted([edited])
        metric = subject.probed(edited) if asks else 0.0
        if metric > best or (metric == best and worth.sqnr_db > now.sqnr_db + LEAST_DB):
            tried.append((edited, (*repairs, repair)))
            now, best = worth, metric
    plain, *then = held_back([each for each, _ in tried])
    while then and then[-1].sqnr_db < plain.sqnr_db:
        then.pop()
        tried.pop()
    (chosen, repairs), metrics = tried[-1], (None, None)
    if asks:
        metrics = subject.quality(chosen).held_back, subject.quality(config).held_back
    return Choice(chosen, repairs, (then[-1] if then else plain).sqnr_db, plain.sqnr_db, *metrics)
