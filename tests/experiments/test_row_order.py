"""Tables of experiments and comparisons have the same bytes, whatever the order of the rows of all
frames."""

import numpy as np
import pandas as pd
import pytest
from quick import few

import recdf as rd

N = 600
IDS = {
    "integers": lambda code: code * 2654435761 % 2**40,
    "text": lambda code: "u" + code.astype(str),
}


def shuffled(frame, seed=1):
    return frame.sample(frac=1, random_state=seed)


def lists(ids):
    """One row per (model, user), with units of several users and numbers of many digits."""
    rng = np.random.default_rng(2)
    code = pd.Series(np.tile(np.arange(N), 2))
    frame = pd.DataFrame(
        {"model": np.repeat(["b", "a"], N), "user_id": ids(code), "unit": ids(code // 7)}
    )
    frame["fold"], frame["w"] = code % 5, rng.random(N)[code]
    return frame.assign(x=rng.gamma(1, size=2 * N), y=rng.normal(size=2 * N) / 3)


def sessions(ids):
    """An experiment in which users have several rows."""
    rng = np.random.default_rng(3)
    code = pd.Series(rng.integers(0, 90, N))
    frame = pd.DataFrame(
        {"user_id": ids(code), "variant": np.array(["c", "t"])[code % 2], "session": np.arange(N)}
    )
    frame["s"], frame["w"] = rng.choice([*"uv"], N), rng.random(N)
    return frame.assign(
        x=rng.gamma(1, size=N), y=rng.normal(size=N) / 3, pre=rng.normal(size=N), z=rng.random(N)
    )


def joined(frame):
    users = frame[["user_id", "variant"]].drop_duplicates()
    lists = frame[["user_id", "session", "x", "y"]]
    tables = [
        rd.join_experiment(lists, shuffled(users), how=how, over="session")
        for how in ("mean", "sum")
    ]
    return (
        pd.concat(tables, axis=1)
        .loc[:, lambda both: ~both.columns.duplicated()]
        .sort_values("user_id")
    )


CALLS = {
    "compare_models": (lists, lambda f: rd.compare_models(f, ["x", "y"])),
    "of units": (lists, lambda f: rd.compare_models(f, ["x", "y"], unit_col="unit")),
    "of folds": (
        lists,
        lambda f: rd.compare_models(f, ["x", "y"], fold="fold", user_col=["user_id", "fold"]),
    ),
    "weighted": (
        lists,
        lambda f: rd.compare_models(f, ["x", "y"], weight_col="w", unit_col="unit"),
    ),
    "randomization": (
        lists,
        lambda f: rd.compare_models(f, ["x"], test="randomization", n_resamples=99),
    ),
    "bootstrap": (
        lists,
        lambda f: rd.compare_models(f, ["x"], test="bootstrap", unit_col="unit", n_resamples=99),
    ),
    "summarize": (
        lists,
        lambda f: rd.summarize(f, "model", metrics=["x", "y"], unit_col="unit").sort_values(
            "model"
        ),
    ),
    "bootstrap_ci": (
        lists,
        lambda f: rd.experiments.bootstrap_ci(
            f, ["x", "y"], by="model", cluster="unit", n_resamples=99
        ),
    ),
    "roll_up": (
        sessions,
        lambda f: rd.experiments.roll_up(f[["user_id", "x", "y"]], "user_id").sort_values(
            "user_id"
        ),
    ),
    "join_experiment": (sessions, joined),
    "clusters": (
        sessions,
        lambda f: rd.compare_variants(f, ["x", "y"], control="c", cluster="user_id"),
    ),
    "a ratio": (
        sessions,
        lambda f: rd.compare_variants(f, {"r": ("x", "z")}, control="c", cluster="user_id"),
    ),
    "with a covariate": (
        sessions,
        lambda f: rd.compare_variants(
            f, ["x"], control="c", covariates="pre", cluster="user_id", weight_col="w"
        ),
    ),
    "resampled": (
        sessions,
        lambda f: rd.compare_variants(
            f, ["x"], control="c", cluster="user_id", test="bootstrap", n_resamples=99, by="s"
        ),
    ),
    "sessions": (
        sessions,
        lambda f: rd.compare_variants(
            f, ["x", "y"], control="c", user_col=["user_id", "session"], strata="s"
        ),
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("ids", few(IDS, ["text"]))
@pytest.mark.parametrize("call", CALLS)
def test_the_order_of_rows_changes_no_bit(call, ids):
    make, compute = CALLS[call]
    frame = make(IDS[ids])
    found = [
        compute(rows).reset_index(drop=True)
        for rows in (frame, shuffled(frame, 1), shuffled(frame, 2))
    ]
    for other in found[1:]:
        differ = [name for name in found[0] if not found[0][name].equals(other[name])]
        assert not differ
