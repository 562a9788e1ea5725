"""The options that all calls share: their defaults, their valid values, and how a call takes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd

from ..errors import OptionError, closest, kind_of, valid
from .accepted import Duplicates, Ids, NanScore, NullKeys, PopulationRule, Ties, Undefined
from .conventions import Convention, find_convention
from .population import Population

CHOICES: dict[str, tuple[str, ...]] = {
    "users": get_args(PopulationRule),
    "ties": get_args(Ties),
    "duplicates": get_args(Duplicates),
    "null_keys": get_args(NullKeys),
    "nan_score": get_args(NanScore),
    "undefined": get_args(Undefined),
}

DESCRIPTION = """\
user_col, item_col : str, default "user_id", "item_id"
    Columns of the list key (a string or a list of strings) and of the item id.
score_col : str or False, optional
    Column of `pred` that orders the items of a list, descending. If neither it nor `rank_col` is given, a column named
    `rank` orders them, else one named `score`, else the order of the rows; `spec["order"]` tells which. With False it
    is the order of the rows, whatever the columns. Giving both is an error.
rank_col : str, optional
    Column of `pred` that orders the items of a list, ascending.
relevance_col : str or False, optional
    Column of `true` with the gain of each row, at least 0. If it is not given, a column named `relevance` is taken,
    else every row has gain 1; `spec["relevance"]` tells which. With False, every row has gain 1, whatever the columns.
    A row of gain 0 is judged and not relevant.
min_relevance : float, optional
    Rows of `true` with a smaller relevance count as judged and not relevant.
value_col : str, optional
    Column with the value (price) of an item, for the money metrics: as recommended in `pred` and as bought in `true`,
    or else in `items`.
weight_col : str or mapping, optional
    Weight of a list in every mean, at least 0. It is a column of the frame `users` if that has it, else a column of
    `true` that is constant within a list. It may also be a mapping of users to weights. `per_user` has the weights as a
    column.
propensity_col : str, optional
    Column of `true`: the probability, above 0 and at most 1, that a relevant item was observed. A relevant item then
    counts 1/propensity in recall, precision, ndcg, mapr and mrr; other metrics that read `true` refuse it. Repeated
    rows of one item in a list must agree.
propensity_floor : float, default 0
    Propensities below it count as this number, which limits how much one item can count. If it is above 0, propensities
    may be 0.
judged_only : bool, default False
    Drop recommended items that `true` does not judge, then rank again (condensed lists).
by : str or list of str, optional
    Columns of `pred` that tell recommenders apart; each value is evaluated on the whole population.
by_in_true : bool, str or list of str, optional
    Columns of `by` that `true` has too, such as the fold of a cross-validation. Each value is then evaluated with the
    rows of `true` that have the same value, and over their users. True takes all such columns. By default and with
    False each value is evaluated with all rows of `true`; by default, a `FoldByWarning` says so.
users : {"true", "pred", "both", "all"}, list of ids or frame of ids, default "true"
    Population: the lists over which a mean is taken. The key columns of the result have the dtype of the frame that the
    population comes from. With "all" it is the dtype in which the keys of both frames fit, as `pandas.concat` chooses
    it. Where a frame is read from several files, it is the dtype in which the keys of all of them fit.
ties : {"item_desc", "item_asc", "row", "worst", "raise"}, default "item_desc"
    Order of equal scores: larger item id first, smaller first, row order, relevant last, or an error.
duplicates : {"drop", "keep", "raise"}, default "drop"
    What happens where a (list, item) pair stands twice: the row with the best rank (`pred`) or the largest gain
    (`true`) stays; or every row counts, and the second recommendation of an item matches its second row in `true`; or
    an error is raised.
null_keys : {"raise", "drop"}, default "raise"
    What happens to rows with a null user, item or `by` value.
nan_score : {"raise", "last", "drop"}, default "raise"
    What happens to rows with a null score or rank: they raise an error, they are ranked last, or they are dropped as if
    they had not been given.
