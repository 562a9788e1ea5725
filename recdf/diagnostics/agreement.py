"""How well cheap labels, as of a language model, agree with those of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import DataError, DuplicateError, EmptyPopulationError, examples
from ..experiments.experiment_columns import by_columns, key_codes, some_keys
from ..inputs.codes import Codes, first_rows, group_codes
from ..inputs.constraints import SHARE, a_number, check_value
from ..inputs.door import takes_columns
from ..inputs.frames import as_frame, from_dict, read_values
from ..inputs.options import Options, as_columns
from ..matching.hits import ratio
from ..stats.numbers import Floats
from ..stats.student import interval_quantile

LabelLevel = Literal["nominal", "ordinal", "interval"]

# Labels with more different values than this are numbers and not grades: hardly two of them are equal.
MOST_GRADES = 20

AGREEMENT = [
    "n_pairs", "n_users", "n_not_paired", "equal", "kappa", "weighted_kappa", "alpha", "bias", "ci_low", "ci_high",
]  # fmt: skip


@takes_columns("user_col", "item_col", "relevance_col")
def label_agreement(
    human: Any,
    cheap: Any,
    *,
    by: str | Sequence[str] | None = None,
    level: LabelLevel = "ordinal",
    min_relevance: float | None = None,
    confidence: float = 0.95,
    user_col: str | Sequence[str] = "user_id",
    item_col: str = "item_id",
    relevance_col: str = "relevance",
    options: Options | None = None,
) -> pd.DataFrame:
    """Say how well cheap labels, as of a language model or a click model, agree with those of people on the same items.

    Formula
    -------
    Over the n pairs of list and item that both have, with labels x of people and y of the judge:

    * equal = p_o = share of pairs with x = y.
    * kappa = (p_o − p_e)/(1 − p_e), p_e = Σ_g share(x = g)·share(y = g): Cohen's kappa.
    * weighted_kappa = 1 − mean (x − y)² / mean over all n² combinations of (x_i − y_j)²: Cohen's kappa with quadratic
      weights of the distance between the grades as numbers.
    * alpha = 1 − D_o/D_e: Krippendorff's alpha of two observers, where D_o is the mean of δ² between x and y, and D_e
      that between any two of the 2n labels. δ² is 1[x ≠ y] at the nominal level and (x − y)² at the interval level. At
      the ordinal level it is (r(x) − r(y))², with r the mean rank of a label among all 2n.
    * bias = mean of y − x, with an interval in which users are independent, and not their items: by the delta method,
      Student's t, and n_users − 1 degrees of freedom.
    * recall of grade g = share of the pairs with x = g that have y = g; precision = share of those with y = g that have
      x = g.

    Parameters
    ----------
    human, cheap : DataFrame, mapping or Arrow stream
        One row per label: key of the list, item, and relevance; or user → {item: relevance}.
    by : str or list of str, optional
        Columns of `human`, such as a segment of users, each value of which gets a row of its own.
    level : {"nominal", "ordinal", "interval"}, default "ordinal"
        How alpha reads labels: as names, as grades in an order, or as numbers whose distances count.
    min_relevance : float, optional
        Compare whether labels are at least this, as 1 and 0, and not the labels themselves. A judge that gives
        probabilities or many scores needs it.
    confidence : float, default 0.95
        Of the interval of the bias.
    user_col : str or list of str, default "user_id"
        Key of a list in both frames. The first column is the user.
    item_col, relevance_col : str
        Columns of the item and the label in both frames.
    options : Options, optional
        The columns of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row for all pairs, with null in the columns of `by`, and one per value of `by`: these columns, `n_pairs`,
        `n_users`, `n_not_paired` (labels of people that the judge lacks), `equal`, `kappa`, `weighted_kappa`, `alpha`,
        `bias`, `ci_low`, `ci_high`, and for every grade g of people `recall_g` and `precision_g`. A share of nothing
        is null; so are kappa and alpha where all labels are equal, and the interval with one user.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing; ids or values of `by` are null, or ids are of kinds that can never match.
    DuplicateError
        A frame has two labels for the same list and item.
    DataError
        A label is null or no number, or labels have more than 20 different values.
    EmptyPopulationError
        No pair has both labels.
    OptionError
        An option is not one of these.

    Notes
    -----
    Use it before cheap labels replace or join those of people: a judge of little agreement helps little, and one with a
    bias must not be averaged as it is. Agreement does not say that two models would be ordered alike, and kappa is low
    where nearly all labels are equal, however good the judge is. The people must have judged a random sample of what
    the judge labels (`sample_to_judge`); items that only one of the two labelled count nowhere.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20; Cohen (1968), Psychological Bulletin 70; Krippendorff
    (2004), Content Analysis.

    Examples
    --------
    >>> import recdf as rd
    >>> human = {"ann": {"tea": 2, "jam": 0}, "bob": {"tea": 1, "rye": 0}}
    >>> cheap = {"ann": {"tea": 2, "jam": 1}, "bob": {"tea": 1, "rye": 0}}
    >>> table = rd.diagnostics.label_agreement(human, cheap)
    >>> table[["n_pairs", "equal", "kappa", "weighted_kappa", "alpha", "bias", "recall_0"]].round(3)
       n_pairs  equal  kappa  weighted_kappa  alpha  bias  recall_0
    0        4   0.75  0.636             0.8   0.79  0.25       0.5
    """
    check_value("level", level, LabelLevel)
    check_value("confidence", confidence, SHARE)
    keys = as_columns(user_col)
    pair = [*keys, item_col]
    given = {"human": human, "cheap": cheap}
    for role, data in given.items():
        is_mapping = isinstance(data, Mapping) and isinstance(user_col, str)
        given[role] = (
            from_dict(data, user_col=str(user_col), item_col=item_col, value_name=relevance_col)
            if is_mapping else as_frame(data, role, user_col, item_col)
        )  # fmt: skip
    codes, n = key_codes(list(given.items()), pair)
    rows = [_rows_of_pairs(frame, role, own, n, pair) for (role, frame), own in zip(given.items(), codes, strict=True)]
    both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
    if not len(both):
        raise EmptyPopulationError(
            f"no pair of {pair} has a label of both human ({len(codes[0]):,} rows) and cheap ({len(codes[1]):,} rows)"
        )
    x, y = (
        _labels(frame, role, relevance_col, min_relevance)[own[both]]
        for (role, frame), own in zip(given.items(), rows, strict=True)
    )
    people = given["human"]
    (user,), _ = key_codes([("human", people)], keys[:1])
    names = by_columns(people, "human", by, AGREEMENT)
    part, labels = group_codes(people, "human", names)
    paired, grades = rows[0][both], np.unique(x)
    found = [_agreement(x, y, user[paired], len(people) - len(both), level, confidence, grades)]
    for g in range(len(labels) if names else 0):
        own = part[paired] == g
        n_not_paired = int((part == g).sum() - own.sum())
        found.append(_agreement(x[own], y[own], user[paired][own], n_not_paired, level, confidence, grades))
    table = pd.DataFrame(found)
    if names:
        # Integers and booleans beside the null of the row for all need the types of pandas that have one.
        labels = labels.convert_dtypes(convert_string=False, convert_floating=False)
        table = pd.concat([labels.reindex([-1, *range(len(labels))]).reset_index(drop=True), table], axis=1)
    return table


def _rows_of_pairs(frame: pd.DataFrame, role: str, codes: Codes, n: int, pair: list[str]) -> Codes:
    """Row of every pair in a frame, -1 where it has none; raises if a pair has two."""
    first = first_rows(codes, n)
    again = first[codes] != np.arange(len(codes))
    if again.any():
        raise DuplicateError(
            f"{role} has {int(again.sum()):,} repeated rows of {pair} of {len(frame):,} "
            f"({some_keys(frame, again, pair)}); keep one label each", argument=role, count=int(again.sum()),
        )  # fmt: skip
    return first


def _labels(frame: pd.DataFrame, role: str, name: str, min_relevance: float | None) -> Floats:
    """Return grades, or whether labels reach a grade as 1 and 0."""
    values = read_values(frame, name, role)
    if min_relevance is not None:
        check_value("min_relevance", min_relevance, a_number())
        return np.asarray(values >= min_relevance, np.float64)
    grades = len(np.unique(values))
    if grades > MOST_GRADES:
        raise DataError(
            f"{role}[{name!r}] has {grades:,} different labels, such as {examples(frame[name])}; round them to at most "
            f"{MOST_GRADES} grades, or pass ⟦+min_relevance=⟧", column=f"{role}[{name!r}]", count=grades,
        )  # fmt: skip
    return values


def _agreement(
    x: Floats, y: Floats, user: Codes, n_not_paired: int, level: LabelLevel, confidence: float, grades: Floats
) -> dict[str, float]:
    """Return one row of the table, without its labels."""
    n, n_users = len(x), len(np.unique(user))
    row: dict[str, float] = dict.fromkeys(AGREEMENT, np.nan)
    row |= {"n_pairs": n, "n_users": n_users, "n_not_paired": n_not_paired}
    if n:
        together = np.concatenate([x, y])
        _, of_grade, counts = np.unique(together, return_inverse=True, return_counts=True)
        of_x, of_y = (np.bincount(own, minlength=len(counts)) / n for own in np.split(of_grade, 2))
        unequal = float((x != y).mean())
        row["equal"] = 1 - unequal
        row["kappa"] = _beyond_chance(unequal, 1 - float(of_x @ of_y))
        row["weighted_kappa"] = _beyond_chance(
            float(((x - y) ** 2).mean()), float(x.var() + y.var() + (x.mean() - y.mean()) ** 2)
        )
        if level == "nominal":
            expected = 1 - float((counts / (2 * n)) @ ((counts - 1) / (2 * n - 1)))
            row["alpha"] = _beyond_chance(unequal, expected)
        else:
            place = (np.cumsum(counts) - counts / 2)[of_grade] if level == "ordinal" else together
            row["alpha"] = _beyond_chance(float((np.subtract(*np.split(place, 2)) ** 2).mean()), 2 * place.var(ddof=1))
        row["bias"] = bias = float((y - x).mean())
        if n_users > 1:
            off = np.bincount(user, weights=y - x - bias)
            half = interval_quantile(n_users - 1, confidence) * np.sqrt(n_users / (n_users - 1) * (off @ off)) / n
            row["ci_low"], row["ci_high"] = bias - half, bias + half
    for grade in grades:
        both = ((x == grade) & (y == grade)).sum()
        row[f"recall_{grade:.12g}"] = float(ratio(both, (x == grade).sum()))
        row[f"precision_{grade:.12g}"] = float(ratio(both, (y == grade).sum()))
    return row


def _beyond_chance(found: float, by_chance: float) -> float:
    """One minus the disagreement found over that by chance; null where chance knows none."""
    return 1 - found / by_chance if by_chance > 0 else np.nan
