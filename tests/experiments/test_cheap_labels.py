"""Few human labels with many cheap ones: ppi-python's numbers, the formula by hand, coverage, and
what is refused."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.stats.prediction_powered import (
    labelled_units,
    powered_mean,
    sampled_mean,
)

HUMAN, CHEAP = [0.2, 0.9, 0.4, 0.7, 0.5, 0.1], [0.3, 0.8, 0.5, 0.5, 0.6, 0.2]
REST = [0.4, 0.6, 0.7, 0.2, 0.5, 0.9, 0.3, 0.1, 0.8, 0.5]
# ppi_mean_ci and ppi_mean_pointestimate of ppi-python 0.2.3 for these lists, alpha=0.05.
PPI_PYTHON = (0.47598174662982506, 0.30925197984989017, 0.64271151340976)


def arrays(*lists):
    return [np.array(one, dtype=np.float64) for one in lists]


def powered_interval(found, confidence):
    """The two-sided interval of the mean, by SciPy's quantile of t."""
    reach = stats.t.ppf((1 + confidence) / 2, found.df) * found.var**0.5
    return found.mean - reach, found.mean + reach


def test_clipped_is_ppi_python():
    found = powered_mean(*arrays(HUMAN, CHEAP, REST), "clipped")
    np.testing.assert_allclose([found.mean, *powered_interval(found, 0.95)], PPI_PYTHON, rtol=1e-9)


def test_the_open_rule_is_the_formula():
    n, n_rest = len(HUMAN), len(REST)
    mean_y, mean_f, mean_rest = sum(HUMAN) / n, sum(CHEAP) / n, sum(REST) / n_rest
    cov = sum((y - mean_y) * (f - mean_f) for y, f in zip(HUMAN, CHEAP, strict=True)) / (n - 1)
    var_f = sum((f - mean_f) ** 2 for f in CHEAP) / (n - 1)
    weight = max(0, cov / ((1 + n / n_rest) * var_f))
    left = [y - weight * f for y, f in zip(HUMAN, CHEAP, strict=True)]
    theta = weight * mean_rest + sum(left) / n
    var = weight**2 * sum((f - mean_rest) ** 2 for f in REST) / (n_rest - 1) / n_rest
    var += sum((one - sum(left) / n) ** 2 for one in left) / (n - 1) / n
    reach = stats.t.ppf(0.95, n - 2) * var**0.5
    found = powered_mean(*arrays(HUMAN, CHEAP, REST))
    np.testing.assert_allclose(
        [found.mean, found.var, found.weight], [theta, var, weight], rtol=1e-12
    )
    np.testing.assert_allclose(
        powered_interval(found, 0.9), [theta - reach, theta + reach], rtol=1e-9
    )


def test_equal_chances_give_the_estimate_of_a_plain_sample():
    y, f, rest = arrays(HUMAN, CHEAP, REST)
    plain = powered_mean(y, f, rest)
    weighted = sampled_mean(y, f, np.concatenate([f, rest]), np.full(len(y), 0.3))
    assert weighted.mean == pytest.approx(plain.mean, rel=1e-12)


def simulated(judge, n, runs=400, many=2000):
    """Share of intervals that hold the true mean, and their width beside that of the human
    labels."""
    rng, covered, widths = np.random.default_rng(n), [], []
    for _ in range(runs):
        y = rng.beta(1.2, 2, many + n)
        noise = rng.normal(size=many + n)
        f = {"biased": 0.5 * y + 0.4 + 0.05 * noise, "noisy": y + 0.4 * noise, "useless": noise}[
            judge
        ]
        low, high = powered_interval(powered_mean(y[:n], f[:n], f[n:]), 0.95)
        covered.append(low <= 1.2 / 3.2 <= high)
        widths.append((high - low) / (2 * stats.t.ppf(0.975, n - 1) * y[:n].std(ddof=1) / n**0.5))
    return np.mean(covered), np.mean(widths)


