"""One pair of models on the same users: differences in, numbers out. Also what is read of results
before they are compared, and how the evaluations of two results differ (`unlikeness`, and
`unlike_nights` of the nights of a job)."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas import DataFrame

from ...judge.cautions import FEW_LISTS, MANY_SHORT
from ...judge.cautions.table import NOT_MEASURED_ALIKE, skewness_makes
from ...judge.choices import TESTS, AnyRow, AnySpec, Directions, Row, TwoPlaces
from ...judge.comparability import Fact, facts_of, spec_of_each
from ...judge.comparisons import MODEL_RESULT_COLUMNS
from ...judge.per_user_columns import Floats, Mask
from ...judge.verdict import ask, codes_of, effects_of, remark, sentence
from ...metrics.strings import request_of
from ...stats.arms import HUGE, MEAN_ROUNDING, Arm, linearise, one_sample
from ...stats.numbers import Number, undefined_is_nan
from ...stats.resampling import (
    bootstrap_effect,
    by_row,
    distinct_columns,
    exact_sign_flip_p,
    poisson_sums,
    sign_flip_interval,
    sign_flip_p,
    sign_sums,
)
from ...stats.student import equivalence_p
from ...stats.turned import Ends, missing_by_chance, turned_by, turning_value
from ...tables.cells import amount, estimated, form_of, number, visible
from ..samples import Settings
from .two_sample import MOST_TOP_UNITS, but, n_top, top_units


def frames_of_results(per_user: Any, in_buckets: bool = False) -> Any:
    """Return the tables of results, which hold in `attrs` what they were evaluated with. With
    `in_buckets` a result whose rows stay where they are is returned as it is."""
    if isinstance(per_user, Mapping):
        return {name: frames_of_results(one) for name, one in per_user.items()}
    if in_buckets and getattr(per_user, "rows_stay", False):
        return per_user
    if not hasattr(per_user, "per_user") or not hasattr(per_user, "spec"):
        return per_user
    if not isinstance(per_user.per_user, DataFrame):
        per_user = per_user.to_pandas()  # the rows of an engine come into memory
    table = per_user.per_user.copy(deep=False)
    table.attrs = {"recdf": per_user.spec}
    return table


def columns_of_results(per_user: Any) -> tuple[list[str], str]:
    """Return the list key of a result, or of the first of several, and the column of its models;
    "user_id" and "model" where none is named."""
    several = isinstance(per_user, Mapping)
    given = per_user.values() if several else [per_user]
    # Asked for `per_user`, a result would read rows that stay in their files.
    specs = (one.spec for one in given if not isinstance(one, DataFrame) and hasattr(one, "spec"))
    spec: AnySpec = next(specs, {})
    by = [] if several else list(spec.get("by", ()))
    key = list(spec.get("user_col", ["user_id"]))
    return key, by[0] if len(by) == 1 else "model"


# Of a pair of models: the lists of another truth, and of how many; and of a pair and a cut-off, how
# many lists of each are shorter, and of how many.
CountsOfLists = dict[tuple[int, ...], Any]


def unlikeness(
    metric: str,
    pair: TwoPlaces,
    models: Sequence[Any],
    specs: Sequence[AnySpec],
    counts: CountsOfLists,
) -> Row:
    """Say what two models do not share."""
    base, own = (specs[i] for i in pair)
    codes = []
    unlike = []
    n, of = counts[pair]
    digests = {one.get("truth") for one in (base, own)}
    if n or (len(digests) == 2 and None not in digests):
        codes = ["other_truth"]
        others = f"{n:,} of {amount(of, 'list')}" if n else "other items"
        unlike = [f"other truth ({others})"]
    if own is not base and own and base:
        facts = differing_facts(own, base, metric)
        codes += [one.code for one in facts.values()]
        names = [models[i] for i in pair[::-1]]
        unlike += [_said(name, one, *names) for name, one in facts.items()]
    shares = np.zeros(2)
    k = cut_off(own, metric)
    if k is not None:
        *short, n_lists = counts[*pair, k]
        shares = np.array(short) / max(n_lists, 1)
        shorter = models[pair[np.argmax(shares)]]
        unlike.append(f"{shares.max():.0%} of the lists of {shorter} are shorter than {k}")
    return {
        "short_baseline": shares[0],
        "short_model": shares[1],
        "unlike": unlike[0] if codes or shares.max() >= MANY_SHORT else "",
        "remarks": "; ".join(dict.fromkeys(codes)),
    }


def facts_of_metrics(own: AnySpec, base: AnySpec, metrics: Iterable[str]) -> dict[str, Fact]:
    """Return what two results of some metrics were evaluated with, by its name."""
    definitions: dict[str, list[str | None]] = {}
    tables: set[str] = set()
    all_known = True
    for metric in metrics:
        definitions[metric] = meant = []
        for spec in (own, base):
            found = spec.get("metrics", {}).get(metric, {}).get("definition")
            request = None if found is None else request_of(found)
            # An older version wrote a definition without the parameters that were added since.
            meant.append(found if request is None else request.definition)
            tables |= set() if request is None else request.tables
            all_known &= request is not None
    return facts_of(own, base, definitions, tables if all_known else None)


def differing_facts(own: AnySpec, base: AnySpec, metric: str) -> dict[str, Fact]:
    """Return what two results of a metric were evaluated with where it differs."""
    facts = facts_of_metrics(own, base, [metric])
    return {name: one for name, one in facts.items() if one.differs}


def unlike_metrics(spec: AnySpec, models: Sequence[Any], metrics: Sequence[str]) -> list[str]:
    """Return the metrics that not all models of a result were measured with alike."""
    first, *others = spec_of_each(spec, models)
    others = [one for one in others if one is not first]
    truths = {one.get("truth") for one in (first, *others)} - {None}
    return [
        name
        for name in metrics
        if len(truths) > 1 or any(differing_facts(first, one, name) for one in others)
    ]


def unlike_nights(own: AnySpec, base: AnySpec, metric: str) -> str:
    """Say how a night of a job was evaluated where another night was not, or nothing.

    Truth, side tables and the number of given users may be others every night.
    """
    own, base = (
        {
            **spec,
            "side_tables": {},
            "options": {
                name: re.sub(r"[\d,]+ given", "given", str(one)) if name == "users" else one
                for name, one in spec.get("options", {}).items()
            },
        }
        for spec in (own, base)
    )
    return ", ".join(_said(name, one) for name, one in differing_facts(own, base, metric).items())


def _said(name: str, fact: Fact, *models: Any) -> str:
    """Say what of two models differs, and which has which; of definitions only the parameters that
    do."""
    own, base = (str(one) for one in (fact.own, fact.base))
    if fact.code == "other_definition":
        parts = [re.split(r"[(,)]", one.rpartition("@")[0] or one) for one in (own, base)]
        pairs = [pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]]
        own, base = (" ".join(one) for one in zip(*pairs, strict=True)) if pairs else (own, base)
        name = f"other {name}:"
    words = f"{own} of {models[0]}, {base} of {models[1]}" if models else f"{own}, not {base}"
    return f"{name.removeprefix('option ')} {words}"


def cut_off(spec: AnySpec, metric: str) -> int | None:
    """Return k of a metric, from its record or its name."""
    known = spec.get("metrics", {}).get(metric)
    if known is not None:
        return known.get("k")
    _, at, k = metric.rpartition("@")
    return int(k) if at and k.isdecimal() else None


def judge_both(table: DataFrame, better: Directions) -> None:
    """Add the interval and the effect on the lists that both models have.

    The interval is as many standard errors wide as the one beside it.
    """
    names = ["ci_low", "ci_high", "se", "diff", "n_users", "typical", "reach"]
    of_both = ["diff_both", "se_both", "n_both"]
    low, high, se, diff, users, typical, reach, both, se_both, n = (
        table[name].to_numpy(np.float64) for name in names + of_both
    )
    with undefined_is_nan():
        lower = both - (diff - low) / se * se_both
        upper = both + (high - diff) / se * se_both
    table["ci_low_both"], table["ci_high_both"] = lower, upper
    shown = (lower > 0) | (upper < 0)
    effects = effects_of(table.assign(diff=both), shown, better)
    lacking = table["n_lacking_baseline"] + table["n_lacking_model"] > 0
    few = lacking & (n < FEW_LISTS)
    by = turned_by(both, n * typical / np.maximum(users, 1), -reach, reach, 0.0)
    table["turned_by_both"] = np.where(shown & ~table["powered"], by, np.nan)
    turned = lacking & ~few & (table["turned_by_both"] < table["unseen"])
    own: Any = {"effect": np.array(effects, object), "remarks": table["remarks"]}
    if lacking.any():
        ask(ChainMap(own, table), "short_lists")  # type: ignore[arg-type]
    of_rows = map(codes_of, own["remarks"])
    unlike = [next((c for c in codes if c in NOT_MEASURED_ALIKE), "") for codes in of_rows]
    found = [lacking & (np.array(unlike) != ""), few, turned]
    withheld = np.select(found, [unlike, "few_lists", "unseen_units"], "")
    table["effect_both"] = pd.Series(np.where(lacking & (withheld == ""), effects, ""), dtype=str)
    table["withheld_both"] = pd.Series(withheld, dtype=str)


def sentence_of_both(row: AnyRow) -> str:
    """Say how many lists each model lacks, and how they compare where both have lists; nothing if
    none is lacking."""
    if "n_both" not in row and "missing_lists" in codes_of(row["remarks"]):
        return (
            "A model lacks lists that the other has, and counts as 0 there; n_lacking_model, "
            "n_lacking_baseline and diff_both of a comparison with details=True say how much that "
            "changes."
        )
    lacks = [
        f"{visible(row[role])} lacks {int(row[f'n_lacking_{role}']):,} of "
        f"{amount(row['n_lists'], 'list')}"
        for role in ("model", "baseline")
        if row.get(f"n_lacking_{role}", 0)
    ]
    if not lacks:
        return ""
    text = f"{' and '.join(lacks)} that the other has, and counts as 0 there"
    if pd.isna(row["diff_both"]):
        return f"{text}; no list is in both."
    turned = {"turned_by": row["turned_by_both"], "turned_to": "lose or gain"}
    said = sentence("models", row["effect_both"], row["withheld_both"], row={**row, **turned})
    text += f". Where both have lists, {row['metric']} "
    if row["withheld_both"]:
        return f"{text}is not decided, {said}."
    means = row["mean_model_both"], row["mean_baseline_both"]
    around = row["diff_both"], row["ci_low_both"], row["ci_high_both"]
    form = form_of(*means, half=(around[2] - around[1]) / 2)
    both = " against ".join(number(mean, form) for mean in means)
    return f"{text}is {both}: {estimated(*around, '+')}, {said}."


# Up to 2^16 sign patterns are enumerated, if that is no more than the resamples asked for.
EXACT_UNITS = 16
# Up to 8 % of equal models get a verdict where |γ|/√n is at most this, γ the skewness, and
# FEW_DIFFER units differ.
SKEWED_PAIRS = 0.14
# The verdict is withheld if unequal weights are worth fewer equal units than this. Equal models get
# one in 24 to 59 % of simulated comparisons at 3 to 5 effective units, 15 to 27 % at 7, 8 to 22 %
# at 11, 7 to 20 % at 15, 7 to 15 % at 22, at most 8 % of those with 30 or more; weights are
# lognormal, Pareto, or large for some units.
FEW_LISTS_CARRY = 30


class UnitSums(NamedTuple):
    """Units' sums D of differences and W of weights.

    mean (2), two (2, 2), three (2, 2, 2) : means, and sums of products of two and of three of the
    distances from them · wins, losses : D above 0, D below 0 · by_weight : Σ D²/W · largest : of
    abs(D), of abs(D/W), of W and of −W · far : the smallest and the largest D/W · without_top :
    the mean without the farthest units, which only rows tell where weights are unequal.
    """

    n: Any
    mean: Floats
    two: Floats
    three: Floats
    wins: int
    losses: int
    by_weight: float
    largest: Floats
    far: Floats
    without_top: float = np.nan

    @classmethod
    def of(cls, sums: Floats, weights: Floats | None) -> UnitSums:
        """Those of units' sums of differences; `weights` are what each sum is divided by."""
        n = len(sums)
        size = 1 if weights is None else 2
        without = np.nan
        w = np.ones(1) if weights is None else weights
        d = sums / w
        mean = np.array([0.0, 1.0])
        two = np.zeros((2, 2))
        three = np.zeros((2, 2, 2))
        with undefined_is_nan():  # of huge values, only the mean counts
            x = np.array([sums, w][:size])
            mean[:size] = x.mean(axis=1) if n else 0.0
            z = x - mean[:size, None]
            two[:size, :size] = np.einsum("an,bn->ab", z, z)
            three[:size, :size, :size] = np.einsum("an,bn,cn->abc", z, z, z)
            if weights is not None and n > 1:
                around = linearise(sums, weights)[1]
                top, out, _ = top_units(around, n_top(n))
                rest = sums.sum() - out @ sums[top], weights.sum() - out @ weights[top]
                without = rest[0] / rest[1]
            by_weight = float(np.einsum("n,n->", sums, d))
        largest = np.array([one.max(initial=-np.inf) for one in (np.abs(sums), np.abs(d), w, -w)])
        wins = int((d > 0).sum())
        losses = int((d < 0).sum())
        return cls(n, mean, two, three, wins, losses, by_weight, largest, _farthest(d), without)

    @classmethod
    def added(cls, parts: Sequence[UnitSums]) -> UnitSums:
        """Those of all parts, counted from the mean of all, h from that of each part."""
        if len(parts) == 1:
            return parts[0]
        ns, means_of, two_of, three_of, *counts, largest, far, _ = zip(*parts, strict=True)
        wins, losses, by_weight = map(sum, counts)
        n = np.array(ns)
        means = np.array(means_of)
        two = np.array(two_of)
        mean = n @ means / max(n.sum(), 1)
        h = means - mean
        cross = np.einsum("pa,pbc->abc", h, two)
        cross = cross + cross.transpose(1, 0, 2) + cross.transpose(1, 2, 0)
        return cls(
            n.sum(),
            mean,
            two.sum(axis=0) + np.einsum("p,pa,pb->ab", n, h, h),
            np.sum(three_of, axis=0) + cross + np.einsum("p,pa,pb,pc->abc", n, h, h, h),
            wins,
            losses,
            by_weight,
            np.max(largest, axis=0),
            _farthest(np.concatenate(far)),
        )

    def tested(self) -> tuple[Row, Arm]:
        """What they say in a row, and the estimate of which a test is made, whose variance is null
        of one unit and of huge differences.

        `typical` is how many units of the typical weight they are.
        """
        n = self.n
        most, least = self.largest[2:] * (1, -1)
        weighted = (most, least) != (1, 1)  # a weight is not 1
        without = self.without_top
        wins, losses = self.wins, self.losses
        row: Row = {
            "n_users": n,
            "wins": wins,
            "ties": n - wins - losses,
            "losses": losses,
            "skewed_by": 0.0,
            "far_side": 0.0,
            "evenness": np.nan,
            "typical": 0.0,
            "heaviest": most if most > least * (1 + MEAN_ROUNDING) else np.nan,
        }
        # The cubes of values above 1e102 are no numbers, and the skewness needs them.
        if n < 2 or self.largest[:2].max() >= HUGE or not np.isfinite(self.three).all():
            return row, Arm(self.mean[0] / self.mean[1] if n else np.nan, np.nan, np.nan)
        ratio = self.mean[0] / self.mean[1]
        total = n * self.mean[1]
        form = np.array([1.0, -ratio]) / self.mean[1]
        squares = max(form @ self.two @ form, 0.0)
        varies = np.sqrt(squares / n) > MEAN_ROUNDING * self.largest[0] / self.mean[1]
        var = squares / n if varies else 0.0
        cubes = np.einsum("a,b,c,abc->", form, form, form, self.three) / n
        weights = self.two[1, 1] + n * self.mean[1] ** 2  # Σ W²
        spread = n * var / (n - 1)
        if weighted:
            spread = (self.by_weight - ratio**2 * total) / (total - weights / total)
        else:  # which units are the farthest is known where all weigh the same
            top, out, _ = top_units(self.far - ratio, n_top(n))
            without = (total * ratio - out @ self.far[top]) / max(n - out.sum(), 1)
        row |= {"diff": ratio, "diff_without_top": without}
        row["typical"] = total / np.sqrt(weights / n)
        if var > 0 and wins + losses:  # ties differ by rounding alone
            row["skewed_by"] = abs(cubes / var**1.5) / SKEWED_PAIRS / np.sqrt(n)
            row["far_side"] = np.sign(cubes)  # where the few large differences are
            row["d_z"] = row["diff"] / np.sqrt(max(spread, 0.0))
            if weighted:
                row["evenness"] = total**2 / weights / min(FEW_LISTS_CARRY, n / 2)
        return row, Arm(ratio, var / (n - 1), n - 1)


