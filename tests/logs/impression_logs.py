"""Small logs of impressions and purchases."""

import warnings

import pandas as pd

import recdf as rd

START = pd.Timestamp("2026-09-01 10:00")


def quietly(*args, **options):
    """from_impressions without the warnings that events belong to no impression, come just before
    it, or stand twice, which small logs often get."""
    with warnings.catch_warnings():
        for category in (rd.NoOverlapWarning, rd.DuplicateWarning, rd.LogWarning):
            warnings.simplefilter("ignore", category)
        return rd.from_impressions(*args, **options)


def log_of(**columns):
    """Three impressions of ann, two of them in one list, and one of bob."""
    found = pd.DataFrame(
        {
            "user_id": ["ann", "ann", "ann", "bob"],
            "session_id": [1, 1, 2, 1],
            "item_id": ["tea", "mug", "tea", "tea"],
            "position": [0, 3, 0, 1],
            "time": START + pd.to_timedelta([0, 0, 60, 0], unit="min"),
        }
    )
    return found.assign(**columns)


def bought(minutes, item="tea", user="ann", price=5.0):
    return pd.DataFrame(
        {
            "user_id": [user],
            "item_id": [item],
            "time": [START + pd.Timedelta(minutes, "min")],
            "price": [price],
        }
    )
