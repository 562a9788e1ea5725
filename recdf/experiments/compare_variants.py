"""Compare the variants of an experiment on per-user metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import DataError, DuplicateError, OptionError
from ..inputs.options import as_columns, check_choice
from .columns import (
    Codes,
    by_columns,
    count,
    distinct,
    frame_of,
    group_codes,
    key_codes,
    metric_specs,
    share,
    some_keys,
    split,
)
from .health import planned_shares
from .join import in_several_variants
from .samples import covariate_specs, read_metrics, subset
from .stats.inference import ALTERNATIVES, CORRECTIONS, detectable, share_test
from .two_sample import Settings, compare_arms
from .verdict import check_smaller, decide

__all__ = ["compare_variants"]

# Power of the `mde` column of compare_variants, and level of its sample-ratio check.
POWER = 0.8
SRM_ALPHA = 0.001


def compare_variants(
    data: pd.DataFrame,
    metrics: str | Sequence[str] | Mapping[str, Any],
    *,
    control: Any,
    variant_col: str = "variant",
    covariates: str | Mapping[str, Any] | None = None,
    strata: str | Sequence[str] | None = None,
    cluster: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    alternative: str = "two-sided",
    confidence: float = 0.95,
    correction: str = "holm",
    family: str | Sequence[str] | None = None,
    primary: str | Sequence[str] | None = None,
    nan: str = "raise",
    sequential_n: int | None = None,
    method: str = "welch",
    n_resamples: int = 2000,
    seed: int = 0,
    expected: Mapping[Any, float] | None = None,
    smaller_is_better: str | Sequence[str] | None = None,
    user_col: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Compare every variant with the control, metric by metric, on independent users.

    Each arm has an estimate m (a mean, or a ratio R = ΣN/ΣD of sums) and z, its value per user around it:
    z = y − m, or (N − R·D)/mean(D) (delta method). v = Σz²/(n − 1)/n, se = √(v_c + v_t), t = (m_t − m_c)/se,
    df = (v_c + v_t)²/(v_c²/(n_c − 1) + v_t²/(n_t − 1)) (Welch).

    * covariates (CUPED): m' = m − θ(x_arm − x_both), z' = z − θ·z_x, θ = cov(z, z_x)/var(z_x) over both arms.
    * strata: Σ W_h(ȳ_th − ȳ_ch) with W_h the share of stratum h in both arms, se² = Σ W_h²(s²_th/n_th + s²_ch/n_ch).
    * cluster: N and D are summed per cluster and arm; a mean becomes the ratio of its sum to the number of rows.
    * sequential_n: interval and p hold at every look at once (normal mixture, tightest at N* users).
    * method "bootstrap": percentile interval and p of Poisson(1) weights per user.

    Parameters
    ----------
    data : DataFrame
        One row per user, as `join_experiment` returns it; rows below the user need `cluster`.
    metrics : str, list of str or mapping
        Metric columns, or name → column, or name → (numerator, denominator): a ratio of sums.
    control : label
        The variant that the others are compared with. It is never guessed.
    variant_col : str, default "variant"
        Column of the variant.
    covariates : str or mapping, optional
        Pre-period column for all metrics, or metric → column or pair. A missing value takes the mean of both arms.
    strata, cluster : str or list of str, optional
        Columns of strata (for means only), or of clusters. Not both.
    by : str or list of str, optional
        Segments: every comparison is made within each of their values.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the treatment has the larger value. One-sided intervals are open (infinite) on one side.
    confidence : float, default 0.95
        Of the intervals; `reject` uses alpha = 1 − confidence.
    correction : {"holm", "bh", "bonferroni", "none"}, default "holm"
        Of p_value into p_adj, see `adjust_pvalues`.
    family : str or list of str, optional
        Columns of the result whose values are separate families. Default: the whole table is one.
    primary : str or list of str, optional
        Metrics that decide: they are a family of their own, all others another.
    nan : {"raise", "drop"}, default "raise"
        Users whose metric is null: error, or leave them out of that metric and count them in `n_dropped`.
    sequential_n : int, optional
        Planned total of users N* in the two arms, for an interval that may be looked at any time.
    method : {"welch", "bootstrap"}, default "welch"
    n_resamples, seed : int, default 2000, 0
        Of the bootstrap.
    expected : mapping, optional
        Planned share of every variant. When users (or clusters) per variant do not fit it (χ², p < 0.001), in the
        segment or over all of them, the verdict is "invalid: sample ratio".
    smaller_is_better : str or list of str, optional
        Metrics of which less is better. Default: columns of metrics that recdf marks so, such as first_rank@10.
    user_col : str or list of str, optional
        Key that must be unique (within `by`). Default: the key of `join_experiment`, else "user_id" if there.

    Returns
    -------
    DataFrame
        One row per (`by`, metric, treatment): `metric`, `control`, `treatment`, `n_control`, `n_treatment` (users, or
        clusters), `n_dropped`, `mean_control`, `mean_treatment` (adjusted when covariates or strata are given),
        `diff`, `se`, `ci_low`, `ci_high`, `rel_diff` (null unless the control mean is positive), `rel_ci_low`,
        `rel_ci_high` (null unless both means are), `statistic`, `df`, `p_value`, `p_adj`, `reject`, `mde` (smallest
        true effect found with power 0.8 at the unadjusted alpha), `method`, `theta`, `variance_reduction` (1 − v/v
        without covariate and strata), `n_covariate_missing`, `warning`, `verdict`.
        Warnings: "zero_variance" and "too_few_users" (an arm below 2), "zero_denominator": no statistics;
        "no_covariate": the covariate's denominators are all 0 in an arm, nothing is adjusted; "shared_clusters": a
        cluster has users in both arms, which are taken as independent; "sample_ratio".
        Verdict, first rule that holds: "invalid: sample ratio" · "better" or "worse" (p_adj ≤ alpha) · "no difference
        shown", which is not proof of no difference: see the interval and `mde`.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a user, variant, segment, stratum or cluster is null.
    OptionError
        An unknown option or metric name, control absent, fewer than two variants, options that exclude each other.
    DuplicateError
        Several rows of a user without `cluster`.
    DataError
        A user in two variants; a metric that is not numeric, infinite, or null with `nan="raise"`; a negative
        denominator; a stratum with fewer than 2 users in an arm.
    MissingExtraError
        If SciPy is not installed (the bootstrap without `expected` needs none).

    References
    ----------
    Deng, Xu, Kohavi, Walker 2013 (CUPED); Deng, Knoblich, Lu 2018 (delta method); Waudby-Smith et al. 2023
    (sequential).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({
    ...     "user_id": range(8), "variant": list("AAAABBBB"), "hits@10": [1, 2, 3, 2, 4, 5, 4, 5], "n_pred": 10})
    >>> table = rd.compare_variants(users, {"hits": "hits@10", "ctr": ("hits@10", "n_pred")}, control="A")
    >>> table[["metric", "treatment", "diff", "ci_low", "ci_high", "verdict"]].round(3)
      metric treatment  diff  ci_low  ci_high verdict
    0   hits         B  2.50   1.243    3.757  better
    1    ctr         B  0.25   0.124    0.376  better
    """
    frame_of("data", data)
    _check_options(alternative, correction, nan, method, strata, cluster, sequential_n)
    alpha = 1 - share("confidence", confidence)
    by_cols = by_columns(data, "data", by, RESULT_COLUMNS)
    if variant_col in by_cols:
        raise OptionError(f"by={variant_col!r} is the column of the variant; name columns of segments")
    specs = metric_specs(metrics, data, "data")
    decisive = subset("primary", primary, specs)
    means = {name: num if den is None else "" for name, (num, den) in specs.items()}
    smaller = check_smaller(smaller_is_better, means, data.attrs.get("recdf") or {})
    columns = read_metrics(data, specs, covariate_specs(covariates, specs, data), nan)

    variant, labels = group_codes(data, "data", [variant_col])
    names = labels[variant_col].tolist()
    if control not in names:
        raise OptionError(f"control={control!r} is not in data[{variant_col!r}]; its variants are {names}")
    if len(names) < 2:
        raise OptionError(f"data[{variant_col!r}] has one variant, {names[0]!r}; a comparison needs at least two")
    group, groups = group_codes(data, "data", by_cols)
    users = _user_codes(data, user_col, by_cols, as_columns(cluster), variant, group)
    stratum = group_codes(data, "data", as_columns(strata)) if strata is not None else None
    clusters = key_codes([("data", data)], as_columns(cluster))[0][0] if cluster is not None else None
    cells = split(group * len(names) + variant, len(groups) * len(names))
    # What was randomised: clusters that are each in one variant, else users.
    n_clusters = 0 if clusters is None else int(clusters.max()) + 1
    whole = clusters is not None and not in_several_variants(clusters, variant, n_clusters).any()
    unbalanced = _sample_ratio_fails(expected, names, variant, group, len(groups), clusters if whole else users)

    settings = Settings(
        alternative, confidence, sequential_n, method, count("n_resamples", n_resamples), count("seed", seed, 0)
    )
    base = names.index(control)
    rows: list[dict[str, Any]] = []
    where: list[tuple[int, int]] = []
    for g in range(len(groups)):
        compared = []
        for t in (t for t in range(len(names)) if t != base):
            arms = cells[g * len(names) + base], cells[g * len(names) + t]
            found = compare_arms(columns, arms, stratum, clusters, users, settings)
            compared.append([{**row, "treatment": t} for row in found])
        for of_metric in zip(*compared, strict=True):
            rows += of_metric
            where += [(g, row["treatment"]) for row in of_metric]
    table = pd.DataFrame(rows)
    in_group = np.array([g for g, _ in where])
    treatment = labels[variant_col].iloc[[t for _, t in where]].reset_index(drop=True)
    table["treatment"] = treatment
    table["control"] = labels[variant_col].iloc[[base] * len(rows)].reset_index(drop=True)
    table["mde"] = detectable(alpha, POWER, alternative) * table["se"]
    invalid = unbalanced[in_group]
    table.loc[invalid, "warning"] = [f"{w}; sample_ratio".removeprefix("; ") for w in table.loc[invalid, "warning"]]
    result = pd.concat([groups[by_cols].iloc[in_group].reset_index(drop=True), table], axis=1)
    decided = decide(
        result, correction=correction, family=family, alpha=alpha, smaller=smaller, primary=decisive, invalid=invalid
    )
    result = result.assign(**decided)[[*by_cols, *RESULT_COLUMNS]]
    result["verdict"] = result["verdict"].astype(str)
    result.attrs["recdf_comparison"] = {
        "kind": "variants",
        "by": by_cols,
        "confidence": confidence,
        "alternative": alternative,
        "correction": correction,
        "sequential_n": sequential_n,
    }
    return result


