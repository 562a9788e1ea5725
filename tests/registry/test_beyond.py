"""Every metric beyond accuracy: equal to the oracle, and the invariances that any metric with side
tables must have.

One call evaluates all metrics, which costs little more than a call of one. A message names the
columns that differ.
"""

import functools
import warnings
from collections import defaultdict

import oracles
import pandas as pd
import pytest
from cases import case
from close import close
from registry import seeded
from registry.seeded import (
    assert_close,
    assert_own_memory,
    assert_within_bounds,
    column_options,
    distinct,
    frames,
    oracle_values,
    quietly,
    records,
    side_tables,
    text,
    variants,
)

import recdf as rd

# bias_disparity needs groups of users, which tests/metrics/test_fairness.py has.
BEYOND = [metric for metric in seeded.BEYOND if metric.name != "bias_disparity"]
every_metric = pytest.mark.parametrize("metric", BEYOND, ids=[m.name for m in BEYOND])
NAMES = [metric.name for metric in BEYOND]
PER_LIST = [metric for metric in BEYOND if metric.per == "list"]
WITHOUT_TRUE = [metric for metric in BEYOND if "true" not in metric.arguments]
# The frames of their oracle are those of tests/metrics/test_rating.py.
RATING = {metric.name for metric in BEYOND if metric.family in ("rating", "probability")}
SIDES = ("items", "log", "aspects", "features", "base", "popular")
KS = (1, 3, 40)

# Metrics to take for each aspect.
INTENTS = (
    "mapr(tied=worst)",
    "ndcg(gain=binary)",
    "bpref",
    "auc",
    "err",
    "recall",
    "first_rank",
    "pair_accuracy",
    "mar",
    "judged",
    "utility",
    "infap",
    "iprecision(at=0.5)",
    "rbp_residual",
    "user_model",
    "user_model(model=inst)",
    "mapr(normalizer=shown)",
    "pauc",
    "arhr(normalizer=achievable)",
    "relevant_rank(of=mean)",
    "normalized_gain",
    "ndcg(average=levels)",
    "pair_accuracy(within=judged)",
)

# Parameters to try beside the defaults.
VARIANTS = {
    "ild": [{"similarity": "jaccard"}, {"similarity": "hamming"}],
    "ils": [{"similarity": "jaccard"}, {"similarity": "hamming"}],
    "a_ndcg": [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"ideal": "even"},
        {"ideal": "even", "alpha": 0.7},
        {"ideal": "aspects"},
        {"ideal": "aspects", "alpha": 0.0, "discount": "reciprocal"},
        {"ideal": "aspects", "discount": "geometric", "p": 0.8},
        {"ideal": "none", "discount": "reciprocal"},
        {"ideal": "even", "discount": "geometric"},
        {"discount": "reciprocal"},
        {"discount": "geometric", "p": 0.9},
    ],
    "intent_aware": [{"metric": one} for one in INTENTS],
    "categories": [{"divisor": "shown"}, {"divisor": "catalogue"}],
    "calibration": [{"divergence": "js"}, {"smoothing": 0.5}],
    "popularity": [
        {"share_of": "events"},
        {"unit": "count", "share_of": "events"},
        {"unit": "count"},
        {"unit": "rank"},
    ],
    "category_entropy": [
        {"discount": "geometric", "p": 0.5},
        {"discount": "log", "smoothing": 0.01},
        {"smoothing": 1e-6, "discount": "geometric"},
    ],
    "surprisal": [{"share_of": "events", "normalize": True}, {"divisor": "k"}, {"normalize": True}],
    "serendipity": [
        {"threshold": 0.9, "similarity": "jaccard"},
        {"relevant": False, "top": 2},
        {"relevant": False, "threshold": 0.3, "similarity": "hamming"},
        {"of": "rank"},
        {"of": "rank", "relevant": False},
        {"of": "similarity"},
        {"of": "similarity", "similarity": "jaccard", "relevant": False},
        {"of": "similarity", "similarity": "hamming"},
        {"of": "similarity", "similarity": "cooccurrence"},
        {"of": "similarity", "similarity": "cooccurrence", "relevant": False},
    ],
    "unexpectedness": [{"divisor": "k"}],
    "rbo": [
        {"p": 0.3},
        {"against": "ideal"},
        {"against": "ideal", "normalize": True, "p": 0.95},
        {"against": "ideal", "unshown": "first"},
    ],
    "overlap": [{"base_k": 2}, {"divisor": "base"}, {"divisor": "union", "base_k": 4}],
    "epc": [{"relevant": False}, {"discount": "none"}],
    "efd": [{"relevant": False, "discount": "none"}],
    "aplt": [{"head": 0.5}, {"head": 1.0}, {"tail": 0.3}, {"tail": 2.0}, {"tail": 0.001}],
    "aclt": [{"head": 0.5}, {"tail": 0.5}],
    "arp_ratio": [{"share_of": "events"}],
    "entropy": [{"normalize": True}, {"log_base": "e"}, {"log_base": 10, "divisor": "items"}],
    "coverage": [{"normalize": False}],
    "gini": [{"discount": "log"}, {"discount": "geometric"}, {"discount": "geometric", "p": 0.5}],
    "item_gap": [{"stat": "gap"}, {"gain": "exp2"}, {"gain": "binary", "stat": "gap"}],
    "exposure_share": [{"discount": "none"}],
    "exposure_ratio": [{"relative_to": "catalogue"}, {"discount": "none"}],
    "pop_reo": [{"group_col": "group"}, {"head": 0.4}],
    "pop_rsp": [{"group_col": "group"}, {"head": 0.4}],
}

