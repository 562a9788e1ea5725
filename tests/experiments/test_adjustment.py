"""What is said of corrected p-values is what the numbers of a table bear out."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.experiments.decide.adjust_pvalues import adjustment


@pytest.fixture(scope="module")
def per_user():
    rng = np.random.default_rng(0)
    base = rng.random((200, 2))
    parts = [
        pd.DataFrame(base + rng.normal(shift, 0.2, (200, 2)), columns=["ndcg@5", "mrr@5"]).assign(
            model=model, user_id=range(200)
        )
        for model, shift in (("a", 0.0), ("b", 0.02), ("c", 0.06), ("d", 0.08))
    ]
    return pd.concat(parts)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "adjusted by Holm's method for 12 tests"),
        ({"family": "metric"}, "adjusted by Holm's method in 2 families of 6 tests"),
        (
            {"family": ["metric", "baseline"]},
            "adjusted by Holm's method in 6 families of 1 to 3 tests",
        ),
        ({"baseline": "a", "family": ["metric", "model"]}, "not adjusted"),
        ({"correction": "none"}, "not adjusted"),
        ({"correction": "bh"}, "adjusted by Benjamini and Hochberg's method for 12 tests"),
        (
            {"correction": "bonferroni", "baseline": "a"},
            "adjusted by Bonferroni's method for 6 tests",
        ),
        ({"metrics": "mrr@5", "baseline": "a"}, "adjusted by Holm's method for 3 tests"),
    ],
)
def test_words(per_user, options, words):
    table = rd.compare_models(per_user, **{"metrics": ["ndcg@5", "mrr@5"], **options}, details=True)
    assert adjustment(table).words == words
    bare = pd.DataFrame(table)
    bare.attrs = {}
    # Without a record, the numbers alone do not tell one correction from another.
    lost = words if words == "not adjusted" else "adjusted in a way that these rows do not show"
    assert adjustment(bare).words == lost


def test_rows_of_a_larger_table_do_not_show_their_correction(per_user):
    table = rd.compare_models(per_user, ["ndcg@5", "mrr@5"], details=True)
    some = table[table["metric"] == "mrr@5"]
    assert adjustment(some).words == "adjusted in a way that these rows do not show"
    assert (
        adjustment(table.drop(columns="p_value")).words
        == "adjusted in a way that these rows do not show"
    )
    assert adjustment(table.iloc[:0]).words == "not adjusted: there is no test"


def test_primary_metrics_are_a_family_of_their_own():
    rng = np.random.default_rng(1)
    users = pd.DataFrame({"variant": ["A", "B"] * 300, **{name: rng.random(600) for name in "xyz"}})
    table = rd.compare_variants(
        users, list("xyz"), control="A", primary="x", user_col=None, details=True
    )
    assert adjustment(table).words == "adjusted by Holm's method in 2 families of 1 to 2 tests"


def test_zero_is_not_counted_where_a_caller_says_that_smaller_is_better():
    waits = pd.DataFrame(
        {"model": ["a"] * 30 + ["b"] * 60, "user_id": [*range(30), *range(60)], "wait": 1.0}
    )
    waits.loc[waits["model"] == "b", "wait"] = 2.0
    with pytest.raises(
        rd.OptionError, match="would give 'wait' a 0 for 30 users whom one model lacks"
    ):
        rd.compare_models(waits, "wait", missing="zero", smaller_is_better="wait", details=True)
    assert rd.compare_models(waits, "wait", missing="zero", details=True)[
        "n_only_model"
    ].tolist() == [30]


def test_a_family_that_is_no_column_is_refused_with_the_columns_that_tell_rows_apart(per_user):
    users = per_user[per_user["model"] == "a"].assign(
        variant=lambda rows: np.where(rows["user_id"] % 2, "A", "B"), country="fi"
    )
    listed = r"it has 'metric', 'control', 'treatment', 'country'; did you mean 'country'\?$"
    with pytest.raises(rd.ColumnError, match=listed):
        rd.compare_variants(users, "mrr@5", control="A", by="country", family="countri")
    with pytest.raises(rd.ColumnError, match=r"it has 'metric', 'baseline', 'model'$"):
        rd.compare_models(per_user, "mrr@5", family="nope")


def test_levels_that_fit_are_those_that_do_not_reject():
    draw = np.random.default_rng(1)
    users = pd.DataFrame({"user_id": range(4000), "variant": draw.choice(["A", "B"], 4000)})
    users["browser"] = draw.choice(["x", "y"], 4000)
    found = rd.experiments.find_srm(users, "browser", expected={"A": 1, "B": 1})
    assert found["verdict"].tolist() == ["fits", "fits"]
    again = rd.experiments.adjust_pvalues(found)
    assert again["verdict"].tolist() == ["fits", "fits"]
    doubted = rd.experiments.adjust_pvalues(found.assign(p_value=[0.01, 0.9]))
    assert doubted["withheld"].tolist() == ["other_correction", ""]


def test_verdicts_that_are_categories_are_withheld_too(per_user):
    table = rd.compare_models(per_user, metrics="ndcg@5", baseline="a", correction="none")
    table["p_value"] = [0.9, 0.03, 0.0]
    want = rd.experiments.adjust_pvalues(table)
    assert "other_correction" in set(want["withheld"])
    texts = dict.fromkeys(("effect", "withheld", "remarks", "verdict"), "category")
    found = rd.experiments.adjust_pvalues(table.astype(texts))
    pd.testing.assert_frame_equal(found, want)
