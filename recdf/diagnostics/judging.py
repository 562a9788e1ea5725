"""Labels of people beside cheap ones: how well they agree, and which lists people should judge
next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ..errors import DataError, EmptyPopulationError, OptionError
from ..experiments.compare.interleaving import user_coin
from ..experiments.decide.experiment_health import hash_users
from ..inputs.codes import Codes, first_rows, group_codes
from ..inputs.constraints import NATURAL, NONE, POSITIVE, Share, a_number, check_value, either
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, from_dict, read_frame, read_values
from ..inputs.options import CallArguments, Options, as_columns
from ..inputs.sorting import place_in_run, run_of, spans
from ..judge.choices import Columns
from ..judge.per_user_columns import by_columns, key_codes, require, some_keys
from ..judge.users import only_rows
from ..matching.hits import ratio
from ..metrics.call import Call, check_k
from ..metrics.compute import label_frame
from ..stats.numbers import Floats
from ..stats.student import interval_quantile

LabelLevel = Literal["nominal", "ordinal", "interval"]

# Labels with more different values than this are numbers and not grades: hardly two of them are
# equal.
MOST_GRADES = 20

# Types of pandas that have nulls, by kind of type: the row for all is null in the columns of `by`.
NULLABLE = {"i": "Int64", "u": "UInt64", "b": "boolean"}

_AGREEMENT = (
    "n_pairs n_users n_not_paired equal kappa kappa_low kappa_high weighted_kappa "
    "weighted_kappa_low weighted_kappa_high alpha alpha_low alpha_high bias ci_low ci_high"
)
AGREEMENT = _AGREEMENT.split()


@takes_options("user_col", "item_col", "relevance_col")
def label_agreement(
    human: Any,
    cheap: Any,
    *,
    by: Columns | None = None,
    level: LabelLevel = "ordinal",
    min_relevance: Annotated[float | None, either(NONE, a_number())] = None,
    confidence: Share = 0.95,
    user_col: Columns = "user_id",
    item_col: str = "item_id",
    relevance_col: str = "relevance",
    options: Options | None = None,
) -> DataFrame:
    """Say how well cheap labels, as of a language model or a click model, agree with those of
    people on the same items.

    Formula
    -------
    Over the n pairs of list and item that both have, with labels x of people and y of the judge:

    * equal = p_o = share of pairs with x = y.
    * kappa = (p_o − p_e)/(1 − p_e), p_e = Σ_g share(x = g)·share(y = g): Cohen's kappa.
    * weighted_kappa = 1 − mean (x − y)² / mean over all n² combinations of (x_i − y_j)²: Cohen's
      kappa with quadratic weights of the distance between the grades as numbers.
    * alpha = 1 − D_o/D_e: Krippendorff's alpha of two observers, where D_o is the mean of δ²
      between x and y, and D_e that between any two of the 2n labels. δ² is 1[x ≠ y] at the nominal
      level and (x − y)² at the interval level. At the ordinal level it is (r(x) − r(y))², with r
      the mean rank of a label among all 2n.
    * bias = mean of y − x.
    * Intervals by the delta method: users are independent, and not their items; Student's t with
      n_users − 1 degrees of freedom. That of the ordinal alpha takes the mean ranks as known.
    * recall of grade g = share of the pairs with x = g that have y = g; precision = share of those
      with y = g that have x = g.

    Parameters
    ----------
    human, cheap : DataFrame, mapping or Arrow stream
        One row per label: key of the list, item, and relevance; or user → {item: relevance}.
    by : str or list of str, optional
        Columns of `human`, such as a segment of users, each value of which gets a row of its own.
    level : {"nominal", "ordinal", "interval"}, default "ordinal"
        How alpha reads labels: as names, as grades in an order, or as numbers whose distances
        count.
    min_relevance : float, optional
        Compare whether labels are at least this, as 1 and 0, and not the labels themselves. A judge
        that gives probabilities or many scores needs it.
    confidence : float, default 0.95
        Of the intervals.
    user_col : str or list of str, default "user_id"
        Key of a list in both frames. The first column is the user.
    item_col, relevance_col : str
        Columns of the item and the label in both frames.
    options : Options, optional
        The columns of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row for all pairs, with null in the columns of `by`, and one per value of `by`: these
        columns, `n_pairs`, `n_users`, `n_not_paired` (labels of people that the judge lacks),
        `equal`, `kappa`, `weighted_kappa`, `alpha`, each of them with an interval (`kappa_low`,
        `kappa_high`), `bias` with `ci_low` and `ci_high`, and for every grade g of people
        `recall_g` and `precision_g`. A share of nothing is null; so are kappa and alpha where all
        labels are equal, and intervals with one user.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing; ids or values of `by` are null, or ids are of kinds that can never
        match.
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
    Use it before cheap labels replace or join those of people: a judge of little agreement helps
    little, and one with a bias must not be averaged as it is. Agreement does not say that two
    models would be ordered alike, and kappa is low where nearly all labels are equal, however good
    the judge is. The people must have judged a random sample of what the judge labels
    (`sample_to_judge`); items that only one of the two labelled count nowhere.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20; Cohen (1968), Psychological Bulletin
    70; Krippendorff (2004), Content Analysis.

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
    pair = [*as_columns(user_col), item_col]
    frames = {
        role: from_dict(data, user_col=pair[0], item_col=item_col, value_name=relevance_col)
        if isinstance(data, Mapping)
        else as_frame(data, role)
        for role, data in (("human", human), ("cheap", cheap))
    }
    codes, n = key_codes(list(frames.items()), pair)
    first = [only_rows(*one, own, n, pair) for one, own in zip(frames.items(), codes, strict=True)]
    rows = [own[(first[0] >= 0) & (first[1] >= 0)] for own in first]
    if not len(rows[0]):
        raise EmptyPopulationError(
            f"human and cheap have no {pair} in common; the labels of both are needed"
        )
    labels = [_labels(frame, role, relevance_col, min_relevance) for role, frame in frames.items()]
    x, y = (values[own] for values, own in zip(labels, rows, strict=True))
    people = frames["human"]
    user = key_codes([("human", people)], pair[:1])[0][0][rows[0]]
    names = by_columns(people, "human", by, AGREEMENT)
    part, groups = group_codes(people, "human", names)
    found = []
    of_groups = [part == g for g in range(len(groups) if names else 0)]
    for of_part in (np.ones(len(part), bool), *of_groups):
        own = of_part[rows[0]]
        row = _agreement(x[own], y[own], user[own], of_part.sum() - own.sum(), level, confidence)
        for grade in np.unique(x):
            is_x = x[own] == grade
            is_y = y[own] == grade
            for name, of in (("recall", is_x), ("precision", is_y)):
                row[f"{name}_{grade:.12g}"] = float(ratio((is_x & is_y).sum(), of.sum()))
        found.append(row)
    groups = groups.astype(
        {name: NULLABLE[of.kind] for name, of in groups.dtypes.items() if of.kind in NULLABLE}
    )
    groups = groups.reindex(range(-1, len(found) - 1)).reset_index(drop=True)
    return pd.concat([groups, DataFrame(found)], axis=1)