RESULT_COLUMNS = [
    "metric", "control", "treatment", "n_control", "n_treatment", "n_dropped", "mean_control", "mean_treatment",
    "diff", "se", "ci_low", "ci_high", "rel_diff", "rel_ci_low", "rel_ci_high", "statistic", "df", "p_value",
    "p_adj", "reject", "mde", "method", "theta", "variance_reduction", "n_covariate_missing", "warning", "verdict",
]  # fmt: skip


def _check_options(
    alternative: str, correction: str, nan: str, method: str, strata: Any, cluster: Any, sequential_n: int | None
) -> None:
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("correction", correction, CORRECTIONS)
    check_choice("nan", nan, ("raise", "drop"))
    check_choice("method", method, ("welch", "bootstrap"))
    if strata is not None and cluster is not None:
        raise OptionError("strata and cluster are both given; stratify users, or cluster their rows, not both")
    if strata is not None and method == "bootstrap":
        raise OptionError('method="bootstrap" does not take strata; use method="welch"')
    if sequential_n is not None:
        count("sequential_n", sequential_n, 2)
        if method == "bootstrap" or alternative != "two-sided":
            raise OptionError('sequential_n needs method="welch" and alternative="two-sided"')


def _user_codes(
    data: pd.DataFrame, user_col: Any, by_cols: list[str], cluster: list[str], variant: Codes, group: Codes
) -> Codes | None:
    """Codes of the users if a key is known; a user in two variants, or in several rows without a cluster, raises."""
    keys = as_columns(user_col)
    if not keys:
        known = as_columns(data.attrs.get("recdf_experiment", {}).get("user_col")) or ["user_id"]
        keys = known if all(name in data.columns for name in known) else []
    if not keys:
        return None
    (codes,), n = key_codes([("data", data)], keys)
    # Rows within other clusters (a region, an hour) may be assigned row by row.
    if cluster and set(cluster) != set(keys):
        return codes
    several = in_several_variants(codes, variant, n)
    if several.any():
        raise DataError(
            f"{np.count_nonzero(several):,} users of data are in more than one variant "
            f"({some_keys(data, several[codes], keys)}); build data with join_experiment, which can drop them"
        )
    if cluster:
        return codes
    cell = group * n + codes
    again = np.ones(len(cell), bool)
    again[np.unique(cell, return_index=True)[1]] = False
    if again.any():
        one = keys[0] if len(keys) == 1 else keys
        raise DuplicateError(
            f"data has several rows per {[*by_cols, *keys]}: {int(again.sum()):,} rows too many "
            f"({some_keys(data, again, keys)}). Rows of one user are not independent: pass cluster={one!r}, roll them "
            "up first with rd.roll_up, or name in by= the columns that tell them apart"
        )
    return codes


def _sample_ratio_fails(
    expected: Mapping[Any, float] | None,
    names: list[Any],
    variant: Codes,
    group: Codes,
    n_groups: int,
    units: Codes | None,
) -> npt.NDArray[np.bool_]:
    """Per group: the units per variant do not fit the planned shares, there or over all groups."""
    if expected is None:
        return np.zeros(n_groups, bool)
    shares = planned_shares(expected, names)
    planned = [shares[name] for name in [*names, *(name for name in shares if name not in names)]]
    unit = np.arange(len(variant)) if units is None else units
    n_units = int(unit.max()) + 1

    def fails(cell: Codes, n: int) -> npt.NDArray[np.bool_]:
        once = distinct(cell * n_units + unit, n * len(planned) * n_units)
        counts = np.bincount(once // n_units, minlength=n * len(planned)).reshape(n, -1)
        return np.array([share_test(row, planned)[1] < SRM_ALPHA for row in counts])

    # Without a key, rows of several groups could be the same users, whose counts must not be added.
    overall = fails(variant, 1)[0] if units is not None or n_groups == 1 else False
    return np.asarray(fails(group * len(planned) + variant, n_groups) | overall)