OPTION_SETS = [
    {"order": "score", "users": "true"},
    {"order": "score", "users": "pred", "relevance": True, "ties": "item_asc"},
    {"order": "rank", "users": "both", "relevance": True, "min_relevance": 0.5},
    {"order": "row", "users": "all", "duplicates": "keep"},
    {"order": "score", "users": [-5, 1, 4, 22, 999], "ties": "row"},
    {"order": "score", "users": "all", "judged_only": True, "relevance": True},
]


def world_of(tables, order):
    """The same for the oracle."""
    aspects = defaultdict(lambda: defaultdict(set))
    for row in records(tables["aspects"]):
        aspects[row["user_id"]][row["aspect"]].add(row["item_id"])
    base = defaultdict(list)
    ranked = {"score": -tables["base"]["score"], "rank": tables["base"]["rank"]}.get(order)
    for row in records(
        tables["base"] if ranked is None else tables["base"].loc[ranked.sort_values().index]
    ):
        base[row["user_id"]].append(row["item_id"])
    return oracles.World(
        log=[(row["user_id"], row["item_id"]) for row in records(tables["log"])],
        items={
            row["item_id"]: {
                "category": []
                if pd.isna(row["category"])
                else [c.strip() for c in row["category"].split("|")],
                "group": None if pd.isna(row["group"]) else row["group"],
            }
            for row in records(tables["items"])
        },
        features={item: list(row) for item, row in tables["features"].dropna().iterrows()},
        aspects={user: list(sets.values()) for user, sets in aspects.items()},
        base=base,
        popular=set(tables["popular"]),
    )


def tables_for(metric, params, tables):
    """Side tables that the metric takes, as keywords."""
    taken = {*metric.arguments, *metric.needs, *metric.optional}
    if "group_col" in params or metric.name in ("pop_rsp", "entropy", "serendipity"):
        taken.add("items")
    return {name: tables[name] for name in SIDES if name in taken}


def read_summary(summary, name, k):
    """The one value, or {group: value}, that a summary holds of a metric string."""
    rows = zip(summary["metric"], summary["k"], summary["value"], strict=True)
    found = [
        (metric, value)
        for metric, at, value in rows
        if metric.partition("[")[0] == name and at is not pd.NA and at == k
    ]
    if [metric for metric, _ in found] == [name]:
        return found[0][1]
    return {metric.partition("[")[2][:-1]: value for metric, value in found}


@functools.cache
def oracle_lists(number, k):
    world = world_of(side_tables(number), OPTION_SETS[number]["order"])
    options = {"relevance": False, "nan_score": "last", **OPTION_SETS[number]}
    true, pred = frames(number)
    return oracles.match_lists(
        records(true), records(pred[pred["model"] == "a"]), k, world=world, **options
    )


