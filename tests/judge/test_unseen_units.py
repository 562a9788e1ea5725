"""What a reader sees where a few users that the sample lacks could turn a verdict."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
from recdf.judge.verdict import sentence

N = 60


def two(change, metric="ndcg@10", base=0.5, **columns):
    """Two models, of which b is better by `change` in every second list, and by .02 more in the
    others."""
    change = change + 0.02 * (np.arange(N) % 2)
    frame = pd.DataFrame({"user_id": np.arange(N), **columns})
    return {"a": frame.assign(**{metric: base}), "b": frame.assign(**{metric: base + change})}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "check: 1.8 users who lose all would turn it"),
        ({"test": "randomization"}, "check: 1.8 users who lose all would turn it"),
        ({"test": "bootstrap"}, "check: 1.8 users who lose all would turn it"),
        ({"test": "wilcoxon"}, "ranks higher"),  # three more ranks do not turn 60 wins
        ({"bounds": {"ndcg@10": (0.4, 0.9)}}, "better"),
        ({"confidence": 0.9, "bounds": {"ndcg@10": (0.1, 0.92)}}, "check: 2.2 users who lose all"),
    ],
)
def test_a_difference_that_fewer_than_three_unseen_users_turn(options, said):
    """60 users gain .03 in the mean, a sum of 1.8: as much as 1.8 users who fall from 1 to 0."""
    row = rd.compare_models(two(0.02), baseline="a", **options, details=True).iloc[0]
    assert row["reject"]
    assert row["verdict"].startswith(said)
    assert (row["withheld"] == "unseen_units") == said.startswith("check")


def arms(change, metric="ndcg@10", n=N):
    """Two arms of n users, .5 and .52 in turn, of which B has `change` more."""
    b = np.arange(2 * n) % 2
    values = 0.5 + 0.02 * (np.arange(2 * n) % 4 > 1) + change * b
    return pd.DataFrame({"variant": np.where(b, "B", "A"), metric: values})


def by_moments(frame, metric, **options):
    moments = rd.experiments.variant_moments(frame, metric)
    return rd.experiments.compare_variants_from_moments(moments, **options)


@pytest.mark.few(2)
@pytest.mark.parametrize("compare", [rd.compare_variants, by_moments])
@pytest.mark.parametrize(("change", "said"), [(0.02, "check: 2.3 users who lose all"), (0.03, "")])
def test_an_effect_that_fewer_than_three_unseen_users_turn(compare, change, said):
    """60 users gain `change`: as much as 60·change/(.51 + change) of them who fall to 0."""
    options = {"control": "A", "expected": {"A": 1, "B": 1}, "details": True}
    row = compare(arms(change), "ndcg@10", **options).iloc[0]
    assert row["reject"]
    assert row["turned_by"] == pytest.approx(60 * change / (0.51 + change))
    assert (row["withheld"], row["effect"]) == (("unseen_units", "") if said else ("", "better"))
    assert row["verdict"].startswith(said or "better")
    least = 0.8416212 * row["se"] + np.log(20) * (0.51 + change) / 60
    assert row["mde"] == pytest.approx(least, rel=1e-6)
    free = compare(arms(change, "spend"), "spend", **options, larger_is_better="spend").iloc[0]
    assert free["effect"] == "better"  # without bounds nothing is known of a user
    wide = compare(arms(60 * change), "ndcg@10", **options).iloc[0]
    assert np.isnan([free["turned_by"], wide["turned_by"]]).all()  # other values have the name


@pytest.mark.parametrize(("alternative", "gap"), [("greater", 0.8), ("less", 0.2)])
def test_the_smallest_effect_that_is_found_is_one_of_the_tested_sign(alternative, gap):
    """Of means of .2, three users of the treatment at 0, or three of the control at 1, hide a gain;
    a loss is hidden by the others."""
    b = np.arange(2000) >= 1800
    noise = 0.01 * (np.arange(2000) % 2 - 0.5)
    users = pd.DataFrame({"variant": np.where(b, "B", "A"), "ndcg@10": 0.2 + noise})
    row = rd.compare_variants(
        users,
        "ndcg@10",
        control="A",
        expected={"A": 9, "B": 1},
        alternative=alternative,
        details=True,
    ).iloc[0]
    moved = max(gap / 1800, (1 - gap) / 200)
    assert row["mde"] == pytest.approx(0.8416212 * row["se"] + np.log(20) * moved, rel=1e-6)


@pytest.mark.parametrize("strata", [None, "half"])
def test_a_trend_that_few_unseen_users_turn(strata):
    """A user of 60 who is at a bound moves each day by .5/60: the slope by Σ|t|·.5/60/Σt², with t
    from −3.5 to 3.5 days. With halves as strata, a user of 30 moves half of them all by as much."""
    user = np.repeat(np.arange(2 * N), 8)
    day = np.tile(np.arange(8), 2 * N)
    b = user % 2
    noise = 0.01 * np.random.default_rng(4).normal(size=len(user))
    rows = pd.DataFrame(
        {
            "user_id": user,
            "variant": np.where(b, "B", "A"),
            "half": user // 2 % 2,
            "seen": pd.Timestamp("2026-11-02"),
            "on": pd.Timestamp("2026-11-02") + pd.to_timedelta(day, unit="D"),
            "ndcg@10": 0.5 + noise + 0.003 * day * b,
        }
    )
    options = {"control": "A", "time_col": "on", "exposure_col": "seen", "how": "mean"}
    options |= {"expected": {"A": 1, "B": 1}}
    table = rd.experiments.effect_over_time(rows, "ndcg@10", **options, strata=strata, details=True)
    row = table.iloc[-1]
    moved = 16 * 0.5 / 60 / 42
    assert row["trend_withheld"] == "unseen_units"
    assert float(row["trend_verdict"].split()[1]) == pytest.approx(0.003 / moved, rel=0.1)
    free = rows.rename(columns={"ndcg@10": "spend"})
    row = rd.experiments.effect_over_time(
        free, "spend", **options, strata=strata, larger_is_better="spend"
    ).iloc[-1]
    # 60 users and K more whose slope is above that of the others by s·60/K + s gain s in the mean.
    said, value = row["trend_verdict"].split(" rise by ")
    assert said == "grows, unless 3 in 60 users of the control"
    assert float(value.split()[0]) == pytest.approx(0.003 * (1 + 60 / -np.log(0.05)), rel=0.1)


def days(**columns):
    """Rows of 60 users of each arm on 8 days, with columns of arrays of (users, days)."""
    user = np.repeat(np.arange(2 * N), 8)
    day = np.tile(np.arange(8), 2 * N)
    return pd.DataFrame(
        {
            "user_id": user,
            "variant": np.where(user % 2, "B", "A"),
            "seen": pd.Timestamp("2026-11-02"),
            "on": pd.Timestamp("2026-11-02") + pd.to_timedelta(day, unit="D"),
            **{name: values.ravel() for name, values in columns.items()},
        }
    )


DAILY = {"control": "A", "time_col": "on", "exposure_col": "seen", "expected": {"A": 1, "B": 1}}


def test_a_mean_of_lists_is_asked_in_each_period():
    """Means over lists, as sums over counts, have the bounds of the metric by day, too."""
    draw = np.random.default_rng(5)
    gain = np.tile([[0.0], [0.02]], (N, 8))
    values = 0.5 + 0.01 * draw.normal(size=(2 * N, 8)) + gain
    rows = days(**{"ndcg@10": values, "ndcg@10__n": np.ones((2 * N, 8))})
    ratio = {"q": ("ndcg@10", "ndcg@10__n")}
    table = rd.experiments.effect_over_time(rows, ratio, **DAILY)
    assert set(table["withheld"]) == {"unseen_units"}


def test_a_trend_of_other_values_than_those_of_the_name_has_no_bounds():
    draw = np.random.default_rng(6)
    grows = np.tile([[0.0], [0.003]], (N, 8)) * np.arange(8)
    values = 0.5 + 0.01 * draw.normal(size=(2 * N, 8)) + grows
    values[0, 0] = 1.5  # one value beyond the bounds, where no mean is
    table = rd.experiments.effect_over_time(days(**{"ndcg@10": values}), "ndcg@10", **DAILY)
    assert table["withheld"].ne("unseen_units").any()
    assert table["trend_withheld"].iloc[-1] != "unseen_units"


def test_a_guardrail_is_asked_about_its_margin_and_not_about_its_sign():
    """2.3 users turn the sign of +.02, and 60·.12/(.41 of a user who falls to 0) the margin."""
    table = rd.compare_variants(arms(0.02), "ndcg@10", control="A", details=True)
    judged = rd.experiments.role_verdicts(table, {"ndcg@10": ("guardrail", -0.1)})
    assert table["withheld"].tolist() == ["unseen_units"]
    assert judged["effect"].tolist() == ["safe"]


def test_the_side_that_turns_it_is_said():
    worse = rd.compare_models(two(-0.04), baseline="a", details=True).iloc[0]
    assert worse["verdict"] == "check: 1.8 users who gain all would turn it"
    smaller = rd.compare_models(
        two(0.02), baseline="a", smaller_is_better="ndcg@10", details=True
    ).iloc[0]
    assert smaller["verdict"] == "check: 1.8 users who gain all would turn it"


def test_equivalence_is_asked_on_the_nearer_side():
    """A mean of .03 is .02 below the margin: units at 1 − .05 above it, 60·.02/.95."""
    row = rd.compare_models(two(0.02), baseline="a", margin=0.05, details=True).iloc[0]
    assert row["turned_by"] == pytest.approx(60 * 0.03)  # the difference is what is said first
    none = two(0.0)
    none["b"]["ndcg@10"] = 0.5 + 0.02 * np.where(np.arange(N) % 2, 1, -1)
    row = rd.compare_models(none, baseline="a", margin=0.04, details=True).iloc[0]
    assert row["p_equivalence"] < 0.001
    assert row["turned_by"] == pytest.approx(60 * 0.04 / 0.96)
    assert row["verdict"].startswith("check: 2.5 users who")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "better"),
        ({"alternative": "greater"}, "check: skewed"),
        ({"alternative": "greater", "test": "randomization"}, "check: skewed"),
        ({"alternative": "greater", "test": "wilcoxon"}, "ranks higher"),
        ({"alternative": "less"}, "no difference shown"),
        ({"margin": 0.05}, "better, within the margin"),
        ({"margin": 0.05, "confidence": 0.98}, "check: skewed"),
    ],
)
def test_what_one_side_of_a_test_says_of_skewed_differences_is_withheld(options, said):
    """300 users, of which 3 lose .9 and all others gain about .021: one side errs in up to 12 % of
    runs without a difference, and both together in 8 %."""
    change = np.where(np.arange(300) < 3, -0.9, 0.0185 + 0.005 * (np.arange(300) % 2))
    frame = pd.DataFrame({"user_id": np.arange(300), "ndcg@10": 0.9})
    models = {"a": frame.assign(**{"ndcg@10": 0.9 - change.clip(0)})}
    models["b"] = frame.assign(**{"ndcg@10": 0.9 + change.clip(max=0)})
    row = rd.compare_models(models, baseline="a", **options, details=True).iloc[0]
    assert row["verdict"].startswith(said), row[["diff", "se", "p_value", "turned_by", "verdict"]]
    assert "skewed" in row["remarks"]


def test_a_shown_difference_whose_size_is_certain_is_equivalent():
    """Its sign could turn by 1.8 users, and 17 would be needed to take it out of the margin."""
    row = rd.compare_models(two(0.02), baseline="a", margin=0.25, details=True).iloc[0]
    assert row["reject"]
    assert (row["effect"], row["withheld"]) == ("equivalent", "")
    assert row["turned_by"] == pytest.approx(60 * 0.22 / 0.75)


def test_sessions_and_weights_count_by_their_typical_user():
    frames = two(0.02)
    lists = {
        name: one.loc[one.index.repeat(1 + 5 * (one["user_id"] == 0))].assign(
            session=lambda rows: np.arange(len(rows))
        )
        for name, one in frames.items()
    }
    row = rd.compare_models(
        lists, baseline="a", user_col=["user_id", "session"], details=True
    ).iloc[0]
    size = np.array([6.0] + [1.0] * 59)
    typical = 65 / np.sqrt((size**2).mean())
    assert row["turned_by"] == pytest.approx(typical * row["diff"])
    weighted = rd.compare_models(
        {name: one.assign(w=size) for name, one in frames.items()},
        "ndcg@10",
        baseline="a",
        weight_col="w",
        details=True,
    ).iloc[0]
    assert weighted["turned_by"] == pytest.approx(typical * weighted["diff"])


def test_a_metric_without_bounds_says_what_turns_it():
    row = rd.compare_models(
        two(2.0, "seconds"), baseline="a", smaller_is_better="seconds", details=True
    ).iloc[0]
    value = -N * 2.01 / -np.log(0.05)
    assert row["turning_value"] == pytest.approx(value)
    assert row["verdict"] == f"worse, unless 3 in 60 users differ by −{-value:.3g} or more"
    assert (row["effect"], row["withheld"]) == ("worse", "")


def test_a_value_out_of_declared_bounds_and_wrong_bounds_are_errors():
    frames = two(2.0, "seconds")
    with pytest.raises(rd.DataError, match=r"from 0\.5 to 2\.52, outside of"):
        rd.compare_models(frames, bounds={"seconds": (0, 1)}, details=True)
    for bounds in ({"seconds": (1, 0)}, {"seconds": 3}, {"hours": (0, 1)}, {"seconds": "ab"}, 3):
        with pytest.raises(rd.OptionError, match="bounds"):
            rd.compare_models(frames, bounds=bounds, details=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Results of two models, of which one is a little better for each user, and its names."""
    users, folder = np.arange(200), tmp_path_factory.mktemp("results")
    true = pd.DataFrame({"user_id": users, "item_id": 0})
    pred = pd.concat(
        pd.DataFrame(
            {"model": model, "user_id": users.repeat(200), "item_id": np.tile(range(200), 200)}
        ).assign(rank=lambda rows, at=at: 1 + (rows["item_id"] - at) % 200)
        for model, at in (("a", 10), ("b", 11))
    )
    pred = pred[pred["rank"] <= 1 + 190 + pred["user_id"] % 3]
    rd.evaluate(true, pred, {"own": "mrr@200"}, by="model").to_parquet(folder / "both")
    return folder


