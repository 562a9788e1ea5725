"""Pairs of models over users with several lists, unequal weights, or few and skewed differences."""

import re

import numpy as np
import pandas as pd
import pytest
from cli.command import run
from scipy import stats

import recdf as rd
from recdf.errors import DataError, NullKeyError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_pictures")]

KEY = ["user_id", "session_id"]


def sessions(rng, users=30, lists=None, spread=1.0, effect=0.0):
    """Two models whose difference is alike for all lists of a user."""
    lists = np.full(users, 40) if lists is None else lists
    user = np.repeat(np.arange(users), lists)
    base = pd.DataFrame({"user_id": user, "session_id": np.arange(len(user)) % 50, "n_true": 1})
    base["session_id"] = base.groupby("user_id").cumcount()
    base["ndcg@10"] = rng.random(len(user))
    new = (
        base["ndcg@10"]
        + effect
        + spread * rng.normal(size=users)[user]
        + rng.normal(size=len(user))
    )
    return pd.concat(
        [base.assign(model="a"), base.assign(model="b", **{"ndcg@10": new})], ignore_index=True
    )


def one(frame, **options):
    return rd.compare_models(frame, "ndcg@10", **{"user_col": KEY, **options}, details=True).iloc[0]


def each(frames, metric="ndcg@10", **options):
    """The comparison of one metric in each of several frames of the same lists, as metrics of one
    frame that are tested each by itself: a call for each would take ten times as long."""
    values = {f"m{i}": frame[metric].to_numpy() for i, frame in enumerate(frames)}
    whole = frames[0].drop(columns=metric).assign(**values)
    return rd.compare_models(whole, [*values], **{"family": "metric", "details": True, **options})


def differences(frame):
    wide = frame.pivot(index=KEY, columns="model", values="ndcg@10")
    return (wide["b"] - wide["a"]).rename("d").reset_index()


def test_the_error_is_that_of_clusters(rng):
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    frame = sessions(rng, 30, rng.integers(1, 60, 30))
    d = differences(frame)
    fit = sm.OLS(d["d"], np.ones(len(d))).fit(cov_type="cluster", cov_kwds={"groups": d["user_id"]})
    # Statsmodels takes u/(u − 1) · (n − 1)/(n − 1) for a mean.
    found = one(frame)
    assert found["diff"] == pytest.approx(d["d"].mean())
    assert found["diff"] == pytest.approx(found["mean_model"] - found["mean_baseline"])
    assert found["se"] == pytest.approx(float(fit.bse.iloc[0]))
    assert (found["n_users"], found["n_lists"], found["df"]) == (30, len(d), 29)
    assert found["p_value"] == pytest.approx(2 * stats.t(29).sf(abs(found["statistic"])))
    means = d.groupby("user_id")["d"].mean()
    assert (found["wins"], found["losses"]) == ((means > 0).sum(), (means < 0).sum())
    ranked = one(frame, test="wilcoxon")
    assert ranked["p_value"] == pytest.approx(stats.wilcoxon(means, method="approx").pvalue)
    boot = one(frame, test="bootstrap", n_resamples=4000)
    assert boot["se"] == pytest.approx(found["se"], rel=0.15)
    flipped = (
        np.random.default_rng(0).choice([-1, 1], (20_000, 30))
        @ d.groupby("user_id")["d"].sum().to_numpy()
    )
    p = np.mean(np.abs(flipped) >= abs(d["d"].sum()) - 1e-9)
    assert one(frame, test="randomization", n_resamples=10_000)["p_value"] == pytest.approx(
        p, abs=0.02
    )
    pd.testing.assert_series_equal(one(frame.sample(frac=1, random_state=1)), found)


def test_weights_of_lists_within_users(rng):
    frame = sessions(rng, 40, rng.integers(1, 9, 40))
    frame["w"] = frame.groupby(KEY)["n_true"].transform("size") * 0.5 + frame["session_id"] % 3
    d = differences(frame).merge(frame[frame.model == "a"][[*KEY, "w"]], on=KEY)
    mean = (d["w"] * d["d"]).sum() / d["w"].sum()
    of_users = (d["w"] * (d["d"] - mean)).groupby(d["user_id"]).sum()
    found = one(frame, weight_col="w")
    assert found["diff"] == pytest.approx(mean)
    assert found["se"] == pytest.approx(np.sqrt(40 / 39 * (of_users**2).sum()) / d["w"].sum())


def test_one_list_a_user_is_the_plain_test(rng):
    frame = sessions(rng, 60, np.ones(60, int))
    found, plain = one(frame), one(frame, user_col="user_id")
    pd.testing.assert_series_equal(found, plain, check_exact=True)


