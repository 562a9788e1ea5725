"""Exceptions and warnings of recdf.

Each exception also subclasses the builtin that a user would catch without knowing recdf, and each
warning is a class of its own so that it can be filtered.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, Self

import pandas as pd


class Mention(NamedTuple):
    """A part of a message that its readers write in words of their own.

    kind : "argument", "advice" (an argument to pass), "call" or "convert" (a column to another
    type) · name : of the argument, function or type · value : of the argument, or the arguments of
    the call, as Python writes them; the column to convert · key : of one value of a mapping, in
    brackets; "with " or "both " of a conversion.
    """

    kind: Literal["argument", "advice", "call", "convert"]
    name: str
    value: str = ""
    key: str = ""

    def __str__(self) -> str:
        if self.kind == "call":
            return f"rd.{self.name}{self.value}"
        if self.kind == "convert":
            return self.converted(f".astype({self.name})")
        return f"{self.name}{self.key}={self.value}"

    def converted(self, how: str) -> str:
        """A conversion as it is written where `how` is called on a column."""
        return (
            f"both with {how} on {self.value}"
            if self.key == "both "
            else f"{self.key}{self.value}{how}"
        )


Words = Callable[[Mention], str]
# How the reader of messages writes such parts. The command sets it while it runs.
WORDS: ContextVar[Words] = ContextVar("words", default=str)
# How messages mark parts: ⟦ties="row"⟧ is an argument, ⟦+ties="row"⟧ one to pass, ⟦rd.check(true,
# pred)⟧ a call, and ⟦with .astype(str)⟧ a conversion. Only these marks are read, never the sentence
# around them.
MARKED = re.compile(
    r"⟦(?:(\+?)(\w+)(\[[^⟧]*?\])?=([^⟧]*)|rd\.([\w.]+)([^⟧]*)"
    r"|(with |both )?([^⟧]*?)\.astype\(([^⟧]*)\))⟧"
)


def mentions_of(message: str) -> Iterator[str | Mention]:
    """Give the text of a message and its marked parts, in order."""
    end = 0
    for found in MARKED.finditer(message):
        yield message[end : found.start()]
        advice, name, key, value, call, given, how, column, kind = found.groups()
        if name is not None:
            yield Mention("advice" if advice else "argument", name, value, key or "")
        else:
            yield (
                Mention("convert", kind, column, how or "")
                if call is None
                else Mention("call", call, given)
            )
        end = found.end()
    yield message[end:]


def in_words(message: str, words: Words | None = None) -> str:
    """Return a message as its reader writes it: in Python's words, unless the command or an engine
    has its own."""
    words = WORDS.get() if words is None else words
    return "".join(
        words(part) if isinstance(part, Mention) else part for part in mentions_of(message)
    )


class _CarriesData(Exception):
    """What errors and warnings of recdf share: they carry what they speak of, and `str()` writes
    the sentence.

    Attributes
    ----------
    argument, value : str, object
        The argument that is wrong, and what was passed.
    column : str
        The column, such as "pred['score']".
    count : int
        How many rows or values are affected.
    examples : list
        Some of them.
    advice : list of (str, str)
        Arguments to pass instead, with their values as Python writes them ("" if they are the
        caller's to choose).

    What does not apply is None, or an empty list.
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        value: Any = None,
        column: str | None = None,
        count: int | None = None,
        examples: Iterable[Any] = (),
    ) -> None:
        super().__init__(in_words(message, str))
        parts = [part for part in mentions_of(message) if isinstance(part, Mention)]
        named = next((part.name for part in parts if part.kind == "argument"), None)
        self.marked, self.argument, self.value = (
            message,
            named if argument is None else argument,
            value,
        )
        self.column, self.count, self.examples = column, count, list(examples)
        self.advice = [(part.name, part.value) for part in parts if part.kind == "advice"]

    def __str__(self) -> str:
        return in_words(self.marked)

    @property
    def data(self) -> dict[str, Any]:
        """What the error speaks of, without its sentence."""
        return {
            name: getattr(self, name)
            for name in ("argument", "value", "column", "count", "examples")
        }

    def within(self, before: str = "", after: str = "") -> Self:
        """Return the same error with words before and behind its own."""
        return type(self)(before + self.marked + after, **self.data)

    def reword(self, words: Words) -> None:
        """Write the message in the words of another reader."""
        self.marked = in_words(self.marked, words)


