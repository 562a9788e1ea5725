"""`recdf compare`, `recdf experiment` and `recdf gate`: from results on disk to a decision."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pandas as pd
from pandas import DataFrame

from ..diagnostics import gate
from ..diagnostics.gate_records import Side, junit_text, pair_of, read_side
from ..display.given_tables import count_range
from ..display.page_blocks import trend_words
from ..errors import OptionError
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import digest_of_result, file_of_rows
from ..experiments import (
    compare_models,
    compare_variants,
    effect_over_time,
    experiment_health,
    join_experiment,
)
from ..experiments.compare.by_segment import segment_sentences
from ..experiments.compare.cheap_labels import compared_labels
from ..experiments.compare.paired import sentence_of_both
from ..experiments.compare.user_periods import PeriodKind
from ..experiments.decide.adjust_pvalues import adjustment
from ..experiments.decide.experiment_health import by_stratum
from ..experiments.decide.sample_ratio import seen_words
from ..experiments.samples import subset
from ..formats.file_sets import read_beside, read_files
from ..inputs.frames import column
from ..judge.comparisons import NOT_IN_A_TERMINAL, report_table, unit_of_rows
from ..judge.per_user_columns import unit_of
from ..judge.verdict import has, warning_sentences
from ..tables.cells import columns_before
from .arguments import BOUNDS_FLAG, Given, as_bounds, as_pairs, given_files, taken_by
from .arguments import flag as as_flag
from .commands import (
    COMPARED_RESULT,
    COMPARISON_FILES,
    GATE_FILES,
    Command,
    Reply,
    Tables,
    brief_text,
    failing_verdicts,
    plain_signs,
    text_table,
)
from .stored_runs import (
    ONE_RESULT,
    ROLES,
    RUNS,
    decided,
    failing_decisions,
    given_roles,
    label,
    read_results,
    with_times,
)

GATE_CODES = {"pass": 0, "fail": 1, "undecided": 3}


# -- models


def _compare(given: Namespace, options: Given) -> Reply:
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
        **options,
    )
    n = count_range(table["n_users"], unit_of_rows(table))
    head = f"{n}, test {table['test'].iloc[0]}, p {adjustment(table).words}\n"
    lines = [head, compact(table), *compared_labels(table), *warning_sentences(table)]
    for row in table.to_dict("records"):
        if sentence := sentence_of_both(row):
            segments = (f"{name} = {row[name]}: " for name in columns_before(table, "metric"))
            pair = f"{row['model']} vs. {row['baseline']}: "
            lines.append("".join([*segments, pair]) + plain_signs(sentence))
    return Reply("\n".join(lines), _of_result(given, result, {"comparison": table}))


# ------------------------------------------------------------------------------------------
# variants


def _experiment(given: Namespace, options: Given) -> Reply:
    result = read_parquet(given.results)
    roles = given_roles(given)
    segments = given.segment or [*(getattr(roles, "segments", None) or [])]  # those of a plan
    labels = [given.variant_col, *segments, *options.get("strata", []), *options.get("cluster", [])]
    keys = given.user_col or result.spec["user_col"]
    assignment = read_beside(given.assignment, file_of_rows(given.results), keys, labels)
    for name in (options.get("exposure_col"), given.period_col, options.get("covariate_time_col")):
        if name is not None:
            column(assignment, name, "assignment")
            assignment = with_times(assignment, name)
    of_join = taken_by(join_experiment, options)
    own = {"user_col": given.user_col, "variant_col": given.variant_col, "how": given.how}
    joined = result.join_experiment(assignment, **own, **of_join)
    join = joined.attrs["recdf_experiment"]
    if roles and join["by"]:
        raise OptionError(
            f"{given.results} compares within {join['by']}; a decision is of one recommender: "
            "evaluate it alone, or leave out the roles"
        )
    options |= {"user_col": join["user_col"], "variant_col": given.variant_col}
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
    specs = metric_arguments(given, joined.columns, result)
    covariates: dict[str, list[Any]] = {}
    for text in given.covariate or []:
        metric, _, named = text.rpartition("=")
        alone = metric and text not in joined.columns
        pair = _column_or_pair(named if alone else text, joined.columns)
        for name in [metric] if alone else specs:
            covariates.setdefault(name, []).append(pair)
    options |= {
        "control": label("control", given.control, joined[given.variant_col]),
        "covariates": {name: one[0] if len(one) == 1 else one for name, one in covariates.items()}
        or None,
        "expected": expected,
        "time_col": given.period_col,
        "bounds": as_bounds(given.bounds),
        "cap": as_pairs("--cap", given.cap, "a metric and a quantile, as revenue@10=0.999", float)
        or None,
        "test": dict.fromkeys(specs, options.get("test", "t"))
        | dict.fromkeys(given.proportion or [], "proportion"),
    }
    subset("proportion", given.proportion, specs)
    named = getattr(roles, "roles", roles)
    if success := [name for name, role in named.items() if role == "success"]:
        options.setdefault("primary", [name for name in success if name in specs])
    of_variants = taken_by(compare_variants, options) | {"expected": None, "health": health}
    tables = {}
    lines = []
    for name, of, heading in (
        ("comparison", [], "All users"),
        ("segments", segments, f"By {' and '.join(segments)}"),
    )[: 1 + bool(segments)]:
        table = compare_variants(joined, specs, by=[*join["by"], *of], **of_variants)
        tables[name] = table
        lines.append(f"\n{heading}, p {adjustment(table).words}\n\n{compact(table)}")
    if segments and not join["by"]:
        lines += ["", *segment_sentences(tables["segments"]).values()]
    unit = options.get("cluster", join["user_col"])
    n_compared = len(joined[unit].drop_duplicates())
    planned = given.expected is not None
    lines = [_health(health, join, planned, tables["comparison"], n_compared), *lines]
    if given.over_time is not None:
        tables["over_time"] = _over_time(given, result, assignment, specs, of_join, options)
        heading = given.over_time.replace("_", " ").capitalize()
        lines.append(f"\n{heading}\n\n{compact(tables['over_time'])}\n")
        for row in tables["over_time"].drop_duplicates(["metric", "treatment"]).to_dict("records"):
            words = plain_signs(trend_words(row))
            lines.append(f"{row['metric']}, {row['treatment']} vs. {row['control']}: {words}")
    ran = {"unit": unit, "segments": segments, "looks": given.looks}
    decision, said = decided(tables["comparison"], roles, ran)
    lines += [said] * bool(decision)
    lacking = bool((health["missing_flag"] != "").any())
    counted = unit_of_rows(tables["comparison"]).capitalize()
    differ = f"{counted}s without metrics differ between the variants"
    lines += [f"\n{differ}: find out why before you act on this."] * lacking
    failings = (
        *([("warning", differ)] * lacking),
        *failing_decisions(decision.get("decision")),
        *failing_verdicts(*tables.values(), decided=bool(decision)),
    )
    written = _of_result(given, result, {**tables, **decision, "health": health})
    return Reply("\n".join(lines), written, failings=failings)


def _over_time(
    given: Namespace,
    result: Evaluation,
    assignment: DataFrame,
    specs: dict[str, Any],
    of_join: Given,
    options: Given,
) -> DataFrame:
    """The effect by period, of the users and metrics that are compared."""
    if "exposure_col" not in of_join or "time_col" not in of_join or result.spec["by"]:
        raise OptionError(
            "--over-time needs --exposure-col and --time-col, and a result of one model (no --by)"
        )
    own = taken_by(effect_over_time, {**options, "time_col": of_join["time_col"]})
    own |= {
        "kind": given.over_time,
        "missing": "drop" if of_join.get("missing") == "drop" else "zero",
        "sequential_n": options.get("sequential_n") if given.over_time == "cumulative" else None,
    }
    if given.how:
        own["how"] = {name: given.how for name, spec in specs.items() if isinstance(spec, str)}
    return effect_over_time(result.per_user, specs, assignment=assignment, **own)


def expected_arguments(given: Namespace, options: Given, rows: DataFrame) -> dict[Any, Any] | None:
    """Return the planned share of each variant from texts such as A=0.9; None without them.

    If strata are named, and all texts are as week1:A=0.9, they are the shares of each stratum.
    """
    if given.expected is None:
        return None
    variants = column(rows, options.get("variant_col", "variant"), "assignment")
    strata = options.get("strata") or []
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
    given: Namespace, columns: Iterable[str], result: Evaluation
) -> dict[str, Any]:
    """Name → column, or → (numerator, denominator) from name=numerator/denominator; by default all
    of the result."""
    metrics: dict[str, Any] = {}
    for text in given.metric or []:
        name, _, ratio = text.partition("=")
        value = text if text in columns else _column_or_pair(ratio, columns)
        name, value = (name, value) if isinstance(value, tuple) else (text, text)
        if metrics.setdefault(name, value) != value:
            raise OptionError(f"--metric {text}: {name} is given twice")
    return metrics or {name: name for name in result.spec["metrics"] if name in columns}


def _column_or_pair(text: str, columns: Iterable[str]) -> str | tuple[str, ...]:
    pair = tuple(text.split("/"))
    return pair if text not in columns and len(pair) == 2 else text


def _health(
    health: DataFrame,
    join: dict[str, Any],
    planned: bool,
    compared: DataFrame,
    n_compared: int,
) -> str:
    """Return the table of assigned users, and one line for each conclusion; the sample ratio is of
    those compared."""
    counts = ("n_assigned", "share", "expected_share", "n_with_metrics", "missing_rate")
    names = [*columns_before(health, "variant"), "variant", *counts]
    plan = "planned shares" if planned else "equal shares (say otherwise with --expected)"
    unit = unit_of_rows(compared)
    fewer = n_compared < health["n_assigned"].sum()
    broken = has(compared["remarks"], "sample_ratio").any()
    differ = (health["missing_flag"] != "").any()
    p = compared["srm_p"].min()
    if broken:  # only the health table knows a planned variant that nobody has
        p = min(p, health["srm_p"].min())
    ratio = _with_p(f"DOES NOT FIT {plan}" if broken else f"fits {plan}", p, unit)
    missing = _with_p(
        "DIFFER by variant" if differ else "alike in all variants", health["missing_p"].min(), unit
    )
    lines = [
        brief_text(health, names),
        "",
        f"sample ratio{f' of the {n_compared:,} {unit}s compared' if fewer else ''}: {ratio}"
        + ("" if broken else seen_words(compared.to_dict("records"), "treatment", f"{unit}s")),
        f"missing metrics: {missing}",
    ]
    left_out = {
        "n_multi_variant": "users in several variants, left out",
        "n_unassigned": "users with metrics but no variant, left out",
        "n_repeated": "repeated rows of the assignment, left out",
    }
    lines += [f"{join[name]:,} {text}" for name, text in left_out.items() if join[name]]
    return "\n".join(lines)


def _with_p(said: str, p: float, unit: str) -> str:
    if pd.isna(p):
        return f"not tested (too few {unit}s, or all alike)"
    return f"{said}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"


# -- both


def compact(table: DataFrame) -> str:
    """Return the columns that fit into a terminal: segments, metric, comparison, difference,
    relative, p, verdict."""
    shown = report_table(table).frame
    segments = columns_before(shown, "metric")
    names = [one for one in shown.columns if one in segments or one not in NOT_IN_A_TERMINAL]
    head = {} if "not adjusted" in adjustment(table).words else {"p": "p adjusted"}
    return text_table({head.get(name, name): shown[name].tolist() for name in names})


def _of_result(given: Namespace, result: Evaluation, tables: Tables) -> Tables:
    """Return tables that say which result was compared, also in their files."""
    folders = given.results if isinstance(given.results, list) else [given.results]
    digest = digest_of_result(*folders)
    for table in tables.values():
        table.attrs |= {"recdf": result.spec, COMPARED_RESULT: digest}
    return tables


# ------------------------------------------------------------------------------------------
# gate


def _gate(given: Namespace, options: Given) -> Reply:
    budgets = as_pairs("--budget", given.budget, "a metric and what it may lose, as ndcg@10=-2%")
    flags = {"candidate": "model", "baseline": "baseline_model"}
    sides = sides_of_folders(given, flags, [given.results, given.baseline])
    frames = read_lists(given, sides, given_files(given, "true", "log"), flags)
    if given.cheap is not None:
        folders = pair_of(given.cheap, [*flags], "cheap", "results").values()
        frames["cheap"] = sides_of_folders(given, flags, folders)
    if given.users is not None:
        unit = options.get("unit_col", unit_of(sides[0].spec["user_col"]))
        frames |= read_files({"users": given.users}, unit, [])
    frames |= {"by": given.segment, "bounds": as_bounds(given.bounds)}
    found = gate(sides[0], sides[1], budgets, **frames, **options)
    texts = {}
    if given.junit is not None:
        texts[given.junit] = junit_text(found, "skipped" if given.undecided == "pass" else "error")
    if given.summary is not None:
        texts[given.summary] = found.to_markdown()
    said = found.verdict
    return Reply(
        repr(found),
        {"gate": found.table, "checks": found.checks},
        {"gate": found.table},
        code=GATE_CODES[given.undecided if said == "undecided" and given.undecided else said],
        reasons=sorted(found.reasons, key=lambda reason: f": {said}, " not in reason),
        texts=texts,
        failings=(),
    )


def sides_of_folders(
    given: Namespace, flags: Mapping[str, str], folders: Iterable[Path]
) -> list[Side]:
    """Return the result in the folder of each role; of several recommenders the rows of the one
    that its flag names."""
    sides = []
    for (role, flag), folder in zip(flags.items(), folders, strict=True):
        result = read_parquet(folder)
        by = result.spec["by"]
        rows = _rows_of_named(given, flag, result.per_user, by)
        if by and (models := rows[by[0]].unique().tolist())[1:]:
            several = f"{folder} has several {by[0]}s ({', '.join(map(str, models))})"
            raise OptionError(f"{several}; name one: {as_flag(flag)}")
        sides.append(read_side(role, Side(role, rows, result.spec)))
    return sides


def _rows_of_named(given: Namespace, flag: str, frame: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return the rows of the recommender that was named, if one was and the frame tells them
    apart."""
    model = getattr(given, flag)
    if model is not None and not by:
        raise OptionError(f"{as_flag(flag)} {model}: the result was evaluated without --by")
    if model is None or by[0] not in frame.columns:
        return frame
    models = frame[by[0]]
    return frame[models == label(as_flag(flag).lstrip("-"), model, models)]