undefined : {"nan", "zero", "raise"}, default "nan"
    What stands for the value of a metric where a list has none, such as recall of a list without relevant items. "zero"
    never gives the best value: where smaller values are better it is the worst bound, such as 1 of ils, and a metric
    that has no such bound (first_rank, rmse) stays undefined there. `n_undefined` counts these lists in any case.
like : str or Convention, optional
    Convention of another library, as `conventions_table()` lists them. It sets the defaults of all of the above and of
    the parameters of metrics. Options that are given explicitly take precedence."""


@dataclass(frozen=True)
class Options:
    """Options of one call, checked."""

    user_col: str | Sequence[str] = "user_id"
    item_col: str = "item_id"
    score_col: str | Literal[False] | None = None
    rank_col: str | None = None
    relevance_col: str | Literal[False] | None = None
    min_relevance: float | None = None
    value_col: str | None = None
    weight_col: str | Mapping[Any, float] | None = None
    propensity_col: str | None = None
    propensity_floor: float = 0.0
    judged_only: bool = False
    by: str | Sequence[str] | None = None
    by_in_true: bool | str | Sequence[str] | None = None
    users: PopulationRule | Ids = "true"
    ties: Ties = "item_desc"
    duplicates: Duplicates = "drop"
    null_keys: NullKeys = "raise"
    nan_score: NanScore = "raise"
    undefined: Undefined = "nan"
    like: str | Convention | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        """Make options from those given; the rest are those of the convention `like=`, or else the defaults."""
        convention = find_convention(given.get("like"))
        defaults = {} if convention is None else convention.options
        check_names(list(defaults), NAMES, "the convention")
        given = {name: _plain_value(name, value) for name, value in given.items()}
        return cls(**{**defaults, **given, "like": convention})

    def parameters(self, metric: str) -> Mapping[str, Any]:
        """Return the parameters that the convention has for a metric."""
        return {} if self.convention is None else self.convention.metrics.get(metric, {})

    @property
    def convention(self) -> Convention | None:
        return find_convention(self.like)

    @property
    def population(self) -> Population:
        return Population.of(self.users)

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if name == "users" and isinstance(value, Collection) and not isinstance(value, str | bytes):
                continue
            check_choice(name, value, allowed, ", or a list, Series or frame of ids" if name == "users" else "")
        if self.score_col and self.rank_col is not None:
            raise OptionError(
                f"score_col={self.score_col!r} and rank_col={self.rank_col!r} are both given; "
                "the order of `pred` has one source"
            )
        if isinstance(self.relevance_col, bool) and self.relevance_col:
            raise OptionError("relevance_col=True; expected the name of a column of true, False or None")
        if not isinstance(self.judged_only, bool):
            raise OptionError(f"judged_only={self.judged_only!r}; expected True or False")
        if not isinstance(self.weight_col, Hashable | Mapping):
            raise OptionError(
                f"weight_col is {kind_of(self.weight_col)}; expected the name of a column, or a mapping of "
                "users to weights, such as series.to_dict()"
            )
        if isinstance(self.weight_col, Mapping) and len(as_columns(self.user_col)) > 1:
            raise OptionError(
                f"weight_col is a mapping, which has one key, but user_col={self.user_col!r}; give the weights as a "
                "column of true, or of users="
            )
        floor = self.propensity_floor
        if isinstance(floor, bool) or not isinstance(floor, int | float | np.number) or not 0 <= floor <= 1:
            raise OptionError(f"propensity_floor={floor!r}; expected a number from 0 to 1")
        if floor > 0 and self.propensity_col is None:
            raise OptionError(f"propensity_floor={floor!r} needs propensity_col=, the column of true that it limits")
        if self.min_relevance is not None and (
            isinstance(self.min_relevance, bool | str)
            or pd.isna(self.min_relevance)
            or abs(self.min_relevance) == float("inf")
        ):
            raise OptionError(f"min_relevance={self.min_relevance!r}; expected a finite number or None")

    @property
    def weight_name(self) -> str | None:
        """The column of weights in the per-user table; None without weights."""
        return "weight" if isinstance(self.weight_col, Mapping) else self.weight_col

    @property
    def weight_source(self) -> Literal["true", "users", "mapping"] | None:
        """Where the weights of lists come from; None without weights."""
        if self.weight_col is None or isinstance(self.weight_col, Mapping):
            return None if self.weight_col is None else "mapping"
        columns = getattr(self.population.given, "columns", ())
        return "users" if self.weight_col in columns else "true"

    def updated(self, **changes: Any) -> Options:
        return replace(self, **changes)

    def spec(self) -> dict[str, Any]:
        """Return the options in types that JSON has; a population given by ids is described and not copied."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["users"] = self.population.words
        if isinstance(self.weight_col, Mapping):
            values["weight_col"] = f"{len(self.weight_col)} given weights"
        for name, value in values.items():
            if name in ("user_col", "by", "by_in_true") and not isinstance(value, str | bool | None):
                values[name] = [str(one) for one in as_columns(value)]
            elif name.endswith("_col") and value is not None and value is not False:
                values[name] = str(value)
        if self.min_relevance is not None:
            values["min_relevance"] = float(self.min_relevance)
        values["propensity_floor"] = float(self.propensity_floor)
        values["like"] = None if self.convention is None else self.convention.name
        return values