@pytest.mark.long
@pytest.mark.parametrize("n", [30, 100, 300])
@pytest.mark.parametrize(
    ("judge", "widest"), [("biased", 0.55), ("noisy", 0.95), ("useless", 1.01)]
)
def test_the_interval_covers_and_is_never_much_longer(judge, widest, n):
    share, width = simulated(judge, n)
    assert share >= 0.95 - 3 * (0.95 * 0.05 / 400) ** 0.5
    assert width < widest


def two_models(n=80, many=900, seed=1):
    """Two models whose judge is biased in favour of the worse one."""
    rng = np.random.default_rng(seed)
    users = np.arange(many)
    old = rng.beta(2, 3, many)
    new = np.clip(old + 0.1 + rng.normal(0, 0.1, many), 0, 1)
    frames = []
    for kind in ("human", "cheap"):
        for name, truth in (("old", old), ("new", new)):
            value = truth if kind == "human" else 0.6 * truth + (0.3 if name == "old" else 0.0)
            frames.append(pd.DataFrame({"model": name, "user_id": users, "ndcg@10": value}))
    people = pd.concat(frames[:2], ignore_index=True)
    judged = np.isin(people["user_id"], rng.choice(many, n, replace=False))
    return (
        people[judged].reset_index(drop=True),
        pd.concat(frames[2:], ignore_index=True),
        (old, new),
    )


def test_a_judge_who_prefers_the_worse_model_does_not_turn_the_verdict():
    human, cheap, (old, new) = two_models()
    row = rd.experiments.prediction_powered(human, cheap, "ndcg@10", baseline="old").iloc[0]
    assert (row["baseline"], row["model"], row["verdict"]) == ("old", "new", "better")
    assert row["mean_cheap"] < 0 < row["ci_low"] < (new - old).mean() < row["ci_high"]
    assert row["bias_high"] < 0
    assert row["n_human"] == 80
    assert row["n_cheap"] == 820
    turned = rd.experiments.prediction_powered(
        human, cheap, "ndcg@10", baseline="old", smaller_is_better="ndcg@10"
    ).iloc[0]
    assert turned["verdict"] == "worse"


def test_means_come_by_model_and_any_order_of_rows_gives_the_same():
    human, cheap, _ = two_models()
    found = rd.experiments.prediction_powered(human, cheap)
    assert found["model"].tolist() == ["new", "old"]
    assert (found["n_effective"] > 80).all()
    mixed = rd.experiments.prediction_powered(
        human.sample(frac=1, random_state=1), cheap.sample(frac=1, random_state=2)
    )
    pd.testing.assert_frame_equal(found, mixed, rtol=1e-9)


def test_lists_of_one_user_are_one_unit():
    """Twice the same lists of each user tell no more than once."""
    human, cheap, _ = two_models()
    human, cheap = (one[one["model"] == "old"].drop(columns="model") for one in (human, cheap))
    once = rd.experiments.prediction_powered(human, cheap, "ndcg@10", user_col="user_id")
    twice = [
        pd.concat([one.assign(session=0), one.assign(session=1)], ignore_index=True)
        for one in (human, cheap)
    ]
    key = ["user_id", "session"]
    found = rd.experiments.prediction_powered(*twice, "ndcg@10", user_col=key)
    for name in ("mean", "se", "ci_low", "ci_high"):
        assert found[name][0] == pytest.approx(once[name][0], rel=1e-9)


def test_people_who_judged_other_lists_withhold_the_verdict():
    rng = np.random.default_rng(3)
    truth = rng.random(1000)
    cheap = pd.DataFrame({"user_id": range(1000), "m": truth, "visits": rng.poisson(3, 1000)})
    active = np.argsort(-cheap["visits"].to_numpy(), kind="stable")[:60]
    human = cheap.take(active)[["user_id", "m"]]
    row = rd.experiments.prediction_powered(human, cheap, "m", covariates="visits").iloc[0]
    assert (row["verdict"], row["remarks"]) == ("check: lists of people not random", "not_random")
    few = rd.experiments.prediction_powered(human.head(20), cheap, "m").iloc[0]
    assert "few_human" in few["remarks"]


