"""`rd.gate`: budgets, verdicts, the data behind both sides, and what people read of it."""

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import recdf as rd

SHOP = rd.sample_shop(n_users=400, n_items=100)
METRICS = ["ndcg@10", "recall@10", "first_rank@10"]


def of(model, metrics=METRICS, true=SHOP.true, **options):
    return rd.evaluate(true, SHOP.pred[SHOP.pred["model"] == model], metrics, **options)


OLD, NEW, BAD = of("popularity"), of("knn"), of("random")


def sides(n=400, loss=0.0, noise=0.2, seed=0):
    """Two per-user tables, of which the candidate loses exactly so much in the mean, as in each
    country."""
    rng = np.random.default_rng(seed)
    base = rng.beta(3, 3, n) * 0.6 + 0.2
    own = base - loss + np.repeat(rng.uniform(-noise, noise, n // 2), 2) * np.tile([1, -1], n // 2)
    frame = pd.DataFrame(
        {"user_id": range(n), "country": np.where(np.arange(n) < n // 2, "DE", "FR")}
    )
    return frame.assign(**{"ndcg@10": own}), frame.assign(**{"ndcg@10": base})


def verdicts(gate):
    return gate.table["verdict"].tolist()


# --------------------------------------------------------------------------------------------
# verdicts


def test_pass_fail_undecided():
    for (own, base), verdict in (
        (sides(loss=0.0), "pass"),
        (sides(loss=0.05), "fail"),
        (sides(loss=0.015), "undecided"),
    ):
        gate = rd.gate(own, base, {"ndcg@10": -0.02})
        assert gate.verdict == verdict
        assert gate.passed is (verdict == "pass")
        assert bool(gate) is gate.passed


def test_the_bounds_are_those_of_the_t_test():
    from scipy.stats import ttest_1samp

    own, base = sides(loss=0.01)
    row = rd.gate(own, base, {"ndcg@10": -0.02}).table.iloc[0]
    found = ttest_1samp(own["ndcg@10"] - base["ndcg@10"], 0).confidence_interval(0.9)
    assert (row["change_low"], row["change_high"]) == pytest.approx(tuple(found), abs=3e-5)
    assert row["provable"] == row["change_low"]


def test_a_relative_budget_is_a_share_of_the_baseline():
    """A loss of .01 of .5 is 2 %: within a budget of 3 %, and not within 1 %."""
    own, base = sides(n=3000, loss=0.01, noise=0.01)
    assert rd.gate(own, base, {"ndcg@10": "-3%"}).verdict == "pass"
    assert rd.gate(own, base, {"ndcg@10": "−1%"}).verdict == "fail"
    row = rd.gate(own, base, {"ndcg@10": "-3%"}).table.iloc[0]
    assert row["change"] == pytest.approx(own["ndcg@10"].mean() / base["ndcg@10"].mean() - 1)


def test_a_budget_is_printed_as_it_was_given():
    """With three digits, the table would show another budget than the verdict is about."""
    own, base = sides(n=100)
    for given, printed in ((-0.01234, "−0.01234"), ("-2.125%", "−2.125%"), (-0.3, "−0.3")):
        assert rd.gate(own, base, {"ndcg@10": given}).table["budget"].tolist() == [printed]


def test_worse_within_the_budget_is_said():
    own, base = sides(n=3000, loss=0.01, noise=0.01)
    for worst, verdict in (
        ("pass", "pass, but worse"),
        ("undecided", "undecided"),
        ("fail", "fail"),
    ):
        gate = rd.gate(own, base, {"ndcg@10": -0.05}, worst=worst)
        assert verdicts(gate) == [verdict]
        assert gate.verdict == verdict.split(",")[0]
        assert "worse than the baseline, within the budget" in repr(gate)


def test_every_row_must_pass():
    gate = rd.gate(NEW, OLD, {"ndcg@10": "-2%", "recall@10": -0.05})
    assert (gate.verdict, verdicts(gate)) == ("pass", ["pass", "pass"])
    gate = rd.gate(BAD, OLD, {"ndcg@10": "-2%", "recall@10": -0.5})
    assert gate.verdict == "fail"
    assert verdicts(gate) == ["fail", "pass, but worse"]


@pytest.mark.long
def test_failing_is_corrected_and_passing_is_not():
    own, base = sides(n=800, loss=0.03)
    copies = (
        {f"m{i}": own["ndcg@10"] for i in range(40)},
        {f"m{i}": base["ndcg@10"] for i in range(40)},
    )
    one = rd.gate(own.assign(**copies[0]), base.assign(**copies[1]), {"m0": -0.02}).table.iloc[0]
    many = rd.gate(
        own.assign(**copies[0]), base.assign(**copies[1]), {f"m{i}": -0.02 for i in range(40)}
    ).table
    assert many["p_fail_adj"].iloc[0] == pytest.approx(min(1, 40 * one["p_fail"]))
    assert many["p_pass"].iloc[0] == one["p_pass"]


def test_smaller_is_better():
    own, base = sides()
    for frame in (own, base):
        frame["latency"] = 100 * frame["ndcg@10"]
    slow = own.assign(latency=own["latency"] + 20)
    given = {"smaller_is_better": "latency", "bounds": {"latency": (0, 150)}}
    assert rd.gate(own, base, {"latency": "+5%"}, **given).verdict == "pass"
    gate = rd.gate(slow, base, {"latency": "+5%"}, **given)
    assert gate.verdict == "fail"
    row = gate.table.iloc[0]
    assert row["change_low"] < row["change"] < row["change_high"]
    assert row["provable"] == row["change_high"] > 0.05


def test_identical_lists_pass_where_the_bets_do():
    """The bound is −4.1/n: 400 users show a budget of −.02 and not one of −.01."""
    assert rd.gate(OLD, OLD, {"ndcg@10": -0.02}).verdict == "pass"
    row = rd.gate(OLD, OLD, {"ndcg@10": -0.001}).table.iloc[0]
    assert (row["verdict"], row["bound"], row["n_differ"]) == ("undecided", "betting", 0)
    assert row["provable"] == pytest.approx(-4.1 / row["n_users"], rel=0.05)
    assert row["n_needed"] > row["n_users"]
    assert f"needs about {int(row['n_needed']):,} users" in row["reason"]


def test_few_users_and_skewed_values_are_undecided():
    own, base = sides(n=20)
    row = rd.gate(own, base, {"ndcg@10": -0.5}).table.iloc[0]
    assert (row["verdict"], row["reason"]) == ("undecided", "fewer than 30 users")
    assert rd.gate(own, base, {"ndcg@10": -0.5}, min_lists=10).passed
    own, base = sides()
    money = base.assign(revenue=np.where(np.arange(400) < 3, 1000.0, 0.0))
    row = rd.gate(own.assign(revenue=0.0), money, {"revenue": -20}).table.iloc[0]
    assert (row["verdict"], row["remarks"]) == ("undecided", "skewed")
    assert "no bounds" in row["reason"]


def test_looks_hold_together_and_are_wider():
    own, base = sides()
    once, often = (
        rd.gate(own, base, {"ndcg@10": -0.02}, looks=looks).table.iloc[0] for looks in (None, "any")
    )
    assert often["bound"] == "anytime"
    assert often["change_low"] < once["change_low"]
    assert "at all looks together" in repr(rd.gate(own, base, {"ndcg@10": -0.02}, looks="any"))


def test_a_list_that_one_side_lacks_counts_as_zero():
    own, base = sides(loss=-0.01)
    row = rd.gate(own.iloc[:300], base, {"ndcg@10": -0.02}).table.iloc[0]
    assert (row["n_only_baseline"], row["n_only_candidate"], row["n_users"]) == (100, 0, 400)
    assert row["mean_candidate"] == pytest.approx(own["ndcg@10"].iloc[:300].sum() / 400)
    assert row["verdict"] == "fail"


def test_the_unit_is_the_user():
    own, base = sides(n=300)
    lists = [pd.concat([one.assign(session=i) for i in range(5)]) for one in (own, base)]
    sessions = rd.gate(*lists, {"ndcg@10": -0.02}, user_col=["user_id", "session"]).table.iloc[0]
    users = rd.gate(own, base, {"ndcg@10": -0.02}).table.iloc[0]
    assert (sessions["n_users"], sessions["n_lists"]) == (300, 1500)
    assert sessions["change_low"] == pytest.approx(users["change_low"])
    for units, said in (
        (None, "users are the units"),
        ("session", "each session is a unit"),
        (["user_id", "session"], "each user_id and session is a unit"),
    ):
        keys = {"user_col": ["user_id", "session"], "unit_col": units}
        gate = rd.gate(*lists, {"ndcg@10": -0.02}, **keys)
        assert gate.notes[-1].endswith(f"; {said}.")


def test_weights_are_those_of_the_evaluation():
    weights = {user: 1.0 + i % 3 for i, user in enumerate(SHOP.true["user_id"].unique())}
    new, old = (of(name, weight_col=weights) for name in ("knn", "popularity"))
    row = rd.gate(new, old, {"ndcg@10": "-2%"}).table.iloc[0]
    assert row["mean_candidate"] == pytest.approx(new.summary["value"].iloc[0])


def test_nothing_is_changed():
    own, base = sides()
    before = own.copy(), base.copy()
    rd.gate(own, base, {"ndcg@10": -0.02}, by="country")
    pd.testing.assert_frame_equal(own, before[0])
    pd.testing.assert_frame_equal(base, before[1])


# --------------------------------------------------------------------------------------------
# segments


def test_segments_are_gated_by_their_own_budgets_only():
    own, base = sides(n=1000)
    own["ndcg@10"] = (own["ndcg@10"] - 0.1 * (own["country"] == "FR")).clip(0)
    shown = rd.gate(own, base, {"ndcg@10": -0.2}, by="country")
    assert shown.verdict == "pass"
    assert shown.table["segment_value"].tolist() == ["", "DE", "FR"]
    assert verdicts(shown) == ["pass, but worse", "not gated", "not gated"]
    gate = rd.gate(own, base, {"ndcg@10": -0.2, "ndcg@10[country]": -0.02})
    assert (gate.verdict, verdicts(gate)) == ("fail", ["pass, but worse", "pass", "fail"])
    gate = rd.gate(own, base, {"ndcg@10[country=DE]": -0.02})
    assert (gate.verdict, verdicts(gate)) == ("pass", ["pass", "not gated"])


def test_a_small_segment_is_shown():
    own, base = sides()
    for frame in (own, base):
        frame.loc[:9, "country"] = "AT"
    table = rd.gate(own, base, {"ndcg@10[country]": -0.5}).table.set_index("segment_value")
    assert table.loc["AT", "verdict"] == "not gated"
    assert table.loc["AT", "reason"] == "fewer than 30 users"


def test_a_segment_that_one_side_does_not_know():
    """A list without recommendations carries nothing of them; the other side says its segment."""
    own, base = sides()
    own.loc[:99, "country"] = None
    table = rd.gate(own, base, {"ndcg@10": -0.02}, by="country").table.set_index("segment_value")
    assert table.loc["DE", "n_users"] == 200
    own.loc[:2, "country"] = "FR"
    with pytest.raises(
        rd.DataError, match="'country' differs between candidate and baseline in 3 lists"
    ):
        rd.gate(own, base, {"ndcg@10": -0.02}, by="country")


# ------------------------------------------------------------------------------------------------
# data


def differs(gate):
    return gate.checks.loc[gate.checks["found"] == "differs", "check"].tolist()


def test_other_data_are_undecided_with_the_reason():
    fewer = SHOP.true.drop_duplicates("user_id")
    other = SHOP.true["user_id"].isin(SHOP.true["user_id"].unique()[:200])
    for result, check in (
        (of("knn", ties="item_asc"), "option ties"),
        (of("knn", true=fewer), "truth"),
        (of("knn", true=SHOP.true[other]), "truth"),
    ):
        gate = rd.gate(result, OLD, {"ndcg@10": "-2%"})
        assert gate.verdict == "undecided"
        assert check in differs(gate)
        assert any(check in reason for reason in gate.reasons)
        assert check in gate.to_markdown()


@pytest.mark.long
def test_truth_of_the_same_size_with_other_items_is_other_truth():
    """Leave one out, with another item left out: each list has one relevant item, and it is not the
    same."""
    first, last = (SHOP.true.drop_duplicates("user_id", keep=keep) for keep in ("first", "last"))
    gate = rd.gate(of("knn", true=first), of("popularity", true=last), {"ndcg@10": "-2%"})
    assert (gate.verdict, differs(gate)) == ("undecided", ["truth"])
    shuffled = first.sample(frac=1, random_state=1).astype(
        {"item_id": "category", "user_id": object}
    )
    assert (
        differs(rd.gate(of("knn", true=first), of("popularity", true=shuffled), {"ndcg@10": "-2%"}))
        == []
    )
    graded = first.assign(relevance=2.0)
    assert differs(
        rd.gate(
            of("knn", true=first.assign(relevance=1)), of("knn", true=graded), {"ndcg@10": "-2%"}
        )
    )


def test_a_parameter_that_is_new_since_the_baseline_was_stored_is_its_default():
    """A result of an older version has a definition without it."""
    budgets = {"ndcg@10": -0.5}
    stored = of("popularity")
    for one in (stored.spec, stored.per_user.attrs["recdf"]):
        short = one["metrics"]["ndcg@10"]["definition"].replace(",average=none", "")
        one["metrics"]["ndcg@10"]["definition"] = short
    assert short == "ndcg(gain=linear,discount=log,log_base=2,ideal=relevant,tied=ranked)@10"
    assert not differs(rd.gate(NEW, stored, budgets))
    assert differs(rd.gate(of("knn", {"ndcg@10": "ndcg(average=hits)@10"}), stored, budgets)) == [
        "definition of ndcg@10"
    ]


def test_other_definitions_and_catalogues_are_undecided():
    gate = rd.gate(
        of("knn", {"n": "ndcg(gain=exp2)@10"}), of("popularity", {"n": "ndcg@10"}), {"n": "-2%"}
    )
    assert differs(gate) == ["definition of n"]
    items = pd.unique(pd.concat([SHOP.true["item_id"], SHOP.pred["item_id"]])).tolist()
    new, old = (
        of(name, ["accuracy", "ndcg"], items=own)
        for name, own in (("knn", items), ("popularity", [*items, "more"]))
    )
    assert "items=" in differs(rd.gate(new, old, {"accuracy@10": "-2%"}))
    assert "items=" not in differs(rd.gate(new, old, {"ndcg@10": "-2%"}))  # it reads no catalogue


def test_a_table_without_a_record_says_what_was_not_compared():
    own, base = sides()
    gate = rd.gate(own, base, {"ndcg@10": -0.02})
    assert gate.passed
    assert "Not compared, since nothing records them: options and definitions, truth." in repr(gate)


def test_unjudged_items_turn_a_verdict_into_undecided():
    own, base = sides(loss=0.05)
    own["judged@10"], base["judged@10"] = 0.5 + 0.01 * (np.arange(400) % 2), 0.9
    gate = rd.gate(own, base, {"ndcg@10": -0.02})
    assert gate.verdict == "undecided"
    assert (
        "fewer items of the candidate are judged (judged@10: 50.5%" in gate.table["reason"].iloc[0]
    )
    swapped = rd.gate(own, base, {"ndcg@10": -0.1})  # judged less, it passes all the same
    assert swapped.passed


def test_lists_of_which_nobody_judged_an_item_say_nothing_of_a_verdict():
    own, base = sides()
    own["judged@10"], base["judged@10"] = np.nan, 0.9
    assert rd.gate(own, base, {"ndcg@10": -0.1}).passed


def test_cheap_labels_of_one_side_alone_are_no_labels_of_both():
    own, base = sides()
    own["ndcg@10 under cheap labels"] = 1.0
    assert rd.gate(own, base, {"ndcg@10": -0.1}).passed


# -- bad calls


@pytest.mark.parametrize(
    ("budgets", "error", "says"),
    [
        (
            {"ndcg@10": "+2%"},
            rd.OptionError,
            "allows what is better, since larger values of 'ndcg@10' are",
        ),
        ({"first_rank@10": "-2%"}, rd.OptionError, r"expected \+2%"),
        (
            {"ndcg@10": "-2pp"},
            rd.OptionError,
            "expected a share of the baseline's mean such as '-2%'",
        ),
        ({"ndcg@10": True}, rd.OptionError, "expected a share"),
        ({"ndcg@10": float("nan")}, rd.OptionError, "expected a share"),
        ({"ndcg@10": -2}, rd.OptionError, "is all that values from 0 to 1 can lose"),
        ({"ndcg@10": "-100%"}, rd.OptionError, "is all that there is to lose"),
        ({}, rd.OptionError, "expected a mapping of metrics"),
        (
            {"ndcg@5": "-2%"},
            rd.ColumnError,
            "candidate has no metric 'ndcg@5' per list; .* at another k",
        ),
        ({"ndcg@10": "-2%", "ndcg@10 ": "-3%"}, rd.OptionError, "ndcg@10 has two budgets"),
        (
            {"ndcg@10[country": "-2%"},
            rd.OptionError,
            "expected the name of a metric, or of one in a segment",
        ),
        (
            {"ndcg@10[country=DE]": "+2%"},
            rd.OptionError,
            r"budgets\['ndcg@10\[country=DE\]'\]=\+2% allows",
        ),
        ({"ngcd@10": "-2%"}, rd.ColumnError, "did you mean 'ndcg'"),
        ({"coverage@10": "-2%"}, rd.ColumnError, "candidate has no metric 'coverage@10'"),
        ({"ndcg@10[country]": "-2%"}, rd.ColumnError, "country"),
    ],
)
def test_bad_budgets(budgets, error, says):
    with pytest.raises(error, match=says):
        rd.gate(NEW, OLD, budgets)


def test_bad_sides(tmp_path):
    with pytest.raises(rd.OptionError, match="has 3 values of 'model'"):
        rd.gate(rd.evaluate(SHOP.true, SHOP.pred, "ndcg@10", by="model"), OLD, {"ndcg@10": "-2%"})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        rd.gate(tmp_path / "nowhere", OLD, {"ndcg@10": "-2%"})
    with pytest.raises(TypeError, match="candidate is a dict; expected a result"):
        rd.gate({}, OLD, {"ndcg@10": "-2%"})
    with pytest.raises(rd.OptionError, match="at k = 5 in candidate and at k = 10 in baseline"):
        rd.gate(of("knn", {"n": "ndcg@5"}), of("popularity", {"n": "ndcg@10"}), {"n": "-2%"})
    with pytest.raises(rd.ColumnError) as caught:
        rd.gate(NEW, of("popularity", ["ndcg@5"]), {"ndcg@10": "-2%"})
    assert (caught.value.argument, caught.value.value) == ("budgets", "ndcg@10")
    for option in (
        {"worst": "never"},
        {"alpha": 5},
        {"looks": "daily"},
        {"min_lists": -1},
        {"correction": "holms"},
    ):
        with pytest.raises(rd.OptionError, match=next(iter(option))):
            rd.gate(NEW, OLD, {"ndcg@10": "-2%"}, **option)
    pred = SHOP.pred[["user_id", "item_id", "score"]]
    for beside, says in (
        ({"pred": pred, "true": SHOP.true}, "pred= is a DataFrame; expected two"),
        ({"pred": (pred,), "true": SHOP.true}, "pred= holds 1; expected two"),
        ({"pred": (pred, pred)}, "pred= needs true="),
        ({"true": SHOP.true}, "true= and log= are what pred= is looked at with"),
        ({"log": SHOP.log}, "true= and log= are what pred= is looked at with"),
    ):
        with pytest.raises(rd.OptionError, match=says):
            rd.gate(NEW, OLD, {"ndcg@10": "-2%"}, **beside)


# -- what people read


@pytest.mark.long
def test_folders_results_and_tables_say_the_same(tmp_path):
    NEW.to_parquet(tmp_path / "new")
    OLD.to_parquet(tmp_path / "old")
    want = rd.gate(NEW, OLD, {"ndcg@10": "-2%"}).table
    for pair in ((tmp_path / "new", str(tmp_path / "old")), (NEW.per_user, OLD.per_user)):
        pd.testing.assert_frame_equal(rd.gate(*pair, {"ndcg@10": "-2%"}).table, want)
    long = rd.evaluate(SHOP.true, SHOP.pred, METRICS, by="model").per_user
    chosen = [long[long["model"] == name] for name in ("knn", "popularity")]
    pd.testing.assert_frame_equal(rd.gate(*chosen, {"ndcg@10": "-2%"}).table, want)


def test_the_table_goes_to_parquet_and_joins(tmp_path):
    table = rd.gate(BAD, OLD, {"ndcg@10": "-2%", "recall@10": -0.05}).table
    table.to_parquet(tmp_path / "gate.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "gate.parquet"), table)
    assert len(table.merge(table, on=["metric", "segment", "segment_value"])) == len(table)


def test_markdown_begins_with_the_verdict():
    own, base = sides()
    assert (
        rd.gate(own, base, {"ndcg@10": -0.02})
        .to_markdown()
        .startswith("### Passed: 1 budget is met\n\n| verdict")
    )
    text = rd.gate(BAD, OLD, {"ndcg@10": "-2%", "recall@10": -0.05}).to_markdown()
    assert text.startswith("### Failed: 0 of 2 budgets are met, 2 broken\n")
    assert (
        "<b>Failed: 0 of 2"
        in rd.gate(BAD, OLD, {"ndcg@10": "-2%", "recall@10": -0.05})._repr_html_()
    )


def test_junit_has_a_case_per_budget(tmp_path):
    own, base = sides()
    for frame in (own, base):
        frame["a<b>\u202e"] = frame["ndcg@10"]
    budgets = {"ndcg@10": -0.02, "ndcg@10[country=DE]": -0.0001, "a<b>\u202e": -0.02}
    worse = own.assign(**{"a<b>\u202e": own["ndcg@10"] - 0.2})
    of_letters = {"a<b>\u202e": (-0.5, 1)}
    gate = rd.gate(worse, base, budgets, by="country", bounds=of_letters)
    for undecided, tag in (("error", "errors"), ("skipped", "skipped")):
        gate.to_junit(tmp_path / "out.xml", undecided=undecided)
        suite = ElementTree.parse(tmp_path / "out.xml").getroot()[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get(tag)) == ("3", "1", "1")
        assert len(suite) == 3
        assert next(case.get("name") for case in suite.iter("testcase")) == "ndcg@10 −0.02"
        assert suite.find(".//failure").get("type") == "fail"


@pytest.mark.slow
def test_an_assertion_shows_the_table(tmp_path):
    """pytest cuts what it asserts at 240 characters; the table stands in the failure all the
    same."""
    NEW.to_parquet(tmp_path / "new")
    BAD.to_parquet(tmp_path / "bad")
    (tmp_path / "test_gate.py").write_text(
        "import recdf as rd\n\ndef test_candidate():\n    assert rd.gate('bad', 'new', {'ndcg@10': "
        "'-2%'})\n"
    )
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gate.py"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Failed: 0 of 1 budget is met, 1 broken" in done.stdout
    assert "ndcg@10  −2%" in done.stdout


# -----------------------------------------------------------------------------------
# recommendations beside


def lists_of(model):
    return SHOP.pred[SHOP.pred["model"] == model].drop(columns="model")


@pytest.mark.long
def test_seen_items_turn_a_verdict_into_undecided():
    """The candidate recommends what the users had; each of its lists begins with three of them."""
    log = SHOP.log.drop_duplicates(["user_id", "item_id"])
    again = log.groupby("user_id").head(3)[["user_id", "item_id"]].assign(score=1e6)
    pred = pd.concat([lists_of("knn"), again], ignore_index=True)
    seen = pred[["user_id", "item_id"]].drop_duplicates().merge(log[["user_id", "item_id"]])
    new = rd.evaluate(SHOP.true, pred, METRICS)
    options = {"pred": (pred, lists_of("popularity")), "true": SHOP.true}
    assert len(seen) > len(again) / 2
    gate = rd.gate(new, OLD, {"ndcg@10": "-50%"}, log=log, **options)
    assert gate.verdict == "undecided"
    assert any(one.startswith("seen items in doubt: ") for one in gate.reasons)
    assert "seen items" not in set(
        rd.gate(new, OLD, {"ndcg@10": "-50%"}, **options).checks["check"]
    )
    both = rd.gate(
        NEW, NEW, {"ndcg@10": "-50%"}, log=log, pred=(lists_of("knn"),) * 2, true=SHOP.true
    )
    assert both.passed
    assert both.checks.set_index("check").loc["seen items", "found"] == "no doubt"


@pytest.mark.long
def test_sampled_candidates_turn_a_verdict_into_undecided():
    rng = np.random.default_rng(0)
    true = pd.DataFrame({"user_id": range(300), "item_id": rng.integers(0, 4000, 300)})
    others = pd.DataFrame(
        {"user_id": np.repeat(range(300), 99), "item_id": rng.integers(4000, 9000, 300 * 99)}
    )
    pred = pd.concat([others.drop_duplicates(), true], ignore_index=True)
    pred["score"] = rng.random(len(pred))
    pred = pred.groupby("user_id").head(99 + 1)
    all_of = pred.merge(true, how="left", indicator=True).assign(
        hit=lambda one: one["_merge"] == "both"
    )
    others_kept = all_of[~all_of["hit"]].groupby("user_id").head(90)
    pred = pd.concat([others_kept, all_of[all_of["hit"]]])[["user_id", "item_id", "score"]]
    result = rd.evaluate(true, pred, "ndcg@10")
    assert rd.gate(result, result, {"ndcg@10": -0.1}).passed
    gate = rd.gate(result, result, {"ndcg@10": -0.1}, pred=(pred, pred), true=true)
    assert gate.verdict == "undecided"
    assert gate.reasons == [
        "candidates in doubt: "
        + " of the candidate, ".join(["sampled in 100% of the lists"] * 2)
        + " of the baseline"
    ]


@pytest.mark.long
def test_items_that_stand_nowhere_in_the_truth_are_unjudged():
    """The candidate fails, and half of its items are new; nobody can have wanted them."""
    pred = lists_of("random")
    new_items = pred.assign(
        item_id=np.where(np.arange(len(pred)) % 2, "new" + pred["item_id"], pred["item_id"])
    )
    result = rd.evaluate(SHOP.true, new_items, METRICS)
    assert rd.gate(result, OLD, {"ndcg@10": "-2%"}).verdict == "fail"
    gate = rd.gate(
        result, OLD, {"ndcg@10": "-2%"}, pred=(new_items, lists_of("popularity")), true=SHOP.true
    )
    assert gate.verdict == "undecided"
    assert (
        "fewer items of the candidate are judged (judged in true: 48.4% of"
        in gate.table["reason"].iloc[0]
    )


def test_a_gate_that_passes_says_which_losses_it_would_have_seen():
    rng = np.random.default_rng(4)
    n = 2000
    base = pd.DataFrame({"user_id": range(n), "ndcg@10": rng.uniform(0.2, 0.8, n)})
    other = base.assign(**{"ndcg@10": base["ndcg@10"] + rng.uniform(-0.1, 0.1, n)})
    gate = rd.gate(other, base, {"ndcg@10": -0.05})
    assert gate.table["bound"].tolist() == ["t"]
    se = np.std(other["ndcg@10"] - base["ndcg@10"], ddof=1) / np.sqrt(n)
    # A loss is shown where it is 1.645 standard errors below 0, in 8 of 10 cases at 0.842 more.
    least = (1.6449 + 0.8416) * se
    (said,) = [note for note in gate.notes if "8 of 10" in note]
    found = float(said.split("ndcg@10 −")[1].rstrip("."))
    assert found == pytest.approx(least, rel=0.01)
    failed = rd.gate(other.assign(**{"ndcg@10": 0.0}), base, {"ndcg@10": -0.05})
    assert not [note for note in failed.notes if "8 of 10" in note]


def test_other_lists_are_no_comparison():
    own, base = sides()
    budget = {"ndcg@10": -0.02}
    with pytest.raises(rd.EmptyPopulationError, match=r"share no list with .* \['user_id'\]"):
        rd.gate(own, base.assign(user_id=base["user_id"] + 10_000), budget)
    with pytest.raises(rd.EmptyPopulationError, match="candidate has no rows"):
        rd.gate(own.head(0), base, budget)
    with pytest.raises(rd.EmptyPopulationError, match="baseline has no rows"):
        rd.gate(own, base.head(0), budget)
    some = rd.gate(own.iloc[:300], base.iloc[100:], budget)
    said = (
        "alone has: ndcg@10 100 of the candidate and 100 of the baseline; they count as the worst"
    )
    assert said in some.to_markdown()
    assert "alone has" not in rd.gate(own, base, budget).to_markdown()


@pytest.mark.parametrize("factor", [1.0, 1e-14, 1e12])
def test_users_that_differ_are_counted_at_every_scale(factor):
    own, base = (one.assign(rev=one["ndcg@10"] * factor) for one in sides())
    whole = rd.gate(own, base, {"ndcg@10": "-2%"}).table.iloc[0]
    row = rd.gate(own, base, {"rev": "-2%"}, larger_is_better="rev").table.iloc[0]
    assert row["n_differ"] == whole["n_differ"] > 0


def test_a_large_constant_has_no_spread():
    table = pd.DataFrame({"user_id": range(41), "rev": 3e11})
    for value in (3e11, 0.1, 1 / 3):
        same = table.assign(rev=value)
        found = rd.gate(same, same, {"rev": "-1%"}, larger_is_better="rev")
        assert found.verdict == "undecided"


@pytest.mark.parametrize("budgets", [{"ndcg@10": -0.02}, {"ndcg@10[country]": -0.02}])
@pytest.mark.parametrize("label", [["DE"], (["DE"],)])
def test_segments_that_have_no_hash_are_named(budgets, label):
    two = [one.assign(country=pd.Series([label] * 40, dtype=object)) for one in sides(40)]
    with pytest.raises(rd.IdTypeError, match="'country' holds values that cannot tell rows apart"):
        rd.gate(*two, budgets, by="country")
