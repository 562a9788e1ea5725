"""Intervals of several tests read together: they agree with the adjusted p-values, and are as wide
as those ask."""

import itertools

import numpy as np
import pandas as pd
import pytest
from quick import few
from scipy import stats

import recdf as rd


def frames(seed, n=60, effects=(0.0, 0.06, 0.09, 0.12, 0.3)):
    """Models whose differences from the first lie near the border of what is shown."""
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 0.3, n)
    return {
        f"m{i}": pd.DataFrame({"user_id": range(n), "m": base + rng.normal(effect, 0.25, n)})
        for i, effect in enumerate(effects)
    }


def agrees(table, low="ci_low", high="ci_high"):
    """Whether each interval excludes 0 exactly where the test rejects."""
    known = table[low].notna()
    return ((table[low] > 0) | (table[high] < 0))[known].eq(table["reject"][known]).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("correction", "test"),
    few(
        itertools.product(
            ["holm", "bh", "bonferroni", "hochberg", "sidak", "holm_sidak", "by"],
            ["t", "randomization", "bootstrap"],
        ),
        [("holm", "t"), ("bonferroni", "t")],
    ),
)
def test_an_interval_excludes_zero_where_its_test_rejects(test, correction):
    late = 0
    # With effects that a later step shows; the steps are the same for every test.
    for seed in (3, 4, 5) if test == "t" else (5,):
        for options in ({"baseline": "m0"}, {}):
            table = rd.compare_models(
                frames(seed),
                test=test,
                correction=correction,
                n_resamples=400,
                **options,
                details=True,
            )
            assert agrees(table)
            late += int((table["reject"] & (table["p_value"] > 0.05 / len(table))).sum())
    assert late or correction in ("bonferroni", "sidak")  # some are shown by a later step only


def test_a_family_of_m_tests_has_intervals_of_one_minus_alpha_over_m():
    data = frames(1)
    table = rd.compare_models(data, baseline="m0", correction="bonferroni", details=True).set_index(
        "model"
    )
    for name in ("m1", "m2", "m3", "m4"):
        d = data[name]["m"] - data["m0"]["m"]
        expected = stats.ttest_1samp(d, 0).confidence_interval(1 - 0.05 / 4)
        assert table.loc[name, ["ci_low", "ci_high"]].tolist() == pytest.approx(
            [*expected], rel=1e-9
        )
    alone = rd.compare_models(
        {name: data[name] for name in ("m0", "m1")}, correction="holm", details=True
    ).iloc[0]
    single = stats.ttest_1samp(data["m1"]["m"] - data["m0"]["m"], 0).confidence_interval(0.95)
    assert [alone["ci_low"], alone["ci_high"]] == pytest.approx([*single], rel=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("correction", "level"),
    [
        ("sidak", 0.95 ** (1 / 4)),
        ("holm_sidak", 0.95 ** (1 / 4)),
        ("hochberg", 1 - 0.05 / 4),
        ("by", 1 - 0.05 / 4 / (1 + 1 / 2 + 1 / 3 + 1 / 4)),
    ],
)
def test_each_correction_has_the_intervals_of_its_first_step(correction, level):
    data = frames(1, effects=(0.0, 0.0, 0.01, 0.02, 0.5))
    table = rd.compare_models(data, baseline="m0", correction=correction, details=True).set_index(
        "model"
    )
    assert table["reject"].tolist() == [False, False, False, True]
    for name in ("m1", "m2", "m3", "m4"):
        d = data[name]["m"] - data["m0"]["m"]
        expected = stats.ttest_1samp(d, 0).confidence_interval(level)
        assert table.loc[name, ["ci_low", "ci_high"]].tolist() == pytest.approx(
            [*expected], rel=1e-9
        )


def test_the_last_step_of_holm_sidak_is_a_single_test():
    data = frames(1, effects=(0.0, 0.5, 0.6, 0.1))
    table = rd.compare_models(data, baseline="m0", correction="holm_sidak", details=True).set_index(
        "model"
    )
    p = table.loc["m3", "p_value"]
    assert 1 - 0.95 ** (1 / 3) < p <= 0.05
    assert table.loc["m3", "p_adj"] == pytest.approx(p)
    expected = stats.ttest_1samp(data["m3"]["m"] - data["m0"]["m"], 0).confidence_interval(0.95)
    assert table.loc["m3", ["ci_low", "ci_high"]].tolist() == pytest.approx([*expected], rel=1e-9)


@pytest.mark.long
def test_by_does_not_show_what_bonferroni_of_its_level_would_not():
    """The first step of "by" is stricter than α/m, so an interval of 1 − α/m could leave out 0
    without a rejection."""
    found = []
    for seed in range(40):
        table = rd.compare_models(
            frames(seed, effects=(0.0, 0.08, 0.0, 0.0, 0.0)),
            baseline="m0",
            correction="by",
            details=True,
        )
        assert agrees(table)
        found += table.loc[~table["reject"], "p_value"].tolist()
    assert min(found) < 0.05 / 4


