"""Digits follow the interval, over all magnitudes, in every place that writes an estimate."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recdf.tables.cells import brief, brief_cells, estimated, form_of, number, plus_minus

UNITS = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
NUMBER = re.compile(r"^[<>]?([+−]?)([\d,]+\.?\d*)(?:([MGTP])|e(−?\d+))?(%?)$")
magnitudes = st.floats(-12, 15).map(lambda power: 10.0**power)
shares = st.floats(-6, 2).map(lambda power: 10.0**power)


def read(text):
    """Return the number that a text says, and the size of its last digit."""
    sign, digits, unit, power, percent = NUMBER.match(text).groups()
    scale = float(f"1e{power.replace('−', '-')}") if power else UNITS[unit or ""]
    scale *= 0.01 if percent else 1
    decimals = len(digits.partition(".")[2])
    value = float(digits.replace(",", "")) * scale * (-1 if sign == "−" else 1)
    return value, scale * 10.0**-decimals


@given(magnitudes, shares, st.sampled_from([1, -1]), st.sampled_from(["", "+", "%", "+%"]))
def test_two_digits_of_half_the_interval_count(size, share, side, sign):
    value, half = side * size, size * share
    words = estimated(value, value - half, value + half, sign)
    found = [text for text in re.split(r" \[|, |\]", words) if text]
    for text, meant in zip(found, (value, value - half, value + half), strict=True):
        shown, _ = read(text)
        if text[0] in "<>":  # a bound that is not 0, and smaller than the last digit
            assert 0 < meant / shown < 1, words
        else:
            assert abs(shown - meant) <= 0.051 * half * (1 + 1e-9), words
    text, beside = plus_minus(value, half)
    assert read(text)[0] != 0
    width, _ = read(beside.removeprefix("± "))
    assert width > 0
    assert abs(width - half) <= 0.051 * half
    assert float(f"{width:.1e}") == pytest.approx(width) or share < 1e-3 or abs(value) < half / 20
    assert len(text) <= 24


@given(magnitudes, st.sampled_from(["", "+", "%"]))
def test_a_number_that_is_not_0_is_not_written_as_0(size, sign):
    text = estimated(size, sign=sign)
    assert read(text)[0] == pytest.approx(size, rel=0.006)
    assert len(text) <= 12


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (0.000509, 0.000023, ("0.000509", "± 0.000023")),
        (1.23456e-9, 1e-10, ("1.23e−9", "± 0.10e−9")),
        (1352983870967.742, 4.5e9, ("1.3530T", "± 0.0045T")),
        (123456, 4512, ("123,500", "± 4,500")),
        (0.18539, 0.0131, ("0.185", "± 0.013")),
        (0.18539, 0.0996, ("0.19", "± 0.10")),
        (0.0, 0.01, ("0.000", "± 0.010")),
        (0.5, 0.0, ("0.5", "")),
        (0.5, 1e-18, ("0.5", "")),
        (np.nan, np.nan, ("–", "")),
        (5.0, np.nan, ("5", "")),
    ],
)
def test_values_with_half_their_interval(value, half, shown):
    assert plus_minus(value, half) == shown


def test_a_bound_that_is_rounding_alone_is_0():
    """0.3 − 0.3 in steps of 0.1 is 5.6e-17."""
    assert estimated(0.3, 0.1 + 0.2 - 0.3, 0.6, "%") == "30% [0%, 60%]"
    assert estimated(0.3, 1e-7, 0.6) == "0.30 [<0.01, 0.60]"


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.0463, 0.00003, 0.0926), "+0.04630 [+0.00003, +0.09260]"),
        ((-0.0002, -0.0462, 0.0458), "−0.0002 [−0.0462, +0.0458]"),
        ((0.0463, 1e-9, 0.0926), "+0.046 [<0.001, +0.093]"),
        ((-0.463, -0.926, -1e-9), "−0.46 [−0.93, >−0.01]"),
        ((0.05, 0.01, math.inf), "+0.050 [+0.010, +∞]"),
        ((0.05, np.nan, np.nan), "+0.05"),
        ((np.nan, np.nan, np.nan), "–"),
        ((0.0, 0.0, 0.0), "0"),
        ((0.0, np.nan, np.nan), "0"),
        ((0.5, 0.5, 0.5), "+0.5"),
        ((0.0, -0.0131, 0.0131), "0.000 [−0.013, +0.013]"),
    ],
)
def test_no_bound_that_is_not_0_is_written_as_0(ends, shown):
    assert estimated(*ends, "+") == shown


def test_numbers_that_differ_are_written_differently():
    found = 0.15601, 0.15612
    form = form_of(*found, half=(found[1] - found[0]) / 2)
    assert [number(one, form) for one in found] == ["0.156010", "0.156120"]


def test_cells_of_a_command_follow_their_interval():
    table = pd.DataFrame(
        {
            "metric": ["revenue", "ctr"],
            "diff": [1.352e12, 0.000509],
            "ci_low": [1.30e12, 0.000486],
            "ci_high": [1.404e12, np.nan],
            "p_adj": [0.04567, np.nan],
            "n_users": [12345, 7],
        }
    )
    assert brief_cells(table) == {
        "metric": ["revenue", "ctr"],
        "diff": ["1.352T", "0.000509"],
        "ci_low": ["1.300T", "0.000486"],
        "ci_high": ["1.404T", ""],
        "p_adj": ["0.04567", ""],
        "n_users": ["12345", "7"],
    }
    assert [brief(one) for one in (1234.5678, 1e-9, pd.Timestamp("2026-11-20"), None)] == [
        "1,235",
        "1e−9",
        "2026-11-20",
        "",
    ]
