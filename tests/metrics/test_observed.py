"""Recall, precision, ndcg, mapr and mrr with propensities: golden numbers, an oracle, a known
truth, and refusals."""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run
from oracles.lists import match_lists
from oracles.observed import OBSERVED
from registry.seeded import assert_close, column_options, frames, records

import recdf as rd

GOLDEN = Path(__file__).parents[1] / "golden"
METRICS = list(OBSERVED)
PARAMETERS = {
    "recall": [{"divisor": "achievable"}],
    "precision": [{"divisor": "achievable"}],
    "mapr": [{"normalizer": "achievable"}],
    "mrr": [{"of": "all"}],
    "ndcg": [
        {"gain": "exp2"},
        {"gain": "binary", "discount": "jk", "log_base": 3},
        {"tied": "averaged"},
    ],
}
EACH = [(name, params) for name in METRICS for params in [{}, *PARAMETERS[name]]]


def observed(seed):
    """Seeded frames with a propensity in `true` that depends on the item."""
    true, pred = frames(seed, top=2.0)
    chance = np.random.default_rng(seed + 7).choice([0.02, 0.1, 0.3, 0.5, 0.8, 1.0], 20)
    return true.assign(propensity=chance[true["item_id"]]), pred


def test_golden_numbers():
    rows = pd.read_csv(GOLDEN / "weighted_recall.csv")
    expected = pd.DataFrame(
        json.loads((GOLDEN / "inference.json").read_text(encoding="utf-8"))["weighted_recall"]
    )
    pred = rows[["user_id", "item_id", "score"]]
    judged = {"relevance_col": "relevant", "propensity_col": "propensity"}
    for true, options in (
        (rows, judged),
        (rows[rows["relevant"] == 1], {"propensity_col": "propensity"}),
    ):
        found = rd.evaluate(true.drop(columns="score"), pred, "recall", k=[5, 10], **options)
        assert_close(found.per_user["recall@5"], expected["ips_recall@5"])
        assert_close(found.per_user["recall@10"], expected["ips_recall@10"])
        assert found.spec["options"]["propensity_col"] == "propensity"


@pytest.mark.long
@pytest.mark.parametrize(("name", "params"), EACH, ids=str)
def test_equals_the_oracle(name, params):
    for seed, k, duplicates in itertools.product((1, 2), (1, 4, 20), ("drop", "keep")):
        true, pred = observed(seed)
        pred = pred[pred["model"] == "a"]
        shared = {
            "order": "score",
            "relevance": True,
            "duplicates": duplicates,
            "nan_score": "last",
        }
        options, given = column_options(shared, pred)
        oracle_params = {n: value for n, value in params.items() if n != "tied"}
        if params.get("tied") == "averaged":  # without ties, ties do not matter
            given = given.assign(score=np.random.default_rng(seed).permutation(len(given)) / 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rd.RecdfWarning)
            found = getattr(rd, name).per_user(
                true, given, k, **params, **options, propensity_col="propensity"
            )
        lists = match_lists(records(true), records(given), k, **shared)
        expected = [OBSERVED[name](one, **oracle_params) for one in lists.values()]
        assert found["user_id"].tolist() == list(lists)
        assert_close(found.iloc[:, -1], expected, (seed, k, duplicates))


def test_ties_share_their_discounts():
    """Two items with one score have the mean discount of their ranks, (1 + 1/log2 3)/2, and v of 1
    and 4."""
    true = pd.DataFrame({"user_id": 1, "item_id": ["a", "b"], "p": [1.0, 0.25]})
    pred = pd.DataFrame({"user_id": 1, "item_id": ["b", "x"], "score": [0.5, 0.5]})
    share = (1 + 1 / np.log2(3)) / 2
    assert rd.ndcg(true, pred, 2, tied="averaged", propensity_col="p") == pytest.approx(
        4 * share / (4 + 1 / np.log2(3)), rel=1e-12
    )


