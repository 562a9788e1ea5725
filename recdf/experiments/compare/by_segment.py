"""Comparisons within segments, whether an effect differs between them, and what each segment's
effect is likely to be."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from ...errors import ColumnError, OptionError, UnknownWarning, warn_user
from ...inputs.door import checks_names, table_of_users
from ...inputs.sorting import cut_like
from ...judge.cautions.table import UNLIKE
from ...judge.choices import Columns, Correction, Share
from ...judge.comparisons import (
    confidence_of,
    default_columns,
    sides_of,
    unit_of_rows,
    with_known_codes,
)
from ...judge.per_user_columns import (
    Codes,
    by_columns,
    first_rows,
    frame_of,
    group_codes,
    key_codes,
    metric_values,
    require,
    require_labels,
    split,
)
from ...judge.verdict import by_rank, codes_of, has, is_withheld, sentence
from ...stats.many_tests import adjust, heterogeneity
from ...stats.numbers import normal_quantile
from ...tables.cells import amount, beside_columns, columns_before, p_value
from ..decide.adjust_pvalues import ROW_LABELS

# A column of more values than these is cut into bands of amounts or dates.
MANY_GROUPS, SEGMENT_BANDS = 30, 4


class Segments(NamedTuple):
    """Columns of segments: of the rows themselves, or of `known` users by some columns of the list
    key."""

    names: list[str]
    keys: Sequence[str] = ()
    known: Any = None

    @classmethod
    def of(
        cls, by: list[str], segments: Any, user_col: Sequence[str], every: bool = False
    ) -> Segments:
        """Those of the rows, or those of a frame of users, whose amounts and dates become bands;
        `every` allows for several columns that nobody names."""
        if segments is None:
            return cls(by)
        segments = table_of_users(segments, "segments")
        keys = [name for name in user_col if name in frame_of("segments", segments)]
        names = [name for name in segments.columns if name not in keys]
        if not keys or not names:
            raise ColumnError(
                f"segments has the columns {list(segments.columns)}; expected some of the key "
                f"{list(user_col)}, and a column of segments beside it"
            )
        by = require(segments, "segments", by) or names
        if len(by) > 1 and by == names and not every:
            raise OptionError(
                f"segments has the columns {names}; name those to compare within in ⟦+by=⟧"
            )
        known = segments.dropna(subset=keys).reset_index(drop=True)
        # By codes: ids that a float cannot hold are an error of their own.
        (of_row,), _ = key_codes([("segments", known)], keys)
        if twice := len(known) - len(np.unique(of_row)):
            raise OptionError(
                f"segments has several rows for {twice:,} keys of {keys}; expected one per user"
            )
        bands = DataFrame({name: _in_bands(known[name]) for name in by})
        return cls(by, keys, beside_columns(known[keys], bands))

    def of_lists(self, lists: DataFrame) -> DataFrame:
        """The segments of every list, null where its user has none."""
        tables = [("per_user", lists), ("segments", self.known)]
        (of_list, of_row), n = key_codes(tables, self.keys)
        found: DataFrame = self.known[self.names].reindex(first_rows(of_row, n)[of_list])
        return found

    def of_rows(self, rows: DataFrame) -> DataFrame:
        """The rows with their segments."""
        return rows if self.known is None else beside_columns(rows, self.of_lists(rows))

    def split(
        self, frames: Sequence[DataFrame]
    ) -> tuple[tuple[int, int], list[tuple[DataFrame, list[Codes]]]]:
        """How many rows have no segment, and of how many; and the label of every segment, as a
        frame of one row, with its rows in each frame."""
        found = pd.concat([frame[self.names] for frame in frames], ignore_index=True)
        there = found.notna().all(axis=1).to_numpy()
        codes = np.full(len(found), -1)
        # Nulls change the dtypes of the columns of users.
        dtypes = {} if self.known is None else dict(self.known[self.names].dtypes)
        codes[there], labels = group_codes(found[there].astype(dtypes), "per_user", self.names)
        rows = [split(own + 1, len(labels) + 1)[1:] for own in cut_like(codes, frames)]
        parts = [(labels.iloc[[g]], list(own)) for g, own in enumerate(zip(*rows, strict=True))]
        return (int(np.count_nonzero(~there)), len(there)), parts

    def warn_unknown(self, n: int, of: int) -> None:
        """Warn of rows that have no segment. It is an error if none has one."""
        if n == of > 0 and self.known is not None:
            raise OptionError(
                f"⟦segments=⟧ has {' and '.join(self.names)} for none of the users of the result"
            )
        if n:
            warn_user(
                f"{n:,} of {of:,} rows of per_user have no {' and '.join(self.names)}; they are in "
                "no segment that is compared",
                UnknownWarning,
            )


def _in_bands(column: Series) -> Series:
    """Return a column of many amounts or dates cut into bands of about as many users; other columns
    as they stand."""
    n = column.nunique()
    if n <= MANY_GROUPS or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    dates = is_datetime64_any_dtype(column)
    if not (dates or is_numeric_dtype(column)):
        raise OptionError(
            f"segments[{column.name!r}] has {n:,} different values, such as "
            f"{column.dropna().iloc[0]!r}; leave it out, or group it into at most {MANY_GROUPS} "
            "segments"
        )
    plain = column if dates else column.astype("float64")
    edges = plain.quantile(np.linspace(0, 1, SEGMENT_BANDS + 1)).drop_duplicates()
    texts = [f"{edge:%Y-%m-%d}" if dates else f"{edge:.4g}" for edge in edges]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
    places = np.clip(edges.iloc[1:-1].searchsorted(plain, "right"), 0, len(names) - 1)
    return Series(np.array(names, object)[places], column.index).where(column.notna())


_UNLESS = "no_bounds", "unbounded", "heavier_unseen"
_KEPT = [
    *ROW_LABELS[:3],
    "n_control",
    "n_treatment",
    *ROW_LABELS[3:],
    "n_users",
    "diff",
    "se",
    "ci_low",
    "ci_high",
    "confidence",
    "method",
    "srm_p",
]


@checks_names
def segment_effects(
    comparison: DataFrame,
    *,
    by: Columns | None = None,
    correction: Correction = "holm",
    confidence: Share = 0.95,
    details: bool = False,
) -> DataFrame:
    """Test whether the effect on each metric differs between segments, and shrink the effects of
    single segments.

    With τ_h and se_h the effect of segment h and its standard error, w_h = 1/se_h² and τ̄ = Σ w_h
    τ_h/Σ w_h: Q = Σ w_h(τ_h − τ̄)², which is χ² with H − 1 degrees of freedom where all segments
    have the same effect (Cochran). The variance between segments is T² = max(0, (Q − (H − 1))/(Σ w
    − Σ w²/Σ w)) (DerSimonian & Laird). With B_h = T²/(T² + se_h²) and μ the mean weighted by 1/(T²
    + se_h²), the shrunken effect is μ + B_h(τ_h − μ), its variance B_h·se_h² + (1 − B_h)²·Var(μ).

    Parameters
    ----------
    comparison : DataFrame
        What `compare_variants(..., by=)` or `compare_models(..., by=)` returned: a row per segment,
        metric and pair. Segments must have been known before the exposure, and every user be in one
        of them.
    by : str or list of str, optional
        Columns of the segments. Default: those before `metric`, or which alone tell rows apart.
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        Of p_value into p_adj over the metrics and pairs; default "holm".
    confidence : float, default 0.95
        Of the intervals of the shrunken effects; a difference between segments is shown at p_adj ≤
        1 − confidence.
    details : bool, default False
        Return all columns, not only those that a decision needs.

    Returns
    -------
    DataFrame
        One row per row of the comparison, with its labels, counts, `diff`, `ci_low`, `ci_high` and
        `confidence` (null if nothing says it), then `shrunken`, `shrunken_low`, `shrunken_high`,
        and for each metric and pair, the same in all its rows: `n_segments` (those with a standard
        error), `q`, `p_value`, `p_adj`, `effect` ("differs", "none"), `withheld`, `remarks` (doubts
        about segments), `verdict`. With `details` also `se`, `srm_p` (sample ratio within the
        segment, if the comparison has it), `mean_effect` (τ̄), `df`, `reject` and `tau` (T).
        Verdict: "differs between segments", "no difference between segments shown", "not tested"
        (fewer than two segments), or why it is withheld: a sample ratio that does not fit in a
        segment, or a difference that rests on segments that should not be read (tiny arms, skewed,
        quantiles that jump) and is not shown without them. A
        segment has no verdict of its own here.

    Raises
    ------
    ColumnError
        A column is missing.
    OptionError
        The comparison has no rows, no column of segments, or not one row per segment, metric and
        pair; an unknown option.
    MissingExtraError
        If SciPy is not installed (two segments need none).

    Notes
    -----
    Use it before any single segment is read: of twenty segments one is "better" by chance, and the
    largest effect is too large. The shrunken effects have no such winner's curse. Do not use it for
    segments that share users (sessions by hour, groups of items) or clusters, whose effects are not
    independent. The effects count as normal, so that a segment needs some dozens of users in each
    arm.

    References
    ----------
    Cochran 1954; DerSimonian & Laird 1986; Morris 1983 (empirical Bayes).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> table = pd.DataFrame(
    ...     {
    ...         "country": ["fi", "se", "no"],
    ...         "metric": "ctr",
    ...         "control": "A",
    ...         "treatment": "B",
    ...         "diff": [0.10, 0.02, -0.06],
    ...         "se": [0.02, 0.02, 0.04],
    ...     }
    ... )
    >>> found = rd.experiments.segment_effects(table)
    >>> found[["country", "diff", "shrunken", "q", "p_value", "verdict"]].round(3)
      country  diff  shrunken     q  p_value                   verdict
    0      fi  0.10     0.094  16.0      0.0  differs between segments
    1      se  0.02     0.021  16.0      0.0  differs between segments
    2      no -0.06    -0.036  16.0      0.0  differs between segments
    """
    require(comparison, "comparison", ["metric", "diff", "se"])
    comparison = with_known_codes(comparison, "comparison")
    segments = require(comparison, "comparison", by) or columns_before(comparison, "metric")
    if not segments:
        raise OptionError(
            "comparison has no column of segments; make it with ⟦+by=⟧, which puts them before "
            "'metric'"
        )
    if comparison.empty:
        raise OptionError("comparison has no rows; pass the table that was meant")
    pair = [name for name in ROW_LABELS if name in comparison]
    require_labels(comparison, "comparison", [*segments, *pair])
    if twice := comparison.duplicated([*segments, *pair]).sum():
        raise OptionError(
            f"comparison has {twice:,} rows too many for one per {[*segments, *pair]}; name all "
            "columns of segments in ⟦+by=⟧"
        )
    diff, se = (metric_values(comparison, "comparison", name) for name in ("diff", "se"))
    table = comparison.reset_index(drop=True).assign(confidence=confidence_of(comparison))
    judged = table.reindex(columns=["withheld", "remarks"], fill_value="")
    withheld = judged["withheld"].to_numpy(object, copy=True)
    for code in ("gap", "ties"):  # errors of such quantiles do not tell how far they jump
        withheld[(withheld == "") & has(judged["remarks"], code)] = code
    doubted = withheld != ""
    unchecked, *unless = (has(judged["remarks"], code) for code in ("ratio_not_checked", *_UNLESS))
    of_pairs = table.groupby(pair, sort=False, dropna=False, observed=True)
    rows = split(np.asarray(of_pairs.ngroup(), np.int64), of_pairs.ngroups)
    # A difference has to be shown without the segments that should not be read.
    found, sound = (
        [heterogeneity(diff[own], errors[own]) for own in rows]
        for errors in (se, np.where(doubted, np.nan, se))
    )
    p_adj, p_sound = (
        adjust(np.array([one.p_value for one in some]), correction) for some in (found, sound)
    )
    alpha = 1 - confidence
    reach = normal_quantile((1 + confidence) / 2)
    # The verdict of a row is about its own segment, and no sentence about all of them may quote it.
    plain = table.drop(columns="verdict", errors="ignore")
    parts = []
    for own, one, p, p_without in zip(rows, found, p_adj, p_sound, strict=True):
        doubts = codes_of(by_rank(withheld[own][doubted[own]]))
        differs = p <= alpha
        # A difference that rests on segments in doubt is withheld, and so is any of variants that
        # are not alike.
        unlike = [code for code in doubts if code in UNLIKE]
        rests = doubts if differs and not p_without <= alpha else []
        untested = ["not_tested"] * bool(np.isnan(p))  # fewer than two segments
        why = [*unlike, *rests, *untested, ""][0]
        effect = "" if why else "differs" if differs else "none"
        # What qualifies the effect of a segment qualifies its difference to the others. The segment
        # with the most such remarks gives the sentence its numbers.
        told = np.array([one[own] & (effect == "differs") for one in unless])
        row = own[np.argmax(withheld[own] == why if why else told.sum(axis=0))]
        remarks = [*untested, *doubts]
        remarks += [one for one, of in zip(_UNLESS, unless, strict=True) if told.any() and of[row]]
        remarks += ["ratio_not_checked"] * bool(unchecked[own].any())
        numbers = {
            "shrunken": one.shrunken,
            "shrunken_low": one.shrunken - reach * one.shrunken_se,
            "shrunken_high": one.shrunken + reach * one.shrunken_se,
            "n_segments": one.n_segments,
            "mean_effect": one.effect,
            "q": one.q,
            "df": one.df,
            "p_value": one.p_value,
            "p_adj": p,
            "reject": differs,
            "tau": one.tau,
            "effect": effect,
            "withheld": why,
            "remarks": "; ".join(remarks),
            "verdict": sentence("segments", effect, why, remarks, plain.iloc[row].to_dict()),
        }
        parts.append(DataFrame(numbers, index=own))
    by_columns(comparison, "comparison", segments, list(numbers))
    kept = [name for name in _KEPT if name in table and name not in segments]
    result = DataFrame(table[[*segments, *kept]])
    result.attrs = {"recdf_comparison": {"unit": unit_of_rows(comparison)}}
    return default_columns(result.join(pd.concat(parts)), details)


def segment_sentences(comparison: DataFrame) -> dict[tuple[str, str, str], str]:
    """Say whether the effect differs between segments, for each metric, new and old variant (or
    model) as texts."""
    found = comparison if "shrunken" in comparison else segment_effects(comparison)
    labels = ["metric", *sides_of(found)]
    said = {}
    for row in found.drop_duplicates(labels).to_dict("records"):
        metric, new, old = (str(row[name]) for name in labels)
        test = f" (Q = {row['q']:.4g} of {amount(row['n_segments'], 'segment')}, "
        test = "" if is_withheld(row) else f"{test}p {p_value(row['p_adj'])})"
        said[metric, new, old] = f"{metric}, {new} against {old}: {row['verdict']}{test}."
    return said
