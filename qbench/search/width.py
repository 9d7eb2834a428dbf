"""All in 16 bits, and from there parts of the network back in 8: for what no repair of a few layers cures."""

from collections.abc import Iterator, Sequence

from qbench.passes.groups import Group
from qbench.quant.config import QuantConfig
from qbench.search.advice import RUNGS
from qbench.search.front import Found, Limits
from qbench.search.repairs import RoundWeights
from qbench.search.spared import cut, entering, in_16_bits, integer_groups
from qbench.search.subject import Subject

_PARTS = 8


def in_16_bits_or_8(
    subject: Subject, config: QuantConfig, limits: Limits, rows: Sequence[Found]
) -> Iterator[tuple[str, QuantConfig]]:
    """Configs worth measuring: all in 16 bits, its weights rounded with care, then as many parts in 8 as will do.

    Those parts go back first that lose least for their time; how many is found by halving.

    Parameters
    ----------
    subject, config, limits
        As for :func:`qbench.search.search.search`; the config has all in 8 bits.
    rows
        What was measured, the last one last.
    """
    enough = float("inf") if limits.at_least is None else limits.at_least
    quantized, rung = subject.quantized(config), subject.rung(RUNGS[-1])
    groups = integer_groups(quantized)
    read = entering(subject.trace(config, subject.cancel), groups)

    def without(base: QuantConfig, narrow: Sequence[Sequence[Group]]) -> QuantConfig:
        heads = {group.head.name for part in narrow for group in part}
        wide = [group for group in groups if group.head.name not in heads]
        return in_16_bits(subject.prepared, wide, read, quantized.encodings).applied(subject.prepared, base)

    lean, wide = rung([config, without(config, ())])
    start = next(row for row in rows if row.config == config)
    if limits.max_ms is not None and start.ms * wide.effort / lean.effort > limits.max_ms:
        return
    yield "all in 16 bits", without(config, ())
    best = rows[-1]
    if limits.spent(best):
        return
    careful = RoundWeights("").apply(config)
    if best.metric < enough and careful != config and subject.can_round(config):
        yield "all in 16 bits, weights rounded sequentially", without(careful, ())
        config, best = (careful, rows[-1]) if rows[-1].metric > best.metric else (config, best)
    if best.metric <= start.metric:
        return
    parts = cut(groups, _PARTS)
    now, *then = rung([without(config, ()), *(without(config, [part]) for part in parts)])
    price = [(one.noise - now.noise) / max(now.effort - one.effort, 1e-9 * now.effort) for one in then]
    ranked = [parts[at] for at in sorted(range(len(parts)), key=price.__getitem__)]
    low, high = 0, len(parts)
    while high - low > 1:
        middle = (low + high) // 2
        yield f"{middle} of {len(parts)} parts in 8 bits, the others in 16", without(config, ranked[:middle])
        low, high = (middle, high) if rows[-1].metric >= min(enough, best.metric) else (low, middle)
