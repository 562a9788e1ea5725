"""Every option has one record, from which its check follows: it refuses what it does not take, and
names it as data."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from inputs.small_frames import PRED, TRUE

import recdf as rd
from recdf.inputs.constraints import (
    NATURAL,
    SHARE,
    a_number,
    check_value,
    constraint_of,
    either,
    one_of,
)
from recdf.inputs.options import NAMES, OPTIONS, Options

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    2.5,
    math.nan,
    math.inf,
    "",
    "item",
    "1",
    b"raise",
    [],
    ["a"],
    [["a"]],
    {},
    {"a": 1},
    {1, 2},
    object(),
    np.float64(0.5),
    np.bool_(True),
    np.array([0.5, 2.0]),
    pd.DataFrame({"a": [1]}),
    len,
]


def is_name(value):
    """Whether a value may label a column: nearly all that can be hashed."""
    try:
        hash(value)
    except TypeError:
        return False
    return not isinstance(value, bool | np.bool_ | None)


def is_names(value):
    return is_name(value) or (isinstance(value, list | tuple) and all(map(is_name, value)))


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_ids(value):
    return isinstance(value, list | dict | set | np.ndarray | pd.DataFrame)


def is_column_names(value):
    return value is None or (
        isinstance(value, dict) and all(isinstance(one, str) for one in [*value, *value.values()])
    )


# What each option takes, written down once more and apart from the records.
TAKES = {
    "user_col": is_names,
    "item_col": is_name,
    "true_cols": is_column_names,
    "pred_cols": is_column_names,
    "items_sep": lambda value: value is None or (isinstance(value, str) and value != ""),
    "wide": lambda value: value is None or is_names(value),
    "score_col": lambda value: value is None or value is False or is_name(value),
    "rank_col": lambda value: value is None or is_name(value),
    "relevance_col": lambda value: value is None or value is False or is_name(value),
    "min_relevance": lambda value: value is None or is_number(value),
    "value_col": lambda value: value is None or is_name(value),
    "weight_col": lambda value: value is None or isinstance(value, dict) or is_name(value),
    "propensity_col": lambda value: value is None or is_name(value),
    "propensity_floor": lambda value: is_number(value) and 0 <= value <= 1,
    "judged_only": lambda value: isinstance(value, bool),
    "by": lambda value: value is None or is_names(value),
    "by_in_true": lambda value: value is None or isinstance(value, bool) or is_names(value),
    "users": lambda value: is_ids(value) or value in ("true", "pred", "both", "all"),
    "ties": lambda value: value in ("item_desc", "item_asc", "row", "worst", "raise"),
    "duplicates": lambda value: value in ("drop", "keep", "raise"),
    "null_keys": lambda value: value in ("raise", "drop"),
    "nan_score": lambda value: value in ("raise", "last", "drop"),
    "undefined": lambda value: value in ("nan", "zero", "raise"),
    "like": lambda value: value is None,
}


def test_every_option_is_told_apart():
    assert list(TAKES) == list(NAMES) == list(OPTIONS)


def settled(name, value):
    """The value as an option takes it: scalars of numpy are those of Python, and an array of names
    is a list."""
    if isinstance(value, np.generic):
        return value.item()
    return (
        value.tolist()
        if isinstance(value, np.ndarray) and name in ("user_col", "by", "by_in_true")
        else value
    )


def is_taken(name, value):
    if isinstance(value, np.ndarray | pd.DataFrame):
        return name == "users"
    return TAKES[name](value)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_refuses_every_wrong_value_and_names_it(name):
    wrong = [value for value in VALUES if not is_taken(name, settled(name, value))]
    assert len(wrong) >= 3
    for value in wrong:
        with pytest.raises(rd.OptionError) as raised:
            rd.evaluate(TRUE, PRED, "ndcg@2", **{name: value})
        given = settled(name, value)
        assert raised.value.argument == name
        assert raised.value.value is given or raised.value.value == given
        assert str(raised.value).startswith((f"{name}=", f"{name} is "))


@pytest.mark.parametrize("name", NAMES)
def test_an_option_takes_its_default_and_its_words(name):
    option = OPTIONS[name]
    assert getattr(Options(), name) == option.default
    for value in (option.default, *option.constraint.values):
        assert option.constraint.check(name, value) is value
    assert Options(**{name: option.default}).spec() == Options().spec()


@pytest.mark.parametrize("metric", rd.METRICS.values(), ids=lambda metric: metric.name)
def test_a_parameter_refuses_wrong_values_and_names_them(metric):
    for name, constraint in metric.constraints.items():
        if constraint.holds(wrong := ["no", "such", "value"]):
            continue
        with pytest.raises(rd.OptionError) as raised:
            metric.request({name: wrong}, 2, Options())
        assert (raised.value.argument, raised.value.value) == (name, wrong)
        assert str(raised.value).startswith(f"{metric.name} parameter {name}=")


@pytest.mark.parametrize(
    ("constraint", "right", "wrong", "words"),
    [
        (
            a_number(0, 1),
            [0, 1, 0.5, np.float32(0.5)],
            [-1, 1.1, True, "1", None, math.nan],
            "a number from 0 to 1",
        ),
        (
            SHARE,
            [1e-12, 0.5, 1 - 1e-12],
            [0, 1, 1e-13, 1e-320, 1 - 1e-13, Decimal("0.5")],
            "a number between 0 and 1, at least 1e-12 from both",
        ),
        (a_number(above=0, most=1), [1, 0.1], [0, 1.5], "a number above 0 and at most 1"),
        (
            a_number(2, whole=True),
            [2, np.int64(5)],
            [1, 2.0, True, 10.5],
            "an integer of at least 2",
        ),
        (a_number(), [0, -1.5, 10**30], [math.inf, -math.inf, math.nan, 1j], "a finite number"),
        (one_of(["a", "b"]), ["a"], ["c", None, b"a", ["a"]], "'a', 'b'"),
        (constraint_of(bool | None), [True, None], [0, "no"], "True or False or None"),
        (either(one_of(["a"]), a_number(0)), ["a", 0], ["b", -1], "'a' or a number of at least 0"),
    ],
)
def test_constraints(constraint, right, wrong, words):
    for value in right:
        assert check_value("x", value, constraint) == value
    for value in wrong:
        with pytest.raises(rd.OptionError, match=r"^x"):
            check_value("x", value, constraint)
    assert constraint.words == words


@pytest.mark.parametrize("constraint", [a_number(2, whole=True), NATURAL])
@pytest.mark.parametrize(
    "value", [2**64, -(10**400), 10**5000], ids=["one more", "many", "very many"]
)
def test_integers_that_no_table_holds_are_refused(constraint, value):
    with pytest.raises(rd.OptionError, match=r"^n is an int; expected one nearer to 0$"):
        constraint.check("n", value)


@pytest.mark.parametrize("value", [10**309, -(10**5000)], ids=["more", "very many"])
def test_integers_that_no_float_holds_are_refused(value):
    assert a_number().check("n", 10**30) == 10**30
    with pytest.raises(rd.OptionError, match=r"^n is an int; expected one nearer to 0$"):
        a_number().check("n", value)


def _users():
    return pd.DataFrame({"user_id": range(8), "variant": ["A", "B"] * 4, "m": range(8)})


LISTS = {"ann": ["tea", "jam"], "bob": ["jam"]}
REFUSED_CALLS = {
    "permutations": (
        lambda: rd.compare_variants(
            _users(), "m", control="A", test="permutation", n_resamples=2**62
        ),
        rd.OptionError,
        "n_resamples=4611686018427387904; expected an integer from 1 to 10,000,000",
    ),
    "splits": (
        lambda: rd.experiments.aa_test(_users(), "m", n=2**63),
        rd.OptionError,
        "expected an integer from 2 to 10,000,000",
    ),
    "carried columns": (
        lambda: rd.evaluate(LISTS, LISTS, "ndcg", 1, carry=[{}]),
        rd.OptionError,
        r"carry=\[{}\]; expected a list of names",
    ),
    "conventions": (
        lambda: rd.diagnostics.compare_conventions(LISTS, LISTS, ["ndcg"], conventions=3),
        rd.OptionError,
        "conventions=3; valid are 'trec_eval'",
    ),
    "a key that is named twice": (
        lambda: rd.experiments.interleave(LISTS, LISTS, user_col=["user_id", "user_id"]),
        rd.ColumnError,
        "must be distinct columns",
    ),
}


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_calls_that_no_column_and_no_number_answers(name):
    call, error, words = REFUSED_CALLS[name]
    with pytest.raises(error, match=words):
        call()
