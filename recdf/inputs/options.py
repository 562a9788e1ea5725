"""The options that all calls share, each in one record: its name, type, default, valid values, and
what it means."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from copy import copy
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypedDict,
    Unpack,
    get_args,
    get_type_hints,
)

import numpy as np
import pandas as pd

from ..docstrings import says_as
from ..errors import OptionError, valid
from .constraints import (
    ANY,
    COLUMN_KINDS,
    NONE,
    PLAIN_KINDS,
    Constraint,
    Duplicates,
    Ids,
    NanScore,
    NullKeys,
    Population,
    PopulationRule,
    Ties,
    Undefined,
    a_number,
    constraint_of,
    either,
    one_of,
)
from .conventions import LIKE, Convention, find_convention
from .lazy_frames import lazy_rows

# What signatures say of arguments: names, one name or several, such as those of columns, and frames
# by their roles or options by their names.
Names = Sequence[str]
Columns = str | Names
ByName = Mapping[str, Any]

GIVEN_IDS = Constraint(
    "a list, Series or frame of ids",
    lambda value: isinstance(value, Sized) and not isinstance(value, str | bytes),
    "list or frame of ids",
)
OF_USERS = Constraint(
    "a mapping of users to weights, such as series.to_dict()",
    lambda value: isinstance(value, Mapping),
    "mapping",
)
NAMES_OF = either(
    Constraint(
        "a mapping of standard names to those of the frame, such as {'user_id': 'uid'}",
        lambda names: (
            isinstance(names, Mapping)
            and all(isinstance(one, str) for one in (*names, *names.values()))
        ),
        "mapping",
    ),
    NONE,
)
SOME_TEXT = either(
    Constraint("a text", lambda value: isinstance(value, str) and value != "", "str"), NONE
)


@dataclass(frozen=True)
class Option:
    """The record of a shared option; without a constraint it takes what its type says."""

    default: Any
    doc: str
    constraint: Constraint = ANY
    name: str = ""
    hint: Any = None

    @property
    def flag_alone(self) -> bool:
        """Whether it takes a column, or else True or False: a flag without a column then stands for
        True."""
        return self.hint is not bool and any(
            one is bool or False in get_args(one) for one in get_args(self.hint)
        )

    @property
    def described(self) -> str:
        """The option as a docstring describes it."""
        default = (
            "optional" if self.default is None else f"default {self.default!r}".replace("'", '"')
        )
        text = textwrap.fill(self.doc, 96, break_on_hyphens=False, break_long_words=False)
        return f"{self.name} : {self.constraint.typed}, {default}\n{textwrap.indent(text, '    ')}"


class OptionArguments(TypedDict, total=False):
    """The shared options as keyword arguments, each with its record."""

    user_col: Annotated[
        Columns,
        Option(
            "user_id",
            "Column or columns of the list key.",
        ),
    ]
    item_col: Annotated[
        str,
        Option(
            "item_id",
            "Column of the item id.",
        ),
    ]
    true_cols: Annotated[
        Mapping[str, str] | None,
        Option(
            None,
            """
        Names of columns that `true` calls otherwise: the standard name, then that in `true`, as in
        {"user_id": "customer"}. The standard name is the one that the other options and the results
        use.""",
            NAMES_OF,
        ),
    ]
    pred_cols: Annotated[
        Mapping[str, str] | None,
        Option(
            None,
            """
        The same for `pred`, as in {"user_id": "uid", "score": "yhat"}.""",
            NAMES_OF,
        ),
    ]
    items_sep: Annotated[
        str | None,
        Option(
            None,
            """
        What separates the items where one text holds all items of a list, best first, as in "7 3
        9"; a blank stands for any white space. They become integers if the other frame has
        integers.""",
            SOME_TEXT,
        ),
    ]
    wide: Annotated[
        Columns | None,
        Option(
            None,
            """
        Columns of `pred` that hold the items of a list, best first, as in ["top1", "top2"], or what
        the names of these columns begin with, as in "top". A null is no item.""",
        ),
    ]
    score_col: Annotated[
        str | Literal[False] | None,
        Option(
            None,
            """
        Column of `pred` that orders the items of a list, descending. If neither it nor `rank_col`
        is given, a column named `rank` orders them, else one named `score`, else the order of the
        rows; `spec["order"]` tells which. With False it is the order of the rows, whatever the
        columns. Giving both is an error.""",
        ),
    ]
    rank_col: Annotated[
        str | None,
        Option(
            None,
            "Column of `pred` that orders the items of a list, ascending.",
        ),
    ]
    relevance_col: Annotated[
        str | Literal[False] | None,
        Option(
            None,
            """
        Column of `true` with the gain of each row, at least 0. If it is not given, a column named
        `relevance` is taken, else every row has gain 1; `spec["relevance"]` tells which. With
        False, every row has gain 1, whatever the columns. A row of gain 0 is judged and not
        relevant. A null or negative relevance is an error, unless a metric of the call asks what is
        judged (judged, bpref, infap, user_model, rbp_residual): the row is then in the pool and not
        judged, and other metrics of the call do not see it.""",
        ),
    ]
    min_relevance: Annotated[
        float | None,
        Option(
            None,
            """
        Rows of `true` with a smaller relevance count as judged and not relevant.""",
        ),
    ]
    value_col: Annotated[
        str | None,
        Option(
            None,
            """
        Column with the value (price) of an item, for the money metrics: as recommended in `pred`
        and as bought in `true`, or else in `items`.""",
        ),
    ]
    weight_col: Annotated[
        str | Mapping[Any, float] | None,
        Option(
            None,
            """
        Weight of a list in every mean, at least 0. It is a column of the frame `users` if that has
        it, else a column of `true` that is constant within a list. It may also be a mapping of
        users to weights. `per_user` has the weights as a column.""",
            either(COLUMN_KINDS[str], OF_USERS, NONE),
        ),
    ]
    propensity_col: Annotated[
        str | None,
        Option(
            None,
            """
        Column of `true`: the probability, above 0 and at most 1, that a relevant item was observed.
        A relevant item then counts 1/propensity in recall, precision, ndcg, mapr and mrr; other
        metrics that read `true` refuse it. Repeated rows of one item in a list must agree.""",
        ),
    ]
    propensity_floor: Annotated[
        float,
        Option(
            0.0,
            """
        Propensities below it count as this number, which limits how much one item can count. If it
        is above 0, propensities may be 0.""",
            a_number(0, 1),
        ),
    ]
    judged_only: Annotated[
        bool,
        Option(
            False,
            """
        Drop recommended items that `true` does not judge, then rank again (condensed lists).""",
        ),
    ]
    by: Annotated[
        Columns | None,
        Option(
            None,
            """
        Columns of `pred` that tell recommenders apart; each value is evaluated on the whole
        population.""",
        ),
    ]
    by_in_true: Annotated[
        bool | Columns | None,
        Option(
            None,
            """
        Columns of `by` that `true` has too, such as the fold of a cross-validation. Each value is
        then evaluated with the rows of `true` that have the same value, and over their users. True
        takes all such columns. By default and with False each value is evaluated with all rows of
        `true`; by default, a `FoldByWarning` says so.""",
        ),
    ]
    users: Annotated[
        PopulationRule | Ids,
        Option(
            "true",
            """
        Population: the lists over which a mean is taken. The key columns of the result have the
        dtype of the frame that the population comes from. With "all" it is the dtype in which the
        keys of both frames fit, as `pandas.concat` chooses it; integers stay integers. Where a
        frame is read from several files, it is the dtype in which the keys of all of them fit.""",
            either(one_of(get_args(PopulationRule)), GIVEN_IDS),
        ),
    ]
    ties: Annotated[
        Ties,
        Option(
            "item_desc",
            """
        Order of equal scores: larger item id first, smaller first, row order, relevant last, or an
        error.""",
        ),
    ]
    duplicates: Annotated[
        Duplicates,
        Option(
            "drop",
            """
        What happens where a (list, item) pair stands twice: the row with the best rank (`pred`) or
        the largest gain (`true`) stays; or every row counts, and the second recommendation of an
        item matches its second row in `true`; or an error is raised.""",
        ),
    ]
    null_keys: Annotated[
        NullKeys,
        Option(
            "raise",
            "What happens to rows with a null user, item or `by` value.",
        ),
    ]
    nan_score: Annotated[
        NanScore,
        Option(
            "raise",
            """
        What happens to rows with a null score or rank: they raise an error, they are ranked last,
        or they are dropped as if they had not been given.""",
        ),
    ]
    undefined: Annotated[
        Undefined,
        Option(
            "nan",
            """
        What stands for the value of a metric where a list has none, such as recall of a list
        without relevant items. "zero" never gives the best value: where smaller values are better
        it is the worst bound, such as 1 of ils, and a metric that has no such bound (first_rank,
        rmse) stays undefined there. "one" counts 1 for every metric, as TorchMetrics does with
        `empty_target_action="pos"`. `n_undefined` counts these lists in any case.""",
        ),
    ]
    like: Annotated[
        str | Convention | None,
        Option(
            None,
            """
        Convention of another library, as `conventions_table()` lists them. It sets the defaults of
        all of the above and of the parameters of metrics. Options that are given explicitly take
        precedence.""",
            LIKE,
        ),
    ]


def _option_record(name: str, hint: Any) -> Option:
    """Return the record of an option, whose type may say what it takes."""
    one: Option
    kind, one = get_args(hint)
    constraint = one.constraint
    if constraint is ANY:
        constraint = constraint_of(kind, PLAIN_KINDS | COLUMN_KINDS)
    return replace(one, name=name, hint=kind, doc=" ".join(one.doc.split()), constraint=constraint)


OPTIONS = {
    name: _option_record(name, hint)
    for name, hint in get_type_hints(OptionArguments, include_extras=True).items()
}
NAMES = tuple(OPTIONS)
AT_THE_DOOR = (
    "true_cols",
    "pred_cols",
    "items_sep",
    "wide",
)  # the form of frames, which the record of a call lacks
OF_OPTIONS = "\n".join(one.described for one in OPTIONS.values())
DESCRIPTION = f"""{OF_OPTIONS}
options : Options, optional
    `rd.Options(...)`, the options of a project. Those that are given beside it take precedence."""


# Options that may name several columns.
SEVERAL = ("user_col", "by", "by_in_true")


class CallArguments(OptionArguments, total=False):
    """The shared options, and those of a project, as keyword arguments of a call."""

    options: Options | None


def _plain_value(name: str, value: Any) -> Any:
    """Return scalars of numpy as those of Python, and several columns as a list."""
    if isinstance(value, np.generic):
        return value.item()
    if name == "users" and (rows := lazy_rows(value)) is not None:
        return rows.table(rows.schema.names, name).to_pandas(types_mapper=pd.ArrowDtype)
    several = name in SEVERAL and isinstance(value, np.ndarray | pd.Series | pd.Index)
    return value.tolist() if several else value


def as_columns(columns: Any) -> list[Any]:
    """Return an option that names one or more columns as a list of names."""
    if columns is None:
        return []
    several = isinstance(columns, Collection | Iterator | pd.Index) and not isinstance(
        columns, str | bytes | Mapping
    )
    return list(columns) if several else [columns]


def given_column(column: Any) -> Any:
    """Return what an option names that may also be False; None where it is. A column may be called
    0, which equals False."""
    return None if column is False else column


# What callers take for options of an evaluation: how an option is called here, or where it stands.
MEANT = {
    "threshold": "the smallest relevance that counts is ⟦+min_relevance=⟧",
    "confidence": "rd.summarize(result, confidence=...) makes intervals of another confidence",
}


def id_columns(options: ByName) -> list[str]:
    """Return the columns of the list key and that of the item."""
    names = [options.get(name, OPTIONS[name].default) for name in ("user_col", "item_col")]
    return [name for one in names for name in as_columns(one)]


def check_names(given: Iterable[str], known: Names, what: str) -> None:
    """Raise OptionError for the first name that is not known. The message lists the known ones."""
    for name in given:
        if name not in known:
            meant = MEANT.get(name) if "min_relevance" in known else None
            rest = valid(name, known) if meant is None else f"; {meant}"
            raise OptionError(f"{what} has no option {name!r}{rest}")


def check_shared(given: Collection[str], function: Callable[..., Any]) -> None:
    """Raise OptionError for the first name that the function does not take."""
    if not set(given) <= set(NAMES):
        taken = inspect.signature(function).parameters.values()
        known = [one.name for one in taken if one.default is not one.empty]
        check_names(given, known, function.__name__)


def parameters() -> list[inspect.Parameter]:
    """Return the options as keyword-only parameters, for signatures; the last ones are those of a
    project."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    return [
        *(
            inspect.Parameter(one.name, by_name, default=one.default, annotation=one.hint)
            for one in OPTIONS.values()
        ),
        inspect.Parameter("options", by_name, default=None, annotation="Options | None"),
    ]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Options:
    """The columns and rules of a project, stated once: every call that has such options takes them
    as `options=`.

    What a call says itself comes first, then what is stated here, then the convention `like=`, then
    the defaults. A record cannot be changed. Its attributes are the options as a call would use
    them: as they are stated, or else as the convention or the default has them; `given` holds those
    that are stated. Functions of per-user tables and of logs take the columns from it that they
    have too.

    Parameters
    ----------
    {options}

    Raises
    ------
    OptionError
        If a name or a value is unknown, or if two options exclude each other.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.Options(user_col="customer", item_col="sku", pred_cols={"sku": "article"})
    >>> shop.replace(ties="row", pred_cols=None)
    Options(user_col='customer', item_col='sku', pred_cols=None, ties='row')
    """

    # What null and negative relevances of `true` are: a mistake, or items of the pool that nobody
    # judged. No caller sets it; a call keeps them if one of its metrics asks what is judged.
    not_judged = "raise"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **given: Unpack[OptionArguments]) -> None:
        """Check the options that are given; the rest are those of the convention `like=`, or else
        the defaults."""
        check_names(given, NAMES, "Options")
        convention = find_convention(given.get("like"))
        defaults = {} if convention is None else convention.options
        check_names(defaults, NAMES, "the convention")
        stated = {name: _plain_value(name, value) for name, value in given.items()}
        known = {name: one.default for name, one in OPTIONS.items()}
        values = {**known, **defaults, **stated, "like": convention}
        for name in {**defaults, **stated}:
            OPTIONS[name].constraint.check(name, values[name])
        vars(self).update(values, _given=stated)
        if given_column(self.score_col) is not None and self.rank_col is not None:
            raise OptionError(
                f"⟦score_col={self.score_col!r}⟧ and ⟦rank_col={self.rank_col!r}⟧ are both given; "
                "the order of `pred` has one source",
                argument="rank_col",
                value=self.rank_col,
            )
        if isinstance(self.weight_col, Mapping) and len(as_columns(self.user_col)) > 1:
            raise OptionError(
                f"weight_col is a mapping, which has one key, but ⟦user_col={self.user_col!r}⟧; "
                "give the weights as a column of true, or of ⟦+users=⟧",
                argument="weight_col",
                value=self.weight_col,
            )
        if self.propensity_floor > 0 and self.propensity_col is None:
            raise OptionError(
                f"⟦propensity_floor={self.propensity_floor!r}⟧ needs ⟦+propensity_col=⟧, the "
                "column of true that it limits",
                value=self.propensity_floor,
            )

    @property
    def given(self) -> dict[str, Any]:
        """The options that are stated, without those of the convention and the defaults."""
        return dict(vars(self)["_given"])

    def replace(self, **changes: Unpack[OptionArguments]) -> Options:
        """Return options of which some are stated otherwise."""
        return Options(**{**self.given, **changes})

    def __eq__(self, other: object) -> bool:
        """Whether the same is stated; frames are equal if their types and values are."""
        if not isinstance(other, Options):
            return NotImplemented

        def equal(one: Any, two: Any) -> bool:
            if hasattr(one, "equals"):
                return type(one) is type(two) and bool(one.equals(two))
            return bool(np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two)

        ours = self.given
        theirs = other.given
        return ours.keys() == theirs.keys() and all(
            equal(value, theirs[name]) for name, value in ours.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def shown(value: Any) -> str:
            large = isinstance(value, Sized) and (hasattr(value, "dtype") or len(repr(value)) > 200)
            return f"<{type(value).__name__} of {len(value):,}>" if large else repr(value)

        given = self.given
        stated = [f"{name}={shown(given[name])}" for name in NAMES if name in given]
        return f"Options({', '.join(stated)})"

    def parameters(self, metric: str) -> ByName:
        """Return the parameters that the convention has for a metric."""
        return {} if self.convention is None else self.convention.metrics.get(metric, {})

    @property
    def convention(self) -> Convention | None:
        return self.like if isinstance(self.like, Convention) else None  # __init__ has found it

    @property
    def population(self) -> Population:
        return Population.of(self.users)

    @property
    def list_key(self) -> list[str]:
        """The columns that name a list."""
        return as_columns(self.user_col)

    @property
    def pair(self) -> list[str]:
        """The columns that name an item of a list."""
        return [*self.list_key, self.item_col]

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
        """Return the options of a part of a call, without a check."""
        made = copy(self)
        vars(made).update(changes)
        return made

    def spec(self) -> dict[str, Any]:
        """Return the options in types that JSON has; a population given by ids is described and not
        copied."""
        values = {name: getattr(self, name) for name in NAMES if name not in AT_THE_DOOR}
        values["users"] = self.population.words
        if isinstance(self.weight_col, Mapping):
            values["weight_col"] = f"{len(self.weight_col)} given weights"
        for name, value in values.items():
            if name in SEVERAL and not isinstance(value, str | bool | None):
                values[name] = [str(one) for one in as_columns(value)]
            elif name.endswith("_col") and value is not None and value is not False:
                values[name] = str(value)
        if self.min_relevance is not None:
            values["min_relevance"] = float(self.min_relevance)
        values["propensity_floor"] = float(self.propensity_floor)
        values["like"] = None if self.convention is None else self.convention.name
        return values


Options.__signature__ = inspect.Signature(parameters()[:-1])  # type: ignore[attr-defined]


says_as({"options": OF_OPTIONS})(Options)
