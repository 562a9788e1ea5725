"""Few human labels with many cheap ones: means and differences that use both, and hold under a biased judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import DataError, DuplicateError, OptionError
from ...inputs.constraints import SHARE
from ...inputs.options import as_columns
from ...inputs.per_user_columns import list_columns
from ...stats.moments import moments_of
from ...stats.prediction_powered import (
    PoweredMean,
    Tuning,
    powered_interval,
    powered_mean,
    powered_values,
    sampled_mean,
)
from ...stats.student import t_p_value
from ..choices import Better, Columns, check_value
from ..decide.verdict import directions
from ..experiment_columns import (
    Codes,
    Floats,
    Mask,
    frame_of,
    key_codes,
    metric_specs,
    metric_values,
    require,
    some_keys,
)

FEW_HUMAN = 30  # lists that people judged; with fewer the interval does not hold
NOT_RANDOM = 0.01  # p of the test that people judged a random sample, all covariates together
POWERED_COLUMNS = [
    "baseline", "model", "metric", "n_human", "n_cheap", "mean", "se", "ci_low", "ci_high", "mean_human",
    "ci_low_human", "ci_high_human", "mean_cheap", "bias", "bias_low", "bias_high", "weight", "n_effective", "p_random",
    "confidence", "warning", "verdict",
]  # fmt: skip


class Judged(NamedTuple):
    """Lists of one model that the cheap labels have: which of them people judged, and the chance of that."""

    rows: pd.DataFrame  # of `cheap`
    human: pd.DataFrame  # the rows of the same lists in `human`, missing where nobody judged
    there: Mask
    chance: Floats | None


def prediction_powered(
    human: pd.DataFrame, cheap: pd.DataFrame, metrics: str | Sequence[str] | None = None, *,
    model_col: str = "model", baseline: Any = None, user_col: Columns | None = None,
    covariates: Columns | None = None, probability_col: str | None = None, tuning: Tuning = "open",
    smaller_is_better: Columns | None = None, larger_is_better: Columns | None = None, confidence: float = 0.95,
) -> pd.DataFrame:  # fmt: skip
    """Estimate means, or differences of models, from few lists that people judged and many that a judge labelled.

    With Y and f the values of a list under human and cheap labels, n lists that have both, and N more that have cheap
    labels alone:

        θ = λ·mean_N(f) + mean_n(Y − λf),   λ = max(0, cov_n(Y, f)/((1 + n/N)·var_n(f)))
        var θ = λ²·var_N(f)/N + var_n(Y − λf)/n

    and the interval is that of Student's t with n − 2 degrees of freedom. It holds however biased the judge is, since
    people correct it; a good judge makes it shorter, and a useless one leaves the interval of the human labels.

    Parameters
    ----------
    human, cheap : DataFrame
        `result.per_user` of two evaluations of the same recommendations, one on each kind of labels. `cheap` has the
        lists of `human` and more; those of `human` are a random sample of them.
    metrics : str or list of str, optional
        Columns such as "ndcg@10". Default: the float columns that both have.
    model_col : str, default "model"
        Column of the model, if there is one.
    baseline : label, optional
        Estimate the differences from this model, list by list, in place of means.
    user_col : str or list of str, optional
        Columns of the list key. Default: the columns before `n_true`, less `model_col`.
    covariates : str or list of str, optional
        Numeric columns of `cheap` (activity, age of the account) by which the random sample is tested, beside f.
    probability_col : str, optional
        Column of `human`: the probability with which a list was chosen, as `rd.sample_to_judge` returns it, and 1 for
        lists that people had judged in full before. Each list has the weight 1/probability; where the weights add up to
        the number of lists in `cheap`, lists of one probability are a stratum. Default: all lists had the same.
    tuning : {"open", "clipped"}, default "open"
        "clipped" is what ppi-python does: λ between 0 and 1, normal quantiles.
    smaller_is_better, larger_is_better : str or list of str, optional
        As in `compare_models`.
    confidence : float, default 0.95
        Of the intervals, each by itself; `rd.compare_models` of `rd.diagnostics.with_cheap_labels` corrects for several
        tests.

    Returns
    -------
    DataFrame
        One row per model and metric: `baseline`, `model` (null where there is none), `metric`, `n_human` (n), `n_cheap`
        (N), `mean` (or mean difference), `se`, `ci_low`, `ci_high`; `mean_human` with its interval, from human labels
        alone; `mean_cheap` (of all n + N, biased); `bias` (mean of f − Y) with its interval; `weight` (λ),
        `n_effective` (human labels that would give the same interval alone), `p_random` (test of the random sample),
        `confidence`, `warning`, `verdict`.
        Verdict of a mean: "both" where the joint interval is shorter, else "human alone"; of a difference "better",
        "worse", "no difference shown" ("higher", "lower" without a direction); "cannot tell" with a warning:
        "few_human" (fewer than 30, or with probabilities lists whose weights count as fewer), "not_random" (the lists
        that people judged differ from the others, p below 0.01), "undefined_differs" (a judged list has a value under
        one kind of labels alone, as ndcg has none where nothing is relevant: evaluate with `undefined="zero"`, or take
        a metric that every list has, such as precision).

    Raises
    ------
    ColumnError, OptionError
        A column or the baseline is missing; probabilities with tuning="clipped".
    DuplicateError
        Several rows of a model and list.
    DataError
        No list of `human` is in `cheap`, some are not, or `cheap` has no more; fewer than 3 lists; probabilities out of
        (0, 1].

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023 (prediction-powered inference); Angelopoulos, Duchi, Zrnic 2023
    (PPI++).

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.beta(2, 3, 3000)
    >>> cheap = pd.DataFrame({"user_id": range(3000), "ndcg@10": 0.5 * truth + 0.4 + rng.normal(0, 0.03, 3000)})
    >>> judged = rng.choice(3000, 100, replace=False)
    >>> human = pd.DataFrame({"user_id": judged, "ndcg@10": truth[judged]})
    >>> found = rd.prediction_powered(human, cheap, "ndcg@10", user_col="user_id")
    >>> found[["mean", "ci_low", "ci_high", "ci_low_human", "ci_high_human", "mean_cheap", "n_effective"]].round(3)
        mean  ci_low  ci_high  ci_low_human  ci_high_human  mean_cheap  n_effective
    0  0.391   0.378    0.404         0.337          0.417       0.599      908.276
    """
    for name, value, hint in (("confidence", confidence, SHARE), ("tuning", tuning, Tuning)):
        check_value(name, value, hint)
    if probability_col is not None and tuning == "clipped":
        raise OptionError('⟦probability_col=⟧ and ⟦tuning="clipped"⟧ exclude each other; leave out one of them')
    names = _shared_metrics(human, cheap, metrics)
    keys = as_columns(user_col) or [one for one in list_columns(cheap) if one != model_col] or ["user_id"]
    tested = require(cheap, "cheap", as_columns(covariates))
    sides = list(judged_lists(human, cheap, keys, model_col, probability_col))
    better = directions({name: name for name in names}, smaller_is_better, larger_is_better)
    rows = []
    for model, own, base, of in _models_beside(sides, baseline):
        for name in names:
            y, f = labelled_values(own, name)
            if base is not None:
                y, f = (one - other for one, other in zip((y, f), labelled_values(base, name), strict=True))
            row = _powered_row(y, f, own, tested, tuning, confidence)
            difference = of is not None
            verdict = _verdict_of(row, difference, better[name])
            rows.append({"baseline": of, "model": model, "metric": name, **row, "confidence": confidence,
                         "verdict": verdict})  # fmt: skip
    return pd.DataFrame(rows)[POWERED_COLUMNS]


def _shared_metrics(human: pd.DataFrame, cheap: pd.DataFrame, metrics: Any) -> list[str]:
    """Return the metrics that both tables have."""
    for role, frame in (("human", human), ("cheap", cheap)):
        frame_of(role, frame)
    if metrics is None:
        both = [name for name in human.columns if name in cheap.columns]
        metrics = [name for name in both if all(pd.api.types.is_float_dtype(one[name].dtype) for one in (human, cheap))]
    specs = metric_specs(metrics, human, "human")
    metric_specs(list(specs), cheap, "cheap")
    return list(specs)


def judged_lists(
    human: pd.DataFrame, cheap: pd.DataFrame, keys: list[str], model_col: str, probability_col: str | None = None
) -> Iterator[tuple[Any, Judged]]:
    """Give the lists of every model, in the order of the cheap labels; all together where there are no models."""
    by = [model_col] if model_col in cheap.columns and model_col not in keys else []
    for role, frame in (("human", human), ("cheap", cheap)):
        require(frame, role, [*by, *keys])
        if frame.duplicated([*by, *keys]).any():
            raise DuplicateError(f"{role} has several rows per {[*by, *keys]}; name the list key in ⟦+user_col=⟧")
    chance = None
    if probability_col is not None:
        chance = metric_values(human, "human", require(human, "human", [probability_col])[0])
        if not ((chance > 0) & (chance <= 1)).all():
            raise DataError(f"human[{probability_col!r}] is not in (0, 1] everywhere; expected probabilities")
    (own, other), n = key_codes([("human", human), ("cheap", cheap)], [*by, *keys])
    place = np.full(n, -1)
    place[other] = np.arange(len(other))
    lost = place[own] < 0
    if lost.any():
        some = "no list" if lost.all() else f"{int(lost.sum()):,} of {len(human):,} lists do not"
        have = f"{some} of human has cheap labels" if lost.all() else f"{some} have cheap labels"
        raise DataError(f"{have} ({some_keys(human, lost, [*by, *keys])}); evaluate the same recommendations on both")
    row = np.full(len(cheap), -1)
    row[place[own]] = np.arange(len(human))
    models = cheap[model_col].drop_duplicates().tolist() if by else [None]
    for model in models:
        at: Codes = np.flatnonzero(cheap[model_col] == model) if by else np.arange(len(cheap))
        there = row[at] >= 0
        rows = human.take(np.maximum(row[at], 0)).reset_index(drop=True)
        own_chance = None if chance is None else np.where(there, chance[np.maximum(row[at], 0)], np.nan)
        yield model, Judged(cheap.take(at).reset_index(drop=True), rows, there, own_chance)


def labelled_values(own: Judged, name: str) -> tuple[Floats, Floats]:
    """The values of a metric under human labels, NaN where nobody judged, and under cheap ones."""
    human = metric_values(own.human, "human", name)
    return np.where(own.there, human, np.nan), metric_values(own.rows, "cheap", name)


def _models_beside(sides: list[tuple[Any, Judged]], baseline: Any) -> Iterator[tuple[Any, Judged, Judged | None, Any]]:
    """Give every model, or every model beside the baseline, with the same lists."""
    if baseline is None:
        yield from ((model, own, None, None) for model, own in sides)
        return
    found = dict(sides)
    if baseline not in found:
        raise OptionError(f"⟦baseline={baseline!r}⟧ is not a model; models are {list(found)}")
    base = found.pop(baseline)
    for model, own in found.items():
        if len(own.there) != len(base.there) or (own.there != base.there).any():
            raise DataError(f"{baseline} and {model} have other lists, or people judged other lists of them")
        yield model, own, base, baseline


def powered_estimate(y: Floats, f: Floats, chance: Floats | None, tuning: Tuning = "open") -> PoweredMean:
    """The estimate from values of the same lists; `y` is NaN where nobody judged, and lists without f do not count."""
    known = ~np.isnan(f)
    there = known & ~np.isnan(y)
    if there.sum() < 3:
        raise DataError(f"{int(there.sum())} lists have human labels; an estimate needs at least 3")
    if (there == known).all():
        raise DataError("cheap has no more lists than human; the human labels alone say all that there is")
    if chance is not None:
        return sampled_mean(y[there], f[there], f[known], chance[there])
    return powered_mean(y[there], f[there], f[known & ~there], tuning)


def _powered_row(
    y: Floats, f: Floats, own: Judged, covariates: Sequence[str], tuning: Tuning, confidence: float
) -> dict[str, Any]:
    """All numbers of one mean or difference."""
    found = powered_estimate(y, f, own.chance, tuning)
    there, known = ~np.isnan(y) & ~np.isnan(f), ~np.isnan(f)
    n = int(there.sum())
    nothing = np.zeros(known.sum())
    shares = None if own.chance is None else own.chance[there]
    alone, bias = (
        powered_mean(one, nothing[:n], nothing[:1]) if shares is None
        else sampled_mean(one, nothing[:n], nothing, shares)
        for one in (y[there], f[there] - y[there])
    )
    alone, bias = (one._replace(df=one.df + 1) for one in (alone, bias))
    low, high = powered_interval(found, confidence)
    human, off = powered_interval(alone, confidence), powered_interval(bias, confidence)
    tested = [f, *(metric_values(own.rows, "cheap", one) for one in covariates)]
    random = np.nan if own.chance is not None else _random_p(tested, there)
    count = n if shares is None else (1 / shares).sum() ** 2 / (1 / shares**2).sum()  # few lists may stand for many
    unlike = bool((np.isnan(y) != np.isnan(f))[own.there].any())
    doubts = {"few_human": count < FEW_HUMAN, "not_random": random < NOT_RANDOM, "undefined_differs": unlike}
    return {
        "n_human": n, "n_cheap": int(known.sum()) - n, "mean": found.mean, "se": float(np.sqrt(found.var)),
        "ci_low": low, "ci_high": high, "mean_human": alone.mean, "ci_low_human": human[0], "ci_high_human": human[1],
        "mean_cheap": float(f[known].mean()), "bias": bias.mean, "bias_low": off[0], "bias_high": off[1],
        "weight": found.weight, "p_random": random,
        "n_effective": n * ((human[1] - human[0]) / (high - low)) ** 2 if high > low else np.nan,
        "warning": "; ".join(word for word, holds in doubts.items() if holds),
    }  # fmt: skip


def _random_p(columns: list[Floats], there: Mask) -> float:
    """p of the hypothesis that people judged a random sample: Welch's t of each column, by Bonferroni."""
    least = 1.0
    for values in columns:
        one, two = (moments_of(values[rows & ~np.isnan(values)]) for rows in (there, ~there))
        if min(one.n, two.n) < 2:
            continue
        parts = np.array([one.var / (one.n - 1), two.var / (two.n - 1)])
        if parts.sum() > 0:
            df = parts.sum() ** 2 / (parts**2 / (np.array([one.n, two.n]) - 1)).sum()
            least = min(least, float(t_p_value((one.mean - two.mean) / np.sqrt(parts.sum()), df, "two-sided")))
    return min(1.0, len(columns) * least)


def _verdict_of(row: dict[str, Any], difference: bool, better: Better | None) -> str:
    if row["warning"]:
        return "cannot tell"
    if not difference:
        return "both" if row["n_effective"] > row["n_human"] * 1.02 else "human alone"
    side = (row["ci_low"] > 0) - (row["ci_high"] < 0)
    if better is None:
        return ("lower", "no difference shown", "higher")[side + 1]
    return ("worse", "no difference shown", "better")[(side if better == "larger" else -side) + 1]


def with_cheap_values(
    human: pd.DataFrame, cheap: pd.DataFrame, names: Sequence[str], keys: list[str], model_col: str
) -> pd.DataFrame:
    """The rows of `cheap` with values of which the plain means, and their variances, are those of both labels."""
    parts = []
    for _, own in judged_lists(human, cheap, keys, model_col):
        table = own.rows.copy(deep=False)
        for name in names:
            y, f = labelled_values(own, name)
            found = powered_estimate(y, f, None)
            known = ~np.isnan(f)
            table[name] = np.full(len(f), np.nan)
            table.loc[known, name] = powered_values(y[known], f[known], (own.there & ~np.isnan(y))[known], found)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)
