"""Interleaving: lists that are mixed from two recommenders, and what clicks on them say."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from tests.oracles import interleaving as oracle

interleave, compare_interleaved = rd.experiments.interleave, rd.experiments.compare_interleaved
N = 6000


def long(own, n=N, ranked="rank"):
    """The same list for n users."""
    rows = pd.DataFrame({"user_id": np.repeat(np.arange(n), len(own)), "item_id": np.tile(own, n)})
    rows[ranked] = np.tile(np.arange(1, len(own) + 1), n)
    return rows


def mixed(a, b, k, method="team_draft", n=N):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        return interleave(long(a, n), long(b, n), k, method=method)


def lists_of(log, *columns):
    """How often each list was made, of users in order."""
    cells = log[list(columns)].itertuples(index=False, name=None)
    pairs = itertools.groupby(zip(log["user_id"], cells, strict=True), key=lambda pair: pair[0])
    made = [tuple(cell if len(columns) > 1 else cell[0] for _, cell in rows) for _, rows in pairs]
    return pd.Series(made).value_counts()


def assert_same_shares(counts, expected):
    """No list that is impossible, and the others as often as chance allows."""
    assert set(counts.index) <= set(expected)
    for one, chance in expected.items():
        p = float(chance)
        assert abs(counts.get(one, 0) / N - p) <= 4.5 * np.sqrt(p * (1 - p) / N)


CASES = [
    ("abcd", "bdca", 4),
    ("abcd", "bdca", 2),
    ("abc", "abd", 3),
    ("abcd", "abdc", 4),
    ("abc", "abc", 3),
    ("abcde", "xyzuv", 4),
    ("ab", "bc", 2),
    ("abcd", "b", 4),
    ("ab", "ba", 5),
    ("abcde", "eabcd", 5),
    ("abcd", "bcda", 4),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("a", "b", "k"), CASES)
def test_team_draft_is_that_of_the_paper(a, b, k):
    log = mixed(list(a), list(b), k)
    assert_same_shares(lists_of(log, "item_id", "team"), oracle.team_draft(list(a), list(b), k))
    assert log["rank"].tolist() == log.groupby("user_id").cumcount().add(1).tolist()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("a", "b", "k"), [case for case in CASES if len(case[0]) == len(case[1]) >= case[2]]
)
def test_balanced_is_that_of_the_paper(a, b, k):
    a, b = list(a), list(b)
    assert_same_shares(lists_of(mixed(a, b, k, "balanced"), "item_id"), oracle.balanced(a, b, k))


@pytest.mark.few(1)
@pytest.mark.parametrize(("a", "b", "k"), CASES)
def test_optimized_credit_is_zero_at_every_rank(a, b, k):
    a, b = list(a), list(b)
    lists, settled = oracle.optimized(a, b, k)
    log = mixed(a, b, k, "optimized")
    assert_same_shares(lists_of(log, "item_id"), lists)
    credit = log["item_id"].map(
        {one: oracle.rank_in(a, one) - oracle.rank_in(b, one) for one in {*a, *b}}
    )
    shared = sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))
    )
    earns = (log["rank"] > shared) & log["rank"].map(dict(enumerate(settled, 1)))
    counted = log["credit"] != 0
    assert (log["credit"][counted] == credit[counted]).all()
    if len(a) == len(b):  # else items stand in where a list has ended
        assert (credit[earns] == log["credit"][earns]).all()
    of_rank = log.groupby("rank")["credit"].agg(["mean", "sem"])
    assert (of_rank["mean"].abs() <= 4.5 * of_rank["sem"]).all()
    assert (log["team"] == np.select([log["credit"] > 0, log["credit"] < 0], ["b", "a"], "")).all()


def test_the_worked_example_of_radlinski_and_craswell():
    """a b c d against b d c a: a random clicker is undecided at rank 1 if P(a) = 1/4, at rank 2 if
    P(b, d) = 2/5."""
    lists, _ = oracle.optimized(list("abcd"), list("bdca"), 2)
    assert {"".join(one): float(p) for one, p in lists.items()} == {
        "ab": 0.25,
        "ba": 0.35,
        "bd": 0.4,
    }


@pytest.mark.long
def test_ranks_without_a_fair_chance_earn_nothing():
    """Found by a search over random lists: at the last ranks every item favours the same list."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(400):
        a, b = ([f"i{one}" for one in rng.permutation(8)[:5]] for _ in "ab")
        settled = oracle.optimized(a, b, 5)[1]
        if not all(settled):
            found += 1
            log = mixed(a, b, 5, "optimized", 50)
            assert (log.loc[~log["rank"].map(dict(enumerate(settled, 1))), "credit"] == 0).all()
    assert found


