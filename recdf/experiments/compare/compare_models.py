"""Compare models on the same users, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import OptionError
from ...inputs.constraints import OneLabel
from ...inputs.door import takes_options
from ...judge.choices import (
    TESTS,
    Alternative,
    Columns,
    Correction,
    Options,
    PairMissing,
    PairTest,
    a_number,
    as_columns,
    check_options_of_tests,
)
from ...judge.comparisons import MODEL_RESULT_COLUMNS
from ...judge.per_user_columns import (
    by_columns,
    evaluated,
    float_columns,
    frame_of,
    require,
    unit_word,
    warn_of_weights,
)
from ...judge.verdict import VERDICT_COLUMNS, add_verdicts, effects_of, name_heaviest
from ..decide.adjust_pvalues import adjusted_columns, directions, read_together
from ..join.join_experiment import zero_is_worst
from ..samples import Settings, declared_bounds, per_metric
from .by_segment import Segments
from .cheap_labels import CHEAP_COLUMNS, labels_of_both, share_samples
from .paired import (
    add_turned,
    columns_of_results,
    frames_of_results,
    judge_both,
)
from .pairs_of_models import ModelLists, tables_in_buckets, tables_in_memory


@takes_options("user_col", "weight_col")
def compare_models(
    per_user: Any,
    metrics: Columns | None = None,
    *,
    baseline: OneLabel = None,
    user_col: Columns | None = None,
    model_col: str | None = None,
    fold: Columns | None = None,
    test: PairTest = "t",
    missing: PairMissing = "raise",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    margin: float | Mapping[str, float] | None = None,
    correction: Correction = "holm",
    family: Columns | None = None,
    n_resamples: int = 2000,
    seed: int = 0,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    progress: bool | None = None,
    weight_col: str | None = None,
    unit_col: Columns | None = None,
    by: Columns | None = None,
    segments: DataFrame | None = None,
    options: Options | None = None,
    cheap: Any = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    details: bool = False,
) -> DataFrame:
    """Compare models on the same users by the differences d = model − baseline per user.

    * test "t": t = d̄/(s_d/√n) with n − 1 degrees of freedom, interval d̄ ∓ t_q·s_d/√n.
    * "randomization": signs of d are flipped B times; p = (1 + #{|T*| ≥ |T|})/(B + 1) with T = Σd,
      exact over all 2^m patterns when these are at most B (m users differ, m ≤ 16). Interval d̄ ∓
      the confidence quantile of the flipped mean of d − d̄.
    * "bootstrap": percentile interval and p of Poisson(1) weights per user.
    * "wilcoxon": signed ranks, normal approximation. It does not test the mean, whose t interval
      stands beside it: with skewed differences it rejects although the means are equal (warning
      "wilcoxon_not_mean").

    With weights w, d̄ = Σ w d / Σ w. Where a unit has several lists (`unit_col`), D_u = Σ w d and
    W_u = Σ w are its sums over them (w is 1 without weights): d̄ = Σ D_u / Σ W_u is the mean over
    lists, and its standard error over n units is √(n/(n − 1) · Σ (D_u − W_u d̄)²) / Σ W_u, with n −
    1 degrees of freedom. Signs and weights of the resampling tests are drawn for whole units;
    Wilcoxon ranks the means D_u / W_u.

    Parameters
    ----------
    per_user : DataFrame, Evaluation or mapping
        One row per (model, user), such as `result.per_user` evaluated `by="model"`, or model → its
        result or frame.
    metrics : str or list of str, optional
        Metric columns. Default: every float column of all frames that is not a key.
    baseline : label, optional
        The model that all others are compared with. Default: all pairs, the earlier in the order of
        names (or of the mapping) as the baseline.
    user_col, model_col : optional
        Key of a list (string or list of strings), column of the model in a long frame. Default:
        those of a result, such as `by="algorithm"` in `rd.evaluate`; else "user_id" and "model".
    unit_col : str or list of str, optional
        Columns that name who is independent of whom, such as the user of a session. Default:
        `user_id` if `user_col` has it, else its first column.
    fold : str or list of str, optional
        Columns of folds or repetitions: models are paired within (user, fold), and a user counts
        once with the mean over folds, because folds of one user are not independent.
    test : {"t", "randomization", "wilcoxon", "bootstrap"}, default "t"
        "permutation" and "proportion" are tests of `compare_variants`.
    missing : {"raise", "drop", "zero"}, default "raise"
        Users with a value for one model of a pair only: error; leave them out, which withholds the
        verdict; or count 0 for the other model, which is refused for metrics whose worst value is
        not 0 (first_rank). Users without a value for both are left out.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the model has the larger value. One-sided intervals are open on one side.
    confidence : float, default 0.95
        Of the intervals, all of a family together; alpha = 1 − confidence.
    margin : float or mapping, optional
        Largest difference that does not matter (in units of the metric, or metric → number): adds
        `p_equivalence` of the two one-sided t tests (TOST).
    correction, family
        As in `compare_variants`.
    n_resamples, seed : int, default 2000, 0
        Of the randomization test and the bootstrap. No p is below 1/(n_resamples + 1), so that many
        tests need more.
    smaller_is_better, larger_is_better : str or list of str, optional
        As in `compare_variants`.
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal, and only after two seconds.
    weight_col : str, optional
        Column of the users' weights, at least 0 and the same for all models of a user; users of
        weight 0 do not count. `wins`, `ties` and `losses` count users. Not with test="wilcoxon",
        whose ranks take no weights. Without it every user counts alike, and `WeightWarning` says so
        if `per_user` was evaluated with weights.
    by : str or list of str, optional
        Columns of segments: models are compared within each segment (each combination of values),
        and the tests of all segments are one family. Lists without a segment are in no row, and
        `UnknownWarning` counts them. A segment has no row for a model that has no list there.
    segments : DataFrame, optional
        Where `by` is, if not in `per_user`: one row per user, with `user_col` (or some of its
        columns) and the columns of segments. Amounts and dates of more than 30 values are cut into
        four bands, as in `rd.leaderboard`. `by` may be left out if there is one column.
    options : Options, optional
        `user_col` and `weight_col` of a project, where they are not given here.
    bounds : mapping, optional
        Metric → (smallest, largest value), for metrics that recdf does not know, such as
        `{"latency": (0, 30)}`. A metric that it knows has its own, and one without bounds says in
        its verdict how large the differences of a few unseen users are that would turn it.
    cheap : Evaluation, DataFrame or mapping, optional
        The same recommendations on more lists under cheap labels, of a language model or of clicks,
        while `per_user` has the lists that people judged, a random sample of them. Differences,
        intervals and p-values are then those of `rd.experiments.prediction_powered`, with n − 2
        degrees of freedom, by `test="t"` alone, and the intervals allow for one more list at either
        bound of the metric.
    details : bool, default False
        Return all columns, not only those that a decision needs.

    Returns
    -------
    DataFrame
        One row per (`by`, metric, pair), with the columns of `by` first: `metric`, `baseline`,
        `model`, `n_users` (units of both), `mean_baseline`, `mean_model`, `diff`, `rel_diff` (null
        unless the baseline's mean is positive), `se`, `ci_low`, `ci_high`, `wins`, `ties` (|d|
        ≤ 1e-12 of the range of the values, or rounding), `losses` (of the model), `p_value`,
        `p_adj`, `effect`, `withheld`, `remarks`, `verdict` (see `compare_variants`). With `cheap=`,
        `n_human` and `n_cheap` stand in place of `rel_diff` and `ties`.

        With `details` also `n_lists` (of both), `n_only_baseline`, `n_only_model` (lists),
        `diff_without_top` (without the ten units whose differences are farthest from the mean, 5 %
        of fewer than 200 units), `d_z` (d̄/s_d), `turned_by` (so many more users at the worst value
        of the metric would turn the verdict; null where nothing is said, for ranks, and with
        `cheap=`), `turned_to` ("lose" or "gain", what they would do, or ""), `turning_value` (of a
        metric without bounds: the difference that `unseen` more users must have to turn it),
        `unseen` (how many users of a kind may be missing by chance: ln(1/alpha), which is 3.0, or
        ln(m/alpha) where the correction multiplies p by m),
        `statistic`, `df`, `reject`, `p_equivalence`, `p_equivalence_adj` (adjusted in the same
        families),
        `confidence`, `test`, `n_resamples`, `seed` (null without resampling), `n_lacking_baseline`,
        `n_lacking_model` (lists that the other model has, and this one not, by `n_pred`), the same
        comparison where both have lists (`n_both`, `mean_baseline_both`, `mean_model_both`,
        `diff_both`, `se_both`, `ci_low_both`, `ci_high_both`, `effect_both`, `withheld_both`,
        `turned_by_both`; null if none is lacking), `unlike` (what the two were not measured alike
        with), `holds_for` (up to how many lists, or what weight, users with unequal ones were seen;
        heavier users could turn the verdict, which ends with "for users with up to 14 lists").
        `method` is there where units are no users: the test, with "+cluster" or "+list".

        `ci_low` and `ci_high` hold for the m tests of a family together: they
        are those of 1 − alpha/m (with Šidák's corrections of (1 − alpha)^(1/m), with "by" of 1 −
        alpha/(m·Σ_{l≤m} 1/l)), and where a later step of the correction decides, those of that
        step, so that an interval excludes 0 exactly where `reject` is True. Remarks:
        "zero_variance" (all differences equal), "too_few_users" (below 2) and "huge_values" (from
        1e150 on): no statistics; "wilcoxon_not_mean"; "mostly_zero" (95 % or more of the
        differences are ties, so that few users decide and t and TOST are not to be trusted);
        "few_differ" (fewer than 50 users differ) and "skewed" (skewness of the differences above
        .14·√n): the test errs more often than it says, so that "equivalent" and what a one-sided
        test shows are withheld, and "within_margin" is not said, if Johnson's correction for
        skewness takes them away;
        "few_users_carry" (unequal weights or numbers of lists that are worth fewer than 30 equal
        users, and less than half of them); "different_lists" (missing="drop" left some out);
        "repeated_units" (`user_id` or a later column of the key repeats and is not the unit);
        "few_lists", "few_lists_differ"; "within_margin"; "missing_lists" (a model lacks lists, and
        the effect is another one where both have lists: "worse, but better where both have lists").
        Verdict: withheld ("check: ...") below 30 users, below 20 that differ if any does, where
        fewer than K more users at the worst value would turn it ("check: 1.4 users who lose all
        would turn it"), where few users carry it, where lists were left out, of huge values, and of
        equal differences that are not 0. Else "better" or "worse" (p_adj ≤ alpha), "higher" or
        "lower" for a metric without direction; with test="wilcoxon" "ranks higher" or "ranks
        lower", which follows the signed ranks and says nothing of the mean; all of them with ",
        within the margin" where p_equivalence_adj ≤ alpha too; else "equivalent" (p_equivalence_adj
        ≤ alpha) or "no difference shown". With `cheap=`, `n_users`, `n_lists`, `wins`, `ties`,
        `losses` and `d_z` are of the lists that people judged, `mean_model` is `mean_baseline` +
        `diff`, and `diff_without_top` is null. Before `effect` stand `n_human` and `n_cheap` (lists
        that people judged, and more with cheap labels alone); with `details` also `diff_human` with
        `ci_low_human` and `ci_high_human`, `diff_cheap`, `bias` (of the difference under cheap
        labels) with `bias_low` and `bias_high`, `weight`, `n_effective` and `p_random`, as
        `rd.experiments.prediction_powered` explains them. Their intervals are each by itself. The
        remark "not_random" (the lists that people judged differ from the others, p below 0.01)
        withholds the verdict, and "few_human" says that it is of fewer than 30. A list where people
        find nothing relevant, so that the metric is undefined, is no list of that mean, and the
        estimate allows for the lists like it that nobody judged.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing, keys are of kinds that can never match, a key or model is null.
    OptionError
        An unknown option value, an unknown baseline, fewer than two models; `cheap=` with another
        test than "t" or with missing="zero"; a metric that is defined in another way in `cheap`.
    DuplicateError
        Several rows of a user for one model.
    DataError
        Users with values for one model only (`missing="raise"`); lists that `cheap` lacks, or a
        `cheap` without more lists; a metric that is infinite or not numeric; a weight that is null,
        negative or infinite, or that differs between the models of a user.
    MissingExtraError
        If SciPy is not installed and the test or `margin` needs it.

    References
    ----------
    Urbano, Lima, Hanjalic: Statistical significance testing in information retrieval, SIGIR 2019.
    Schuirmann 1987 (TOST).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> long = pd.DataFrame(
    ...     {
    ...         "model": ["als"] * 80 + ["pop"] * 80,
    ...         "user_id": [*range(80)] * 2,
    ...         "mrr@5": [1, 0.5, 0.5, 1] * 20 + [0.5, 0, 0.2, 0.5] * 20,
    ...     }
    ... )
    >>> table = rd.compare_models(long, "mrr@5", baseline="pop")
    >>> table[["model", "n_users", "diff", "ci_low", "ci_high", "wins", "verdict"]].round(3)
      model  n_users  diff  ci_low  ci_high  wins verdict
    0   als       80  0.45   0.431    0.469    80  better

    Within segments, the p-values are adjusted for all segments together:

    >>> ages = pd.DataFrame({"user_id": range(80), "age": ["new"] * 30 + ["old"] * 50})
    >>> within = rd.compare_models(long, "mrr@5", baseline="pop", by="age", segments=ages)
    >>> within[["age", "model", "n_users", "diff", "verdict"]].round(3)
       age model  n_users   diff verdict
    0  new   als       30  0.453  better
    1  old   als       50  0.448  better
    """
    lists, folds, units, by_cols = map(as_columns, (user_col, fold, unit_col, by))
    key, own = columns_of_results(per_user)
    lists = lists or [name for name in key if name not in folds]
    model_col = model_col or own
    per_user = frames_of_results(per_user, in_buckets=TESTS[test].of_sums and cheap is None)
    common = alternative, confidence, correction, family
    settings = Settings(
        {}, *common, n_resamples=n_resamples, seed=seed, missing=missing, details=details
    )
    check_options_of_tests([test], weight_col=weight_col, cheap=cheap)
    if cheap is not None and missing == "zero":
        raise OptionError('⟦cheap=⟧ and ⟦missing="zero"⟧ exclude each other: a label is no 0')
    keys = [*lists, *folds]
    if cheap is not None:
        others = [*units, *as_columns(weight_col), *(by_cols if segments is None else [])]
        per_user, metrics = labels_of_both(per_user, cheap, metrics, keys, model_col, others)
    within = Segments.of(by_cols, segments, lists)
    columns = ModelLists(lists, folds, model_col, units, weight_col)
    in_buckets = hasattr(per_user, "each_bucket")
    given = {"per_user": per_user.empty_rows if in_buckets else per_user}
    if isinstance(per_user, Mapping):
        given = {f"per_user[{name!r}]": one for name, one in per_user.items()}
    if not given:
        columns.read(per_user)  # which says so
    frames = [frame_of(role, one) for role, one in given.items()]
    unit = evaluated(frames[0]).get("unit_word", unit_word(units, lists))
    method = ["method"] * (unit != "user")
    taken = [*MODEL_RESULT_COLUMNS, *(CHEAP_COLUMNS if cheap is not None else []), *method]
    for frame in frames if within.known is None else [within.known]:
        by_columns(frame, "per_user", within.names, taken)
    by_cols = within.names
    keys += [*units, *by_cols]
    names = float_columns(frames, [*keys, model_col]) if metrics is None else as_columns(metrics)
    if not names:
        raise OptionError(
            f"metrics is empty, or per_user has no float column besides {[*keys, model_col]}; name "
            "the metrics to compare in ⟦+metrics=⟧"
        )
    if odd := [name for name in names if not isinstance(name, str)]:
        raise OptionError(f"metrics holds {odd[0]!r}; expected a name that is a text")
    for role, frame in given.items():
        require(frame, role, names)
    names = [name for name in dict.fromkeys(names) if name != weight_col]
    margins = per_metric("margin", margin, names, a_number(above=0))
    settings = replace(
        settings,
        tests=dict.fromkeys(names, test),
        margins={name: float(one) for name, one in margins.items()},
        bounds=declared_bounds(bounds, names),
    )
    better = directions({name: name for name in names}, smaller_is_better, larger_is_better)
    if weight_col is None:
        warn_of_weights(frames[0], next(iter(given)), [*keys, model_col, *as_columns(metrics)])
    tables = (tables_in_buckets if in_buckets else tables_in_memory)(
        per_user, columns, within, baseline, names, settings, progress
    )
    if not tables:
        of = "two models" if baseline is None else f"the baseline {baseline!r} and another model"
        raise OptionError(
            f"no segment of {by_cols} has lists of {of}; nothing can be compared within segments"
        )
    parts, rows = zip(*tables, strict=True)
    used = seed if TESTS[test].resampled else None
    result = DataFrame(chain.from_iterable(rows)).assign(test=test, seed=used)
    for name in ("n_resamples", "seed"):  # the frame's own astype copies every column
        result[name] = result[name].astype("Int64")
    of_row = np.repeat(np.arange(len(parts)), [*map(len, rows)])
    labels = pd.concat(parts).take(of_row).reset_index(drop=True)
    only = result["n_only_baseline"] + result["n_only_model"]
    for name, n_only in zip(result["metric"], only, strict=True) if missing == "zero" else ():
        if n_only and (better[name] == "smaller" or not zero_is_worst(name)):
            raise OptionError(
                f'⟦missing="zero"⟧ would give {name!r} a 0 for {n_only:,} users whom one model '
                "lacks, and 0 is not "
                'its worst value; pass ⟦+missing="drop"⟧, or leave this metric to a call of its own'
            )
    if "p_random" in result:
        groups = labels.groupby(by_cols, dropna=False, observed=True) if by_cols else None
        share_samples(result, np.zeros(len(result)) if groups is None else groups.ngroup())
    read_together(result, settings, labels)
    p = result["p_equivalence"].to_numpy(np.float64)
    result["p_equivalence_adj"], equivalent, _ = adjusted_columns(result, settings, p, labels)
    reject = result["reject"].to_numpy(bool)
    effects = np.array(effects_of(result, reject, better), object)
    if test == "wilcoxon":  # it follows the ranks, and not the mean
        ranks = np.where(result["ranks_higher"], "ranks_higher", "ranks_lower")
        effects[reject] = ranks[reject]
    effects[equivalent & ~reject] = "equivalent"
    result["method"] = f"{test}+{unit}"
    name_heaviest(result, weight_col is not None)
    add_turned(result, effects, equivalent, better, settings)
    judge_both(result, better)
    add_verdicts(result, "models", effects)
    cheap_columns = [name for name in CHEAP_COLUMNS if name in result]
    shown = [*MODEL_RESULT_COLUMNS[: -len(VERDICT_COLUMNS)], *cheap_columns, *method]
    shown += VERDICT_COLUMNS
    return settings.compared(result, shown, "models", labels)