def _labels(frame: DataFrame, role: str, name: str, min_relevance: float | None) -> Floats:
    """Return grades, or whether labels reach a grade as 1 and 0."""
    values = read_values(frame, name, role)
    if min_relevance is not None:
        return (values >= min_relevance).astype(float)
    if (grades := len(np.unique(values))) > MOST_GRADES:
        raise DataError(
            f"{role}[{name!r}] has {grades:,} different labels, such as {values[0]}; round them to "
            f"at most {MOST_GRADES} grades, or pass ⟦+min_relevance=⟧",
            column=f"{role}[{name!r}]",
            count=grades,
        )
    return values


def _agreement(
    x: Floats, y: Floats, user: Codes, n_not_paired: int, level: LabelLevel, confidence: float
) -> dict[str, float]:
    """Return one row of the table, without its labels."""
    n = len(x)
    n_users = len(np.unique(user))
    row = dict.fromkeys(AGREEMENT, np.nan)
    row |= {"n_pairs": n, "n_users": n_users, "n_not_paired": n_not_paired}
    if not n:
        return row
    bias = (y - x).mean()
    # Each value, and what each pair adds to it.
    measured = {"bias": (bias, y - x - bias)}
    together = np.concatenate([x, y])
    _, of_grade, counts = np.unique(together, return_inverse=True, return_counts=True)
    unequal = (x != y).astype(float)
    row["equal"] = 1 - unequal.mean()
    if len(counts) > 1:  # with one grade chance leaves no disagreement
        grades = np.split(of_grade, 2)
        of_x, of_y = (np.bincount(own, minlength=len(counts)) / n for own in grades)
        place = (np.cumsum(counts) - counts / 2)[of_grade] if level == "ordinal" else together
        pooled = (
            (1 - (of_x + of_y)[of_grade] / 2, unequal)
            if level == "nominal"
            else ((place - place.mean()) ** 2 + place.var(), np.subtract(*np.split(place, 2)) ** 2)
        )
        # What a label is apart from those that it might have met, of both labels of each pair.
        for name, found, chance in (
            ("kappa", unequal, 2 - of_y[grades[0]] - of_x[grades[1]]),
            (
                "weighted_kappa",
                (x - y) ** 2,
                (x - y.mean()) ** 2 + y.var() + (y - x.mean()) ** 2 + x.var(),
            ),
            ("alpha", pooled[1], np.add(*np.split(pooled[0], 2)) * 2 * n / (2 * n - 1)),
        ):
            by_chance = chance.mean() / 2
            share = found.mean() / by_chance
            off = (share * (chance - chance.mean()) - (found - found.mean())) / by_chance
            measured[name] = 1 - share, off
    reach = np.nan
    if n_users > 1:
        reach = interval_quantile(n_users - 1, confidence) * np.sqrt(n_users / (n_users - 1)) / n
    for name, (value, off) in measured.items():
        of_user = np.bincount(user, weights=off)
        half = reach * np.sqrt(of_user @ of_user)
        own, most = ("ci", np.inf) if name == "bias" else (name, 1.0)
        row |= {name: value, f"{own}_low": value - half, f"{own}_high": min(value + half, most)}
    return row