@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap"])
def test_equal_models_with_many_sessions_get_few_verdicts(test):
    # Sessions taken for users: a winner in 12 of 20 runs.
    frames = [sessions(np.random.default_rng(seed)) for seed in range(60)]
    verdicts = each(frames, user_col=KEY, test=test, n_resamples=200)["verdict"]
    assert len(verdicts) == 60
    assert (verdicts != "no difference shown").sum() <= 9  # 5 % of 60, at .999


def test_folds_are_the_same_as_method_and_as_function():
    """The method counted 250 lists where the function counted 50 users."""
    rng = np.random.default_rng(2)
    true = pd.DataFrame({"user_id": np.repeat(np.arange(50), 5), "fold": np.tile(np.arange(5), 50)})
    true["item_id"] = rng.integers(0, 3, 250)
    pred = pd.concat([true.assign(model=m, item_id=rng.integers(0, 3, 250)) for m in "ab"])
    result = rd.evaluate(true, pred, "hitrate@1", by="model", user_col=["user_id", "fold"])
    method, default = (
        result.compare_models(fold="fold", details=True),
        result.compare_models(details=True),
    )
    function = rd.compare_models(result.per_user, fold="fold", metrics=["hitrate@1"], details=True)
    pd.testing.assert_frame_equal(method, function)
    pd.testing.assert_frame_equal(
        method,
        rd.compare_models(
            result.per_user, "hitrate@1", user_col="user_id", fold="fold", details=True
        ),
    )
    assert (method["n_users"].item(), method["n_lists"].item()) == (50, 250)
    for name in ("n_users", "n_lists", "diff", "se", "p_value"):  # every user has as many folds
        assert default[name].item() == pytest.approx(method[name].item())
    flat = rd.leaderboard(result).comparisons
    assert flat["se"].item() == pytest.approx(method["se"].item())


def test_a_result_tells_its_key_and_its_column_of_models():
    true = pd.DataFrame({"customer": range(40), "sku": 1})
    hit = {"good": 30, "bad": 10}  # lists with the item that was wanted
    pred = pd.concat(
        pd.DataFrame({"algorithm": name, "customer": range(40), "sku": np.arange(40) >= n})
        for name, n in hit.items()
    )
    pred["sku"] = 1 + pred["sku"]
    named = {"user_col": "customer", "item_col": "sku"}
    result = rd.evaluate(true, pred, "hitrate@1", by="algorithm", **named)
    ages = pd.DataFrame({"customer": range(40), "age": ["new"] * 20 + ["old"] * 20})
    found = rd.compare_models(result, baseline="bad")
    assert (found["n_users"].item(), found["diff"].item()) == (40, 0.5)
    within = rd.compare_models(result, baseline="bad", segments=ages)
    assert dict(zip(within["age"], within["diff"], strict=True)) == {"new": 0.5, "old": 0.5}
    each_by_itself = {
        name: rd.evaluate(true, one.drop(columns="algorithm"), "hitrate@1", **named)
        for name, one in pred.groupby("algorithm")
    }
    found = rd.compare_models(each_by_itself, baseline="bad")
    assert (found["model"].item(), found["diff"].item()) == ("good", 0.5)