def tried_under(metric, number):
    """Metric strings to try under one set of options, each with its parameters."""
    tried = [{}, *VARIANTS.get(metric.name, one_change(metric))]
    if (
        OPTION_SETS[number].get("duplicates") == "keep"
    ):  # what the ideal list is with repeated truth is nowhere defined
        tried = [
            one
            for one in tried
            if metric.name not in ("a_ndcg", "intent_aware") and one.get("against") != "ideal"
        ]
    return {text(metric, params): params for params in tried}


def one_change(metric):
    """Each choice and each number of a metric that `VARIANTS` does not list, one parameter at a
    time."""
    return [
        one
        for one in variants(metric)
        if sum(metric.defaults[name] != value for name, value in one.items()) == 1
    ]


def evaluate_under(number, metrics):
    """Evaluate all that is to be tried of the metrics under one set of options."""
    true, pred = frames(number)
    options, pred = column_options(
        {"nan_score": "last", **OPTION_SETS[number]}, pred[pred["model"] == "a"]
    )
    tables = side_tables(number)
    if OPTION_SETS[number]["order"] == "row":
        tables = {**tables, "base": tables["base"].drop(columns=["score", "rank"])}
    tried = {
        name: params for metric in metrics for name, params in tried_under(metric, number).items()
    }
    side = {}
    for metric in metrics:
        for params in tried_under(metric, number).values():
            side |= tables_for(metric, params, tables)
    result = quietly(rd.evaluate, true, pred, list(tried), k=KS, **side, **options)
    of_lists = [
        name for metric in metrics if metric.per == "list" for name in tried_under(metric, number)
    ]
    assert set(result.per_user.columns[3:]) == {f"{name}@{k}" for name in of_lists for k in KS}
    return result


ORACLE_TOO = [metric for metric in BEYOND if metric.name not in RATING]


@functools.cache
def all_under(number):
    return evaluate_under(number, ORACLE_TOO)


@pytest.mark.parametrize("metric", ORACLE_TOO, ids=lambda m: m.name)
def test_equals_the_oracle(metric):
    check_oracle(metric, 0, all_under(0))


@pytest.mark.long
@pytest.mark.parametrize("metric", ORACLE_TOO, ids=lambda m: m.name)
def test_alone_it_equals_the_oracle(metric):
    """So it cannot owe its numbers to another one."""
    check_oracle(metric, 0, evaluate_under(0, [metric]))


@pytest.mark.long
@pytest.mark.parametrize("metric", ORACLE_TOO, ids=lambda m: m.name)
def test_equals_the_oracle_under_more_options(metric):
    for number in range(1, len(OPTION_SETS)):
        check_oracle(metric, number, all_under(number))


def check_oracle(metric, number, result):
    """All that is to be tried of a metric equals the oracle, under one set of options."""
    for name, params in tried_under(metric, number).items():
        for k in KS:
            with case(f"{name}@{k}, option set {number}:", OPTION_SETS[number]):
                expected = oracle_values(oracle_lists(number, k), metric.name, params)
                check_one_cut_off(metric, k, result, name, expected)


def check_one_cut_off(metric, k, result, name, expected):
    """The result holds what the oracle expects at k."""
    if metric.per == "list":
        values = result.per_user[[f"{name}@{k}"]]
        assert_close(values, expected)
        assert_within_bounds(metric, values)
        return
    found = read_summary(result.summary, name, k)
    if isinstance(expected, dict):
        assert set(found) == {str(group) for group in expected}
        assert_close([found[str(group)] for group in expected], list(expected.values()))
        assert_within_bounds(metric, list(found.values()))
    else:
        row = result.summary[(result.summary["metric"] == name) & (result.summary["k"] == k)]
        assert_close(found, expected)
        assert_within_bounds(metric, pd.DataFrame({name: [found]}))
        assert row[["std", "se", "ci_low", "ci_high"]].isna().all(axis=None)


def call(metric, tables, true, pred, k=3, params=None, **options):
    """The metric called by itself, side tables in their places."""
    side = tables_for(metric, params or {}, tables)
    arguments = [{"true": true, "pred": pred, **side}[name] for name in metric.arguments]
    keywords = {name: table for name, table in side.items() if name not in metric.arguments}
    if metric.name in RATING:
        options["relevance_col"] = "relevance"
    return quietly(metric, *arguments, k, **keywords, **(params or {}), **options)