class RecdfError(_CarriesData):
    """Base of every error that recdf raises on purpose."""


class ColumnError(RecdfError, KeyError):
    """A column that a call names is not in the frame."""


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


def not_loaded(needs: str, library: str, install: str, error: ImportError) -> Exception:
    """Return the error for an optional library: it is not installed, or it is and cannot be loaded,
    for example for lack of memory."""
    if isinstance(error, ModuleNotFoundError):
        return MissingExtraError(
            f"{needs} needs {library}, which is not installed; install it with: pip install "
            f"'{install}'"
        )
    text = f"{needs} needs {library}, which cannot be loaded: {error}"
    no_memory = re.search("memory|failed to map segment", str(error), re.I)
    return MemoryError(text) if no_memory else MissingExtraError(text)


class WriteError(RecdfError, OSError):
    """Files cannot be written because the disk or a quota is full; what was there before is still
    there."""


class EngineError(RecdfError, RuntimeError):
    """A job of Spark or Dask failed: a worker ended or ran out of memory, a file has gone, or
    versions differ."""


class RecdfWarning(_CarriesData, UserWarning):
    """Base of every warning of recdf."""


class DuplicateWarning(RecdfWarning):
    """Duplicate (list, item) rows were dropped."""


class RankWarning(RecdfWarning):
    """A rank stands twice in a list, as when `by=` is missing."""


class OrderWarning(RecdfWarning):
    """What orders `pred` is probably not what is meant: another column says otherwise, or the score
    is a rank or a distance."""


class LogWarning(RecdfWarning):
    """A log has rows twice, its events come just before their impression, or its shares are not
    those of an earlier run."""


class NoOverlapWarning(RecdfWarning):
    """No recommended pair shares a user, or no item, with `true`; or a side table shares none with
    both frames."""


class UnknownWarning(RecdfWarning):
    """A side table does not know many of the items or users that are looked up in it; or lists have
    no segment."""


class JudgedWarning(RecdfWarning):
    """Metrics need items that are judged as not relevant, and `true` has few or none."""


class ByWarning(RecdfWarning):
    """`by` tells users or lists apart and not recommenders, so that each value is scored over the
    users of all."""


class TimeByWarning(ByWarning):
    """`by` names a day or another time, so that each is scored over the users of all."""


class FoldByWarning(ByWarning):
    """`by` names a column that `true` has too, such as a fold, and each value is scored with all
    rows of `true`."""


class FewNegativesWarning(RecdfWarning):
    """So few negatives were sampled that the correction of a sampled metric is far too low for a
    good model."""


class WeightWarning(RecdfWarning):
    """A table was evaluated with weights, and its rows count alike here because no `weight_col` was
    passed."""


def closest(word: object, known: Iterable[object]) -> str:
    """Return `'; did you mean "x"?'` for the known word nearest to `word`, or an empty string. Of
    numbers only that with the same text is meant."""
    names = {str(one): one for one in known if isinstance(one, str) or str(one) == str(word)}
    match = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    return f"; did you mean {names[match[0]]!r}?" if match else ""


def valid(word: str, known: Iterable[str]) -> str:
    """Return what a message about an unknown word ends with: the nearest of the known ones, and all
    of them."""
    names = list(known)
    meant = closest(word, names)
    return (
        f"{meant} Valid are {', '.join(names)}"
        if meant
        else f"; valid are {', '.join(names) or 'none'}"
    )


def kind_of(value: object) -> str:
    """Return what a value is, for a message: `None`, or the name of its type with an article."""
    name = type(value).__name__
    of = type(value).__module__.partition(".")[0]
    if name == "DataFrame" and of != "pandas":
        name += f" of {of}"
    return (
        "None"
        if value is None
        else f"{'an' if name[0] in 'aeiouAEIOU' or name == 'ndarray' else 'a'} {name}"
    )


def examples(values: Any) -> str:
    """Show up to five distinct values for a message."""
    return ", ".join(list(dict.fromkeys(map(repr, pd.Series(values).head(1000).tolist())))[:5])


def warn_user(message: str, category: type[RecdfWarning], **data: Any) -> None:
    """Warn at the line outside this package that called it."""
    warnings.warn(category(message, **data), stacklevel=outside_recdf())


def outside_recdf() -> int:
    """Stack level, for warnings.warn in the caller, of the first frame outside this package."""
    here = os.path.dirname(__file__)
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
        level = level + 1
    return level