@pytest.mark.long
def test_the_command_the_method_and_the_leaderboard_know_the_bounds_of_a_definition(
    folders, capsys
):
    result = rd.read_parquet(folders / "both")
    row = result.compare_models(baseline="a", details=True).iloc[0]
    if row["reject"]:
        assert row["withheld"] == "unseen_units"
        assert row["turned_by"] == pytest.approx(abs(row["diff"]) * 200)
        assert "users who" in str(rd.leaderboard(result).tests["verdict"].tolist())
    main(["compare", str(folders / "both"), "--baseline", "a"])
    assert row["verdict"] in capsys.readouterr().out


def gate_sides(loss, metric, n=N):
    base = pd.DataFrame({"user_id": np.arange(n), metric: 0.5})
    return base.assign(**{metric: 0.5 - loss + 0.01 * (np.arange(n) % 2)}), base


def test_a_gate_without_bounds_is_undecided_and_names_what_turns_it():
    sides = gate_sides(0.0, "seconds")
    gate = rd.gate(*sides, {"seconds": 0.1}, smaller_is_better="seconds")
    value = 0.1 + N * (0.1 - 0.005) / -np.log(0.05)
    said = f"no bounds of the metric are known: pass, unless 3 in 60 users differ by {value:+#.3g} "
    said += "or more"
    assert gate.verdict == "undecided"
    assert said in gate.reasons[0]
    assert said in gate.to_markdown()
    slow = rd.gate(
        *sides, {"seconds": 0.1}, smaller_is_better="seconds", bounds={"seconds": (0, 30)}
    )
    assert slow.verdict == "undecided"  # 30 seconds in a user more are .5 in the mean
    fast = rd.gate(
        *sides, {"seconds": 0.1}, smaller_is_better="seconds", bounds={"seconds": (0, 1)}
    )
    assert fast.passed
    assert not gate.table["turning_value"].isna().any()
    assert fast.table["turning_value"].isna().all()