@pytest.mark.long
def test_chances_of_being_judged_weigh_the_lists():
    """Of half of the lists, which are better, one in five is judged, of the others one in fifty."""
    rng, found = np.random.default_rng(4), []
    for _ in range(150):
        good = np.arange(2000) < 1000
        truth = np.where(good, 0.7, 0.2) + rng.normal(0, 0.1, 2000)
        chance = np.where(good, 0.2, 0.02)
        judged = rng.random(2000) < chance
        cheap = pd.DataFrame({"user_id": range(2000), "m": rng.random(2000)})
        human = pd.DataFrame({"user_id": np.arange(2000), "m": truth, "p": chance})[judged]
        found.append(
            rd.experiments.prediction_powered(human, cheap, "m", probability_col="p").iloc[0]
        )
    rows = pd.DataFrame(found)
    assert rows["mean"].mean() == pytest.approx(0.45, abs=0.01)
    assert ((rows["ci_low"] <= 0.45) & (rows["ci_high"] >= 0.45)).mean() >= 0.88


BAD = [
    (
        lambda h, c: (h.assign(user_id=-h["user_id"] - 1), c),
        {},
        rd.DataError,
        "160 of 160 lists of human do not have cheap labels",
    ),
    (lambda h, c: (h, c[c["user_id"] > 100]), {}, rd.DataError, "do not have cheap labels"),
    (
        lambda h, c: (h, c[c["user_id"].isin(h["user_id"])]),
        {},
        rd.DataError,
        "no more lists than human",
    ),
    (
        lambda h, c: (h[h["user_id"] == h["user_id"].iloc[0]], c),
        {},
        rd.DataError,
        "1 lists have human labels",
    ),
    (lambda h, c: (pd.concat([h, h]), c), {}, rd.DuplicateError, "several rows per"),
    (lambda h, c: (h.assign(user_id=None), c), {}, rd.NullKeyError, "human.*is null"),
    (lambda h, c: (h.assign(**{"ndcg@10": np.inf}), c), {}, rd.DataError, "is infinite"),
    (lambda h, c: (h, c), {"baseline": "other"}, rd.OptionError, "is not a model"),
    (lambda h, c: (h, c), {"tuning": "wide"}, rd.OptionError, "tuning"),
    (lambda h, c: (h, c), {"confidence": 2}, rd.OptionError, "confidence"),
    (lambda h, c: (h, c), {"metrics": "other"}, rd.ColumnError, "other"),
    (lambda h, c: (h.assign(p=0.0), c), {"probability_col": "p"}, rd.DataError, "not in"),
    (
        lambda h, c: (h.assign(p=0.5), c),
        {"probability_col": "p", "tuning": "clipped"},
        rd.OptionError,
        "exclude",
    ),
    (
        lambda h, c: (h[(h["model"] == "old") | (h.index % 2 == 0)], c),
        {"baseline": "old"},
        rd.DataError,
        "other lists",
    ),
]


@pytest.mark.parametrize(("change", "options", "error", "words"), BAD)
def test_bad_labels_are_named_errors(change, options, error, words):
    human, cheap, _ = two_models()
    human, cheap = change(human, cheap)
    with pytest.raises(error, match=words):
        rd.experiments.prediction_powered(human, cheap, **{"metrics": "ndcg@10", **options})


SAME = {
    "diff": "mean",
    "se": "se",
    "ci_low": "ci_low",
    "ci_high": "ci_high",
    "diff_human": "mean_human",
    "ci_low_human": "ci_low_human",
    "ci_high_human": "ci_high_human",
    "diff_cheap": "mean_cheap",
    "bias": "bias",
    "bias_low": "bias_low",
    "bias_high": "bias_high",
    "weight": "weight",
    "n_effective": "n_effective",
    "n_human": "n_human",
    "n_cheap": "n_cheap",
    "p_random": "p_random",
}