def same(one, two):
    if isinstance(one, dict):
        assert {str(g): v for g, v in one.items()} == close({str(g): v for g, v in two.items()})
    else:
        assert one == close(two)


def one_model(seed):
    true, pred = distinct(seed)
    return true, pred[pred["model"] == "a"].drop(columns="model")


def evaluate_all(tables, true, pred, metrics=NAMES, k=3, **options):
    """The result of all metrics in one call."""
    return quietly(
        rd.evaluate, true, pred, metrics, k=k, relevance_col="relevance", **tables, **options
    )


def assert_same_result(found, expected):
    """The same lists and rows of the summary, both in any order, with the same values."""
    one, two = (
        result.summary.set_index("metric")[["value", "std", "n"]].T for result in (found, expected)
    )
    assert set(one) == set(two)
    assert_close(one[list(two)], two)
    one, two = (result.per_user.sort_values("user_id").iloc[:, 3:] for result in (found, expected))
    assert_close(one, two)


def shuffled(table):
    return table.sample(frac=1, random_state=5) if isinstance(table, pd.DataFrame) else table[::-1]


def test_order_of_rows_says_nothing():
    true, pred = one_model(3)
    tables = side_tables(3)
    other = {name: shuffled(table) for name, table in tables.items()}
    found = evaluate_all(
        other, true.sample(frac=1, random_state=1), pred.sample(frac=1, random_state=2)
    )
    assert_same_result(found, evaluate_all(tables, true, pred))


def relabelled(frame, label):
    """The frame, or a series of items, with its ids as strings or as another type."""

    def named(series, letter):
        if label == "Int64":
            return series.astype("Int64")
        # Zero-padded, so that the order of the strings is that of the numbers.
        words = (series + 500).map(lambda n: f"{letter}{n:04d}")
        return words.astype(object if label == "object" else label)

    if isinstance(frame, list):
        return named(pd.Series(frame), "i")
    frame = frame.reset_index() if frame.index.name == "item_id" else frame
    columns = {
        name: named(frame[name], name[0])
        for name in ("user_id", "item_id")
        if name in frame.columns
    }
    return frame.assign(**columns)


@pytest.mark.few(1)
@pytest.mark.parametrize("label", ["str", "category", "object", "Int64"])
def test_labels_do_not_matter(label):
    true, pred = one_model(4)
    tables = side_tables(4)
    expected = evaluate_all(tables, true, pred)
    other = {name: relabelled(table, label) for name, table in tables.items()}
    assert_same_result(
        evaluate_all(other, relabelled(true, label), relabelled(pred, label)), expected
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("metric", WITHOUT_TRUE, ids=lambda m: m.name)
def test_a_call_without_true_has_the_same_invariances(metric):
    true, pred = one_model(4)
    tables = side_tables(4)
    reference = call(metric, tables, true, pred)
    other = {name: shuffled(relabelled(table, "category")) for name, table in tables.items()}
    same(reference, call(metric, other, None, shuffled(relabelled(pred, "category"))))


def test_inputs_stay_as_they_are():
    true, pred = one_model(5)
    tables = {
        name: t.copy() if isinstance(t, pd.DataFrame) else list(t)
        for name, t in side_tables(5).items()
    }
    kept = {
        name: t.copy() if isinstance(t, pd.DataFrame) else list(t) for name, t in tables.items()
    }
    true_kept, pred_kept = true.copy(), pred.copy()
    evaluate_all(tables, true, pred)
    for metric in WITHOUT_TRUE:
        call(metric, tables, None, pred)
    pd.testing.assert_frame_equal(true, true_kept)
    pd.testing.assert_frame_equal(pred, pred_kept)
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            pd.testing.assert_frame_equal(table, kept[name])
        else:
            assert table == kept[name]


def test_columns_are_arrays_of_their_own():
    twice = {f"{i}:{metric.name}": metric.name for i in range(2) for metric in PER_LIST}
    assert_own_memory(evaluate_all(side_tables(8), *one_model(8), twice, k=99).per_user)


def test_parts_make_up_the_whole():
    """Lists evaluated in three calls, with the same side tables, have the values of one call."""
    true, pred = one_model(10)
    side = side_tables(10)
    everyone = sorted({*true["user_id"], *pred["user_id"]})

    def values_of(users):
        some = (frame[frame["user_id"].isin(users)] for frame in (true, pred))
        found = evaluate_all(side, *some, [metric.name for metric in PER_LIST], users=users)
        return found.per_user.set_index("user_id").iloc[:, 2:]

    assert_close(
        pd.concat([values_of(everyone[part::3]) for part in range(3)]).loc[everyone],
        values_of(everyone),
    )


def test_k_beyond_every_list_takes_the_whole_lists():
    """No list has 60 items: of what neither divides by k nor goes on beyond the list, 60 and 90
    give the same."""
    other = {"categories": "categories(divisor=shown)", "rbo": "rbo(against=ideal)"}
    other["intent_aware"] = "intent_aware(metric=recall)"
    metrics = [other.get(name, name) for name in NAMES]
    one, two = (evaluate_all(side_tables(11), *one_model(11), metrics, k=k) for k in (60, 90))
    assert_same_result(one, two)


def test_one_call_for_all_recommenders_equals_a_call_each():
    true, pred = distinct(6)
    side = side_tables(6)
    together = evaluate_all(side, true, pred, by="model").summary
    for model, part in pred.groupby("model"):
        alone = evaluate_all(side, true, part.drop(columns="model")).summary
        mine = together[together["model"] == model].drop(columns="model").reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, alone, rtol=1e-12)


