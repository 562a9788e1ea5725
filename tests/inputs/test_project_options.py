"""`options=rd.Options(...)` states the columns and rules of a project once; what a call says itself
comes first."""

import copy
import inspect
import pickle
import tomllib

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd
from recdf.inputs.options import NAMES

TRUE = pd.DataFrame(
    {
        "customer": [1, 1, 2, 3],
        "sku": ["a", "b", "c", "a"],
        "stars": [2, 1, 3, 1],
        "w": [1.0, 1, 2, 1],
    }
)
PRED = pd.DataFrame(
    {
        "customer": [1, 1, 2, 2, 3] * 2,
        "sku": list("abcxy") + list("xaacy"),
        "yhat": np.arange(10.0)[::-1],
    }
).assign(model=["m"] * 5 + ["n"] * 5)
ONE = PRED[PRED["model"] == "m"]
COLUMNS = {"user_col": "customer", "item_col": "sku", "score_col": "yhat"}
SHOP = rd.Options(**COLUMNS)


def same(one, two):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two)
    else:
        assert one == two


CALLS = {
    "evaluate": lambda **how: rd.evaluate(TRUE, PRED, ["ndcg", "recall"], by="model", **how),
    "metric": lambda **how: rd.ndcg(TRUE, ONE, k=10, **how),
    "per_user": lambda **how: rd.ndcg.per_user(TRUE, PRED, k=2, by="model", **how),
    "exposure metric": lambda **how: rd.coverage(["a", "b", "c", "x", "y"], ONE, **how),
    "check": lambda **how: rd.check(TRUE, PRED, by="model", **how),
    "compare_conventions": lambda **how: rd.diagnostics.compare_conventions(
        TRUE, ONE, ["recall"], 2, **how
    ),
    "hit_table": lambda **how: rd.diagnostics.hit_table(TRUE, ONE, k=2, **how),
    "position_table": lambda **how: rd.diagnostics.position_table(TRUE, ONE, k=2, **how),
    "exposure_table": lambda **how: rd.diagnostics.exposure_table(ONE, k=2, **how),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("call", CALLS)
def test_options_of_a_project_are_those_of_the_call(call):
    same(CALLS[call](options=SHOP), CALLS[call](**COLUMNS))


def test_files_take_them(tmp_path):
    paths = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    TRUE.to_parquet(paths[0])
    PRED.to_parquet(paths[1])
    found = rd.evaluate_parquet(*paths, "ndcg@2", options=SHOP.replace(by="model"))
    assert found == rd.evaluate(TRUE, PRED, "ndcg@2", by="model", **COLUMNS)


def test_what_the_call_says_comes_first_then_the_project_then_the_convention():
    project = rd.Options(**COLUMNS, ties="row", like="ranx", undefined="nan", by="model")
    spec = rd.evaluate(TRUE, PRED, "ndcg", options=project, ties="worst", like="rectools").spec[
        "options"
    ]
    assert (spec["ties"], spec["like"], spec["undefined"], spec["by"]) == (
        "worst",
        "rectools",
        "nan",
        "model",
    )
    spec = rd.evaluate(TRUE, ONE, "ndcg", options=project, by=None).spec["options"]
    assert (spec["by"], spec["ties"], spec["like"], spec["undefined"]) == (
        None,
        "row",
        "ranx",
        "nan",
    )
    assert spec["user_col"] == "customer"
    # An option that is stated beats the convention, even where its value is the default.
    plain = rd.Options(**COLUMNS, ties="item_desc")
    assert (
        rd.evaluate(TRUE, ONE, "ndcg", options=plain, like="ranx").spec["options"]["ties"]
        == "item_desc"
    )
    assert (
        rd.evaluate(TRUE, ONE, "ndcg", options=SHOP, like="ranx").spec["options"]["ties"] == "row"
    )


def test_another_order_of_pred_replaces_that_of_the_project():
    ranked = ONE.assign(place=ONE.groupby("customer").cumcount() + 1)
    spec = rd.evaluate(TRUE, ranked, "ndcg", options=SHOP, rank_col="place").spec
    assert spec["order"] == {"by": "rank", "column": "place"}
    assert (
        rd.evaluate(TRUE, ranked, "ndcg", options=SHOP, rank_col=None).spec["order"]["column"]
        == "yhat"
    )


def test_the_spec_is_that_of_the_same_options():
    one = rd.evaluate(TRUE, PRED, "ndcg", options=SHOP.replace(by="model"))
    assert one == rd.evaluate(TRUE, PRED, "ndcg", by="model", **COLUMNS)
    assert "options" not in one.spec["options"]


def test_a_record_that_can_be_read_compared_changed_and_pickled():
    assert repr(SHOP) == "Options(user_col='customer', item_col='sku', score_col='yhat')"
    assert repr(rd.Options()) == "Options()"
    assert eval(repr(SHOP), {"Options": rd.Options}) == SHOP
    assert rd.Options(item_col="sku", user_col="customer", score_col="yhat") == SHOP
    assert rd.Options(user_col="customer") != SHOP
    assert SHOP != "Options"
    changed = SHOP.replace(item_col="item", by=["model"])
    assert (changed.user_col, changed.item_col, changed.by) == ("customer", "item", ["model"])
    assert SHOP.item_col == "sku"
    assert SHOP.relevance_col is None  # what is not stated has its default
    assert rd.Options(like="ranx").ties == "row"  # or that of the convention
    for again in (pickle.loads(pickle.dumps(SHOP)), copy.deepcopy(SHOP)):
        assert again == SHOP
        assert again.user_col == "customer"
    with pytest.raises(AttributeError):
        SHOP.user_col = "x"
    users = pd.DataFrame({"customer": [1, 2]})
    assert rd.Options(users=users) == rd.Options(users=users.copy())
    assert rd.Options(users=users) != rd.Options(users=users.iloc[:1])
    assert list(inspect.signature(rd.Options).parameters) == list(NAMES)
    assert "propensity_floor : number, default 0" in inspect.getdoc(rd.Options).replace(
        "float", "number"
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"user_column": "customer"}, "'user_column'; did you mean 'user_col'"),
        ({"ties": "first"}, "ties='first'"),
        ({"like": "rectoolz"}, "did you mean 'rectools'"),
        ({"score_col": "a", "rank_col": "b"}, "the order of `pred` has one source"),
        ({"k": 10}, "'k'"),
    ],
)
def test_wrong_options_are_refused_where_they_are_stated(wrong, words):
    with pytest.raises(rd.OptionError) as error:
        rd.Options(**wrong)
    assert words in str(error.value)
    with pytest.raises(rd.OptionError):
        SHOP.replace(**wrong)


