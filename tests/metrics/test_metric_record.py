"""A metric is a record: its signature, help, pickle and table; metrics of users work as built-in
ones do."""

import copy
import dataclasses
import inspect
import pickle
import pydoc
import re
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.inputs.options import NAMES
from recdf.metrics.record import MetricRecord

TRUE = {"u": ["a", "b"], "v": ["c"]}
PRED = {"u": ["a", "x", "b"], "v": ["x", "c"]}
BUILT_IN = list(rd.METRICS.values())


# ----------------------------------------------------------------------------------------------
# built-in


@pytest.mark.parametrize("metric", BUILT_IN, ids=lambda m: m.name)
def test_signature_and_help(metric):
    signature = inspect.signature(metric)
    names = list(signature.parameters)
    n = len(metric.arguments)
    assert names[: n + 1] == [*metric.arguments, "k"]
    assert signature.parameters["k"].default == metric.k
    assert names[n + 1 :] == [*metric.defaults, *metric.sides, *NAMES, "options"]
    assert "items" in names
    for name, parameter in list(signature.parameters.items())[n + 1 :]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY or name == "alpha"
        if name in metric.defaults:
            assert parameter.default == metric.defaults[name]
    signature.bind(*[PRED] * n, 5, ties="row", **metric.defaults)
    shown = pydoc.plain(pydoc.render_doc(metric))
    assert metric.doc.split(";")[0] in " ".join(shown.split())
    assert "help(rd.evaluate)" in shown
    assert metric.name in repr(metric)


@pytest.mark.parametrize("metric", BUILT_IN, ids=lambda m: m.name)
def test_pickle_and_copy(metric):
    assert pickle.loads(pickle.dumps(metric)) is metric
    assert copy.copy(metric) is copy.deepcopy(metric) is metric


def test_a_metric_takes_a_pool_of_processes_to_itself():
    assert pickle.loads(pickle.dumps([rd.ndcg, rd.recall])) == [rd.ndcg, rd.recall]


def test_signature_of_evaluate_and_summarize():
    parameters = inspect.signature(rd.evaluate).parameters
    assert list(parameters)[:4] == ["true", "pred", "metrics", "k"]
    assert set(NAMES) <= set(parameters)
    assert "{options}" not in rd.evaluate.__doc__
    for name in NAMES:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", rd.evaluate.__doc__, flags=re.M), name


@pytest.mark.parametrize("metric", BUILT_IN, ids=lambda m: m.name)
def test_help_refers_to_the_options_rather_than_repeating_them(metric):
    assert "`help(rd.evaluate)` explains each" in metric.__doc__
    assert "null_keys" not in metric.__doc__


def test_help_of_the_decorator_has_every_keyword():
    keywords = list(inspect.signature(rd.metric).parameters)
    assert keywords[1:] == [field.name for field in dataclasses.fields(MetricRecord)][1:]
    for name in keywords:
        assert f"\n{name} : " in inspect.getdoc(rd.metric), name


def test_metrics_table():
    table = rd.metrics_table()
    assert table["metric"].tolist() == [m.name for m in rd.METRICS.values()]
    rows = table.set_index("metric")
    assert rows.loc["mapr", "parameters"] == "normalizer=relevant, transform=none, tied=ranked"
    assert rows.loc["mapr", ["low", "high", "family"]].tolist() == [0.0, 1.0, "ranking"]
    assert rows.loc["first_rank", "better"] == "smaller"
    assert np.isnan(rows.loc["first_rank", "high"])
    assert rows.loc["money_recall", "needs"] == "value"
    built_in = rows.loc[[m.name for m in BUILT_IN]]
    for column in ("meaning", "formula", "references", "family"):
        assert built_in[column].str.len().min() > 0


def test_names_and_aliases_are_unique():
    names = [name for metric in BUILT_IN for name in (metric.name, *metric.aliases)]
    assert len(set(names)) == len(names)


def test_the_attributes_of_a_record():
    assert rd.ndcg.name == rd.ndcg.__name__ == "ndcg"
    assert rd.ndcg.bounds == (0.0, 1.0)
    assert rd.ndcg.better == "larger"
    assert rd.ndcg.defaults["gain"] == "linear"
    assert rd.mapr.aliases == ("map", "ap")
    assert rd.ndcg.family == "ranking"
    assert "Järvelin" in rd.ndcg.references
    assert "IDCG" in rd.ndcg.formula