def _farthest(d: Floats) -> Floats:
    """The smallest and the largest, all of a few."""
    k = MOST_TOP_UNITS
    if len(d) > 2 * k:
        d = np.partition(d, [k - 1, len(d) - k])
        d = np.concatenate([d[:k], d[-k:]])
    return np.sort(d)


def paired_test(units: UnitSums, metric: str, settings: Settings, powered: Ends | None) -> Row:
    """Statistics of a pair but those of ranks and of resampling. `powered` is an estimate from more
    than these units, whose interval and p-values count."""
    numbers, estimate = units.tested()
    row: Row = dict.fromkeys(MODEL_RESULT_COLUMNS, np.nan) | numbers
    row |= {"ranks_higher": False, "remarks": ""}
    test = settings.tests[metric]
    margin = settings.margins.get(metric)
    if units.n < 2:
        return but(row, "too_few_users", diff=estimate.mean)
    if np.isnan(estimate.var):
        return but(row, "huge_values")
    if powered is not None:  # what it would be without some of these units says nothing of it
        row["ci_low"], row["ci_high"] = powered.interval(settings.confidence, settings.alternative)
        if margin is not None:
            sides = powered.p_value("greater", -margin), powered.p_value("less", margin)
            row["p_equivalence"] = max(sides)
        return row | {
            "diff": powered.mean,
            "diff_without_top": np.nan,
            "se": powered.se,
            "df": powered.df,
            "statistic": powered.mean / powered.se if powered.se > 0 else np.nan,
            "p_value": powered.p_value(settings.alternative),
        }
    if "d_z" not in numbers:
        return but(row, "zero_variance")
    row["se"] = se = np.sqrt(estimate.var)
    if margin is not None:
        row["p_equivalence"] = equivalence_p(row["diff"], se, estimate.df, margin)
    if TESTS[test].resampled:
        return row
    t = one_sample(estimate, alternative=settings.alternative, confidence=settings.confidence)
    used = ["ci_low", "ci_high"]
    used += [] if test == "wilcoxon" else ["statistic", "df", "p_value"]
    return row | {name: float(getattr(t, name)) for name in used}


