"""Exceptions and warnings of recdf.

Each exception also subclasses the builtin that a user would catch without knowing recdf, and each
warning is a class of its own so that it can be filtered.
"""


class RecdfError(Exception):
    """Base of every error that recdf raises on purpose."""


class ColumnError(RecdfError, KeyError):
    """A column that a call names is not in the frame."""

    # KeyError shows repr(message), which turns the newlines of a helpful message into "\n".
    __str__ = Exception.__str__


class IdTypeError(RecdfError, TypeError):
    """The ids of two columns are of kinds that can never be equal."""


class NullKeyError(RecdfError, ValueError):
    """A user, item or `by` value is null."""


class OptionError(RecdfError, ValueError):
    """An unknown metric, parameter, convention, option, or a value that it does not take."""


class DataError(RecdfError, ValueError):
    """A column holds values that no metric can be computed from."""


class DuplicateError(RecdfError, ValueError):
    """A (list, item) pair stands twice and `duplicates="raise"`."""


class TieError(RecdfError, ValueError):
    """Two items of one list have the same score and `ties="raise"`."""


class EmptyPopulationError(RecdfError, ValueError):
    """There is no list to take a mean over."""


class UndefinedMetricError(RecdfError, ValueError):
    """A metric has no value for a list and `undefined="raise"`."""


class MissingExtraError(RecdfError, ImportError):
    """An optional library that a call needs is not installed."""


class RecdfWarning(UserWarning):
    """Base of every warning of recdf."""


class DuplicateWarning(RecdfWarning):
    """Duplicate (list, item) rows were dropped."""


class NoOverlapWarning(RecdfWarning):
    """No recommended pair shares a user, or no item, with `true`."""
