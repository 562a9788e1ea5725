"""Tables of compare_variants beside numbers that other programs gave."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

HERE = Path(__file__).parents[1] / "golden"

GOLDEN = json.loads((HERE / "inference.json").read_text(encoding="utf-8"))["experiment"]

TT = {
    "mean_control": "control",
    "mean_treatment": "treatment",
    "diff": "effect_size",
    "ci_low": "effect_size_ci_lower",
    "ci_high": "effect_size_ci_upper",
    "rel_diff": "rel_effect_size",
    "rel_ci_low": "rel_effect_size_ci_lower",
    "rel_ci_high": "rel_effect_size_ci_upper",
    "p_value": "pvalue",
    "statistic": "statistic",
}


def lin(values, treated, covariates):
    """Difference and HC2 standard error of Lin's regression (2013) by statsmodels."""
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    t = treated.to_numpy(float)[:, None]
    centred = covariates.to_numpy() - covariates.to_numpy().mean(axis=0)
    fit = sm.OLS(values.to_numpy(), np.hstack([np.ones_like(t), t, centred, t * centred])).fit(
        cov_type="HC2"
    )
    return fit.params[1], fit.bse[1]


def row(table, **where):
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


NOT_CHECKED = " (sample ratio not checked)"


def words(table):
    """Verdicts without the remark that the sample ratio was not checked."""
    return [verdict.removesuffix(NOT_CHECKED) for verdict in table["verdict"]]


def close(found, recorded, names=TT):
    np.testing.assert_allclose(
        [found[name] for name in names],
        [recorded[other] for other in names.values()],
        rtol=1e-9,
        atol=1e-9,
    )


# -- join


METRICS = pd.DataFrame({"user_id": [1, 2, 3], "n_pred": [10, 10, 10], "ndcg@10": [0.5, 0.25, 1.0]})

GROUPS = pd.DataFrame(
    {"user_id": [4, 2, 1], "variant": ["B", "B", "A"], "segment": ["x", "y", "x"]}
)
