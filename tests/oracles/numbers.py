"""Arithmetic that the oracles share."""

import math

NAN = math.nan


def ratio(numerator, denominator):
    """numerator / denominator, undefined when the denominator is 0."""
    return numerator / denominator if denominator else NAN


def choose(what, value, choices):
    """choices[value], with an error for a value that is not there."""
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}")
    return choices[value]


def mean(values):
    """Mean of the values that are not NaN; NaN when there is none."""
    kept = [v for v in values if not math.isnan(v)]
    return sum(kept) / len(kept) if kept else NAN


def average(values):
    return sum(values) / len(values) if values else NAN