@pytest.mark.parametrize("bounds", [None, {"ndcg@10": (0, 1)}])
def test_the_value_of_a_perfect_list_that_is_rounded_up_lies_within_the_bounds(bounds):
    best = np.nextafter(1, 2)
    base = pd.DataFrame({"user_id": range(400), "ndcg@10": np.where(np.arange(400) % 3, 0.5, best)})
    more = base["ndcg@10"].mask(np.arange(400) % 7 == 0, best)  # of 38 lists, by .5
    own = base.assign(**{"ndcg@10": more})
    assert rd.gate(own, base, {"ndcg@10": -0.1}, bounds=bounds).passed
    row = rd.compare_models({"a": base, "b": own}, baseline="a", bounds=bounds, details=True)
    assert row["verdict"].tolist() == ["better"]
    assert row["turned_by"].tolist() == [pytest.approx(38 * 0.5)]  # users who fall by 1


def test_a_gate_says_up_to_what_weight_it_holds_and_asks_the_population():
    own, base = gate_sides(0.0, "ndcg@10", 400)
    sessions = [one.assign(session=1) for one in (own, base)]
    key, budgets = {"user_col": ["user_id", "session"]}, {"ndcg@10": -0.1}
    row = rd.gate(*sessions, budgets, **key).table.iloc[0]
    assert row["effect"] == "pass"
    assert row["reason"] == "holds for users with up to 1 list, the most that was seen"
    # the population has 400 users with one list, and one with 4 or with 200
    for many, effect in ((4, "pass"), (200, "undecided")):
        users = pd.DataFrame({"user_id": [*range(400), *[400] * many]})
        row = rd.gate(*sessions, budgets, users=users, **key).table.iloc[0]
        assert row["effect"] == effect
        assert row["unseen_weight"] == pytest.approx(many / (400 + many))
        assert ("of the weight is of users heavier" in row["reason"]) == (effect == "undecided")
    weighted = [one.assign(w=1.0 + (one["user_id"] % 2)) for one in (own, base)]
    row = rd.gate(*weighted, budgets, weight_col="w").table.iloc[0]
    assert row["reason"] == "holds for users with a weight of up to 2, the most that was seen"
    plain = rd.gate(own, base, budgets).table.iloc[0]
    assert (plain["effect"], plain["reason"], plain["holds_for"]) == ("pass", "", "")


