"""What `true` and `pred` have in common, and the warnings for data that can have no hit.

Contract: `Overlap` holds numbers and a few ids as text. The overlaps of disjoint parts of a population can be added, so
that frames and files give the same warnings. Ids are compared only where nothing was a hit. `compared` does it for
whole frames. For parts the caller does it once it has read all of them, since an item may be in one part of `pred` and
in another part of `true`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..errors import DuplicateWarning, EmptyPopulationError, NoOverlapWarning, RankWarning, outside_recdf
from ..inputs.codes import Coded, Codes
from ..inputs.ids import Ids
from ..inputs.options import Options
from ..inputs.tables import Table
from .grouping import spans
from .pred_lists import PredLists


@dataclass(frozen=True)
class Overlap:
    """What the rows of both frames share.

    n_true_rows, n_pred_rows : number of rows that were not dropped · relevant : some row of `true` is relevant ·
    has_true : `true` is a table, so that an empty one deserves a warning · given : the caller gave the population ·
    n_with_true : lists of the population that `true` judges · n_judged : recommended rows that `true` judges, for each
    `by` value · shares_user, shares_item : some user, some item is in both frames · by_shares_item : for each `by`
    value, some item that it recommends to the population is in `true` · samples : two ids of each frame as text, by
    what they are, such as "true user" · ranks_repeat : some list has a rank twice · n_without_pred : lists of the
    population that `pred` does not have · alone : no key has lists of two `by` values.
    """

    n_true_rows: int
    n_pred_rows: int
    relevant: bool
    has_true: bool
    given: bool
    n_with_true: int
    n_judged: np.ndarray
    shares_user: bool
    shares_item: bool
    by_shares_item: np.ndarray
    samples: Mapping[str, str]
    ranks_repeat: bool = False
    n_without_pred: int = 0
    alone: bool = True

    def __add__(self, other: Overlap) -> Overlap:
        return Overlap(
            self.n_true_rows + other.n_true_rows,
            self.n_pred_rows + other.n_pred_rows,
            self.relevant or other.relevant,
            self.has_true or other.has_true,
            self.given or other.given,
            self.n_with_true + other.n_with_true,
            self.n_judged + other.n_judged,
            self.shares_user or other.shares_user,
            self.shares_item or other.shares_item,
            self.by_shares_item | other.by_shares_item,
            {**other.samples, **self.samples},
            self.ranks_repeat or other.ranks_repeat,
            self.n_without_pred + other.n_without_pred,
            self.alone and other.alone,
        )

    @property
    def silent(self) -> np.ndarray:
        """Positions of the `by` values that share no item with `true`, as far as was compared."""
        return np.flatnonzero((self.n_judged == 0) & ~self.by_shares_item)


def overlap_of(
    true: Table, pred: Table, n_judged: np.ndarray, relevant: bool, has_true: bool, given: bool, n_with_true: int
) -> Overlap:
    """Return the overlap of two frames before ids are compared: only a hit shows that users and items are shared."""
    shares = bool(n_judged.any())
    samples: dict[str, str] = {}
    for table in (true, pred) if not shares else ():
        samples |= samples_of(table.role, table.keys, table.item)
    return Overlap(
        n_true_rows=len(true),
        n_pred_rows=len(pred),
        relevant=relevant,
        has_true=has_true,
        given=given,
        n_with_true=n_with_true,
        n_judged=n_judged,
        shares_user=shares,
        shares_item=shares,
        by_shares_item=n_judged > 0,
        samples=samples,
    )


def compared(
    overlap: Overlap, keys: tuple[Coded, Coded], items: Codes, pred_lists: PredLists, of_list: np.ndarray
) -> Overlap:
    """Complete the overlap of whole frames by comparing ids wherever nothing is a hit.

    `keys` are the keys of `true` and of `pred`, and `of_list` is the `by` value of each list of `pred`.
    """
    if overlap.by_shares_item.all():
        return overlap
    in_true = np.zeros(items.n, bool)
    in_true[items.columns[0].all()] = True
    if not overlap.n_judged.any():
        shares_user = bool(np.isin(pd.unique(keys[1].all()), pd.unique(keys[0].all())).any())
        return replace(overlap, shares_user=shares_user, shares_item=bool(in_true[items.columns[1].all()].any()))
    shares = overlap.by_shares_item.copy()
    lists = np.flatnonzero(~shares[of_list])
    length = np.diff(pred_lists.start)[lists]
    rows = spans(pred_lists.start[lists], length)
    shares[np.repeat(of_list[lists], length)[in_true[pred_lists.item[rows]]]] = True
    return replace(overlap, by_shares_item=shares)


def samples_of(role: str, keys: Sequence[Ids], item: Ids) -> dict[str, str]:
    """Return two users and two items of a frame as text for a message; a user is named by the whole list key."""
    samples = {}
    for what, columns in (("user", keys), ("item", [item])):
        if len(columns[0]):
            shown = zip(*(ids.show(np.arange(min(100, len(ids)))) for ids in columns), strict=True)
            some = [repr(one[0]) if len(one) == 1 else repr(one) for one in list(dict.fromkeys(shown))[:2]]
            samples[f"{role} {what}"] = f"{', '.join(ids.where for ids in columns)}: {', '.join(some)}"
    return samples


# ------------------------------------------------------------------------------------ warnings and errors


def no_lists(overlap: Overlap, options: Options) -> EmptyPopulationError:
    """Return the error for an empty population."""
    found = (
        f"there is no list to evaluate: true has {overlap.n_true_rows:,} rows, pred {overlap.n_pred_rows:,}, "
        f"users={options.spec()['users']!r}" + (f", by={options.by!r}" if options.by else "")
    )
    some = [overlap.samples[f"{role} user"] for role in ("true", "pred") if f"{role} user" in overlap.samples]
    if len(some) == 2:
        found += f"; no user of pred is in true ({'; '.join(some)})"
    return EmptyPopulationError(found)


def warn(overlap: Overlap, counts: Mapping[str, int], by: pd.DataFrame, options: Options) -> None:
    """Warn of repeated rows and of frames that have nothing in common; `by` are the labels of the `by` values."""
    _warn_duplicates(counts, options)
    _warn_ranks(overlap, options)
    if not overlap.n_judged.any():
        _warn_nothing_shared(overlap)
    elif len(overlap.silent):
        _warn_silent(by, overlap.silent)
    _warn_nothing_to_hit(overlap)


def _warn_duplicates(counts: Mapping[str, int], options: Options) -> None:
    repeated = {role: counts[f"{role}_duplicates"] for role in ("true", "pred") if f"{role}_duplicates" in counts}
    if repeated and options.duplicates == "drop":
        found = " and ".join(f"{n:,} of {role}" for role, n in repeated.items())
        forgotten = "pred" in repeated and not options.by
        several = "if pred holds several recommenders, pass the column of their names as by=; " if forgotten else ""
        warnings.warn(
            f"dropped repeated (list, item) rows: {found}; the best rank and the largest gain stay "
            '(duplicates="keep" counts them, "raise" refuses them); '
            f"{several}rd.check(true, pred) tells more",
            DuplicateWarning,
            stacklevel=outside_recdf(),
        )


def _warn_ranks(overlap: Overlap, options: Options) -> None:
    if overlap.ranks_repeat:
        more = "another column in by=" if options.by else "by="
        warnings.warn(
            f"ranks repeat within a list, whose order then says nothing; is {more} missing, or a column of user_col=? "
            "rd.check(true, pred) tells more",
            RankWarning,
            stacklevel=outside_recdf(),
        )


def _warn_nothing_shared(overlap: Overlap) -> None:
    """Where there is no hit at all, warn if the reason is that no user, or no item, is in both frames."""
    if not overlap.n_true_rows or not overlap.n_pred_rows:
        return
    for what, shared in (("user", overlap.shares_user), ("item", overlap.shares_item)):
        if not shared:
            some = "; ".join(overlap.samples[f"{role} {what}"] for role in ("true", "pred"))
            warnings.warn(
                f"no recommended {what} is in true, so every list scores 0 ({some}); "
                "rd.check(true, pred) tells more",
                NoOverlapWarning,
                stacklevel=outside_recdf(),
            )
            return


def _warn_silent(by: pd.DataFrame, silent: np.ndarray) -> None:
    """Warn if some `by` values share nothing with `true` while others do."""
    some = by.take(silent[:5])
    labels = zip(*(some[name].tolist() for name in some.columns), strict=True)
    named = ", ".join(repr(one[0] if len(one) == 1 else one) for one in labels)
    warnings.warn(
        f"{len(silent):,} of {len(by):,} by values recommend the users of true nothing that is in true, "
        f"and score 0: {named}; rd.check(true, pred, by=...) tells more",
        NoOverlapWarning,
        stacklevel=outside_recdf(),
    )


def _warn_nothing_to_hit(overlap: Overlap) -> None:
    """Warn if nothing can be a hit already because of `true` or because of the given users."""
    if not overlap.has_true or not overlap.n_pred_rows:
        return
    if not overlap.n_true_rows:
        reason = "true has no rows"
    elif not overlap.relevant:
        reason = "no row of true is relevant"
    elif overlap.given and not overlap.n_with_true:
        reason = "none of the given users is in true"
    else:
        return
    warnings.warn(
        f"{reason}, so there can be no hit; rd.check(true, pred) tells more",
        NoOverlapWarning,
        stacklevel=outside_recdf(),
    )
