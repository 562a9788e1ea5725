"""`recdf plan` gives the tables of `plan_experiment` and `plan_comparison`."""

import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import SHOP, sessions, shown, written

import recdf as rd

EX = rd.experiments


def test_plan_writes_what_the_function_gives(capsys, folder):
    SHOP.log.to_parquet("log.parquet")
    code, out, err = run(
        capsys,
        "plan",
        "ab",
        "--metric",
        "revenue@10",
        "ctr=hits@10/n_pred",
        "--rel-effect",
        "0.05",
        "--guardrail",
        "revenue@10=-10%",
        "--log",
        "log.parquet",
        "--time-col",
        "timestamp",
        "--n-comparisons",
        "2",
        "--bounds",
        "revenue@10=0,9000",
        "--out",
        "out",
    )
    assert (code, err) == (0, "")
    assert "days" in out
    want = EX.plan_experiment(
        shown().per_user,
        {"revenue@10": "revenue@10", "ctr": ("hits@10", "n_pred")},
        rel_effect=0.05,
        guardrails={"revenue@10": "-10%"},
        arrivals=EX.arrivals_by_day(SHOP.log, time_col="timestamp"),
        n_comparisons=2,
        bounds={"revenue@10": (0, 9000)},
    )
    pd.testing.assert_frame_equal(written("out/plan.parquet"), want, check_dtype=False)
    assert run(capsys, "plan", "ab", "--metric", "revenue@10", "--n", "900", "--sequential")[0] == 0
    assert "pass exactly one of --n and --rel-effect" in fails(capsys, "plan", "ab")


def test_plan_of_models(capsys, folder):
    rd.evaluate(SHOP.true, SHOP.pred, ["ndcg"], k=10, by="model").to_parquet("all")
    call = ["plan", "all", "--baseline", "popularity", "--rel-diff", "0.05", "--out", "out"]
    assert run(capsys, *call)[0] == 0
    per_user = rd.read_parquet("all").per_user
    want = EX.plan_comparison(per_user, "ndcg@10", baseline="popularity", rel_diff=0.05)
    pd.testing.assert_frame_equal(written("out/plan.parquet"), want, check_dtype=False)
    assert "no such model" in fails(capsys, "plan", "all", "--baseline", "old", "--diff", "1")
    for how in ((), ("--how", "sum")):
        assert "all has several models" in fails(capsys, "plan", "all", "--rel-effect", ".1", *how)
    assert "no column of models" in fails(capsys, "plan", "ab", "--baseline", "old", "--diff", "1")


@pytest.mark.long
def test_a_plan_counts_users_and_not_their_sessions(capsys, folder):
    visits = rd.evaluate(
        sessions(SHOP.true),
        sessions(SHOP.shown),
        "hits@10",
        users="pred",
        user_col=["user_id", "session"],
    )
    visits.to_parquet("visits")
    SHOP.log.to_parquet("log.parquet")
    call = [
        "plan",
        "visits",
        "--rel-effect",
        "0.05",
        "--log",
        "log.parquet",
        "--time-col",
        "timestamp",
    ]
    assert "several rows of a user_id, and a plan counts users; --how sum" in fails(capsys, *call)
    assert "--log needs --time-col" in fails(capsys, *call[:-2], "--how", "sum")
    assert run(capsys, *call, "--how", "sum", "--out", "out")[0] == 0
    users = EX.roll_up(visits.per_user, "user_id", {"hits@10": "sum"})
    want = EX.plan_experiment(
        users,
        "hits@10",
        rel_effect=0.05,
        arrivals=EX.arrivals_by_day(SHOP.log, time_col="timestamp"),
    )
    pd.testing.assert_frame_equal(written("out/plan.parquet"), want, check_dtype=False)
