"""Seeded frames with everything a log has (holes, ties, repeats, grades), and the oracle's word on
them."""

import functools
import itertools
import math
import typing
import warnings
from dataclasses import replace

import numpy as np
import oracles
import pandas as pd

import recdf as rd

N_ITEMS = 14
ITEMS = list(range(N_ITEMS))

FAMILIES = (
    "relevance",
    "ranking",
    "money",
    "judgements",
    "user_models",
)  # metrics of true and pred alone
BUILT_IN = [metric for metric in rd.METRICS.values() if metric.family in FAMILIES]
# Those that take side tables, are of exposure, or compare ratings.
BEYOND = [metric for metric in rd.METRICS.values() if metric.family not in FAMILIES]
# Those of them that take any frames and add up over parts. The others need labels from 0 to 1, or
# groups of users.
OF_ANY_FRAMES = [
    metric
    for metric in BEYOND
    if metric.name
    not in {"log_loss", "brier", "pooled_log_loss", "pooled_brier", "pooled_auc", "bias_disparity"}
]

# Values of the options that a call of the oracle has.
SPACE = {
    "order": ["score", "rank", "row"],
    "ties": ["item_desc", "item_asc", "row", "worst"],
    "users": ["true", "pred", "both", "all", [-5, 1, 4, 22, 999]],
    "relevance": [True, False],
    "min_relevance": [None, 0.5],
    "duplicates": ["drop", "keep"],
    "judged_only": [False, True],
    "nan_score": ["last", "drop"],
    "undefined": ["nan", "zero"],
}

# Values of the numeric parameters of the built-in metrics to try beside the default.
NUMBERS = {
    "beta": [0.5, 2.0],
    "log_base": [3],
    "p": [0.3],
    "max_gain": [6.0],
    "multiple": [0.6, 1.5],
    "at_most": [2],
    "max_fpr": [0.4, 1.0],
    "at": [0.0, 0.35, 1.0],
    "T": [0.25, 2.0],
    "halflife": [3.0],
    "length": [6.0],
    "depth": [4],
}

TIMED = ("tbg", "umeasure", "weights")  # models of time have no chances


def numbers_to_try(metric, name):
    """Values of a number among the parameters: those above, or else one beside its default."""
    default = metric.defaults[name]
    beside = {int: lambda: [default + 1], float: lambda: [default / 2]}.get(type(default), list)
    return NUMBERS.get(name) or beside()


@functools.cache
def frames(seed, top=1.0, n_users=24):
    """`true` and `pred`, to be copied before a change.

    Users with and without recommendations, without truth, with judged non-relevant truth only,
    ragged lists, equal and null scores, repeated rows in both frames; gains up to `top`; two models
    that share the lists unevenly.
    """
    rng = np.random.default_rng(seed)
    true, pred = [], []
    gains = np.array([0.0, 0.25, 0.5, 1.0]) * top
    for user in rng.permutation(n_users) * 3 - 5:
        wants = rng.integers(0, 8) if rng.random() > 0.15 else 0
        barren = rng.random() < 0.15
        for item in rng.choice(N_ITEMS, wants, replace=rng.random() < 0.3):
            true.append((user, item, 0.0 if barren else rng.choice(gains), rng.integers(0, 9) / 4))
        for model in "ba":
            shows = rng.integers(0, 12) if rng.random() > 0.15 else 0
            for item in rng.choice(N_ITEMS, shows, replace=rng.random() < 0.3):
                score = rng.integers(-3, 4) / 2 if rng.random() > 0.1 else math.nan
                pred.append((model, user, item, score, rng.integers(1, 8), rng.integers(0, 9) / 4))
    true = [true[i] for i in rng.permutation(len(true))]
    pred = [pred[i] for i in rng.permutation(len(pred))]
    true_frame = pd.DataFrame(true, columns=["user_id", "item_id", "relevance", "value"])
    pred_frame = pd.DataFrame(
        pred, columns=["model", "user_id", "item_id", "score", "rank", "value"]
    )
    return true_frame, pred_frame


