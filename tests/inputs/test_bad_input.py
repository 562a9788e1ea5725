"""What bad input gets: an error that names the argument, the column, what was found and what was
expected."""

import inspect
import uuid
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from inputs.small_frames import PRED, TRUE, pred, strings, true

import recdf as rd


def run(metrics="ndcg@10", true=TRUE, pred=PRED, **options):
    return rd.evaluate(true, pred, metrics, **options)


TABLE = [
    # columns
    (
        {"true": TRUE.drop(columns="user_id")},
        rd.ColumnError,
        KeyError,
        ["true", "'user_id'", "'item_id', 'relevance'"],
    ),
    (
        {"pred": PRED.drop(columns="item_id")},
        rd.ColumnError,
        KeyError,
        ["pred", "'item_id'", "'user_id', 'score'"],
    ),
    (
        {"pred": PRED.rename(columns={"user_id": "userid"})},
        rd.ColumnError,
        KeyError,
        ["pass user_col='userid'"],
    ),
    ({"score_col": "scor"}, rd.ColumnError, KeyError, ["pred", "'scor'", "did you mean 'score'?"]),
    ({"rank_col": "rank"}, rd.ColumnError, KeyError, ["pred", "'rank'"]),
    ({"relevance_col": "gain"}, rd.ColumnError, KeyError, ["true", "'gain'"]),
    ({"by": "model"}, rd.ColumnError, KeyError, ["pred", "'model'"]),
    (
        {"metrics": "revenue@3", "value_col": "prize"},
        rd.ColumnError,
        KeyError,
        ["'prize'", "did you mean 'price'?"],
    ),
    ({"user_col": ["user_id", "day"]}, rd.ColumnError, KeyError, ["'day'"]),
    ({"user_col": "item_id"}, rd.ColumnError, KeyError, ["distinct"]),
    ({"by": "user_id"}, rd.ColumnError, KeyError, ["distinct"]),
    ({"user_col": []}, rd.ColumnError, KeyError, ["user_col"]),
    ({"items": pd.DataFrame({"id": [1]})}, rd.ColumnError, KeyError, ["items", "'item_id'"]),
    ({"users": pd.DataFrame({"id": [1]})}, rd.ColumnError, KeyError, ["users", "'user_id'"]),
    (
        {"true": pd.concat([TRUE, TRUE[["user_id"]]], axis=1)},
        rd.ColumnError,
        KeyError,
        ["true", "2 columns", "'user_id'"],
    ),
    (
        {"pred": pd.concat([PRED, PRED[["score"]]], axis=1)},
        rd.ColumnError,
        KeyError,
        ["pred", "2 columns", "'score'"],
    ),
    (
        {"true": TRUE.set_index("user_id")},
        rd.ColumnError,
        KeyError,
        ["true", "'user_id'"],
    ),  # the index is no data
    # kinds of ids
    (
        true(item_id=strings("a", "b", "c")),
        rd.IdTypeError,
        TypeError,
        ["true['item_id']", "pred['item_id']", "string", "integer", ".astype(str)"],
    ),
    (
        pred(user_id=strings("1", "1", "2")),
        rd.IdTypeError,
        TypeError,
        ["true['user_id']", "pred['user_id']", "'1'"],
    ),
    (
        {
            "true": TRUE.assign(item_id=pd.Series([1, 2, 3], dtype=object)),
            "pred": PRED.assign(item_id=pd.Series(["1", "2", "3"], dtype=object)),
        },
        rd.IdTypeError,
        TypeError,
        ["true['item_id']", "integer", "pred['item_id']", "string"],
    ),
    (
        true(item_id=pd.Categorical(["a", "b", "c"])),
        rd.IdTypeError,
        TypeError,
        ["string", "integer"],
    ),
    (
        true(user_id=pd.Series([1, "1", 2], dtype=object)),
        rd.IdTypeError,
        TypeError,
        ["true['user_id']", "int", "str"],
    ),
    (
        true(user_id=pd.Series([2**70, 1.5, 2], dtype=object)),
        rd.IdTypeError,
        TypeError,
        ["true['user_id']", "2 ids are not whole numbers below 2**53"],
    ),
    (
        true(user_id=pd.Series(["a", b"a", "b"], dtype=object)),
        rd.IdTypeError,
        TypeError,
        ["bytes", "str"],
    ),
    (
        true(user_id=pd.Series([["a"], ["b"], ["c"]])),
        rd.IdTypeError,
        TypeError,
        ["true['user_id']", "list objects", "expected one id in a row"],
    ),
    (true(user_id=[True, True, False]), rd.IdTypeError, TypeError, ["true['user_id']", "bool"]),
    (
        true(user_id=pd.Series([True, True, False], dtype="boolean")),
        rd.IdTypeError,
        TypeError,
        ["bool"],
    ),
    (
        true(user_id=pd.Series([True, True, False], dtype=object)),
        rd.IdTypeError,
        TypeError,
        ["bool"],
    ),
    (true(user_id=pd.Categorical([True, True, False])), rd.IdTypeError, TypeError, ["bool"]),
    (
        true(user_id=pd.Series([True, True, False], dtype=pd.ArrowDtype(pa.bool_()))),
        rd.IdTypeError,
        TypeError,
        ["bool"],
    ),
    (
        true(user_id=pd.to_datetime(["2026-01-01"] * 3)),
        rd.IdTypeError,
        TypeError,
        ["datetime", "integer"],
    ),
    (
        true(user_id=[uuid.UUID(int=i) for i in (1, 1, 2)]),
        rd.IdTypeError,
        TypeError,
        ["UUID", "integer"],
    ),
    (
        true(user_id=[1.5, 1.0, 2.0]),
        rd.IdTypeError,
        TypeError,
        ["true['user_id']", "float64", "1.5", "2**53"],
    ),
    (true(user_id=[2.0**53, 1.0, 2.0]), rd.IdTypeError, TypeError, ["float64", "2**53"]),
    (true(user_id=[np.inf, 1.0, 2.0]), rd.IdTypeError, TypeError, ["float64", "inf"]),
    (
        true(user_id=pd.Series([2**53 + 1, 1.0, 2.0], dtype=object)),
        rd.IdTypeError,
        TypeError,
        ["2**53"],
    ),
    (true(user_id=[1j, 1j, 2j]), rd.IdTypeError, TypeError, ["complex"]),
    ({"users": ["1"]}, rd.IdTypeError, TypeError, ["users['user_id']", "string", "integer"]),
    ({"items": ["10", "11"]}, rd.IdTypeError, TypeError, ["items['item_id']", "string", "integer"]),
    # nulls
    (
        true(user_id=[1.0, np.nan, 2.0]),
        rd.NullKeyError,
        ValueError,
        ["true", "1 in true['user_id']", 'null_keys="drop"'],
    ),
    (
        pred(item_id=pd.Series([1, None, None], dtype="Int64")),
        rd.NullKeyError,
        ValueError,
        ["pred", "2 in pred['item_id']"],
    ),
    (
        {**pred(model=["a", None, "b"]), "by": "model"},
        rd.NullKeyError,
        ValueError,
        ["pred['model']"],
    ),
    ({"users": [1.0, None]}, rd.NullKeyError, ValueError, ["users['user_id']"]),
    ({"items": [10.0, None]}, rd.NullKeyError, ValueError, ["items['item_id']"]),
    (
        pred(score=[0.1, np.nan, np.nan]),
        rd.DataError,
        ValueError,
        ["pred['score']", "2 null scores of 3", "nan_score"],
    ),
    (
        {**pred(place=[1, np.nan, 2]), "rank_col": "place"},
        rd.DataError,
        ValueError,
        ["pred['place']", "1 null ranks"],
    ),
    # numbers
    (
        {**true(relevance=[1, np.nan, np.nan]), "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["true['relevance']", "2 null"],
    ),
    (
        {**true(relevance=[1, -2, -3]), "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["true['relevance']", "2 negative", "-2.0"],
    ),
    (
        {**true(relevance=[1, np.inf, 0]), "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["1 infinite"],
    ),
    (
        {**true(relevance=strings("1", "2", "3")), "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["true['relevance']", "string", "numbers"],
    ),
    (
        pred(score=strings("1", "2", "3")),
        rd.DataError,
        ValueError,
        ["pred['score']", "string", "'1'"],
    ),
    (pred(score=pd.Series([1, "2", 3], dtype=object)), rd.DataError, ValueError, ["pred['score']"]),
    (pred(score=[1j, 2j, 3j]), rd.DataError, ValueError, ["pred['score']", "complex"]),
    (
        pred(score=pd.to_datetime(["2026-01-01"] * 3)),
        rd.DataError,
        ValueError,
        ["pred['score']", "datetime"],
    ),
    (
        {**true(price=[1, np.nan, 2]), "metrics": "money_recall@3", "value_col": "price"},
        rd.DataError,
        ValueError,
        ["true['price']", "1 null"],
    ),
    (
        {**pred(price=[1, np.inf, 2]), "metrics": "money_recall@3", "value_col": "price"},
        rd.DataError,
        ValueError,
        ["pred['price']", "1 null or infinite"],
    ),
    (
        {**pred(price=[1, -1, 2]), "metrics": "money_precision@3", "value_col": "price"},
        rd.DataError,
        ValueError,
        ["pred['price']", "1 negative", 'negative="clip"'],
    ),
    (
        {**true(price=[1, -1, 2]), "metrics": "revenue@3", "value_col": "price"},
        rd.DataError,
        ValueError,
        ["true['price']", "1 negative"],
    ),
    (
        {"metrics": "rbp@3", "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["rbp", "[0, 1]", "2.0"],
    ),
    (
        {"metrics": "err(max_gain=1)@3", "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["err", "max_gain=1.0", "2.0"],
    ),
    (
        {"metrics": "ndcg(ideal=k)@3", "relevance_col": "relevance"},
        rd.DataError,
        ValueError,
        ["ndcg", "[0, 1]", "2.0"],
    ),
    (
        {
            **true(relevance=[5000.0, 1, 1]),
            "relevance_col": "relevance",
            "metrics": "ndcg(gain=exp2)@3",
        },
        rd.DataError,
        ValueError,
        ["exp2", "5000"],
    ),
    (
        {"metrics": "fallout@3", "items": [10, 11]},
        rd.DataError,
        ValueError,
        ["items=", "lacks 2", "pred"],
    ),
    (
        {
            "metrics": "revenue@3",
            "value_col": "cost",
            "items": pd.DataFrame({"item_id": [10, 10, 11], "cost": [1, 1, 1]}),
        },
        rd.DataError,
        ValueError,
        ["items", "1 repeated", "one row per item"],
    ),
    (
        {
            "metrics": "revenue@3",
            "value_col": "cost",
            "items": pd.DataFrame({"item_id": [10, 11], "cost": [1, 1]}),
        },
        rd.DataError,
        ValueError,
        ["items", "'cost'", "2 items of pred"],
    ),
    # repeated rows, ties
    (
        {"true": pd.concat([TRUE, TRUE[:2]]), "duplicates": "raise"},
        rd.DuplicateError,
        ValueError,
        ["true", "2 repeated", "(1, 10)"],
    ),
    (
        {"pred": pd.concat([PRED, PRED[:1]]), "duplicates": "raise"},
        rd.DuplicateError,
        ValueError,
        ["pred", "1 repeated", "(1, 10)"],
    ),
    ({**pred(score=[1, 1, 1]), "ties": "raise"}, rd.TieError, ValueError, ["pred", 'ties="raise"']),
    # k
    *(
        ({"metrics": "ndcg", "k": k}, rd.OptionError, ValueError, ["k=", "positive integer"])
        for k in (0, -1, 2.0, True, "5", None, [5, 0], [True], 2**63)
    ),
    ({"metrics": "ndcg", "k": []}, rd.OptionError, ValueError, ["k is an empty list"]),
    *(
        ({"metrics": text}, rd.OptionError, ValueError, [text])
        for text in ("ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@1.5", "ndcg@")
    ),
    # metrics, parameters, options
    (
        {"metrics": "ncdg@10"},
        rd.OptionError,
        ValueError,
        ["'ncdg'", "did you mean 'ndcg'?", "precision"],
    ),
    (
        {"metrics": "ndcg(gains=exp2)"},
        rd.OptionError,
        ValueError,
        ["'gains'", "did you mean 'gain'?", "discount"],
    ),
    (
        {"metrics": "ndcg(gain=exp)"},
        rd.OptionError,
        ValueError,
        ["gain='exp'", "'linear', 'exp2', 'binary'"],
    ),
    ({"metrics": "recall(gain=exp2)"}, rd.OptionError, ValueError, ["recall", "'gain'", "divisor"]),
    ({"metrics": "hitrate(a=1)"}, rd.OptionError, ValueError, ["hitrate", "valid are none"]),
    (
        {"logs": TRUE},
        rd.OptionError,
        ValueError,
        ["evaluate", "'logs'", "did you mean 'log'? Valid are k, items, log"],
    ),
    ({"top_k": 5}, rd.OptionError, ValueError, ["evaluate", "'top_k'", "valid are k, items"]),
    ({"metrics": "f1(beta=x)"}, rd.OptionError, ValueError, ["beta='x'", "number"]),
    ({"metrics": "f1(beta=nan)"}, rd.OptionError, ValueError, ["beta=nan"]),
    ({"metrics": "f1(beta=-1)"}, rd.OptionError, ValueError, ["beta=-1"]),
    ({"metrics": "rbp(p=1)"}, rd.OptionError, ValueError, ["p=1", "between 0 and 1"]),
    ({"metrics": "err(max_gain=x)"}, rd.OptionError, ValueError, ["max_gain='x'", "number"]),
    ({"metrics": "ndcg(log_base=1)"}, rd.OptionError, ValueError, ["log_base=1", "above 1"]),
    ({"metrics": "ndcg(log_base=x)"}, rd.OptionError, ValueError, ["log_base='x'", "number"]),
    ({"metrics": "ndcg(gain=exp2,gain=exp2)"}, rd.OptionError, ValueError, ["'gain' twice"]),
    ({"metrics": "ndcg(exp2)"}, rd.OptionError, ValueError, ["'exp2'", "parameter=value"]),
    ({"metrics": "ndcg(gain=exp2@5"}, rd.OptionError, ValueError, ["metric string"]),
    ({"metrics": ""}, rd.OptionError, ValueError, ["metric string"]),
    ({"metrics": []}, rd.OptionError, ValueError, ["metrics is empty"]),
    ({"metrics": ["ndcg@5", "ndcg@5"]}, rd.OptionError, ValueError, ["'ndcg@5'", "more than once"]),
    ({"metrics": [5]}, rd.OptionError, ValueError, ["metric 5 is an int", "'ndcg@10'"]),
    ({"metrics": 5}, rd.OptionError, ValueError, ["metric 5 is an int", "'ndcg@10'"]),
    ({"metrics": None}, rd.OptionError, ValueError, ["metric None is None", "'ndcg@10'"]),
    ({"metrics": np.mean}, rd.OptionError, ValueError, ["becomes a metric by @rd.metric"]),
    (
        {"metrics": "ndcg@5, recall@5"},
        rd.OptionError,
        ValueError,
        ["metrics as a list", "several cut-offs in k="],
    ),
    (
        {"metrics": "ndcg@5,10"},
        rd.OptionError,
        ValueError,
        ["several metrics as a list", "several cut-offs in k="],
    ),
    ({"metrics": "nDCG_at_5"}, rd.OptionError, ValueError, ["'nDCG_at_5'; did you mean 'ndcg@5'?"]),
    (
        {"metrics": "recall10"},
        rd.OptionError,
        ValueError,
        ["'recall10'; did you mean 'recall@10'?"],
    ),
    (
        {"metrics": "recall_10"},
        rd.OptionError,
        ValueError,
        ["'recall_10'; did you mean 'recall@10'?"],
    ),
    (
        {"metrics": "ndcg(k=5)"},
        rd.OptionError,
        ValueError,
        ["no parameter 'k'", "is written 'ndcg@10', or"],
    ),
    ({"ties": "item"}, rd.OptionError, ValueError, ["ties='item'", "'item_desc'", "did you mean"]),
    ({"duplicates": None}, rd.OptionError, ValueError, ["duplicates=None", "'drop'"]),
    ({"nan_score": "first"}, rd.OptionError, ValueError, ["nan_score='first'", "'last'"]),
    ({"null_keys": "keep"}, rd.OptionError, ValueError, ["null_keys='keep'"]),
    ({"undefined": 0}, rd.OptionError, ValueError, ["undefined=0", "'zero'"]),
    ({"users": "everyone"}, rd.OptionError, ValueError, ["users='everyone'", "'both'"]),
    ({"users": None}, rd.OptionError, ValueError, ["users=None", "'both'"]),
    (
        {"users": 7},
        rd.OptionError,
        ValueError,
        ["users=7", "'both'", "or a list, Series or frame of ids"],
    ),
    ({"judged_only": "yes"}, rd.OptionError, ValueError, ["judged_only='yes'"]),
    (
        {"min_relevance": "high", "relevance_col": "relevance"},
        rd.OptionError,
        ValueError,
        ["min_relevance='high'"],
    ),
    (
        {"min_relevance": np.nan, "relevance_col": "relevance"},
        rd.OptionError,
        ValueError,
        ["min_relevance=nan"],
    ),
    (
        {"min_relevance": 1, "relevance_col": False},
        rd.OptionError,
        ValueError,
        ["min_relevance", "relevance_col"],
    ),
    (
        {"score_col": "score", "rank_col": "place"},
        rd.OptionError,
        ValueError,
        ["score_col='score'", "rank_col='place'"],
    ),
    ({"user_column": "u"}, rd.OptionError, ValueError, ["'user_column'", "user_col"]),
    (
        {"like": "trec"},
        rd.OptionError,
        ValueError,
        ["'trec'", "did you mean 'trec_eval'?", "rectools"],
    ),
    ({"metrics": "surprisal@10"}, rd.OptionError, ValueError, ["surprisal"]),
    ({"metrics": "revenue@10"}, rd.OptionError, ValueError, ["revenue@10 needs value_col="]),
    ({"metrics": "mcc@10"}, rd.OptionError, ValueError, ["mcc@10 needs items=", "judged_only"]),
    ({"metrics": "auc(within=catalogue)@10"}, rd.OptionError, ValueError, ["auc", "needs items="]),
    # nothing to evaluate
    ({"true": TRUE[:0]}, rd.EmptyPopulationError, ValueError, ["true has 0 rows", "users='true'"]),
    (
        {"pred": PRED.assign(user_id=[7, 8, 9]), "users": "both"},
        rd.EmptyPopulationError,
        ValueError,
        ["users='both'; no user of pred is in true (true['user_id']: 1, 2; pred['user_id']: 7, 8)"],
    ),
    ({"users": []}, rd.EmptyPopulationError, ValueError, ["0 given ids"]),
    ({"pred": PRED[:0], "users": "pred"}, rd.EmptyPopulationError, ValueError, ["pred 0"]),
    ({"true": {}}, rd.EmptyPopulationError, ValueError, ["true has 0 rows"]),
    (
        {"metrics": "recall@3", "undefined": "raise", "users": [1, 9]},
        rd.UndefinedMetricError,
        ValueError,
        ["recall@3", "1 of 2"],
    ),
    # what is no frame
    ({"true": [1, 2]}, TypeError, TypeError, ["true is a list", "DataFrame"]),
    ({"pred": None}, TypeError, TypeError, ["pred is None; expected a DataFrame"]),
    (
        {"pred": PRED.to_numpy()},
        TypeError,
        TypeError,
        ["pred is an ndarray", "{'u1': ['i1', 'i2']}"],
    ),
    (
        {"pred": "pred.parquet"},
        TypeError,
        TypeError,
        ["rd.read(pred), or call rd.evaluate_parquet"],
    ),
    (
        {"pred": {"user_id": [1, 1], "item_id": [2, 3]}},
        TypeError,
        TypeError,
        ["look like columns", "DataFrame("],
    ),
    ({"pred": {"u": "abc"}}, TypeError, TypeError, ["'u'", "'abc'", "list"]),
    ({"pred": {"u": 5}}, TypeError, TypeError, ["'u'", "5"]),
    ({"pred": {"u": ["a"], "v": {"a": 1}}}, TypeError, TypeError, ["list", "mapping"]),
    (
        {"true": {1: [10]}, "pred": {1: [10]}, "user_col": ["a", "b"]},
        rd.ColumnError,
        KeyError,
        ["mapping"],
    ),
    # results
    (
        {
            "true": TRUE.rename(columns={"user_id": "n_true"}),
            "pred": PRED.rename(columns={"user_id": "n_true"}),
            "user_col": "n_true",
        },
        rd.ColumnError,
        KeyError,
        ["'n_true'"],
    ),
    *(
        ({**pred(**{name: ["a", "a", "a"]}), "by": name}, rd.ColumnError, KeyError, [f"'{name}'"])
        for name in (
            "metric",
            "k",
            "value",
            "std",
            "se",
            "ci_low",
            "ci_high",
            "n",
            "n_undefined",
            "n_pred",
        )
    ),
    ({"metrics": {"n_true": "ndcg@5"}}, rd.OptionError, ValueError, ["'n_true'"]),
    ({"metrics": {"user_id": "ndcg@5"}}, rd.ColumnError, KeyError, ["'user_id'"]),
    ({"metrics": {5: "ndcg@5"}}, rd.OptionError, ValueError, ["5", "name"]),
]


@pytest.mark.parametrize(
    ("call", "error", "builtin", "words"),
    TABLE,
    ids=[f"{i}-{' '.join(words)}"[:60] for i, (*_, words) in enumerate(TABLE)],
)
def test_error(call, error, builtin, words):
    """Its class, its words, what it advises, and no mark left in a sentence."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(error) as raised:
            run(**call)
    assert isinstance(raised.value, builtin)
    message = str(raised.value)
    for word in words:
        assert word in message
    assert "\\n" not in message  # a KeyError would show its repr
    for argument, value in getattr(raised.value, "advice", []):
        assert f"{argument}={value}" in message
    for text in (message, *map(str, raised.value.args), *(str(one.message) for one in warned)):
        assert "⟦" not in text
        assert "⟧" not in text


@pytest.mark.parametrize("items", [5, "abc"])
def test_items_that_are_no_collection(items):
    with pytest.raises(TypeError, match="items is a"):
        run(items=items)


def test_a_single_metric_raises_the_same():
    with pytest.raises(rd.ColumnError, match="'user_id'"):
        rd.ndcg(TRUE.drop(columns="user_id"), PRED)
    with pytest.raises(rd.OptionError, match="k=0"):
        rd.ndcg.per_user(TRUE, PRED, 0)
    with pytest.raises(rd.OptionError, match=r"ndcg has no option 'gian'.*did you mean 'gain'"):
        rd.ndcg(TRUE, PRED, gian="exp2")
    with pytest.raises(rd.OptionError, match="gain='exp'"):
        rd.ndcg(TRUE, PRED, gain="exp")
    with pytest.raises(rd.OptionError, match="one number"):
        rd.ndcg(TRUE, PRED.assign(model="a"), by="model")
    with pytest.raises(rd.OptionError, match="revenue@10 needs value_col="):
        rd.revenue(TRUE, PRED)


@pytest.mark.parametrize(
    "function",
    [
        rd.evaluate,
        rd.evaluate_parquet,
        rd.check,
        rd.diagnostics.hit_table,
        rd.diagnostics.exposure_table,
        rd.diagnostics.position_table,
        rd.ndcg,
    ],
    ids=lambda function: function.__name__,
)
def test_an_unknown_option_is_answered_with_all_that_the_function_takes(function):
    parameters = inspect.signature(function).parameters.values()
    required = [TRUE for one in parameters if one.default is inspect.Parameter.empty]
    valid = ", ".join(one.name for one in parameters if one.default is not inspect.Parameter.empty)
    with pytest.raises(rd.OptionError) as raised:
        function(*required, usr="x")
    assert (
        str(raised.value)
        == f"{function.__name__} has no option 'usr'; did you mean 'users'? Valid are {valid}"
    )


def test_every_error_is_of_recdf_and_of_python():
    own = [
        getattr(rd, name) for name in rd.__all__ if name.endswith("Error") and name != "RecdfError"
    ]
    assert len(own) >= 8
    for error in own:
        assert issubclass(error, rd.RecdfError)
        assert issubclass(
            error, (KeyError, TypeError, ValueError, ImportError, OSError, RuntimeError)
        )


def test_ids_in_the_index_of_a_series_are_refused():
    """Counts by id, as `value_counts` gives them, are no ids."""
    true = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 2]})
    calls = {
        "users": lambda ids: rd.evaluate(true, true, "ndcg@2", users=ids),
        "items": lambda ids: rd.evaluate(true, true, "coverage@2", items=ids),
        "popular": lambda ids: rd.evaluate(
            true, true, "serendipity@2", log=true, features=true, popular=ids
        ),
    }
    for name, call in calls.items():
        column = "user_id" if name == "users" else "item_id"
        for counts in (true[column].value_counts(), true.groupby(column).size()):
            with pytest.raises(rd.ColumnError, match=rf"{name} has its ids in .* {name}\.index"):
                call(counts)
    ids = true["user_id"].drop_duplicates()
    for given in (ids, ids.set_axis(pd.Index(ids)), ids.value_counts().index):
        assert calls["users"](given).summary["n"].item() == 2


def test_an_error_names_the_frame_that_holds_the_value():
    true = pd.DataFrame({"user_id": [1], "item_id": [1]})
    below, prices = (pd.DataFrame({"item_id": [1], "price": [one]}) for one in (-1.0, 1.0))
    own = true.assign(price=-1.0)
    for frames, items, role in (
        ((true, true), below, "items"),
        ((true, own), prices, "pred"),
        ((own, true), prices, "true"),
    ):
        with pytest.raises(rd.DataError, match=rf"{role}\['price'\] holds 1 negative values"):
            rd.revenue(*frames, value_col="price", items=items)
    with pytest.raises(rd.OptionError, match=r"^conventions='foo'; valid are 'trec_eval'"):
        rd.diagnostics.compare_conventions(true, true, "ndcg", conventions=["foo"])
