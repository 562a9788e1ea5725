"""A Spark session has its own settings back after a call, whatever happens in between. These tests need no Spark."""

import pytest

from recdf.partitions.spark import SETTINGS, settings

BYTES, ROWS = SETTINGS


class Session:
    """A session as far as its settings go. Spark has a default for one of the two; older versions lack the other."""

    def __init__(self, **own):
        self.own = {ROWS: "10000"} | own
        self.conf = self

    def get(self, name, default):
        return self.own.get(name, default)

    def set(self, name, value):
        self.own[name] = value

    def unset(self, name):
        del self.own[name]


@pytest.mark.parametrize("own", [{}, {BYTES: "64MB", ROWS: "-1"}])
def test_the_settings_last_as_long_as_the_call(own):
    session = Session(**own)
    before = dict(session.own)
    with settings(session):
        assert session.own == SETTINGS
    assert session.own == before


def test_the_settings_go_back_after_an_error():
    session = Session()
    with pytest.raises(KeyError), settings(session):
        raise KeyError
    assert session.own == {ROWS: "10000"}


def test_of_calls_that_overlap_the_last_one_sets_them_back():
    session, other = Session(**{BYTES: "64MB"}), Session()
    first, second = settings(session), settings(session)
    first.__enter__()
    second.__enter__()
    with settings(other):
        first.__exit__(None, None, None)
        assert session.own == SETTINGS
    assert other.own == {ROWS: "10000"}
    second.__exit__(None, None, None)
    assert session.own == {BYTES: "64MB", ROWS: "10000"}