NAMES = tuple(field.name for field in fields(Options))


def collected(data: Any) -> Any:
    """Return a lazy frame of polars as a frame, and anything else as it is."""
    lazy = type(data).__module__.partition(".")[0] == "polars" and hasattr(data, "collect")
    return data.collect() if lazy else data


def _plain_value(name: str, value: Any) -> Any:
    """Return scalars of numpy as those of Python, several columns as a list, and lazy frames as frames."""
    if isinstance(value, np.generic):
        return value.item()
    several = name in ("user_col", "by", "by_in_true") and isinstance(value, np.ndarray | pd.Series | pd.Index)
    return value.tolist() if several else collected(value)


def as_columns(columns: str | Sequence[str] | None) -> list[str]:
    """Return an option that names one or more columns as a list of names."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) or not isinstance(columns, Sequence | pd.Index) else list(columns)


def check_choice(name: str, value: object, allowed: Sequence[object], also: str = "") -> None:
    """Raise OptionError unless `value` is one of `allowed`. `also` says what else would be."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        choices = ", ".join(map(repr, allowed))
        raise OptionError(f"{name}={value!r}; valid are {choices}{also}{closest(str(value), allowed)}")


def check_names(given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise OptionError for the first name that is not known. The message lists the known ones."""
    for name in given:
        if name not in known:
            raise OptionError(f"{what} has no option {name!r}{valid(name, known)}")


def check_shared(given: Collection[str], function: Callable[..., Any]) -> None:
    """Raise OptionError for the first name that is no shared option. The message lists all that the function takes."""
    if not set(given) <= set(NAMES):
        parameters = inspect.signature(function).parameters.values()
        check_names(given, [one.name for one in parameters if one.default is not one.empty], function.__name__)


def parameters() -> list[inspect.Parameter]:
    """Return the options as keyword-only parameters, for signatures."""
    return [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(Options)
    ]


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_options(function: Function) -> Function:
    """Show the shared options in the signature of a function that takes them as `**options`."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=own + parameters())  # type: ignore[attr-defined]
    doc = inspect.getdoc(function) or ""
    function.__doc__ = doc.replace("{options}", DESCRIPTION)
    return function


def says_as(source: Callable[..., Any]) -> Callable[[Function], Function]:
    """Put what the docstring of `source` says of parameters or sections where another has a line `{their, names}`."""
    said = inspect.getdoc(source) or ""

    def text(name: str) -> str:
        return str(re.findall(rf"^{name}\b[\w, ]*(?: :.*(?:\n    .*)*|\n-+(?:\n.+)*)", said, re.M)[0])

    def with_texts(function: Function) -> Function:
        own = inspect.getdoc(function) or ""
        function.__doc__ = re.sub(r"^{(.+)}$", lambda line: "\n".join(map(text, line[1].split(", "))), own, flags=re.M)
        return function

    return with_texts