@pytest.mark.few(6)
@every_metric
def test_a_call_equals_evaluate(metric):
    true, pred = one_model(7)
    tables = side_tables(7)
    side = tables_for(metric, {}, tables)
    users = {} if "true" in metric.arguments else {"users": "pred"}
    options = {"relevance_col": "relevance"} if "true" in metric.arguments else {}
    summary = quietly(
        rd.evaluate, true, pred, metric, k=3, **side, **users, relevance_col="relevance"
    ).summary
    value = call(metric, tables, true, pred, **options)
    if isinstance(value, dict):
        assert_close(summary["value"], list(value.values()))
        assert summary["metric"].tolist() == [f"{metric.name}[{group}]" for group in value]
    else:
        assert_close(summary["value"], [value])
    if metric.per == "list":
        frame = quietly(
            metric.per_user,
            *[{"true": true, "pred": pred, **side}[name] for name in metric.arguments],
            3,
            **{name: table for name, table in side.items() if name not in metric.arguments},
            **options,
        )
        assert list(frame.columns) == ["user_id", metric.name + ("@3" if metric.cut else "")]
        assert_close([frame.iloc[:, 1].mean()], [value])
    else:
        assert not hasattr(metric, "per_user")
        with pytest.raises(AttributeError, match="one number for all lists"):
            metric.per_user(true, pred)


@every_metric
def test_a_missing_side_table_is_named(metric):
    true, pred = one_model(8)
    side = tables_for(metric, {}, side_tables(8))
    for name in side:
        if name in metric.optional or (name == "items" and "items" not in metric.needs):
            continue
        less = {other: table for other, table in side.items() if other != name}
        with pytest.raises(rd.OptionError, match=rf"^{metric.name}@3 needs {name}="):
            rd.evaluate(true, pred, metric, k=3, **less)


def test_empty_lists_and_unknown_items_pass():
    """A population without any recommendation, side tables that know nothing: no crash, no warning
    but recdf's own."""
    side = side_tables(9)
    true = pd.DataFrame({"user_id": [901, 902], "item_id": [901, 902], "relevance": [1.0, 2.0]})
    pred = pd.DataFrame({"user_id": [901, 903], "item_id": [955, 901], "score": [1.0, 2.0]})
    for some in (pred, pred.iloc[:0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", rd.RecdfWarning)
            result = rd.evaluate(true, some, NAMES, k=3, **side, relevance_col="relevance")
        negative = result.summary.loc[result.summary["value"] < 0, "metric"]
        assert negative.empty, list(negative)
        empty = {name: t.iloc[:0] if isinstance(t, pd.DataFrame) else t for name, t in side.items()}
        evaluate_all(empty, true, some)