def add_resamples(
    waiting: Sequence[tuple[Row, tuple[Floats, Floats | None]]], test: str, settings: Settings
) -> None:
    """Add interval and p to rows, by one set of resamples of the units' sums that stand beside
    each.

    Beside the sums stands what each is divided by: 0 for what is not a unit of this pair, None for
    1 everywhere.
    """
    filled = [d for _, (d, _) in waiting]
    masks, mask_of = distinct_columns(
        [np.ones(len(d)) if weight is None else weight for _, (d, weight) in waiting]
    )
    n, n_units = np.array([(one.sum(), np.count_nonzero(one)) for one in masks])[mask_of].T
    total = np.array([d.sum() for d in filled])
    b = settings.n_resamples
    bootstrap = test == "bootstrap"
    sums = (poisson_sums if bootstrap else sign_sums)([*filled, *masks], b, settings.seed)
    sums, weights = sums[:, : len(filled)], sums[:, len(filled) :][:, mask_of]
    given = (settings.alternative, settings.confidence)
    mean = total / n
    if bootstrap:
        with undefined_is_nan():
            found = by_row(**bootstrap_effect(sums / weights, *given))
    else:
        # Flipped differences around their mean, spread by the n/(n − 1) that centring took away.
        centred = (sums - mean * weights) / n * np.sqrt(n_units / (n_units - 1))
        low, high = sign_flip_interval(centred, mean, *given)
        p = sign_flip_p(sums, total, settings.alternative)
        found = by_row(ci_low=low, ci_high=high, p_value=p)
    for (row, (d, _)), numbers in zip(waiting, found, strict=True):
        row |= numbers | {"n_resamples": b}
        unequal = np.count_nonzero(d)
        if not bootstrap and unequal <= EXACT_UNITS and 2**unequal <= b:
            p_value = exact_sign_flip_p(d, settings.alternative)
            row |= {"p_value": p_value, "n_resamples": 2**unequal}


