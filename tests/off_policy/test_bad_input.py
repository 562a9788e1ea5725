"""What bad logs and options get: an error that names the column, what was found, how often, and how
to mend it."""

import numpy as np
import pandas as pd
import pytest
from off_policy.logs import bandit_log, slate_log

import recdf as rd

LOG, SLATES = bandit_log(), slate_log()
N = len(LOG)
CASCADE = {"slate_col": "slate", "interaction": "cascade", "propensity_kind": "conditional"}
BOUNDED = {"interval": "bounded", "cluster": None, "reward_range": (0, 4), "weight_range": (0, 100)}


def some(column, values, log=LOG):
    """The log with the first values of one column replaced."""
    changed = log[column].to_numpy(dtype=object).copy()
    changed[: len(values)] = values
    return log.assign(**{column: pd.Series(changed, index=log.index).infer_objects()})


def both(column, values):
    """Slates with a column that is given by row."""
    return SLATES.assign(**{column: values})


FIRST = SLATES["position"] == 1
PER_UNIT = 0.3 + SLATES["slate"] / 100

TABLE = [
    # columns and keys
    (LOG.drop(columns="reward"), {}, rd.ColumnError, ["log has no column 'reward'"]),
    (
        LOG.rename(columns={"propensity": "propensty"}),
        {},
        rd.ColumnError,
        ["'propensity'", "did you mean 'propensty'?"],
    ),
    (LOG.drop(columns="user_id"), {}, rd.ColumnError, ["'user_id'", "pass cluster=None"]),
    (
        LOG,
        {"slate_col": "no", "interaction": "cascade", "propensity_kind": "conditional"},
        rd.ColumnError,
        ["'no'"],
    ),
    (
        some("user_id", [None, None]),
        {},
        rd.NullKeyError,
        ["log['user_id'] is null in 2 of 40 rows", "cluster=None"],
    ),
    (
        LOG.assign(model=None),
        {"by": "model"},
        rd.NullKeyError,
        ["log['model'] is null in 40 of 40 rows"],
    ),
    (
        LOG.assign(value=1),
        {"by": "value"},
        rd.OptionError,
        ["by='value' is also a column of the result"],
    ),
    (LOG.assign(user_id=0.5), {}, rd.IdTypeError, ["log['user_id']"]),
    (LOG.head(0), {}, rd.EmptyPopulationError, ["log has no rows"]),
    (
        3,
        {},
        TypeError,
        ["log is an int; expected a DataFrame, or an object with the Arrow stream interface"],
    ),
    (
        {"a": 1},
        {},
        TypeError,
        ["log is a dict; expected a DataFrame, or an object with the Arrow stream"],
    ),
    (
        LOG.rename(columns={"target_propensity": "propensity_score"}),
        {},
        rd.ColumnError,
        ["no column 'target_propensity'", "the other policy would show", "1/n", "target_from_recs"],
    ),
    (
        LOG.drop(columns="q_target"),
        {"estimators": "dr", "q_logged": "q_logged", "q_target": "q_target"},
        rd.ColumnError,
        ["no column 'q_target'"],
    ),
    (
        LOG,
        {"target_col": "propensity"},
        rd.OptionError,
        ["propensity_col and target_col are both 'propensity'", "1/n"],
    ),
    (
        LOG,
        {"reward_col": "propensity"},
        rd.OptionError,
        ["reward_col and propensity_col are both 'propensity'"],
    ),
    # propensities and targets
    (
        some("propensity", [0, -1]),
        {},
        rd.DataError,
        ["log['propensity'] is outside (0, 1] in 2 of 40 rows", "0"],
    ),
    (some("propensity", [1.5]), {}, rd.DataError, ["outside (0, 1] in 1 of 40 rows (1.5)"]),
    (
        some("propensity", [None, np.nan]),
        {},
        rd.DataError,
        ["log['propensity'] is null in 2 of 40 rows"],
    ),
    (some("propensity", [np.inf]), {}, rd.DataError, ["outside (0, 1] in 1 of 40 rows (inf)"]),
    (
        LOG.assign(propensity=np.log(LOG["propensity"])),
        {},
        rd.DataError,
        ["logarithms", "numpy.exp"],
    ),
    (LOG.assign(propensity=100 * LOG["propensity"]), {}, rd.DataError, ["percentages"]),
    (
        LOG.assign(propensity="high"),
        {},
        rd.DataError,
        ["log['propensity']", "string", "expected numbers"],
    ),
    (
        some("target_propensity", [1.5, -0.5]),
        {},
        rd.DataError,
        ["log['target_propensity'] is outside [0, 1] in 2 of 40"],
    ),
    (
        some("target_propensity", [None]),
        {},
        rd.DataError,
        ["log['target_propensity'] is null in 1 of 40 rows"],
    ),
    (
        LOG.assign(target_propensity=0),
        {},
        rd.DataError,
        ["is 0 in all 40 rows", "nothing can be estimated"],
    ),
    (
        pd.concat([LOG.assign(model="a"), LOG.assign(model="b", target_propensity=0)]),
        {"by": "model"},
        rd.DataError,
        ["model='b': log['target_propensity'] is 0 in all 40 rows"],
    ),
    (
        some("propensity", [5e-324, 5e-324]),
        {},
        rd.DataError,
        ["log['propensity'] is below 2.23e-308 in 2 of 40 rows", "4.94e-324"],
    ),
    (LOG.assign(propensity=1e-300), {}, rd.DataError, ["target/propensity is above 1e+15"]),
    (some("reward", [-1e60]), {}, rd.DataError, ["log['reward']", "up to 1e+60"]),
    # rewards, sample weights and models
    (
        some("reward", [None, np.inf]),
        {},
        rd.DataError,
        ["log['reward'] holds 2 null or infinite values in 40 rows"],
    ),
    (
        LOG,
        {"reward_range": (0, 2)},
        rd.DataError,
        ["log['reward'] is outside reward_range=(0, 2)", "from 0 to 3"],
    ),
    (
        some("kept", [0, -1]),
        {"weight_col": "kept"},
        rd.DataError,
        ["log['kept'] is below 1 in 2 of 40 rows"],
    ),
    (
        LOG.assign(kept=np.where(LOG["reward"] > 0, 1, 0.2)),
        {"weight_col": "kept"},
        rd.DataError,
        ["is below 1", "look like the probabilities", "1/probability"],
    ),
    (
        LOG,
        {"estimators": "dr"},
        rd.OptionError,
        ["'dr'", "q_logged= and q_target=", "reward_table"],
    ),
    (LOG, {"estimators": "dm", "q_logged": "q_logged"}, rd.OptionError, ["'dm'", "q_target="]),
    (
        some("q_logged", [None]),
        {"estimators": "sndr", "q_logged": "q_logged", "q_target": "q_target"},
        rd.DataError,
        ["log['q_logged'] holds 1 null"],
    ),
    # options
    (LOG, {"estimators": "isp"}, rd.OptionError, ["'isp'", "did you mean", "'ips'"]),
    (LOG, {"estimators": []}, rd.OptionError, ["estimators=[]"]),
    (LOG, {"estimators": ["ips", "ips"]}, rd.OptionError, ["each once"]),
    (LOG, {"clip": 0}, rd.OptionError, ["clip=0", "above 0"]),
    (LOG, {"clip": [1, -3]}, rd.OptionError, ["-3"]),
    (LOG, {"clip": [1, 1]}, rd.OptionError, ["each once"]),
    (LOG, {"clip": np.nan}, rd.OptionError, ["nan"]),
    (LOG, {"clip": []}, rd.OptionError, ["clip=[]"]),
    (
        LOG,
        {"estimators": "switch_dr", "q_logged": "q_logged", "q_target": "q_target"},
        rd.OptionError,
        ["'switch_dr'", "clip="],
    ),
    (LOG, {"confidence": 1.0}, rd.OptionError, ["confidence=1.0"]),
    (LOG, {"confidence": True}, rd.OptionError, ["confidence=True"]),
    (
        LOG,
        {"interval": "jackknife"},
        rd.OptionError,
        ["interval='jackknife'", "'delta', 'bootstrap', 'bounded'"],
    ),
    (LOG, {"n_resamples": 1, "interval": "bootstrap"}, rd.OptionError, ["n_resamples=1"]),
    (LOG, {"seed": -1}, rd.OptionError, ["seed=-1"]),
    # bounded intervals
    (LOG, {"interval": "bounded"}, rd.OptionError, ["reward_range="]),
    (LOG, {"interval": "bounded", "reward_range": (0, 3)}, rd.OptionError, ["weight_range="]),
    (
        LOG,
        BOUNDED | {"estimators": "dm", "q_logged": "q_logged", "q_target": "q_target"},
        rd.OptionError,
        ["'dm'"],
    ),
    (LOG, BOUNDED | {"clip": 3}, rd.OptionError, ["without a clip"]),
    (LOG, BOUNDED | {"weight_col": "kept"}, rd.OptionError, ["sample weights"]),
    (
        LOG,
        BOUNDED | {"weight_range": (0, 1)},
        rd.DataError,
        ["outside weight_range=(0, 1)", "widen"],
    ),
    (LOG, BOUNDED | {"reward_range": (3, 0)}, rd.OptionError, ["reward_range=(3, 0)"]),
    (LOG, BOUNDED | {"reward_range": 3}, rd.OptionError, ["reward_range=3"]),
    # slates
    (
        SLATES,
        {"slate_col": "slate"},
        rd.OptionError,
        ["slate_col=['slate']", "interaction='independent', 'cascade' or 'standard'"],
    ),
    (LOG, {"interaction": "cascade"}, rd.OptionError, ["interaction='cascade'", "slate_col="]),
    (LOG, {"estimators": "rips"}, rd.OptionError, ["'rips'", "slate_col="]),
    (LOG, {"propensity_kind": "slate"}, rd.OptionError, ["propensity_kind='slate'", "slate_col="]),
    (
        SLATES,
        CASCADE | {"estimators": "iips"},
        rd.OptionError,
        ["'iips'", "interaction='independent'", "'cascade'"],
    ),
    (
        SLATES,
        CASCADE | {"propensity_kind": "item"},
        rd.OptionError,
        ["'cascade'", "'item'", "'conditional' or 'prefix'"],
    ),
    (SLATES, CASCADE | {"propensity_kind": "slate"}, rd.OptionError, ["'cascade'", "'slate'"]),
    (
        SLATES,
        CASCADE | {"interaction": "independent"},
        rd.OptionError,
        ["'independent'", "'conditional'"],
    ),
    (
        SLATES,
        CASCADE | {"interaction": "standard", "propensity_kind": "item"},
        rd.OptionError,
        ["'standard'", "'item'"],
    ),
    (SLATES, CASCADE | {"interaction": "all"}, rd.OptionError, ["interaction='all'"]),
    (SLATES, CASCADE | {"propensity_kind": "joint"}, rd.OptionError, ["propensity_kind='joint'"]),
    (SLATES, CASCADE | {"ragged": "drop"}, rd.OptionError, ["ragged='drop'"]),
    (SLATES, CASCADE | {"estimators": "dr"}, rd.OptionError, ["'dr'", "not defined for slates"]),
    (SLATES.iloc[1:], CASCADE, rd.DataError, ["2 to 3 rows", "ragged='as_logged'"]),
    (SLATES[FIRST | (SLATES["slate"] > 2)], CASCADE, rd.DataError, ["1 to 3 rows"]),
    (
        both("position", SLATES["position"] + (SLATES["slate"] == 4)),
        CASCADE,
        rd.DataError,
        ["3 of 4 positions"],
    ),
    (both("position", 1), CASCADE, rd.DuplicateError, ["50 rows", "(unit, position)"]),
    (
        both("position", SLATES["position"] / 2),
        CASCADE,
        rd.DataError,
        ["log['position']", "fractions"],
    ),
    (
        both("user_id", np.arange(len(SLATES))),
        CASCADE,
        rd.DataError,
        ["several clusters", "one cluster per unit"],
    ),
    (
        both("kept", np.arange(len(SLATES)) + 1.0),
        CASCADE | {"weight_col": "kept"},
        rd.DataError,
        ["log['kept'] differs between the rows of a unit"],
    ),
    (
        both("propensity", np.tile([0.3, 0.4, 0.2], 25)),
        CASCADE | {"propensity_kind": "prefix"},
        rd.DataError,
        ["log['propensity'] grows", "25 rows", "'conditional'"],
    ),
    (
        SLATES,
        {"slate_col": "slate", "interaction": "standard", "propensity_kind": "slate"},
        rd.DataError,
        ["log['propensity'] differs between the rows of 25 units", "'conditional'"],
    ),
    (
        SLATES.assign(propensity=PER_UNIT, target_propensity=PER_UNIT / 2),
        CASCADE,
        rd.DataError,
        ["one value for all rows of each unit", "propensity_kind='slate'"],
    ),
    (
        SLATES.assign(propensity=0.5, target_propensity=0.25),
        CASCADE | {"propensity_kind": "prefix"},
        rd.DataError,
        ["one value for all rows of each unit"],
    ),
    (
        SLATES.assign(target_propensity=SLATES["target_propensity"] * (SLATES["position"] > 1)),
        {"slate_col": "slate", "interaction": "independent", "estimators": "snips"},
        rd.DataError,
        ["all weights are 0 at 1 of 3 positions"],
    ),
]


