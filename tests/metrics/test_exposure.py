"""Exposure by hand: identities, the catalogue, populations, and how exposure metrics stand in the
tables."""

import math

import numpy as np
import pandas as pd
import pytest
from close import close

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")


@pytest.mark.parametrize(
    "items",
    [
        [1, 2, 3, 4],
        (1, 2, 3, 4),
        np.array([1, 2, 3, 4]),
        pd.Series([1, 2, 3, 4], index=list("abcd")),
        pd.Index([1, 2, 3, 4]),
        pd.DataFrame({"item_id": [4, 3, 2, 1], "price": 1.0}),
        [1, 2, 3, 4, 4, 4],
        range(1, 5),
    ],
    ids=lambda items: type(items).__name__,
)
def test_the_catalogue_in_any_form(items):
    pred = {1: [1, 2], 2: [2, 5]}
    assert rd.coverage(items, pred) == 0.5
    assert rd.coverage(items, pred, 1) == 0.5
    assert rd.gini(items, pred) == close((1 * -3 * 0 + -1 * 0 + 1 * 1 + 3 * 2) / (4 * 3))


def test_items_outside_the_catalogue_are_counted_apart():
    result = rd.evaluate(None, {1: [1, 8], 2: [9, 8]}, "coverage", k=2, items=[1, 2], users="pred")
    assert result.summary["value"].tolist() == [0.5]
    assert result.spec["counts"]["pred_outside_items"] == 3
    assert rd.coverage([1], {1: [1, 2, 3]}) == 1.0


def test_gini():
    even = {1: [1, 2], 2: [3, 4]}
    assert rd.gini([1, 2, 3, 4], even) == 0.0
    assert rd.gini([1, 2, 3, 4], {1: [1], 2: [1]}) == close(3 / 4)  # all on one of n: 1 − 1/n
    with pytest.warns(
        rd.NoOverlapWarning, match=r"items= has no item of true or pred.*pred.*1, 2; items.*7, 8"
    ):
        assert math.isnan(rd.gini([7, 8], even))


def test_entropy_and_hhi():
    even = {user: [user] for user in range(8)}
    assert rd.entropy(even) == close(3.0)
    assert rd.entropy(even, normalize=True) == close(1.0)
    assert rd.entropy(even, normalize=True, items=range(16)) == close(3 / 4)
    assert rd.entropy({1: [1], 2: [1]}) == 0.0
    assert math.isnan(rd.entropy({1: [1], 2: [1]}, normalize=True))
    assert rd.hhi(even) == close(1 / 8)
    assert rd.hhi({1: [1], 2: [1]}) == 1.0


def test_entropy_equals_scipy():
    entropy = pytest.importorskip("scipy.stats").entropy
    rng = np.random.default_rng(3)
    pred = {user: rng.permutation(30)[:10] for user in range(20)}
    counts = np.bincount(np.concatenate([items[:5] for items in pred.values()]))
    assert rd.entropy(pred, 5) == close(entropy(counts, base=2))


def test_personalization():
    same = {user: [1, 2, 3] for user in range(5)}
    apart = {user: [3 * user, 3 * user + 1, 3 * user + 2] for user in range(5)}
    for k in (1, 3, 10):  # no list has ten items: then the longest one is the measure
        assert rd.personalization(same, k) == 0.0
        assert rd.personalization(apart, k) == 1.0
    ragged = {1: ["a", "b", "c"], 2: ["a"], 3: ["b", "a"]}
    assert rd.personalization(ragged, 3) == close(1 - (1 / 3 + 2 / 3 + 1 / 3) / 3)
    assert math.isnan(rd.personalization({1: ["a"]}))


def test_personalization_of_repeated_items():
    kept = {1: ["a", "a"], 2: ["b", "b"]}
    assert rd.personalization(kept, 2, duplicates="keep") == 1.0


def test_populations():
    true, pred = {1: ["a"], 2: ["b"], 3: ["c"]}, {1: ["a"], 4: ["d"]}
    assert rd.user_coverage(true, pred, 1) == close(1 / 3)
    assert rd.user_coverage(true, pred, 1, users="all") == close(2 / 4)
    # Called alone, a metric of pred takes the lists of pred; evaluate has one rule for all of its
    # metrics.
    assert rd.coverage(list("abcd"), pred) == 0.5
    assert rd.evaluate(true, pred, "coverage", items=list("abcd")).summary["value"].tolist() == [
        0.25
    ]


