"""What is judged, prices, filled pages and repeated items: numbers worked by hand, and what is
refused."""

import numpy as np
import pandas as pd
import pytest
from close import close
from registry.union.frames import table

import recdf as rd

TRUE = {"u": {"a": 1, "x": 0, "y": -1}}
PRED = {"u": ["a", "x", "y", "z"]}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("of", "counts"),
    [
        ("judged", [1, 2, 2]),
        ("unjudged", [0, 0, 2]),
        ("nonrelevant", [0, 1, 1]),
        ("shown", [1, 2, 4]),
    ],
)
def test_judged(of, counts):
    for k, count, shown in zip((1, 2, 6), counts, (1, 2, 4), strict=True):
        found = [
            rd.judged(TRUE, PRED, k, of=of, divisor=divisor) for divisor in ("shown", "k", "none")
        ]
        assert found == close([count / shown, count / k, count])


def test_judged_of_an_empty_list():
    assert np.isnan(rd.judged(TRUE, {"u": []}))
    assert rd.judged(TRUE, {"u": []}, divisor="k", of="unjudged") == 0.0
    assert rd.judged(TRUE, {"u": []}, of="unjudged", undefined="zero") == 1.0


def test_a_relevance_below_0_is_not_judged():
    """ir_measures says .52 for this user, since it counts −1 as judged."""
    found = rd.judged.per_user(table("true"), table("pred"), 30).set_index("user_id")["judged@30"]
    assert found[1] == close(0.44)


def test_utility():
    """Two hits, two misses, one relevant item missed, and three candidates left out rightly."""
    true, pred, items = {"u": ["a", "b", "c"]}, {"u": ["a", "x", "b", "y"]}, list("abcxyzvw")
    assert rd.utility(true, pred, a=3, b=-1, c=-10) == close(6 - 2 - 10)
    assert rd.utility(true, pred, a=3, b=-1, c=-10, d=0.5, items=items) == close(6 - 2 - 10 + 1.5)
    assert rd.utility(true, pred, 1, a=3, b=-1, c=-10, d=0.5, items=items) == close(3 - 20 + 2.5)
    with pytest.raises(rd.OptionError, match="needs items="):
        rd.utility(true, pred, d=0.5)
    assert rd.utility({"u": {"a": 0}}, {"u": ["a", "b"]}) == -2.0


def test_utility_of_a_user_without_a_list():
    """trec_eval counts a miss that nobody has shown: −1.25."""
    found = rd.utility.per_user(table("true"), table("pred"), b=-0.5, c=-0.25, relevance_col=False)
    assert found.set_index("user_id").iloc[:, 0][4] == close(-0.25 * 5)
    true = table("true")
    found = rd.utility.per_user(true[true["relevance"] >= 0], table("pred"), b=-0.5, c=-0.25)
    assert found.set_index("user_id").iloc[:, 0][4] == close(-0.75)


@pytest.mark.parametrize(
    ("rounding", "expected"), [("up", 0.7273), ("trec9", 0.7273), ("nearest", 0.8182)]
)
def test_eleven_points(rounding, expected):
    true = table("true")
    found = rd.iprecision.per_user(
        true[true["relevance"] >= 0], table("pred"), at="11pt", rounding=rounding
    )
    assert found.set_index("user_id").iloc[:, 0][2] == pytest.approx(expected, abs=5e-5)


def test_interpolated_precision():
    """Hits at ranks 1, 4 and 5 of 4 relevant items: the best precision at or beyond a level."""
    true, pred = {"u": list("abcd")}, {"u": list("axybc")}
    found = [rd.iprecision(true, pred, at=at) for at in (0, 0.25, 0.5, 0.75, 0.76, 1)]
    assert found == close([1, 1, 0.6, 0.6, 0, 0])
    with pytest.raises(rd.OptionError, match="11pt"):
        rd.iprecision(true, pred, at=1.5)


def test_inferred_average_precision():
    """Above the hit at rank 4 the pool has one hit, one judged miss and one item that nobody
    judged."""
    eps = 1e-5
    true = {"u": {"a": 1, "b": 1, "x": 0, "y": -1}}
    expected = (1 + 1 / 4 + 3 / 4 * (3 / 3) * (1 + eps) / (2 + 2 * eps)) / 2
    assert rd.infap(true, {"u": ["a", "x", "y", "b"]}) == close(expected)
    outside = (1 + 1 / 4 + 3 / 4 * (2 / 3) * (1 + eps) / (2 + 2 * eps)) / 2
    assert rd.infap(true, {"u": ["a", "x", "z", "b"]}) == close(outside)


def test_repeated_rows_count_before_they_are_dropped():
    pred = pd.DataFrame({"user_id": list("uuuuv"), "item_id": list("abbca")})
    with pytest.warns(rd.DuplicateWarning):
        found = [
            rd.unrepeated.per_user(pred, k=k, deep=True).iloc[:, 1].tolist() for k in (2, 3, 9)
        ]
    assert [value for row in found for value in row] == close([1, 1, 2 / 3, 1, 3 / 4, 1])
    with pytest.warns(rd.DuplicateWarning):
        assert rd.evaluate(None, pred, ["unrepeated", "sufficient"], 4).summary[
            "value"
        ].tolist() == [0.5, 0.0]


@pytest.mark.parametrize(("k", "expected"), [(1, 1.0), (2, 0.0)])
def test_a_repeated_row_stands_among_its_ties_by_its_relevance(k, expected):
    """With ties="worst" the rows are a, a, b: both rows of a come before b, which gains more."""
    true = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "relevance": [1.0, 2.0]})
    pred = pd.DataFrame({"user_id": 1, "item_id": ["a", "b", "a"], "score": [2.0, 1.0, 1.0]})
    with pytest.warns(rd.DuplicateWarning):
        found = rd.evaluate(true, pred, ["unrepeated"], k, relevance_col="relevance", ties="worst")
    assert found.summary["value"].tolist() == [expected]