@takes_options()
def sample_to_judge(
    pred: Any,
    n: int,
    *,
    k: int = 10,
    strata: Any = None,
    spread: Any = None,
    judged: Any = None,
    seed: int = 0,
    **options: Unpack[CallArguments],
) -> DataFrame:
    """Choose at random which lists people should judge next, and return their items with the chance
    of being chosen.

    The items of a list are pooled: whoever judges them has judged the first k of every recommender
    of `by`.

    Formula
    -------
    Of the N_h lists of stratum h, n_h are drawn without replacement, each with probability n_h/N_h.
    The estimate of a mean weighs them by 1/probability (Horvitz & Thompson). Without `spread`
    n_h ∝ N_h, and with it n_h ∝ N_h·S_h with S_h the standard deviation (n − 1) of `spread` in the
    stratum, which makes the variance of the mean least. Both in whole numbers: every stratum gets
    two lists (or its only one), and each further list goes to the stratum with the largest
    N_h·S_h/√(n_h(n_h + 1)) that has lists left (Wright 2012).

    Parameters
    ----------
    pred : DataFrame, mapping or Arrow stream
        Recommendations, as for `evaluate`.
    n : int
        Number of lists to draw.
    k : int, default 10
        Depth of the pool: ranks 1 to k.
    strata : str or DataFrame, optional
        Column of `pred`, or a frame of the list key and one more column: the stratum of every list.
        Default: one.
    spread : DataFrame, optional
        Draw more lists where these values vary more (Neyman's allocation): a frame of the list key
        and one column of numbers that vary as the value to be judged is expected to, such as the
        difference between two models under cheap labels, or between cheap and human values of
        before.
    judged : DataFrame, mapping or Arrow stream, optional
        Rows of (list key, item) that people have judged. They are left out, and so are lists with
        nothing else: their value is known, so that they are a stratum of their own with probability
        1 in an estimate. Add the labels of before to those of the rows that are returned.
    seed : int, default 0
        Of the draw. The chance of a list depends on the seed and its key alone: the order of rows
        does not matter, and a larger n with the same strata draws the same lists and more.
    {options}

    Returns
    -------
    DataFrame
        One row per list and item to judge, ordered by key and item, which tells judges nothing of
        ranks and models: columns of the list key, item, `stratum` ("all" without `strata`) and
        `probability`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does. OptionError also if n is above the number of lists or below two per
        stratum; DataError if a list has no stratum or no number.
    DuplicateError
        A list has two strata or two numbers.

    Notes
    -----
    Use it where people can judge few lists, and the estimate shall hold for all of them. Lists that
    were picked because they look odd or because models differ most give no mean of anything; a
    stratum of such lists does. Neyman's allocation is best for the value that `spread` describes,
    and may be worse than the proportional one for another.

    The probability is that of a list, so that it serves metrics of whole lists. With all its rows
    judged, a list has the values of metrics that read the first k alone, as precision, hitrate, mrr
    and dcg at k or less do. Recall, ndcg and map also ask for relevant items that no recommender
    showed; in the pool alone they come out too high. Leave out lists that were not drawn and of
    which people have judged a part: their unjudged items count as irrelevant.

    References
    ----------
    Neyman (1934), Journal of the Royal Statistical Society 97; Horvitz & Thompson (1952), Journal
    of the American Statistical Association 47; Wright (2012), The American Statistician 66.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> pred = {user: ["tea", "jam", "rye"] for user in range(6)}
    >>> users = pd.DataFrame({"user_id": range(6), "plan": ["free"] * 4 + ["paid"] * 2})
    >>> rows = rd.diagnostics.sample_to_judge(pred, 4, k=1, strata=users)
    >>> rows[["item_id", "stratum", "probability"]]
      item_id stratum  probability
    0     tea    free          0.5
    1     tea    free          0.5
    2     tea    paid          1.0
    3     tea    paid          1.0
    """
    check_value("n", n, POSITIVE)
    check_value("seed", seed, NATURAL)
    call = Call.from_arguments(sample_to_judge, options)
    keys = call.options.list_key
    item_col = call.options.item_col
    frame = read_frame(pred, "pred", call.options)
    if clash := [name for name in (*keys, item_col) if name in ("stratum", "probability")]:
        raise OptionError(
            f"the column {clash[0]!r} has the name of a column of the result; rename it"
        )
    pool = _pool(call, frame, check_k(k), judged)
    (code,), n_lists = key_codes([("pred", pool)], keys)
    lists = pool[keys].iloc[first_rows(code, n_lists)].reset_index(drop=True)
    if isinstance(strata, str):
        strata = frame[require(frame, "pred", [*keys, strata])].drop_duplicates()
    label = (
        Series("all", index=lists.index, dtype=str)
        if strata is None
        else _said_of(lists, strata, "strata")
    )
    stratum, names = group_codes(label.to_frame("stratum"), "strata", ["stratum"])
    size = np.bincount(stratum)
    weight = size.astype(float)
    if spread is not None:
        said = _said_of(lists, spread, "spread").to_frame()
        values = read_values(said, said.columns[0], "spread")
        weight *= np.nan_to_num(Series(values).groupby(stratum).std())
    drawn = _allocate(n, size, weight)
    order = np.lexsort((user_coin(hash_users(lists, keys, "pred"), seed, 0), stratum))
    place = np.empty(n_lists, np.int64)
    place[order] = place_in_run(size)
    chosen = (place < drawn[stratum])[code]
    found = pool[chosen].reset_index(drop=True)
    of = stratum[code[chosen]]
    return found.assign(stratum=names["stratum"].take(of).array, probability=(drawn / size)[of])


