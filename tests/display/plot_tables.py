"""Small tables for pictures, by hand."""

import pandas as pd


def effects():
    """Five days of an effect, out of order."""
    return pd.DataFrame(
        {
            "period": [3, 1, 2, 5, 4],
            "metric": "revenue",
            "kind": "cumulative",
            "diff": [0.3, 0.1, 0.2, 0.5, 0.4],
            "ci_low": [0.0, -1.0, -0.5, 0.3, 0.1],
            "ci_high": [0.6, 1.2, 0.9, 0.7, 0.7],
            "n_control": 10,
            "n_treatment": 12,
        }
    )


def many_models(n):
    """A summary by hand: model i has value i/100 at k = 1 and i/50 at k = 2."""
    return pd.DataFrame(
        [
            {
                "model": f"m{i}",
                "metric": "ndcg",
                "k": k,
                "value": i * k / 100,
                "ci_low": 0.0,
                "ci_high": 1.0,
                "n": 9,
                "n_undefined": 0,
            }
            for i in range(n)
            for k in (1, 2)
        ]
    )
