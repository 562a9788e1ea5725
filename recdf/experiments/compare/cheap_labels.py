"""Few human labels with many cheap ones: means and differences that use both, and hold under a
biased judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import DataError, EmptyPopulationError, OptionError
from ...inputs.constraints import OneLabel
from ...inputs.door import checks_names
from ...judge.choices import AnyRow, Columns, Row, Share, as_columns
from ...judge.comparisons import DETAILS
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    evaluated,
    float_columns,
    frame_of,
    key_codes,
    list_columns,
    metric_specs,
    metric_values,
    require,
    some_keys,
    warn_of_weights,
)
from ...judge.users import ModelRows, model_pairs, only_rows, read_model_rows
from ...judge.verdict import (
    VERDICT_COLUMNS,
    add_verdicts,
    by_rank,
    codes_of,
    effects_of,
    name_heaviest,
    remark,
)
from ...stats.arms import moments_of
from ...stats.numbers import normal_quantile
from ...stats.prediction_powered import Tuning, labelled_units, powered_mean, sampled_mean
from ...stats.shares import is_binary
from ...stats.student import t_p_value
from ...stats.turned import Ends, clopper_pearson, typical_units
from ...tables.cells import beside_columns, estimated, visible
from ..decide.adjust_pvalues import directions
from ..metric_bounds import MetricBounds, bounds_of, of_difference, seen_bounds
from ..samples import declared_bounds

FEW_HUMAN = 30  # lists that people judged; with fewer the interval does not hold
NOT_RANDOM = 0.01  # p of the test that people judged a random sample, all covariates together
JUDGED = "judged by people"  # a column of a table that has both labels
MOST_BIASES = 5  # that are said in sentences
NO_MORE = "cheap has no more lists than human; the human labels alone say all that there is"
# Of a comparison, besides those that every one has.
CHEAP_COLUMNS = ["n_human", "n_cheap", *DETAILS["n_human"].split()]
POWERED_COLUMNS = [
    "baseline",
    "model",
    "metric",
    *CHEAP_COLUMNS[:2],
    "mean",
    "se",
    "ci_low",
    "ci_high",
    *(name.replace("diff", "mean") for name in CHEAP_COLUMNS[2:]),
    "confidence",
    "holds_for",
    *VERDICT_COLUMNS,
]


@checks_names
def prediction_powered(
    human: DataFrame,
    cheap: DataFrame,
    metrics: Columns | None = None,
    *,
    model_col: str = "model",
    baseline: OneLabel = None,
    user_col: Columns | None = None,
    covariates: Columns | None = None,
    probability_col: str | None = None,
    tuning: Tuning = "open",
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    confidence: Share = 0.95,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> DataFrame:
    """Estimate means, or differences of models, from few lists that people judged and many that a
    judge labelled.

    With Y and f the values of a list under human and cheap labels, n lists that have both, and N
    more that have cheap labels alone:

        θ = λ·mean_N(f) + mean_n(Y − λf),   λ = max(0, cov_n(Y, f)/((1 + n/N)·var_n(f)))
        var θ = λ²·var_N(f)/N + var_n(Y − λf)/n

    and the interval is that of Student's t with n − 2 degrees of freedom, joined with the one-sided
    ends, at twice the tail, of the sample with one more list at either bound of Y − λf: a judge
    that is rarely wrong, and then far, may not have been wrong in n lists. It holds however biased
    the judge is, since people correct it. The interval of the human labels alone is made in the
    same way (that of Clopper and Pearson where every value is 0 or 1), and where it is the
    narrower one, or the judge tells nothing (λ = 0), it counts and λ is 0.

    Parameters
    ----------
    human, cheap : DataFrame
        `result.per_user` of two evaluations of the same recommendations, one on each kind of
        labels. `cheap` has the lists of `human` and more; those of `human` are a random sample of
        them.
    metrics : str or list of str, optional
        Columns such as "ndcg@10". Default: the float columns that both have.
    model_col : str, default "model"
        Column of the model, if there is one.
    baseline : label, optional
        Estimate the differences from this model, list by list, in place of means.
    user_col : str or list of str, optional
        Columns of the list key. Default: the columns before `n_true`, less `model_col`.
    covariates : str or list of str, optional
        Numeric columns of `cheap` (activity, age of the account) by which the random sample is
        tested, beside f.
    probability_col : str, optional
        Column of `human`: the probability with which a list was chosen, as
        `rd.diagnostics.sample_to_judge` returns it, and 1 for lists that people had judged in full
        before. Each list has the weight 1/probability; where the weights add up to the number of
        lists in `cheap`, lists of one probability are a stratum. Default: all lists had the same.
    tuning : {"open", "clipped"}, default "open"
        "clipped" is what ppi-python does: λ between 0 and 1, normal quantiles, no list more.
    smaller_is_better, larger_is_better : str or list of str, optional
        As in `compare_models`.
    confidence : float, default 0.95
        Of the intervals, each by itself; `rd.compare_models` with `cheap=` corrects for several
        tests.
    bounds : mapping, optional
        Metric → (smallest, largest value), for metrics that recdf does not know. Default: the
        bounds of the metric; else those of the values seen, which may be too narrow.

    Returns
    -------
    DataFrame
        One row per model and metric: `baseline`, `model` (null where there is none), `metric`,
        `n_human` (lists that people judged, n), `n_cheap` (N), `mean` (or mean difference), `se`,
        `ci_low`, `ci_high`; `mean_human` with its interval, from human labels alone; `mean_cheap`
        (of all n + N, biased); `bias` (mean of f − Y) with its interval; `weight` (λ),
        `n_effective` (human labels that would give the same interval alone), `p_random` (p of the
        test that the lists were sampled at random: the row's own, or the smallest of all rows times
        their number if that is less), `confidence`, `holds_for` (up to how many lists users with a
        judged list have, where others have more), `effect`, `withheld`, `remarks`, `verdict`.
        Verdict of a mean: "both" where the joint interval is
        shorter, else "human alone"; of a difference "better", "worse", "no
        difference shown" ("higher", "lower" without a direction); withheld with a remark:
        "few_human" (fewer than 30, or with probabilities lists whose weights count as fewer),
        "not_random" (the lists that people judged differ from the others, p below 0.01),
        "undefined_differs" (with probabilities: a judged list has a value under one kind of labels
        alone, as ndcg has none where nothing is relevant; evaluate with `undefined="zero"`, or take
        a metric that every list has, such as precision. Without them, such a list is none of the
        mean, and the estimate allows for the lists like it that nobody judged).

    Raises
    ------
    ColumnError, OptionError
        A column or the baseline is missing; probabilities with tuning="clipped".
    DuplicateError
        Several rows of a model and list.
    DataError
        No list of `human` is in `cheap`, some are not, or `cheap` has no more; fewer than 3 lists;
        probabilities out of (0, 1]; a value outside of `bounds`.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023 (prediction-powered inference); Angelopoulos,
    Duchi, Zrnic 2023 (PPI++).

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.beta(2, 3, 3000)
    >>> cheap = pd.DataFrame(
    ...     {"user_id": range(3000), "ndcg@10": 0.5 * truth + 0.4 + rng.normal(0, 0.03, 3000)}
    ... )
    >>> judged = rng.choice(3000, 100, replace=False)
    >>> human = pd.DataFrame({"user_id": judged, "ndcg@10": truth[judged]})
    >>> found = rd.experiments.prediction_powered(human, cheap, "ndcg@10", user_col="user_id")
    >>> found[
    ...     [
    ...         "mean",
    ...         "ci_low",
    ...         "ci_high",
    ...         "ci_low_human",
    ...         "ci_high_human",
    ...         "mean_cheap",
    ...         "n_effective",
    ...     ]
    ... ].round(3)
        mean  ci_low  ci_high  ci_low_human  ci_high_human  mean_cheap  n_effective
    0  0.391   0.359    0.437         0.337          0.418       0.599      107.017
    """
    if probability_col is not None and tuning == "clipped":
        raise OptionError(
            '⟦probability_col=⟧ and ⟦tuning="clipped"⟧ exclude each other; leave out one of them'
        )
    names = shared_metrics(human, cheap, metrics)
    listed = [one for one in list_columns(cheap) if one != model_col]
    keys = as_columns(user_col) or listed or ["user_id"]
    tested = require(cheap, "cheap", covariates)
    by = [model_col] if model_col in cheap and model_col not in keys else []
    chance = require(human, "human", probability_col)
    for name in chance:
        values = metric_values(human, "human", name)
        if not ((values > 0) & (values <= 1)).all():
            raise DataError(f"human[{name!r}] is not in (0, 1] everywhere; expected probabilities")
    certain = cheap.assign(**dict.fromkeys(chance, 1.0))
    joined = join_labels(human, certain, [*names, *chance], [*by, *keys])
    # The lists of every model with both labels; of None without models.
    runs = read_model_rows(joined if by else {None: joined}, keys, [], model_col, least=1)
    warn_of_weights(human, "human", [*keys, *tested, *names])
    pairs = [(model, model) for model in range(len(runs.models))]
    if baseline is not None:
        pairs = model_pairs(runs.models, baseline)
    better = directions({name: name for name in names}, smaller_is_better, larger_is_better)
    declared = declared_bounds(bounds, names)
    rows = []
    for base, model in pairs:
        own, others = (runs.table(JUDGED)[i] for i in (model, base))
        if not np.array_equal(own, others, equal_nan=True):
            raise DataError(
                f"{baseline} and {runs.models[model]} have other lists, or people judged other "
                "lists of them"
            )
        judged = own > 0
        for name in names:
            beside = [runs.table(one)[model] for one in tested]
            compared = [model] if baseline is None else [model, base]
            # Labels of people and cheap ones, by model.
            values = np.array([runs.table(one)[compared] for one in (name, cheap_column(name))])
            ends = bounds_of(name, declared, values) or seen_bounds(values)
            y, f = values[:, 0]
            if baseline is not None:
                y, f = values[:, 0] - values[:, 1]
                ends = of_difference(ends)
                beside = [values[1, 1], *beside]
            there = ~np.isnan(y) & ~np.isnan(f)
            if there.sum() < 3:
                raise DataError(
                    f"{there.sum()} lists have human labels and cheap ones; an estimate needs at "
                    "least 3"
                )
            if not (~judged & ~np.isnan(f)).any():
                raise DataError(NO_MORE)
            given: dict[str, Any] = {"unit": runs.unit_of_list}
            lists = judged
            if chance:  # of the lists that have both values
                unlike = bool(((np.isnan(y) != np.isnan(f)) & judged).any())
                given = {"unlike": unlike, "chance": runs.table(chance[0])[model][there]}
                lists = there
                y = np.where(there, y, np.nan)
                f = np.where(judged & ~there, np.nan, f)
            row = labelled_row(y, f, lists, ends, confidence, beside=beside, tuning=tuning, **given)
            rows.append({"model": runs.models[model], "metric": name, **row})
    table = DataFrame(rows).assign(baseline=baseline, confidence=confidence)
    share_samples(table, np.zeros(len(table)))
    name_heaviest(table, weighted=False)
    joint = table["n_effective"] > table["n_human"] * 1.02
    effects = np.where(joint, "both", "human_alone").tolist()
    if baseline is not None:
        shown = (table["ci_low"] > 0) | (table["ci_high"] < 0)
        effects = effects_of(table.assign(diff=table["mean"]), shown.to_numpy(), better)
    add_verdicts(table, "labels", effects)
    return table[POWERED_COLUMNS]


def shared_metrics(
    human: DataFrame, cheap: DataFrame, metrics: Any, role: str = "human"
) -> list[str]:
    """Return the metrics that both tables have; one that is defined in two ways raises."""
    human = frame_of(role, human)
    cheap = frame_of("cheap", cheap)
    if metrics is None:
        metrics = float_columns([human, cheap])
        if not metrics:
            raise OptionError(
                f"{role} and cheap have no metric in common; evaluate the same metrics on both "
                "labels"
            )
    specs = metric_specs(metrics, human, role)
    metric_specs(list(specs), cheap, "cheap")
    known = [evaluated(frame).get("metrics", {}) for frame in (human, cheap)]
    for name in specs:
        defined = [one.get(name, {}).get("definition") for one in known]
        if None not in defined and defined[0] != defined[1]:
            raise OptionError(
                f"{name!r} is {defined[0]} in {role} and {defined[1]} in cheap; evaluate both alike"
            )
    return list(specs)


def cheap_column(name: str) -> str:
    """The column of a metric under cheap labels in a table that has both."""
    return f"{name} under cheap labels"


def join_labels(
    human: DataFrame,
    cheap: DataFrame,
    names: Sequence[str],
    keys: Sequence[str],
    role: str = "human",
) -> DataFrame:
    """Return the rows of `cheap` with values of people in `names`, null where nobody judged, and
    the cheap ones beside.

    Rows of `cheap` whose model people have not judged are left out.
    """
    for name, one in ((role, human), ("cheap", cheap)):
        if one.empty:
            raise EmptyPopulationError(f"{name} has no rows; expected one per list")
    (own, other), n = key_codes([(role, human), ("cheap", cheap)], keys)
    advice = "; name the list key in ⟦+user_col=⟧"
    row = only_rows(role, human, own, n, keys, advice)[other]
    lost = only_rows("cheap", cheap, other, n, keys, advice)[own] < 0
    if lost.any():
        raise DataError(
            f"{lost.sum():,} of {len(human):,} lists of {role} do not have cheap labels "
            f"({some_keys(human, lost, keys)}); evaluate the same recommendations on both"
        )
    if len(human) == len(cheap):
        raise DataError(NO_MORE)
    made = {JUDGED: 1.0 * (row >= 0)}
    for name in names:
        values = metric_values(human, role, name, squared=True)[row]
        made[name] = np.where(row >= 0, values, np.nan)
        made[cheap_column(name)] = metric_values(cheap, "cheap", name, squared=True)
    return beside_columns(cheap, made)


def labels_of_both(
    per_user: Any,
    cheap: Any,
    metrics: Any,
    keys: Sequence[str],
    model_col: str,
    others: Sequence[str],
) -> tuple[Any, Any]:
    """Return what `compare_models` takes, with both labels, and the metrics that both have.

    `others` are columns that the comparison reads; they are those of `cheap`, which has all lists.
    """
    given = getattr(cheap, "per_user", cheap)
    mapped = isinstance(per_user, Mapping)
    own = per_user
    more = given
    if not mapped:
        models = frame_of("per_user", per_user)[model_col]
        require(given, "cheap", model_col)
        own = {"": per_user}
        more = {"": given[given[model_col].isin(models)]}
        keys = [model_col, *keys]
    elif not isinstance(given, Mapping) or set(per_user) != set(given):
        raise OptionError(
            "cheap is no mapping of the same models as per_user; expected the same form of both"
        )
    first = next(iter(own))
    names = shared_metrics(own[first], more[first], metrics, "per_user")
    joined = {}
    for name, one in own.items():
        require(more[name], "cheap", others)
        joined[name] = join_labels(one, more[name], names, keys, "per_user")
    return joined if mapped else joined[""], names


def labelled_row(
    y: Floats,
    f: Floats,
    judged: Mask,
    bounds: MetricBounds,
    confidence: float,
    weights: Floats | None = None,
    unit: Codes | None = None,
    beside: Sequence[Floats] = (),
    tuning: Tuning = "open",
    chance: Floats | None = None,
    unlike: bool = False,
) -> Row:
    """All numbers of one mean or difference, from values of lists that are between the bounds; null
    for fewer than three lists of people.

    Of the estimates with and without the judge, the one with the narrower interval counts; without
    a weight of the judge, that of people.
    """
    units = labelled_units(y, f, judged, weights, unit, beside)
    counts = {
        "n_human": (judged & ~np.isnan(y)).sum(),
        "n_cheap": (~judged & ~np.isnan(f)).sum(),
        "judged_up_to": units.heaviest,
        "heaviest": units.heaviest if units.heavier else np.nan,
    }
    if min(counts["n_human"], len(units.y)) < 3:
        nothing = {**dict.fromkeys(["df", *POWERED_COLUMNS], np.nan), "ends": None}
        return nothing | counts | {"remarks": "few_human"}
    y, f, rest = units[:3]
    n = len(y)
    typical, count = units.typical, units.n
    random = np.nan
    if chance is None:
        mean = partial(powered_mean, rest=rest, same=units.same)
        found = mean(y, f, tuning=tuning)
        random = _random_p([(f, rest), *units.beside])
    else:
        mean = partial(sampled_mean, everything=np.concatenate([f, rest]), chance=chance)
        found = mean(y, f)
        typical = typical_units(1 / chance)
        count = (1 / chance).sum() ** 2 / (1 / chance**2).sum()  # few may stand for many
    # Without the judge, one number less is estimated.
    alone, bias = (mean(one, 0 * f) for one in (y, f - y))
    alone, bias = (one._replace(df=one.df + 1) for one in (alone, bias))
    both, own = (one.ends(typical, bounds) for one in (found, alone))
    human = own.interval(confidence)
    if units.plain and chance is None and bounds == (0, 1) and is_binary(y):
        human = clopper_pearson(y.sum(), n, confidence)
    low, high = both.interval(confidence)
    if tuning == "clipped":  # as ppi-python has it
        reach = normal_quantile((1 + confidence) / 2) * np.sqrt(found.var)
        low = found.mean - reach
        high = found.mean + reach
    elif not (found.weight > 0 and high - low < human[1] - human[0]):
        (low, high), found, both = human, alone, own
    off = bias.ends(typical, of_difference(bounds)).interval(confidence)
    narrower = (human[1] - human[0]) / (high - low) if high > low else np.nan
    doubts = {
        "few_human": count < FEW_HUMAN,
        "not_random": random < NOT_RANDOM,
        "undefined_differs": unlike,
    }
    of_rest = rest.mean() if len(rest) else 0.0
    return counts | {
        "mean": found.mean,
        "se": both.se,
        "df": found.df,
        "ends": both,
        "ci_low": low,
        "ci_high": high,
        "mean_human": alone.mean,
        "ci_low_human": human[0],
        "ci_high_human": human[1],
        "mean_cheap": units.share * f.mean() + (1 - units.share) * of_rest,
        "bias": bias.mean,
        "bias_low": off[0],
        "bias_high": off[1],
        "weight": found.weight,
        "p_random": random,
        "n_effective": units.n * narrower**2,
        "remarks": by_rank(code for code, holds in doubts.items() if holds),
    }


class CheapPair(NamedTuple):
    """What both labels say of two models: their means, the estimate of the difference (None for too
    few lists of people), and the columns that a comparison has of it."""

    means: tuple[float, float]
    ends: Ends | None
    row: Row


def powered_pair(
    values: Floats, runs: ModelRows, confidence: float, bounds: MetricBounds
) -> CheapPair:
    """Compare two models by values of cells: (labels of people and cheap ones, models, cells). Of
    the estimates with and without the judge, the one with the narrower interval at this confidence
    counts.

    The mean of the baseline is that of its own weight λ, and the other one is apart from it by the
    difference.
    """
    of_base = values[:, 0]
    y, f, base_y, base_f = map(runs.per_list, (*(values[:, 1] - of_base), *of_base))
    table = runs.table(JUDGED)
    judged = runs.per_list(table.max(axis=0, initial=0, where=~np.isnan(table))) > 0
    of_lists = confidence, runs.weights, runs.unit_of_list, [base_f]
    found = labelled_row(y, f, judged, of_difference(bounds), *of_lists)
    base_f = np.where(np.isnan(f), np.nan, base_f)
    base = labelled_row(base_y, base_f, judged, bounds, *of_lists)
    found |= {name.replace("mean", "diff"): found[name] for name in ("mean_human", "mean_cheap")}
    of_units = *CHEAP_COLUMNS, "judged_up_to", "heaviest", "remarks"
    row = {name: found[name] for name in of_units}
    return CheapPair((base["mean"], base["mean"] + found["mean"]), found["ends"], row)


def label_sentences(n_human: Any, n_cheap: Any, rows: Sequence[AnyRow]) -> list[str]:
    """Say how many lists have which labels, and how far the judge is off; each row names `what` it
    is about."""
    n = [
        f"{min(one):,.0f}" + (f" to {max(one):,.0f}" if min(one) < max(one) else "")
        for one in (n_human, n_cheap)
    ]
    said = [
        f"Labels of people on {n[0]} lists, cheap labels on {n[1]} more (prediction-powered "
        "inference)."
    ]
    for row in [one for one in rows if pd.notna(one.get("bias_low"))][:MOST_BIASES]:
        bias = estimated(row["bias"], row["bias_low"], row["bias_high"], "+")
        why = "which the labels of people take out"
        if "few_human" in codes_of(row["remarks"]) or row["p_random"] < NOT_RANDOM:
            why = "as far as these lists of people tell"
        elif not row["weight"] > 0:
            why = "and the labels of people count alone"
        elif row["bias_low"] <= 0 <= row["bias_high"]:
            why = "which may be none"
        said.append(f"The cheap labels are off by {bias} on {row['what']}, {why}.")
    return said


def compared_labels(table: DataFrame) -> list[str]:
    """Say the same of a comparison, which was made with cheap labels if it has their columns."""
    if "n_human" not in table or not len(table):
        return []
    rows = table.to_dict("records")
    for row in rows:
        metric, model, base = (visible(row[name]) for name in ("metric", "model", "baseline"))
        row["what"] = f"{metric}, {model} − {base}"
    said = label_sentences(table["n_human"], table["n_cheap"], rows)
    if "bias" not in table:
        said.append(
            "How far the cheap labels are off, bias of a comparison with details=True says."
        )
    return said


def share_p_random(table: DataFrame, samples: Any) -> None:
    """Let rows about one sample of lists share what tells of its being random, since what the judge
    says of one model, or by one metric, holds for all: p is the smaller of a row's own and of the
    smallest p of the sample times its number of rows (Bonferroni)."""
    of_sample = table.groupby(samples)["p_random"]
    shared = of_sample.transform("min") * of_sample.transform("count")
    table["p_random"] = np.fmin(table["p_random"], shared)


def share_samples(table: DataFrame, samples: Any) -> None:
    """Share p_random among the rows of a sample, and remark those whose sample is not random."""
    share_p_random(table, samples)
    remark(table, table["p_random"] < NOT_RANDOM, "not_random")


def _random_p(columns: Sequence[tuple[Floats, Floats]]) -> float:
    """p of the hypothesis that people judged a random sample: Student's t of each column, by
    Bonferroni."""
    least = 1.0
    for sides in columns:
        one, two = (moments_of(values[~np.isnan(values)]) for values in sides)
        # One variance, since a few lists may have equal values by chance.
        df = max(one.n + two.n - 2, 1)
        var = (one.var * one.n + two.var * two.n) / df * (1 / max(one.n, 1) + 1 / max(two.n, 1))
        if min(one.n, two.n) > 1 and var > 0:
            t = (one.mean - two.mean) / np.sqrt(var)
            least = min(least, float(t_p_value(t, df, "two-sided")))
    return min(1.0, len(columns) * least)
