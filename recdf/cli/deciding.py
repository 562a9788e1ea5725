"""`recdf compare` and `recdf experiment`: from a result on disk to a decision."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from ..display.row_words import trend_words
from ..errors import OptionError
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import digest_of_result, file_of_rows
from ..experiments.compare.by_segment import segment_sentences
from ..experiments.compare.cheap_labels import compared_labels
from ..experiments.compare.comparable_runs import sentence_of_both
from ..experiments.compare.compare_models import compare_models
from ..experiments.compare.over_time import effect_over_time
from ..experiments.compare.user_periods import AbsentUsers, PeriodKind
from ..experiments.compare.variants import compare_variants
from ..experiments.decide.adjust_pvalues import adjustment
from ..experiments.decide.experiment_health import by_stratum, experiment_health
from ..experiments.decide.sample_ratio import seen_words
from ..experiments.join.join_experiment import join_experiment
from ..experiments.plan.experiment_plan import ExperimentPlan
from ..experiments.samples import subset
from ..formats.file_sets import read_beside
from ..inputs.frames import column
from ..judge.comparisons import report_table
from ..judge.verdict import has, warning_sentences
from ..tables.cells import amount, columns_before
from .arguments import (
    BOUNDS_FLAG,
    add_arguments,
    add_command,
    add_out,
    add_parameters,
    as_bounds,
    as_pairs,
    given_parameters,
    typed_parameters,
)
from .output import (
    COMPARED_RESULT,
    COMPARISON_FILES,
    as_asked,
    fail_on,
    failing_verdicts,
    give_tables,
    plain_signs,
    text_table,
    verdicts_fail,
)
from .stored_runs import (
    RUNS,
    add_roles,
    as_paths,
    decided,
    decision_text,
    failing_decisions,
    given_roles,
    label,
    read_results,
    taken_by,
    with_times,
)

OF_MODELS = typed_parameters(compare_models, "metrics", "model_col", "user_col")
OF_DIRECTIONS = ("smaller_is_better", "larger_is_better")
OF_JOIN = typed_parameters(
    join_experiment, "user_col", "variant_col", "by", "how", "over", *OF_DIRECTIONS
)
OF_VARIANTS = typed_parameters(
    compare_variants, "metrics", "variant_col", "user_col", "covariates", "by", "time_col"
)

# The columns of `report_table` that fit into a terminal.
SHOWN_COLUMNS = ("metric", "comparison", "effect", "relative", "p", "verdict", "notes")


# -- models


def add_compare(commands: Any) -> None:
    command = add_command(
        commands,
        "compare",
        _run_compare,
        "compare models on the same users",
        "Compare the models of a result on the same users: print a row per metric and pair of "
        "models; with --out write the full table.",
        usage="%(prog)s RESULTS [RESULTS ...] [options]",
        epilog=None,
    )
    files = _add_results(command, "comparison.parquet", several=True)
    add_arguments(
        files,
        {
            "--cheap RESULTS": "folder of the same recommendations on more lists under cheap "
            "labels, where people judged those of RESULTS",
        },
    )
    add_arguments(
        command.add_argument_group("what is compared"),
        {
            "--model NAME ...": "models (default: all)",
            "--baseline NAME": "model that the others are compared with (default: all pairs)",
            "--metric NAME ...": "such as ndcg@10 (default: all)",
            "--model-col COLUMN": "column of the model (default: that of evaluate --by)",
            "--user-col COLUMN ...": "what names a list (default: the list key)",
        },
    )
    options = command.add_argument_group("options")
    add_arguments(options, BOUNDS_FLAG)
    add_parameters(options, compare_models, OF_MODELS, compare_variants)


def _run_compare(given: argparse.Namespace) -> int:
    result = read_results(given.results)
    model_col = given.model_col or (result.spec["by"][0] if len(result.spec["by"]) == 1 else None)
    baseline = given.baseline
    if model_col in result.per_user.columns:
        models = result.per_user[model_col]
        chosen = [label("model", name, models) for name in given.model or []]
        baseline = label("baseline", baseline, models)
        if chosen:
            chosen += [] if baseline is None else [baseline]
            result = Evaluation(result.per_user[models.isin(chosen)], result.summary, result.spec)
    table = result.compare_models(
        given.metric,
        model_col=model_col,
        user_col=given.user_col,
        baseline=baseline,
        cheap=None if given.cheap is None else read_parquet(given.cheap),
        bounds=as_bounds(given.bounds),
        **{**given_parameters(given, OF_MODELS), "details": True},
    )
    least, most = table["n_users"].min(), table["n_users"].max()
    n = amount(most, "user") if least == most else f"{least:,} to {amount(most, 'user')}"
    head = f"{n}, test {table['test'].iloc[0]}, p {adjustment(table).words}"
    before = columns_before(table, "metric")
    said = "".join(
        f"\n{sentence}" for sentence in [*compared_labels(table), *warning_sentences(table)]
    )
    for row in table.to_dict("records"):
        if sentence := sentence_of_both(row):
            said += "\n" + "".join(f"{name} = {row[name]}: " for name in before) + sentence
    _give_decision(given, f"{head}\n\n{compact(table)}{said}", result, {"comparison": table})
    return verdicts_fail(given, table)


# ------------------------------------------------------------------------------------------
# variants


def add_control(group: Any) -> None:
    """Ask for the control; all pairs are compared only by name, so that no control is guessed."""
    add_arguments(
        group.add_mutually_exclusive_group(required=True),
        {
            "--control NAME": "variant that the others are compared with",
            "--all-pairs": "compare all pairs of variants",
        },
    )


def add_experiment(commands: Any) -> None:
    command = add_command(
        commands,
        "experiment",
        _experiment,
        "compare the variants of an experiment",
        "Compare the variants of an experiment over all assigned users: print whether it is sound, "
        "then a row per metric and treatment; with --out write the full tables.",
        usage="%(prog)s RESULTS --assignment FILE --control NAME [options]",
    )
    files = _add_results(
        command,
        "health.parquet, comparison.parquet, segments.parquet, over_time.parquet; with roles "
        "decision.parquet and roles.parquet",
    )
    add_arguments(
        files, {"--assignment FILE": "one row per assigned user: id, variant, more"}, required=True
    )
    what = command.add_argument_group("what is compared")
    add_control(what)
    add_arguments(
        what,
        {
            "--metric NAME ...": "columns such as ndcg@10, or ratios of sums such as "
            "ctr=hits@10/n_pred (default: all columns)",
            "--covariate COLUMN ...": "columns of the assignment from before the experiment "
            "(CUPED), for all metrics, or for one as ndcg@10=COLUMN, for "
            "a ratio as ctr=COLUMN/COLUMN",
            "--cap NAME=QUANTILE ...": "values above this quantile of all users count as the "
            "quantile, such as revenue@10=0.999",
            "--proportion NAME ...": "metrics of 0 and 1 to compare by Fisher's exact test, such "
            "as hitrate@10",
            "--expected NAME=SHARE ...": "planned share of every variant, such as A=0.9 B=0.1 "
            "(default: equal); users that do not fit it make the "
            "verdict invalid; in a ramp-up, of each of --strata, such "
            "as week1:A=0.9 week1:B=0.1 week2:A=0.5 week2:B=0.5",
            "--segment COLUMN ...": "columns of the assignment: compare within each",
        },
    )
    what.add_argument(
        "--over-time",
        choices=get_args(PeriodKind),
        metavar="KIND",
        help="also the effect by period, and whether it fades (needs --exposure-col and "
        "--time-col): daily, cumulative (read at every look), or since_exposure",
    )
    columns = command.add_argument_group("columns")
    add_arguments(
        columns,
        {
            "--user-col COLUMN ...": "key of the assignment (default: the columns of the list key "
            "that it has)",
        },
    )
    add_arguments(columns, {"--variant-col COLUMN": "default variant"}, default="variant")
    add_arguments(
        columns,
        {
            "--period-col COLUMN": "time or cohort of the assignment; shares of the variants that "
            "change over it withhold the verdict",
        },
    )
    options = command.add_argument_group("options")
    add_parameters(options, join_experiment, OF_JOIN)
    options.add_argument(
        "--how",
        choices=["mean", "sum"],
        help="roll several lists of a user up (lists by session, users assigned)",
    )
    add_parameters(options, compare_variants, OF_VARIANTS)
    add_roles(command)


def _experiment(given: argparse.Namespace) -> int:
    result = read_parquet(given.results)
    options = given_parameters(given, OF_VARIANTS)
    roles = given_roles(given)
    plan = roles if isinstance(roles, ExperimentPlan) else None
    segments = given.segment or list((plan.segments if plan else None) or [])
    labels = [given.variant_col, *segments, *options.get("strata", []), *options.get("cluster", [])]
    keys = given.user_col or result.spec["user_col"]
    assignment = read_beside(given.assignment, file_of_rows(given.results), keys, labels)
    of_join = given_parameters(given, OF_JOIN)
    for name in (of_join.get("exposure_col"), given.period_col, options.get("covariate_time_col")):
        if name is not None:
            column(assignment, name, "assignment")
            assignment = with_times(assignment, name)
    joined = result.join_experiment(
        assignment,
        user_col=given.user_col,
        variant_col=given.variant_col,
        how=given.how,
        **given_parameters(given, OF_DIRECTIONS),
        **of_join,
    )
    join = joined.attrs["recdf_experiment"]
    options["variant_col"] = given.variant_col
    expected = expected_arguments(given, options, joined)
    expected = expected or dict.fromkeys(joined[given.variant_col].unique().tolist(), 1.0)
    health = experiment_health(
        result.per_user,
        assignment,
        user_col=join["user_col"],
        variant_col=given.variant_col,
        expected=expected,
        cluster=options.get("cluster"),
        by=options["strata"] if by_stratum(expected) else None,
    )
    specs = metric_arguments(given.metric, joined.columns, result)
    options |= {
        "details": True,
        "control": label("control", given.control, joined[given.variant_col]),
        "user_col": join["user_col"],
        "covariates": _covariate_arguments(given.covariate, specs, joined.columns),
        "expected": expected,
        "time_col": given.period_col,
        "cap": as_pairs("--cap", given.cap, "a metric and a quantile, as revenue@10=0.999", float)
        or None,
        "test": dict.fromkeys(specs, options.get("test", "t"))
        | dict.fromkeys(given.proportion or [], "proportion"),
    }
    subset("proportion", given.proportion, specs)
    named = roles.roles if isinstance(roles, ExperimentPlan) else roles
    if success := [name for name, role in named.items() if role == "success"]:
        options.setdefault("primary", [name for name in success if name in specs])
    own = options | {"expected": None, "health": health}
    tables = {"comparison": compare_variants(joined, specs, by=join["by"], **own)}
    if segments:
        tables["segments"] = compare_variants(joined, specs, by=[*join["by"], *segments], **own)
    n_compared = len(joined[join["user_col"]].drop_duplicates())
    lines = [_health(health, join, given.expected is not None, tables["comparison"], n_compared)]
    lines.append(
        "\nAll users, p "
        f"{adjustment(tables['comparison']).words}\n\n{compact(tables['comparison'])}"
    )
    if segments:
        head = f"By {' and '.join(segments)}, p {adjustment(tables['segments']).words}"
        lines.append(f"\n{head}\n\n{compact(tables['segments'])}")
        if not join["by"]:
            lines += ["", *segment_sentences(tables["segments"]).values()]
    if given.over_time is not None:
        tables["over_time"] = _over_time(given, result, assignment, specs, of_join, options)
        heading = given.over_time.replace("_", " ").capitalize()
        lines.append(f"\n{heading}\n\n{compact(tables['over_time'])}\n")
        for row in tables["over_time"].drop_duplicates(["metric", "treatment"]).to_dict("records"):
            words = plain_signs(trend_words(row))
            lines.append(f"{row['metric']}, {row['treatment']} vs. {row['control']}: {words}")
    unit = options.get("cluster", join["user_col"])
    ran = {"unit": unit, "segments": segments, "looks": given.looks}
    decision = decided(tables["comparison"], roles, ran)
    lines += [decision_text(decision["decision"])] if decision else []
    _give_decision(given, "\n".join(lines), result, tables | decision, {"health": health})
    found = (
        *failing_decisions(decision.get("decision")),
        *failing_verdicts(*tables.values(), decided=bool(decision)),
    )
    return fail_on(given, found)


def _over_time(
    given: argparse.Namespace,
    result: Evaluation,
    assignment: pd.DataFrame,
    specs: Mapping[str, Any],
    of_join: Mapping[str, Any],
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """The effect by period, of the users and metrics that are compared."""
    if "exposure_col" not in of_join or "time_col" not in of_join or result.spec["by"]:
        raise OptionError(
            "--over-time needs --exposure-col and --time-col, and a result of one model (no --by)"
        )
    own = taken_by(effect_over_time, {**options, "sequential_n": None})
    own |= {
        name: of_join[name]
        for name in ("exposure_col", "time_col", "multi_variant")
        if name in of_join
    }
    own |= {"sequential_n": options.get("sequential_n")} if given.over_time == "cumulative" else {}
    how = (
        {name: given.how for name, spec in specs.items() if isinstance(spec, str)}
        if given.how
        else None
    )
    missing: AbsentUsers = "drop" if of_join.get("missing") == "drop" else "zero"
    return effect_over_time(
        result.per_user,
        dict(specs),
        kind=given.over_time,
        assignment=assignment,
        how=how,
        missing=missing,
        **own,
    )


def expected_arguments(
    given: argparse.Namespace, options: Mapping[str, Any], rows: pd.DataFrame
) -> dict[Any, Any] | None:
    """Return the planned share of each variant from texts such as A=0.9; None without them.

    If strata are named, and all texts are as week1:A=0.9, they are the shares of each stratum.
    """
    if given.expected is None:
        return None
    variants, strata = rows[options.get("variant_col", "variant")], options.get("strata") or []
    labels = variants.unique().tolist()
    shares = as_pairs("--expected", given.expected, "a variant and its share, as A=0.5", float)

    def labelled(name: str) -> Any:
        # A planned variant that nobody was assigned to is a finding, not a mistake.
        known = name in labels or not all(isinstance(label, str) for label in labels)
        return label("expected", name, variants) if known else name

    if len(strata) != 1 or not all(":" in name and name not in labels for name in shares):
        return {labelled(name): part for name, part in shares.items()}
    of_strata: dict[Any, Any] = {}
    for name, part in shares.items():
        stratum, _, variant = name.rpartition(":")
        own = label("expected", stratum, column(rows, strata[0], "assignment"))
        of_strata.setdefault(own, {})[labelled(variant)] = part
    return of_strata


def metric_arguments(
    given: Sequence[str] | None, columns: Iterable[str], result: Evaluation
) -> dict[str, Any]:
    """Name → column, or → (numerator, denominator) from name=numerator/denominator; by default all
    of the result."""
    metrics: dict[str, Any] = {}
    for text in given or []:
        name, _, ratio = text.partition("=")
        pair = tuple(ratio.split("/"))
        is_ratio = text not in columns and len(pair) == 2
        value = pair if is_ratio else text
        if metrics.setdefault(name if is_ratio else text, value) != value:
            raise OptionError(f"--metric {text}: {name} is given twice")
    return metrics or {name: name for name in result.spec["metrics"] if name in columns}


def _covariate_arguments(
    given: Sequence[str] | None, metrics: Iterable[str], columns: Iterable[str]
) -> dict[str, Any] | None:
    """Metric → column or columns, from COLUMN for all metrics or metric=COLUMN for one; A/B is a
    pair of columns."""
    found: dict[str, list[Any]] = {}
    for text in given or []:
        metric, _, column = text.rpartition("=")
        named = {metric: column} if metric and text not in columns else dict.fromkeys(metrics, text)
        for name, one in named.items():
            pair = tuple(one.split("/"))
            found.setdefault(name, []).append(
                pair if one not in columns and len(pair) == 2 else one
            )
    return {name: some[0] if len(some) == 1 else some for name, some in found.items()} or None


def _health(
    health: pd.DataFrame,
    join: dict[str, Any],
    planned: bool,
    compared: pd.DataFrame,
    n_compared: int,
) -> str:
    """Return the table of assigned users, and one line for each conclusion; the sample ratio is of
    those compared."""
    strata = columns_before(health, "variant")
    table = {name: health[name].astype(str).tolist() for name in strata} | {
        "variant": [str(name) for name in health["variant"]],
        "assigned": [f"{n:,}" for n in health["n_assigned"]],
        "share": [f"{part:.1%}" for part in health["share"]],
        "planned": [f"{part:.1%}" for part in health["expected_share"]],
        "with metrics": [f"{n:,}" for n in health["n_with_metrics"]],
        "missing": [f"{part:.1%}" for part in health["missing_rate"]],
    }
    plan = "planned shares" if planned else "equal shares (say otherwise with --expected)"
    part = (
        f" of the {n_compared:,} users compared" if n_compared < health["n_assigned"].sum() else ""
    )
    broken = has(compared["remarks"], "sample_ratio").any()
    alike = ("alike in all variants", "DIFFER by variant")
    lines = [
        text_table(table),
        "",
        _verdict(
            f"sample ratio{part}",
            compared["srm_p"].min(),
            broken,
            f"fits {plan}",
            f"DOES NOT FIT {plan}",
        )
        + ("" if broken else seen_words(compared.to_dict("records"), "treatment")),
        _verdict(
            "missing metrics",
            health["missing_p"].min(),
            (health["missing_flag"] != "").any(),
            *alike,
        ),
    ]
    counts = {
        "n_multi_variant": "users in several variants, left out",
        "n_unassigned": "users with metrics but no variant, left out",
        "n_repeated": "repeated rows of the assignment, left out",
    }
    lines += [f"{join[name]:,} {text}" for name, text in counts.items() if join[name]]
    return "\n".join(lines)


def _verdict(what: str, p: float, flagged: Any, good: str, bad: str) -> str:
    if pd.isna(p):
        return (
            f"{what}: not tested "
            f"({'nobody or everybody' if what == 'missing metrics' else 'too few users'})"
        )
    return f"{what}: {bad if flagged else good}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"


# -- both


def _add_results(command: Any, written: str, several: bool = False) -> Any:
    files = command.add_argument_group("files")
    add_arguments(files, RUNS if several else {"RESULTS": "folder that recdf evaluate --out wrote"})
    add_out(files, COMPARISON_FILES, f"folder for {written}; without it nothing is written")
    return files


def compact(table: pd.DataFrame) -> str:
    """Return the columns that fit into a terminal: segments, metric, comparison, difference,
    relative, p, verdict."""
    shown = report_table(table).frame
    before = columns_before(table, "metric")
    names = [
        name for name in shown.columns if name in before or name.split(" (")[0] in SHOWN_COLUMNS
    ]
    head = {} if "not adjusted" in adjustment(table).words else {"p": "p adjusted"}
    return text_table({head.get(name, name): shown[name].tolist() for name in names})


def _give_decision(
    given: argparse.Namespace,
    text: str,
    result: Evaluation,
    compared: dict[str, pd.DataFrame],
    first: Mapping[str, pd.DataFrame] | None = None,
) -> None:
    """Write and print the tables that were compared; `first` are tables that are written before
    them."""
    tables = {**(first or {}), **compared}
    for table in tables.values():  # pandas writes attrs, so that the file says what was evaluated
        table.attrs |= {
            "recdf": result.spec,
            COMPARED_RESULT: digest_of_result(*as_paths(given.results)),
        }
    give_tables(given, text, as_asked(given, tables), as_asked(given, compared | tables))
