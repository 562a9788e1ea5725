"""A Spark session has its own settings back after a call, whatever happens in between. These tests
need no Spark."""

import numpy as np
import pytest

from recdf.inputs.machine import Sizes, sized
from recdf.partitions.engine_contract import inline_handle
from recdf.partitions.spark import SETTINGS, SparkEngine, settings, slots_of

BYTES, ROWS = SETTINGS


class Session:
    """A session as far as its settings go. Spark has a default for one of the two; older versions
    lack the other."""

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


class Refused(Exception):
    """Named as no exception of recdf: a platform raises one of its own."""


class Refusing(Session):
    """A session of a platform that lets nobody change some settings, or even read them."""

    def __init__(self, *refused, hidden=(), **own):
        super().__init__(**own)
        self.refused, self.hidden = refused, hidden

    def get(self, name, default):
        if name in self.hidden:
            raise Refused("[CONFIG_NOT_AVAILABLE]")
        return super().get(name, default)

    def set(self, name, value):
        if name in self.refused:
            raise Refused("[CANNOT_MODIFY_CONFIG]")
        super().set(name, value)

    unset = None  # nothing that was refused is set back


@pytest.mark.parametrize("hidden", [(), SETTINGS])
def test_a_platform_that_refuses_settings_keeps_its_own(hidden):
    session = Refusing(*SETTINGS, hidden=hidden, **{BYTES: "64MB"})
    with settings(session), settings(session):
        assert session.own == {BYTES: "64MB", ROWS: "10000"}
    assert session.own == {BYTES: "64MB", ROWS: "10000"}


def test_what_a_platform_allows_is_set_and_goes_back():
    session = Refusing(BYTES)
    with settings(session):
        assert session.own == {ROWS: SETTINGS[ROWS]}
    session.own[ROWS] = "500"
    with settings(session):
        assert session.own == {ROWS: SETTINGS[ROWS]}
    assert session.own == {ROWS: "500"}


def test_a_session_that_stops_meanwhile_does_not_hide_why():
    session = Session()
    session.unset = None  # so that giving a setting back fails
    with pytest.raises(KeyError, match="why"), settings(session):
        raise KeyError("why")


@pytest.mark.parametrize(("own", "expected"), [("auto", 200), ("8", 8), (8, 8), (None, 200)])
def test_the_default_number_of_buckets(own, expected):
    hidden = ["spark.sql.shuffle.partitions"] if own is None else []
    session = Refusing(hidden=hidden, **{"spark.sql.shuffle.partitions": own})
    unknown = object()  # a frame of Spark Connect does not tell its size
    assert SparkEngine(None, session).n_buckets(None, unknown) == expected


class Remote(Session):
    """A session of Spark Connect whose platform takes no files."""

    __module__ = "connect.session"

    def addArtifacts(self, *paths, file):
        raise Refused("[UNSUPPORTED_OPERATION]")


@sized(Sizes(inline_bytes=1))
def test_a_platform_that_takes_no_files_gets_the_call_with_each_task():
    assert SparkEngine(None, Remote()).share(b"call") == inline_handle(b"call")


def test_the_hash_of_the_slot_of_a_bucket_is_its_number():
    n = 2**16 - 1
    found = murmur3(slots_of(np.arange(n)).astype(np.uint64) & MASK)
    np.testing.assert_array_equal(found, np.arange(n))


MASK = 2**32 - 1


def murmur3(key):
    """Murmur3 of 32-bit integers with seed 42, as its definition has it: `hash` of Spark."""

    def turned(number, by):
        return (number << by | number >> 32 - by) & MASK

    key = turned(key * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    found = (turned(42 ^ key, 13) * 5 + 0xE6546B64 & MASK) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        found = (found ^ found >> shift) * factor & MASK
    return found ^ found >> 16
