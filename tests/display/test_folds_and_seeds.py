"""One row a model where a result holds folds or repeated trainings: leaderboard and report."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

pytestmark = pytest.mark.usefixtures("without_pictures")

SHOP = rd.sample_shop()
LISTS = SHOP.pred.query("model != 'random'")


@pytest.fixture(scope="module")
def folds():
    true = SHOP.true.assign(fold=SHOP.true.groupby("user_id").cumcount() % 3)
    pred = pd.concat([LISTS.assign(fold=fold) for fold in range(3)])
    by = ["model", "fold"]
    metrics = ["ndcg@10", "coverage@10"]
    return rd.evaluate(true, pred, metrics, by=by, by_in_true=True, items=SHOP.items)


@pytest.fixture(scope="module")
def seeds():
    noise = np.random.default_rng(0)
    pred = pd.concat(
        [
            LISTS.assign(seed=s, score=LISTS["score"] + noise.normal(0, 0.3, len(LISTS)))
            for s in range(4)
        ]
    )
    return rd.evaluate(SHOP.true, pred, "ndcg@10", by=["model", "seed"])


@pytest.mark.long
def test_a_user_counts_once_with_the_mean_over_folds(folds):
    board = rd.leaderboard(folds, baseline="popularity", fold="fold")
    of_users = folds.per_user.groupby(["model", "user_id"])["ndcg@10"].mean()
    means = of_users.groupby("model").agg(["mean", "sem", "size"])
    rows = board.frame.query("metric == 'ndcg@10'").set_index("model")
    assert rows["value"].to_dict() == pytest.approx(means["mean"].to_dict(), abs=1e-12)
    assert rows["n"].to_dict() == means["size"].to_dict()
    half = (rows["ci_high"] - rows["ci_low"]) / 2
    assert half.to_dict() == pytest.approx((1.959964 * means["sem"]).to_dict(), rel=1e-3)
    coverage = board.frame.query("metric == 'coverage@10'").set_index("model")["value"]
    each = folds.summary.query("metric == 'coverage'").groupby("model")["value"].mean()
    assert coverage.to_dict() == pytest.approx(each.to_dict())
    assert "A user counts once, with the mean over fold." in board.notes


@pytest.mark.long
def test_differences_are_those_of_a_comparison_with_folds(folds):
    board = rd.leaderboard(folds, baseline="popularity", fold="fold", metrics="ndcg@10")
    table = folds.compare_models("ndcg@10", model_col="model", fold="fold", baseline="popularity")
    own = board.comparisons[["diff", "se", "ci_low", "p_value"]].to_numpy(float)
    assert own == pytest.approx(table[["diff", "se", "ci_low", "p_value"]].to_numpy(float))


@pytest.mark.long
def test_the_spread_over_seeds_stands_beside_the_interval_over_users(seeds):
    board = rd.leaderboard(seeds, baseline="popularity", seed_col="seed")
    each = seeds.per_user.groupby(["model", "seed"])["ndcg@10"].mean()
    spread = each.groupby("model").std()
    rows = board.frame.set_index("model")
    assert rows["seed_sd"].to_dict() == pytest.approx(spread.to_dict(), abs=1e-12)
    assert f"± {spread['knn']:.4f} over seeds" in str(board)
    small = abs(rows["value"]["knn"] - rows["value"]["popularity"])
    assert small < spread.max()
    said = [note for note in board.notes if "less than the spread over seeds" in note]
    assert said == [
        f"knn and popularity differ by {small:.4f} in ndcg@10, less than the spread over seeds "
        f"({spread.max():.4f})."
    ]


@pytest.mark.long
def test_the_report_says_what_the_leaderboard_says(seeds, tmp_path):
    page = rd.report(seeds, tmp_path / "page.html", seed_col="seed").read_text(encoding="utf-8")
    assert "less than the spread over seeds" in page
    assert "popularity · 0" not in page


def test_columns_that_tell_no_lists_apart_are_named(folds, seeds):
    with pytest.raises(rd.OptionError, match=r"seed_col='sed' tells no lists apart.*'seed'"):
        rd.leaderboard(seeds, seed_col="sed")
    with pytest.raises(rd.OptionError, match="no models are left"):
        rd.leaderboard(folds, fold=["model", "fold"])