def test_the_unit_may_be_another_column(rng):
    frame = sessions(rng, 200, np.ones(200, int))
    frame["household"] = frame["user_id"] // 4
    found = one(frame, user_col="user_id", unit_col="household")
    assert (found["n_users"], found["n_lists"]) == (50, 200)
    means = differences(frame)["d"].groupby(np.arange(200) // 4).mean()
    assert found["p_value"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    with pytest.raises(DataError, match=r"household differs between the rows of 1 users.*one unit"):
        one(
            frame.assign(household=np.r_[99, frame["household"][1:]]),
            user_col="user_id",
            unit_col="household",
        )
    with pytest.raises(NullKeyError, match="household"):
        one(
            frame.assign(household=np.r_[np.nan, frame["household"][1:]]),
            user_col="user_id",
            unit_col="household",
        )


def test_the_order_of_the_key_does_not_name_the_unit(rng):
    # 40 session numbers were 40 independent units, and equal models got a winner in most runs.
    frame = sessions(rng)
    turned = one(frame, user_col=KEY[::-1])
    assert (turned["n_users"], turned["n_lists"]) == (30, 1200)
    assert turned["se"] == pytest.approx(one(frame)["se"])
    long = pd.DataFrame(frame.to_dict("list"))
    true = long.loc[long["model"] == "a", KEY].assign(item_id=1)
    result = rd.evaluate(true, long.assign(item_id=1), "hitrate@1", by="model", user_col=KEY[::-1])
    assert "the lists of one user_id" in str(result)
    assert rd.leaderboard(result).comparisons["n_users"].tolist() == [30]
    assert rd.summarize(result)["n_users"].tolist() == [30, 30]


@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap", "wilcoxon"])
def test_rounding_is_no_difference(test):
    long = pd.DataFrame(
        {"model": ["a"] * 60 + ["b"] * 60, "user_id": [*range(60)] * 2, "ndcg@10": 0.1 + 0.2}
    )
    long.loc[60:89, "ndcg@10"] = 0.3
    found = rd.compare_models(long, "ndcg@10", test=test, n_resamples=200, details=True).iloc[0]
    assert (found["ties"], found["reject"], found["verdict"]) == (60, False, "no difference shown")
    assert "zero_variance" in found["remarks"].split("; ")


@pytest.mark.parametrize("key", ["session", ["session", "customer"]])
def test_a_user_that_nobody_named_is_said(rng, key):
    frame = sessions(rng)
    frame["session"] = frame.groupby("model").cumcount()
    frame = frame.rename(columns={"user_id": "customer"}) if "customer" in key else frame
    found = one(frame, user_col=key)
    assert found["n_users"] == 1200
    assert "repeated_units" in found["remarks"].split("; ")
    named = one(frame, user_col=key, unit_col="customer" if "customer" in key else "user_id")
    assert (named["n_users"], named["se"] > 3 * found["se"]) == (30, True)
    assert "repeated_units" not in named["remarks"]


def test_days_and_folds_are_no_hidden_users(rng):
    frame = sessions(rng, 60, np.ones(60, int))
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(frame["user_id"] % 25, unit="D")
    frame["fold"] = frame["user_id"] % 5
    for column in ("day", "fold"):
        assert one(frame, user_col=["user_id", column])["remarks"] == ""


# -------------------------------------------------------------------------------------------
# weights


def weighted(weights, seed=0):
    rng = np.random.default_rng(seed)
    n = len(weights)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "user_id": range(n),
                    "n_true": 1,
                    "ndcg@10": rng.random(n),
                    "w": weights,
                    "model": m,
                }
            )
            for m in "ab"
        ]
    )


def test_one_user_with_all_the_weight_decides_nothing():
    # n_effective 1.003 of 1,537 lists: "better", p 0.
    frame = weighted(np.r_[1e6, np.ones(1536)])
    for test in ("t", "bootstrap", "randomization"):
        found = one(frame, user_col="user_id", weight_col="w", test=test, n_resamples=200)
        assert found["verdict"] == "check: few users carry it"
        assert "few_users_carry" in found["remarks"].split("; ")
    for weights in (np.ones(200), 1.0 + np.arange(200) % 3, np.arange(1.0, 201)):
        assert (
            "few_users_carry"
            not in one(weighted(weights), user_col="user_id", weight_col="w")["remarks"]
        )


def test_one_user_with_most_sessions_decides_nothing(rng):
    lists = np.r_[5000, np.ones(99, int)]
    assert one(sessions(rng, 100, lists))["verdict"] == "check: few users carry it"
    assert "few_users_carry" not in one(sessions(rng, 25))["remarks"]  # 25 equal users


@pytest.mark.parametrize("sigma", [1.5, 2.0, 3.0])
def test_equal_models_with_unequal_weights_get_few_verdicts(sigma):
    wrong = 0
    for seed in range(20):
        weights = np.random.default_rng([seed, 1]).lognormal(0, sigma, 300)
        frames = [weighted(weights, 20 * i + seed) for i in range(5)]
        table = each(frames, user_col="user_id", weight_col="w")
        wrong += table["verdict"].isin(["better", "worse"]).sum()
    assert wrong <= 15  # 8 % of 100, at .99


# -- few, skewed


def pair(d, **options):
    frames = {
        name: pd.DataFrame({"user_id": range(len(d)), "m": v})
        for name, v in (("a", d * 0), ("b", d))
    }
    return rd.compare_models(frames, **options, details=True).iloc[0]