@pytest.mark.parametrize("method", ["team_draft", "optimized"])
def test_lists_depend_on_the_seed_and_the_user_alone(method):
    rng = np.random.default_rng(1)
    a, b = (
        pd.DataFrame(
            {
                "user_id": np.repeat([f"u{i}" for i in range(300)], 8),
                "item_id": np.concatenate([rng.permutation(12)[:8] for _ in range(300)]),
                "score": np.tile(np.arange(8.0, 0, -1), 300),
            }
        )
        for _ in "ab"
    )
    whole = interleave(a, b, 6, method=method)
    shuffled = interleave(
        a.sample(frac=1, random_state=2), b.sample(frac=1, random_state=3), 6, method=method
    )
    pd.testing.assert_frame_equal(whole, shuffled)
    some = [f"u{i}" for i in range(0, 300, 7)]
    part = interleave(a[a["user_id"].isin(some)], b[b["user_id"].isin(some)], 6, method=method)
    pd.testing.assert_frame_equal(part, whole[whole["user_id"].isin(some)].reset_index(drop=True))
    assert not whole.equals(interleave(a, b, 6, method=method, seed=1))
    assert not whole.duplicated(["user_id", "item_id"]).any()


def test_a_user_of_one_frame_gets_that_list_without_teams():
    a = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [5, 6, 5], "rank": [1, 2, 1]})
    b = pd.DataFrame({"user_id": [1, 1, 3], "item_id": [7, 8, 9], "rank": [1, 2, 1]})
    log = interleave(a, b, 2)
    assert log.loc[log["user_id"] > 1].to_dict("list") == {
        "user_id": [2, 3],
        "item_id": [5, 9],
        "rank": [1, 1],
        "team": ["", ""],
    }
    assert log.dtypes.astype(str).to_dict()["rank"] == "int64"


def test_scores_and_ranks_order_lists_as_evaluate_does():
    a = pd.DataFrame({"user_id": 1, "item_id": [1, 2, 3], "score": np.array([5, 9, 5], np.uint8)})
    b = pd.DataFrame({"user_id": 1, "item_id": [2, 3, 1], "rank": [1, 2, 3]})
    assert (
        interleave(a, b, 3)["team"].tolist() == [""] * 3
    )  # the larger id of equal scores is first


def test_bad_calls_are_refused():
    a, b = long(["x", "y"], 3), long(["y", "z"], 3)
    with pytest.raises(rd.DuplicateError, match=r"b has several rows per .*: 3 rows too many"):
        interleave(a, pd.concat([b, b[b["rank"] == 1]]), 2)
    with pytest.raises(rd.OptionError, match="team_draft"):
        interleave(a, b, 2, method="draft")
    with pytest.raises(rd.OptionError, match="k=0"):
        interleave(a, b, 0)
    with pytest.raises(rd.ColumnError):
        interleave(a.drop(columns="item_id"), b, 2)
    with pytest.raises(rd.IdTypeError):
        interleave(a, b.assign(user_id=b["user_id"].astype(str)), 2)
    with pytest.warns(rd.RecdfWarning, match="biased"):
        interleave(a, b, 2, method="balanced")


# -- clicks


def clicked(log, chance, seed=0):
    """Rows of the log that were clicked, each with its probability."""
    return log[np.random.default_rng(seed).random(len(log)) < chance]


def fruit(n=3000, method="team_draft"):
    log = mixed(list("abcd"), list("bdce"), 3, method, n)
    liked = log["item_id"].map({"a": 0.1, "b": 0.2, "c": 0.1, "d": 0.3, "e": 0.3})
    return log, clicked(log, liked / log["rank"])