def test_a_discount_may_be_a_function():
    found = rd.ndcg(TRUE, PRED, 3, discount=lambda rank: 1 / rank)
    assert found == pytest.approx(((1 + 1 / 3) / (1 + 1 / 2) + 1 / 2) / 2, abs=1e-15)
    found = rd.dcg.per_user(TRUE, PRED, 3, discount=zipf)
    assert list(found.columns) == ["user_id", "dcg(discount=zipf)@3"]


def zipf(rank):
    return 1 / rank


def test_strings_and_keywords_are_two_ways_to_say_the_same():
    cases = [
        ("ndcg(gain=exp2,discount=none)@2", rd.ndcg, {"gain": "exp2", "discount": "none"}),
        ("ndcg(log_base=3)@2", rd.ndcg, {"log_base": 3}),
        ("f1(beta=0.5)@2", rd.f1, {"beta": 0.5}),
        ("err(max_gain=none)@2", rd.err, {"max_gain": None}),
        ("mrr(of='all')@2", rd.mrr, {"of": "all"}),
    ]
    for text, metric, params in cases:
        assert rd.evaluate(TRUE, PRED, text).summary["value"].item() == metric(
            TRUE, PRED, 2, **params
        )


# -- metrics of users


@pytest.fixture
def my_last_rr():
    @rd.metric(aliases=("lrr",))
    def my_last_rr(lists, *, of: Literal["last", "none"] = "last", shift: int = 0):
        """Reciprocal rank of the last hit; larger is better, in [0, 1].

        Formula
        -------
        1 / max{i ≤ k : h_i = 1}.

        Parameters
        ----------
        of : {"last", "none"}
            Which.
        shift : int
            Ranks to add.

        References
        ----------
        This test.
        """
        value = np.zeros(len(lists))
        if of == "last":
            value[lists.hits.list] = 1 / (lists.hits.rank + shift)
        return value

    return my_last_rr


def test_a_metric_of_a_user_works_like_a_built_in_one(my_last_rr):
    assert rd.METRICS["my_last_rr"] is my_last_rr
    assert my_last_rr(TRUE, PRED, 3) == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert my_last_rr.per_user(TRUE, PRED, 3)["my_last_rr@3"].tolist() == pytest.approx(
        [1 / 3, 1 / 2]
    )
    result = rd.evaluate(
        TRUE, PRED, ["my_last_rr", "lrr(of=none)", my_last_rr.name + "(shift=1)@2"], 3
    )
    assert list(result.per_user.columns[3:]) == [
        "my_last_rr@3",
        "lrr(of=none)@3",
        "my_last_rr(shift=1)@2",
    ]
    assert result.summary["value"].tolist() == pytest.approx([5 / 12, 0, (1 / 2 + 1 / 3) / 2])
    assert rd.evaluate(TRUE, PRED, {"mine": my_last_rr}, 3).per_user[
        "mine"
    ].tolist() == pytest.approx([1 / 3, 1 / 2])
    assert rd.metrics_table().set_index("metric").loc["my_last_rr", "formula"].startswith("1 / max")
    assert my_last_rr.doc.startswith("Reciprocal rank of the last hit")
    assert "help(rd.evaluate)" in my_last_rr.__doc__
    with pytest.raises(rd.OptionError, match="valid are 'last', 'none'"):
        rd.evaluate(TRUE, PRED, "my_last_rr(of=first)")


@rd.metric
def shared_half(lists):
    """Half, for all; larger is better, in [0, 1]."""
    return np.full(len(lists), 0.5)


del rd.METRICS["shared_half"]  # the tests of the whole registry are collected after this module


def test_a_metric_of_a_module_can_be_pickled():
    assert pickle.loads(pickle.dumps(shared_half)) is shared_half


@pytest.fixture
def registry(monkeypatch):
    """What a test registers, it also takes away."""
    before = dict(rd.METRICS)
    yield
    rd.METRICS.clear()
    rd.METRICS.update(before)


def test_a_metric_may_be_defined_again_as_in_a_notebook(registry):
    def again(lists, *, level=0.25):
        return np.full(len(lists), level)

    rd.metric(again)
    again.__kwdefaults__ = {"level": 0.75}
    rd.metric(again)
    assert rd.evaluate(TRUE, PRED, "again@1").summary["value"].item() == 0.75


@pytest.mark.parametrize("name", ["ndcg", "map"])
def test_the_name_of_a_built_in_metric_is_taken(name, registry):
    def kernel(lists):
        return np.zeros(len(lists))

    kernel.__name__ = name
    with pytest.raises(rd.OptionError, match="built-in"):
        rd.metric(kernel)
    assert rd.METRICS["ndcg"] is rd.ndcg


