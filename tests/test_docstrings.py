"""Docstrings in which a line such as `{by, seed}` stands for what another function says."""

import inspect
import re

import pytest

import recdf as rd
from recdf.docstrings import says_as


@pytest.mark.parametrize(
    "space", ["", "experiments", "ope", "logs", "diagnostics", "plot", "spark", "dask"]
)
def test_no_placeholder_is_left(space):
    module = getattr(rd, space) if space else rd
    for name in module.__all__:
        doc = inspect.getdoc(getattr(module, name)) or ""
        assert not re.findall(r"^ *{[A-Za-z_, ]+}$", doc, flags=re.M), name


def source():
    """Say it.

    Parameters
    ----------
    one, two : int
        The first and
        the second.
    by : str, optional

    Raises
    ------
    ColumnError
        If a column is missing.
    OptionError
        If an option is.

    Notes
    -----
    None.
    """


def test_parameters_and_sections_are_inserted():
    @says_as(source)
    def function():
        """Say it again.

        {one, by}

        {Raises}

        Examples
        --------
        """

    assert inspect.getdoc(function).split("\n\n") == [
        "Say it again.",
        "one, two : int\n    The first and\n    the second.\nby : str, optional",
        "Raises\n------\nColumnError\n    If a column is missing.\nOptionError\n    If an option "
        "is.",
        "Examples\n--------",
    ]


def test_help_of_moments_says_what_that_of_users_says():
    text = (
        "family : str or list of str, optional\n    Columns of the result whose values are "
        "separate families."
    )
    assert text in inspect.getdoc(rd.compare_variants)
    assert text in inspect.getdoc(rd.experiments.compare_variants_from_moments)