@pytest.mark.parametrize(("log", "options", "error", "words"), TABLE)
def test_ope_estimate(log, options, error, words):
    with pytest.raises(error) as found:
        rd.ope.estimate(log, **options)
    message = str(found.value)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    "absent", ["target_propensity", "propensity", "user_id", "q_logged", "q_target"]
)
def test_no_column_of_another_meaning_is_suggested(absent):
    # A user who follows "did you mean" must not get a number that is wrong in silence.
    q = {"q_logged": "q_logged", "q_target": "q_target"}
    with pytest.raises(rd.ColumnError) as found:
        rd.ope.estimate(LOG.drop(columns=absent), estimators="dr", **q)
    assert f"no column {absent!r}" in str(found.value)
    assert "did you mean" not in str(found.value)


def test_candidates_that_are_not_all_are_warned_of():
    log = TARGET[["user_id", "item_id", "reward"]]
    with pytest.warns(
        rd.RecdfWarning, match=r"sum to less than 1 in 40 of 40 rows of log \(from 0.5"
    ):
        found = rd.ope.reward_table(
            log, by="item_id", candidates=CANDIDATES.assign(target_propensity=0.1)
        )
    assert found["target_mass"].tolist() == pytest.approx([0.5] * 40)


def test_what_looks_wrong_and_is_right():
    # A uniform policy that draws with replacement has the same conditional probability at every
    # position.
    uniform = SLATES.assign(propensity=0.2, target_propensity=0.1)
    assert len(rd.ope.estimate(uniform, **CASCADE)) == 2
    # Sums of softmax shares pass 1 by rounding.
    assert len(rd.ope.estimate(LOG.assign(propensity=1 + 1e-12))) == 2