@pytest.mark.parametrize("call", ["evaluate", "metric", "check", "exposure_table"])
def test_options_that_are_no_record_are_refused(call):
    with pytest.raises(
        rd.OptionError, match=r"options is a dict; expected rd.Options\(user_col=..., ...\)"
    ):
        CALLS[call](options=COLUMNS)
    same(CALLS[call](options=None, **COLUMNS), CALLS[call](**COLUMNS))


@pytest.mark.long
def test_tables_of_users_take_the_columns():
    project = SHOP.replace(by="model", weight_col="w")
    result = rd.evaluate(TRUE, PRED, "ndcg@2", options=project)
    bare = result.per_user.copy()
    bare.attrs.clear()
    given = {"user_col": "customer", "weight_col": "w"}
    same(rd.summarize(bare, options=project), rd.summarize(bare, by="model", **given))
    pairs = {"metrics": "ndcg@2", "model_col": "model"}
    same(
        rd.compare_models(bare, options=project, **pairs), rd.compare_models(bare, **given, **pairs)
    )
    assignment = pd.DataFrame({"customer": [1, 2, 3], "variant": list("ABA")})
    joined = rd.join_experiment(bare, assignment, options=project)
    same(joined, rd.join_experiment(bare, assignment, user_col="customer", by="model"))
    health = rd.experiments.experiment_health(bare, assignment, options=project)
    same(
        health, rd.experiments.experiment_health(bare, assignment, user_col="customer")
    )  # its `by` is of assignments


def test_logs_take_the_columns():
    log = pd.DataFrame(
        {"customer": [1, 1, 2], "sku": list("abc"), "position": [1, 2, 1], "clicked": [0, 1, 1]}
    )
    found = rd.from_impressions(log, options=SHOP, clicked_col="clicked", list_cols=[])
    plain = rd.from_impressions(
        log, user_col="customer", item_col="sku", clicked_col="clicked", list_cols=[]
    )
    same(found.true, plain.true)
    same(found.pred, plain.pred)
    checked = rd.logs.check_log(log, options=SHOP, list_cols=[])
    same(checked, rd.logs.check_log(log, user_col="customer", item_col="sku", list_cols=[]))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "key", ["customer", ["customer", "session"], ["session", "user_id"]], ids=str
)
def test_off_policy_and_units_take_who_the_user_is(key):
    """The rows of one user belong together, whatever else names a list: user_id, or else the first
    column."""
    unit = "user_id" if "user_id" in key else "customer"
    log = pd.DataFrame(
        {
            unit: np.arange(400) % 60,
            "reward": np.arange(400) % 3 % 2,
            "propensity": 0.5,
            "algo": "a",
        }
    )
    log["target_propensity"] = np.where(np.arange(400) % 4, 0.5, 0.4)
    log = pd.concat([log, log.assign(algo="b", target_propensity=0.5)])
    project, given = rd.Options(user_col=key, by="algo"), {"cluster": unit, "by": "algo"}
    for function in (rd.ope.estimate, rd.ope.diagnostics, rd.ope.compare):
        same(function(log, options=project), function(log, **given))
    same(
        rd.ope.estimate(log, options=project, cluster=None),
        rd.ope.estimate(log, cluster=None, by="algo"),
    )
    rows = pd.DataFrame(
        {"algo": "a", unit: np.arange(60) // 2, "n_true": 1, "n_pred": 1, "x": np.arange(60.0)}
    )
    found = rd.experiments.bootstrap_ci(rows, "x", n_resamples=50, options=project)
    same(found, rd.experiments.bootstrap_ci(rows, "x", n_resamples=50, **given))
    rolled = rd.experiments.roll_up(rows, over=[], how={"x": "mean"}, options=project)
    same(rolled, rd.experiments.roll_up(rows, unit, over=[], how={"x": "mean"}))


def test_a_config_file_of_the_command_says_the_same(tmp_path, capsys):
    paths = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    TRUE.to_parquet(paths[0])
    PRED.to_parquet(paths[1])
    text = (
        'user_col = "customer"\nitem_col = "sku"\nscore_col = "yhat"\nties = "worst"\nby = '
        '"model"\nlike = "ranx"\n'
    )
    config = tmp_path / "job.toml"
    config.write_text(text)
    words = ["evaluate", "--true", paths[0], "--pred", paths[1], "-m", "ndcg@2", "--config", config]
    code, _, err = run(capsys, *words, "--out", tmp_path / "out")
    assert code == 0, err
    found = rd.read_parquet(tmp_path / "out")
    assert found == rd.evaluate(TRUE, PRED, "ndcg@2", options=rd.Options(**tomllib.loads(text)))
