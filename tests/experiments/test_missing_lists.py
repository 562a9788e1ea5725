"""A model that lacks lists: every place says both verdicts, of all lists and of those that both
models have."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.cli import main

N = 400


def recommended(lost=0, better=0.7, seed=0):
    """Model `new` has more hits than `old`, and lacks the lists of the first users."""
    rng = np.random.default_rng(seed)
    users = np.arange(N)
    hit = {"old": rng.random(N) < 0.5, "new": rng.random(N) < better}
    rows = [(m, u, 0 if hit[m][u] else 1) for m in hit for u in users if m == "old" or u >= lost]
    return pd.DataFrame(rows, columns=["model", "user_id", "item_id"])


def evaluated(**options):
    true = pd.DataFrame({"user_id": range(N), "item_id": 0})
    return rd.evaluate(true, recommended(**options), ["hitrate@1"], by="model")


def test_the_comparison_is_that_of_the_lists_that_both_have():
    result = evaluated(lost=150)
    row = result.compare_models(baseline="old", details=True).iloc[0]
    wide = result.per_user.pivot(index="user_id", columns="model", values="hitrate@1")
    d = (wide["new"] - wide["old"])[wide.index >= 150]
    test = stats.ttest_1samp(d, 0)
    assert [row["n_lacking_model"], row["n_lacking_baseline"], row["n_both"]] == [150, 0, 250]
    assert row["diff_both"] == pytest.approx(d.mean(), rel=1e-12)
    # As many standard errors as the interval of all lists has.
    assert row["ci_high_both"] - row["diff_both"] == pytest.approx(
        stats.t.ppf(0.975, N - 1) * d.std(ddof=1) / np.sqrt(250), rel=1e-9
    )
    assert test.pvalue < 0.001
    assert row["verdict"] in (
        "worse, but better where both have lists",
        "no difference shown, but better where both have lists",
    )
    assert "missing_lists" in row["remarks"].split("; ")
    assert row["mean_model_both"] == pytest.approx(wide["new"][wide.index >= 150].mean(), rel=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (0, "better"),
        (5, "better"),  # a few lists less change nothing
        (300, "worse, but better where both have lists"),
        (385, "worse, but not shown where both have lists"),  # 15 lists are too few to tell
    ],
)
def test_the_verdict_says_where_it_does_not_hold(lost, verdict):
    row = evaluated(lost=lost, better=0.85).compare_models(baseline="old", details=True).iloc[0]
    assert row["verdict"] == verdict
    assert ("missing_lists" in row["remarks"]) == (", but " in verdict)
    turned = evaluated(lost=lost, better=0.85).compare_models(baseline="new", details=True).iloc[0]
    assert turned["diff_both"] == pytest.approx(-row["diff_both"], rel=1e-12) or lost == 0


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_every_place_says_it(tmp_path, capsys):
    result = evaluated(lost=300, better=0.85)
    said = (
        "new lacks 300 of 400 lists that the other has, and counts as 0 there. Where both have "
        "lists, hitrate@1 is"
    )
    board = rd.leaderboard(result, baseline="old")
    assert said in str(board)
    assert not any(board.frame["marks"])  # neither better nor worse
    segments = pd.DataFrame({"user_id": range(N), "half": ["a", "b"] * (N // 2)})
    tests = rd.leaderboard(result, baseline="old", segments=segments).comparisons
    assert "worse, but better" in " ".join(tests["verdict"])
    page = rd.report(result, tmp_path / "r.html", baseline="old").read_text(encoding="utf-8")
    assert "tests on 400 lists, where a list without recommendations counts as 0; p-values" in page
    assert "lists that both models have; p-values" not in page
    result.to_parquet(tmp_path / "r")
    assert main(["compare", str(tmp_path / "r"), "--baseline", "old"]) == 0
    printed = capsys.readouterr().out
    assert said in printed
    assert "worse, but better where both have lists" in printed


def test_resampling_needs_nothing_more():
    table = evaluated(lost=300, better=0.85).compare_models(
        baseline="old", test="randomization", n_resamples=500, details=True
    )
    assert table["verdict"].iloc[0] == "worse, but better where both have lists"
    one_sided = (
        evaluated(lost=300, better=0.85)
        .compare_models(baseline="old", alternative="greater", details=True)
        .iloc[0]
    )
    assert one_sided["verdict"] == "no difference shown, but better where both have lists"
    assert one_sided["ci_high_both"] == np.inf
