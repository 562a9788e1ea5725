"""`rd.diff`: lists that gained and lost, items that moved, and churn without any truth, against
plain loops."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

SHOP = rd.sample_shop(n_users=300, n_items=60)


def pred_of(model):
    pred = SHOP.pred[SHOP.pred["model"] == model].sort_values(
        "score", ascending=False, kind="stable"
    )
    return pred.assign(rank=pred.groupby("user_id").cumcount() + 1).drop(columns=["model", "score"])


def result_of(model, **options):
    return rd.evaluate(SHOP.true, pred_of(model), ["ndcg@10", "first_rank@10"], **options)


OLD, NEW = pred_of("popularity"), pred_of("knn")


def ranked(pred, k):
    """List → its first k items, by plain loops."""
    found = {}
    for row in pred.sort_values("rank", kind="stable").itertuples():
        found.setdefault(row.user_id, []).append(row.item_id)
    return {user: items[:k] for user, items in found.items()}


def rbo(a, b, k, p):
    """Webber et al. 2010, truncated: the share of common items at each depth, a list that ends
    keeping its items."""
    total = weight = 0.0
    for depth in range(1, k + 1):
        total += p ** (depth - 1) * len(set(a[:depth]) & set(b[:depth])) / depth
        weight += p ** (depth - 1)
    return total / weight


@pytest.mark.few(1)
@pytest.mark.parametrize(("k", "p"), [(1, 0.9), (5, 0.5), (10, 0.9), (30, 0.98)])
def test_churn_is_that_of_plain_loops(k, p):
    found = rd.diff(OLD, NEW, k=k, p=p)
    old, new = ranked(OLD, k), ranked(NEW, k)
    assert set(found.per_list["user_id"]) == set(old) | set(new)
    for row in found.per_list.to_dict("records"):
        a, b = old.get(row["user_id"], []), new.get(row["user_id"], [])
        assert (row["n_before"], row["n_after"], row["n_common"]) == (
            len(a),
            len(b),
            len(set(a) & set(b)),
        )
        assert row["changed"] == (a != b)
        assert row["status"] == ("both" if a and b else "left" if a else "entered")
        if a and b:
            assert row[f"overlap@{k}"] == pytest.approx(len(set(a) & set(b)) / max(len(a), len(b)))
            assert row[f"rbo@{k}"] == pytest.approx(rbo(a, b, k, p))
        else:
            assert np.isnan(row[f"rbo@{k}"])
    means = found.summary.set_index("metric")["mean_after"]
    assert means[f"rbo@{k}"] == pytest.approx(found.per_list[f"rbo@{k}"].mean())


def test_items_are_those_of_plain_loops():
    old, new = ranked(OLD, 10), ranked(NEW, 10)
    want = set()
    for user in set(old) | set(new):
        a, b = ({item: i + 1 for i, item in enumerate(one.get(user, []))} for one in (old, new))
        want |= {(user, item, a.get(item, 0), b.get(item, 0)) for item in {*a, *b}}
    items = rd.diff(OLD, NEW).items
    ranks = items[["rank_before", "rank_after"]].fillna(0).astype(int)
    assert (
        set(
            zip(
                items["user_id"],
                items["item_id"],
                ranks["rank_before"],
                ranks["rank_after"],
                strict=True,
            )
        )
        == want
    )
    assert len(items) == len(want)
    moved = items[items["status"] == "moved"]
    assert (moved["moved"] == moved["rank_before"] - moved["rank_after"]).all()
    assert not (moved["moved"] == 0).any()


def test_rbo_is_that_of_another_library():
    """The `rbo` package extrapolates; with lists of equal items its truncated sum is (1 − p)·Σ,
    unnormalised."""
    package = pytest.importorskip("rbo")
    a, b = list("abcdefgh"), list("bacxdyhz")
    want = package.RankingSimilarity(a, b).rbo(k=8, p=0.9) / (1 - 0.9**8)
    found = rd.diff({"u": a}, {"u": b}, k=8, p=0.9)
    assert found.per_list["rbo@8"].iloc[0] == pytest.approx(want)


def test_metrics_of_two_results():
    old, new = result_of("popularity"), result_of("knn")
    found = rd.diff(old, new)
    both = old.per_user.merge(new.per_user, on="user_id")
    d = both["ndcg@10_y"] - both["ndcg@10_x"]
    row = found.summary.set_index("metric").loc["ndcg@10"]
    assert (row["n_gained"], row["n_lost"], row["n_same"]) == (
        (d > 0).sum(),
        (d < 0).sum(),
        (d == 0).sum(),
    )
    assert row["diff"] == pytest.approx(d.mean())
    rank = (both["first_rank@10_y"] - both["first_rank@10_x"]).dropna()
    row = found.summary.set_index("metric").loc["first_rank@10"]
    assert (row["n_gained"], row["n_lost"]) == (
        (rank < 0).sum(),
        (rank > 0).sum(),
    )  # smaller is better
    assert found.items is None
    most = found.most(n=2)["ndcg@10_diff"].tolist()
    assert most == [*sorted(d)[:-3:-1], *sorted(d)[1::-1]]
    assert found.most("first_rank@10", n=1)["first_rank@10_diff"].tolist() == [
        rank.min(),
        rank.max(),
    ]


@pytest.mark.parametrize("kind", ["datetime64[s]", "timestamp[us][pyarrow]", "category", object])
def test_users_of_both_sides_may_have_other_dtypes(kind):
    days = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]))
    frames = [
        pd.DataFrame({"user_id": days.iloc[:2], "item_id": [1, 2]}),
        pd.DataFrame({"user_id": days.iloc[1:].astype(kind), "item_id": [2, 3]}),
    ]
    results = [rd.evaluate(frame, frame, "recall@1") for frame in frames]
    for found in (rd.diff(*results, pred=frames), rd.diff(*frames)):
        assert found.per_list["status"].tolist() == ["left", "both", "entered"]
        assert found.items["status"].tolist() == ["left", "stayed", "entered"]


@pytest.mark.long
def test_results_with_their_recommendations(tmp_path):
    old, new = result_of("popularity"), result_of("knn")
    found = rd.diff(old, new, pred=(OLD, NEW))
    assert found.summary["metric"].tolist() == ["ndcg@10", "first_rank@10", "overlap@10", "rbo@10"]
    assert len(found.per_list) == len(old.per_user)
    assert found.per_list.dtypes[["n_before", "changed", "overlap@10", "rbo@10"]].astype(
        str
    ).tolist() == [
        "int64",
        "bool",
        "float64",
        "float64",
    ]
    alone = rd.diff(OLD, NEW).per_list.set_index("user_id")["rbo@10"]
    own = found.per_list.set_index("user_id")["rbo@10"].dropna()
    pd.testing.assert_series_equal(own, alone[own.index])
    old.to_parquet(tmp_path / "old")
    new.to_parquet(tmp_path / "new")
    same = rd.diff(tmp_path / "old", str(tmp_path / "new"), pred=(OLD, NEW))
    pd.testing.assert_frame_equal(same.per_list, found.per_list)
    for table in (found.summary, found.per_list, found.items):
        table.to_parquet(tmp_path / "one.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "one.parquet"), table)


def test_nothing_changed():
    found = rd.diff(OLD, OLD)
    assert found.summary["mean_after"].tolist() == pytest.approx([1, 1])
    assert not found.per_list["changed"].any()
    assert set(found.items["status"]) == {"stayed"}
    assert len(found.most("rbo@10")) == 0
    text = repr(found)
    assert text.startswith(
        f"Lists: {len(found.per_list):,} both. Items: {len(found.items):,} stayed."
    )
    same = rd.diff(result_of("knn"), result_of("knn"))
    assert len(same.most()) == 0
    assert "ndcg@10" in same._repr_html_()


def test_lists_that_entered_and_left():
    old, new = result_of("popularity"), result_of("popularity")
    fewer = old.per_user.iloc[5:], new.per_user.iloc[:-7]
    found = rd.diff(*fewer)
    counts = found.per_list["status"].value_counts().to_dict()
    assert counts == {"both": len(old.per_user) - 12, "left": 7, "entered": 5}
    assert "7 left" in repr(found)


@pytest.mark.long
def test_lists_of_sessions_and_other_columns():
    frames = [
        one.assign(session=one["user_id"].str[-1]).rename(columns={"item_id": "product"})
        for one in (OLD, NEW)
    ]
    found = rd.diff(*frames, user_col=["user_id", "session"], item_col="product")
    assert list(found.per_list.columns[:3]) == ["user_id", "session", "status"]
    want = rd.diff(OLD, NEW).per_list["rbo@10"]
    pd.testing.assert_series_equal(found.per_list["rbo@10"], want)
    scored = [one.assign(value=-one["rank"]).drop(columns="rank") for one in (OLD, NEW)]
    pd.testing.assert_series_equal(rd.diff(*scored, score_col="value").per_list["rbo@10"], want)


def test_bad_calls():
    result = result_of("knn")
    with pytest.raises(rd.OptionError, match="two results, or two frames"):
        rd.diff(result, NEW)
    with pytest.raises(rd.OptionError, match="values of 'model'"):
        rd.diff(rd.evaluate(SHOP.true, SHOP.pred, "ndcg@10", by="model"), result)
    with pytest.raises(rd.OptionError, match="no metric of both"):
        rd.diff(result, rd.evaluate(SHOP.true, NEW, "recall@5"))
    with pytest.raises(rd.OptionError, match="p="):
        rd.diff(OLD, NEW, p=1.5)
    with pytest.raises(rd.OptionError, match="k="):
        rd.diff(OLD, NEW, k=0)
    with pytest.raises(rd.ColumnError, match="rbo@3"):
        rd.diff(OLD, NEW).most("rbo@3")
    with pytest.raises(rd.IdTypeError):
        rd.diff(OLD, NEW.assign(user_id=range(len(NEW))))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rd.diff("nowhere", result)


def test_columns_of_recommendations_beside_results_alone_are_refused(tmp_path):
    old = rd.evaluate({"a": [1]}, {"a": [1]}, "ndcg@1")
    old.to_parquet(tmp_path / "old")
    for name in ("item_col", "rank_col", "score_col"):
        for one in (old, tmp_path / "old"):
            with pytest.raises(rd.OptionError, match=f"{name}='sku' names a column of recomm"):
                rd.diff(one, one, **{name: "sku"})


def test_a_metric_may_be_called_weight():
    lists = pd.DataFrame({"user_id": [1, 2], "ndcg": [0.5, 1.0], "weight": [60.0, 70.0]})
    found = rd.diff(lists, lists.assign(weight=80.0)).summary
    assert found["metric"].tolist() == ["ndcg", "weight"]
    assert found["diff"].tolist() == [0, 15]


def test_weighted_results_keep_their_means():
    """Columns that were carried, and the weights, are no metrics."""
    weights = {user: float(n % 4) for n, user in enumerate(SHOP.true["user_id"].unique())}
    old, new = (
        rd.evaluate(
            SHOP.true, pred.assign(age=1.5), "ndcg@10", weight_col=weights, carry={"age": "max"}
        )
        for pred in (OLD, NEW)
    )
    found = rd.diff(old, new)
    row = found.summary.set_index("metric").loc["ndcg@10"]
    assert found.summary["metric"].tolist() == ["ndcg@10"]
    assert found.unlike == ()
    for name, result in (("mean_before", old), ("mean_after", new)):
        assert row[name] == pytest.approx(result.summary["value"].item())
    assert "ndcg@10_diff" in found.most()
    plain = rd.evaluate(SHOP.true, NEW, "ndcg@10")
    apart = rd.diff(old, plain)
    given = f"{len(weights)} given weights"
    assert apart.unlike == (f"option weight_col: {given} before, None after",)
    assert apart.summary["mean_after"].item() == pytest.approx(plain.summary["value"].item())
    users = pd.DataFrame({"user_id": list(weights)})
    merged = [one.per_user.merge(users) for one in (old, new)]
    with pytest.warns(rd.WeightWarning, match="has the weights") as seen:
        assert "weight" not in rd.diff(*merged).summary["metric"].tolist()
    assert len(seen) == 2


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "duckdb"])
def test_tables_of_other_libraries_are_results_or_recommendations(kind):
    def other(frame):
        if kind == "arrow":
            return pytest.importorskip("pyarrow").Table.from_pandas(frame)
        if kind == "duckdb":
            return pytest.importorskip("duckdb").from_df(frame)
        table = pytest.importorskip("polars").from_pandas(frame)
        return table.lazy() if kind == "lazy" else table

    old, new = result_of("popularity").per_user, result_of("knn").per_user
    for pair in ((old, new), (OLD, NEW)):
        want, found = rd.diff(*pair).summary, rd.diff(*map(other, pair)).summary
        pd.testing.assert_frame_equal(found, want)


def test_recommendations_are_named_before_and_after():
    none = OLD.iloc[:0]
    for pair, status in (((OLD, none), "left"), ((none, OLD), "entered")):
        found = rd.diff(*pair)
        assert set(found.per_list["status"]) == set(found.items["status"]) == {status}
    assert len(rd.diff(none, none).items) == 0
    with pytest.raises(rd.DuplicateError, match=r"after has .* repeated .*pass the rows of one"):
        rd.diff(OLD, pd.concat([NEW, OLD]))
    with pytest.raises(rd.DataError, match=r"after: pred\['score'\] holds"):
        rd.diff(OLD, NEW.assign(score=np.nan).drop(columns="rank"))
    ids = OLD["user_id"].str[1:].astype(int)
    for one, two in ((OLD, OLD.assign(user_id=ids)), (OLD, OLD.assign(user_id=ids.astype(object)))):
        with pytest.raises(rd.IdTypeError, match=r"before\['user_id'\].*after\['user_id'\]"):
            rd.diff(one, two)
    with pytest.raises(rd.IdTypeError, match=r"before\['user_id'\].*after\['user_id'\]"):
        rd.diff(OLD.astype(object), OLD.assign(user_id=ids).astype(object))