@pytest.mark.few(1)
@pytest.mark.parametrize("credit", ["clicks", "binary", "price"])
def test_tests_are_those_of_scipy(credit):
    stats = pytest.importorskip("scipy.stats")
    log, clicks = fruit()
    clicks = clicks.assign(price=np.random.default_rng(2).lognormal(size=len(clicks)).round(3))
    row = compare_interleaved(log, clicks, credit=credit, details=True).iloc[0]
    sign = clicks["team"].map({"a": -1.0, "b": 1.0}) * (
        clicks["price"] if credit == "price" else 1.0
    )
    d = sign.groupby(clicks["user_id"]).sum().reindex(range(3000), fill_value=0.0)
    d = np.sign(d) if credit == "binary" else d
    expected = stats.ttest_1samp(d, 0)
    interval = expected.confidence_interval()
    for name, value in {
        "diff": d.mean(),
        "statistic": expected.statistic,
        "p_value": expected.pvalue,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "wins": (d > 0).sum(),
        "losses": (d < 0).sum(),
        "ties": (d == 0).sum(),
        "p_sign": stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).pvalue,
        "n_users": 3000,
    }.items():
        assert row[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    share = stats.binomtest(int((d > 0).sum()), int((d != 0).sum())).proportion_ci(method="wilson")
    assert (row["preference_low"], row["preference_high"]) == pytest.approx(
        (share.low, share.high), rel=1e-9
    )
    assert row["effect"] == "better"
    power = stats.nct(df=row["n_needed"] - 1, nc=abs(d.mean()) / d.std() * np.sqrt(row["n_needed"]))
    assert power.sf(stats.t.ppf(0.975, row["n_needed"] - 1)) == pytest.approx(0.8, abs=0.002)


def test_optimized_lists_count_the_credit_of_their_items():
    log, clicks = fruit(method="optimized")
    row = compare_interleaved(log, clicks, details=True).iloc[0]
    d = clicks.groupby("user_id")["credit"].sum().reindex(range(3000), fill_value=0)
    assert row["diff"] == pytest.approx(d.mean())
    assert row["effect"] == "better"
    assert row["p_balance"] > 0.001


def test_clicks_without_a_team_or_elsewhere_do_not_count():
    log = mixed(list("xab"), list("xcd"), 3, n=100)
    one = log[log["rank"] == 1]
    elsewhere = one.head(7).assign(item_id="z")
    row = compare_interleaved(log, pd.concat([one, elsewhere]), details=True).iloc[0]
    assert row[
        ["diff", "wins", "losses", "n_clicks", "n_clicks_no_team", "n_clicks_elsewhere"]
    ].tolist() == [
        0,
        0,
        0,
        107,
        100,
        7,
    ]
    assert row["verdict"] == "no difference shown"
    with pytest.warns(rd.NoOverlapWarning, match="none of the 7 clicks"):
        compare_interleaved(log, elsewhere, details=True)


@pytest.mark.long
def test_the_unit_is_the_user_and_not_the_list():
    stats = pytest.importorskip("scipy.stats")
    log = pd.concat([mixed(list("abc"), list("cde"), 3, n=200).assign(session=s) for s in range(4)])
    log["list"] = log["user_id"] * 10 + log["session"]
    clicks = clicked(log, 0.4)
    with pytest.raises(rd.DuplicateError, match="user_col"):
        compare_interleaved(log, clicks, details=True)
    row = compare_interleaved(log, clicks, user_col=["user_id", "session"], details=True).iloc[0]
    d = (
        clicks["team"]
        .map({"a": -1.0, "b": 1.0})
        .groupby(clicks["user_id"])
        .sum()
        .reindex(range(200), fill_value=0)
    )
    assert row["n_users"] == 200
    assert row["p_value"] == pytest.approx(stats.ttest_1samp(d, 0).pvalue)


@pytest.mark.long
def test_balanced_lists_of_shifted_rankings_have_no_verdict():
    """b is a without its first item: a user who clicks at random would prefer b."""
    log = mixed(list("abcdef"), list("bcdefa"), 5, "balanced", 2000)
    row = compare_interleaved(log, clicked(log, 0.3), details=True).iloc[0]
    assert row["p_value"] < 1e-6
    assert (row["verdict"], row["withheld"]) == (
        "invalid: teams out of balance",
        "unbalanced_teams",
    )
    fair = mixed(list("abcdef"), list("bcdefa"), 5, n=2000)
    assert (
        compare_interleaved(fair, clicked(fair, 0.3), details=True).iloc[0]["verdict"]
        == "no difference shown"
    )


def test_a_log_that_lost_rows_of_a_team_has_no_verdict():
    log, clicks = fruit()
    lost = log[(log["team"] == "a") | (log["user_id"] % 5 > 0)]
    assert compare_interleaved(lost, clicks, details=True)["verdict"].tolist() == [
        "invalid: teams out of balance"
    ]


@pytest.mark.long
def test_null_experiments_are_rejected_as_often_as_they_should():
    """600 experiments of 200 users; their p-values are those of SciPy, as is shown for some of
    them."""
    stats = pytest.importorskip("scipy.stats")
    runs, n = 600, 200
    log = mixed(list("abc"), list("cde"), 3, n=runs * n)
    clicks = clicked(log, 0.2)
    sign = clicks["team"].map({"a": -1.0, "b": 1.0})
    d = np.bincount(clicks["user_id"], sign.fillna(0), minlength=runs * n).reshape(runs, n)
    p = stats.ttest_1samp(d, 0, axis=1).pvalue
    for run in range(20):
        own, chosen = (frame[frame["user_id"] // n == run] for frame in (log, clicks))
        assert compare_interleaved(own, chosen, details=True)["p_value"].iloc[0] == pytest.approx(
            p[run], rel=1e-9
        )
    rejected = (p < 0.05).sum()
    assert stats.binom.cdf(rejected, runs, 0.05) > 0.001
    assert stats.binom.sf(rejected - 1, runs, 0.05) > 0.001


def test_the_table_is_a_comparison(tmp_path):
    log, clicks = fruit(400)
    table = compare_interleaved(log, clicks, details=True)
    log.to_parquet(tmp_path / "log.parquet")
    table.to_parquet(tmp_path / "table.parquet")
    log.to_csv(tmp_path / "log.csv", index=False)
    again = pd.read_csv(tmp_path / "log.csv")  # where "" is null
    pd.testing.assert_frame_equal(
        pd.DataFrame(compare_interleaved(again, clicks, details=True)), pd.DataFrame(table)
    )
    assert len(rd.experiments.report_table(table).frame) == 1
    assert "better" in repr(table)


def test_bad_logs_are_refused():
    log, clicks = fruit(30)
    with pytest.raises(rd.DataError, match='neither "a", "b"'):
        compare_interleaved(log.assign(team="A"), clicks, details=True)
    with pytest.raises(rd.DataError, match="null or negative"):
        compare_interleaved(log, clicks.assign(price=-1.0), credit="price", details=True)
    with pytest.raises(rd.ColumnError):
        compare_interleaved(log.drop(columns="team"), clicks, details=True)
    with pytest.raises(rd.ColumnError):
        compare_interleaved(log, clicks, credit="price", details=True)


def mixed_lists(**columns):
    users = np.repeat(np.arange(40), 4)
    return pd.DataFrame(
        {"user_id": users, "item_id": list("abcd") * 40, "team": ["a", "b"] * 80, **columns}
    )


def test_a_credit_may_have_any_name_and_scale():
    log = mixed_lists()
    clicks = log[["user_id", "item_id"]].iloc[::3].assign(price=np.arange(54) % 7 + 1.0)
    whole = rd.experiments.compare_interleaved(log, clicks, credit="price", details=True)
    for name, factor in (("unit", 1.0), ("model", 1.0), ("price", 1e-14)):
        other = clicks[["user_id", "item_id"]].assign(**{name: clicks["price"] * factor})
        found = rd.experiments.compare_interleaved(log, other, credit=name, details=True)
        assert found["diff"].item() == pytest.approx(whole["diff"].item() * factor, rel=1e-12)
        for column in ("wins", "losses", "preference", "p_sign", "p_value"):
            assert found[column].item() == pytest.approx(whole[column].item(), rel=1e-9), column


@pytest.mark.parametrize("credit", [np.nan, 1.0])
def test_a_credit_of_the_other_team_is_refused(credit):
    log = mixed_lists(credit=credit)
    with pytest.raises(rd.DataError, match=r'log."credit".* is null, or has the sign of the other'):
        rd.experiments.compare_interleaved(log, log)


def test_k_may_be_longer_than_all_lists():
    log = mixed_lists().drop(columns="team")
    found = rd.experiments.interleave(log, log.iloc[::-1], k=10**12)
    pd.testing.assert_frame_equal(found, rd.experiments.interleave(log, log.iloc[::-1], k=4))


@pytest.mark.parametrize("name", ["team", "rank", "credit"])
def test_the_key_has_no_name_of_the_result(name):
    rows = pd.DataFrame({name: ["red", "red", "blue"], "item_id": ["x", "y", "x"]})
    with pytest.raises(rd.ColumnError, match=rf"columns \['{name}'\] of its own; rename those"):
        rd.experiments.interleave(rows, rows[::-1], user_col=name)
    items = rows.rename(columns={name: "user_id", "item_id": name})
    with pytest.raises(rd.ColumnError, match="of its own"):
        rd.experiments.interleave(items, items[::-1], item_col=name)


def test_a_null_score_is_refused_with_advice_that_can_be_taken():
    rows = pd.DataFrame({"user_id": [1] * 3, "item_id": list("abc"), "score": [0.1, np.nan, 0.3]})
    with pytest.raises(rd.DataError, match=r"holds 1 null scores of 3; drop these rows$"):
        rd.experiments.interleave(rows, rows)
