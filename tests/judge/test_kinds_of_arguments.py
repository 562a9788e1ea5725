"""Arguments that name columns, metrics or labels: what cannot be a name is refused by the name of
the argument, in all comparisons, estimates and gates."""

import enum

import numpy as np
import pandas as pd
import pytest

import recdf as rd

USERS = pd.DataFrame(
    {
        "user_id": range(60),
        "variant": ["A", "B"] * 30,
        "x": np.random.default_rng(0).random(60),
        "g": ["p", "q", "r"] * 20,
    }
)
MODELS = pd.concat([USERS.assign(model=name) for name in "ab"])
LOG = USERS[["user_id"]].assign(
    item_id=["a", "b"] * 30, reward=[1, 0, 1] * 20, propensity=0.5, target_propensity=0.4
)
MIXED = USERS[["user_id"]].assign(item_id="a", rank=1, team=["a", "b"] * 30)
UNIFORM = pd.DataFrame({"item_id": ["a", "b"], "target_propensity": 0.5})
X = rd.experiments


def of_models(**given):
    return rd.compare_models(MODELS, **{"metrics": "x", **given})


def of_variants(function):
    return lambda **given: function(USERS, **{"metrics": "x", "control": "A", **given})


CALLS = {
    "compare_variants": (
        of_variants(rd.compare_variants),
        "metrics control variant_col strata cluster by user_col weight_col family expected",
    ),
    "compare_quantiles": (
        of_variants(X.compare_quantiles),
        "metrics control variant_col cluster by user_col expected",
    ),
    "compare_models": (of_models, "metrics baseline model_col user_col fold by unit_col family"),
    "find_srm": (
        lambda **given: X.find_srm(USERS, **{"columns": "g", **given}),
        "columns expected user_col variant_col cluster strata",
    ),
    "experiment_health": (
        lambda **given: X.experiment_health(USERS[["user_id", "x"]], USERS, **given),
        "user_col variant_col expected by",
    ),
    "plan_experiment": (
        lambda **given: X.plan_experiment(USERS, **{"metrics": "x", "n": 50, **given}),
        "metrics cluster guardrails",
    ),
    "plan_comparison": (
        lambda **given: X.plan_comparison(
            MODELS, **{"metrics": "x", "baseline": "a", "n": 50, **given}
        ),
        "metrics baseline model_col user_col",
    ),
    "roll_up": (lambda **given: X.roll_up(USERS[["user_id", "x"]], **given), "unit_col how over"),
    "bootstrap_ci": (
        lambda **given: X.bootstrap_ci(USERS, **{"metrics": "x", **given}),
        "metrics by cluster",
    ),
    "prediction_powered": (
        lambda **given: X.prediction_powered(MODELS.iloc[::3], MODELS, **{"metrics": "x", **given}),
        "metrics user_col covariates baseline",
    ),
    "segment_effects": (
        lambda **given: X.segment_effects(of_variants(rd.compare_variants)(by="g"), **given),
        "by",
    ),
    "adjust_pvalues": (
        lambda **given: X.adjust_pvalues(of_variants(rd.compare_variants)(), **given),
        "p_col family",
    ),
    "compare_interleaved": (
        lambda **given: X.compare_interleaved(MIXED, MIXED, **given),
        "unit_col user_col credit",
    ),
    "gate": (
        lambda **given: rd.gate(USERS, USERS, **{"budgets": {"x": -0.1}, **given}),
        "by user_col unit_col weight_col",
    ),
    "estimate": (
        lambda **given: rd.ope.estimate(LOG, **given),
        "estimators reward_col cluster by weight_col",
    ),
    "ope.compare": (
        lambda **given: rd.ope.compare(
            pd.concat([LOG.assign(model="a"), LOG.assign(model="b")]), **given
        ),
        "by baseline cluster",
    ),
    "propensity_check": (lambda **given: rd.ope.propensity_check(LOG, **given), "by"),
    "popularity_propensity": (
        lambda **given: rd.ope.popularity_propensity(LOG, **given),
        "item_col",
    ),
    "reward_table": (
        lambda **given: rd.ope.reward_table(LOG, candidates=UNIFORM, **{"by": "item_id", **given}),
        "by fold_by reward_col target_col",
    ),
    "target_from_recs": (
        lambda **given: rd.ope.target_from_recs(LOG.iloc[:, :4], MIXED, **given),
        "on by",
    ),
}
CASES = [(name, argument) for name, (_, named) in CALLS.items() for argument in named.split()]
# Lists in lists, what equals nothing, and a table in place of its column.
NO_NAMES = [[["x"]], pd.NA, pd.DataFrame({"x": [1]}), 3.5]