def test_a_gate_of_few_labels_asks_the_population_for_heavier_users_too():
    """People judged 60 of 100 users of two lists; the population has another, of 100 lists."""
    keys = pd.DataFrame({"user_id": np.arange(200) // 2, "session": np.arange(200)})
    lists = [keys.assign(m=m + 0.01 * (np.arange(200) % 3)) for m in (0.5, 0.48)]
    people = [one[one["user_id"] < 60].reset_index(drop=True) for one in lists]
    key = {"user_col": ["user_id", "session"], "bounds": {"m": (0, 1)}, "cheap": lists}
    row = rd.gate(*people, {"m": -0.2}, **key).table.iloc[0]
    assert row["reason"] == "holds for users with up to 2 lists, the most that was seen"
    users = pd.DataFrame({"user_id": [*keys["user_id"], *[100] * 100]})
    row = rd.gate(*people, {"m": -0.2}, users=users, **key).table.iloc[0]
    assert row["unseen_weight"] == pytest.approx(1 / 3)
    assert row["effect"] == "undecided"


@pytest.mark.parametrize(
    ("value", "written"), [(-26.66, "−26.7"), (1352983870967.742, "+1.35T"), (4.2e-9, "+4.2e−9")]
)
def test_a_number_in_a_verdict_has_digits_that_count(value, written):
    row = {"turning_value": value, "unseen": 2.9957, "n_users": 1500}
    said = sentence("models", "better", remarks=["no_bounds"], row=row)
    assert said == f"better, unless 3 in 1,500 users differ by {written} or more"


def sessions_of(sizes, gain):
    """Two models on sessions of users, of whom each has so many."""
    user = np.repeat(np.arange(len(sizes)), sizes)
    draw = np.random.default_rng(1)
    base = pd.DataFrame({"user_id": user, "session": np.arange(len(user))})
    base = base.assign(w=1.0 + user % 3, **{"ndcg@10": 0.3 + 0.2 * draw.random(len(user))})
    better = base["ndcg@10"] + gain * (0.9 + 0.2 * draw.random(len(user)))
    return {"a": base, "b": base.assign(**{"ndcg@10": better})}


SESSIONS = {"baseline": "a", "user_col": ["user_id", "session"], "metrics": "ndcg@10"}


@pytest.mark.parametrize(
    ("sizes", "gain", "options", "said"),
    [
        ([7, *[2] * 99], 0.1, {}, "better, for users with up to 7 lists"),
        ([2] * 100, 0.1, {}, "better"),
        ([1] * 100, 0.1, {}, "better"),
        # user 2 has the weight 3 in each of 2 sessions, user 0 the weight 1 in each of 7
        ([7, *[2] * 99], 0.1, {"weight_col": "w"}, "better, for users with a weight of up to 7"),
        ([1] * 100, 0.1, {"weight_col": "w"}, "better, for users with a weight of up to 3"),
        ([7, *[2] * 99], 0.0, {}, "no difference shown"),
        (
            [7, *[2] * 99],
            0.01,
            {"margin": 0.05},
            "equivalent, for users with up to 7 lists",
        ),
        ([7, *[2] * 99], 0.1, {"test": "wilcoxon"}, "ranks higher"),
        (
            [7, *[2] * 99],
            0.1,
            {"test": "randomization", "n_resamples": 500},
            "better, for users with up to 7 lists",
        ),
    ],
)
def test_a_comparison_of_models_says_up_to_how_many_lists_it_holds(sizes, gain, options, said):
    row = rd.compare_models(sessions_of(sizes, gain), **SESSIONS, **options).iloc[0]
    assert row["verdict"] == said


def test_the_models_in_buckets_say_it_too(tmp_path):
    frames = sessions_of([7, *[2] * 99], 0.1)
    names = ["user_id", "session"]
    item = {"item_id": 1}
    true = frames["a"][names].assign(**item)
    lists = [f[names].assign(**item, score=1.0, model=m) for m, f in frames.items()]
    hit = np.arange(len(true)) % 5 > 0
    lists[0].loc[hit, "item_id"] = 2  # model a misses four of five
    result = rd.evaluate(true, pd.concat(lists), "hitrate@1", user_col=names, by="model")
    held = result.compare_models("hitrate@1", baseline="a").iloc[0]
    assert held["verdict"] == "better, for users with up to 7 lists"
    for name, frame in (("true", true), ("pred", pd.concat(lists))):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    stored = rd.evaluate_parquet(
        tmp_path / "true.parquet",
        tmp_path / "pred.parquet",
        "hitrate@1",
        user_col=names,
        by="model",
        out=tmp_path / "out",
        buckets=3,
    )
    assert stored.compare_models("hitrate@1", baseline="a").iloc[0]["verdict"] == held["verdict"]


def weighted_users(n=400):
    draw = np.random.default_rng(2)
    b = np.arange(n) % 2
    frame = {
        "user_id": np.arange(n),
        "variant": np.where(b, "B", "A"),
        "w": 1 + np.arange(n) // 2 % 6,
    }
    noisy = 0.4 + 0.05 * draw.normal(size=n)
    return pd.DataFrame(frame | {"ndcg@10": noisy + 0.1 * b, "views": frame["w"]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weight_col": "w"}, "better, for users with a weight of up to 6"),
        ({"weight_col": "w", "strata": "w"}, "better, for users with a weight of up to 6"),
        ({"weight_col": "even"}, "better"),
        # houses of 8 users of one arm, but the last one of each arm has 16
        ({"cluster": "house"}, "better, for clusters with a size of up to 16"),
        ({}, "better"),
    ],
)
def test_a_comparison_of_variants_says_up_to_what_weight_it_holds(options, said, tmp_path):
    data = weighted_users().assign(even=2.0)
    data["house"] = 2 * np.minimum(np.arange(400) // 16, 23) + np.arange(400) % 2
    data.to_parquet(tmp_path / "users.parquet")
    given = {"metrics": "ndcg@10", "control": "A", "expected": {"A": 1, "B": 1}, **options}
    for users in (data, tmp_path / "users.parquet"):
        assert rd.compare_variants(users, **given).iloc[0]["verdict"] == said


@pytest.mark.parametrize("options", [{}, {"by": "zone"}])
def test_a_metric_of_variants_without_bounds_says_what_would_turn_it(options):
    """n·diff/K above the treatment's mean m: K users of that value beside n of the mean c have it,
    too. The same below c would be negative, which no user is, and is said of values of both
    signs."""
    y = np.tile([9.0, 10, 11, 10], 50)
    both = {"variant": np.repeat(["A", "B"], 200), "y": np.r_[y, y + 1], "zone": "x"}
    data = pd.DataFrame(both).assign(user_id=range(400))
    given = {"control": "A", "expected": {"A": 1, "B": 1}, **options}
    above, below = 11 + 200 * 1 / np.log(20), 10 - 200 * 1 / np.log(20)
    assert (f"{above:.1f}", f"{below:.1f}") == ("77.8", "-56.8")
    unless = "3 in 200 users of the control have 77.8 or more"
    for found in (
        rd.compare_variants(data, "y", **given, details=True),
        rd.experiments.compare_variants_from_moments(
            rd.experiments.variant_moments(data, "y", **options), **given, details=True
        ),
    ):
        assert found["verdict"].tolist() == [f"better, unless {unless}"]
        assert found["unless"].tolist() == [unless]
    less = rd.compare_variants(data, "y", **given, smaller_is_better="y")
    assert less["verdict"].tolist() == [f"worse, unless {unless}"]
    losses = rd.compare_variants(data.assign(y=data["y"] - 12), "y", **given)
    assert losses["verdict"].tolist() == ["better, unless 3 in 200 users have −68.8 or less"]


def test_the_only_bound_that_is_known_is_asked():
    """Numbers of hits have the bound 0: each user of B with 0 moves its mean by 5/200, so that a
    difference of .02 is turned by one, whatever the control's users may have."""
    noise = 0.05 * np.tile([-1.0, 1, -1, 1], 50)
    hits = np.r_[5 + noise, 5.02 + noise]
    data = pd.DataFrame({"user_id": range(400), "variant": np.repeat(["A", "B"], 200)})
    options = {"control": "A", "expected": {"A": 1, "B": 1}, "larger_is_better": "hits@10"}
    row = rd.compare_variants(data.assign(**{"hits@10": hits}), "hits@10", **options).iloc[0]
    assert row["p_value"] < 0.001
    assert row["verdict"] == "check: 0.8 users who lose all would turn it"


def test_a_difference_of_segments_is_as_sure_as_their_effects():
    """Zone x gains .1 a list of users with 1 to 6 lists, and zone y nothing."""
    of = {name: sessions_of([1, 2, 6] * 40, gain) for name, gain in (("x", 0.1), ("y", 0.0))}
    of["y"]["b"]["ndcg@10"] += 0.05 * np.random.default_rng(3).normal(size=360)
    lists = {
        model: pd.concat(
            [
                one[model].assign(zone=zone, user_id=one[model]["user_id"] + 1000 * (zone == "y"))
                for zone, one in of.items()
            ]
        )
        for model in ("a", "b")
    }
    for name in ("ndcg@10", "spend"):
        frames = {model: one.rename(columns={"ndcg@10": name}) for model, one in lists.items()}
        table = rd.compare_models(
            frames,
            name,
            baseline="a",
            user_col=["user_id", "session"],
            by="zone",
            larger_is_better=name,
            details=True,
        )
        found = rd.experiments.segment_effects(table)["verdict"].unique().tolist()
        few = f"{np.log(2 / 0.05):.0f}"  # of two zones
        unless = "" if name == "ndcg@10" else f", unless {few} in 120 users differ by −"
        assert len(found) == 1
        assert found[0].startswith(f"differs between segments{unless}")
        assert found[0].endswith(", for users with up to 6 lists") or unless


def test_an_interval_says_up_to_how_many_lists_it_holds():
    frame = pd.DataFrame({"user_id": [1, 1, 1, 2, 3], "n": [1.0, 1, 1, 5, 1], "m": range(5)})
    found = rd.experiments.bootstrap_ci(frame, {"m": "m", "half": ("m", "n")}, n_resamples=50)
    assert found["holds_for"].tolist() == ["users with up to 3 lists", ""]
    even = rd.experiments.bootstrap_ci(frame.drop_duplicates("user_id"), "m", n_resamples=50)
    assert even["holds_for"].tolist() == [""]


def test_a_ratio_of_sums_says_up_to_what_denominator_it_holds(tmp_path):
    data = weighted_users().assign(clicks=lambda f: f["views"] * f["ndcg@10"])
    data["zone"] = np.where(data["views"] > 3, "heavy", "light")  # up to 6, and up to 3
    data.to_parquet(tmp_path / "users.parquet")
    given = {"control": "A", "expected": {"A": 1, "B": 1}, "by": "zone", "details": True}
    for users in (data, tmp_path / "users.parquet"):
        found = rd.compare_variants(users, {"ctr": ("clicks", "views")}, **given)
        assert found["holds_for"].tolist() == [f"users with views of up to {n}" for n in (6, 3)]
        assert found["verdict"].str.startswith("better, for users with views of up to ").all()
    some = data.assign(views=2.0 * (data["user_id"] % 4 > 0))  # 0 or 2 are no unequal weights
    found = rd.compare_variants(some, {"ctr": ("clicks", "views")}, control="A", details=True)
    assert found["holds_for"].tolist() == [""]


@pytest.mark.parametrize(
    ("judged", "holds_for"),
    [
        (np.arange(40), "users with up to 2 lists"),  # the last user has 9
        (np.r_[np.arange(39), 99], ""),
    ],
)
def test_few_labels_say_of_whom_people_judged_lists(judged, holds_for):
    sizes = [2] * 99 + [9]
    cheap = sessions_of(sizes, 0.0)["a"].drop(columns="w")
    human = cheap[cheap["user_id"].isin(judged)].reset_index(drop=True)
    row = rd.experiments.prediction_powered(human, cheap, user_col=["user_id", "session"]).iloc[0]
    assert row["holds_for"] == holds_for
    assert row["verdict"].endswith(f", for {holds_for}" if holds_for else "human alone")


def test_one_of_several_tests_stands_against_more_unseen_users():
    """B's mean is .02 higher: .02·100/.52 = 3.8 users who lose all would turn it. That is more than
    ln(1/.05) = 3.0, and less than ln(10/.05) = 5.3 of ten segments."""
    y = 0.5 + 0.02 * np.tile([-1.0, 1.0], 100)
    half = pd.DataFrame({"variant": np.repeat(["A", "B"], 100), "ndcg@10": y})
    found = half.assign(segment=0, **{"ndcg@10": y + 0.02 * (half["variant"] == "B")})
    data = pd.concat([found, *(half.assign(segment=i) for i in range(1, 10))], ignore_index=True)
    options = {"control": "A", "expected": {"A": 1, "B": 1}, "details": True}
    alone = rd.compare_variants(found, "ndcg@10", **options).iloc[0]
    assert alone["turned_by"] == pytest.approx(0.02 * 100 / 0.52)
    assert (alone["effect"], alone["unseen"]) == ("better", pytest.approx(np.log(20)))
    of_ten = rd.compare_variants(data, "ndcg@10", by="segment", **options).iloc[0]
    assert of_ten["turned_by"] == alone["turned_by"]
    assert (of_ten["withheld"], of_ten["unseen"]) == ("unseen_units", pytest.approx(np.log(200)))


@pytest.mark.parametrize("correction", ["bonferroni", "none"])
def test_each_of_several_tests_stands_against_more_unseen_users(correction):
    """In each of six zones 200 users of .5 gain .02, which 200·.02/1 = 4 unseen users turn who lose
    all of a paired metric, and 4/.52 of an arm. Of one test in twenty 3.0 may be missing by chance,
    and of six tests ln(6/.05) = 4.8. Without bounds, so many have the value that turns it."""
    n = 6 * 200
    noise = 0.02 * np.tile([-1.0, 1, 0, 0], n // 4)
    frame = pd.DataFrame({"user_id": range(n), "zone": np.arange(n) // 200, "ndcg@10": 0.5})
    frames = {"a": frame, "b": frame.assign(**{"ndcg@10": 0.52 + noise})}
    options = {"correction": correction, "by": "zone", "details": True}
    k = np.log(6 / 0.05) if correction == "bonferroni" else np.log(1 / 0.05)
    models = rd.compare_models(frames, baseline="a", **options)
    np.testing.assert_allclose(models["unseen"], k)
    np.testing.assert_allclose(models["turned_by"], 4)
    said = "better" if correction == "none" else "check: 4 users who lose all would turn it"
    assert models["verdict"].unique().tolist() == [said]
    spend = {name: one.rename(columns={"ndcg@10": "spend"}) for name, one in frames.items()}
    row = rd.compare_models(spend, baseline="a", larger_is_better="spend", **options).iloc[0]
    assert row["turning_value"] == pytest.approx(-200 * 0.02 / k)
    assert f", unless {k:.0f} in 200 users differ by −{200 * 0.02 / k:.3g}" in row["verdict"]
    both = pd.concat([one.assign(variant=name.upper()) for name, one in spend.items()])
    both["user_id"] = range(2 * n)
    both["spend"] += np.tile([0.01, -0.01], n)
    given = {"control": "A", "expected": {"A": 1, "B": 1}, **options}
    row = rd.compare_variants(both, "spend", **given).iloc[0]
    assert row["unseen"] == pytest.approx(k)
    value = 0.52 + 200 * 0.02 / k  # of users of A, which takes its mean to B's
    assert (
        row["verdict"]
        == f"better, unless {k:.0f} in 200 users of the control have {value:.3g} or more"
    )


def test_a_plan_of_several_tests_counts_more_unseen_users():
    """Where s is small beside the range 1, mde is near ln(m/.05)·1/n of m comparisons."""
    lists = pd.DataFrame({"user_id": np.arange(800) % 400, "model": np.repeat(["a", "b"], 400)})
    lists["ndcg@10"] = 0.5 + 0.001 * (lists["user_id"] % 2) * (lists["model"] == "b")
    given = {"baseline": "a", "n": 1000}
    least = [
        rd.experiments.plan_comparison(lists, "ndcg@10", n_comparisons=m, **given)["mde_abs"].item()
        for m in (1, 10)
    ]
    assert least[1] - least[0] == pytest.approx(np.log(10) / 1000, rel=1e-6)
    users = lists[lists["model"] == "b"]
    least = [
        rd.experiments.plan_experiment(users, "ndcg@10", n=1000, n_comparisons=m)["mde_abs"].item()
        for m in (1, 10)
    ]
    assert least[1] - least[0] == pytest.approx(np.log(10) * 0.5005 / 500, rel=1e-6)
