"""A score that is a rank, a rank and a score that contradict each other, a distance: evaluate,
files and the command warn of them, and check lists them. Honest orders are no warning."""

import math

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "c"]})
PRED = pd.DataFrame({"user_id": [1, 1, 1, 2, 2, 2], "item_id": list("abcabc")})
COUNTS, RISES = [1, 2, 3] * 2, [0.1, 0.2, 0.3] * 2

DOUBTFUL = {
    "a score that is a rank": (
        {"score": COUNTS},
        {},
        r"pred\['score'\] is 1, 2, 3, \.\.\. in the order of the rows.* in 2 of 2 lists",
        {"rank_col": "score"},
        "scores that are 1, 2, 3, ... along the rows",
    ),
    "a rank passed as the score": (
        {"position": COUNTS},
        {"score_col": "position"},
        r"pred\['position'\] is 1, 2, 3",
        {"rank_col": "position", "score_col": None},
        "scores that are 1, 2, 3, ... along the rows",
    ),
    "a score against the rank": (
        {"score": RISES, "rank": COUNTS},
        {},
        r"pred\['rank'\] decides the order, and pred\['score'\] says otherwise in 2 of 2 lists",
        {"score_col": "score"},
        "score order that contradicts the ranks",
    ),
    "a distance": (
        {"distance": RISES},
        {"score_col": "distance"},
        r"pred\['distance'\] is a distance by its name.*pass rank_col='distance'",
        {"rank_col": "distance", "score_col": None},
        "distances taken for scores",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("case", DOUBTFUL)
@pytest.mark.parametrize("buckets", [None, 1, 3])
def test_a_doubtful_order_is_a_warning_with_the_argument_to_pass(case, buckets, tmp_path):
    columns, options, words, mended, finding = DOUBTFUL[case]
    pred = PRED.assign(**columns)

    def call(**more):
        if buckets is None:
            return rd.evaluate(TRUE, pred, "mrr@3", **options | more)
        paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
        TRUE.to_parquet(paths[0])
        pred.to_parquet(paths[1])
        return rd.evaluate_parquet(*paths, "mrr@3", buckets=buckets, **options | more)

    with pytest.warns(rd.OrderWarning, match=words) as found:
        call()
    assert [one.filename for one in found] == [__file__]
    assert found[0].message.advice
    call(**mended)
    listed = rd.check(TRUE, pred, 2, **options).set_index("finding")
    assert listed.loc[finding, ["severity", "count"]].tolist() == ["warning", 2]
    assert finding not in rd.check(TRUE, pred, 2, **options | mended)["finding"].tolist()


def test_check_lists_ranks_beside_the_scores_that_a_convention_takes():
    pred = PRED.assign(score=RISES, rank=COUNTS)
    rd.evaluate(TRUE, pred, "mrr@3", like="trec_eval")
    found = rd.check(TRUE, pred, 2, like="trec_eval").set_index("finding")
    finding = found.loc["rank order that contradicts the scores", ["severity", "count"]]
    assert finding.tolist() == ["warning", 2]


def test_audit_lists_it_too():
    found = rd.audit(TRUE, PRED.assign(score=RISES, rank=COUNTS), "ndcg", 3)
    doubts = found.loc[found["finding"] == "ranks and scores that contradict each other"]
    assert doubts[["severity", "count", "share"]].to_numpy().tolist() == [["warning", 2, 1.0]]
    assert "score_col='score'" in doubts["effect"].item()
    honest = rd.audit(TRUE, PRED.assign(score=[3, 2, 1] * 2, rank=COUNTS), "ndcg", 3)
    assert not honest["finding"].str.contains("contradict").any()


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"score": [3, 2, 1] * 2}, {}),  # reversed ranks, best first
        ({"score": [2, 1, 3] * 2}, {}),
        ({"score": [1, 1, 2] * 2}, {}),  # integer scores with ties
        ({"score": [0, 1, 2] * 2}, {}),
        ({"score": COUNTS}, {"score_col": "score"}),  # the caller says so
        ({"score": [1, 2, 3, 9, 7, 5]}, {}),  # one of two lists
        ({"score": [0.3, 0.3, 0.1] * 2, "rank": COUNTS}, {}),
        ({"score": [1.0] * 6, "rank": COUNTS}, {}),
        ({"score": [3, 2, 1, 1, 2, 3], "rank": COUNTS}, {}),  # one of two lists
        ({"score": RISES, "rank": COUNTS}, {"rank_col": "rank"}),  # a list that was ranked again
        ({"score": [None, 2, 1] * 2, "rank": COUNTS}, {}),
        ({"score": list("xyz") * 2, "rank": COUNTS}, {}),
        ({"distance": [-x for x in RISES]}, {"score_col": "distance"}),
        ({"rank": [3, 2, 1] * 2, "score": RISES}, {}),
    ],
)
def test_honest_orders_are_no_warning(columns, options):
    rd.evaluate(TRUE, PRED.assign(**columns), "mrr@3", **options)


