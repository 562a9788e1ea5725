"""Every caution through every function that says a verdict: a frame on which it appears, or the
reason why it cannot.

A new caution has a row in the table, and a frame or a reason here for each function.
"""

import functools
import html

import numpy as np
import pandas as pd
import pytest
from judge.test_traps import clicks, exposed, in_weeks, stores, with_past

import recdf as rd
from recdf.cli.commands import failing_verdicts
from recdf.judge.cautions.table import CAUTIONS, UNLIKE
from recdf.judge.verdict import add_verdicts, codes_of

pytestmark = pytest.mark.usefixtures("without_pictures")

EXPERIMENTS = rd.experiments
EQUAL = {"A": 1, "B": 1}
CTR = {"ctr": ("clicks", "shown")}


def users(n=400, b=0.5, **columns):
    """Users of two variants, of which a share has B, with values around 5."""
    every = round(1 / b)
    draw = np.random.default_rng(1)
    variant = np.where(np.arange(n) % every == 0, "B", "A")
    frame = pd.DataFrame({"user_id": np.arange(n), "variant": variant, "y": draw.normal(5, 1, n)})
    return frame.assign(**{name: make(frame) for name, make in columns.items()})


def in_b(frame):
    return frame["variant"] == "B"


def skewed_arms():
    y = np.random.default_rng(2).lognormal(0, 1.5, 2000)
    return users(2000, 0.05, y=lambda frame: y)


def ramped():
    """A week with 5 % of B, and one with half."""
    draw = np.random.default_rng(3)
    week = np.repeat([0, 1], 500)
    b = draw.random(1000) < np.where(week, 0.5, 0.05)
    day = pd.Timestamp("2026-11-02") + pd.to_timedelta(7 * week, unit="D")
    frame = {"user_id": np.arange(1000), "variant": np.where(b, "B", "A"), "day": day, "week": week}
    return pd.DataFrame({**frame, "y": draw.normal(size=1000) + week})


def moved_strata(by):
    """The treatment makes users visit more often, and visits are worth more."""
    draw = np.random.default_rng(4)
    frame = users(4000)
    visits = draw.poisson(2 + by * in_b(frame))
    return frame.assign(visits=np.minimum(visits, 4), y=visits + draw.normal(size=4000))


def one_heavy(frame):
    """The denominator of one user of B is that of all others together."""
    return np.where(frame.index == frame.index[in_b(frame)][0], 3000.0, 5.0)


