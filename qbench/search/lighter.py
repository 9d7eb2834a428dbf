"""A config that is good enough, made to cost less: less in float, and less in 16 bits."""

from collections.abc import Callable, Iterator

from qbench.passes.groups import group_of
from qbench.quant.config import QuantConfig
from qbench.search.advice import RUNGS
from qbench.search.front import Found
from qbench.search.regions import groups_of
from qbench.search.repairs import Widen, before
from qbench.search.subject import Subject


def lighter(
    subject: Subject, found: Found, enough: float, newest: Callable[[], Found]
) -> Iterator[tuple[str, QuantConfig]]:
    """What is in float in 16 bits, then fused groups back in 8, one after the other, as long as quality is enough.

    What is lost is guessed from the probe, which tells two configs apart better than it tells how good one is.

    Parameters
    ----------
    subject
        The model, its data and metric.
    found
        A config that is good enough.
    enough
        The metric that is.
    newest
        What was measured of the config that was given last.
    """
    rung, config, metric = subject.rung(RUNGS[0]), found.config, found.metric
    members, made = groups_of(subject.prepared), group_of(subject.prepared)

    def spared(head: str) -> bool:
        layers = [config.layers[name] for name in members[head] if name in config.layers]
        return any(layer.keep_float for layer in layers)

    def in_8_bits(head: str) -> QuantConfig:
        fewer = config.override_many("layers", members[head], keep_float=None) if spared(head) else config
        wide = made[head] in fewer.tensors and fewer.tensors[made[head]].dtype == "int16"
        return fewer.override_many("tensors", [made[head]], dtype=None) if wide else fewer

    def widened() -> tuple[str, QuantConfig]:
        heads = [*filter(spared, members)]
        fewer = config.override_many("layers", [name for head in heads for name in members[head]], keep_float=None)
        encodings = subject.quantized(fewer).encodings
        repair = Widen("less time than in float", tuple(made[head] for head in heads if made[head] in encodings))
        return f"{before(fewer)}{repair}", repair.apply(fewer)

    def tried() -> Iterator[tuple[str, QuantConfig]]:
        yield widened()
        for head in members:
            fewer = in_8_bits(head)
            yield f"{before(fewer)}without {head}", fewer

    for label, fewer in tried():
        if fewer == config:
            continue
        now, then = rung([config, fewer])
        lost = subject.probed(config) - subject.probed(fewer)
        if then.effort < now.effort and not metric - lost < enough:  # NaN where there is no metric
            yield label, fewer
            if newest().metric >= enough:
                config, metric = fewer, newest().metric
