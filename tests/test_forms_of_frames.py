"""Every function that takes frames gives the same for Arrow's types, pandas' nullable types,
categories and an index with repeated labels as for numpy's types."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import recdf as rd

N = 240


@cache
def frames():
    """Lists, and an experiment with its log, of some users."""
    rng = np.random.default_rng(5)
    shop = rd.sample_shop(n_users=80, n_items=60, n_recs=10)
    start = pd.Timestamp("2026-03-01")
    users = pd.DataFrame({"user_id": np.arange(N) * 3 + 1, "segment": rng.choice(["x", "y"], N)})
    users["variant"] = rng.choice(["A", "B"], N)
    users["spend"], users["before"] = rng.gamma(2, 3, N), rng.normal(0, 1, N)
    users["views"] = rng.poisson(3, N) + 1
    users["clicks"] = rng.binomial(users["views"], 0.4)
    users["score"] = rng.random(N)  # beside the metrics
    users["home"] = np.where(users["user_id"] % 7 == 0, None, "north")
    users["day"] = rng.choice(["mon", "tue"], N)
    users["since"] = start + pd.to_timedelta(rng.integers(0, 9 * 24, N), "h")
    users["seen"] = users["since"] + pd.Timedelta("12h")
    log = shop.pred[shop.pred["model"] == "knn"].drop(columns=["model", "score"])
    log["position"] = log.groupby("user_id").cumcount() + 1
    log = log.assign(time=start + pd.to_timedelta(log["position"] ** 2 * 5, "min"), propensity=0.25)
    log["reward"] = rng.binomial(1, 0.3, len(log)).astype(float)
    log["target_propensity"] = 0.5
    log["target"] = rng.choice([0.1, 0.4], len(log))
    bought = log.iloc[::4][["user_id", "item_id"]].assign(price=2.5)
    bought["time"] = log["time"].iloc[::4] + pd.to_timedelta(
        rng.choice([-9, 9], len(bought)), "min"
    )
    labels = shop.true.head(140).assign(relevance=rng.integers(0, 3, 140))
    return {
        "true": shop.true[["user_id", "item_id"]],
        "pred": shop.pred,
        "items": shop.items,
        "users": users,
        "log": log,
        "bought": bought,
        "labels": labels[["user_id", "item_id", "relevance"]],
        "cheap": labels[["user_id", "item_id", "relevance"]].assign(
            relevance=rng.integers(0, 3, 140)
        ),
    }


def knn(of):
    return of["pred"][of["pred"]["model"] == "knn"].drop(columns="model")


def results(of):
    return rd.evaluate(of["true"], of["pred"], ["ndcg", "recall"], k=5, by="model")


OVER_TIME = {"time_col": "seen", "exposure_col": "since"}
OF_USERS = {"user_col": "user_id", "control": "A"}
CALLS = {
    "evaluate": lambda of: results(of).summary,
    "check": lambda of: rd.check(of["true"], of["pred"]),
    "data_profile": lambda of: rd.diagnostics.data_profile(of["true"], of["pred"]),
    "hit_table": lambda of: rd.diagnostics.hit_table(of["true"], knn(of), k=3),
    "exposure_table": lambda of: rd.diagnostics.exposure_table(of["pred"], k=3),
    "position_table": lambda of: rd.diagnostics.position_table(of["true"], knn(of), k=3),
    "sample_to_judge": lambda of: rd.diagnostics.sample_to_judge(knn(of), 20, k=3),
    "label_agreement": lambda of: rd.diagnostics.label_agreement(of["labels"], of["cheap"]),
    "gate": lambda of: (
        rd.gate(
            results(of).per_user.query("model == 'knn'").drop(columns="model"),
            results(of).per_user.query("model == 'popularity'").drop(columns="model"),
            {"ndcg@5": -0.01},
        ).table
    ),
    "from_impressions": lambda of: (
        rd.from_impressions(
            of["log"], time_col="time", list_cols=(), purchases=of["bought"], value_col="price"
        ).true
    ),
    "sessions": lambda of: (
        rd.from_impressions(
            of["log"], time_col="time", session_gap="30min", purchases=of["bought"]
        ).pred
    ),
    "check_log": lambda of: rd.logs.check_log(
        of["log"], time_col="time", list_cols=(), purchases=of["bought"]
    ),
    "time_slice": lambda of: rd.logs.time_slice(of["log"], "time", "1h"),
    "arrivals_by_day": lambda of: rd.experiments.arrivals_by_day(of["log"], time_col="time"),
    "join_experiment": lambda of: rd.join_experiment(
        of["users"][["user_id", "spend"]], of["users"][["user_id", "variant"]]
    ),
    "health": lambda of: rd.experiments.experiment_health(
        of["users"][["user_id", "spend"]], of["users"][["user_id", "variant"]]
    ),
    "roll_up": lambda of: rd.experiments.roll_up(
        of["users"][["segment", "spend"]], unit_col="segment"
    ),
    "find_srm": lambda of: rd.experiments.find_srm(
        of["users"], ["segment", "home"], expected={"A": 1, "B": 1}
    ),
    "compare_variants": lambda of: rd.compare_variants(
        of["users"],
        {"spend": "spend", "ctr": ("clicks", "views")},
        covariates={"spend": "before"},
        control="A",
        time_col="since",
        details=True,
    ),
    "by segment": lambda of: rd.compare_variants(
        of["users"], ["spend"], by="segment", strata="day", **OF_USERS
    ),
    "quantiles": lambda of: rd.experiments.compare_quantiles(of["users"], ["spend"], control="A"),
    "moments": lambda of: rd.experiments.variant_moments(of["users"], ["spend", "clicks"]),
    "over time": lambda of: rd.experiments.effect_over_time(
        of["users"], ["spend"], kind="cumulative", **OVER_TIME, **OF_USERS
    ),
    "bootstrap_ci": lambda of: rd.experiments.bootstrap_ci(
        of["users"], ["spend"], by="segment", n_resamples=99
    ),
    "aa_test": lambda of: rd.experiments.aa_test(of["users"], ["spend"], n=20),
    "plan": lambda of: rd.experiments.plan_experiment(
        of["users"], ["spend"], n=2000, covariates={"spend": "before"}
    ),
    "interleave": lambda of: rd.experiments.interleave(
        knn(of), of["pred"][of["pred"]["model"] == "random"].drop(columns="model"), k=3
    ),
    "user_gap": lambda of: rd.diagnostics.user_gap(
        of["users"][["user_id", "segment", "spend"]], "segment", metrics="spend"
    ),
    "ope": lambda of: rd.ope.estimate(of["log"], target_col="target"),
    "propensity_check": lambda of: rd.ope.propensity_check(of["log"]),
    "reward_table": lambda of: rd.ope.reward_table(of["log"], candidates=of["log"]),
}


def without_index(frame):
    return frame.set_axis((7 * np.arange(len(frame)) % 5).tolist())


def of_categories(frame):
    texts = [name for name in frame if pd.api.types.is_string_dtype(frame[name].dropna())]
    return frame.astype(dict.fromkeys(texts, "category"))


FORMS = {
    "Arrow": lambda frame: without_index(frame.convert_dtypes(dtype_backend="pyarrow")),
    "nullable": lambda frame: without_index(frame.convert_dtypes(dtype_backend="numpy_nullable")),
    "categories": of_categories,
    "index": without_index,
}


@cache
def expected(name):
    return pd.DataFrame(CALLS[name](frames()))


@pytest.mark.few(32)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
def test_a_form_of_frames_changes_no_number(name, form):
    found = pd.DataFrame(CALLS[name]({at: FORMS[form](one) for at, one in frames().items()}))
    found, own = (one.reset_index(drop=True).astype(object) for one in (found, expected(name)))
    found, own = (one.where(one.notna(), None) for one in (found, own))
    pd.testing.assert_frame_equal(found, own, rtol=1e-12)


# Functions that take paths of parquet files: of users, of their values and of their variants.
OF_PATHS = {
    "compare_variants": lambda users, values, variants: rd.compare_variants(
        users, ["spend"], covariates="before", details=True, **OF_USERS
    ),
    "health": lambda users, values, variants: rd.experiments.experiment_health(values, variants),
    "find_srm": lambda users, values, variants: rd.experiments.find_srm(
        users, ["segment"], expected={"A": 1, "B": 1}
    ),
    "over time": lambda users, values, variants: rd.experiments.effect_over_time(
        users, ["spend"], **OVER_TIME, **OF_USERS
    ),
    "aa_test": lambda users, values, variants: rd.experiments.aa_test(values, ["spend"], n=20),
}


@pytest.mark.parametrize("name", OF_PATHS)
@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
def test_a_path_is_read_as_its_frame(name, tmp_path):
    users = frames()["users"]
    tables = [users, users[["user_id", "spend"]], users[["user_id", "variant"]]]
    paths = [tmp_path / f"{i}.parquet" for i in range(len(tables))]
    for table, path in zip(tables, paths, strict=True):
        table.to_parquet(path)
    found, expected = (pd.DataFrame(OF_PATHS[name](*given)) for given in (paths, tables))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_a_misspelt_column_of_a_file_is_named_beside_all_that_it_has(tmp_path):
    path = tmp_path / "users.parquet"
    frames()["users"].to_parquet(path)
    with pytest.raises(rd.ColumnError, match=r"'sgment'; it has .*did you mean 'segment'\?"):
        rd.experiments.find_srm(path, ["sgment"])
    with pytest.raises(rd.ColumnError, match=r"'spent'; it has .*did you mean 'spend'\?"):
        rd.experiments.aa_test(path, ["spent"], n=20)
    with pytest.raises(rd.ColumnError, match=r"'spent'; it has .*did you mean 'spend'\?"):
        rd.experiments.effect_over_time(path, ["spent"], **OVER_TIME, **OF_USERS)


@pytest.mark.parametrize("kind", ["float64", "double[pyarrow]"])
def test_infinite_values_beside_the_metrics_are_no_matter(kind):
    users = frames()["users"].drop(columns=["since", "seen"])
    score = users["score"].replace(users["score"].max(), np.inf).astype(kind)
    found, expected = (
        pd.DataFrame(rd.compare_variants(one, ["spend"], control="A"))
        for one in (users.assign(score=score), users)
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.long
def test_more_than_a_hundred_columns_give_no_warning_of_pandas(tmp_path):
    shop = rd.sample_shop(n_users=80, n_items=80)
    ks = list(range(1, 52))
    new, old = (
        rd.evaluate(shop.true, shop.pred[shop.pred["model"] == model], ["ndcg", "recall"], k=ks)
        for model in ("knn", "random")
    )
    result = rd.join_results({"new": new, "old": old})
    assert len(result.per_user.columns) > 100
    rd.leaderboard(result)
    rd.report(result, tmp_path / "report.html")
    half = shop.assignment[["user_id"]].assign(half=shop.assignment["user_id"].str[-1] > "5")
    compared = result.compare_models(segments=half, by="half")
    assert set(compared["half"]) == {True, False}
    changes = rd.diagnostics.diff(old, new).per_list
    assert (changes["ndcg@51_diff"] == changes["ndcg@51_after"] - changes["ndcg@51_before"]).any()
    rd.audit(shop.true, shop.pred, ["ndcg", "recall"], k=ks[:20], by="model")
    names = [f"m{i}" for i in range(60)]
    judged = pd.DataFrame(np.random.default_rng(0).random((99, 60)), columns=names)
    judged.insert(0, "user_id", range(99))
    found = rd.experiments.prediction_powered(judged.head(40), judged, names)
    assert found["n_human"].eq(40).all()