def read_lists(
    given: Namespace,
    sides: Sequence[Side],
    paths: Mapping[str, str],
    flags: Mapping[str, str],
    item_col: str | None = None,
) -> Given:
    """Read the recommendations of both sides, those of the model that was named, and other files
    beside them."""
    pairs = {} if given.pred is None else pair_of(given.pred, [side.role for side in sides])
    if not paths and not pairs:
        return {}
    keys = [*sides[0].spec["user_col"], item_col or sides[0].options.get("item_col", "item_id")]
    frames: Given = read_files({**paths, **pairs}, keys, [], ["score", "rank"])
    if pairs:
        frames["pred"] = [
            _rows_of_named(given, flags[side.role], frames.pop(side.role), side.spec["by"])
            for side in sides
        ]
    return frames


COMPARE = Command(
    "compare",
    "compare models on the same users",
    "Compare the models of a result on the same users: print a row per metric and pair of models; "
    "with --out write the full table.",
    "RESULTS [RESULTS ...]",
    _compare,
    [compare_models],
    COMPARISON_FILES,
    RUNS
    | {
        "--cheap RESULTS": "folder of the same recommendations on more lists under cheap labels, "
        "where people judged those of RESULTS",
    },
    {
        "--model NAME ...": "models (default: all)",
        "--baseline NAME": "model that the others are compared with (default: all pairs)",
        "--metric NAME ...": "such as ndcg@10 (default: all)",
        "--model-col COLUMN": "column of the model (default: that of evaluate --by)",
        "--user-col COLUMN ...": "what names a list (default: the list key)",
    }
    | BOUNDS_FLAG,
    ["metrics"],
    out="folder for comparison.parquet; without it nothing is written",
)
EXPERIMENT = Command(
    "experiment",
    "compare the variants of an experiment",
    "Compare the variants of an experiment over all assigned users: print whether it is sound, "
    "then a row per metric and treatment; with --out write the full tables.",
    "RESULTS --assignment FILE --control NAME",
    _experiment,
    [join_experiment, compare_variants],
    COMPARISON_FILES,
    ONE_RESULT | {"--assignment FILE (required)": "one row per assigned user: id, variant, more"},
    {
        "--metric NAME ...": "columns such as ndcg@10, or ratios of sums such as "
        "ctr=hits@10/n_pred (default: all columns)",
        "--covariate COLUMN ...": "columns of the assignment from before the experiment (CUPED), "
        "for all metrics, or for one as ndcg@10=COLUMN, for a ratio as ctr=COLUMN/COLUMN",
        "--cap NAME=QUANTILE ...": "values above this quantile of all users count as the "
        "quantile, such as revenue@10=0.999",
        "--proportion NAME ...": "metrics of 0 and 1 to compare by Fisher's exact test, such as "
        "hitrate@10",
        "--expected NAME=SHARE ...": "planned share of every variant, such as A=0.9 B=0.1 "
        "(default: equal); users that do not fit it make the verdict invalid; in a ramp-up, of "
        "each of --strata, such as week1:A=0.9 week1:B=0.1 week2:A=0.5 week2:B=0.5",
        "--segment COLUMN ...": "columns of the assignment: compare within each",
        "--over-time {" + ",".join(get_args(PeriodKind)) + "}": "also the effect by period, and "
        "whether it fades (needs --exposure-col and --time-col): daily, cumulative (read at every "
        "look), or since_exposure",
        "--user-col COLUMN ...": "key of the assignment (default: the columns of the list key "
        "that it has)",
        "--variant-col COLUMN": "default variant",
        "--period-col COLUMN": "time or cohort of the assignment; shares of the variants that "
        "change over it withhold the verdict",
        "--how {mean,sum}": "roll several lists of a user up (lists by session, users assigned)",
    }
    | BOUNDS_FLAG
    | ROLES,
    ["metrics", "covariates", "by", "over"],
    with_control=True,
    out="folder for health.parquet, comparison.parquet, segments.parquet, over_time.parquet; with "
    "roles decision.parquet and roles.parquet; without it nothing is written",
    defaults={"variant_col": "variant"},
)
GATE = Command(
    "gate",
    "decide whether a candidate may replace the baseline",
    "Decide whether a candidate loses no more than its budgets against a baseline on the same "
    "lists. Exit code 0: pass, 1: fail, 3: undecided, 2: the call or a file is wrong.",
    "RESULTS --baseline RESULTS --budget METRIC=CHANGE",
    _gate,
    [gate],
    GATE_FILES,
    {
        "RESULTS": "folder of the candidate, which recdf evaluate --out wrote",
        "--baseline RESULTS (required)": "folder of the baseline",
        "--cheap RESULTS ...": "folders of candidate and baseline on more lists under cheap "
        "labels, where people judged those of RESULTS",
        "--users FILE": "the population: one row per list, with the user, the weight and the "
        "segments that the results have; without it the gate says up to what weight it holds",
        "--junit PATH": "write a JUnit report, which CI systems show",
        "--summary PATH": "write a summary in Markdown, for a comment on a change request",
        "--pred FILE ...": "recommendations of the candidate and of the baseline: sampled "
        "candidates, other shares of items that are in the log already, and fewer judged items "
        "make the gate undecided",
        "--true FILE": "the truth that both were evaluated on (--pred needs it)",
        "--log FILE": "past interactions: user and item",
    },
    {
        "--budget METRIC=CHANGE ... (required)": "what may be lost: ndcg@10=-2%% of the "
        "baseline's mean, revenue@10=-0.05 in units of the metric, latency=+5%% where smaller is "
        "better, 'ndcg@10[country=DE]=-5%%' of a segment",
        "--segment COLUMN ...": "columns of both results (recdf evaluate --carry) whose values "
        "are shown as segments",
        "--model NAME": "recommender of the candidate's folder, if that holds several",
        "--baseline-model NAME": "recommender of the baseline's folder, if that holds several",
        "--undecided {pass,fail}": "take undecided for this: exit code 0 or 1 in place of 3",
    }
    | BOUNDS_FLAG,
    ["by"],
    fails=False,
)