def add_turned(
    table: DataFrame,
    effects: npt.NDArray[np.object_],
    equivalent: Mask,
    better: Directions,
    settings: Settings,
) -> None:
    """Add what turns the effect of each row. The effect may become "equivalent": if a few unseen
    units could change the sign of a difference, but could not move it beyond the margin.

    `turned_by` units at a bound of the metric turn it, and K = `unseen` of them may be missing by
    chance; of a metric without bounds, K units of `turning_value` do. Both are null where nothing
    is said, and `turned_by` too where the estimate allows for one more unit at a bound (cheap
    labels).
    """
    names = "diff", "typical", "reach", "p_value", "p_adj", "p_equivalence", "p_equivalence_adj"
    diff, units, reach, *ps = (table[name].to_numpy(np.float64) for name in names)
    unseen, of_margin = (missing_by_chance(settings.alpha, *one) for one in (ps[:2], ps[2:]))
    margin = np.array([settings.margins.get(name, np.nan) for name in table["metric"]])
    powered = table["powered"].to_numpy(bool)
    claims: list[Number] = [0.0, -margin, margin]
    by = [turned_by(diff, units, -reach, reach, claim) for claim in claims]
    least = np.where(powered, np.inf, np.fmin(by[1], by[2]))
    effects[equivalent & (by[0] < unseen) & (least >= of_margin) & ~powered] = "equivalent"
    within = equivalent & (effects != "equivalent") & ~(least < of_margin)
    # The sample may lack the few whose large differences lead beyond the margin.
    asked = within & ~powered & (table["far_side"].to_numpy(float) * diff > 0)
    rows = zip(asked, ps[2], table["skewed_by"], of_margin, strict=True)
    lean = [at and by > 1 and skewness_makes(p, by, k) for at, p, by, k in rows]
    remark(table, within & ~np.array(lean, bool), "within_margin")
    alike = effects == "equivalent"
    said = alike | np.isin(effects, ("better", "worse", "higher", "lower"))
    low = np.where(alike, by[1] < by[2], diff > 0)  # units at the lower bound turn it
    table["turned_by"] = np.where(said & ~powered, np.where(alike, least, by[0]), np.nan)
    claim = np.where(alike, np.where(low, -margin, margin), 0.0)
    table["unseen"] = own = np.where(alike, of_margin, unseen)
    value = turning_value(diff, units, claim, own)
    table["turning_value"] = np.where(said & np.isnan(reach), value, np.nan)
    smaller = np.array([better[metric] == "smaller" for metric in table["metric"]], bool)
    words = np.where(low != smaller, "lose", "gain")
    table["turned_to"] = np.where(said & ~powered, words, "")