def test_rows_of_the_summary():
    pred = pd.DataFrame({"model": list("xxy"), "user_id": [1, 2, 1], "item_id": [1, 1, 2]})
    true = {1: [1], 2: [2]}
    metrics = {"seen": "coverage@1", "recall": "recall", "ginis": "gini"}
    result = rd.evaluate(true, pred, metrics, k=[1, 2], by="model", items=[1, 2])
    summary = result.summary
    assert list(summary.columns) == [
        *("model", "metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined"),
    ]
    assert summary["metric"].tolist() == ["seen", "recall", "recall", "ginis", "ginis"] * 2
    assert summary["k"].tolist() == [1, 1, 2, 1, 2] * 2
    assert list(result.per_user.columns) == [
        "model",
        "user_id",
        "n_true",
        "n_pred",
        "recall@1",
        "recall@2",
    ]
    exposed = summary[summary["metric"].isin(["seen", "ginis"])]
    assert exposed[["std", "se", "ci_low", "ci_high"]].isna().all(axis=None)
    assert exposed["n"].tolist() == [2] * 6
    assert result.spec["metrics"]["seen"]["definition"] == "coverage(normalize=True)@1"
    only = rd.evaluate(true, pred, "coverage", by="model", items=[1, 2]).summary
    pd.testing.assert_series_equal(only.dtypes, summary.dtypes)


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_undefined():
    pred = {1: [1]}
    assert rd.evaluate(None, pred, "gini", items=[2], users="pred").summary[
        ["n", "n_undefined"]
    ].values.tolist() == [[0, 1]]
    assert rd.gini([2], pred, undefined="zero") == 1.0  # the worst value, since smaller is better
    with pytest.raises(rd.UndefinedMetricError, match="gini has no value"):
        rd.gini([2], pred, undefined="raise")


def test_no_per_user():
    assert not hasattr(rd.coverage, "per_user")
    with pytest.raises(AttributeError, match="coverage is one number for all lists"):
        rd.coverage.per_user([1], {1: [1]})
    with pytest.raises(rd.OptionError, match="is one number; with by= use evaluate"):
        rd.hhi(pd.DataFrame({"m": [1], "user_id": [1], "item_id": [1]}), by="m")


def test_whole_lists_by_default():
    pred = {1: list(range(30))}
    assert rd.coverage(range(30), pred) == 1.0
    assert rd.coverage(range(30), pred, None) == 1.0
    assert rd.coverage(range(30), pred, k=3) == 0.1
    with pytest.raises(rd.OptionError, match="k=None"):
        rd.entropy(pred, None)


def test_a_user_written_metric_of_exposure():
    @rd.metric(per="item", arguments=("items", "pred"), k=None, bounds=(0, None))
    def never_shown(counts):
        """Items never shown; smaller is better."""
        return np.count_nonzero(counts.shown[counts.sides.items.codes] == 0)

    summary = rd.evaluate(None, {1: [1]}, "never_shown@5", items=[1, 2, 3], users="pred").summary
    assert summary["value"].tolist() == [2.0]
    assert never_shown([1, 2, 3], {1: [1]}) == 2.0


def test_gini_of_discounted_exposure_by_hand():
    pred = {1: ["a", "b"], 2: ["a", "c"]}
    # Exposures of d, b, c, a, smallest first: 0, p, p, 2; then those with 1/log2(3).
    for p in (0.85, 0.5):
        expected = (-1 * p + 1 * p + 3 * 2) / (4 * (2 + 2 * p))
        assert rd.gini(list("abcd"), pred, discount="geometric", p=p) == close(expected)
    second = 1 / math.log2(3)
    assert rd.gini(list("abcd"), pred, discount="log") == close(6 / (4 * (2 + 2 * second)))


def test_number_of_items_and_entropy_in_other_units():
    pred = {1: [1, 2], 2: [2, 5]}
    result = rd.evaluate(
        None, pred, ["coverage(normalize=False)", "coverage"], k=2, items=[1, 2, 3, 4], users="pred"
    )
    assert result.summary["value"].tolist() == [2.0, 0.5]
    even = {user: [user] for user in range(8)}
    assert rd.entropy(even, log_base="e") == close(math.log(8))
    assert rd.entropy(even, log_base=8) == close(1.0)
    assert rd.entropy(even, divisor="items") == close(3 / 8)
    assert rd.entropy(even, log_base="e", normalize=True) == close(1.0)
    with pytest.raises(rd.OptionError, match=r"normalize=True and divisor='items' both divide"):
        rd.entropy(even, divisor="items", normalize=True)
    for wrong in (1, 0.5, "f"):
        with pytest.raises(rd.OptionError, match="log_base="):
            rd.entropy(even, log_base=wrong)


def test_discounted_exposure_of_files(tmp_path):
    pred = pd.DataFrame(
        {
            "user_id": [1, 1, 2, 3],
            "item_id": list("abac"),
            "rank": [1, 2, 1, 1],
            "model": list("xyxy"),
        }
    )
    pred.to_parquet(tmp_path / "pred.parquet")
    pred[["user_id", "item_id"]].head(3).to_parquet(tmp_path / "true.parquet")
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    names = ["gini(discount=geometric)", "gini", "entropy"]
    options = {"items": list("abcd"), "by": "model", "users": "pred"}
    found = rd.evaluate_parquet(*paths, names, buckets=3, **options).summary
    expected = rd.evaluate(*map(pd.read_parquet, paths), names, **options).summary
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