def test_each_family_is_as_wide_as_its_own_tests_ask():
    data = {name: frame.assign(n=frame["m"] * 2) for name, frame in frames(2).items()}
    table = rd.compare_models(data, baseline="m0", family="metric", details=True)
    alone = rd.compare_models(data, "m", baseline="m0", details=True)
    own = table[table["metric"] == "m"].reset_index(drop=True)
    assert own["ci_low"].tolist() == pytest.approx(alone["ci_low"].tolist(), rel=1e-12)


def users(seed, n=400):
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 4, n)
    return pd.DataFrame(
        {
            "user_id": range(n),
            "variant": np.array([*"ABCD"])[arm],
            "m": rng.normal(3 + 0.3 * arm, 1),
            "w": rng.gamma(2, 1 + 0.2 * arm),
        }
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("relative", ["fieller", "log"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_variants_have_the_intervals_of_a_higher_confidence(relative, alternative):
    options = {"control": "A", "relative": relative, "alternative": alternative}
    table = rd.compare_variants(
        users(3), ["m", "w"], correction="bonferroni", **options, details=True
    )
    alone = rd.compare_variants(
        users(3), ["m", "w"], correction="none", confidence=1 - 0.05 / 6, **options, details=True
    )
    names = ["ci_low", "ci_high"]
    names += (
        ["rel_ci_low", "rel_ci_high"] if (relative, alternative) == ("fieller", "two-sided") else []
    )
    np.testing.assert_allclose(table[names], alone[names], rtol=1e-8)
    near = table[["rel_ci_low", "rel_ci_high"]].to_numpy()
    np.testing.assert_allclose(near, alone[["rel_ci_low", "rel_ci_high"]], rtol=0.05, atol=0.01)


@pytest.mark.long
@pytest.mark.parametrize(
    "options", few([{}, {"strata": "half"}, {"cluster": "half"}, {"test": "permutation"}], 2)
)
def test_intervals_of_variants_agree_with_their_verdicts(options):
    for seed in range(6):
        data = users(seed).assign(
            half=lambda frame: frame["user_id"] % (4 if "strata" in options else 40)
        )
        table = rd.compare_variants(
            data, ["m", "w"], control="A", n_resamples=300, **options, details=True
        )
        assert agrees(table)
        if "test" not in options:
            assert agrees(table, "rel_ci_low", "rel_ci_high")


def test_the_words_beside_the_interval_agree_with_it(capsys):
    table = rd.compare_models(frames(4), baseline="m0", details=True)
    shown = rd.experiments.report_table(table).frame
    for effect, verdict in zip(shown["effect (95% CI)"], shown["verdict"], strict=True):
        low, high = effect.split("[")[1].rstrip("]").replace("−", "-").split(", ")
        assert (float(low) > 0 or float(high) < 0) == verdict.startswith(("better", "worse"))


@pytest.mark.long
@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("correction", few(["holm", "none", "by", "holm_sidak"], 1))
def test_one_sided_sequential_intervals_agree_with_their_tests(alternative, correction):
    rejected = 0
    for seed in range(5):
        options = {
            "control": None,
            "sequential_n": 500,
            "alternative": alternative,
            "correction": correction,
        }
        table = rd.compare_variants(users(seed), ["m", "w"], **options, details=True)
        assert (table["method"] == "sequential").all()
        assert np.isinf(table["ci_high" if alternative == "greater" else "ci_low"]).all()
        assert agrees(table)
        assert correction != "none" or agrees(table, "rel_ci_low", "rel_ci_high")
        moments = rd.experiments.variant_moments(users(seed), ["m", "w"])
        same = rd.experiments.compare_variants_from_moments(moments, **options, details=True)
        np.testing.assert_allclose(same["p_value"], table["p_value"], rtol=1e-9)
        rejected += int(table["reject"].sum())
    assert rejected > 0 or alternative == "less"


@pytest.mark.long
@pytest.mark.parametrize("correction", ["holm", "by", "sidak"])
def test_relative_intervals_of_sequential_tests_agree_with_them_too(correction):
    rejected = 0
    for seed in range(8):
        table = rd.compare_variants(
            users(seed),
            ["m", "w"],
            control=None,
            sequential_n=400,
            correction=correction,
            details=True,
        )
        assert agrees(table)
        assert agrees(table, "rel_ci_low", "rel_ci_high")
        rejected += int(table["reject"].sum())
    assert rejected


def test_sequential_intervals_of_a_family_are_those_of_its_level():
    """The normal mixture of α, read at α/m: p = α/m is where its bound is 0 (Waudby-Smith et al.
    2023)."""
    table = rd.compare_variants(
        users(3), ["m", "w"], control="A", sequential_n=400, correction="bonferroni", details=True
    )
    alpha, m, n = 0.05, 6, table["n_control"] + table["n_treatment"]
    rho = (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / 400
    a = n * rho + 1
    half = table["se"] * np.sqrt(2 * a / (n * rho) * np.log(np.sqrt(a) * m / alpha))
    np.testing.assert_allclose(table["ci_low"], table["diff"] - half, rtol=1e-9)
    np.testing.assert_allclose(table["ci_high"], table["diff"] + half, rtol=1e-9)
