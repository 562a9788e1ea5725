"""Slow, obvious oracles: every metric once more in plain lists, dicts and loops, written from the
definitions alone.

They share nothing with the package, so that a test which finds both equal says something. To add a
metric, write one function under `@oracle` in the module of its family: of one list (`OneList`,
which knows its user and the world of side tables around it), or with `@oracle(of_all=True)` of all
lists (`AllLists`) for a metric of exposure.
"""

import importlib
import math
import pkgutil

from oracles.lists import AllLists, OneList, World, match_lists
from oracles.numbers import mean
from oracles.registry import OF_ALL_LISTS, ORACLES, oracle

for one in pkgutil.iter_modules(__path__):  # each module registers the oracles of a family
    importlib.import_module(f"oracles.{one.name}")

__all__ = [
    "OF_ALL_LISTS",
    "ORACLES",
    "AllLists",
    "OneList",
    "World",
    "evaluate",
    "match_lists",
    "mean",
    "oracle",
]


def evaluate(true, pred, metric, k=10, *, params=None, undefined="nan", users="true", **options):
    """{user: value of the metric} over the population, in its order; a dict of counts per user for
    confusion.

    `true` and `pred` are lists of row dicts in frame order; the options are those of `match_lists`.
    """
    function = ORACLES[metric]
    result = {}
    for user, one in match_lists(true, pred, k, users=users, **options).items():
        value = function(one, **(params or {}))
        if isinstance(value, dict):
            result[user] = value
        elif math.isnan(value) and undefined == "zero":
            result[user] = 0.0
        else:
            result[user] = float(value)
    return result