def test_parameters_must_be_named_and_have_defaults(registry):
    with pytest.raises(rd.OptionError, match="'weight'"):
        rd.metric(lambda lists, weight: weight)
    with pytest.raises(rd.OptionError, match="'ties'"):

        @rd.metric
        def taken(lists, *, ties="x"):
            return lists


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lists: 1.0,
        lambda lists: np.zeros(len(lists) + 1),
        lambda lists: np.zeros((len(lists), 1)),
    ],
)
def test_a_kernel_returns_one_value_per_list(wrong, registry):
    wrong.__name__ = "wrong"
    with pytest.raises(TypeError, match=r"'wrong' returned shape .* one value per list"):
        rd.metric(wrong)(TRUE, PRED)


def test_a_kernel_returns_as_many_arrays_as_it_has_outputs(registry):
    @rd.metric(outputs=("one", "two"))
    def both(lists):
        return (lists.n_hits,)

    with pytest.raises(TypeError, match="returned 1 arrays, expected 2"):
        both(TRUE, PRED)

    @rd.metric(outputs=("one", "two"), bounds=(0, None), better=None)
    def pair(lists):
        return lists.n_hits, lists.n_shown

    assert pair(TRUE, PRED, 2) == {"one@2": 1.0, "two@2": 2.0}
    assert list(pair.per_user(TRUE, PRED, 2).columns) == ["user_id", "one@2", "two@2"]
    assert rd.evaluate(TRUE, PRED, "pair@2").summary["metric"].tolist() == ["one", "two"]


def test_values_within_a_rounding_of_the_bounds_are_put_on_them(registry):
    @rd.metric
    def rounded(lists):
        return np.array([1 + 2e-16, -1e-17])

    assert rounded.per_user(TRUE, PRED)["rounded@10"].tolist() == [1.0, 0.0]

    @rd.metric
    def wrong(lists):
        return np.array([1.5, -0.5])

    with pytest.raises(
        rd.DataError, match=r"wrong is 1\.5 for the list .* in 2 of 2 values"
    ):  # no mistake is hidden
        wrong.per_user(TRUE, PRED)


def test_lists_have_what_their_page_promises():
    seen = {}

    def look(lists):
        seen["lists"] = lists
        return np.zeros(len(lists))

    true = pd.DataFrame(
        {"user_id": [1, 1, 2, 3], "item_id": [10, 11, 10, 10], "gain": [2.0, 0.0, 1.0, 1.0]}
    )
    pred = pd.DataFrame({"user_id": [2, 1, 1, 1], "item_id": [12, 12, 11, 10]})
    try:
        rd.metric(look)(true, pred, 2, relevance_col="gain")
    finally:
        rd.METRICS.pop("look", None)
    lists = seen["lists"]
    assert (len(lists), lists.k) == (3, 2)
    assert lists.n_true.tolist() == [1, 1, 1]
    assert lists.n_pred.tolist() == [3, 1, 0]
    assert lists.n_shown.tolist() == [2, 1, 0]
    assert lists.n_hits.tolist() == [0, 0, 0]
    assert lists.n_judged.tolist() == [2, 1, 1]
    assert (lists.judged.list.tolist(), lists.judged.rank.tolist(), lists.judged.gain.tolist()) == (
        [0],
        [2],
        [0.0],
    )
    whole = lists.whole
    assert (whole.hits.list.tolist(), whole.hits.rank.tolist(), whole.hits.gain.tolist()) == (
        [0],
        [3],
        [2.0],
    )
    assert whole.hits.number.tolist() == [1]


def test_zero_by_zero_in_a_metric_of_ones_own_is_undefined_without_a_warning():
    @rd.metric
    def my_share_of_shown(lists: rd.Lists) -> np.ndarray:
        """Hits over items shown; larger is better, in [0, 1]."""
        return lists.n_hits / lists.n_shown

    found = rd.evaluate({"a": [1], "b": [2]}, {"a": [1, 3]}, [my_share_of_shown], k=2)
    assert found.per_user["my_share_of_shown@2"].tolist() == pytest.approx(
        [0.5, np.nan], nan_ok=True
    )
    assert found.summary["n_undefined"].tolist() == [1]


def test_a_group_of_items_has_a_label():
    @rd.metric(per="item", arguments=("pred",), bounds=(None, None))
    def grouped(counts):
        """Two numbers, one of which has no name."""
        return {"known": 1.0, None: 2.0}

    try:
        with pytest.raises(TypeError, match="'grouped' returned the group None; expected a label"):
            rd.evaluate({1: [2]}, {1: [2]}, "grouped")
    finally:
        rd.METRICS.pop("grouped", None)