def _pool(call: Call, frame: DataFrame, k: int, judged: Any) -> DataFrame:
    """Return the items of each list in the first k of any recommender that are not judged, in the
    order of ids."""
    pair = call.options.pair
    with call.match(None, frame) as matched:
        lists = matched.at(k)
        pool = label_frame(matched).take(run_of(lists.n_shown)).reset_index(drop=True)
        pool = pool.rename(columns={str(name): name for name in pair})
        rows = matched.rows(spans(matched.start, lists.n_shown))
        pool[pair[-1]] = frame[pair[-1]].take(rows).array
        pool = pool[pair]
    known = [] if judged is None else [("judged", read_frame(judged, "judged", call.options))]
    (own, *others), n = key_codes([("pred", pool), *known], pair)
    first = first_rows(own, n)
    for rows in others:
        first[rows] = -1
    if not (first >= 0).any():
        raise EmptyPopulationError(
            "pred has no item to judge: it is empty, or judged has all of its first items"
        )
    return pool.iloc[first[first >= 0]].reset_index(drop=True)


def _said_of(lists: DataFrame, given: Any, role: str) -> Series:
    """Return what a frame of the list key and one more column says of every list."""
    keys = list(lists.columns)
    frame = as_frame(given, role)
    names = [name for name in frame.columns if name not in require(frame, role, keys)]
    if len(names) != 1:
        raise OptionError(
            f"{role} has the columns {names} beside the key {keys}; expected one", argument=role
        )
    codes, n = key_codes([("pred", lists), (role, frame)], keys)
    rows = only_rows(role, frame, codes[1], n, keys)[codes[0]]
    null = (
        (rows < 0) | frame[names[0]].isna().to_numpy()[rows]
        if len(frame)
        else np.ones(len(lists), bool)
    )
    if null.any():
        raise DataError(
            f"{role} has no {names[0]!r} for {int(null.sum()):,} of {len(lists):,} lists "
            f"({some_keys(lists, null, keys)})",
            column=f"{role}[{names[0]!r}]",
            count=int(null.sum()),
        )
    return frame[names[0]].take(rows).reset_index(drop=True)


def _allocate(n: int, size: Codes, weight: Floats) -> Codes:
    """Return how many lists each stratum gets; strata of equal weight, such as 0, get further lists
    by their size."""
    least = np.minimum(size, 2)
    if not least.sum() <= n <= size.sum():
        raise OptionError(
            f"⟦n={n}⟧ of {size.sum():,} lists in {len(size):,} strata; expected at least two of "
            f"each stratum that has them, and no more than there are: from {least.sum():,} to "
            f"{size.sum():,}",
            value=n,
        )
    more = size - least
    stratum = run_of(more)
    rank = place_in_run(more) + least[stratum]
    falls = 1 / np.sqrt(rank * (rank + 1.0))
    best = np.lexsort((-size[stratum] * falls, -weight[stratum] * falls))[: n - least.sum()]
    return least + np.bincount(stratum[best], minlength=len(size))
