"""How likely a text is, against the sum over all alignments one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from qbench.evaluate.chances import Chances
from qbench.evaluate.text import blank_of, log_likelihood, misread, text_of

BLANK = 0


def steps(*winners: int, classes: int = 30, sure: float = 0.9) -> np.ndarray:
    """Chances of one text: of each step, which class wins."""
    chances = np.full((1, len(winners), classes), (1 - sure) / (classes - 1))
    chances[0, np.arange(len(winners)), winners] = sure
    return chances


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("text", [(), (1,), (1, 1), (1, 3, 1)])
def test_the_likelihood_is_the_sum_over_alignments(text: tuple[int, ...], count: int, blank: int) -> None:
    chances = np.random.default_rng(count).dirichlet(np.ones(4), count)
    alignments = [
        winners for winners in product(range(4), repeat=count) if tuple(text_of(np.array(winners), blank)) == text
    ]
    by_hand = sum(np.prod(chances[np.arange(count), winners]) for winners in alignments)
    found = log_likelihood(np.log(chances), np.array(text, np.int64), blank)
    assert np.exp(found) == pytest.approx(by_hand, rel=1e-9)


def test_a_letter_that_goes_on_is_said_once() -> None:
    assert text_of(np.array([0, 5, 5, 0, 5, 6, 0]), BLANK).tolist() == [5, 5, 6]


def test_a_letter_may_stand_at_another_step_but_not_be_another() -> None:
    wanted = np.log(steps(0, 0, 7, 0, 0, 8, 0, 0))[0]
    moved, other = (np.log(steps(0, 0, 0, 7, 0, 8, 0, 0))[0], np.log(steps(0, 0, 9, 0, 0, 8, 0, 0))[0])
    (same, was), (late, _), (wrong, _) = (misread(wanted, given, BLANK) for given in (wanted, moved, other))
    assert same == 0
    assert late < 1e-3 * was  # the ends count a little
    assert wrong > 0.9 * was


def test_only_recognizers_have_a_blank() -> None:
    text = steps(0, 0, 7, 0, 0, 8, 0, 0)
    assert blank_of([text]) == 0
    assert blank_of([text[..., ::-1]]) == 29
    assert blank_of([steps(1, 2, 7, 0, 3, 8, 5, 6)]) is None
    assert blank_of([steps(0, 0, 0, 0)]) is None  # nothing is said
    assert blank_of([steps(0, 0, 7, 0, classes=9)]) is None
    assert blank_of([text.transpose(0, 2, 1), text.transpose(0, 2, 1)]) is None
    assert blank_of([text[0]]) is None


def test_texts_are_counted_one_by_one() -> None:
    wanted, other = steps(0, 7, 0, 8, 0, 0), steps(0, 9, 0, 8, 0, 0)
    chances = Chances("elements").seen_in([wanted])
    assert chances == Chances("elements", blank=0)
    lost, texts = chances.lost(np.concatenate([wanted, wanted]), np.concatenate([wanted, other]))
    assert lost / texts == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("sure", "worth"), [(1.0, 1.0), (0.5, 0.5), (0.02, 0.1)])
def test_a_text_counts_by_how_sure_the_first_model_is_of_it(sure: float, worth: float) -> None:
    """The letter is as likely as said; what else it might be is nobody's first choice."""
    wanted, given = np.full((2, 3, 30), 1e-12)
    wanted[range(3), [0, 7, 0]] = 1, sure, 1
    given[range(3), [0, 7, 0]] = 1, sure / 4, 1
    lost, was = misread(np.log(wanted), np.log(given), BLANK)
    assert (lost, was) == pytest.approx((0.75 * worth, worth), rel=1e-6)


def test_long_texts_of_which_no_model_is_sure_are_judged() -> None:
    steps = np.tile([0, 7], 500)
    wanted = np.full((len(steps), 9), 0.05)
    wanted[range(len(steps)), steps] = 0.6
    other = wanted.copy()
    other[1] = 0.1
    lost, was = misread(np.log(wanted), np.log(other), BLANK)
    assert was == 0.1
    assert 0.5 < lost / was < 1