def differences_of(human, cheap):
    """Differences of new and old under both labels, NaN where nobody judged."""
    of_model = [
        one.pivot(index="user_id", columns="model", values="ndcg@10").reindex(range(900))
        for one in (human, cheap)
    ]
    return [(one["new"] - one["old"]).to_numpy() for one in of_model]


def p_by_hand(left, rest, worst, df):
    """The larger of Student's p of a positive mean, and the one-sided p of the sample with one more
    list at its worst."""
    found = []
    for values, tail in ((left, 2), (np.append(left, worst), 1)):
        se = (values.var(ddof=1) / len(values) + rest.var(ddof=1) / len(rest)) ** 0.5
        t = (values.mean() + rest.mean()) / se
        found.append(tail * stats.t.sf(t, df + len(values) - len(left)))
    return max(found)


def test_a_comparison_with_cheap_labels_is_that_of_prediction_powered():
    human, cheap, _ = two_models()
    cheap = cheap.sample(frac=1, random_state=1)
    alone = rd.experiments.prediction_powered(human, cheap, "ndcg@10", baseline="old").iloc[0]
    table = rd.compare_models(human, "ndcg@10", baseline="old", cheap=cheap, details=True)
    row = table.iloc[0]
    np.testing.assert_allclose(
        [row[name] for name in SAME], [alone[name] for name in SAME.values()], rtol=1e-12
    )
    assert row["verdict"] == "better"
    assert row["mean_model"] - row["mean_baseline"] == pytest.approx(row["diff"], abs=1e-12)
    (y, f), weight = differences_of(human, cheap), row["weight"]
    judged = ~np.isnan(y)
    left, rest = y[judged] - weight * f[judged], weight * f[~judged]
    assert row["p_value"] == pytest.approx(p_by_hand(left, rest, -1 - weight, row["df"]), rel=1e-9)
    assert rd.experiments.report_table(table).frame["labels"].tolist() == [
        "80 of people, 820 cheap"
    ]
    as_mapping = [
        {name: one[one["model"] == name] for name in ("old", "new")} for one in (human, cheap)
    ]
    of_mapping = rd.compare_models(as_mapping[0], cheap=as_mapping[1], details=True)
    assert of_mapping["diff"].iloc[0] == pytest.approx(row["diff"], rel=1e-12)


@pytest.mark.long
def test_weights_and_units_of_a_comparison_count_under_both_labels():
    human, cheap, _ = two_models()
    plain = rd.compare_models(human, "ndcg@10", baseline="old", cheap=cheap, details=True).iloc[0]
    ones = rd.compare_models(
        human, "ndcg@10", baseline="old", cheap=cheap.assign(w=2.5), weight_col="w", details=True
    ).iloc[0]
    np.testing.assert_allclose(
        ones[["diff", "ci_low", "ci_high"]].tolist(),
        plain[["diff", "ci_low", "ci_high"]].tolist(),
        rtol=1e-9,
    )
    # A list twice as a unit of two lists adds no information.
    twice = [pd.concat([one.assign(day=day) for day in (1, 2)]) for one in (human, cheap)]
    both = rd.compare_models(
        twice[0],
        "ndcg@10",
        baseline="old",
        cheap=twice[1],
        user_col=["user_id", "day"],
        details=True,
    ).iloc[0]
    np.testing.assert_allclose(
        both[["diff", "ci_low", "ci_high"]].tolist(),
        plain[["diff", "ci_low", "ci_high"]].tolist(),
        rtol=1e-9,
    )
    assert (both["n_users"], both["n_lists"], both["n_human"]) == (80, 160, 160)


