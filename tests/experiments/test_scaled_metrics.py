"""A metric times a constant, such as hits = 5 × precision@5, has the p of the metric in every test.

Rounding differs between the two: it must neither rank differences of one size nor break the tie of
two equal sums.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from quick import few

import recdf as rd

SCALES = (5, 3, 1 / 3, 0.1, 1e6, 1e-6)


def models(hits, k=5):
    """A table of two models with precision@5, and that times constants."""
    frames = [
        pd.DataFrame({"model": name, "user_id": np.arange(len(own)), "precision": own / k})
        for name, own in zip("ab", hits, strict=True)
    ]
    table = pd.concat(frames, ignore_index=True)
    return table.assign(**{f"times {scale}": table["precision"] * scale for scale in SCALES})


def random_hits(seed, n=40):
    return np.random.default_rng(seed).integers(0, 6, (2, n)).astype(float)


@pytest.mark.few(1)
@pytest.mark.parametrize("alternative", few(["two-sided", "greater", "less"], 2))
@pytest.mark.parametrize(
    ("test", "weights"),
    [*product(["t", "randomization", "bootstrap"], [False, True]), ("wilcoxon", False)],
)
def test_models_have_the_same_p_for_a_metric_times_a_constant(test, alternative, weights):
    metrics = ["precision", *(f"times {scale}" for scale in SCALES)]
    options = {"test": test, "alternative": alternative, "n_resamples": 64}
    for seed, n in ((0, 9), (1, 30)):
        table = models(random_hits(seed, n)).assign(w=lambda x: 1 + x["user_id"] % 3)
        weight = {"weight_col": "w"} if weights else {}
        found = rd.compare_models(
            table, metrics=metrics, baseline="a", correction="none", **options, **weight
        )
        assert found["p_value"].to_numpy() == pytest.approx(found["p_value"][0], rel=1e-9)
        counts = found[["wins", "ties", "losses"]].to_numpy()
        assert (counts == counts[0]).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("alternative", few(["two-sided", "greater", "less"], 2))
@pytest.mark.parametrize("test", ["t", "permutation", "bootstrap"])
def test_variants_have_the_same_p_for_a_metric_times_a_constant(test, alternative):
    metrics = ["precision", *(f"times {scale}" for scale in SCALES)]
    options = {"test": test, "alternative": alternative, "n_resamples": 64}
    for seed, n in ((0, 8), (1, 30)):
        table = models(random_hits(seed, n)).assign(user_id=np.arange(2 * n))
        found = rd.compare_variants(
            table, metrics, variant_col="model", control="a", correction="none", **options
        )
        assert found["p_value"].to_numpy() == pytest.approx(found["p_value"][0], rel=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("test", ["wilcoxon", "randomization", "bootstrap"])
def test_as_many_gains_as_losses_of_one_size_are_no_difference(test):
    """Half of the users gain a hit and half lose one, at every level of precision."""
    level = np.arange(80) % 4 + np.where(np.arange(80) < 40, 0.0, 1.0)
    hits = np.array([level, level + np.where(np.arange(80) < 40, 1.0, -1.0)])
    found = rd.compare_models(models(hits), metrics="precision", test=test).iloc[0]
    assert (found["wins"], found["ties"], found["losses"]) == (40, 0, 40)
    assert found["p_value"] > 0.9


@pytest.mark.long
def test_the_exact_randomization_test_counts_equal_sums_as_ties():
    """By hand, in fractions: the share of sign patterns with |T*| ≥ |T|."""
    of_seeds = [random_hits(seed, 8) for seed in range(30)]
    tables = [models(hits)["precision"].rename(f"m{i}") for i, hits in enumerate(of_seeds)]
    found = rd.compare_models(
        models(of_seeds[0])[["model", "user_id"]].join(pd.concat(tables, axis=1)),
        metrics=[one.name for one in tables],
        test="randomization",
        correction="none",
        details=True,
    )
    for hits, row in zip(of_seeds, found.to_dict("records"), strict=True):
        d = [Fraction(int(b - a), 5) for a, b in hits.T]
        d = [one for one in d if one]
        sums = [
            sum(s * one for s, one in zip(signs, d, strict=True))
            for signs in product((-1, 1), repeat=len(d))
        ]
        share = sum(abs(one) >= abs(sum(d)) for one in sums) / len(sums)
        assert row["p_value"] == pytest.approx(share, abs=1e-12)
        assert row["n_resamples"] == 2 ** len(d)
