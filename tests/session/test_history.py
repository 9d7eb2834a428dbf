from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import SessionError
from qbench.quant.config import QuantConfig
from qbench.session.history import Edit, History

START = QuantConfig()


def config(threshold: float) -> QuantConfig:
    return START.override_tensor("t", threshold=threshold)


@given(st.lists(st.one_of(st.sampled_from(["undo", "redo"]), st.integers(1, 4))))
def test_behaves_like_two_stacks(actions: list[str | int]):
    history, done, undone = History.start(START), [START], []
    for action in actions:
        if isinstance(action, int):
            history = history.push(Edit(str(action), config(action)))
            if config(action) != done[-1]:
                done.append(config(action))
                undone.clear()
        elif action == "undo" and len(done) > 1:
            history = history.undo()
            undone.append(done.pop())
        elif action == "redo" and undone:
            history = history.redo()
            done.append(undone.pop())
        else:
            with pytest.raises(SessionError, match=f"nothing to {action}"):
                getattr(history, str(action))()
        assert history.config == done[-1]
        assert [edit.config for edit in history.edits] == done + undone[::-1]
        assert History.from_json(history.to_json()) == history


def test_a_diff_compares_with_the_last_start_before_now():
    history = History.start(START).push(Edit("a", config(1))).push(Edit("start", START, starts=True))
    history = history.push(Edit("b", config(2)))
    assert history.base == START
    again = history.push(Edit("start", config(3), starts=True)).push(Edit("c", config(4)))
    assert again.base == config(3)
    assert again.undo().undo().undo().base == START


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"version": 2}', "format 2"),
        ('{"version": 1, "position": 0, "edits": []}', "outside a history of 0"),
        ('{"version": 1, "position": 0, "edits": [{"label": "a", "starts": true, "config": {"x": 1}}]}', "unknown key"),
    ],
)
def test_what_is_no_history(text: str, message: str):
    with pytest.raises(SessionError, match=message):
        History.from_json(text)


def test_the_steps_of_a_drag_are_one_edit():
    a, b, c = (QuantConfig().override_tensor("t", threshold=threshold) for threshold in (1.0, 2.0, 3.0))
    start = History.start(QuantConfig())
    history = start.push(Edit("before", a)).push(Edit("one", b)).push(Edit("two", c)).joined()
    assert [edit.label for edit in history.edits] == ["start", "before", "two"]
    assert (history.config, history.undo().config) == (c, a)
    assert start.joined() is start
    assert start.push(Edit("one", a)).joined().edits[-1].label == "one"


def test_a_history_can_be_anywhere_along_its_edits():
    history = History.start(QuantConfig()).push(Edit("a", QuantConfig().override_tensor("t", threshold=1.0)))
    assert history.at(0).config == QuantConfig()
    assert history.at(0).at(1) == history
    for position in (-1, 2):
        with pytest.raises(SessionError, match="outside a history of 2"):
            history.at(position)
