"""Small experiments whose verdict is known."""

import numpy as np
import pandas as pd

import recdf as rd

NUMBERS = ["se", "ci_low", "ci_high", "statistic", "df", "p_value", "p_adj", "mde"]


def arms(control, treatment, **columns):
    n = len(control), len(treatment)
    return pd.DataFrame(
        {
            "user_id": range(sum(n)),
            "variant": ["A"] * n[0] + ["B"] * n[1],
            "m": np.concatenate([control, treatment]),
            **columns,
        }
    )


def compare(data, metric="m", **options):
    table = rd.compare_variants(data, metric, control="A", **options, details=True)
    assert (
        not np.isinf(table.select_dtypes("number").to_numpy(float, na_value=0)).any()
        or "alternative" in options
    )
    return table.iloc[0]


def payers(rng, n, share=0.05, sigma=1.5):
    return (rng.random(n) < share) * rng.lognormal(0, sigma, n)