TARGET = LOG.drop(columns="target_propensity")
PRED = pd.DataFrame({"user_id": [0, 0, 1], "item_id": [1, 2, 3], "score": [0.5, 0.9, 0.1]})
CANDIDATES = pd.DataFrame({"item_id": range(5), "target_propensity": 0.2})
TABLES = {"by": "item_id", "candidates": CANDIDATES}

OTHERS = [
    (
        "target_from_recs",
        (LOG, PRED),
        {},
        rd.DataError,
        ["already has a column 'target_propensity'"],
    ),
    (
        "target_from_recs",
        (TARGET, PRED.drop(columns="item_id")),
        {},
        rd.ColumnError,
        ["pred", "'item_id'"],
    ),
    (
        "target_from_recs",
        (TARGET, PRED.astype({"item_id": str})),
        {},
        rd.IdTypeError,
        ["log['item_id']", "pred['item_id']"],
    ),
    (
        "target_from_recs",
        (TARGET, some("user_id", [None], PRED)),
        {},
        rd.NullKeyError,
        ["pred['user_id'] is null in 1 of 3"],
    ),
    (
        "target_from_recs",
        (TARGET, PRED.assign(item_id=99)),
        {},
        rd.DataError,
        ["no row of log is recommended"],
    ),
    (
        "target_from_recs",
        (TARGET, some("score", [None], PRED)),
        {"k": 1},
        rd.DataError,
        ["pred['score'] is null in 1 rows"],
    ),
    ("target_from_recs", (TARGET, PRED), {"k": 0}, rd.OptionError, ["k=0"]),
    ("target_from_recs", (TARGET, PRED), {"on": "item_id"}, rd.OptionError, ["on='item_id'"]),
    (
        "target_from_recs",
        (TARGET, PRED),
        {"position_col": "position"},
        rd.ColumnError,
        ["'position'"],
    ),
    (
        "target_from_recs",
        (TARGET, PRED.assign(kept=1)),
        {"by": "kept"},
        rd.ColumnError,
        ["by='kept'", "rename"],
    ),
    ("propensity_check", (LOG,), {}, rd.ColumnError, ["'position'"]),
    (
        "propensity_check",
        (some("propensity", [1e-200]),),
        {"by": "item_id"},
        rd.DataError,
        ["below 1e-15 in 1 of 40"],
    ),
    (
        "diagnostics",
        (LOG,),
        {"target_col": "propensity"},
        rd.OptionError,
        ["are both 'propensity'"],
    ),
    ("propensity_check", (LOG,), {"by": []}, rd.OptionError, ["by is empty"]),
    (
        "propensity_check",
        (LOG,),
        {"by": "item_id", "n_actions": 0},
        rd.OptionError,
        ["n_actions=0"],
    ),
    (
        "propensity_check",
        (some("propensity", [2]),),
        {"by": "item_id"},
        rd.DataError,
        ["log['propensity'] is outside (0, 1]"],
    ),
    ("popularity_propensity", (LOG,), {"gamma": -1}, rd.OptionError, ["gamma=-1"]),
    ("popularity_propensity", (LOG,), {"floor": 1.5}, rd.OptionError, ["floor=1.5"]),
    ("popularity_propensity", (LOG,), {"item_col": "item"}, rd.ColumnError, ["'item'"]),
    (
        "reward_table",
        (LOG.drop(columns=["q_logged", "q_target"]),),
        TABLES | {"folds": 0},
        rd.OptionError,
        ["folds=0"],
    ),
    ("reward_table", (LOG,), TABLES, rd.DataError, ["already has a column 'q_logged'"]),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"prior": -1},
        rd.OptionError,
        ["prior=-1"],
    ),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"fold_by": None},
        rd.OptionError,
        ["folds=1"],
    ),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"candidates": {"a": 0.5}},
        TypeError,
        ["candidates is a dict"],
    ),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"candidates": CANDIDATES.assign(target_propensity=0.5)},
        rd.DataError,
        ["sum to more than 1", "2.5"],
    ),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"candidates": CANDIDATES.assign(user_id=0)},
        rd.DataError,
        ["have no candidate with their user_id"],
    ),
    (
        "reward_table",
        (TARGET[["user_id", "item_id", "reward"]],),
        TABLES | {"candidates": CANDIDATES.astype({"item_id": str})},
        rd.IdTypeError,
        ["log['item_id']", "candidates['item_id']"],
    ),
    ("compare", (LOG.assign(model="a"),), {}, rd.OptionError, ["1 target"]),
    (
        "compare",
        (LOG.assign(model=LOG["item_id"] % 2),),
        {},
        rd.DataError,
        ["do not stand on the same rows"],
    ),
    (
        "compare",
        (LOG.assign(model="a"),),
        {"cluster": None},
        rd.OptionError,
        ["cluster=None and slate_col=None"],
    ),
    (
        "compare",
        (pd.concat([LOG.assign(model="als"), LOG.assign(model="bpr")]),),
        {"baseline": "alz"},
        rd.OptionError,
        ["baseline='alz'", "did you mean 'als'?"],
    ),
    ("diagnostics", (SLATES,), {"slate_col": "slate"}, rd.OptionError, ["interaction="]),
]


@pytest.mark.parametrize(("function", "frames", "options", "error", "words"), OTHERS)
def test_the_other_functions(function, frames, options, error, words):
    with pytest.raises(error) as found:
        getattr(rd.ope, function)(*frames, **options)
    message = str(found.value)
    assert all(word in message for word in words), message