def test_rows_in_no_order_are_no_warning_of_check():
    """Integer scores 1 ... n whose rows were shuffled: an honest file that was not sorted."""
    rng = np.random.default_rng(0)
    pred = pd.DataFrame({"user_id": np.repeat(range(60), 9), "item_id": list("abcdefghi") * 60})
    pred["score"] = np.concatenate([rng.permutation(9) + 1 for _ in range(60)])
    true = pred[pred["item_id"] == "a"][["user_id", "item_id"]]
    rd.evaluate(true, pred, "mrr@3")
    found = rd.check(true, pred, 3)
    assert found.loc[found["finding"].str.contains("order|along"), "severity"].tolist() == ["info"]


@pytest.mark.long
def test_the_commands_end_with_1_if_asked(tmp_path, capsys):
    TRUE.to_parquet(tmp_path / "true.parquet")
    PRED.assign(score=COUNTS).to_parquet(tmp_path / "pred.parquet")
    files = ["--true", tmp_path / "true.parquet", "--pred", tmp_path / "pred.parquet"]
    for command in (["evaluate", "-m", "mrr@3"], ["evaluate", "-m", "mrr@3", "--stream"]):
        code, _, err = run(capsys, *command, *files, "--fail-on", "warning")
        assert code == 1
        assert "pass --rank-col score if 1 is the best" in err
        assert run(capsys, *command, *files)[0] == 0
        assert run(capsys, *command, *files, "--rank-col", "score", "--fail-on", "warning")[0] == 0
    assert run(capsys, "check", *files, "-k", 3, "--fail-on", "warning")[0] == 1
    assert run(capsys, "audit", *files, "-k", 3, "--fail-on", "warning")[0] == 1


def test_tied_has_no_effect_where_a_rank_decides(tmp_path):
    """Two equal scores beside ranks: with the score, the mean gain of both ranks counts."""
    true = pd.DataFrame({"user_id": [1], "item_id": ["a"]})
    pred = pd.DataFrame(
        {"user_id": [1, 1], "item_id": ["a", "b"], "rank": [1, 2], "score": [0.5, 0.5]}
    )
    metrics = ["ndcg(tied=averaged)@2", "auc(tied=ranked)@2", "ndcg@2"]
    says = r"tied= has no effect on ndcg\(tied=averaged\)@2: pred\['rank'\] .*score_col='score'"
    with pytest.warns(rd.OrderWarning, match=says):
        assert rd.evaluate(true, pred, metrics).per_user["ndcg(tied=averaged)@2"].tolist() == [1]
    with pytest.warns(rd.OrderWarning, match=says):
        rd.ndcg(true, pred, 2, tied="averaged")
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    with pytest.warns(rd.OrderWarning, match=says):
        rd.evaluate_parquet(tmp_path / "true.parquet", tmp_path / "pred.parquet", metrics)
    found = rd.ndcg(true, pred, 2, tied="averaged", score_col="score")
    assert found == pytest.approx((1 + 1 / math.log2(3)) / 2)
    rd.ndcg(true, pred, 2, tied="averaged", rank_col="rank")  # the caller says that ranks are meant
    rd.ndcg(true, pred, 2, like="sklearn", rank_col="rank")
