"""`join_results`: runs in folders of their own are one result by model."""

import pandas as pd
import pytest

import recdf as rd

SHOP = rd.sample_shop(n_users=400, n_items=100)
METRICS = ["ndcg@10", "coverage@10"]


def runs(**changed):
    """Each model of the shop, evaluated on its own."""
    return {
        model: rd.evaluate(
            SHOP.true, rows.drop(columns="model"), METRICS, items=SHOP.items, **changed
        )
        for model, rows in SHOP.pred.groupby("model")
    }


def test_joined_results_are_the_result_by_model(tmp_path):
    joined = rd.join_results(runs())
    whole = rd.evaluate(SHOP.true, SHOP.pred, METRICS, by="model", items=SHOP.items)
    pd.testing.assert_frame_equal(joined.per_user, whole.per_user)
    pd.testing.assert_frame_equal(joined.summary, whole.summary)
    assert joined.spec["truth"] == whole.spec["truth"]
    assert list(joined.spec["joined"]) == ["knn", "popularity", "random"]
    joined.to_parquet(tmp_path)
    assert rd.read_parquet(tmp_path) == joined


@pytest.mark.long
def test_folders_have_the_names_of_the_mapping(tmp_path):
    found = runs()
    for name, result in found.items():
        result.to_parquet(tmp_path / name)
    joined = rd.join_results({f"run {name}": tmp_path / name for name in found})
    assert joined.per_user["model"].unique().tolist() == ["run knn", "run popularity", "run random"]
    assert joined.per_user["ndcg@10"].equals(rd.join_results(found).per_user["ndcg@10"])


def test_results_of_several_models_keep_their_names():
    several = rd.evaluate(SHOP.true, SHOP.pred, "ndcg@10", by="model")
    one = rd.evaluate(SHOP.true, SHOP.pred.query("model == 'knn'"), "ndcg@10", by="model")
    joined = rd.join_results({"old": several, "new": one})
    names = ["old: knn", "old: popularity", "old: random", "new"]
    assert joined.per_user["model"].unique().tolist() == names


def test_a_metric_that_one_result_lacks_is_null():
    first = rd.evaluate(SHOP.true, SHOP.pred.query("model == 'knn'"), ["ndcg@10", "mrr@5"])
    other = rd.evaluate(SHOP.true, SHOP.pred.query("model == 'random'"), "ndcg@10")
    joined = rd.join_results({"a": first, "b": other})
    of_model = joined.per_user.groupby("model")["mrr@5"]
    n_users = SHOP.true["user_id"].nunique()
    assert of_model.count().to_dict() == {"a": n_users, "b": 0}
    assert joined.compare_models("ndcg@10")["n_users"].tolist() == [n_users]


def test_other_truths_are_not_called_the_same():
    first, other = (
        rd.evaluate(one, SHOP.pred.query("model == 'knn'"), "ndcg@10")
        for one in (SHOP.true, SHOP.true.drop_duplicates("user_id"))
    )
    assert "truth" not in rd.join_results({"a": first, "b": other}).spec


def one(**options):
    return rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1", **options)


INTS = rd.evaluate(
    pd.DataFrame({"user_id": [1], "item_id": [1]}),
    pd.DataFrame({"user_id": [1], "item_id": [1], "score": [1.0]}),
    "mrr@1",
)
BAD = [
    ({"a": one()}, rd.OptionError, "⟦results=⟧ holds 1"),
    ([one(), one()], rd.OptionError, "⟦results=⟧ is a list"),
    ({"a": one(), "b": one().per_user}, TypeError, "rd.compare_models takes frames by model"),
    ({1: one(), "1": one()}, rd.OptionError, "the name '1'"),
    ({"a": one(), "b": INTS}, rd.IdTypeError, "user_id"),
]


@pytest.mark.parametrize(("given", "error", "words"), BAD)
def test_bad_input(given, error, words):
    with pytest.raises(error) as raised:
        rd.join_results(given)
    assert words.replace("⟦", "").replace("⟧", "") in str(raised.value)


def test_other_keys_and_by_columns_are_refused():
    visits = pd.DataFrame({"user_id": [1], "visit": [2], "item_id": [1]})
    keyed = rd.evaluate(visits, visits.assign(score=1.0), "mrr@1", user_col=["user_id", "visit"])
    with pytest.raises(rd.OptionError, match="lists by"):
        rd.join_results({"a": INTS, "b": keyed})


@pytest.mark.long
def test_leaderboard_and_report_take_runs_by_name(tmp_path):
    found = runs()
    joined = rd.join_results(found)
    board = rd.leaderboard(found, baseline="popularity")
    pd.testing.assert_frame_equal(board.frame, rd.leaderboard(joined, baseline="popularity").frame)
    by_name, as_one = tmp_path / "by_name.html", tmp_path / "as_one.html"
    rd.report(found, by_name, baseline="popularity")
    rd.report(joined, as_one, baseline="popularity")
    assert by_name.read_bytes() == as_one.read_bytes()


@pytest.mark.parametrize("name", [None, 3, ("a", "b"), ["model"]])
def test_the_column_of_the_model_is_named_by_a_text(name):
    one = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "recall@1")
    with pytest.raises(rd.OptionError, match=r"^model_col=.*; expected the name of a column"):
        rd.join_results({"a": one, "b": one}, model_col=name)


@pytest.mark.parametrize("taken", ["user_id", "ndcg@10", "metric", "n_true"])
def test_the_column_of_models_takes_no_other_place(taken):
    one = rd.evaluate(SHOP.true, SHOP.pred.query("model == 'knn'"), "ndcg@10")
    with pytest.raises(rd.OptionError, match=f"model_col='{taken}' is another column of results"):
        rd.join_results({"a": one, "b": one}, model_col=taken)