@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap", "wilcoxon"])
def test_few_users_have_no_verdict(test, rng):
    # Three users, p 4e-5: "better".
    for n in (2, 3, 10, 29):
        found = pair(1 + rng.normal(0, 1e-3, n), test=test, n_resamples=100)
        assert found["verdict"] == "check: too few lists"
        assert "few_differ" in found["remarks"].split("; ")
    many = pair(
        np.r_[np.ones(19) + rng.normal(0, 0.1, 19), np.zeros(500)], test=test, n_resamples=100
    )
    assert many["verdict"] == "check: too few lists differ"
    enough = pair(1 + rng.normal(0, 0.1, 35), test=test, n_resamples=400)
    assert enough["effect"] in ("better", "ranks_higher")
    assert "few_differ" in enough["remarks"].split("; ")
    assert (
        "few_differ" not in pair(1 + rng.normal(0, 0.1, 60), test=test, n_resamples=100)["remarks"]
    )


def test_equal_differences_are_nothing_to_test():
    assert pair(np.full(50, 0.1))["verdict"] == "check: zero variance"
    assert pair(np.full(12, 0.1))["verdict"] == "check: too few lists"
    assert pair(np.zeros(50))["verdict"] == "no difference shown"
    assert pair(np.r_[1e200, np.ones(50)])["verdict"] == "check: huge values"


def test_skewed_differences_are_named(rng):
    d = rng.lognormal(0, 1.5, 200)
    d -= d.mean()
    skewness = stats.skew(d)
    assert skewness / np.sqrt(200) > 0.14
    assert "skewed" in pair(d)["remarks"].split("; ")
    assert pair(rng.normal(size=200))["remarks"] == ""


@pytest.mark.parametrize("n", [3, 10, 19, 100])
def test_skewed_differences_with_mean_zero(n):
    # 29, 34, 29 and 16 % verdicts, and no word about it.
    draws = [
        np.random.default_rng([seed, n]).lognormal(0, 1.5, n) - np.exp(1.125) for seed in range(60)
    ]
    lists = {"model": ["a"] * n + ["b"] * n, "user_id": [*range(n)] * 2}
    found = each([pd.DataFrame({**lists, "m": np.r_[d * 0, d]}) for d in draws], "m")
    assert len(found) == 60
    assert (found["remarks"] != "").mean() >= 0.9
    if n < 20:
        assert {*found["verdict"]} == {"check: too few lists"}


# -- where it is shown


def result(weights, n_hits=(0.2, 0.9), seed=0):
    """Two models over users with these weights, of which the second has more hits."""
    rng = np.random.default_rng(seed)
    n = len(weights)
    true = pd.DataFrame({"user_id": range(n), "item_id": 0, "w": weights})
    pred = pd.concat(
        [
            pd.DataFrame(
                {"model": m, "user_id": range(n), "item_id": (rng.random(n) > p).astype(int)}
            )
            for m, p in zip("ab", n_hits, strict=True)
        ]
    )
    return rd.evaluate(true, pred, "hitrate@1", by="model", weight_col="w")