@pytest.mark.long
def test_units_with_judged_and_unjudged_lists_are_covered():
    """Users have up to four lists, one in ten of the lists is judged; no outside oracle but the
    truth itself."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        unit = np.repeat(np.arange(600), rng.integers(1, 5, 600))
        y = 0.1 + 0.2 * rng.normal(size=600)[unit] + 0.1 * rng.normal(size=len(unit))
        f = 0.6 * y + 0.1 * rng.normal(size=600)[unit] + 0.05 * rng.normal(size=len(y))
        judged = rng.random(len(y)) < 0.1
        units = labelled_units(np.where(judged, y, np.nan), f, judged, None, unit)
        low, high = powered_interval(
            powered_mean(units.y, units.f, units.rest, "open", units.same), 0.95
        )
        covered.append(low <= 0.1 <= high)
    assert np.mean(covered) >= 0.95 - 3 * (0.95 * 0.05 / 400) ** 0.5


def test_segments_with_few_labels_of_people_have_no_verdict_and_the_others_do():
    human, cheap, _ = two_models()
    rare = human["user_id"].iloc[:2].tolist()
    parts = np.where(np.isin(np.arange(900), rare), "rare", "other")
    segments = pd.DataFrame({"user_id": range(900), "part": parts})
    table = rd.compare_models(
        human, "ndcg@10", baseline="old", cheap=cheap, segments=segments, details=True
    ).set_index("part")
    assert table.loc["other", "verdict"] == "better"
    assert table.loc["rare", "verdict"] == "check: too few lists"
    assert "few_human" in table.loc["rare", "remarks"]
    assert table["n_human"].to_dict() == {"other": 78, "rare": 2}


def test_lists_that_are_no_random_sample_withhold_the_verdict_of_a_comparison():
    human, cheap, _ = two_models(900)
    best = cheap[cheap["model"] == "old"].nlargest(60, "ndcg@10")["user_id"]
    table = rd.compare_models(
        human[human["user_id"].isin(best)], "ndcg@10", baseline="old", cheap=cheap, details=True
    )
    assert table["verdict"].tolist() == ["check: lists of people not random"]
    assert "not_random" in table["remarks"].iloc[0]


def test_missing_lists_are_said_with_cheap_labels_too():
    """The new model has no list for 40 % of the users, where it counts as 0, and is better where it
    has one."""
    human, cheap, _ = two_models(200)
    for one in (human, cheap):
        one["n_pred"] = np.where((one["model"] == "new") & (one["user_id"] % 5 < 2), 0, 10)
        one.loc[one["n_pred"] == 0, "ndcg@10"] = 0.0
    row = rd.compare_models(human, "ndcg@10", baseline="old", cheap=cheap, details=True).iloc[0]
    assert row["verdict"] == "worse, but better where both have lists"
    there = [one[one["user_id"] % 5 >= 2] for one in (human, cheap)]
    alone = rd.experiments.prediction_powered(*there, "ndcg@10", baseline="old").iloc[0]
    np.testing.assert_allclose(
        row[["diff_both", "se_both"]].tolist(), alone[["mean", "se"]].tolist(), rtol=1e-9
    )


def test_the_estimate_of_lists_of_both_is_the_narrower_one_at_the_confidence_of_the_call():
    """Here it is that of people at 80 %, and that of both labels at 95 %."""
    rng = np.random.default_rng(1)
    users = np.arange(900)
    truths = {"old": rng.beta(2, 3, 900), "new": rng.beta(2, 2, 900)}
    frames = [
        pd.DataFrame({"model": model, "user_id": users, "n_pred": 10, "ndcg@10": truth})
        for model, truth in truths.items()
    ]
    frames += [one.assign(**{"ndcg@10": one["ndcg@10"] ** 1.1}) for one in frames]
    for frame in frames[1::2]:
        frame.loc[users % 5 < 2, ["n_pred", "ndcg@10"]] = 0
    judged = rng.choice(900, 120, replace=False)
    human = pd.concat([one[one["user_id"].isin(judged)] for one in frames[:2]])
    cheap = pd.concat(frames[2:])
    there = [one[one["user_id"] % 5 >= 2] for one in (human, cheap)]
    for confidence, both in ((0.8, False), (0.95, True)):
        given = {"baseline": "old", "confidence": confidence}
        row = rd.compare_models(human, "ndcg@10", cheap=cheap, details=True, **given).iloc[0]
        alone = rd.experiments.prediction_powered(*there, "ndcg@10", **given).iloc[0]
        assert (alone["weight"] > 0) == both
        np.testing.assert_allclose(row["diff_both"], alone["mean"], rtol=1e-9)


@pytest.mark.parametrize("judged", [True, False])
def test_a_list_that_a_model_lacks_under_both_labels_counts_once(judged):
    human, cheap, _ = two_models()
    user = next(one for one in range(900) if (one in set(human["user_id"])) == judged)
    human, cheap = (
        one[(one["model"] == "old") | (one["user_id"] != user)] for one in (human, cheap)
    )
    row = rd.compare_models(
        human, "ndcg@10", baseline="old", cheap=cheap, missing="drop", details=True
    ).iloc[0]
    assert (row["n_only_baseline"], row["n_only_model"]) == (1, 0)
    with pytest.raises(rd.DataError, match="has a value for 'old' only in 1 users") as raised:
        rd.compare_models(human, "ndcg@10", baseline="old", cheap=cheap, details=True)
    assert 'missing="drop"' in str(raised.value)
    assert '"zero"' not in str(raised.value)


BAD_COMPARISONS = [
    (lambda h, c: (h, c), {"test": "wilcoxon"}, rd.OptionError, "takes no cheap="),
    (lambda h, c: (h, c), {"test": "randomization"}, rd.OptionError, "takes no cheap="),
    (lambda h, c: (h, c), {"test": "bootstrap"}, rd.OptionError, "takes no cheap="),
    (lambda h, c: (h, c), {"missing": "zero"}, rd.OptionError, "exclude each other"),
    (
        lambda h, c: (h.assign(user_id=-h["user_id"] - 1), c),
        {},
        rd.DataError,
        "160 of 160 lists of per_user do not have cheap labels",
    ),
    (lambda h, c: (h, c[c["user_id"].isin(h["user_id"])]), {}, rd.DataError, "no more lists"),
    (lambda h, c: (h, c.drop(columns="model")), {}, rd.ColumnError, "model"),
    (lambda h, c: (h, c.rename(columns={"ndcg@10": "ndcg@5"})), {}, rd.ColumnError, "ndcg@10"),
    (
        lambda h, c: (h[(h["model"] == "old") | (h.index % 2 == 0)], c),
        {},
        rd.DataError,
        "has a value for",
    ),
    (lambda h, c: (h, {"old": c}), {}, TypeError, "cheap is"),
    (lambda h, c: ({"old": h, "new": h}, c), {}, rd.OptionError, "the same form"),
    (
        lambda h, c: (h.assign(w=1.0), c),
        {"weight_col": "w"},
        rd.ColumnError,
        "cheap has no column 'w'",
    ),
    (
        lambda h, c: (h.assign(part="a"), c),
        {"by": "part"},
        rd.ColumnError,
        "cheap has no column 'part'",
    ),
    (lambda h, c: (h, "cheap.parquet"), {}, TypeError, "cheap is"),
]


@pytest.mark.parametrize(("change", "options", "error", "words"), BAD_COMPARISONS)
def test_what_a_comparison_with_cheap_labels_cannot_do_is_a_named_error(
    change, options, error, words
):
    human, cheap, _ = two_models()
    human, cheap = change(human, cheap)
    with pytest.raises(error, match=words):
        rd.compare_models(human, "ndcg@10", baseline="old", cheap=cheap, **options, details=True)


def test_a_metric_that_is_defined_otherwise_under_cheap_labels_is_an_error():
    shop = rd.sample_shop(n_users=400, n_items=100)
    human = rd.evaluate(
        shop.true, shop.pred, "ndcg@10", by="model", users=shop.true["user_id"].unique()[:200]
    )
    cheap = rd.evaluate(shop.true, shop.pred, {"ndcg@10": "ndcg@20"}, by="model")
    with pytest.raises(rd.OptionError, match="evaluate both alike"):
        human.compare_models("ndcg@10", cheap=cheap, details=True)


@pytest.mark.long
def test_lists_where_people_find_nothing_relevant_do_not_bias_the_mean_of_the_others():
    """The metric of people is undefined where the judge sees least; the mean is that over the lists
    that have one."""
    rng, covered = np.random.default_rng(0), []
    names = [f"m{run}" for run in range(30)]  # each metric is a run of its own
    for _ in range(10):
        taste = rng.beta(2, 3, (2000, 30))
        f = 0.8 * taste + rng.normal(0, 0.08, taste.shape)
        defined = rng.random(taste.shape) < np.clip(3 * taste, 0, 1)
        y = np.where(defined, taste, np.nan)
        human, cheap = (
            pd.DataFrame(one, columns=names).rename_axis("user_id").reset_index()
            for one in (y[:200], f)
        )
        found = rd.experiments.prediction_powered(human, cheap, names)
        inside = (found["ci_low"] <= mean_of_defined()) & (mean_of_defined() <= found["ci_high"])
        covered += inside.tolist()
    assert len(covered) == 300
    assert np.mean(covered) >= 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5


@functools.cache
def mean_of_defined():
    taste = np.random.default_rng(1).beta(2, 3, 2_000_000)
    share = np.clip(3 * taste, 0, 1)
    return (taste * share).sum() / share.sum()


def yes_or_no(missed, n=60, many=3000, seed=3):
    """A hit rate under a judge who overlooks the hits of the first `missed` judged lists, and a
    tenth elsewhere."""
    rng = np.random.default_rng(seed)
    y = (rng.random(many) < 0.3) * 1.0
    y[:missed] = 1.0
    f = y * (rng.random(many) > 0.1)
    f[:n] = np.where(np.arange(n) < missed, 0.0, y[:n])
    cheap = pd.DataFrame({"user_id": range(many), "hitrate@10": f})
    return cheap.assign(**{"hitrate@10": y}).head(n), cheap


@pytest.mark.parametrize("missed", [0, 3])
def test_a_judge_who_was_hardly_seen_to_err_may_have_erred_in_one_list_more(missed):
    """A judge who was right in all lists leaves an interval of one list more that is all wrong."""
    human, cheap = yes_or_no(missed)
    found = rd.experiments.prediction_powered(human, cheap, "hitrate@10").iloc[0]
    yes = int(human["hitrate@10"].sum())
    exact = stats.binomtest(yes, 60).proportion_ci(method="exact")
    np.testing.assert_allclose(found[["ci_low_human", "ci_high_human"]].astype(float), exact)
    assert found["verdict"] == "both"
    if not missed:
        assert found["bias_high"] - found["bias_low"] == pytest.approx(
            2 * (1 + stats.t.ppf(0.95, 60)) / 61
        )
    clipped = rd.experiments.prediction_powered(human, cheap, "hitrate@10", tuning="clipped").iloc[
        0
    ]
    assert clipped["weight"] > 0  # as ppi-python


def test_a_judge_who_says_the_same_of_all_lists_leaves_the_exact_interval_of_people():
    """Student's interval is narrower, and missed shares near 0 and 1 in up to 7.5 % of samples."""
    human, cheap = yes_or_no(0)
    cheap["hitrate@10"] = 1.0
    found = rd.experiments.prediction_powered(human, cheap, "hitrate@10").iloc[0]
    assert (found["ci_low"], found["ci_high"]) == (found["ci_low_human"], found["ci_high_human"])
    assert (found["verdict"], found["n_effective"]) == ("human alone", 60)


