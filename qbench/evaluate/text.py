"""How likely a text is by a recognizer that says a letter or nothing at each step, wherever the letters stand.

Such a model is trained so that the alignments of a text with the steps together are likely (connectionist temporal
classification; Graves et al., ICML 2006): which step a letter is said at means nothing, and errors of quantization
move it.
"""

import math
from collections.abc import Sequence

import numpy as np

from qbench.ir.op import Array

_ALPHABET = 27  # classes; fewer are tags of the steps, of which one may be common too
_BLANK_SHARE = 0.25
_UNSURE = 0.1  # what a text counts for that a model is not sure of


def blank_of(chances: Sequence[Array]) -> int | None:
    """The class that stands for no letter: the first or the last one, where it wins many steps; None where none does.

    Parameters
    ----------
    chances
        Of each of some samples, float[texts, steps, classes].
    """
    classes = chances[0].shape[-1]
    if classes < _ALPHABET or any(array.ndim != 3 or array.shape[-1] != classes for array in chances):
        return None
    if any(np.abs(array.sum(axis=-1) - 1).max(initial=0) > 0.1 for array in chances):
        return None  # classes of another axis
    winners = np.concatenate([array.argmax(axis=-1).ravel() for array in chances])
    shares = {blank: float((winners == blank).mean()) for blank in (0, classes - 1) if winners.size}
    blank = max(shares, key=shares.__getitem__, default=0)
    return blank if _BLANK_SHARE <= shares.get(blank, 0) < 1 else None


def misread(wanted: Array, given: Array, blank: int) -> tuple[float, float]:
    """How likely the text is that a model reads, and how much of that another one loses.

    What the first model is not sure of may be wrong already, and counts for less; but for no less than a tenth, as
    nobody is sure of all of a long text.

    Parameters
    ----------
    wanted, given
        Logarithms of their chances, float[steps, classes].
    blank
        From :func:`blank_of`.

    Returns
    -------
    tuple
        What is lost, and what there was to lose: .1 to 1.
    """
    text = text_of(wanted.argmax(axis=-1), blank)
    likely, now = (log_likelihood(chances, text, blank) for chances in (wanted, given))
    worth = max(math.exp(likely), _UNSURE)
    return -math.expm1(min(now - likely, 0.0)) * worth, worth


def text_of(winners: Array, blank: int) -> Array:
    """The letters of one text: int[steps], what wins each; a letter that goes on is said once."""
    starts = np.concatenate([[True], winners[1:] != winners[:-1]])
    return winners[starts & (winners != blank)]


def log_likelihood(logarithms: Array, text: Array, blank: int) -> float:
    """Of all alignments of a text together, in nats.

    Parameters
    ----------
    logarithms
        Of the chances, float[steps, classes].
    text
        int[letters], none of them the blank.
    blank
        What may stand between letters, and does between two of a kind.
    """
    states = np.full(2 * len(text) + 1, blank)  # what the alignment is at: blank, letter, blank, ... , blank
    states[1::2] = text
    may_skip = np.zeros(len(states), bool)  # the blank before a letter, unless the letter before is the same
    may_skip[3::2] = text[1:] != text[:-1]
    reached = np.full((3, len(states) + 2), -np.inf)  # by staying, by a step, and by two
    first = min(2, len(states))
    at = np.full(len(states), -np.inf)
    at[:first] = logarithms[0, states[:first]]
    for step in logarithms[1:, states]:
        reached[0, : len(at)], reached[1, 1 : len(at) + 1], reached[2, 2:] = at, at, at
        reached[2, : len(at)][~may_skip] = -np.inf
        at = np.logaddexp.reduce(reached[:, : len(at)], axis=0) + step
    return float(np.logaddexp.reduce(at[-2:]))
