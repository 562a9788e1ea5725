"""Generated experiments, with metrics, options and dtypes in all combinations: files, frames in
parts and frames of Dask give the table of the rows in memory."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.inputs.machine import USUAL_SIZES, sized
from recdf.judge import in_parts

VALUES = {
    "gamma": lambda rng, n: rng.gamma(2, 3, n),
    "heavy": lambda rng, n: rng.lognormal(0, 2, n),
    "rare": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.exponential(5, n)),
    "shares": lambda rng, n: rng.binomial(1, rng.choice([0.02, 0.3, 0.97]), n).astype(float),
    "bools": lambda rng, n: rng.random(n) < 0.45,
    "small integers": lambda rng, n: rng.integers(0, 9, n).astype("int8"),
    "unsigned": lambda rng, n: rng.integers(0, 1000, n).astype("uint64"),
    "huge": lambda rng, n: 1e12 + rng.normal(0, 1, n),
    "tiny": lambda rng, n: 1e-9 * rng.gamma(1, 1, n),
    "constant": lambda rng, n: np.full(n, 3.0),
    "rounded": lambda rng, n: np.round(rng.exponential(2, n)),
    "single precision": lambda rng, n: rng.normal(0, 1, n).astype("float32"),
}
NULLABLE = {"b": "boolean", "i": "Int64", "u": "UInt64", "f": "Float64"}


def experiment(seed):
    """Users, and the arguments of a comparison of them."""
    rng = np.random.default_rng(seed)
    n, n_arms = int(rng.choice([150, 400, 1500])), int(rng.choice([2, 2, 3]))
    even = rng.random() < 0.6
    shares = np.full(n_arms, 1 / n_arms) if even else rng.dirichlet(np.full(n_arms, 8.0))
    arms = [["A", "B", "C"], ["old", "new", "other"], [0, 1, 2]][int(rng.integers(3))][:n_arms]
    users = pd.DataFrame({"user_id": rng.permutation(n)})
    users["variant"] = np.array(arms)[rng.choice(n_arms, n, p=shares)]
    metrics, covariates = {}, {}
    for name in ("m0", "m1", "m2")[: int(rng.integers(1, 4))]:
        users[name] = VALUES[rng.choice([*VALUES])](rng, n)
        if users[name].dtype == float and rng.random() < 0.3:
            users.loc[rng.random(n) < 0.1, name] = np.nan
        plain = users[name].astype(float)
        if rng.random() < 0.15:
            users[name] = users[name].astype(NULLABLE[users[name].dtype.kind])
        metrics[name] = name
        if rng.random() < 0.4:
            plain = plain.fillna(plain.mean())
            users[f"{name}_before"] = plain / 2 + rng.normal(0, plain.std() or 1, n)
            covariates[name] = f"{name}_before"
    if rng.random() < 0.4:
        users["views"] = rng.poisson(3, n)
        users["clicks"] = rng.binomial(users["views"], 0.3)
        metrics["ctr"] = ("clicks", "views")
    given = {"control": arms[int(rng.integers(n_arms))], "nan": "drop"}
    given |= {"covariates": covariates} if covariates else {}
    for share, name, value in (
        (0.3, "strata", "region"),
        (0.3, "by", "segment"),
        (0.2, "alternative", str(rng.choice(["greater", "less"]))),
        (0.3, "correction", str(rng.choice(["bonferroni", "bh", "none"]))),
        (0.2, "confidence", 0.9),
        (0.2, "sequential_n", 2 * n),
        (0.2, "smaller_is_better", "m0"),
        (0.2, "expected", dict(zip(arms, shares.tolist(), strict=True))),
        (0.25, "time_col", "since"),
        (0.15, "weight_col", "weight"),
        (0.15, "cluster", "shop"),
    ):
        if rng.random() < share:
            given[name] = value
    users["region"], users["segment"] = rng.choice(["p", "q", "r"], n), rng.choice(["x", "y"], n)
    users["since"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 20, n), "D")
    users["weight"], users["shop"] = rng.integers(1, 4, n).astype(float), rng.integers(0, n // 3, n)
    unused = {"region": "strata", "segment": "by", "since": "time_col", "weight": "weight_col"}
    unused |= {"shop": "cluster"}
    return users.drop(columns=[one for one, name in unused.items() if name not in given]), {
        "metrics": metrics,
        **given,
    }


def table(users, given):
    """The table, or what the error says."""
    try:
        return pd.DataFrame(rd.compare_variants(users, **given, details=True))
    except rd.RecdfError as error:
        return f"{type(error)}: {error}"


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(10), 117, 118, 144])
@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
def test_files_parts_and_dask_give_the_table_of_the_rows(seed, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    users, given = experiment(seed)
    expected = table(users, given)
    monkeypatch.setattr(in_parts, "_WAITING", 100)
    users.to_parquet(
        tmp_path / "users.parquet", index=False, row_group_size=max(50, len(users) // 3)
    )
    forms = [users, tmp_path / "users.parquet", dask.from_pandas(users, npartitions=3, sort=False)]
    with sized(replace(USUAL_SIZES, summed_rows=50, summed_batch=128)):
        for found in (table(one, given) for one in forms):
            if isinstance(expected, str):
                assert found == expected
            else:
                pd.testing.assert_frame_equal(
                    found, expected, rtol=1e-8, atol=1e-12, check_dtype=False
                )
