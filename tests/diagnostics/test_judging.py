"""Agreement of labels equals slow oracles; lists to judge are drawn with the chance that the table
says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd

agree = rd.diagnostics.label_agreement


def frame(rows: list[tuple[Any, ...]], *more: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user_id", "item_id", "relevance", *more])


def slow_alpha(x: list[float], y: list[float], level: str) -> float:
    """Krippendorff's alpha of two observers, pair by pair of labels, as his book defines it."""
    labels = [*x, *y]
    counts = {grade: labels.count(grade) for grade in labels}

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = sorted((a, b))
        between = sum(n for grade, n in counts.items() if low <= grade <= high)
        return (between - (counts[a] + counts[b]) / 2) ** 2 if a != b else 0.0

    found = sum(distance(a, b) for a, b in zip(x, y, strict=True)) / len(x)
    chance = [distance(a, b) for a, b in itertools.permutations(labels, 2)]
    return 1 - found / (sum(chance) / len(chance))


def random_labels(seed: int, n: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    human = frame(
        [
            (i // 4, f"i{i % 4}", int(rng.integers(4)), "old" if i % 8 < 4 else "new")
            for i in range(n)
        ],
        "age",
    )
    kept = rng.random(n) < 0.6
    return human, human.drop(columns="age").assign(
        relevance=np.where(kept, human["relevance"], rng.integers(0, 4, n))
    )


@pytest.mark.long
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(3))
def test_agreement_equals_oracles(level: Any, seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    human, cheap = random_labels(seed)
    table = agree(human, cheap.sample(frac=1, random_state=seed), by="age", level=level)
    assert table["age"].tolist()[1:] == ["new", "old"]
    assert table["age"].isna().tolist() == [True, False, False]
    parts = [human["age"] != "", human["age"] == "new", human["age"] == "old"]
    for row, of in zip(table.to_dict("records"), parts, strict=True):
        x, y = human.loc[of, "relevance"].tolist(), cheap.loc[of, "relevance"].tolist()
        assert row["kappa"] == pytest.approx(metrics.cohen_kappa_score(x, y))
        assert row["weighted_kappa"] == pytest.approx(
            metrics.cohen_kappa_score(x, y, weights="quadratic")
        )
        assert row["alpha"] == pytest.approx(slow_alpha(x, y, level))
        assert row["equal"] == pytest.approx(metrics.accuracy_score(x, y))
        for grade in range(4):
            one = {"labels": [grade], "average": "macro", "zero_division": np.nan}
            assert row[f"recall_{grade}"] == pytest.approx(
                metrics.recall_score(x, y, **one), nan_ok=True
            )
            assert row[f"precision_{grade}"] == pytest.approx(
                metrics.precision_score(x, y, **one), nan_ok=True
            )


@pytest.mark.long
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_intervals_of_agreement_are_near_those_of_the_jackknife_over_users(level: Any) -> None:
    human, cheap = random_labels(3, 400)
    row = agree(human, cheap, level=level).iloc[0]
    users = human["user_id"].unique()
    without = pd.DataFrame(
        [agree(human[human["user_id"] != u], cheap, level=level).iloc[0] for u in users]
    )
    reach = stats.t.ppf(0.975, len(users) - 1)
    for name, low in (
        ("kappa", "kappa_low"),
        ("weighted_kappa", "weighted_kappa_low"),
        ("alpha", "alpha_low"),
    ):
        values = without[name].astype(float)
        se = np.sqrt((len(users) - 1) / len(users) * ((values - values.mean()) ** 2).sum())
        assert (row[name] - row[low]) / reach == pytest.approx(se, rel=0.05)
        assert row[f"{name}_high"] == pytest.approx(2 * row[name] - row[low])


def test_agreement_by_hand() -> None:
    human = frame(
        [("u", "a", 1, 7), ("u", "b", 0, 7), ("v", "a", 1, 8), ("v", "b", 0, 8), ("v", "c", 1, 8)],
        "segment",
    )
    cheap = frame([("u", "a", 1), ("u", "b", 1), ("v", "a", 1), ("v", "b", 0), ("w", "a", 1)])
    table = agree(human, cheap, by="segment", level="nominal")
    one = table.iloc[0]
    assert [one["n_pairs"], one["n_users"], one["n_not_paired"]] == [4, 2, 1]
    # Equal in 3 of 4, by chance in (2·3 + 2·1)/16 = .5; of 8 labels 5 are 1, so that D_e =
    # 2·5·3/(8·7).
    assert one["kappa"] == one["weighted_kappa"] == 0.5
    assert one["alpha"] == pytest.approx(1 - 0.25 / (30 / 56))
    # Differences 0, 1 | 0, 0 with mean .25: sums less 2·.25 are .5 and −.5, so se² = 2/1·(.25 +
    # .25)/16 = .0625.
    assert one["bias"] == 0.25
    t = 12.706204736432095
    assert [one["ci_low"], one["ci_high"]] == pytest.approx([0.25 - t * 0.25, 0.25 + t * 0.25])
    assert one[["recall_0", "precision_0", "recall_1", "precision_1"]].tolist() == pytest.approx(
        [0.5, 1, 1, 2 / 3]
    )
    assert str(table["segment"].dtype) == "Int64"
    assert table["segment"].tolist()[1:] == [7, 8]
    assert table["n_not_paired"].tolist() == [1, 0, 1]
    assert table.loc[1, ["ci_low", "ci_high"]].isna().all()  # one user


def test_agreement_of_equal_labels_is_null() -> None:
    human = frame([(user, "a", 0.1) for user in "uvwxyz"])  # their mean is not exactly 0.1
    row = agree(human, human).iloc[0]
    assert row[["equal", "bias", "recall_0.1"]].tolist() == [1, 0, 1]
    assert row[["kappa", "weighted_kappa", "alpha"]].isna().all()


def test_agreement_does_not_depend_on_the_order_of_rows_and_changes_no_input() -> None:
    human, cheap = random_labels(5)
    before = human.copy(), cheap.copy()
    table = agree(human, cheap, by=["age"])
    pd.testing.assert_frame_equal(table, agree(human[::-1], cheap[::-1], by="age"))
    pd.testing.assert_frame_equal(human, before[0])
    pd.testing.assert_frame_equal(cheap, before[1])


def test_min_relevance_compares_relevant_or_not() -> None:
    rng = np.random.default_rng(0)
    human, _ = random_labels(1)
    cheap = human.assign(relevance=rng.random(len(human)) * 3)
    with pytest.raises(rd.DataError, match=r"60 different labels.*min_relevance"):
        agree(human, cheap)
    table = agree(human, cheap, min_relevance=2)
    binary = [one.assign(relevance=(one["relevance"] >= 2).astype(int)) for one in (human, cheap)]
    pd.testing.assert_frame_equal(table, agree(*binary))


GOOD = frame([("u", "a", 1, "x"), ("v", "a", 0, "y")], "by")


@pytest.mark.parametrize(
    ("human", "cheap", "options", "error", "match"),
    [
        (GOOD, GOOD.assign(item_id="z"), {}, rd.EmptyPopulationError, "in common"),
        (GOOD, GOOD.iloc[:0], {}, rd.EmptyPopulationError, "in common"),
        (
            pd.concat([GOOD, GOOD[:1]]),
            GOOD,
            {},
            rd.DuplicateError,
            r"human has several rows per .*: 1 rows too many \(\('u', 'a'\)\)",
        ),
        (GOOD, pd.concat([GOOD, GOOD[:1]]), {}, rd.DuplicateError, "cheap has several rows per"),
        (
            GOOD,
            GOOD.drop(columns="relevance"),
            {},
            rd.ColumnError,
            "cheap has no column 'relevance'",
        ),
        (GOOD, GOOD, {"by": "segment"}, rd.ColumnError, "human has no column 'segment'"),
        (GOOD.assign(kappa=1), GOOD, {"by": "kappa"}, rd.OptionError, "column of the result"),
        (GOOD.assign(by=["x", None]), GOOD, {"by": "by"}, rd.NullKeyError, "by"),
        (GOOD.assign(relevance=[1, None]), GOOD, {}, rd.DataError, "null or infinite"),
        (GOOD, GOOD.assign(relevance="good"), {}, rd.DataError, "relevance"),
        (GOOD.assign(user_id=["u", None]), GOOD, {}, rd.NullKeyError, "user_id"),
        (GOOD, GOOD.assign(user_id=[1, 2]), {}, rd.IdTypeError, "user_id"),
        (GOOD, GOOD, {"level": "ratio"}, rd.OptionError, "nominal"),
        (GOOD, GOOD, {"confidence": 95}, rd.OptionError, "confidence"),
        (GOOD, GOOD, {"min_relevance": "high"}, rd.OptionError, "min_relevance"),
    ],
)
def test_agreement_refuses(
    human: Any, cheap: Any, options: Any, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        agree(human, cheap, **options)


def two_models(n_users: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = [
        (model, user, item, float(-place))
        for model, user in itertools.product("ab", range(n_users))
        for place, item in enumerate(rng.permutation(8)[:5])
    ]
    return pd.DataFrame(rows, columns=["model", "user_id", "item_id", "score"])


PRED = two_models()
USERS = pd.DataFrame({"user_id": range(40), "plan": ["free"] * 20 + ["paid"] * 12 + ["trial"] * 8})
SPREAD = pd.DataFrame({"user_id": range(40), "d": [-1.0, 1.0] * 10 + [-3.0, 3.0] * 6 + [5.0] * 8})


def drawn_by_stratum(rows: pd.DataFrame) -> dict[str, int]:
    return rows.groupby("stratum")["user_id"].nunique().to_dict()


@pytest.mark.parametrize("allocation", ["proportional", "neyman"])
def test_probabilities_are_the_drawn_share_of_each_stratum(allocation: Any) -> None:
    spread = SPREAD if allocation == "neyman" else None
    rows = rd.diagnostics.sample_to_judge(PRED, 14, k=3, by="model", strata=USERS, spread=spread)
    assert list(rows.columns) == ["user_id", "item_id", "stratum", "probability"]
    lists = rows.drop_duplicates("user_id")
    assert len(lists) == 14
    drawn, size = drawn_by_stratum(rows), {"free": 20, "paid": 12, "trial": 8}
    assert lists["probability"].tolist() == [drawn[one] / size[one] for one in lists["stratum"]]
    assert (1 / lists["probability"]).sum() == pytest.approx(40)
    top = PRED[PRED.groupby(["model", "user_id"])["score"].rank(ascending=False) <= 3]
    for user, own in rows.groupby("user_id"):
        assert own["item_id"].tolist() == sorted(set(top.loc[top["user_id"] == user, "item_id"]))


def test_allocations_by_hand() -> None:
    # N = 20, 12, 8 → 10, 6, 4 of 20. S is √(20/19), 3·√(12/11) and 0, so that the third stratum has
    # its two lists.
    even = rd.diagnostics.sample_to_judge(PRED, 20, by="model", strata=USERS)
    assert drawn_by_stratum(even) == {"free": 10, "paid": 6, "trial": 4}
    options = {"by": "model", "strata": USERS, "spread": SPREAD}
    # N·S = 20.52 and 37.60: 16 lists beside the two of "trial" are 5.65 and 10.35.
    assert drawn_by_stratum(rd.diagnostics.sample_to_judge(PRED, 18, **options)) == {
        "free": 6,
        "paid": 10,
        "trial": 2,
    }
    # 28 would be 9.9 and 18.1, of which "paid" has 12; the rest goes to "free".
    assert drawn_by_stratum(rd.diagnostics.sample_to_judge(PRED, 30, **options)) == {
        "free": 16,
        "paid": 12,
        "trial": 2,
    }
    assert drawn_by_stratum(rd.diagnostics.sample_to_judge(PRED, 40, **options)) == {
        "free": 20,
        "paid": 12,
        "trial": 8,
    }
    none = {**options, "spread": SPREAD.assign(d=1.0)}  # nothing varies: as proportional
    assert drawn_by_stratum(rd.diagnostics.sample_to_judge(PRED, 20, **none)) == {
        "free": 10,
        "paid": 6,
        "trial": 4,
    }


@pytest.mark.parametrize("seed", range(5))
def test_neyman_allocation_has_the_least_variance_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    users = USERS.assign(plan=rng.choice(list("xyz"), 40))
    spread = SPREAD.assign(d=rng.normal(size=40) * users["plan"].map({"x": 1, "y": 4, "z": 0.3}))
    rows = rd.diagnostics.sample_to_judge(PRED, 12, by="model", strata=users, spread=spread)
    by = spread["d"].groupby(users["plan"])
    n, s = by.size().to_numpy(), by.std().to_numpy()
    ways = [w for w in itertools.product(*(range(2, most + 1) for most in n)) if sum(w) == 12]
    best = min(ways, key=lambda way: (n**2 * s**2 / np.array(way)).sum())
    assert tuple(drawn_by_stratum(rows).values()) == best


def test_a_stratum_of_one_list_is_taken_whole() -> None:
    users = USERS.assign(plan=["one", *["rest"] * 39])
    assert drawn_by_stratum(rd.diagnostics.sample_to_judge(PRED, 3, by="model", strata=users)) == {
        "one": 1,
        "rest": 2,
    }


def test_the_draw_depends_on_seed_and_ids_alone() -> None:
    options = {"by": "model", "strata": USERS, "k": 3}
    rows = rd.diagnostics.sample_to_judge(PRED, 14, **options)
    shuffled = {**options, "strata": USERS[::-1]}
    pd.testing.assert_frame_equal(
        rows, rd.diagnostics.sample_to_judge(PRED.sample(frac=1, random_state=1), 14, **shuffled)
    )
    assert not rows.equals(rd.diagnostics.sample_to_judge(PRED, 14, seed=1, **options))
    assert set(rows["user_id"]) < set(
        rd.diagnostics.sample_to_judge(PRED, 25, **options)["user_id"]
    )


@pytest.mark.long
def test_every_list_is_drawn_as_often_as_its_probability_says() -> None:
    seen = np.zeros(40)
    for seed in range(200):
        rows = rd.diagnostics.sample_to_judge(PRED, 14, k=1, by="model", strata=USERS, seed=seed)
        seen[rows["user_id"].unique()] += 1
    probability = USERS["plan"].map(rows.groupby("stratum")["probability"].first()).to_numpy()
    z = (seen - 200 * probability) / np.sqrt(200 * probability * (1 - probability))
    assert np.abs(z).max() < 4


def test_judged_pairs_and_lists_are_left_out() -> None:
    top = PRED[PRED["score"] > -2]  # the first two of each model
    whole, part = top[top["user_id"] < 10], top[(top["user_id"] == 10) & (top["model"] == "a")]
    judged = pd.concat([whole, part])[["user_id", "item_id"]].drop_duplicates()
    rows = rd.diagnostics.sample_to_judge(PRED, 30, k=2, by="model", judged=judged)
    assert rows["user_id"].min() >= 10
    assert (rows["probability"] == 1).all()
    assert rows.merge(judged).empty
    with pytest.raises(rd.OptionError, match=r"n=31.* of 30 lists .* from 2 to 30"):
        rd.diagnostics.sample_to_judge(PRED, 31, k=2, by="model", judged=judged)
    with pytest.raises(rd.EmptyPopulationError, match="judged has all"):
        rd.diagnostics.sample_to_judge(
            PRED, 3, judged=PRED[["user_id", "item_id"]].drop_duplicates(), by="model"
        )


def test_stratum_may_be_a_column_of_pred_and_keys_several_columns() -> None:
    pred = PRED.assign(day=PRED["user_id"] % 2, plan=PRED["user_id"].map(USERS["plan"]))
    rows = rd.diagnostics.sample_to_judge(
        pred, 10, by="model", user_col=["user_id", "day"], strata="plan"
    )
    assert list(rows.columns[:3]) == ["user_id", "day", "item_id"]
    share = {"free": 5 / 20, "paid": 3 / 12, "trial": 2 / 8}
    assert rows["probability"].tolist() == rows["stratum"].map(share).tolist()
    with pytest.raises(rd.DuplicateError, match="strata has"):
        rd.diagnostics.sample_to_judge(
            pred.assign(plan=pred["item_id"]), 10, by="model", strata="plan"
        )


@pytest.mark.parametrize(
    ("n", "options", "error", "match"),
    [
        (41, {}, rd.OptionError, "n=41.* of 40 lists .* from 2 to 40"),
        (0, {}, rd.OptionError, "n=0"),
        (5, {"strata": USERS}, rd.OptionError, "n=5.* in 3 strata.* from 6 to 40"),
        (9, {"strata": USERS[:39]}, rd.DataError, r"strata has no 'plan' for 1 of 40 lists \(39\)"),
        (
            9,
            {"strata": USERS.assign(plan=None)},
            rd.DataError,
            "strata has no 'plan' for 40 of 40 lists",
        ),
        (9, {"strata": USERS[:0]}, rd.RecdfError, "strata|plan|user_id"),
        (9, {"strata": "plan"}, rd.ColumnError, "pred has no column 'plan'"),
        (
            9,
            {"strata": USERS.drop(columns="user_id")},
            rd.ColumnError,
            "strata has no column 'user_id'",
        ),
        (9, {"strata": USERS.assign(age=1)}, rd.OptionError, "'plan', 'age'.* expected one"),
        (9, {"strata": USERS[["user_id"]]}, rd.OptionError, "expected one"),
        (
            9,
            {"strata": pd.concat([USERS, USERS[:1]])},
            rd.DuplicateError,
            "strata has several rows",
        ),
        (9, {"spread": SPREAD.assign(d=np.inf)}, rd.DataError, "infinite"),
        (
            9,
            {"spread": SPREAD[1:]},
            rd.DataError,
            "spread has no 'd' for 1 of 40",
        ),
        (9, {"spread": SPREAD.assign(d="much")}, rd.DataError, "spread"),
        (9, {"judged": PRED[["user_id"]]}, rd.ColumnError, "judged has no column 'item_id'"),
        (9, {"k": 0}, rd.OptionError, "k=0"),
        (9, {"seed": -1}, rd.OptionError, "seed"),
        (9, {"score_col": "points"}, rd.ColumnError, "points"),
        (9, {"ties": "wrong"}, rd.OptionError, "ties"),
    ],
)
def test_drawing_refuses(n: int, options: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        rd.diagnostics.sample_to_judge(PRED, n, **{"by": "model", **options})


def test_columns_to_judge_may_be_called_by_numbers():
    pred = pd.DataFrame({0: [1, 1, 2, 2], 1: list("abab"), "score": [2, 1, 2, 1]})
    found = rd.diagnostics.sample_to_judge(pred, 2, k=1, user_col=0, item_col=1)
    own = rd.diagnostics.sample_to_judge(pred.rename(columns={0: "user_id", 1: "item_id"}), 2, k=1)
    assert found.columns[:2].tolist() == [0, 1]
    pd.testing.assert_frame_equal(found.set_axis(own.columns, axis=1), own)