@pytest.mark.long
@pytest.mark.parametrize("n", [30, 60, 100])
def test_intervals_cover_the_mean_under_a_judge_who_errs_rarely_and_on_one_side(n):
    rng, held, many = np.random.default_rng(n), [], 2000
    names = [f"hitrate@{k}" for k in range(1, 26)]  # each is a run of its own
    for _ in range(8):
        y = (rng.random((many, 25)) < 0.3) * 1.0
        seen = y * (rng.random((many, 25)) > 0.1)
        human, cheap = (
            pd.DataFrame(one, columns=names).rename_axis("user_id").reset_index()
            for one in (y, seen)
        )
        found = rd.experiments.prediction_powered(human.head(n), cheap, names)
        held += (found["ci_low"].le(0.3) & found["ci_high"].ge(0.3)).tolist()
    assert len(held) == 200
    assert np.mean(held) >= 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


def test_lists_undefined_under_one_kind_of_labels_are_counted_as_in_the_comparison():
    human, cheap, *_ = two_models(n=80)
    some = human["user_id"].isin(human["user_id"].unique()[:20])
    judge_finds_none = cheap.assign(
        **{"ndcg@10": cheap["ndcg@10"].mask(cheap["user_id"].isin(human[some]["user_id"]))}
    )
    powered = rd.experiments.prediction_powered(human, judge_finds_none, baseline="old").iloc[0]
    compared = rd.compare_models(human, baseline="old", cheap=judge_finds_none, details=True).iloc[
        0
    ]
    assert powered["n_human"] == compared["n_human"] == 80
    people_find_none = human.assign(**{"ndcg@10": human["ndcg@10"].mask(~some)})
    powered = rd.experiments.prediction_powered(people_find_none, cheap, baseline="old").iloc[0]
    assert (powered["n_human"], powered["remarks"], powered["verdict"]) == (
        20,
        "few_human",
        "cannot tell: people judged lists of fewer than 30 users",
    )
    compared = rd.compare_models(people_find_none, baseline="old", cheap=cheap, details=True).iloc[
        0
    ]
    assert compared["n_human"] == 20
    assert "few_human" in compared["remarks"]