@pytest.mark.few(10)
@pytest.mark.parametrize(("name", "argument"), CASES)
def test_no_name(name, argument):
    call = CALLS[name][0]
    for value in NO_NAMES:
        with pytest.raises(rd.RecdfError) as found:
            call(**{argument: value})
        said = str(found.value)
        assert argument in said or "has no column 3.5" in said or "names [3.5]" in said, said


def keys_of(names):
    return dict.fromkeys(names).keys()


SEVERAL = [np.array, pd.Index, pd.Series, pd.Categorical, tuple, set, iter, keys_of]


@pytest.mark.few(3)
@pytest.mark.parametrize("several", SEVERAL)
def test_names_in_any_collection(several):
    given = {"metrics": "x", "by": "g", "covariates": "before", "smaller_is_better": "x"}
    users = USERS.assign(before=USERS["x"].to_numpy()[::-1])
    whole = rd.compare_variants(users, control="A", **{name: [one] for name, one in given.items()})
    more = {name: several([one]) for name, one in given.items()}
    if several is tuple:  # a tuple of two covariates is a ratio
        more["covariates"] = ["before"]
    pd.testing.assert_frame_equal(rd.compare_variants(users, control="A", **more), whole)


def test_numbers_of_a_plan_in_a_generator():
    whole = X.plan_experiment(USERS, "x", n=50, arrivals=[30.0, 20.0])
    found = X.plan_experiment(USERS, "x", n=50, arrivals=iter([30.0, 20.0]))
    pd.testing.assert_frame_equal(found, whole)


def test_metrics_of_a_leaderboard_in_an_index():
    shop = rd.sample_shop(n_users=400, n_items=100)
    result = rd.evaluate(shop.true, shop.pred, ["ndcg@10", "recall@10"], by="model")
    found = rd.leaderboard(result, metrics=pd.Index(["ndcg@10"]))
    assert str(found) == str(rd.leaderboard(result, metrics=["ndcg@10"]))


def test_words_of_options_may_be_of_a_class_of_str():
    whole = rd.compare_variants(USERS, "x", control="A", alternative="greater", nan="drop")
    given = {"alternative": np.str_("greater"), "nan": enum.StrEnum("Nan", {"DROP": "drop"}).DROP}
    pd.testing.assert_frame_equal(rd.compare_variants(USERS, "x", control="A", **given), whole)


@pytest.mark.parametrize(
    "call",
    [
        lambda by: rd.compare_variants(USERS, "x", control="A", by=by),
        lambda by: rd.compare_variants(USERS, "x", control="A", strata=by),
        lambda by: X.bootstrap_ci(USERS, "x", by=by),
        lambda by: rd.ope.estimate(LOG, by=["item_id", "item_id"]),
    ],
)
def test_a_column_is_named_once(call):
    with pytest.raises(rd.ColumnError, match="is named twice; expected each column once"):
        call(["g", "g"])


def test_a_label_of_another_type_is_shown_as_it_is():
    log = pd.concat([LOG.assign(model=1), LOG.assign(model=2)])
    with pytest.raises(
        rd.OptionError, match=r"baseline='1' is not a target; targets are .*; did you mean 1\?"
    ):
        rd.ope.compare(log, baseline="1")
    models = pd.concat([USERS.assign(model=1), USERS.assign(model=2)])
    with pytest.raises(rd.OptionError, match=r"did you mean 1\?"):
        rd.compare_models(models, "x", baseline="1")


def test_other_kinds():
    with pytest.raises(rd.OptionError, match="quantiles is empty"):
        X.compare_quantiles(USERS, "x", control="A", quantiles=[])
    with pytest.raises(rd.OptionError, match="expected two shares"):
        X.aa_test(USERS, "x", shares=3)
    with pytest.raises(rd.ColumnError, match="must be distinct columns"):
        X.compare_interleaved(MIXED, MIXED, item_col="user_id")
    with pytest.raises(rd.ColumnError, match="must be distinct columns"):
        X.interleave(MIXED, MIXED, item_col="user_id")
    assert len(rd.compare_models(MODELS, "x", margin=10**30)) == 1
