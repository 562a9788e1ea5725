"""`check`: planted faults are found, clean data gives nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import recdf as rd


def clean(shuffled: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """60 users with 3 relevant items, all recommended to somebody, and 12 distinct scores each."""
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(60), 12)
    items = np.concatenate([rng.permutation(40)[:12] for _ in range(60)])
    pred = pd.DataFrame(
        {"user_id": users, "item_id": items, "score": np.tile(np.linspace(0.9, 0.1, 12), 60)}
    )
    true = (
        pred.groupby("user_id")
        .sample(3, random_state=1)[["user_id", "item_id"]]
        .reset_index(drop=True)
    )
    if shuffled:
        pred, true = pred.sample(frac=1, random_state=2), true.sample(frac=1, random_state=2)
    return true, pred


def findings(*args: object, **options: object) -> dict[str, pd.Series]:
    table = rd.check(*args, **options)
    assert list(table.columns) == [
        "finding",
        "severity",
        "count",
        "share",
        "examples",
        "effect",
        "code",
        "by",
        "ranges",
    ]
    assert (table["count"] > 0).all()
    assert table["share"].between(0, 1).all()
    return {row["finding"]: row for _, row in table.iterrows()}


@pytest.mark.parametrize("shuffled", [False, True])
def test_clean_data_has_no_finding(shuffled: bool) -> None:
    true, pred = clean(shuffled)
    log = pd.DataFrame({"user_id": [0], "item_id": [1000]})
    assert rd.check(true, pred, log=log, items=range(40)).empty
    ranked = pred.assign(rank=pred.groupby("user_id")["score"].rank(ascending=False).astype(int))
    assert rd.check(true, ranked, rank_col="rank").empty


def plant(fault: str) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    true, pred = clean()
    options: dict[str, object] = {}
    first = pred["user_id"] == 0
    if fault == "string ids":
        pred["item_id"] = pred["item_id"].astype(str)
    elif fault == "leading zeros":
        true["item_id"] = true["item_id"].map("{:03d}".format)
        pred["item_id"] = pred["item_id"].map(lambda i: f"{i:03d}" if i < 30 else str(i))
    elif fault == "float text":
        true["item_id"] = true["item_id"].map(lambda i: f"{i}.0" if i < 10 else str(i))
        pred["item_id"] = pred["item_id"].astype(str)
    elif fault == "null ids":
        true["user_id"] = true["user_id"].astype("Int64").mask(np.arange(len(true)) < 4)
    elif fault == "null scores":
        pred.loc[11, "score"] = np.nan
    elif fault == "infinite scores":
        pred.loc[0, "score"] = np.inf
    elif fault == "duplicates":
        pred = pd.concat([pred, pred.head(7)], ignore_index=True)
    elif fault == "holes":
        pred, true = pred[pred["user_id"] >= 5], true[true["user_id"] < 50]
    elif fault == "short":
        pred = pred[~first | (pred["score"] > 0.5)]
    elif fault == "long truth":
        true = pd.concat([true, pred.loc[first, ["user_id", "item_id"]]]).drop_duplicates()
    elif fault == "ties":
        pred.loc[first, "score"] = [0.9] * 8 + [0.5, 0.4, 0.3, 0.2]
    elif fault == "scores of another name":
        pred = pred.rename(columns={"score": "rating"})
    elif fault == "constant":
        pred["score"] = 1.0
    elif fault == "rank from 0":
        pred = pred.assign(rank=pred.groupby("user_id").cumcount())
    elif fault == "rank gaps":
        rank = pred.groupby("user_id").cumcount() + 1
        pred = pred.assign(rank=rank.where(~first | (rank < 5), rank + 2))
    elif fault == "rank against score":
        pred = pred.assign(rank=13 - (pred.groupby("user_id").cumcount() + 1))
    elif fault == "rows against scores":
        pred["score"] = 1 - pred["score"]
    elif fault == "outside":
        options["items"] = list(range(39))
    elif fault == "seen":
        options["log"] = pred[["user_id", "item_id"]]
    elif fault == "constant relevance":
        true["relevance"], options["relevance_col"] = 2.0, "relevance"
    elif fault == "negative relevance":
        true["relevance"], options["relevance_col"] = -1.0, "relevance"
    return true, pred, options


FAULTS = [
    ("string ids", "item ids that cannot match", "error", 720),
    ("leading zeros", "item ids that only look different", "warning", None),
    ("float text", "item ids that only look different", "warning", None),
    ("null ids", "null ids in true", "error", 4),
    ("null scores", "null scores", "error", 1),
    ("infinite scores", "infinite scores", "warning", 1),
    ("duplicates", "duplicate rows in pred", "warning", 7),
    ("holes", "lists without recommendations", "warning", 5),
    ("holes", "lists without truth", "info", 10),
    ("short", "lists shorter than 10", "info", 1),
    ("long truth", "more than 10 relevant items", "info", 1),
    ("ties", "equal scores", "info", 1),
    ("constant", "constant scores", "warning", 60),
    ("constant", "ties across rank 10", "warning", 60),
    ("scores of another name", "a column of numbers in pred is not used", "info", 720),
    ("rank from 0", "ranks that do not start at 1", "warning", 60),
    ("rank gaps", "ranks with gaps", "warning", 1),
    ("rank against score", "score order that contradicts the ranks", "warning", 60),
    ("rows against scores", "row order that contradicts the scores", "warning", 60),
    ("outside", "items of pred outside the catalogue", "warning", None),
    ("seen", "recommendations already in the log", "warning", 600),
    ("seen", "relevant items already in the log", "warning", None),
    ("constant relevance", "constant relevance", "info", 180),
    ("negative relevance", "negative, null or infinite relevance", "error", 180),
]


@pytest.mark.few(10)
@pytest.mark.parametrize(("fault", "finding", "severity", "count"), FAULTS)
def test_planted_fault_is_found(fault: str, finding: str, severity: str, count: int | None) -> None:
    true, pred, options = plant(fault)
    found = findings(true, pred, **options)
    assert found[finding]["severity"] == severity
    if count is not None:
        assert found[finding]["count"] == count


@pytest.mark.few(8)
@pytest.mark.parametrize("fault", sorted({fault for fault, *_ in FAULTS}))
def test_a_fault_is_not_taken_for_others(fault: str) -> None:
    true, pred, options = plant(fault)
    expected = {finding for planted, finding, *_ in FAULTS if planted == fault}
    # Without its null rows, a user has no truth; item 39 is in both frames.
    expected |= {
        "null ids": {"lists without truth"},
        "outside": {"items of true outside the catalogue"},
    }.get(fault, set())
    assert set(findings(true, pred, **options)) == expected


@pytest.mark.parametrize("row", [0, 5])
def test_rows_against_scores_are_found_beside_a_row_without_a_user(row: int) -> None:
    true, pred, _ = plant("rows against scores")
    pred["user_id"] = pred["user_id"].astype("Int64").mask(np.arange(len(pred)) == row)
    found = findings(true, pred)
    assert found["null ids in pred"]["count"] == 1
    assert found["row order that contradicts the scores"]["count"] == 60


def test_tie_range_is_the_best_and_the_worst_order() -> None:
    true = {"u": ["b", "d"]}
    pred = pd.DataFrame({"user_id": "u", "item_id": list("abcd"), "score": [3.0, 2.0, 2.0, 2.0]})
    effect = rd.check(true, pred, k=2).set_index("finding").loc["ties across rank 2", "effect"]
    # b or d at rank 2, or neither: precision 0 or 1/2, mrr 0 or 1/2
    assert "precision@2 from 0 to 0.5" in effect
    assert "mrr@2 from 0 to 0.5" in effect


def test_no_overlap_and_empty() -> None:
    true, pred = clean()
    assert (
        findings(true, pred.assign(user_id=pred["user_id"] + 1000))["no user in common"]["severity"]
        == "error"
    )
    assert (
        findings(true, pred.assign(item_id=pred["item_id"] + 1000))["no item in common"]["severity"]
        == "error"
    )
    for pair, name in (
        ((true, pred.head(0)), "pred is empty"),
        ((true.head(0), pred), "true is empty"),
    ):
        found = findings(*pair)
        assert list(found) == [name]
        assert (found[name]["severity"], found[name]["count"], found[name]["share"]) == (
            "error",
            1,
            1.0,
        )
    assert list(findings({}, {})) == ["true is empty", "pred is empty"]


@pytest.mark.long
@pytest.mark.parametrize("by", [None, "model"])
def test_side_ids_that_cannot_match_or_are_null(by: str | None) -> None:
    true, pred = clean()
    pred, options = pred.assign(model="a"), {"by": by}
    log = pd.DataFrame({"user_id": [0, 1], "item_id": [1000, 1001]})
    for column, ids in (("item_id", ["x", "y"]), ("user_id", ["x", "y"])):
        found = findings(true, pred, log=log.assign(**{column: ids}), **options)
        assert list(found) == ["ids of log that cannot match"]
        assert found["ids of log that cannot match"][["severity", "count"]].tolist() == ["error", 2]
        assert f"log['{column}'] string ids" in found["ids of log that cannot match"]["examples"]
    found = findings(true, pred, items=[str(i) for i in range(40)], **options)
    assert list(found) == ["ids of items that cannot match"]
    holes = pd.Series([*range(40), None], dtype="Int64")
    assert findings(true, pred, items=holes, **options)["null ids in items"]["count"] == 1
    found = findings(true, pred, log=log.assign(item_id=pd.array([None, 3], "Int64")), **options)
    assert found["null ids in log"][["severity", "count"]].tolist() == ["error", 1]
    assert list(findings(true, pred, log=log.assign(item_id=True), **options)) == [
        "ids of an unusable type"
    ]
    for strange in (
        log.assign(user_id=-1),
        log.head(0),
        log.assign(item_id=pd.array([None, None], "Int64")),
    ):
        assert set(findings(true, pred, log=strange, **options)) <= {"null ids in log"}


@pytest.mark.long
def test_every_finding_has_examples() -> None:
    for fault in sorted({fault for fault, *_ in FAULTS}):
        true, pred, options = plant(fault)
        assert all(row["examples"] for row in findings(true, pred, **options).values()), fault


def test_examples_of_repeated_rows_and_strange_items() -> None:
    true, pred = clean()
    first = np.flatnonzero(pred.merge(true, how="left", indicator=True)["_merge"] == "both")[
        0
    ]  # a hit
    again = pd.concat([pred, pred[pred.index == first]], ignore_index=True).assign(model="m")
    pair = tuple(pred.loc[first, ["user_id", "item_id"]].astype(int))
    assert findings(true, again)["duplicate rows in pred"]["examples"] == repr(pair)
    assert findings(true, again, by="model")["duplicate rows in pred"]["examples"] == repr(
        ("m", *pair)
    )
    assert findings(true, again, judged_only=True)["duplicate rows in pred"]["examples"] == repr(
        pair
    )
    twice = pd.concat([true, true.tail(1)], ignore_index=True)
    assert findings(twice, pred)["duplicate rows in true"]["examples"] == repr(
        tuple(map(int, true.iloc[-1]))
    )
    found = findings(
        true.sample(frac=1, random_state=4), pred.sample(frac=1, random_state=5), items=range(39)
    )
    assert {row["examples"] for row in found.values()} == {"39"}


def test_long_truth_limits_recall_and_not_precision() -> None:
    effect = findings(*plant("long truth")[:2])["more than 10 relevant items"]["effect"]
    assert "mean recall@10 cannot pass" in effect
    assert "precision@10 is not limited there" in effect


def test_constant_scores_beside_ranks() -> None:
    true, pred = clean()
    pred["rank"] = pred.groupby("user_id").cumcount() + 1
    found = findings(true, pred.assign(score=pred["user_id"] / 7))
    assert list(found) == ["constant scores"]
    assert found["constant scores"][["severity", "count"]].tolist() == ["info", 60]
    one = pred.assign(score=pred["score"].where(pred.index == 0, 0.5))
    assert rd.check(true, one).empty


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["user", "item"])
@pytest.mark.parametrize("text", [False, True])
def test_one_model_with_nothing_in_common(what: str, text: bool) -> None:
    true, pred = clean()
    column = f"{what}_id"
    both = pd.concat(
        [pred.assign(model="bad", **{column: pred[column] + 100}), pred.assign(model="good")],
        ignore_index=True,
    )
    if text:
        true, both = true.astype({column: str}), both.astype({column: str})
    for frame in (both, both.sample(frac=1, random_state=1), both.sort_values("user_id")):
        row = findings(true, frame, by="model")[f"no {what} in common"]
        assert row[["severity", "count", "share", "examples"]].tolist() == [
            "error",
            720,
            0.5,
            "'bad'",
        ]
        assert row["effect"] == "every list of model = 'bad' scores 0"
    row = findings(true, both.assign(version=1), by=["model", "version"])[f"no {what} in common"]
    assert row["examples"] == "('bad', 1)"
    # A row without a model stands first, and is of none of them.
    null = pd.concat(
        [pred.head(1).assign(model=None, **{column: true[column].iloc[0]}), both.iloc[::-1]]
    )
    assert findings(true, null, by="model")[f"no {what} in common"]["examples"] == "'bad'"
    assert rd.check(true, both[both["model"] == "good"], by="model").empty


def test_inputs_stay_and_by_names_the_model() -> None:
    true, pred = clean()
    log = pred[["user_id", "item_id"]].copy()
    both = pd.concat(
        [pred.assign(model="a", item_id=pred["item_id"] + 50), pred.assign(model="b")],
        ignore_index=True,
    )
    before = both.copy(deep=True)
    found = findings(true, both, log=log, by="model")
    assert found["recommendations already in the log"]["by"] == "b"
    assert found["recommendations already in the log"]["count"] == 600
    pd.testing.assert_frame_equal(both, before)


def sampled(
    n_lists: int, n_others: int, n_items: int, popular: float = 0.0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One relevant item a user among others, drawn evenly or, with `popular`, by a power of the
    popularity rank."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, n_items + 1) ** popular
    items = [
        rng.choice(n_items, n_others + 1, replace=False, p=chance / chance.sum())
        for _ in range(n_lists)
    ]
    users = np.repeat(np.arange(n_lists), n_others + 1)
    pred = pd.DataFrame(
        {"user_id": users, "item_id": np.concatenate(items), "score": rng.random(len(users))}
    )
    pred = pd.concat([pred.assign(model=model, score=rng.random(len(users))) for model in "ab"])
    return pd.DataFrame({"user_id": range(n_lists), "item_id": [some[0] for some in items]}), pred


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("args", "n_lists"),
    [
        ((100, 100, 2000), 100),
        ((100, 9, 500), 100),  # few, but drawn evenly
        ((100, 99, 500, 1.0), 100),  # drawn by popularity, but many
        ((100, 9, 500, 1.0), 0),  # may be slates with one click each
        ((30, 50, 51), 0),  # the whole catalogue
        ((9, 99, 500), 0),  # few lists of a model
    ],
)
def test_sampled_candidates(args: tuple[int, int, int], n_lists: int) -> None:
    found = findings(*sampled(*args), by="model")
    assert ("candidates look sampled" in found) == (n_lists > 0)
    if n_lists:
        row = found["candidates look sampled"]
        assert (row["severity"], row["count"], row["share"]) == ("warning", n_lists, 1.0)
        assert (
            f"rd.diagnostics.sampled_values(metric, n_items=..., n_sampled={args[1]})"
            in row["effect"]
        )


def test_lists_that_miss_relevant_items_are_not_sampled_candidates() -> None:
    true, pred = sampled(100, 100, 2000)
    missed = true.assign(item_id=true["item_id"].where(true.index % 5 > 0, -1))
    assert "candidates look sampled" not in findings(missed, pred, by="model")


@pytest.mark.parametrize("kind", ["category", object, "string[pyarrow]"])
def test_null_ids_of_any_dtype_are_counted_and_are_no_examples(kind):
    true = pd.DataFrame({"user_id": [1, 2], "item_id": [None, "b"]}).astype({"item_id": kind})
    pred = true.assign(score=1.0)
    found = rd.check(true, pred).set_index("finding")
    assert found.loc[["null ids in true", "null ids in pred"], "count"].tolist() == [1, 1]
    other = pred.assign(item_id=pd.Series([None, "c"], dtype=kind))
    found = rd.check(true, other).set_index("finding")
    assert found.loc["no item in common", "examples"] == "true ['b'], pred ['c']"