def test_only_ratios_matter_and_equal_propensities_change_nothing():
    true, pred = observed(3)
    options = {
        "by": "model",
        "relevance_col": "relevance",
        "score_col": "score",
        "nan_score": "last",
    }
    texts = [
        f"{name}({','.join(f'{n}={v}' for n, v in params.items())})@4" for name, params in EACH
    ]
    texts = [text.replace("()", "") for text in texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        plain = rd.evaluate(true, pred, texts, **options)
        equal = rd.evaluate(true.assign(p=0.3), pred, texts, **options, propensity_col="p")
        found = rd.evaluate(true, pred, texts, **options, propensity_col="propensity")
        scaled = rd.evaluate(
            true.assign(p=true["propensity"] / 7), pred, texts, **options, propensity_col="p"
        )
        floor = rd.evaluate(
            true, pred, texts, **options, propensity_col="propensity", propensity_floor=1
        )
    for one, two in ((equal, plain), (floor, plain), (scaled, found)):
        assert_close(one.per_user[texts], two.per_user[texts])
    values = found.per_user[texts].to_numpy()
    assert ((values >= 0) & (values <= 1) | np.isnan(values)).all()
    assert not np.allclose(values, plain.per_user[texts], equal_nan=True)


def test_comes_near_the_truth_that_popular_items_hide():
    """Each user wants 80 of 200 items. Popular ones are observed four times as often, and rank
    first."""
    rng = np.random.default_rng(0)
    n_users, n_items = 400, 200
    chance = np.where(np.arange(n_items) < 40, 0.8, 0.2)
    wants = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :80]
    whole = pd.DataFrame({"user_id": np.repeat(np.arange(n_users), 80), "item_id": wants.ravel()})
    whole["propensity"] = chance[whole["item_id"]]
    seen = whole[rng.random(len(whole)) < whole["propensity"]]
    pred = {user: list(range(50)) for user in seen["user_id"].unique()}
    truth = rd.recall(whole, pred, 50)
    plain, weighed = (
        rd.recall(seen, pred, 50),
        rd.recall(seen, pred, 50, propensity_col="propensity"),
    )
    assert truth == pytest.approx(0.25, abs=0.01)
    assert plain > 0.45
    assert weighed == pytest.approx(truth, abs=0.03)


