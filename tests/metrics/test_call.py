"""A call is checked once, can be pickled, and what it matches is closed on every path."""

import dataclasses
import pickle
from functools import partial

import pandas as pd
import pytest

import recdf as rd
from recdf.matching.lists import Matched
from recdf.metrics import call as calling
from recdf.metrics.call import Call
from recdf.metrics.metric import ListMetric
from recdf.metrics.strings import parse

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

TRUE = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "c"]})
PRED = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "x", "y"]})


def asked(metrics, **options):
    return Call.from_arguments(rd.evaluate, options, TRUE, partial(parse, metrics, 10))


def test_a_call_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked("ndcg@2").options = None


def test_a_pickled_call_gives_the_same_answers():
    log = pd.DataFrame({"user_id": [1], "item_id": ["x"]})
    arguments = {"ties": "worst", "like": "rectools", "log": log}
    requests = partial(parse, ["mapr(normalizer=achievable)@2", "unseen@2", "hhi@2"], 10)
    call = Call.from_arguments(rd.evaluate, arguments, TRUE, requests)
    again = pickle.loads(pickle.dumps(call))
    assert [one.definition for one in again.requests] == [one.definition for one in call.requests]
    assert again.options == call.options
    with call.match(TRUE, PRED) as one, again.match(TRUE, PRED) as two:
        assert one.at(2).seen.tolist() == two.at(2).seen.tolist() == [False, True, False]


def test_requests_are_told_apart_by_what_they_measure():
    call = asked(["ndcg@2", "hhi@2", "f1@2"])
    assert [one.name for one in call.per_list] == ["ndcg", "f1"]
    assert [one.name for one in call.per_item] == ["hhi"]
    assert call.columns == ["ndcg@2", "f1@2"]


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ("coverage@2", "coverage@2 needs items= (the catalogue"),
        ("money_recall@2", "money_recall@2 needs value_col="),
        ("fallout@2", "fallout@2 needs items= (the catalogue) or judged_only=True"),
        ("epc@2", "epc@2 needs log="),
    ],
)
def test_what_a_metric_lacks_is_told_before_a_row_is_read(metrics, words):
    with pytest.raises(rd.OptionError) as caught:
        asked(metrics)
    assert words in str(caught.value)


def test_an_option_that_does_not_exist_names_the_function():
    with pytest.raises(rd.OptionError, match="check has no option 'tie'"):
        rd.check(TRUE, PRED, tie="worst")


def at_work(lists):
    raise ZeroDivisionError("at work")


breaks = ListMetric(at_work)  # not registered: tests of every metric would meet it


@pytest.mark.parametrize(
    "work",
    [
        lambda: rd.evaluate(TRUE, PRED, ["ndcg@1", breaks]),
        lambda: breaks(TRUE, PRED),
        lambda: breaks.per_user(TRUE, PRED),
    ],
)
def test_a_match_is_closed_when_a_metric_raises(work, monkeypatch):
    closed = []
    monkeypatch.setattr(Matched, "__exit__", lambda self, *error: closed.append(self))
    with pytest.raises(ZeroDivisionError):
        work()
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("work", "matches"),
    [
        (lambda: rd.evaluate(TRUE, PRED, "ndcg@1"), 1),
        (lambda: rd.ndcg(TRUE, PRED, k=1), 1),
        (lambda: rd.hhi(PRED, k=1), 1),
        (lambda: rd.diagnostics.hit_table(TRUE, PRED), 1),
        (lambda: rd.diagnostics.position_table(TRUE, PRED), 1),
        (lambda: rd.diagnostics.exposure_table(PRED), 1),
        (lambda: rd.check(TRUE, PRED, log=TRUE), 2),
        (
            lambda: rd.diagnostics.compare_conventions(
                TRUE, PRED, metrics=["ndcg"], conventions=["trec_eval", "ranx"]
            ),
            1,
        ),
    ],
)
def test_every_match_is_closed(work, matches, monkeypatch):
    made, closed = [], []
    real = calling.match
    monkeypatch.setattr(
        calling, "match", lambda *given, **more: made.append(real(*given, **more)) or made[-1]
    )
    monkeypatch.setattr(Matched, "__exit__", lambda self, *error: closed.append(self))
    work()
    assert len(made) >= matches
    assert {id(one) for one in made} == {id(one) for one in closed}
