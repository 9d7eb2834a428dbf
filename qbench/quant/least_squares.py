"""Rounding weights so that what a layer makes changes least, given the second moments of its inputs.

With x_f a layer's input in the float network and x_q its input in the network whose earlier layers are rounded already,
the weights V that give the float output from x_q with least squares are ``(W C + r W) (H + r)^-1``, where
``H = E[x_q x_q']`` and ``C = E[x_f x_q']``: they undo what earlier layers have lost (the asymmetric targets of Y. Li
et al., GPTAQ: Efficient Finetuning-Free Quantization for Asymmetric Calibration, ICML 2025). V is rounded column by
column, and what each column loses is taken over by those that are still to be rounded (E. Frantar, D. Alistarh, Optimal
Brain Compression, NeurIPS 2022; with one Cholesky factor for all columns: E. Frantar et al., GPTQ, ICLR 2023). Here
that is a factor of H itself, R R' with R upper: the loss is the sum of squares of (V - M) R, whose column j reads the
columns up to j alone, so M_j goes by what those before it have lost. Then each weight is rounded again beside all
others (coordinate descent: K. Behdin et al., QuantEase, 2023).

Arrays have a leading axis of groups, which are independent: W is [groups, outputs, depth], moments have
[groups, depth, depth].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 64  # columns that pass on what they lose to the rest together
_SCALES = np.linspace(0.35, 1.0, 27)
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Levels:
    """The integers that a weight may have, and which of them stands for 0: a fixed one (None: what suits the range)."""

    low: int
    high: int
    zero: int | None = 0

    def nearest(self, values: Floats, scales: Floats, zeros: Floats) -> Floats:
        """The nearest real number that can be had."""
        integers = np.clip(np.rint(values / scales) + zeros, self.low, self.high)
        return (integers - zeros) * scales

    def covering(self, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
        """Scales and zero points for ranges that hold 0."""
        if self.zero is not None:
            scales = np.maximum(highs, -lows) / max(self.high - self.zero, 1)
            return scales, np.full(scales.shape, float(self.zero))
        scales = (highs - lows) / (self.high - self.low)
        return scales, np.clip(np.rint(self.low - lows / scales), self.low, self.high)


def targets(weights: Floats, second: Floats, product: Floats, ridge: float) -> Floats:
    """The weights that make the float output from the rounded network's inputs; `ridge` draws them to `weights`.

    Parameters
    ----------
    weights
        W.
    second, product
        H and W C: what the inputs have in common with each other, and what the float output has with them.
    ridge
        In units of the mean of H's diagonal.
    """
    amount = ridge * _level(second)
    right = product + amount * weights
    solved: Floats = np.linalg.solve(_raised(second, amount), right.transpose(0, 2, 1)).astype(np.float64)
    return solved.transpose(0, 2, 1)


def loss(made: Floats, second: Floats, product: Floats) -> float:
    """Mean square of what `made` gives beyond the float output, but for a constant: to compare weights by."""
    return float(((made @ second) * made).sum() - 2 * (product * made).sum())


def best_scales(weights: Floats, second: Floats, levels: Levels, together: bool = False) -> tuple[Floats, Floats]:
    """Scale and zero point of each output channel (or of all) that lose least if weights go to their nearest levels.

    Returns
    -------
    scales, zeros
        float64[groups, outputs, 1]
    """
    lows, highs = (np.asarray(of(weights, axis=2, keepdims=True, initial=0), np.float64) for of in (np.min, np.max))
    if together:
        lows, highs = np.full(lows.shape, lows.min()), np.full(highs.shape, highs.max())
    highs = np.maximum(highs, lows + _TINY)
    narrow = second.astype(np.float32)
    best, found = np.full(lows.shape, np.inf), levels.covering(lows, highs)
    for part in _SCALES:
        tried = levels.covering(lows * part, highs * part)
        error = (levels.nearest(weights, *tried) - weights).astype(np.float32)
        lost = ((error @ narrow) * error).sum(axis=2, keepdims=True, dtype=np.float64)
        lost = np.broadcast_to(lost.sum(), lost.shape) if together else lost
        found = np.where(lost < best, tried[0], found[0]), np.where(lost < best, tried[1], found[1])
        best = np.minimum(lost, best)
    return found


def rounded(
    weights: Floats, second: Floats, scales: Floats, zeros: Floats, levels: Levels, damping: float, sweeps: int = 3
) -> Floats:
    """Weights on their levels, rounded column by column, the columns of the largest inputs first.

    Parameters
    ----------
    weights, second
        V and H.
    scales, zeros
        float64[groups, outputs, 1], or [groups, outputs, depth] where they change along the columns.
    levels
        The integers that there are.
    damping
        In units of the mean of H's diagonal: how much less is taken over by other columns.
    sweeps
        How often each weight is looked at once more, beside all others.
    """
    depth = weights.shape[2]
    raised = _raised(second, damping * _level(second))
    order = np.argsort(-np.diagonal(raised, axis1=1, axis2=2), axis=1, kind="stable")
    raised = np.take_along_axis(np.take_along_axis(raised, order[:, :, None], 1), order[:, None], 2)

    def turned(columns: Floats) -> Floats:
        """[groups, depth, outputs], in that order."""
        return np.take_along_axis(np.broadcast_to(columns.transpose(0, 2, 1), shape), order[:, :, None], 1)

    shape = len(weights), depth, weights.shape[1]
    wanted, grids = turned(weights), [turned(one) for one in (scales, zeros)]
    backwards = np.linalg.cholesky(raised[:, ::-1, ::-1])[:, ::-1, ::-1]  # an upper factor, times its own transpose
    shares = backwards / np.diagonal(backwards, axis1=1, axis2=2)[:, None]
    left, made = wanted.copy(), np.empty_like(wanted)
    for first in range(0, depth, _BLOCK):
        last = min(first + _BLOCK, depth)
        for at in range(first, last):
            made[:, at] = levels.nearest(left[:, at], *(grid[:, at] for grid in grids))
            error = wanted[:, at] - made[:, at]
            left[:, at + 1 : last] += shares[:, at, at + 1 : last, None] * error[:, None]
        block = slice(first, last)
        left[:, last:] += shares[:, block, last:].transpose(0, 2, 1) @ (wanted[:, block] - made[:, block])
    for _ in range(sweeps):
        _settle(made, wanted, raised, grids, levels)
    return np.take_along_axis(made, np.argsort(order, axis=1)[:, :, None], 1).transpose(0, 2, 1)


def _settle(made: Floats, wanted: Floats, second: Floats, grids: Sequence[Floats], levels: Levels) -> None:
    """Move each weight to the level that is best beside all others as they are, column by column; in place.

    Weights have the axes [groups, depth, outputs].
    """
    pull = second @ (wanted - made)
    for first in range(0, made.shape[1], _BLOCK):
        block = slice(first, first + _BLOCK)
        before = made[:, block].copy()
        for at in range(first, min(first + _BLOCK, made.shape[1])):
            best = made[:, at] + pull[:, at] / second[:, at, at, None]
            chosen = levels.nearest(best, *(grid[:, at] for grid in grids))
            pull[:, block] -= second[:, block, at, None] * (chosen - made[:, at])[:, None]
            made[:, at] = chosen
        pull[:, first + _BLOCK :] -= second[:, first + _BLOCK :, block] @ (made[:, block] - before)


def _level(second: Floats) -> Floats:
    """The mean of the diagonal, [groups, 1, 1]: 1 for a group whose inputs never vary."""
    level = np.diagonal(second, axis1=1, axis2=2).mean(axis=1)[:, None, None]
    return np.asarray(np.where(level > _TINY, level, 1.0), np.float64)


def _raised(second: Floats, amount: Floats) -> Floats:
    """With that added to the diagonal, and enough for a factor to exist where inputs are dead or depend on others."""
    return second + (amount + 1e-6 * _level(second)) * np.eye(second.shape[1])