def test_within_groups_of_items():
    true, pred = observed(4)
    items = pd.DataFrame({"item_id": range(20), "kind": ["x", "y"] * 10})
    options = {
        "relevance_col": "relevance",
        "score_col": "score",
        "nan_score": "last",
        "propensity_col": "propensity",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        found = rd.evaluate(
            true, pred[pred["model"] == "a"], METRICS, 5, items=items, item_by="kind", **options
        )
        some = rd.evaluate(
            true[true["item_id"] % 2 == 0], pred[pred["model"] == "a"], METRICS, 5, **options
        )
    assert_close(found.summary.query("kind == 'x'")["value"], some.summary["value"])


# ----------------------------------------------------------------------------------------------
# other ways in


@pytest.mark.long
def test_files_and_the_command_give_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    true, pred = observed(5)
    true.to_parquet("true.parquet")
    pred.to_parquet("pred.parquet")
    options = {
        "by": "model",
        "relevance_col": "relevance",
        "score_col": "score",
        "nan_score": "last",
    }
    options |= {"propensity_col": "propensity", "propensity_floor": 0.05}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        expected = rd.evaluate(true, pred, METRICS, [2, 5], **options)
        assert (
            rd.evaluate_parquet(
                "true.parquet", "pred.parquet", METRICS, [2, 5], buckets=4, **options
            )
            == expected
        )
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        files = ["evaluate", "--true", "true.parquet", "--pred", "pred.parquet", "--out", "out"]
        assert run(capsys, *files, "-m", *METRICS, "-k", 2, 5, *flags)[0] == 0
    assert rd.read_parquet("out") == expected
    true.assign(propensity=true["propensity"].where(true.index != 3)).to_parquet("true.parquet")
    with pytest.raises(rd.DataError, match=r"true\['propensity'\] holds 1 null propensities"):
        rd.evaluate_parquet("true.parquet", "pred.parquet", "recall", buckets=4, **options)
    assert "1 null propensities" in fails(capsys, *files[:-2], "-m", "recall", *flags)


def test_popularity_propensity_joins():
    log = pd.DataFrame({"user_id": [1, 2, 3, 1], "item_id": ["a", "a", "a", "b"]})
    true = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"]})
    true = true.merge(rd.ope.popularity_propensity(log, gamma=1), on="item_id", how="left")
    assert true["propensity"].tolist() == pytest.approx([1, 1 / 3])
    assert rd.recall(true, {1: ["b", "x"]}, 2, propensity_col="propensity") == pytest.approx(3 / 4)


# -------------------------------------------------------------------------------------------------
# bad input

TRUE = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"], "p": [0.5, 0.1, 1.0]})
PRED = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"]})
BAD = [
    (
        [0.5, np.nan, 1.0],
        "recall",
        {},
        rd.DataError,
        r"true\['p'\] holds 1 null propensities of 3 .*join leaves null",
    ),
    (
        [0.5, 0.0, -1.0],
        "recall",
        {},
        rd.DataError,
        r"holds 2 zero or negative propensities of 3 \(0.0, -1.0\)",
    ),
    ([0.5, 0.0, 1.0], "recall", {}, rd.DataError, "propensity_floor= above 0 makes zeros usable"),
    (
        [0.5, 0.0, -1.0],
        "recall",
        {"propensity_floor": 0.1},
        rd.DataError,
        r"holds 1 zero or negative .* of 3 \(-1.0\)",
    ),
    ([-0.5, -0.1, -3.0], "recall", {}, rd.DataError, "look like logarithms"),
    (
        [0.5, 1.5, np.inf],
        "recall",
        {},
        rd.DataError,
        r"holds 2 larger than 1 propensities of 3 \(1.5, inf\)",
    ),
    (["x", "y", "z"], "recall", {}, rd.DataError, r"true\['p'\] holds string values"),
    ([0.5, 0.1, 1.0], "hitrate", {}, rd.OptionError, "hitrate@10 has no form with propensity_col="),
    (
        [0.5, 0.1, 1.0],
        "rbp(p=0.5)@3",
        {},
        rd.OptionError,
        r"rbp\(p=0.5\)@3 has no form with propensity_col=",
    ),
    (
        [0.5, 0.1, 1.0],
        "precision(divisor=shown)",
        {},
        rd.OptionError,
        "divisor=\"shown\" has no form .* take 'k' or",
    ),
    ([0.5, 0.1, 1.0], "mapr(normalizer=hits)", {}, rd.OptionError, 'normalizer="hits" has no form'),
    ([0.5, 0.1, 1.0], "ndcg(ideal=k)", {}, rd.OptionError, 'ideal="k" has no form'),
    ([0.5, 0.1, 1.0], "recall", {"propensity_col": "q"}, rd.ColumnError, "true has no column 'q'"),
    (
        [0.5, 0.1, 1.0],
        "recall",
        {"propensity_floor": -0.1},
        rd.OptionError,
        "propensity_floor=-0.1; expected a number",
    ),
    (
        [0.5, 0.1, 1.0],
        "recall",
        {"propensity_floor": "x"},
        rd.OptionError,
        "propensity_floor='x'; expected a number",
    ),
    (
        [0.5, 0.1, 1.0],
        "recall",
        {"propensity_col": None, "propensity_floor": 0.1},
        rd.OptionError,
        "propensity_floor=0.1 needs propensity_col=",
    ),
]


@pytest.mark.parametrize(("values", "text", "options", "error", "words"), BAD)
def test_bad_input(values, text, options, error, words):
    with pytest.raises(error, match=words):
        rd.evaluate(TRUE.assign(p=values), PRED, text, **{"propensity_col": "p", **options})


@pytest.mark.long
@pytest.mark.parametrize("duplicates", ["drop", "keep"])
def test_an_item_of_a_list_has_one_propensity(duplicates, tmp_path):
    """In whatever order the rows stand, two propensities of one item are refused; equal ones are
    not."""
    rows = pd.DataFrame(
        {"user_id": [1, 1, 1, 2], "item_id": [1, 1, 2, 1], "p": [0.5, 0.1, 0.5, 0.2]}
    )
    pred = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 3, 1]})
    options = {"propensity_col": "p", "duplicates": duplicates}
    words = (
        r"true\['p'\] differs in 1 of the rows that repeat an item of a list: "
        r"\(1, 1\) has 0\.\d and 0\.\d"
    )
    for order in itertools.permutations(range(4)):
        with pytest.raises(rd.DataError, match=words):
            rd.recall(rows.iloc[list(order)], pred, 2, **options)
    for name, frame in (("true", rows), ("pred", pred)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(rd.DataError, match=words):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall", buckets=3, **options
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.DuplicateWarning)
        equal = [
            rd.recall(rows.assign(p=[0.5, 0.5, 0.1, 0.2]).iloc[list(order)], pred, 2, **options)
            for order in itertools.permutations(range(4))
        ]
    # List 2 has all. Item 1 of list 1 counts 2 and item 2 counts 10, or with "keep" 2 of 2 + 2 +
    # 10.
    assert equal == pytest.approx([(1 + (1 / 6 if duplicates == "drop" else 1 / 7)) / 2] * 24)


def test_a_propensity_of_zero_counts_as_the_floor():
    found = rd.recall(
        TRUE.assign(p=[0.5, 0.0, 1.0]), PRED, 1, propensity_col="p", propensity_floor=0.1
    )
    assert (
        found
        == rd.recall(TRUE.assign(p=[0.5, 0.1, 1.0]), PRED, 1, propensity_col="p")
        == pytest.approx(1 / 12)
    )


def test_metrics_of_pred_alone_do_not_mind():
    found = rd.evaluate(
        TRUE, PRED, ["recall", "coverage", "entropy"], items=["a", "b"], propensity_col="p"
    )
    assert found.summary["metric"].tolist() == ["recall", "coverage", "entropy"]
    assert rd.entropy(PRED, propensity_col="p") == rd.entropy(PRED)


def test_check_names_bad_propensities():
    found = rd.check(TRUE.assign(p=[0.5, np.nan, 2.0]), PRED, 1, propensity_col="p").set_index(
        "finding"
    )
    assert found.loc[
        ["null propensity", "propensity above 1"], ["severity", "count"]
    ].to_numpy().tolist() == [
        ["error", 1],
        ["error", 1],
    ]
