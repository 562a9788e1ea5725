"""Compare the variants of an experiment, from the rows of users to the table with its verdicts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from pandas import DataFrame

from ...inputs.constraints import OneLabel
from ...inputs.data_files import NeededColumns, needed_frame, users_in_parts
from ...inputs.door import takes_options
from ...judge.aggregates import FarNeeded, RowsNeeded
from ...judge.cautions import HEALTH_ALPHA, UNEQUAL
from ...judge.choices import (
    TESTS,
    Alternative,
    Columns,
    Correction,
    Directions,
    NamedMetrics,
    Options,
    PlannedShares,
    RaiseOrDrop,
    Relative,
    Row,
    TwoPlaces,
    VariantTest,
    as_columns,
    check_options_of_tests,
)
from ...judge.comparisons import VARIANT_RESULT_COLUMNS
from ...judge.per_user_columns import (
    Codes,
    Floats,
    by_columns,
    evaluated,
    group_codes,
    list_columns,
    metric_specs,
    read_weight,
    require,
    warn_of_weights,
)
from ...judge.users import LEFT_OUT, ExperimentRows, may_be_unit, read_experiment_rows
from ...judge.verdict import add_verdicts, effects_of, remark
from ...progress import Progress
from ...stats.arms import Sample
from ...stats.numbers import undefined_is_nan
from ...stats.shares import seen_errors
from ...stats.student import beyond
from ...stats.turned import missing_by_chance
from ..decide.adjust_pvalues import NewIntervals, directions, read_together
from ..decide.balance import (
    Difference,
    TimeColumns,
    balance_of,
    differences_in_time,
    looks_like_date,
    segments_moved,
    strata_moved,
    users_in_both,
)
from ..decide.experiment_health import key_of_health
from ..decide.guardrails import ask_one_sided
from ..decide.sample_ratio import (
    Arms,
    CountedUnits,
    SampleRatio,
    Surplus,
    check_sample_ratio,
    count_rows,
    without_strata,
)
from ..samples import (
    Settings,
    covariate_specs,
    declared_bounds,
    read_metrics,
    subset,
    which_tests,
)
from .arms_of_users import UsersInRows, compare_ready
from .moment_table import MomentArms
from .summed_users import (
    AskedOfUsers,
    SummedArms,
    clusters_in_parts,
    needed_columns,
)
from .two_sample import POWER, but, measured_means


def columns_of_users(
    metrics: Any,
    covariates: Any,
    variant_col: str,
    named: Sequence[Any],
    health: DataFrame | None,
    few: DataFrame | None = None,
) -> NeededColumns:
    """Return which columns of a frame a comparison reads: those that are named, and those that it
    looks at by itself.

    The latter are the user, dates that may be the time of the assignment, weights, and ids of what
    may have been assigned whole, such as stores; `few` rows may tell which columns hold none.
    """

    def needed(head: DataFrame) -> list[str]:
        specs = metric_specs(metrics, head, "data")
        past = covariate_specs(covariates, specs, head).values()
        every = itertools.chain(*map(as_columns, named))
        names = require(head, "data", [variant_col, *every])
        names += needed_columns([*specs.values(), *itertools.chain(*past)])
        names += ["user_id", "n_true", "n_rows", "weight", str(evaluated(head).get("weight"))]
        names += list_columns(head)
        names += [*key_of_health(health), LEFT_OUT]
        names += [name for name in head.columns if looks_like_date(head[name])]
        user_col, _, _, cluster, *_ = named
        if as_columns(user_col) != ["user_id"] and not as_columns(cluster):
            some, arm = head, None
            if few is not None:
                some, arm = few, group_codes(few, "data", [variant_col])[0]
            names += [name for name in some.columns if may_be_unit(some[name], arm)]
        return [name for name in head.columns if name in names]

    return needed


# Takes a group, a pair, the settings and the pair's surplus of users, and gives a row of numbers
# per metric.
TestOfPair = Callable[[int, TwoPlaces, Settings, Surplus], list[Row]]


def decide(
    arms: Arms,
    test: TestOfPair,
    ratio: SampleRatio,
    better: Directions,
    settings: Settings,
    differences: Sequence[Difference] = (),
    balance: Mapping[str, Floats] | None = None,
    intervals: NewIntervals | None = None,
    covariates_timed: bool = False,
    periods: str = "",
    progress: bool | None = None,
    apart: bool = False,
) -> DataFrame:
    """Test every pair of variants in every group, and add what the checks found, the adjusted
    p-values and the verdicts: the table of every comparison of variants.

    Groups that are the `periods` of another function hold the same users, so that no treatment
    moves users between them. Those that are `apart` are known to share none.
    """
    found: list[Row] = []
    n_sharing = 1 if periods else len(arms.groups)  # users of a period are those of the others
    n_tests = len(arms.groups) * len(arms.pairs)
    with Progress(n_tests, periods or "compare_variants", progress) as bar:
        for group in range(len(arms.groups)):
            of_pairs = []
            for pair in arms.pairs:
                surplus = ratio.surplus(group, pair, arms.names)
                more = ["exposure_differs"] if surplus.p < UNEQUAL / n_sharing else []
                rows = test(group, pair, settings, surplus)
                of_pairs.append([but(row, *more) for row in rows])
                bar.add()
            found += itertools.chain.from_iterable(zip(*of_pairs, strict=True))
    at = group_of, control, treatment = arms.of_rows(len(found))
    variants = arms.variants.array
    worth, of_arms = ([row.pop(name, None) for row in found] for name in ("worth", "arms"))
    # A segment may have the name of a number that is not shown.
    labels = {name: arms.groups[name].array.take(group_of) for name in arms.labels}
    table: dict[str, Any] = {
        **{name: np.array([row[name] for row in found]) for name in found[0]},
        "control": variants.take(control),
        "treatment": variants.take(treatment),
        "arms": of_arms,
    }
    metrics = table["metric"].tolist()
    p = balance or {}
    remark(table, ratio.fails[group_of], "sample_ratio")
    remark(table, ~ratio.checked[group_of], "ratio_not_checked")
    moved = [] if periods else segments_moved(arms, table, ratio)
    of_strata = strata_moved(arms, table, np.array(worth), apart, n_sharing)
    _add_differences(table, at, [*of_strata, *differences, *moved])
    read_together(table, settings, labels, intervals)
    del table["arms"]  # the intervals of quantiles are made of them
    # An effect that is found has to stand against the users who may be missing, too.
    unseen = missing_by_chance(settings.alpha)
    with undefined_is_nan():
        least = beyond(unseen * table["most_moved"] / table["se"], POWER) * table["se"]
        table["mde"] = np.fmax(table["mde"], least)
    # What turns an effect is kept where one is said, with what those users would do.
    by = np.where(table["reject"], table["turned_by"], np.nan)
    smaller = np.array([better[metric] == "smaller" for metric in metrics], bool)
    words = np.where((table["turned_down"] == 1) != smaller, "lose", "gain")
    table["turned_by"], table["turned_to"] = by, np.where(np.isnan(by), "", words)
    table["unseen"] = missing_by_chance(settings.alpha, table["p_value"], table["p_adj"])
    of_means = np.array([not how.startswith("quantile") for how in table["method"]])
    one_sided = table["reject"].astype(bool) & np.isnan(by) & of_means
    ask_one_sided(table, one_sided, (table["diff"] < 0) != smaller)
    # How large an effect a shift of the covariates makes that the test of balance finds in 8 of 10
    # cases: the adjustment moves the difference by Σ θ·(shift), and its variance is what that takes
    # away.
    adjusted = ["cuped" in how or "regression" in how for how in table["method"]]
    share = table["variance_reduction"]
    with undefined_is_nan():
        shift = table["se"] * np.sqrt(np.maximum(share / (1 - share), 0.0))
    hidden = np.where(adjusted, seen_errors(HEALTH_ALPHA) * shift, np.nan)
    remark(table, ~np.isnan(hidden) & (not covariates_timed), "covariate_not_timed")
    at_rows = zip(metrics, *at, strict=True)
    result = DataFrame(
        table
        | {
            "balance_p": [p[name][*i] if name in p else np.nan for name, *i in at_rows],
            "covariate_could_hide": hidden,
            "srm_p": ratio.p[group_of],
            "seen_loss": ratio.seen[group_of, treatment],
            "better": [better[metric] or "" for metric in metrics],
        }
    )
    add_verdicts(result, "variants", effects_of(result, table["reject"], better))
    quantile = ["quantile"] if "quantile" in table else []
    columns = ["metric", *quantile, *VARIANT_RESULT_COLUMNS[1:]]
    return settings.compared(result, columns, "variants", labels)


def _add_differences(
    table: dict[str, Any],
    at: tuple[Codes, Codes, Codes],
    differences: Sequence[Difference],
) -> None:
    """Name what differs between the two variants of every row, besides the unit that rows
    repeat."""
    names = [[name] if name else [] for name in table["unbalanced"].tolist()]
    for code, name, where, metrics in differences:
        rows = where[at[: where.ndim]]
        if metrics is not None:
            rows = rows & np.isin(table["metric"], list(metrics))
        remark(table, rows, code)
        for i in np.flatnonzero(rows):
            names[i].append(name)
    table["unbalanced"] = [", ".join(one) for one in names]


@takes_options("user_col", "by", "weight_col")
def compare_variants(
    data: Any,
    metrics: NamedMetrics,
    *,
    control: OneLabel,
    variant_col: str = "variant",
    covariates: NamedMetrics | None = None,
    strata: Columns | None = None,
    cluster: Columns | None = None,
    by: Columns | None = None,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    correction: Correction = "holm",
    family: Columns | None = None,
    primary: Columns | None = None,
    nan: RaiseOrDrop = "raise",
    sequential_n: int | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
    expected: PlannedShares | None = None,
    health: DataFrame | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    test: VariantTest | Mapping[str, VariantTest] = "t",
    cap: Mapping[str, float] | None = None,
    relative: Relative = "fieller",
    time_col: str | None = None,
    user_col: Columns | None = None,
    progress: bool | None = None,
    weight_col: str | None = None,
    covariate_time_col: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    options: Options | None = None,
    details: bool = False,
) -> DataFrame:
    """Compare every variant with the control, or with every other, metric by metric, on independent
    users.

    Each arm has an estimate m (a mean, or a ratio R = ΣN/ΣD of sums) and z, its value per user
    around it: z = y − m, or (N − R·D)/mean(D) (delta method). v = Σz²/(n − 1)/n, se = √(v_c + v_t),
    t = (m_t − m_c)/se, df = (v_c + v_t)²/(v_c²/(n_c − 1) + v_t²/(n_t − 1)) (Welch).

    * strata: Σ W_h(m_th − m_ch), with z around m_ah within stratum h and arm a. W_h is the share of
      h in ΣD of both arms, which for a mean is its share of the users; v = Σ W_h²Σz²/(n_h − 1)/n_h,
      df as above over arms and strata. Of zeros and ones, the share of both arms in h decides about
      v (Cochran, Mantel, Haenszel), and the interval inverts this test.
    * cluster: N and D are summed per cluster and arm; a mean becomes the ratio of its sum to the
      number of rows. What a cluster adds in several strata is summed before it is squared. With
      fewer than 40 clusters in an arm, counted as clusters of equal size, v is the jackknife's.
    * covariates (CUPED): m' = m − Σθ(x_arm − x_both), z' = z − Σθ·z_x, with θ the slopes of z on
      the z_x of all covariates over both arms, within strata. For means of independent users,
      several covariates, one with missing values, or one beside strata are a regression in which
      every centred covariate is interacted with the treatment, with HC2 variances; missing values
      have an indicator of their own.
    * weight_col: a mean becomes the ratio Σ w y / Σ w, a ratio of sums Σ w N / Σ w D, with the
      delta method above.
    * sequential_n: interval and p hold at every look at once (normal mixture, tightest at N*
      users). A one-sided mixture is of effects in the direction of the alternative, and its bound
      is nearer.
    * test "bootstrap": percentile interval and p of Poisson(1) weights per user.
    * test "permutation": t of the data against t under shuffled labels; it holds where a small arm
      is skewed.
    * test "proportion": Fisher's exact p and Newcombe's interval of two shares.

    Parameters
    ----------
    data : DataFrame (also of Spark or Dask), path, or Arrow data
        One row per user, as `join_experiment` returns it; rows below the user need `cluster`. Of
        parquet files (a path, folder or glob), of a dataset or reader of pyarrow, and of polars,
        DuckDB, Spark and Dask only the columns that are needed are read. From a million users on,
        those of files, Spark and Dask are added up part by part, where sums suffice, and so are
        those of a LazyFrame or a relation of DuckDB that take more than an eighth of memory.
    metrics : str, list of str or mapping
        Metric columns, or name → column, or name → (numerator, denominator): a ratio of sums.
    control : label or None
        The variant that the others are compared with. It is never guessed. None: all pairs of
        variants, the earlier in the order of names as the control of each, which `correction` takes
        together.
    variant_col : str, default "variant"
        Column of the variant.
    covariates : str, list of str or mapping, optional
        Pre-period columns: one or a list of several for all metrics, or metric → column or list.
        For a ratio of sums, each may be a tuple (numerator, denominator). A covariate that is
        missing more often in one arm (p < 0.01) is not used and named in `remarks`. One that
        differs between the arms was not fixed before the experiment, and withholds the verdict.
    strata, cluster : str or list of str, optional
        Columns of strata, such as the periods of a ramp-up, and of clusters, whose rows may be in
        several strata.
    by : str or list of str, optional
        Segments: every comparison is made within each of their values.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the treatment has the larger value. One-sided intervals are open (infinite) on
        one side.
    confidence : float, default 0.95
        Of the intervals; `reject` uses alpha = 1 − confidence.
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        Of p_value into p_adj, see `adjust_pvalues`; default "holm".
    family : str or list of str, optional
        Columns of the result whose values are separate families. Default: the whole table is one.
    primary : str or list of str, optional
        Metrics that decide: they are a family of their own, all others another.
    nan : {"raise", "drop"}, default "raise"
        Users whose metric is null: error, or leave them out of that metric and count them in
        `n_dropped`. A ratio leaves out, in either case, users whose numerator is null and whose
        denominator is 0.
    sequential_n : int, optional
        Planned total of users N* in the two arms, for an interval that may be looked at any time.
    n_resamples, seed : int, default 2000, 0
        Of the bootstrap and the permutation test.
    expected : mapping, optional
        Planned share of every variant. When users (or clusters) per variant do not fit it (χ², p <
        0.001), in the segment or over all of them, the verdict is "invalid: sample ratio". In a
        ramp-up, those of each of `strata`: {"week 1": {"A": 0.9, "B": 0.1}, "week 2": {"A": 0.5,
        "B": 0.5}}; χ² is then the sum over the strata.
    health : DataFrame, optional
        What `experiment_health` found, in place of `expected`. The users in `data` are tested by
        its planned shares, and so is whether the variants have lost different shares of their
        assigned users on the way to `data`. Its groups may be those of `by` and of `strata`, such
        as the periods of a ramp-up.
    smaller_is_better, larger_is_better : str or list of str, optional
        Metrics of which less, or more, is better. Default: what recdf knows of columns such as
        first_rank@10; for ratios and for columns of other names larger is better. With
        `smaller_is_better` alone, all others are larger.
    test : {"t", "permutation", "bootstrap", "proportion"} or mapping, default "t"
        The test of all metrics; or metric → test, where a metric that it does not name gets "t".
        "proportion" is for metrics that are 0 or 1 (hitrate@10). "randomization" and "wilcoxon" are
        tests of `compare_models`.
    cap : mapping, optional
        Metric → quantile, such as {"revenue": 0.999}: larger values count as that quantile of all
        rows, in all arms and segments alike. It stands in the column `cap`.
    relative : {"fieller", "log"}, default "fieller"
        Relative interval: Fieller's, which agrees with the test; or that of the logarithm of the
        ratio.
    time_col : str, optional
        Time or cohort of the assignment, or time of the exposure. When the shares of the variants
        change over it (χ², p < 0.001), periods are compared and not variants, and the verdict is
        withheld; give the period as `strata` to compare within. Default: every column of dates
        without nulls that has one date per user.
    user_col : str or list of str, optional
        Key that must be unique (within `by`). Default: "user_id" if there is such a column; else
        rows are users. If `user_id`, the first of several columns, or what looks like a unit
        repeats, the remark is "repeated_units".
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal, and only after two seconds.
    weight_col : str, optional
        Column of the users' weights, at least 0, which must not depend on the variant (revenue
        before the experiment, 1/probability of being sampled). Users of weight 0 are left out and
        counted in `n_dropped`. It takes no proportions. Without it every user counts alike, and
        `WeightWarning` says so if `data` was evaluated with weights.
    covariate_time_col : str, optional
        Time at which the covariates were measured. One after `time_col` withholds the verdict.
    bounds : mapping, optional
        Metric → (smallest, largest value) of a user, for metrics that recdf does not know, such as
        `{"revenue": (0, 900)}`. Without them, the verdict of such a metric says which values would
        turn it.
    options : Options, optional
        `user_col`, `by` and `weight_col` of a project, where they are not given here.
    details : bool, default False
        Return all columns, not only those that a decision needs.

    Returns
    -------
    DataFrame
        One row per (`by`, metric, pair): `metric`, `control`, `treatment`, `n_control`,
        `n_treatment` (users, or clusters), `mean_control`, `mean_treatment` (as they are), `diff`
        (of the adjusted means, if any), `se`, `ci_low`, `ci_high`, `rel_diff` (null unless the
        control mean is positive), `rel_ci_low`, `rel_ci_high` (null unless the control mean is
        positive beyond its error), `p_value`, `p_adj`, `effect` ("better", "worse", "higher",
        "lower", "none"; "" where the verdict is withheld), `withheld` (the remark that withholds
        it), `remarks` (codes of all cautions that hold, the most serious first, separated by "; "),
        `verdict` (their sentence, for people).

        With `details` also `n_dropped`, `n_dropped_control`, `n_dropped_treatment`,
        `mean_control_adjusted`, `mean_treatment_adjusted` (null without covariates and strata),
        `se_control`, `se_treatment` (of each arm's mean as it is compared, by its variance),
        `statistic`, `df`, `reject`, `mde` (smallest true effect that is found with power 0.8 at the
        unadjusted alpha), `confidence`, `method` (test and adjustment, such as "welch+cuped"; with
        clusters it is there without `details`, too), `cap`, `theta`, `variance_reduction` (1 − v/v
        without covariate and strata), `n_covariate_missing`, `n_typical_control`,
        `n_typical_treatment` (units of the typical weight or denominator d, Σd/√(mean d²); in
        strata n_h/W_h of the thinnest), `mean_denominator_control`, `mean_denominator_treatment`
        (per unit of a ratio of sums; rows per cluster), `p_denominator` (Welch's p of their
        difference), `diff_without_top` (`diff` without the ten units of both arms whose values are
        farthest from the mean of all, 5 % of fewer than 200 units, counted as `df` + 2 where that
        is less), `design_effect` (variance by units over that by rows, where rows repeat units),
        `metric_low`, `metric_high` (bounds of the metric: those of `bounds`, those of recdf's
        definition, or 0 and 1 of zeros and ones; null where it has none, or a value in any row of
        `data` lies outside of its definition), `turned_by` (how many more users at a bound of the
        metric turn an effect), `turned_to` ("lose", "gain"), `unseen` (so many may be missing by
        chance: ln(1/alpha), or ln(m/alpha) where the correction multiplies p by m), `srm_p` (of the
        sample ratio of the users compared; the smallest where several tests are made), `seen_loss`
        (share of the treatment's users whose loss that test would have found in 8 of 10 cases),
        `balance_p` (that the arms have the same mean of the covariates and weights; the smallest,
        times the number of these tests in the table), `covariate_could_hide` (effect of a shift of
        the covariates that this test finds in 8 of 10 cases), `unbalanced` (columns that differ),
        `detail` (what "surplus" or "parts_unclear" found), `unless` (of a metric without bounds,
        which values of as few users would turn it), `holds_for` (up to what weight or denominator
        users or clusters with unequal ones were seen; heavier ones could turn the verdict),
        `better` ("larger", "smaller", or "" for a metric without direction).

        docs/experiments_warnings.md says what every remark means. Verdict, first rule that holds:
        "invalid: sample ratio" · "check: ..." for a remark with which the effect should not be read
        · "better" or "worse" (p_adj ≤ alpha), "higher" or "lower" for a metric without direction ·
        "no difference shown", which is not proof of no difference: see the interval.
        Without `expected` and `health` the remark is "ratio_not_checked", and it ends with "(sample
        ratio not checked)".

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a user, variant, segment, stratum or cluster is null.
    OptionError
        An unknown option or metric name, control absent, fewer than two variants, options that
        exclude each other.
    DuplicateError
        Several rows of a user without `cluster`.
    DataError
        A user in two variants; a metric that is not numeric, infinite, or null with `nan="raise"`;
        a value outside of `bounds`; a negative denominator; a stratum with fewer than 2 users or
        clusters in an arm; a proportion of values other than 0 and 1.
    MissingExtraError
        If SciPy is not installed (resampling and proportions of two variants need none).

    Notes
    -----
    Which test for which data, what a verdict may say and what every remark means stand in
    docs/experiments.md. Where the users do not fit in memory, `compare_variants_from_moments` makes
    this table from sums of parts of them.

    References
    ----------
    Deng, Xu, Kohavi, Walker 2013 (CUPED); Lin 2013 (regression); Deng, Knoblich, Lu 2018 (delta
    method); Fieller 1954; Newcombe 1998; Bell & McCaffrey 2002 (jackknife); Janssen 1997
    (permutation); Waudby-Smith et al. 2023 (sequential).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "n_pred": 10})
    >>> users["hits@10"] = [1, 2, 3, 4, 2, 5, 3, 4] * 5
    >>> metrics = {"hits": "hits@10", "ctr": ("hits@10", "n_pred")}
    >>> table = rd.compare_variants(users, metrics, control="A", expected={"A": 1, "B": 1})
    >>> table[["metric", "treatment", "diff", "ci_low", "ci_high", "effect"]].round(3)
      metric treatment  diff  ci_low  ci_high  effect
    0   hits         B  1.50   0.765    2.235  higher
    1    ctr         B  0.15   0.076    0.224  better
    """
    parts = None
    given = data
    named = [user_col, by, strata, cluster, weight_col, time_col, covariate_time_col]
    of_users = metrics, covariates, variant_col, named, health
    needed = columns_of_users(*of_users)
    tests = test.values() if isinstance(test, Mapping) else [test]
    resampled = any(TESTS[one].resampled for one in tests if isinstance(one, str) and one in TESTS)
    # Rows of a frame are compared as fast as they are added up by cluster or with weights.
    in_rows = isinstance(data, DataFrame) and (cluster or weight_col)
    if not (cap is not None or resampled or in_rows):
        given, parts = users_in_parts(data, needed, variant_col)
    data = needed_frame(given, "data", needed) if parts is None else parts.head
    specs = metric_specs(metrics, data, "data")
    settings = Settings(
        which_tests(test, specs),
        alternative,
        confidence,
        correction,
        family,
        subset("primary", primary, specs),
        n_resamples,
        seed,
        sequential_n,
        relative,
        details=details,
        bounds=declared_bounds(bounds, specs),
    )
    check_options_of_tests(
        settings.tests.values(),
        strata=strata,
        cluster=cluster,
        covariates=covariates or None,
        weight_col=weight_col,
        sequential_n=sequential_n,
    )
    by_cols = by_columns(data, "data", by, VARIANT_RESULT_COLUMNS)
    if weight_col is None:
        used = [*by_cols, *as_columns(strata), *needed_columns(specs.values())]
        warn_of_weights(data, "data", used)
    better = directions(measured_means(specs), smaller_is_better, larger_is_better)
    past = covariate_specs(covariates, specs, data)
    times = TimeColumns(time_col, as_columns(strata), covariate_time_col)
    more = control, expected, health, settings, better, "data", covariate_time_col is not None
    clusters = as_columns(cluster)
    if parts is not None:
        asked = AskedOfUsers(
            {name: [one, *past.get(name, ())] for name, one in specs.items()},
            variant_col,
            by_cols,
            user_col,
            clusters,
            times,
            health,
            nan,
            weight_col,
            control,
        )
        try:
            if clusters:
                users, late = clusters_in_parts(parts, asked)
                return compare_users(users, *more, late, progress)
            labels, late = _rows_and_differences(given, data, asked)
            sums = SummedArms.of(parts, asked, labels)
            with suppress(FarNeeded):
                return compare_users(sums, *more, late)
            return compare_users(SummedArms.of(parts, asked, labels, sums), *more, late)
        except RowsNeeded:
            few = parts.sample.to_pandas() if parts.some is None else parts.some
            data = needed_frame(given, "data", columns_of_users(*of_users, few))
    columns = read_metrics(data, specs, past, nan, cap=cap, weight_col=weight_col)
    numbers = [weight_col, *needed_columns(specs.values())]
    rows = read_experiment_rows(
        data, variant_col, by_cols, user_col, times.strata, clusters, numbers
    )
    rows, late = differences_in_time(data, rows, [variant_col, *by_cols], times)
    weights = (
        {} if weight_col is None else {weight_col: Sample(read_weight(data, "data", weight_col))}
    )
    return compare_users(UsersInRows(columns, weights, rows), *more, late, progress)


def _rows_and_differences(
    given: Any, head: DataFrame, asked: AskedOfUsers
) -> tuple[ExperimentRows | None, list[Difference]]:
    """The rows of users in parts by their variants, strata and times, if there are any, and what
    these say against their variants: they are few columns, and the tests need them together."""
    times = asked.times
    names = [*times.named, *key_of_health(asked.health)]
    names += [name for name in head.columns if name == LEFT_OUT or looks_like_date(head[name])]
    if not names:
        return None, []
    labels = [asked.variant_col, *asked.by_cols]
    used = {*names, *labels}
    data = needed_frame(given, "data", lambda head: [one for one in head.columns if one in used])
    rows = read_experiment_rows(
        data, asked.variant_col, asked.by_cols, None, times.strata, (), [*data.columns]
    )
    return differences_in_time(data, rows, labels, times)


def compare_users(
    users: UsersInRows | SummedArms | MomentArms,
    control: OneLabel,
    expected: PlannedShares | None,
    health: DataFrame | None,
    settings: Settings,
    better: Directions,
    role: str = "data",
    timed: bool = False,
    late: Sequence[Difference] = (),
    progress: bool | None = None,
    test: TestOfPair | None = None,
    intervals: NewIntervals | None = None,
) -> DataFrame:
    """The table of users, who may not be in memory; raises `RowsNeeded` where their sums do not
    suffice. `late` is what times and strata say against their variants; `test` and `intervals` are
    those of `decide`, where they are others than those of means."""
    arms = Arms.of(users.groups, users.variants, control, role)
    rows = users.rows

    def compare(group: int, pair: TwoPlaces, settings: Settings, surplus: Surplus) -> list[Row]:
        return compare_ready(users.ready(group, pair, settings), settings, rows, surplus)

    def count(within: bool) -> CountedUnits:
        if within and rows is not None:
            return count_rows(rows, True)
        return without_strata(users.counts)

    ratio = check_sample_ratio(expected, health, arms, count, rows)
    found, balance = balance_of(users, arms.pairs)
    found += [*late, *users_in_both(users.left_out, health, users.counts[:-1])]

    given = arms, test or compare, ratio, better, settings, found, balance, intervals
    apart = False
    if len(arms.groups) > 1 and rows is not None and rows.movable is not None:
        *within, overall = users.counts.sum(axis=1).tolist()
        apart = sum(within) == overall
    return decide(*given, covariates_timed=timed, progress=progress, apart=apart)