def of_unequal_size(frame):
    """Houses of one arm with 4 users, and one with all others."""
    return 2 * np.minimum(frame.index // 8, 40) + in_b(frame)


def twice(n=1000, again=20):
    """Users of both arms, who are more of B's than of A's, with the health of the experiment."""
    variant = np.where(np.arange(n) % 10 == 0, "B", "A")
    assigned = pd.DataFrame({"user_id": np.arange(n), "variant": variant})
    more = assigned[assigned["variant"] == "A"].head(again).assign(variant="B")
    assigned = pd.concat([assigned, more], ignore_index=True)
    values = pd.DataFrame({"user_id": np.arange(n), "y": np.random.default_rng(5).normal(5, 1, n)})
    expected = {"A": 9, "B": 1}
    health = EXPERIMENTS.experiment_health(values, assigned, expected=expected)
    return EXPERIMENTS.join_experiment(values, assigned, multi_variant="drop"), health


def brought(more):
    everyone, seen = exposed(more)
    return seen, EXPERIMENTS.experiment_health(seen, everyone)


DAY, LATER = pd.Timestamp("2026-11-02"), pd.Timestamp("2026-11-05")
# Code → a frame, its metric, and options of compare_variants.
VARIANTS = {
    "sample_ratio": lambda: (users(b=0.25), "y", {}),
    "huge_values": lambda: (users(y=lambda f: 1e200 + f["y"]), "y", {}),
    "unequal_missing": lambda: (
        users(y=lambda f: f["y"].mask(in_b(f) & (f.index % 3 == 0))),
        "y",
        {"nan": "drop"},
    ),
    "shares_change": lambda: (ramped(), "y", {"time_col": "day", "expected": None}),
    "users_in_both": lambda: (twice()[0], "y", {"health": twice()[1]}),
    "surplus": lambda: (brought(0.045)[0], "y", {"health": brought(0.045)[1]}),
    "exposure_differs": lambda: (brought(0.06)[0], "y", {"health": brought(0.06)[1]}),
    "strata_moved": lambda: (moved_strata(0.4), "y", {"strata": "visits"}),
    "strata_differ_in_worth": lambda: (moved_strata(0.2), "y", {"strata": "visits"}),
    "covariate_after": lambda: (
        users(x=lambda f: f["y"] + f.index % 7, day=lambda f: DAY, late=lambda f: LATER),
        "y",
        {"covariates": "x", "time_col": "day", "covariate_time_col": "late"},
    ),
    "covariate_differs": lambda: (with_past(0.4), "y", {"covariates": "first"}),
    "covariate_not_timed": lambda: (with_past(0.0), "y", {"covariates": "first"}),
    "unequal_covariate_missing": lambda: (
        users(x=lambda f: (f["y"] + f.index % 7).mask(in_b(f) & (f.index % 3 == 0))),
        "y",
        {"covariates": "x"},
    ),
    "no_covariate": lambda: (
        users(d=lambda f: 2.0, x=lambda f: 0.0, m=lambda f: 1.0 * ~in_b(f)),
        {"r": ("y", "d")},
        {"covariates": {"r": ("x", "m")}},
    ),
    "zero_denominator": lambda: (
        users(d=lambda f: 3.0 * ~in_b(f), y=lambda f: f["y"] * ~in_b(f)),
        {"r": ("y", "d")},
        {},
    ),
    "too_few_users": lambda: (users(30, 1 / 30), "y", {"expected": None}),
    "tiny": lambda: (users(30), "y", {}),
    "constant_arm": lambda: (users(y=lambda f: f["y"].where(in_b(f), 5.0)), "y", {}),
    "zero_variance": lambda: (users(y=lambda f: 5.0 + in_b(f)), "y", {}),
    "few_users_carry": lambda: (users(d=one_heavy), {"r": ("y", "d")}, {}),
    "repeated_units": lambda: (stores(), "y", {}),
    "few_units": lambda: (
        users(2000, y=lambda f: np.where(f.index < 12, 3000.0 * in_b(f), f["y"] % 1)),
        "y",
        {},
    ),
    "denominator_differs": lambda: (clicks(0.2), CTR, {}),
    "parts_unclear": lambda: (clicks(0.06), CTR, {}),
    "mostly_zero_denominator": lambda: (
        users(2000, d=lambda f: 1.0 * (f.index % 50 < 2), y=lambda f: f["y"] * (f.index % 50 < 2)),
        {"r": ("y", "d")},
        {},
    ),
    "skewed": lambda: (skewed_arms(), "y", {"expected": None}),
    "sequential_refused": lambda: (
        skewed_arms(),
        "y",
        {"expected": None, "sequential_n": 4000},
    ),
    "unseen_units": lambda: (in_weeks(0.03), "ndcg@10", {"strata": "week", "expected": None}),
    "few_clusters": lambda: (
        users(house=lambda f: f.index % 24),
        "y",
        {"cluster": "house"},
    ),
    "shared_clusters": lambda: (
        users(house=lambda f: f.index % 101),
        "y",
        {"cluster": "house", "expected": None},
    ),
    "ratio_not_checked": lambda: (users(), "y", {"expected": None}),
    "unbounded": lambda: (users(y=lambda f: f["y"] + 2 * in_b(f)), "y", {}),
    "heavier_unseen": lambda: (
        users(y=lambda f: f["y"] + 2 * in_b(f), house=of_unequal_size),
        "y",
        {"cluster": "house"},
    ),
}


@functools.cache
def frame_of_variants(code):
    data, metrics, options = VARIANTS[code]()
    options = {"control": "A", "expected": EQUAL, "larger_is_better": list(metrics), **options}
    if isinstance(metrics, str):
        options["larger_is_better"] = metrics
    if "health" in options:
        options.pop("expected")
    return data, metrics, options


def of_variants(code):
    data, metrics, options = frame_of_variants(code)
    return rd.compare_variants(data, metrics, **options, details=True)


def of_moments(code):
    if code in ("missing_not_checked", "skewness_not_checked"):
        moments = EXPERIMENTS.variant_moments(skewed_arms(), "y")
        lost = moments.drop(columns=["n_null", "skewness"])
        return EXPERIMENTS.compare_variants_from_moments(lost, control="A", details=True)
    data, metrics, options = frame_of_variants(code)
    nan = {"nan": options["nan"]} if "nan" in options else {}
    if "strata" in options:  # of arms as wholes
        data = data[data["week"] == 1]
    options = {name: value for name, value in options.items() if name not in ("nan", "strata")}
    moments = EXPERIMENTS.variant_moments(data, metrics, **nan)
    return EXPERIMENTS.compare_variants_from_moments(moments, **options, details=True)


def of_quantiles(code):
    draw = np.random.default_rng(6)
    own = {
        "ties": lambda f: draw.choice([4.99, 9.99, 19.99], len(f)),
        "gap": lambda f: 100 + 800 * (draw.random(len(f)) < 0.05) + draw.normal(0, 9, len(f)),
        "few_values": lambda f: f["y"],
    }
    order = {"gap": 0.95, "few_values": 0.99, "surplus": 0.5}.get(code, 0.5)
    if code in own:
        n = 200 if code == "few_values" else 4000
        data, metrics, options = users(n, y=own[code]), "y", {"control": "A", "expected": EQUAL}
    else:
        data, metrics, options = frame_of_variants(code)
    return EXPERIMENTS.compare_quantiles(data, metrics, quantiles=order, **options, details=True)


def over_time(code, fades=False):
    """The frame of variants on three days, on which values may get smaller; users are assigned
    before the first."""
    if code == "strata_differ":
        data, metrics, options = ramped(), "y", {"control": "A"}
        data = data.assign(seen=data["day"])
    elif code == "surplus":
        # Users are known as assigned alone, whose shares may be off by chance: p < 0.01.
        data = exposed(0.0)[1]
        data = data[(data["variant"] == "A") | (data["y"] > data["y"].quantile(0.09))]
        metrics, options = "y", {"control": "A", "expected": EQUAL}
    elif code == "exposure_differs":
        return over_time("surplus", fades)
    elif code == "users_in_both":
        values = users(1000, 0.1)
        again = values[values["variant"] == "A"].head(20).assign(variant="B")
        data, metrics = pd.concat([values, again]), "y"
        options = {"control": "A", "expected": {"A": 9, "B": 1}, "multi_variant": "drop"}
    else:
        data, metrics, options = frame_of_variants(code)
        options = {name: options[name] for name in options if name != "larger_is_better"}
    if options.pop("sequential_n", None):
        options |= {"kind": "cumulative", "sequential_n": 4000}
    people = data.assign(seen=DAY) if "seen" not in data else data
    dated = "day" if options.pop("time_col", None) else "seen"
    columns = {"user_id", "variant", dated, options.get("cluster"), options.get("strata")}
    rows = data.drop(columns=["variant", "day"], errors="ignore").drop_duplicates("user_id")
    days = pd.DataFrame({"on": pd.date_range(DAY, periods=3 if code != "strata_differ" else 10)})
    named = list(metrics) if isinstance(metrics, dict) else [metrics]
    if code in ("skewed", "unseen_units"):
        options |= {"larger_is_better": named}
    rows = rows.merge(days, how="cross")
    if fades:
        rows[metrics] *= 1 - (rows["on"] - DAY).dt.days / 3
    return EXPERIMENTS.effect_over_time(
        rows,
        metrics,
        time_col="on",
        exposure_col="seen" if dated == "seen" else None,
        assignment=people[[name for name in people if name in columns]],
        **options,
        details=True,
    )


FADES = ("skewed", "unseen_units", "zero_variance", "heavier_unseen", "unbounded")


def trend(code):
    found = over_time(code, code in FADES)
    names = ["trend_withheld", "trend_remarks", "trend_verdict"]
    return found[names].rename(columns=lambda name: name.removeprefix("trend_"))


def models(d, base=0.5, metric="ndcg@10", **options):
    frame = pd.DataFrame({"user_id": np.arange(len(d)), metric: base})
    return {"a": frame, "b": frame.assign(**{metric: frame[metric] + d})}, options


def noise(n=100, seed=1):
    return np.random.default_rng(seed).normal(size=n)


def weighted_models():
    weight = np.where(np.arange(100) < 2, 500.0, 1.0)
    frames, _ = models(0.1 * noise())
    frames = {name: one.assign(w=weight) for name, one in frames.items()}
    return frames, {"weight_col": "w"}


def repeated_models():
    frames, _ = models(0.1 * noise())
    lists = {"user_id": np.arange(100) // 4, "session": np.arange(100)}
    return {name: one.assign(**lists) for name, one in frames.items()}, {"user_col": "session"}


def sessions():
    """The last user has 20 of 200 lists, all others have 2."""
    frames, _ = models(0.1 + 0.01 * noise(200))
    lists = {"user_id": np.minimum(np.arange(200) // 2, 90), "session": np.arange(200)}
    return {name: one.assign(**lists) for name, one in frames.items()}, {
        "user_col": ["user_id", "session"],
        "unit_col": "user_id",
    }


def lacking(lost, **options):
    frames, _ = models(0.02 * noise(200))
    frames["b"] = frames["b"].iloc[lost:]
    return frames, options


SHOP = rd.sample_shop(n_users=400, n_items=100)


@functools.cache
def result(model="popularity", first=None, true=None, **options):
    pred = SHOP.pred.query("model == @model").drop(columns="model")
    pred = pred if first is None else pred.groupby("user_id").head(first)
    true = SHOP.true.drop_duplicates("user_id") if true else SHOP.true
    return rd.evaluate(true, pred, "ndcg@10", **options)


def against_knn(**options):
    return lambda: ({"a": result("knn"), "b": result(**options)}, {"missing": "drop"})


# Code → two models and options of compare_models.
MODELS = {
    "few_lists": lambda: models(0.1 * noise(20)),
    "few_lists_differ": lambda: models(np.where(np.arange(100) < 10, 0.1, 0.0)),
    "few_differ": lambda: models(np.where(np.arange(100) < 40, 0.1 * noise(), 0.0)),
    "mostly_zero": lambda: models(np.where(np.arange(1000) < 30, 0.1, 0.0)),
    "huge_values": lambda: models(1e200 * noise(), metric="m"),
    "skewed": lambda: models(np.random.default_rng(1).lognormal(0, 2, 100), metric="m"),
    "few_users_carry": weighted_models,
    "repeated_units": repeated_models,
    "heavier_unseen": sessions,
    "zero_variance": lambda: models(np.full(100, 0.1)),
    "too_few_users": lambda: models(np.array([0.1])),
    "unseen_units": lambda: models(0.02 + 0.02 * (np.arange(60) % 2)),
    "no_bounds": lambda: models(0.5 + 0.1 * noise(), metric="m"),
    "within_margin": lambda: models(0.02 + 0.01 * noise(2000), margin=0.03),
    "wilcoxon_not_mean": lambda: models(0.1 * noise(), test="wilcoxon"),
    "different_lists": lambda: lacking(20, missing="drop"),
    "other_truth": against_knn(true=True),
    "other_population": against_knn(users="pred"),
    "other_definition": against_knn(like="rectools"),
    "other_options": against_knn(ties="item_asc"),
    "other_order": against_knn(score_col=False),
    "short_lists": against_knn(first=5),
}


def of_models(code):
    frames, options = MODELS[code]()
    return rd.compare_models(frames, **{"baseline": "a", **options}, details=True)


def by_segment(code):
    """Two segments of the same users; a verdict in one that is withheld is a doubt about both."""
    one = of_models(code).assign(country="x")
    other = one.assign(country="y", diff=-one["diff"], effect="none", withheld="", remarks="")
    return EXPERIMENTS.segment_effects(pd.concat([one, other]), by="country", details=True)


def variants_by_segment(code):
    one = of_variants(code).assign(country="x")
    other = one.assign(country="y", diff=-one["diff"], effect="none", withheld="", remarks="")
    return EXPERIMENTS.segment_effects(pd.concat([one, other]), by="country", details=True)


def of_cheap_labels(code):
    """Two models under labels of people, and of a judge for these users and 300 more."""
    if code == "not_random":
        rank = np.argsort(np.random.default_rng(3).random(1000))
        frames = {name: 0.5 + 0.4 * (rank / 1000) + of * noise(1000) for name, of in JUDGES}
        judged = dict.fromkeys(frames, rank >= 900)
    else:
        n = 20 if code == "few_human" else 100
        frames = {name: 0.5 + of * noise(400) for name, of in JUDGES}
        judged = {name: np.arange(400) < n for name in frames}
    cheap = {
        name: pd.DataFrame({"user_id": np.arange(len(values)), "ndcg@10": values})
        for name, values in frames.items()
    }
    human = {name: one[judged[name]].reset_index(drop=True) for name, one in cheap.items()}
    if code == "few_lists_differ":
        human["b"] = human["a"].assign(**{"ndcg@10": human["a"]["ndcg@10"] + HALF_OF_TEN})
    if code == "different_lists":
        human["b"] = human["b"].iloc[10:]
    return rd.compare_models(human, baseline="a", cheap=cheap, missing="drop", details=True)


JUDGES = (("a", 0.01), ("b", 0.02))
HALF_OF_TEN = np.where(np.arange(100) < 10, 0.05, 0.0)


def of_labels(code):
    draw = np.random.default_rng(3)
    truth = draw.random(1000)
    cheap = pd.DataFrame({"user_id": range(1000), "m": truth, "visits": draw.poisson(3, 1000)})
    active = np.argsort(-cheap["visits"].to_numpy(), kind="stable")
    human = cheap.take(active[:60] if code == "not_random" else active[::15])
    options = {"covariates": "visits"} if code == "not_random" else {}
    if code == "few_human":
        human = human.head(20)
    if code == "undefined_differs":
        human = human.assign(p=0.06, m=human["m"].where(human["visits"] > 1))
        cheap, options = cheap.drop(columns="visits"), {"probability_col": "p"}
    return EXPERIMENTS.prediction_powered(human.drop(columns="visits"), cheap, "m", **options)


def of_history(code):
    """Nights around 10 with a spread of .1, and what happens in them."""
    night, spread = np.arange(200), 0.1 * noise(200, 7)
    values = {
        "few_runs": spread[:20],
        "definition_changed": spread,
        "not_independent": np.convolve(noise(219, 1), np.ones(20))[:200] / 10,
        "early": (0.1 * noise(90, 8) - 0.28 * (np.arange(90) >= 60)),
        "line_fits": spread - 0.006 * night,
        "back": spread - 0.4 * ((night >= 100) & (night < 120)),
        "outlier_night": np.where(night == 90, -0.8, spread),
    }[code]
    ends = range(62, 70) if code == "early" else [len(values)]
    return pd.concat([_history(10 + values[:end], code) for end in ends], ignore_index=True)


def _history(values, code):
    days = pd.date_range("2026-01-01", periods=len(values))
    unlike = "other definition" if code == "definition_changed" else ""
    history = object.__new__(rd.diagnostics.History)
    own = {"date": days, "job": "", "column": "hitrate@1", "value": values, "se": 0.1}
    nights = pd.DataFrame(own | {"unlike": np.where(np.arange(len(values)) < 5, unlike, "")})
    vars(history).update(_values=nights, since=days[0], **HISTORY)
    return history.changes()


HISTORY = {"_series": []}


def of_experiments(code):
    draw = np.random.default_rng(2)
    n, noisy = (9, 0.1) if code == "few_tests" else (60, 3.0)
    x, y = draw.normal(size=(2, n))
    past = pd.DataFrame({"x": x, "x_se": noisy, "y": y, "y_se": noisy})
    return EXPERIMENTS.proxy_metrics(past, offline="x", online="y")


def of_interleaved(code):
    """Users who click one of two items, of which each team has one."""
    n = 20 if code == "few_lists" else 400
    log = pd.DataFrame({"user_id": np.repeat(np.arange(n), 2), "item_id": ["x", "y"] * n})
    log = log.assign(team=["a", "b"] * (n // 2) + ["b", "a"] * (n // 2), rank=[1, 2] * n)
    chance = np.where(log["team"] == "b", 0.6, 0.1) if code == "no_bounds" else 0.3
    click = np.random.default_rng(2).random(2 * n) < chance
    if code == "unbalanced_teams":
        log, click = (
            one[~((log["team"] == "b") & (log["user_id"] % 5 == 0))] for one in (log, click)
        )
    if code in ("few_lists_differ", "few_differ", "mostly_zero"):
        click = click & (log["user_id"] < (15 if code != "few_differ" else 60)).to_numpy()
    clicks = log[click]
    clicks = clicks.assign(price=1e200 if code == "huge_values" else 1.0)
    if code == "skewed":
        clicks["price"] = np.where(np.arange(len(clicks)) < 1, 1e3, 1.0)
    return EXPERIMENTS.compare_interleaved(log, clicks, credit="price", details=True)


def of_leaderboard(code):
    frames, options = MODELS[code]()
    return rd.leaderboard(frames, baseline="a", **options).comparisons


def of_gate(code):
    """A metric without bounds, of which one large loss more could decide."""
    frames, _ = models(np.where(np.arange(200) == 0, 30.0, 0.1 * noise(200)), metric="m")
    gate = rd.gate(frames["b"], frames["a"], {"m": -0.02}, larger_is_better="m")
    return gate.table.assign(verdict=lambda one: one["reason"])


def of_splits(code):
    return EXPERIMENTS.aa_test(users(12, y=lambda f: 5.0), "y", n=20)


def of_levels(code):
    data = users(800, 0.25, day=lambda f: np.where(f.index < 10, "rare", "usual"))
    return EXPERIMENTS.find_srm(data, "day", expected=EQUAL)


def of_roles(code):
    """A guardrail of a metric without bounds."""
    table = rd.compare_variants(users(), "y", control="A", expected=EQUAL, details=True)
    return EXPERIMENTS.role_verdicts(table, {"y": ("guardrail", "-20%")})


def of_intervals(code):
    frame = pd.DataFrame({"user_id": range(40), "c": 0.1, "one": [1.0, *[np.nan] * 39]})
    return EXPERIMENTS.bootstrap_ci(frame, ["c", "one"]).assign(withheld="", verdict="")


ARMS = (
    "sample_ratio unequal_missing shares_change users_in_both surplus strata_moved covariate_after "
    "covariate_differs zero_denominator tiny constant_arm few_units denominator_differs "
    "parts_unclear sequential_refused few_clusters shared_clusters strata_differ_in_worth "
    "exposure_differs unequal_covariate_missing no_covariate mostly_zero_denominator "
    "covariate_not_timed ratio_not_checked"
)
PAIRS = (
    "few_lists few_lists_differ few_differ mostly_zero short_lists other_truth other_population "
    "other_definition other_options other_side_table other_order different_lists missing_lists "
    "wilcoxon_not_mean within_margin no_bounds"
)
GIVEN = "other_direction other_numbers other_correction labels_disagree"
PEOPLE = "not_random few_human undefined_differs"
NIGHTS = "few_runs definition_changed not_independent early line_fits back outlier_night"
PAST = "few_tests noise"
STEPS = "few_values gap ties"
UNITS = (
    "huge_values too_few_users few_users_carry repeated_units skewed unseen_units zero_variance "
    "heavier_unseen"
)
SUMS = "missing_not_checked skewness_not_checked"
DENOMINATORS = "zero_denominator few_users_carry mostly_zero_denominator parts_unclear"
PREPERIOD = (
    "covariate_after covariate_differs covariate_not_timed unequal_covariate_missing no_covariate"
)
WORTH = "strata_moved strata_differ_in_worth"
MARGIN = {"unbounded": "it is about the value of a user of an arm"}
NOT_MODELS = {
    PAIRS: "two models have lists of the same users, and arms have other users",
    "unbalanced_teams": "teams share a list only where two rankings are mixed",
    GIVEN: "it is of a comparison that was made before",
    PEOPLE: "labels of people beside cheap ones are of lists of models",
    NIGHTS: "it is about nights of one job",
    PAST: "it is about experiments of the past",
    "not_tested": "a row that is asked for has its test, or the reason why it has none",
    "too_few_units": "the interval is of one sample, and arms have too_few_users",
}
NOT_ARMS = {
    **MARGIN,
    ARMS: "all models have the same users, whom nobody assigned",
    STEPS: "means are compared, and no quantiles",
    SUMS: "the rows of users are at hand",
    "strata_differ": "models have no strata",
    GIVEN: "it is of a comparison that was made before",
    NIGHTS: "it is about nights of one job",
    PAST: "it is about experiments of the past",
    "not_tested": "a row that is asked for has its test, or the reason why it has none",
    "too_few_units": "the interval is of one sample, and pairs have too_few_users",
}
REMARK = "it withholds nothing, and stands in the row of its segment"
ONE_KIND = "its rows say one thing, which these have nothing to do with"


def without(codes, *some):
    return " ".join(code for code in codes.split() if code not in " ".join(some).split())


V = [*VARIANTS]
# Function → how it is called, the codes that appear there, and why the others cannot.
FUNCTIONS = {
    "compare_variants": (
        of_variants,
        " ".join(V),
        {**NOT_MODELS, STEPS: "means are compared, and no quantiles", SUMS: "users are at hand"}
        | {"strata_differ": "strata are given, and nothing is put into strata by itself"},
    ),
    "compare_variants_from_moments": (
        of_moments,
        "sample_ratio huge_values unequal_missing users_in_both surplus exposure_differs tiny "
        "too_few_users constant_arm zero_variance skewed unseen_units sequential_refused "
        "unbounded ratio_not_checked " + SUMS,
        {
            **NOT_MODELS,
            "shares_change": "variant_moments refuses users whose dates say so",
            f"{WORTH} strata_differ": "moments are of arms as wholes, without strata",
            PREPERIOD: "moments take no covariates",
            f"{DENOMINATORS} denominator_differs": "moments are of means, and ratios are refused",
            "repeated_units": "variant_moments refuses rows that repeat a user",
            "few_clusters shared_clusters heavier_unseen": "moments have no clusters and weights",
            "few_units": "moments hold no single units; the function says so",
            STEPS: "moments have no quantiles",
        },
    ),
    "compare_quantiles": (
        of_quantiles,
        "sample_ratio huge_values unequal_missing shares_change users_in_both surplus tiny "
        "too_few_users exposure_differs repeated_units few_clusters shared_clusters "
        f"heavier_unseen ratio_not_checked {STEPS}",
        {
            **NOT_MODELS,
            f"{WORTH} strata_differ": "quantiles take no strata",
            "unseen_units unbounded": "a user more moves a quantile by a place",
            PREPERIOD: "quantiles take no covariates",
            f"{DENOMINATORS} denominator_differs": "quantiles are of columns, and not of ratios",
            "skewed sequential_refused few_units": "order statistics have no tails",
            "constant_arm zero_variance": "equal values are steps (ties)",
            SUMS: "users are at hand",
        },
    ),
    "effect_over_time": (
        over_time,
        without(" ".join(V), PREPERIOD) + " strata_differ",
        {
            **NOT_MODELS,
            PREPERIOD: "it takes no covariates",
            STEPS: "means are compared, and no quantiles",
            SUMS: "users are at hand",
        },
    ),
    "trend": (
        trend,
        without(
            " ".join(V),
            PREPERIOD,
            "mostly_zero_denominator sequential_refused few_clusters",
        )
        + " strata_differ",
        {
            **NOT_MODELS,
            PREPERIOD: "it takes no covariates",
            "mostly_zero_denominator": "it qualifies a period, whose row has it",
            "sequential_refused": "the trend is not sequential, and skewed withholds it",
            "few_clusters": "its units are clusters, and too few of them are tiny",
            STEPS: "means are compared, and no quantiles",
            SUMS: "users are at hand",
        },
    ),
    "segment_effects of variants": (
        variants_by_segment,
        without(" ".join(V), PREPERIOD, "strata_differ_in_worth exposure_differs few_clusters")
        .replace("sequential_refused ", "")
        .replace("shared_clusters ", "")
        .replace("mostly_zero_denominator ", "")
        + " covariate_after covariate_differs",
        {
            **NOT_MODELS,
            "strata_differ_in_worth exposure_differs few_clusters sequential_refused "
            "shared_clusters mostly_zero_denominator": REMARK,
            without(PREPERIOD, "covariate_after covariate_differs"): REMARK,
            STEPS: "means are compared, and no quantiles",
            f"{SUMS} strata_differ": "it is a remark of another function",
        },
    ),
    "compare_models": (
        of_models,
        " ".join(MODELS),
        {
            **NOT_ARMS,
            "unbalanced_teams": "teams share a list only where two rankings are mixed",
            PEOPLE: "there is one kind of labels without cheap=",
            "other_side_table": "tests/experiments/test_comparable_runs.py has results with items",
            "missing_lists": "tests/experiments/test_missing_lists.py has results that lack lists",
        },
    ),
    "compare_models(cheap=)": (
        of_cheap_labels,
        "not_random few_human few_lists_differ different_lists",
        {
            **NOT_ARMS,
            "unbalanced_teams": "teams share a list only where two rankings are mixed",
            "undefined_differs": "it takes no probabilities, so that such lists are left out",
            "unseen_units no_bounds": "the interval allows for one more list at a bound",
            f"{without(PAIRS, 'few_lists_differ different_lists no_bounds')} "
            f"{without(UNITS, 'unseen_units')}": "its row is the one of compare_models above",
        },
    ),
    "compare_interleaved": (
        of_interleaved,
        "unbalanced_teams few_lists few_lists_differ few_differ mostly_zero huge_values skewed "
        "no_bounds",
        {
            **NOT_ARMS,
            PEOPLE: "clicks are no labels of people",
            without(PAIRS, "few_lists few_lists_differ few_differ mostly_zero no_bounds"): (
                "both teams share the lists of one log, by one definition and one test"
            ),
            "unseen_units": "credits of clicks have no bounds (no_bounds)",
            without(UNITS, "huge_values skewed unseen_units"): "its row is that of compare_models",
        },
    ),
    "segment_effects of models": (
        by_segment,
        "few_lists few_lists_differ huge_values few_users_carry zero_variance unseen_units "
        "different_lists other_truth other_population other_definition other_options other_order "
        "short_lists",
        {
            **NOT_ARMS,
            "few_differ mostly_zero repeated_units too_few_users skewed no_bounds within_margin "
            "heavier_unseen wilcoxon_not_mean missing_lists": REMARK,
            "unbalanced_teams": "teams share a list only where two rankings are mixed",
            PEOPLE: "there is one kind of labels without cheap=",
            "other_side_table": "tests/experiments/test_comparable_runs.py has results with items",
        },
    ),
    "prediction_powered": (
        of_labels,
        PEOPLE,
        {
            **NOT_ARMS,
            PAIRS: "a mean is of one model, and its interval alone is said",
            UNITS: "the interval allows for one more list at a bound",
            "unbalanced_teams": "teams share a list only where two rankings are mixed",
        },
    ),
    "gate": (
        of_gate,
        "skewed",
        {
            **NOT_ARMS,
            f"{PAIRS} {without(UNITS, 'skewed')} {PEOPLE}": (
                "its bound holds for every number of users, and `reason` says why it is undecided"
            ),
            "unbalanced_teams": "teams share a list only where two rankings are mixed",
        },
    ),
    "History.changes": (of_history, NIGHTS, {without(" ".join(CAUTIONS), NIGHTS): ONE_KIND}),
    "proxy_metrics": (of_experiments, PAST, {without(" ".join(CAUTIONS), PAST): ONE_KIND}),
    "role_verdicts": (
        of_roles,
        "unbounded",
        {
            without(" ".join(CAUTIONS), "unbounded unseen_units"): "of its table alone",
            "unseen_units": "tests/experiments/test_decide_experiment.py has one in its note",
        },
    ),
    "find_srm": (
        of_levels,
        "sample_ratio not_tested",
        {
            without(
                " ".join(CAUTIONS), "sample_ratio not_tested"
            ): "it counts users, without metrics"
        },
    ),
    "aa_test": (
        of_splits,
        "not_tested",
        {without(" ".join(CAUTIONS), "not_tested"): "it splits the same users, and counts"},
    ),
    "bootstrap_ci": (
        of_intervals,
        "zero_variance too_few_units",
        {without(" ".join(CAUTIONS), "zero_variance too_few_units"): "an interval has no verdict"},
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_caution_appears_or_has_a_reason(name):
    _, there, reasons = FUNCTIONS[name]
    named = [*there.split(), *(code for codes in reasons for code in codes.split())]
    assert not {*CAUTIONS} - {*named}, "a caution has neither a frame nor a reason"
    twice = [code for code in named if named.count(code) > 1]
    assert (sorted({*named} - {*CAUTIONS}), sorted({*twice})) == ([], [])
    assert all(reasons.values())


@pytest.mark.few(18)
@pytest.mark.parametrize(
    ("name", "code"),
    [(name, code) for name, (_, codes, _) in FUNCTIONS.items() for code in codes.split()],
)
def test_a_caution_is_met_and_said(name, code):
    table = FUNCTIONS[name][0](code)
    there = [code in codes_of(text) for text in table["remarks"]]
    assert any(there)
    words, adds = CAUTIONS[code].words, CAUTIONS[code].adds
    for row in table[there].to_dict("records"):
        if row["withheld"] == code:
            assert row["effect"] == "" if "effect" in row else True
            start = words.partition("{")[0]
            assert row["verdict"].startswith(start)
        elif row["withheld"] == "" and adds:
            assert adds.partition("{")[0] in row["verdict"]


NUMBERS = {
    "turned_by": 1.4,
    "unseen": 1.0,
    "turned_to": "lose",
    "gap_low": 1.0,
    "gap_high": 2.0,
    "detail": "d",
}


@functools.cache
def all_at_once():
    """A row of a comparison of variants for each caution that can stand there."""
    base = rd.compare_variants(
        users(y=lambda f: f["y"] + in_b(f)), "y", control="A", expected=EQUAL, details=True
    )
    codes = [*VARIANTS, *STEPS.split(), *SUMS.split(), "strata_differ"]
    table = base.iloc[np.zeros(len(codes), int)].reset_index(drop=True)
    table = table.assign(metric=[f"m_{code}" for code in codes], remarks=codes, **NUMBERS)
    add_verdicts(table, "variants", ["better"] * len(table))
    return table


def test_every_reader_keeps_a_verdict_withheld(tmp_path):
    table = all_at_once()
    roles = dict.fromkeys(table["metric"], "success")
    note = dict(zip(table["metric"], table["verdict"], strict=True))
    page = rd.report(experiment=table, path=tmp_path / "page.html").read_text(encoding="utf-8")
    frame = EXPERIMENTS.report_table(table).frame
    judged = EXPERIMENTS.role_verdicts(table, roles)
    fails = {what for what, _ in failing_verdicts(table)}
    for row, told, by_role in zip(
        table.to_dict("records"), frame["verdict"], judged.to_dict("records"), strict=True
    ):
        assert told.replace("\\", "") == row["verdict"]
        assert html.escape(row["verdict"].split(":")[-1].strip()[:20], quote=False) in page
        if row["withheld"]:
            assert note[row["metric"]] in (by_role["note"], by_role["verdict"])
            assert by_role["effect"] != "better"
    assert {"invalid", "warning"} <= fails


@pytest.mark.few(5)
@pytest.mark.parametrize("code", [code for code in VARIANTS if CAUTIONS[code].withholds])
def test_no_decision_ships_on_what_is_withheld(code):
    table = all_at_once()
    one = table[table["remarks"] == code].reset_index(drop=True)
    decided = EXPERIMENTS.decide_experiment(one, roles={f"m_{code}": "success"}).iloc[0]
    withheld = one["withheld"].iloc[0]
    if withheld:
        assert decided["effect"] in ("keep_running", "invalid")
        assert (decided["effect"] == "invalid") == (withheld in UNLIKE)