@functools.cache
def side_tables(seed):
    """Frames with everything side tables have: repeated rows, unknown users and items, nulls,
    several categories."""
    rng = np.random.default_rng(seed + 100)
    users = np.arange(-5, 75, 3)
    log = pd.DataFrame(
        {"user_id": rng.choice(users, 90), "item_id": rng.integers(0, 17, 90) ** 2 // 17}
    )
    log = log[log["user_id"] > 5]
    ids = rng.permutation(17)[:14]
    genres = np.array(["a", "a|b", "b", "c", "b | c", None], dtype=object)
    items = pd.DataFrame(
        {
            "item_id": ids,
            "category": genres[rng.integers(0, 6, len(ids))],
            "group": np.array([1, 2, 3, None], dtype=object)[rng.integers(0, 4, len(ids))],
        }
    )
    features = pd.DataFrame(
        rng.integers(0, 3, (11, 5)),
        columns=list("vwxyz"),
        index=pd.Index(rng.permutation(17)[:11], name="item_id"),
    ).astype({"v": float})
    features.iloc[2] = 0
    features.iloc[5, 0] = math.nan
    aspects = pd.DataFrame(
        {
            "user_id": rng.choice(users, 260),
            "aspect": rng.integers(0, 5, 260),
            "item_id": rng.integers(0, 15, 260),
        }
    )
    base = pd.DataFrame({"user_id": rng.choice(users, 150), "item_id": rng.integers(0, 15, 150)})
    base["score"] = rng.permutation(150) / 8
    base["rank"] = rng.permutation(150)
    return {
        "log": log,
        "items": items,
        "features": features,
        "aspects": aspects,
        "base": base,
        "popular": [0, 3, 99],
    }


def distinct(seed, top=1.0):
    """The same frames without repeated rows, equal or null scores: the order of rows says
    nothing."""
    true, pred = frames(seed, top)
    true = true.drop_duplicates(["user_id", "item_id"], ignore_index=True)
    pred = pred.drop_duplicates(["model", "user_id", "item_id"], ignore_index=True).drop(
        columns="rank"
    )
    return true, pred.assign(score=np.random.default_rng(seed).permutation(len(pred)) / 512)


def variants(metric):
    """Every combination of the metric's choices, and each of its numbers, as dicts of
    parameters."""
    choices, numbers = {}, {}
    for name, hint in typing.get_type_hints(metric.kernel).items():
        if name in metric.defaults:
            literals = [
                one
                for one in (hint, *typing.get_args(hint))
                if typing.get_origin(one) is typing.Literal
            ]
            if literals:
                choices[name] = [value for one in literals for value in typing.get_args(one)]
            else:
                numbers[name] = numbers_to_try(metric, name)
    found = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    found += [{name: value} for name, values in numbers.items() for value in values]
    found = [one for one in found if not refused_together(one)]
    if metric.name == "user_model":  # 1000 ranks are slow in a plain loop
        found = [
            one
            for one in found
            if one.get("model") not in TIMED or one["measure"] in ("utility", "residual")
        ]
        found = [{"depth": 30, **one} for one in found] + [{}]
    if "discount" in choices and "log_base" in numbers:
        found += [{"discount": "log", "log_base": 10}, {"discount": "jk", "log_base": 3}]
    return found


def refused_together(params):
    """The package refuses parameters of which one leaves the other without a meaning, and what is
    to raise."""
    average, ideal, tied = (
        params.get("average", "none"),
        params.get("ideal", "relevant"),
        params.get("tied", "ranked"),
    )
    return (
        (ideal, tied) == ("shown", "averaged")
        or params.get("insufficient") == "raise"
        or (average != "none" and (ideal, tied) != ("relevant", "ranked"))
        or (
            params.get("transform") == "log_odds"
            and params.get("normalizer", "relevant") != "relevant"
        )
        or (params.get("of") == "ideal" and tied == "averaged")
        or (params.get("within") == "judged" and tied not in ("ranked", "half"))
    )


def counts_candidates(metric, params):
    """The metric needs to know how many items could be recommended, and refuses repeated
    recommendations."""
    return "candidates" in metric.needs or params.get("within") == "catalogue"


def condensed(one):
    """A list of the oracle with judged_only: the judged items are the candidates."""
    return replace(one, catalogue={judged.item for judged in one.judged})


def text(metric, params):
    """Metric string without a cut-off."""
    return metric.name + (f"({','.join(f'{n}={v}' for n, v in params.items())})" if params else "")


def quietly(function, *args, **kwargs):
    """Call with the warnings about repeated rows and disjoint ids off; tests of their own look at
    those."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        return function(*args, **kwargs)


def assert_own_memory(per_user):
    """No result column is another one's array, nor part of it: writing into a table changes one
    column."""
    arrays = [per_user[name].to_numpy() for name in per_user.columns[1:]]
    assert not any(np.shares_memory(one, two) for one, two in itertools.combinations(arrays, 2))


def column_options(options, pred):
    """Options of recdf and the frame `pred` for options of the oracle (`order`, `relevance`,
    `users`, ...)."""
    found = {name: value for name, value in options.items() if name not in ("order", "relevance")}
    found["relevance_col"] = "relevance" if options.get("relevance") else False
    if options["order"] == "row":
        pred = pred.drop(columns=["score", "rank"], errors="ignore")
    else:
        found[f"{options['order']}_col"] = options["order"]
    return found, pred


def records(frame):
    """Rows as dicts of Python objects, null scores as None."""
    return [
        dict(zip(frame.columns, row, strict=True))
        for row in frame.astype(object).itertuples(index=False)
    ]


# What an undefined list counts as with undefined="zero" where smaller is better: the worst bound,
# if there is one.
WORST = {"ils": 1.0, "fallout": 1.0, "brier": 1.0, "percentile_rank": 1.0}
WORST |= dict.fromkeys(
    ["first_rank", "relevant_rank", "rmse", "mae", "mse", "log_loss", "calibration"], math.nan
)


def zero_of(name, params):
    if name == "judged":
        return 1.0 if params.get("of") in ("unjudged", "nonrelevant") else 0.0
    return WORST.get(name, 0.0)


def oracle_values(lists, name, params, undefined="nan"):
    """What the oracle of a metric says: one row of floats per list, or for a metric of exposure its
    value."""
    assert name in oracles.ORACLES, (
        f"add an @oracle function named {name} to the module of its family in tests/oracles"
    )
    function, params = (
        oracles.ORACLES[name],
        {n: v for n, v in params.items() if n != "negative"},
    )  # no value is here
    if name in oracles.OF_ALL_LISTS:
        return function(lists, **params)
    rows = []
    for one in lists.values():
        value = function(one, **params)
        row = list(value.values()) if isinstance(value, dict) else [float(value)]
        rows.append(
            [zero_of(name, params) if undefined == "zero" and math.isnan(x) else x for x in row]
        )
    return np.array(rows, dtype=float)


def assert_within_bounds(metric, values):
    """No value is below or above the bounds of the metric; NaN is no value, and a bound that is
    None does not bind."""
    for name, column in (
        values.items() if isinstance(values, pd.DataFrame) else [("", np.asarray(values))]
    ):
        low, high = (np.nan if bound is None else bound for bound in metric.stated(name)[0])
        assert not (column < low).any()
        assert not (column > high).any()


def assert_close(found, expected, what=""):
    """Equal but for rounding; the columns of a frame that differ are named."""
    one, two = np.asarray(found, float), np.asarray(expected, float)
    try:
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12, err_msg=str(what))
    except AssertionError as error:
        if isinstance(found, pd.DataFrame) and one.shape == two.shape:
            same = np.isclose(one, two, rtol=1e-12, atol=1e-12, equal_nan=True).all(axis=0)
            error.add_note(f"columns that differ: {list(found.columns[~same])}")
        raise


def one_null(frame):
    """The frame with None for every null of its object columns, where pandas 2 keeps texts: None
    and NaN are one."""
    objects = [name for name, dtype in frame.dtypes.items() if pd.api.types.is_object_dtype(dtype)]
    return frame.assign(**{name: frame[name].where(frame[name].notna(), None) for name in objects})
