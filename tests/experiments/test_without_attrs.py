"""A merge loses `attrs`: nothing may compute differently then. A function is told, reads columns,
or asks."""

import pandas as pd
import pytest

import recdf as rd
from recdf.errors import DataError, OptionError


def lists(by="model", key=("user_id", "session_id")):
    """Per-user table by model, with lists by user and session, as evaluate writes it."""
    true = pd.DataFrame(
        {"user_id": [1, 1, 2, 2], "session_id": [7, 8, 7, 9], "item_id": [1, 2, 3, 4]}
    )
    pred = pd.concat([true.assign(model="a"), true.iloc[:2].assign(model="b")])
    return rd.evaluate(true, pred, ["hits@1", "mrr@1"], by=by, user_col=list(key)).per_user


def merged(per_user):
    """The same after a merge with a table of users."""
    users = pd.DataFrame({"user_id": [1, 2], "segment": ["x", "y"], "age": [20, 30]})
    found = per_user.merge(users, on="user_id", validate="many_to_one")
    found.attrs = {}
    return found


def test_roll_up_asks_what_sessions_and_models_are():
    per_user = lists()
    lost = merged(per_user)
    with pytest.raises(DataError, match=r"evaluated by \['model'\]"):
        rd.experiments.roll_up(per_user)
    # Took session_id for a metric, and mixed the models.
    with pytest.raises(DataError, match=r"\['model', 'session_id'\] before n_true.*over="):
        rd.experiments.roll_up(lost)
    with pytest.raises(DataError, match=r"whole numbers in \['age'\]"):
        rd.experiments.roll_up(lost, ["model", "user_id"], over="session_id")
    want = rd.experiments.roll_up(per_user, ["model", "user_id"])
    assert "session_id" not in want.columns
    found = rd.experiments.roll_up(lost, ["model", "user_id"], over=["session_id", "age"])
    pd.testing.assert_frame_equal(found, want)
    rules = {"n_true": "sum", "hits@1": "sum"}
    told = rd.experiments.roll_up(lost, ["model", "user_id"], rules)
    assert (
        told["hits@1"].tolist()
        == rd.experiments.roll_up(per_user, ["model", "user_id"], "sum")["hits@1"].tolist()
    )


def test_roll_up_asks_for_the_rule_of_the_first_step():
    per_user = lists()
    first = rd.experiments.roll_up(per_user, ["model", "user_id"], "sum")
    lost = first.copy()
    lost.attrs = {}
    with pytest.raises(OptionError, match="rolled up by how='sum'"):
        rd.experiments.roll_up(first, "model", "mean", over="user_id")
    with pytest.raises(OptionError, match="rolled_by="):
        rd.experiments.roll_up(lost, "model", "mean", over="user_id")
    with pytest.raises(OptionError, match="rolled up by how='sum'"):
        rd.experiments.roll_up(lost, "model", "mean", over="user_id", rolled_by="sum")
    found = rd.experiments.roll_up(lost, "model", "sum", over="user_id", rolled_by="sum")
    pd.testing.assert_frame_equal(
        found, rd.experiments.roll_up(per_user, "model", "sum", over=["user_id", "session_id"])
    )


def test_join_rolls_up_what_it_is_told():
    per_user = lists()
    groups = pd.DataFrame({"user_id": [1, 2], "variant": ["A", "B"]})
    want = rd.join_experiment(per_user, groups, by="model", how="sum")
    lost = per_user.copy()
    lost.attrs = {}
    with pytest.raises(DataError, match=r"\['session_id'\] before n_true"):
        rd.join_experiment(lost, groups, by="model", how="sum")
    pd.testing.assert_frame_equal(
        rd.join_experiment(lost, groups, by="model", how="sum", over="session_id"), want
    )


