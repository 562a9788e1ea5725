"""`audit`: planted leaks of five kinds are found with their counts, and a clean split has no
finding of a leak."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recdf as rd

pytestmark = pytest.mark.usefixtures("without_pictures")

MOVIES = Path(__file__).parents[3] / "shared/data/movielens_latest_small/ratings.parquet"
CUTOFF = pd.Timestamp("2026-08-31 23:59:59")
KEYS = ["user_id", "item_id"]


def shop_split() -> dict[str, pd.DataFrame]:
    """A clean split of the sample shop: known users, known items, and a model that leaves out seen
    items."""
    shop = rd.sample_shop(n_users=400, n_items=100)
    train = shop.log[["user_id", "item_id", "timestamp"]]
    pred = shop.pred[shop.pred["model"] == "knn"][[*KEYS, "score"]]
    return clean(train, shop.true[["user_id", "item_id", "timestamp"]], pred)


def movies_split() -> dict[str, pd.DataFrame]:
    """MovieLens cut at a time; the model recommends what was popular lately, less what the user has
    rated."""
    if not MOVIES.exists():
        pytest.skip(f"{MOVIES} is absent")
    log = pd.read_parquet(MOVIES).rename(columns={"timestamp": "time"})
    log["timestamp"] = (
        pd.to_datetime(log["time"], unit="s") if log["time"].dtype.kind in "iu" else log["time"]
    )
    cut = log["timestamp"].quantile(0.9)
    train, true = log[log["timestamp"] <= cut], log[log["timestamp"] > cut]
    recent = (
        train[train["timestamp"] > train["timestamp"].quantile(0.5)]["item_id"]
        .value_counts()
        .index[:300]
    )
    pred = (
        true[["user_id"]]
        .drop_duplicates()
        .merge(pd.DataFrame({"item_id": recent, "score": -np.arange(300.0)}), how="cross")
    )
    return clean(train[[*KEYS, "timestamp"]], true[[*KEYS, "timestamp"]], pred)


def clean(train: pd.DataFrame, true: pd.DataFrame, pred: pd.DataFrame) -> dict[str, pd.DataFrame]:
    def among(frame: pd.DataFrame) -> np.ndarray:
        return (
            frame["user_id"].isin(train["user_id"]).to_numpy()
            & frame["item_id"].isin(train["item_id"]).to_numpy()
        )

    def seen(frame: pd.DataFrame) -> np.ndarray:
        return (
            frame[KEYS]
            .merge(train[KEYS].drop_duplicates(), how="left", indicator=True)["_merge"]
            .eq("both")
            .to_numpy()
        )

    pred, true = pred[among(pred) & ~seen(pred)], true[among(true) & ~seen(true)]
    pred = pred.sort_values("score", ascending=False, kind="stable").groupby("user_id").head(10)
    return {
        "true": true.reset_index(drop=True),
        "pred": pred.reset_index(drop=True),
        "train": train.reset_index(drop=True),
    }


SPLITS = [shop_split, movies_split]


def audited(data: dict[str, pd.DataFrame], **options: object) -> pd.DataFrame:
    cutoff = (
        data["true"]["timestamp"].min() - pd.Timedelta("1s")
        if "timestamp" in data["true"]
        else None
    )
    options = {"time_col": "timestamp", "cutoff": cutoff, **options}
    return rd.audit(data["true"], data["pred"], train=data["train"], **options)


def leaks(found: pd.DataFrame) -> dict[str, int]:
    own = found[~found["finding"].str.contains("@")]
    return dict(zip(own["finding"], own["count"], strict=True))


@pytest.mark.long
@pytest.mark.parametrize("split", SPLITS)
def test_a_clean_split_has_no_finding(split) -> None:
    data = split()
    assert leaks(audited(data)) == {}
    assert leaks(audited(data, cutoff=None)) == {}


@pytest.mark.long
@pytest.mark.parametrize("split", SPLITS)
def test_planted_leaks_are_found_with_their_counts(split) -> None:
    data = split()
    true, pred, train = data["true"], data["pred"], data["train"]
    early, late = train["timestamp"].min(), true["timestamp"].max() + pd.Timedelta("1D")

    found = audited({**data, "train": pd.concat([train, true.iloc[:17].assign(timestamp=early)])})
    assert leaks(found) == {
        "rows of true that stand in train": 17,
        **(
            {"recommended items that the user has in train": n}
            if (n := pred.merge(true.iloc[:17], on=KEYS).shape[0])
            else {}
        ),
    }
    row = found[found["finding"] == "rows of true that stand in train"].iloc[0]
    both = [rd.ndcg(true, pred), rd.ndcg(true.iloc[17:], pred)]
    np.testing.assert_allclose(row[["value", "value_without"]].astype(float), both)
    np.testing.assert_allclose(json.loads(row["ranges"])["ndcg@10"], both)
    assert row["share"] == 17 / len(true)

    again = pred.drop_duplicates("user_id").iloc[:23][KEYS]
    found = audited({**data, "train": pd.concat([train, again.assign(timestamp=early)])})
    in_true = again.merge(true, on=KEYS)
    assert leaks(found)["recommended items that the user has in train"] == 23
    assert leaks(found).get("rows of true that stand in train", 0) == len(in_true)
    row = found[found["finding"] == "recommended items that the user has in train"].iloc[0]

    def left(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[
            frame.merge(again, how="left", on=KEYS, indicator=True)["_merge"]
            .eq("left_only")
            .to_numpy()
        ]

    np.testing.assert_allclose(row["value_without"], rd.ndcg(left(true), left(pred)))

    other = train.iloc[:31].assign(timestamp=late)
    found = audited({**data, "train": pd.concat([other, train.iloc[31:]])})
    assert leaks(found)["rows of train after the cut-off"] == 31
    row = found[found["finding"] == "rows of train after the cut-off"].iloc[0]
    users = ~true["user_id"].isin(other["user_id"])
    want = rd.ndcg(true[users], pred) if users.any() else np.nan
    np.testing.assert_allclose(row["value_without"], want)

    first = true.groupby("user_id")["timestamp"].min()
    own = train[train["user_id"].isin(true["user_id"])].iloc[:13]
    later = own.assign(timestamp=own["user_id"].map(first) + pd.Timedelta("1s"))
    found = audited({**data, "train": pd.concat([train.drop(own.index), later])}, cutoff=None)
    assert leaks(found)["rows of train after the user's own row of true"] == 13

    new_items = [
        train["item_id"].max()
        + (1 if isinstance(train["item_id"].iloc[0], (int, np.integer)) else "x")
    ]
    cold = true.iloc[[0, 1]].assign(item_id=new_items[0])
    stranger = pred.iloc[[0]].assign(
        user_id=train["user_id"].max() + (1 if pred["user_id"].dtype.kind == "i" else "x")
    )
    found = audited(
        {**data, "true": pd.concat([true, cold]), "pred": pd.concat([pred, stranger, stranger])}
    )
    assert leaks(found) == {
        "relevant items that were not known before": 2,
        "users of pred that train lacks": 1,
    }
    found = audited(
        {**data, "pred": pd.concat([pred, pred.iloc[[3]].assign(item_id=new_items[0])])}
    )
    assert leaks(found) == {"recommended items that were not known before": 1}


@pytest.mark.long
def test_new_items_are_those_first_seen_after_the_cut_off() -> None:
    log = pd.DataFrame({"user_id": list("abc"), "item_id": list("xyz"), "time": [1, 5, 9]})
    true, pred = {"a": ["y", "z"]}, {"a": ["z", "q"]}
    found = rd.audit(true, pred, train=log.assign(time=1), log=log, time_col="time", cutoff=5)
    assert leaks(found) == {
        "relevant items that were not known before": 1,
        "recommended items that were not known before": 2,
        "hits that the training data cannot explain": 1,
    }
    found = rd.audit(true, pred, log=log, time_col="time", cutoff=5)
    assert leaks(found) == {
        "relevant items that were not known before": 1,
        "recommended items that were not known before": 2,
        "hits that the training data cannot explain": 1,
    }


@pytest.mark.long
def test_levels_stand_beside_the_metrics_and_are_said() -> None:
    shop = rd.sample_shop(n_users=400, n_items=100)
    found = rd.audit(
        shop.true,
        shop.pred,
        ["ndcg", "recall"],
        k=[5, 10],
        train=shop.log,
        items=shop.items,
        by="model",
    )
    floors = found.floors.set_index(["by", "metric"])
    result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], k=[5, 10], by="model").summary
    for row in result.itertuples():
        assert floors.loc[(row.model, f"{row.metric}@{row.k}"), "value"] == pytest.approx(
            row.value, rel=1e-12
        )
    chance = rd.chance_level(shop.true, "ndcg", 10, items=shop.items)["value"][0]
    assert (floors.xs("ndcg@10", level="metric")["chance"] == chance).all()
    ceiling = rd.ceiling(shop.true, shop.pred, "recall", 5, by="model").set_index("model")["value"]
    for model, value in ceiling.items():
        assert floors.loc[(model, "recall@5"), "ceiling"] == pytest.approx(value, rel=1e-12)
    said = dict(zip(found["by"] + ": " + found["finding"], found["effect"], strict=True))
    assert "random: ndcg@10 is at chance" in said
    assert said["random: recall@10 is below popularity"].startswith(
        "the most popular items of train, less the seen ones, do better"
    )
    assert not [name for name in said if name.startswith("knn: ndcg")]


@pytest.mark.long
def test_popularity_level_is_that_of_the_lists_made_by_hand() -> None:
    data = shop_split()
    true, train = data["true"], data["train"]
    order = (
        train.groupby("item_id")
        .size()
        .sort_index()
        .sort_values(ascending=False, kind="stable")
        .index
    )
    seen = set(map(tuple, train[KEYS].to_numpy().tolist()))
    rows = []
    for user in true["user_id"].unique():
        rows += [(user, item) for item in [one for one in order if (user, one) not in seen][:10]]
    by_hand = rd.evaluate(true, pd.DataFrame(rows, columns=KEYS), ["ndcg", "recall"]).summary[
        "value"
    ]
    np.testing.assert_allclose(audited(data).floors["popularity"], by_hand)


@pytest.mark.long
def test_a_model_of_the_best_order_is_at_its_ceiling_and_one_of_the_worst_below_chance() -> None:
    rng = np.random.default_rng(0)
    true = pd.DataFrame(
        {"user_id": np.repeat(np.arange(400), 3), "item_id": np.tile([0, 1, 2], 400)}
    )
    train = pd.DataFrame({"user_id": np.arange(400), "item_id": rng.integers(3, 10, 400)})
    wrong = pd.DataFrame(
        {"user_id": np.repeat(np.arange(400), 3), "item_id": np.tile([7, 8, 9], 400)}
    )
    wrong.loc[0, "item_id"] = 0
    found = rd.audit(true, wrong, "recall", 3, train=train, items=10)
    assert "recall@3 is below chance" in found["finding"].tolist()
    found = rd.audit(true, true, "ndcg", 3, train=train, items=10)
    assert "ndcg@3 is at its ceiling" in found["finding"].tolist()
    assert found.floors["said"].tolist() == ["at its ceiling"]
    assert "ceiling" not in " ".join(
        rd.audit(true, wrong, "recall", 3, train=train, items=10)["finding"]
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cutoff": 3}, "time_col"),
        ({"time_col": "when"}, "when"),
        ({"time_col": "time", "cutoff": "soon"}, "cutoff='soon'"),
        ({"time_col": "time", "cutoff": "2026-01-01"}, "cutoff"),
        ({"metrics": "coverage"}, "coverage"),
        ({"metrics": "nope"}, "unknown metric"),
        ({"by": "nope"}, "nope"),
        ({"judged_only": True}, "judged_only"),
        ({"train": pd.DataFrame({"who": [1], "item_id": ["a"]})}, "user_id"),
        ({"train": pd.DataFrame({"user_id": [None], "item_id": ["a"]})}, "null"),
        ({"train": pd.DataFrame({"user_id": ["ann"], "item_id": [3]})}, "item_id"),
        ({"log": pd.DataFrame({"user_id": ["ann"], "it": ["a"]})}, "log has no column 'item_id'"),
    ],
)
def test_bad_input_is_a_named_error(options: dict[str, object], said: str) -> None:
    train = pd.DataFrame({"user_id": ["ann"], "item_id": ["c"], "time": [1]})
    with pytest.raises(rd.errors.RecdfError, match=said):
        rd.audit({"ann": ["a"]}, {"ann": ["a", "b"]}, **{"train": train, **options})


@pytest.mark.parametrize("cutoff", [pd.NaT, float("nan"), 20260901, np.int64(7)])
@pytest.mark.parametrize("dated", [True, False])
def test_a_cutoff_that_is_no_time_is_refused(cutoff: object, dated: bool) -> None:
    time = pd.Timestamp("2026-11-01") if dated else 1
    train = pd.DataFrame({"user_id": ["ann"], "item_id": ["c"], "time": [time]})
    audit = partial(rd.audit, {"ann": ["a"]}, {"ann": ["a"]}, train=train, time_col="time")
    if dated or pd.isna(cutoff):
        said = "expected a time such as" if dated else "expected a number"
        with pytest.raises(rd.OptionError, match=said):
            audit(cutoff=cutoff)
    else:
        assert "train_after_cutoff" not in set(audit(cutoff=cutoff)["code"])


@pytest.mark.long
def test_a_report_shows_the_findings_of_an_audit_and_its_levels(tmp_path: Path) -> None:
    shop = rd.sample_shop(n_users=400, n_items=100)
    result = rd.evaluate(shop.true, shop.pred, "ndcg", by="model")
    found = rd.audit(shop.true, shop.pred, "ndcg", train=shop.log, items=shop.items, by="model")
    page = rd.report(result, tmp_path / "report.html", check=found).read_text(encoding="utf-8")
    assert "Data health: " in page
    assert "Levels: " not in page  # they stand in a table, and not in the card
    assert "ndcg@10 is at chance" in page
    for name in ("chance", "popularity", "ceiling"):
        for number in found.floors[name]:
            assert f"{number:.4g}" in page


def test_hits_on_items_that_train_lacks_are_a_warning_with_the_metric_without_them() -> None:
    users = np.arange(60)
    true = pd.DataFrame({"user_id": users, "item_id": np.where(users % 2, "new", "old")})
    pred = pd.DataFrame({"user_id": np.repeat(users, 2), "item_id": ["new", "old"] * 60})
    pred["score"] = np.tile([2.0, 1.0], 60)
    train = pd.DataFrame({"user_id": users + 100, "item_id": "old"})
    others = pd.DataFrame({"user_id": 100, "item_id": [f"other {i}" for i in range(98)]})
    train = pd.concat([train, others])
    found = rd.audit(true, pred, train=train, metrics="mrr", k=2).set_index("finding")
    row = found.loc["hits that the training data cannot explain"]
    assert (row["severity"], row["count"], row["share"]) == ("warning", 30, 0.5)
    # Half of the users want the new item, which stands first; the others want the second one.
    assert (row["value"], row["value_without"]) == (0.75, 0.25)
    assert "cannot hit" not in " ".join(found["effect"])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n_hits", "n_items", "severity"),
    # Each of 50 users sees 2 items and wants one that train lacks: by chance 100 / n_items hits.
    [
        (4, 10_000, "info"),  # 0.01 by chance, but fewer than five
        (5, 10_000, "warning"),
        (5, 100, "info"),  # 1 by chance: P(5 or more) is 0.004
        (8, 100, "warning"),  # P(8 or more) is 0.00001
        (30, 100, "warning"),
        (30, 5, "info"),  # 20 by chance
    ],
)
def test_hits_on_new_items_are_a_warning_only_beyond_chance(n_hits, n_items, severity) -> None:
    users = np.arange(50)
    true = pd.DataFrame({"user_id": users, "item_id": "new"})
    pred = pd.DataFrame({"user_id": np.repeat(users, 2), "item_id": ["old", "older"] * 50})
    pred.loc[2 * users[:n_hits], "item_id"] = "new"
    items = ["old", "older", *range(n_items - 3)]
    train = pd.DataFrame({"user_id": 99, "item_id": [str(one) for one in items]})
    found = rd.audit(true, pred, train=train, metrics="mrr", k=2).set_index("finding")
    row = found.loc["hits that the training data cannot explain"]
    assert (row["severity"], row["count"]) == (severity, n_hits)
    by_chance = f"a random order hits about {100 / n_items:.3g} of them"
    assert (by_chance in row["effect"]) == (severity == "info")


def test_the_metric_of_a_few_lists_that_are_left_is_no_number() -> None:
    users = np.arange(60)
    true = pd.DataFrame({"user_id": users, "item_id": "a"})
    train = true[users > 0]
    found = rd.audit(true, true, train=train, metrics="mrr", k=2).set_index("finding")
    said = found.loc["rows of true that stand in train", "effect"]
    assert "mrr@2 1 with, – without (1 of 60 lists)" in said


@pytest.mark.long
def test_popularity_is_that_without_the_leaked_rows() -> None:
    users = np.arange(60)
    true = pd.DataFrame({"user_id": users, "item_id": "a"})
    train = pd.DataFrame({"user_id": users + 100, "item_id": "a"})
    for own in (train, pd.concat([train, true])):
        assert rd.audit(true, true, train=own, metrics="mrr", k=2).floors["popularity"][0] == 1


@pytest.mark.long
def test_popularity_counts_no_leaked_row() -> None:
    users = np.arange(60)
    train = pd.DataFrame(
        {"user_id": users + 100, "item_id": np.where(users % 3, "b", "a"), "time": 1}
    )
    true = pd.DataFrame({"user_id": users, "item_id": "a", "time": 5})
    late = pd.DataFrame({"user_id": users + 200, "item_id": "a", "time": 9})
    options = {"metrics": "mrr", "k": 2, "time_col": "time", "cutoff": 4}
    # 20 rows of a and 40 of b: a is second. All leaked rows are of a.
    for leaked in ([], [true.assign(time=2)], [late]):
        found = rd.audit(true, true, train=pd.concat([train, *leaked]), **options)
        assert found.floors["popularity"][0] == 0.5


@pytest.mark.long
def test_findings_about_true_and_train_alone_stand_once_for_all_models() -> None:
    users = np.arange(60)
    true = pd.DataFrame({"user_id": users, "item_id": "a"})
    pred = pd.concat(
        [
            true.assign(model="good"),
            true.assign(model="bad", item_id=np.where(users < 30, "a", "b")),
        ]
    )
    found = rd.audit(true, pred, train=true[:30], metrics="recall", k=1, by="model")
    rows = found[found["finding"] == "rows of true that stand in train"]
    assert rows[["by", "count"]].to_numpy().tolist() == [["", 30]]
    effect = rows["effect"].iloc[0]
    assert "bad: recall@1 0.50 with, 0.00 without (30 of 60 lists)" in effect
    assert "good: recall@1 1 with, 1 without (30 of 60 lists)" in effect
    per_model = found[found["finding"].str.startswith("recommended items that the user")]
    assert set(per_model["by"]) == {"bad", "good"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("train", "finding"),
    [
        ({"user_id": ["zz"], "item_id": ["a"]}, "train has no user of true and pred"),
        ({"user_id": ["ann"], "item_id": ["zz"]}, "train has no item of true and pred"),
    ],
)
def test_a_train_of_other_ids_is_named(train: dict[str, list[str]], finding: str) -> None:
    true, pred = {"ann": ["a"]}, {"ann": ["a", "b"]}
    found = rd.audit(true, pred, train=pd.DataFrame(train)).set_index("finding")
    assert found.loc[finding, "severity"] == "warning"
    assert "'zz'" in found.loc[finding, "examples"]
    known = rd.audit(true, pred, train=pd.DataFrame({"user_id": ["ann"], "item_id": ["b"]}))
    assert not known["finding"].str.startswith("train has no").any()


@pytest.mark.parametrize("role", ["train", "log"])
def test_ids_of_another_kind_name_their_frame(role: str) -> None:
    other = pd.DataFrame({"user_id": ["ann"], "item_id": [3]})
    with pytest.raises(rd.errors.IdTypeError, match=rf"{role}\['item_id'\] integer ids"):
        rd.audit({"ann": ["a"]}, {"ann": ["a"]}, **{role: other})


@pytest.mark.long
def test_a_report_takes_no_finding_of_an_audit_for_ties(tmp_path: Path) -> None:
    shop = rd.sample_shop(n_users=400, n_items=100)
    result = rd.evaluate(shop.true, shop.pred, "ndcg", by="model")
    train = pd.concat([shop.log, shop.true.head(300)])
    found = rd.audit(shop.true, shop.pred, "ndcg", train=train, by="model")
    page = rd.report(result, tmp_path / "report.html", check=found).read_text(encoding="utf-8")
    assert "of all models together" not in page
    assert "to ndcg@10 is not known" not in page


@pytest.mark.parametrize("name", ["n", "first", "last"])
def test_items_may_have_the_name_of_a_number_of_the_audit(name):
    true = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 3], "time": [8, 9, 9]})
    pred = pd.DataFrame({"user_id": [1, 1, 2, 2], "item_id": [1, 4, 3, 2], "rank": [1, 2, 1, 2]})
    train = pd.DataFrame({"user_id": [1, 2, 2], "item_id": [2, 4, 1], "time": [1, 2, 3]})
    want = rd.audit(true, pred, k=2, train=train, time_col="time")
    renamed = [one.rename(columns={"item_id": name}) for one in (true, pred, train)]
    found = rd.audit(*renamed[:2], k=2, train=renamed[2], time_col="time", item_col=name)
    pd.testing.assert_frame_equal(found.floors, want.floors)
    assert found["finding"].tolist() == want["finding"].tolist()
    assert found["count"].tolist() == want["count"].tolist()


def test_arguments_of_an_audit_are_named():
    lists = {"ann": ["a"]}
    for role in ("true", "pred"):
        with pytest.raises(TypeError, match=f"{role} is None; expected a DataFrame"):
            rd.audit(**{"true": lists, "pred": lists} | {role: None})
    with pytest.raises(rd.OptionError, match=r"time_col=\['time'\]; expected a name"):
        rd.audit(lists, lists, train=lists, time_col=["time"])


def test_users_are_the_units_wherever_they_stand_in_the_list_key():
    """The lists of a user are copies of one, so that each further one tells nothing."""
    shop = rd.sample_shop(n_users=200, n_items=60)
    pred = shop.pred[shop.pred["model"] == "random"].drop(columns="model")
    visits = pd.DataFrame({"visit": range(9)})
    true, pred = (one.merge(visits, how="cross") for one in (shop.true, pred))
    alone, *found = (
        rd.audit(true[true["visit"] < n], pred[pred["visit"] < n], metrics="ndcg@10", user_col=keys)
        for n, keys in ((1, ["user_id"]), (9, ["user_id", "visit"]), (9, ["visit", "user_id"]))
    )
    texts = [one.loc[one["code"] == "at_chance", "effect"].tolist() for one in (alone, *found)]
    assert len(texts[0]) == 1
    assert texts[0] == texts[1] == texts[2]


def test_seen_items_leave_with_the_judged_rows_that_are_in_train() -> None:
    # Without the seen pairs, as with exclude=train, ann has no row of true, and only bob is left.
    true = pd.DataFrame({"user_id": ["ann", "bob"], "item_id": ["a", "b"], "relevance": [0, 1]})
    pred = pd.DataFrame({"user_id": ["ann", "bob"], "item_id": ["a", "b"], "score": 1.0})
    train = true[["user_id", "item_id"]].head(1)
    found = rd.audit(true, pred, "mrr", train=train, undefined="zero")
    rows = found[found["code"] == "pred_in_train"]
    own = rd.evaluate(true, pred, "mrr", exclude=train, undefined="zero").summary["value"]
    assert rows[["value", "value_without"]].to_numpy().tolist() == [[0.5, 1.0]]
    assert own.tolist() == [1.0]


@pytest.mark.few(1)
def test_columns_may_be_called_by_numbers() -> None:
    true = pd.DataFrame({0: [1, 2], 1: ["a", "b"], 5: [1.0, 2.0]})
    pred = pd.DataFrame({0: [1, 1, 2, 2], 1: list("abab"), "score": [2, 1, 2, 1], 8: list("stst")})
    train = true.head(1)
    names = {0: "user_id", 1: "item_id", 5: "w", 8: "model"}
    for more in ({}, {"weight_col": 5}, {"by": 8, "weight_col": 5}):
        found = rd.audit(true, pred, "mrr", 1, train=train, user_col=0, item_col=1, **more)
        own = rd.audit(
            *(one.rename(columns=names) for one in (true, pred)),
            "mrr",
            1,
            train=train.rename(columns=names),
            **{option: names[name] for option, name in more.items()},
        )
        pd.testing.assert_frame_equal(
            pd.DataFrame(found).drop(columns="examples"), pd.DataFrame(own).drop(columns="examples")
        )
