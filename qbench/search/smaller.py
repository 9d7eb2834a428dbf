"""A config made to take fewer bytes: weights in 4 bits, those first that lose least for what they save."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import FrozenMap
from qbench.ir.memo import Memo
from qbench.ir.op import QuantRule
from qbench.passes.groups import rule_of
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.quant.config import QuantConfig
from qbench.quantize.sequential import APART, round_sequentially
from qbench.search.front import Found
from qbench.search.judge import Judge, judged
from qbench.search.ledger import Ledger
from qbench.search.repairs import NarrowWeights, Repair, RoundWeights, before
from qbench.search.rounding import unseen
from qbench.search.subject import Subject

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # of the weights that are tried in 4 bits
_JUDGED = 8  # samples


def smaller(subject: Subject, start: Found, most: int) -> Iterator[tuple[str, QuantConfig]]:
    """First as many weights in 4 bits as the limit asks for, rounded with care; then ever more, as the config has them.

    Parameters
    ----------
    subject
        The model and its data.
    start
        What is made smaller.
    most
        Bytes.
    """
    graph, config = subject.prepared, start.config
    known = graph.constants.keys() & subject.quantized(config).encodings.keys()
    read = [node.inputs[1] for node in graph.nodes if rule_of(node) == QuantRule.MAC and node.inputs[1] in known]
    sizes = {name: graph.constants[name].array.size for name in read}
    loss: Mapping[str, float] = _losses(subject, config, sizes) if sizes else {}
    ranked = sorted(sizes, key=lambda name: loss[name] / sizes[name])
    spent: NDArray[np.int64] = np.cumsum(np.asarray([sizes[name] for name in ranked], np.int64))

    def narrowed(share: float) -> Repair:
        """As many as are needed; without those that are not, for what came behind them."""
        count = int(np.searchsorted(spent, float(share * spent[-1]))) + 1
        kept, beyond = ranked[:count], float(spent[:count][-1] - share * spent[-1])
        for name in sorted(kept, key=lambda name: -loss[name]):
            if sizes[name] <= beyond:
                kept.remove(name)
                beyond -= sizes[name]
        return NarrowWeights("their loss is least for the bytes that it saves", tuple(kept))

    wanted = 2 * (start.bytes - most) / spent[-1] if ranked else 0.0
    if wanted > 0 and subject.can_round(config):
        repair = narrowed(min(wanted, 1.0))
        careful = RoundWeights("those of 8 bits, too: they undo what others lose")
        yield f"{before(config)}{careful}, {repair}", careful.apply(repair.apply(config))
    for repair in dict.fromkeys(map(narrowed, _SHARES if ranked else ())):
        yield f"{before(config)}{repair}", repair.apply(config)


def _losses(subject: Subject, config: QuantConfig, names: Collection[str]) -> Mapping[str, float]:
    """What each weight in 4 bits adds to the noise of the output, by itself.

    It is rounded with care, as it will be in the end: what nearest integers lose says little of what is left then.
    What came as integers cannot be.
    """
    plain = config.with_value("weights.rounding", "nearest")
    answers = subject.answers(_JUDGED, unseen(subject.calibration) or None)
    key = Ledger.key(plain, "loss of each weight in 4 bits", subject.identity, answers.data.digest)
    if (known := subject.ledger.get(key)) is not None:
        return known
    base, statistics, memo = subject.trace(plain, subject.cancel), subject.statistics(plain, subject.cancel), Memo()
    rounded: Mapping[str, RoundedWeight] = {}
    if subject.can_round(plain):
        encodings = subject.quantized(NarrowWeights("", tuple(names)).apply(plain)).encodings
        data, pieces = subject.calibration, range(unseen(subject.calibration).start)
        given = None, config.weights.narrow, None, subject.cancel, subject.executor, pieces, APART
        rounded = round_sequentially(base.graph, {name: encodings[name] for name in names}, data, *given)
    trials = [(Judge(base, statistics, answers, memo), plain)]
    for name in names:
        trace, tried = base, NarrowWeights("", (name,)).apply(plain)
        if name in rounded:
            trace = RoundedTrace(base.source, base.steps, FrozenMap({name: rounded[name]}))
            tried = tried.with_value("weights.rounding", "measured")
        trials.append((Judge(trace, statistics, answers, memo), tried))
    now, *then = (worth.noise for worth in judged(trials, subject.executor, subject.cancel))
    subject.ledger.put({key: (losses := {name: one - now for name, one in zip(names, then, strict=True)})})
    return losses
