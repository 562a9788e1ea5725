"""Run the libraries that this Python has on the frames of golden/union, and keep what they say
beside them.

    PYTHON_WITH_THE_LIBRARIES tests/parity/collect_union.py

Writes `tests/golden/union/live.json`: convention -> metric -> value, of rows with ratings and
probabilities, and of the ten first items of the users that have as many. A library that is not
installed keeps its numbers.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

UNION = Path(__file__).resolve().parents[1] / "golden" / "union"


def surprise_numbers(rows):
    from surprise import Prediction, accuracy

    found = [
        Prediction(row.user_id, row.item_id, row.rating, row.prediction, {})
        for row in rows.itertuples()
    ]
    names = {"pooled_mae": accuracy.mae, "pooled_mse": accuracy.mse, "pooled_rmse": accuracy.rmse}
    return {name: function(found, verbose=False) for name, function in names.items()}


def cornac_numbers(rows):
    from cornac.metrics import MAE, MSE, RMSE

    names = {"pooled_mae": MAE, "pooled_mse": MSE, "pooled_rmse": RMSE}
    given = {
        "gt_ratings": rows["rating"].to_numpy(float),
        "pd_ratings": rows["prediction"].to_numpy(),
    }
    return {name: metric().compute(**given) for name, metric in names.items()}


def sklearn_numbers(rows):
    from sklearn import metrics

    names = {
        "pooled_mae": metrics.mean_absolute_error,
        "pooled_rmse": metrics.root_mean_squared_error,
    }
    return {name: function(rows["rating"], rows["prediction"]) for name, function in names.items()}


def recmetrics_numbers(rows):
    from adapters.frames import module_of

    metrics = module_of("recmetrics", "metrics.py")
    given = list(rows["rating"]), rows["prediction"].to_numpy()
    shown = _ten().groupby("user_id")["item_id"].agg(list).tolist()
    items = pd.read_csv(UNION / "items.csv")
    features = items.set_index("item_id")[["x", "y", "z"]]
    return {
        "pooled_mse": metrics.mse(*given),
        "pooled_rmse": metrics.rmse(*given),
        "coverage@10": metrics.prediction_coverage(shown, list(items["item_id"])) / 100,
        "personalization@10": metrics.personalization(shown),
        "ils@10": metrics.intra_list_similarity(shown, features),
    }


def recbole_numbers(rows):
    for name, kind in {
        "float": float,
        "bool": bool,
    }.items():  # its metrics read names that numpy has dropped
        setattr(np, name, kind)
    from recbole.evaluator import metrics

    clicks = pd.read_csv(UNION / "clicks.csv")
    config = {"metric_decimal_place": 9, "topk": [10]}
    given = rows["prediction"].to_numpy(), rows["rating"].to_numpy(float)
    shown = np.stack(_ten().groupby("user_id")["item_id"].agg(list))
    codes = {item: code for code, item in enumerate(pd.read_csv(UNION / "items.csv")["item_id"])}
    matrix = np.vectorize(codes.get)(shown)
    log = Counter(codes[item] for item in pd.read_csv(UNION / "log.csv")["item_id"])
    popular = metrics.AveragePopularity(config)
    return {
        "pooled_mae": metrics.MAE(config).metric_info(*given),
        "pooled_rmse": metrics.RMSE(config).metric_info(*given),
        "pooled_log_loss": metrics.LogLoss(config).metric_info(
            clicks["probability"], clicks["label"]
        ),
        "coverage@10": metrics.ItemCoverage(config).get_coverage(matrix, len(codes)),
        "popularity@10": popular.metric_info(popular.get_pop(matrix, log)).mean(axis=0)[9],
    }


def _ten():
    """The ten first items of the users that have as many."""
    pred = pd.read_csv(UNION / "pred.csv").sort_values(["user_id", "rank"])
    pred = pred[pred["rank"] <= 10]
    return pred[pred.groupby("user_id")["item_id"].transform("size") == 10]


def main():
    rows, path = pd.read_csv(UNION / "ratings.csv"), UNION / "live.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for function in (
        surprise_numbers,
        cornac_numbers,
        sklearn_numbers,
        recmetrics_numbers,
        recbole_numbers,
    ):
        try:
            numbers = function(rows)
        except ImportError as error:
            print(function.__name__, error)
            continue
        found[function.__name__.removesuffix("_numbers")] = {
            name: float(value) for name, value in numbers.items()
        }
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
