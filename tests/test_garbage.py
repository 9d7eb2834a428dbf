"""What is set aside is left alone for as long, and no longer."""

import gc
import weakref

import pytest

from qbench.garbage import lasting, set_aside


class Circle:
    def __init__(self):
        self.itself = self


@pytest.fixture
def thawed():
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_garbage_from_before_waits_and_later_garbage_does_not():
    before = Circle()
    seen = weakref.ref(before)
    with set_aside():
        del before
        later = weakref.ref(Circle())
        gc.collect()
        assert seen() is not None
        assert later() is None
    gc.collect()
    assert seen() is None
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("thawed")
def test_the_last_to_leave_ends_it_even_where_work_fails():
    """As threads do, they leave in any order."""
    first, second = set_aside(), set_aside()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_freeze_count()
    second.__exit__(None, None, None)
    assert not gc.get_freeze_count()
    with pytest.raises(KeyError, match="lost"), set_aside():
        raise KeyError("lost")
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("thawed")
def test_work_leaves_nothing_behind_where_something_lasts():
    with lasting():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count()
    circle = Circle()
    seen = weakref.ref(circle)
    with set_aside():
        del circle
    gc.collect()
    assert seen() is None