CASES = {
    "few users": (np.ones(15), "check: too few lists", "fewer than 30 users are compared"),
    "one user": (
        np.r_[1e6, np.ones(400)],
        "check: few users carry it",
        "a few users have most of the weight",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_withheld_stays_withheld_where_it_is_shown(case, tmp_path, capsys):
    weights, verdict, sentence = CASES[case]
    evaluated = result(weights)
    table = evaluated.compare_models(details=True)
    assert table["verdict"].tolist() == [verdict]
    for baseline in (None, "a"):
        board = rd.leaderboard(evaluated, baseline=baseline)
        assert board.frame["marks"].tolist() == ["", ""]
        for text in (str(board), board.to_markdown(), board.to_html(), board.to_latex()):
            assert sentence in text
            assert "Where a verdict is withheld there is no mark (" in text
        page = rd.report(
            evaluated, tmp_path / "r.html", baseline=baseline, overwrite=True
        ).read_text(encoding="utf-8")
        text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
        assert f"The verdict is withheld ({verdict})" in text
        assert sentence in text
        assert "No comparison carries a warning" not in text
        assert "is better than" not in text
    folder = tmp_path / "result"
    evaluated.to_parquet(folder)
    printed = run(capsys, "compare", folder)[1]
    assert verdict in printed
    assert sentence in printed


def test_the_headline_says_the_warning(tmp_path):
    evaluated = result(np.ones(45))
    assert evaluated.compare_models(details=True)["verdict"].tolist() in (["better"], ["worse"])
    text = rd.report(evaluated, tmp_path / "r.html").read_text(encoding="utf-8")
    verdict = (
        text[text.index("Verdict") : text.index("Leaderboard")] if "Leaderboard" in text else text
    )
    assert "Warning: fewer than 50 users differ" in text
    assert verdict


def test_sessions_in_leaderboard_report_and_command(tmp_path, rng, capsys):
    """30 users with 40 sessions, whose models are equal: no winner, and the number of users is
    said."""
    true = pd.DataFrame(
        {"user_id": np.repeat(np.arange(30), 40), "session_id": np.tile(np.arange(40), 30)}
    )
    true["item_id"] = true["user_id"] % 3
    liked = rng.integers(0, 3, (2, 30))
    pred = pd.concat(
        [true.assign(model=m, item_id=liked[i][true["user_id"]]) for i, m in enumerate("ab")]
    )
    evaluated = rd.evaluate(true, pred, "hitrate@1", by="model", user_col=KEY)
    segments = pd.DataFrame({"user_id": range(30), "new": np.arange(30) % 2})
    table = evaluated.compare_models(details=True)
    board = rd.leaderboard(evaluated, segments=segments)
    whole = board.comparisons[board.comparisons["segment"] == "all"]
    assert whole["se"].tolist() == pytest.approx(table["se"].tolist())
    assert board.comparisons["n_users"].tolist() == [30, 15, 15]
    half = board.frame.set_index(["group", "model"])["half_width"]
    users = (
        evaluated.per_user.merge(segments, on="user_id")
        .groupby(["new", "model", "user_id"])["hitrate@1"]
        .mean()
    )
    for new in (0, 1):
        se = users[new, "a"].std() / 15**0.5
        assert half[str(new), "a"] == pytest.approx(stats.t(14).ppf(0.975) * se)
    lists = rd.leaderboard(evaluated, unit_col=KEY)
    assert lists.comparisons["n_users"].tolist() == [1200]
    assert lists.comparisons["se"].item() < table["se"].item() / 4
    page = rd.report(evaluated, tmp_path / "r.html", segments=segments).read_text(encoding="utf-8")
    assert "1,200 lists of 30 users" in page
    folder = tmp_path / "result"
    evaluated.to_parquet(folder)
    assert "30 users" in run(capsys, "compare", folder)[1]
    assert "1,200 lists" in run(capsys, "compare", folder, "--unit-col", *KEY)[1]
    run(capsys, "report", folder, "--out", tmp_path / "s.html", "--unit-col", *KEY)
    assert "tests on 1,200 lists; p-values" in (tmp_path / "s.html").read_text(encoding="utf-8")


def test_units_have_their_name_in_sentences(tmp_path):
    rng = np.random.default_rng(0)
    lists = pd.DataFrame(
        {"user_id": np.repeat(np.arange(60), 3), "session": np.tile([0, 1, 2], 60)}
    )
    true = lists.assign(item_id=rng.integers(0, 4, 180))
    better = np.where(rng.random(180) < 0.5, true["item_id"], 0)
    of_models = {"a": rng.integers(0, 4, 180), "b": better}
    models = [lists.assign(model=name, item_id=items) for name, items in of_models.items()]
    pred = pd.concat(models).assign(score=1.0, shop=lambda rows: rows["user_id"] % 35)
    keys = {"user_col": ["user_id", "session"], "by": "model", "carry": ["shop"]}
    result = rd.evaluate(true, pred, "recall@2", **keys)
    for unit, n, word, of, verdict in (
        ("shop", 35, "cluster", " of 35 clusters", "better, for clusters with up to 6 lists"),
        (["user_id", "session"], 180, "list", "", "better"),
        ("user_id", 60, "user", " of 60 users", "better"),
        (None, 60, "user", " of 60 users", "better"),
    ):
        table = result.compare_models(unit_col=unit)
        assert table["verdict"].tolist() == [verdict]
        assert table.attrs["recdf_comparison"]["unit"] == word
        assert ("method" in table) == (word != "user")
        path = rd.report(result, tmp_path / "r.html", unit_col=unit, overwrite=True)
        page = path.read_text(encoding="utf-8")
        assert f"{word}s gain / same / lose" in page
        assert f" {word}s gain and " in page
        assert f"tests on 180 lists{of}; p-values" in page
        texts = [text.get_text() for text in rd.plot.pairs(table).texts]
        assert any(text.startswith(f"n = {n} {word}s; * holds") for text in texts)
        beside = pd.DataFrame(table)  # as it is read from a file
        beside.attrs = {}
        assert f"{word}s gain / same / lose" in rd.report(
            result, tmp_path / "c.html", comparison=beside, overwrite=True
        ).read_text(encoding="utf-8")
    taken = pred.rename(columns={"shop": "method"})
    result = rd.evaluate(true, taken, "recall@2", **{**keys, "carry": ["method"]})
    with pytest.raises(rd.OptionError, match="by='method' is also a column of the result"):
        result.compare_models(by="method", unit_col="method")
