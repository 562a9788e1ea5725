"""Whether an effect differs between segments, and what each segment's effect is likely to be."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.constraints import SHARE, check_value
from ...inputs.options import as_columns
from ...judge.cautions.table import UNLIKE
from ...judge.verdict import by_rank, codes_of, has, sentence
from ...stats.between_groups import heterogeneity
from ...stats.many_tests import adjust
from ...tables.cells import p_value
from ..choices import Columns, Correction
from ..experiment_columns import frame_of, metric_values, require

_KEPT = [
    "metric",
    "control",
    "treatment",
    "n_control",
    "n_treatment",
    "baseline",
    "model",
    "n_users",
    "diff",
    "se",
    "ci_low",
    "ci_high",
    "confidence",
    "srm_p",
]


def segment_effects(
    comparison: pd.DataFrame,
    *,
    by: Columns | None = None,
    correction: Correction = "holm",
    confidence: float = 0.95,
) -> pd.DataFrame:
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
        Columns of the segments. Default: those before `metric`.
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        Of p_value into p_adj over the metrics and pairs; default "holm".
    confidence : float, default 0.95
        Of the intervals of the shrunken effects; a difference between segments is shown at p_adj ≤
        1 − confidence.

    Returns
    -------
    DataFrame
        One row per row of the comparison, with its labels, counts, `diff`, `se`, `ci_low`,
        `ci_high`, `confidence` and `srm_p` (sample ratio within the segment; for variants), then
        `shrunken`, `shrunken_low`, `shrunken_high`, and for each metric and pair, the same in all
        its rows: `n_segments` (those with a standard error), `mean_effect` (τ̄), `q`, `df`,
        `p_value`, `p_adj`, `reject`, `tau` (T), `effect` ("differs", "none"), `withheld`, `remarks`
        (doubts about segments), `verdict`. Verdict: "differs between segments", "no difference
        between segments shown", or why it is withheld: a sample ratio that does not fit in a
        segment, or a difference that rests on segments that should not be read (tiny arms, skewed)
        and is not shown without them. A segment has no verdict of its own here.

    Raises
    ------
    ColumnError
        A column is missing.
    OptionError
        The comparison has no column of segments, or not one row per segment, metric and pair; an
        unknown option.
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
    frame_of("comparison", comparison)
    check_value("correction", correction, Correction)
    check_value("confidence", confidence, SHARE)
    require(comparison, "comparison", ["metric", "diff", "se"])
    before = list(comparison.columns[: list(comparison.columns).index("metric")])
    segments = require(comparison, "comparison", as_columns(by)) or before
    if not segments:
        raise OptionError(
            "comparison has no column of segments; make it with ⟦+by=⟧, which puts them before "
            "'metric'"
        )
    pair = [
        name
        for name in ("metric", "control", "treatment", "baseline", "model")
        if name in comparison.columns
    ]
    twice = comparison.duplicated([*segments, *pair])
    if twice.any():
        raise OptionError(
            f"comparison has {int(twice.sum()):,} rows too many for one per {[*segments, *pair]}; "
            "name all columns of segments in ⟦+by=⟧"
        )
    kept = [name for name in _KEPT if name in comparison.columns and name not in segments]
    result = pd.DataFrame(comparison[[*segments, *kept]].reset_index(drop=True))
    result.attrs = {}
    diff, se = (metric_values(comparison, "comparison", name) for name in ("diff", "se"))
    judged = comparison.reindex(columns=["withheld", "remarks"], fill_value="")
    withheld = judged["withheld"].to_numpy(object)
    doubted, unchecked = withheld != "", has(judged["remarks"], "ratio_not_checked")
    group = comparison.groupby(pair, sort=False, dropna=False).ngroup().to_numpy()
    rows = [np.flatnonzero(group == g) for g in range(int(group.max(initial=-1)) + 1)]
    found = [heterogeneity(diff[own], se[own]) for own in rows]
    # A difference has to be shown without the segments that should not be read.
    sound = [heterogeneity(diff[own], np.where(doubted[own], np.nan, se[own])) for own in rows]
    p_adj, p_sound = (
        adjust(np.array([one.p_value for one in some]), correction) for some in (found, sound)
    )
    alpha, reach = 1 - confidence, NormalDist().inv_cdf((1 + confidence) / 2)
    parts = []
    for own, one, p, p_without in zip(rows, found, p_adj, p_sound, strict=True):
        doubts = codes_of(by_rank(withheld[own][doubted[own]]))
        differs = bool(p <= alpha)
        # A difference that rests on segments in doubt is withheld, and so is any of variants that
        # are not alike.
        rests = differs and p_without > alpha
        why = next((code for code in doubts if code in UNLIKE), (doubts if rests else [""])[0])
        effect = "" if why else "differs" if differs else "none"
        of = own[withheld[own] == why][:1] if why else []
        row = result.iloc[of[0]].to_dict() if len(of) else None
        remarks = [*doubts, *["ratio_not_checked"] * bool(unchecked[own].any())]
        parts.append(
            pd.DataFrame(
                {
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
                    "verdict": sentence("segments", effect, why, remarks, row),
                },
                index=own,
            )
        )
    return result.join(pd.concat(parts))


def segment_sentences(comparison: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Say whether the effect differs between segments, for each metric, new and old variant (or
    model) as texts."""
    found = comparison if "shrunken" in comparison.columns else segment_effects(comparison)
    base, other = ("baseline", "model") if "baseline" in found.columns else ("control", "treatment")
    return {
        (
            str(row["metric"]),
            str(row[other]),
            str(row[base]),
        ): f"{row['metric']}, {row[other]} against {row[base]}: {row['verdict']} (Q = "
        f"{row['q']:.4g} of {row['n_segments']} segments, p {p_value(row['p_adj'])})."
        for row in found.drop_duplicates(["metric", base, other]).to_dict("records")
    }
