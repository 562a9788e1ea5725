"""sampled_values against the definition by exact fractions, and on simulated ranks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import recdf as rd


def metric_at(metric, rank, k, n_items):
    within = k is None or rank <= k
    return {
        "recall": float(within),
        "hitrate": float(within),
        "ndcg": within / math.log2(rank + 1),
        "mrr": within / rank,
        "map": within / rank,
        "auc": (n_items - rank) / (n_items - 1),
    }[metric]


def expected(values, rank, n_items, n_sampled):
    """Mean of the values when the rank in the catalogue is known."""
    return stats.binom.pmf(np.arange(n_sampled + 1), n_sampled, (rank - 1) / (n_items - 1)) @ values


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::recdf.FewNegativesWarning")
@pytest.mark.parametrize("metric", ["recall", "ndcg", "mrr"])
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0])
def test_values_minimise_bias_and_variance(metric, k, gamma):
    n_items, n_sampled = 40, 4
    values = rd.diagnostics.sampled_values(
        metric, n_items=n_items, n_sampled=n_sampled, k=k, gamma=gamma
    )

    def loss(values):
        total = 0.0
        for rank in range(1, n_items + 1):
            mean = expected(values, rank, n_items, n_sampled)
            variance = expected(values**2, rank, n_items, n_sampled) - mean**2
            total += (mean - metric_at(metric, rank, k, n_items)) ** 2 + gamma * variance
        return total

    least = loss(values)
    for j in range(n_sampled + 1):
        for step in (-1e-3, 1e-3):
            moved = values.copy()
            moved[j] += step
            assert loss(moved) > least


@pytest.mark.filterwarnings("ignore::recdf.FewNegativesWarning")
def test_no_negatives_are_left_out():
    half = Fraction(1, 2)
    # Three items and one negative: rank 1, 2, 3 has the negative above it with chance 0, 1/2, 1.
    chance = [[Fraction(1), Fraction(0)], [half, half], [Fraction(0), Fraction(1)]]
    gamma = Fraction(1, 4)
    squares = [[sum(row[i] * row[j] for row in chance) for j in range(2)] for i in range(2)]
    system = [[(1 - gamma) * squares[i][j] for j in range(2)] for i in range(2)]
    for i in range(2):
        system[i][i] += gamma * sum(row[i] for row in chance)
    wanted = [chance[0][0], chance[0][1]]  # recall@1 is 1 at rank 1 alone
    determinant = system[0][0] * system[1][1] - system[0][1] * system[1][0]
    solved = [
        (wanted[0] * system[1][1] - system[0][1] * wanted[1]) / determinant,
        (system[0][0] * wanted[1] - wanted[0] * system[1][0]) / determinant,
    ]
    values = rd.diagnostics.sampled_values("recall", n_items=3, n_sampled=1, k=1, gamma=0.25)
    assert values.tolist() == pytest.approx([float(one) for one in solved], abs=1e-12)


def test_auc_is_unbiased_as_it_is():
    values = rd.diagnostics.sampled_values("auc", n_items=500, n_sampled=20)
    for rank in (1, 7, 250, 500):
        assert expected(values, rank, 500, 20) == pytest.approx(
            metric_at("auc", rank, None, 500), abs=1e-12
        )


def test_every_sampled_rank_is_a_rank_when_all_items_are_sampled_often():
    # With γ near 0 and few items the correction is nearly unbiased.
    values = rd.diagnostics.sampled_values("ndcg", n_items=12, n_sampled=11, k=5, gamma=1e-12)
    for rank in range(1, 13):
        assert expected(values, rank, 12, 11) == pytest.approx(
            metric_at("ndcg", rank, 5, 12), abs=1e-4
        )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::recdf.FewNegativesWarning")
@pytest.mark.parametrize("metric", ["recall", "ndcg", "mrr"])
def test_correction_is_nearer_than_the_raw_sampled_metric(metric):
    rng = np.random.default_rng(0)
    n_items, n_sampled, k = 2000, 100, 10
    ranks = np.ceil(n_items ** rng.uniform(0, 1, 20_000)).astype(
        int
    )  # many at the top, as of a good model
    sampled = 1 + rng.binomial(n_sampled, (ranks - 1) / (n_items - 1))
    truth = np.mean([metric_at(metric, rank, k, n_items) for rank in ranks])
    raw = np.mean([metric_at(metric, rank, k, n_items) for rank in sampled])
    corrected = rd.diagnostics.sampled_values(
        metric, n_items=n_items, n_sampled=n_sampled, k=k, gamma=0.01
    )[sampled - 1].mean()
    assert abs(corrected - truth) < abs(raw - truth) / 3


STRONG = stats.norm(
    3.5, 1
)  # scores of relevant items; those of the other items are standard normal


@pytest.mark.few(1)
@pytest.mark.parametrize("n_sampled", [20, 200])
def test_how_low_the_values_of_a_strong_model_are(n_sampled):
    """k·m/n below 1 warns and is less than half; from 1 on recall is near, and ndcg and mrr are
    still too low."""
    rng = np.random.default_rng(0)
    n_items, k = 2000, 10
    ranks = 1 + rng.binomial(n_items - 1, stats.norm.sf(STRONG.rvs(5000, random_state=rng) - 0.5))
    sampled = 1 + rng.hypergeometric(ranks - 1, n_items - ranks, n_sampled)
    shares = {}
    for metric in ("recall", "ndcg", "mrr"):
        if n_sampled == 20:
            with pytest.warns(
                rd.FewNegativesWarning, match="0.1 of the first 10 items .* at least 200 negatives"
            ):
                values = rd.diagnostics.sampled_values(
                    metric, n_items=n_items, n_sampled=n_sampled, k=k
                )
        else:
            values = rd.diagnostics.sampled_values(
                metric, n_items=n_items, n_sampled=n_sampled, k=k
            )
        truth = np.mean([metric_at(metric, rank, k, n_items) for rank in ranks])
        shares[metric] = values[sampled - 1].mean() / truth
    assert shares["mrr"] < shares["ndcg"] < shares["recall"]
    if n_sampled == 20:
        assert shares["recall"] < 0.5
    else:
        assert shares["recall"] == pytest.approx(1, abs=0.1)
        assert 0.4 < shares["mrr"] < shares["ndcg"] < 0.9


def test_without_a_cut_off_the_first_ten_ranks_count():
    for metric in ("ndcg", "mrr", "map"):
        with pytest.warns(rd.FewNegativesWarning, match="of the first 10 items"):
            rd.diagnostics.sampled_values(metric, n_items=200, n_sampled=19, k=None)
    assert rd.diagnostics.sampled_values(
        "recall", n_items=200, n_sampled=19, k=None
    ) == pytest.approx(np.ones(20), abs=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "precision"}, ["metric='precision'", "'recall'"]),
        ({"n_items": 1}, ["n_items=1"]),
        ({"n_sampled": 0}, ["n_sampled=0"]),
        ({"n_sampled": 100}, ["n_sampled=100 of n_items=100", "only 99"]),
        ({"k": 0}, ["k=0"]),
        ({"gamma": 0}, ["gamma=0"]),
        ({"gamma": 1.5}, ["gamma=1.5"]),
    ],
)
def test_bad_options(options, words):
    options = {"metric": "recall", "n_items": 100, "n_sampled": 9} | options
    with pytest.raises(rd.OptionError) as found:
        rd.diagnostics.sampled_values(options.pop("metric"), **options)
    assert all(word in str(found.value) for word in words)
