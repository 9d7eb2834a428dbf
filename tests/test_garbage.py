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
def test_the_first_to_set_aside_ends_it_even_where_work_fails():
    with pytest.raises(KeyError, match="lost"), set_aside():
        with set_aside():
            pass
        assert gc.get_freeze_count()
        raise KeyError("lost")
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("thawed")
def test_what_lasts_is_not_thawed_by_work():
    with lasting():
        assert not gc.isenabled()
    assert gc.isenabled()
    with set_aside():
        pass
    assert gc.get_freeze_count()