def test_tables_without_a_common_metric_are_told_so():
    human, cheap, *_ = two_models()
    other = cheap.rename(columns={"ndcg@10": "ndcg@5"})
    for call in (
        lambda: rd.experiments.prediction_powered(human, other),
        lambda: rd.compare_models(human, cheap=other, details=True),
    ):
        with pytest.raises(rd.errors.OptionError, match="no metric in common"):
            call()


def test_what_one_model_says_of_the_sample_of_lists_holds_for_all():
    """People judged lists that model a, in the judge's eyes, serves well; b and c do not show it,
    and had verdicts and intervals of their own."""
    rng = np.random.default_rng(3)
    users = np.arange(600)
    values = {name: rng.random(600) for name in "abc"}
    values["b"] = np.clip(values["b"] + 0.4, 0, 1)
    judged = np.argsort(-values["a"] + rng.normal(0, 0.5, 600))[:150]

    def table(lists):
        return pd.concat(
            [
                pd.DataFrame({"model": name, "user_id": users[lists], "ndcg@10": one[lists]})
                for name, one in values.items()
            ]
        )

    both = table(judged), table(users)
    found = rd.experiments.prediction_powered(*both, "ndcg@10")
    assert found["withheld"].tolist() == ["not_random"] * 3
    compared = rd.compare_models(both[0], cheap=both[1])
    assert compared["withheld"].tolist() == ["not_random"] * 3
    random = table(rng.choice(users, 150, replace=False))
    assert "better" in rd.compare_models(random, cheap=both[1])["verdict"].tolist()
    assert (rd.experiments.prediction_powered(random, both[1], "ndcg@10")["withheld"] == "").all()