def test_summarize_asks_which_columns_are_models():
    per_user = lists()
    lost = merged(per_user)
    with pytest.raises(
        DataError, match=r"\['model', 'user_id', 'session_id'\] before n_true.*by='model'"
    ):
        rd.summarize(lost)
    want = rd.summarize(per_user)
    pd.testing.assert_frame_equal(rd.summarize(lost, by="model"), want)
    with pytest.raises(DataError, match=r"several values of \['model'\]"):
        rd.summarize(lost, by=[])
    # A table of one recommender over users has nothing to ask.
    plain = rd.evaluate({1: [1], 2: [2]}, {1: [1], 2: [1]}, "mrr@1").per_user
    assert rd.summarize(merged(plain))["value"].tolist() == [0.5]


def test_user_gap_asks_which_columns_are_models():
    per_user = lists()
    users = pd.DataFrame({"user_id": [1, 2], "segment": ["x", "y"]})
    kept = per_user.assign(segment=per_user["user_id"].map(users.set_index("user_id")["segment"]))
    kept.attrs = dict(per_user.attrs)
    lost = merged(per_user)
    want = rd.diagnostics.user_gap(kept, "segment")
    assert want["model"].unique().tolist() == ["a", "b"]
    # Pooled the models.
    with pytest.raises(DataError, match="within='model'"):
        rd.diagnostics.user_gap(lost, "segment")
    pd.testing.assert_frame_equal(rd.diagnostics.user_gap(lost, "segment", within="model"), want)


def test_compare_models_takes_every_float_column_with_and_without():
    per_user = lists(key=["user_id", "session_id"])
    lost = per_user.copy()
    lost.attrs = {}
    options = {"user_col": ["user_id", "session_id"], "missing": "zero"}
    pd.testing.assert_frame_equal(
        rd.compare_models(lost, **options, details=True),
        rd.compare_models(per_user, **options, details=True),
    )


@pytest.mark.long
def test_comparisons_and_reports_do_not_need_attrs():
    data = pd.DataFrame(
        {"shopper": range(60), "variant": ["A", "B"] * 30, "m": [i % 7 for i in range(60)]}
    )
    groups, metrics = data[["shopper", "variant"]], data[["shopper", "m"]]
    joined = rd.join_experiment(metrics, groups, user_col="shopper")
    lost = joined.copy()
    lost.attrs = {}
    for test in ("t", "bootstrap", "permutation"):
        options = {"control": "A", "test": test, "n_resamples": 100, "confidence": 0.9}
        want = rd.compare_variants(joined, "m", **options, details=True)
        found = rd.compare_variants(lost, "m", **options, details=True)
        pd.testing.assert_frame_equal(found, want)
    found.attrs = {}
    assert "effect (90% CI)" in rd.experiments.report_table(found).frame.columns
    pd.testing.assert_frame_equal(
        rd.experiments.report_table(found).frame, rd.experiments.report_table(want).frame
    )


def test_integer_column_names_become_strings(tmp_path):
    groups = pd.DataFrame({"user_id": [1, 2, 3], "variant": ["A", "B", "B"], 2024: [1.0, 2.0, 3.0]})
    metrics = pd.DataFrame({"user_id": [1, 2], 2025: [0.5, 0.25], 7: [1, 2]})
    found = rd.join_experiment(metrics, groups, missing="zero", larger_is_better=["2025", "7"])
    assert found.columns.tolist() == ["user_id", "variant", "2024", "2025", "7", "has_metrics"]
    assert found["7"].tolist() == [1, 2, 0]
    found.to_parquet(tmp_path / "joined.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "joined.parquet"), found)
    assert metrics.columns.tolist() == ["user_id", 2025, 7]
    keyed = rd.join_experiment(
        metrics.rename(columns={"user_id": 0}),
        groups.rename(columns={"user_id": 0}),
        user_col=0,
        missing="drop",
    )
    assert keyed["0"].tolist() == [1, 2]
    with pytest.raises(DataError, match="both have '2024'"):
        rd.join_experiment(metrics.rename(columns={2025: "2024"}), groups)
    with pytest.raises(rd.ColumnError, match="equal as text"):
        rd.join_experiment(metrics.rename(columns={7: "2025"}), groups)
