"""Whether a function of the package is called, and results that do not depend on it."""

import importlib

import pandas as pd
import pyarrow as pa

import recdf as rd

match = importlib.import_module("recdf.matching.match")
METRICS = ["precision", "recall", "ndcg", "mapr", "mrr", "hitrate", "auc"]
N_LISTS, N_PRED, N_ITEMS = 60, 12, 80
STRINGS = {"user_id": "str", "item_id": "str"}
ARROW_TYPES = [pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


def shuffled(frame):
    return frame.sample(frac=1, random_state=3, ignore_index=True)


def result(true, pred, **options):
    return rd.evaluate(true, pred, METRICS, k=[1, 5, 20], **options)


def assert_same(one, two):
    """Row for row, by the labels of the lists; order and dtype of the labels may differ."""
    keys = [name for name in one.per_user.columns if name in ("model", "user_id", "session")]

    def in_order(evaluation):
        table = evaluation.per_user
        return table.astype(dict.fromkeys(keys, str)).sort_values(keys, ignore_index=True)

    pd.testing.assert_frame_equal(in_order(one), in_order(two), check_exact=True)
    numbers = one.summary.select_dtypes("number")
    pd.testing.assert_frame_equal(numbers, two.summary[numbers.columns], rtol=1e-12, atol=1e-15)


class Watch:
    """Calls of a function that goes on as before."""

    def __init__(self, monkeypatch, module, name):
        self.calls, self.answers = [], []
        function = getattr(module, name)

        def watched(*args, **options):
            self.calls.append(args)
            self.answers.append(function(*args, **options))
            return self.answers[-1]

        monkeypatch.setattr(module, name, watched)


def refuse(monkeypatch, module, name):
    def refused(*_, **__):
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(module, name, refused)
