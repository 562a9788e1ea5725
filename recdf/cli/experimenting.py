"""Commands around an experiment: before it, A/A splits and mixed lists; after it, clicks on these,
a broken ratio."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from ..errors import OptionError
from ..evaluation.result import read_parquet
from ..experiments.compare.interleaved import compare_interleaved
from ..experiments.compare.quantiles import compare_quantiles, compare_zero_inflated
from ..experiments.compare.variants import compare_variants
from ..experiments.decide.sample_ratio import find_srm
from ..experiments.plan.aa_splits import aa_test
from ..experiments.plan.interleaving import interleave
from ..formats.file_sets import read_files
from .arguments import add_arguments, add_command, add_out, add_parameters, given_parameters
from .deciding import add_control, compact, metric_arguments, planned_arguments
from .output import fail_on, give_tables, row_name, text_table, verdicts_fail
from .stored_runs import label

OF_INTERLEAVE = ("method", "seed", "user_col", "item_col", "score_col", "rank_col")
OF_INTERLEAVED = ("credit", "unit_col", "user_col", "item_col", "alternative", "confidence")
OF_AA = ("n", "cluster", "nan", "alternative", "confidence", "seed")
OF_SRM = ("user_col", "variant_col", "cluster", "strata", "confidence")
OF_QUANTILES = (
    "variant_col",
    "user_col",
    "cluster",
    "by",
    "nan",
    "smaller_is_better",
    "larger_is_better",
    "alternative",
    "confidence",
    "correction",
    "time_col",
)
TAILS = ("quantiles.parquet", "parts.parquet")
MIXED, PREFERRED, SPLIT, RATIO = (
    ("lists.parquet",),
    ("interleaved.parquet",),
    ("aa.parquet",),
    ("srm.parquet",),
)


def add_interleave(commands: Any) -> None:
    command = add_command(
        commands,
        "interleave",
        _interleave,
        "mix the lists of two recommenders into one list per user",
        "Mix the lists of two recommenders into one list per user, and write lists.parquet with "
        "the team of each item; clicks on these lists tell which recommender users prefer (recdf "
        "interleaved).",
        usage="%(prog)s --a FILE --b FILE --out FOLDER [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(
        files,
        {"--a FILE": "items of one recommender", "--b FILE": "items of the other"},
        required=True,
    )
    add_out(files, MIXED)
    options = command.add_argument_group("options")
    add_arguments(options, {"-k K": "length of the mixed lists (default 10)"}, default=10)
    add_parameters(options, interleave, OF_INTERLEAVE)


def _interleave(given: argparse.Namespace) -> None:
    options = given_parameters(given, OF_INTERLEAVE)
    keys = options.get("user_col", ["user_id"])
    frames = read_files(
        {"a": given.a, "b": given.b}, [*keys, options.get("item_col", "item_id")], []
    )
    log = interleave(frames["a"], frames["b"], given.k, **options)
    teams = log["team"].value_counts()
    n = len(log[keys].drop_duplicates())
    said = (
        f"{n:,} lists with {len(log):,} items: {teams.get('a', 0):,} of team a, "
        f"{teams.get('b', 0):,} of team b, "
    )
    give_tables(given, f"{said}{teams.get('', 0):,} of no team", {"lists": log})


def add_interleaved(commands: Any) -> None:
    command = add_command(
        commands,
        "interleaved",
        _interleaved,
        "compare two recommenders by the clicks on interleaved lists",
        "Compare the recommenders a and b by the clicks on lists that recdf interleave mixed; "
        "better means that users prefer b.",
        usage="%(prog)s LOG --clicks FILE [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(files, {"LOG": "lists that were shown, with the team of each item"})
    add_arguments(
        files, {"--clicks FILE": "one row per click: key of the list, item"}, required=True
    )
    add_out(files, PREFERRED)
    add_parameters(command.add_argument_group("options"), compare_interleaved, OF_INTERLEAVED)


def _interleaved(given: argparse.Namespace) -> int:
    options = given_parameters(given, OF_INTERLEAVED)
    units = options.get("unit_col", ["user_id"])
    keys = list(dict.fromkeys([*units, *options.get("user_col", units)]))
    ids = [*options.get("user_col", units), options.get("item_col", "item_id")]
    log = read_files({"log": given.log}, [*keys, ids[-1]], ["team"])["log"]
    clicks = read_files({"clicks": given.clicks}, ids, [])["clicks"]
    table = compare_interleaved(log, clicks, **options)
    row = table.iloc[0]
    lines = [
        f"{row['n_users']:,} users, {row['n_clicks']:,} clicks, of which "
        f"{row['n_clicks_no_team']:,} on items of no team and {row['n_clicks_elsewhere']:,} "
        "elsewhere",
        "",
        compact(table),
        f"{row['wins']:,} users prefer b, {row['losses']:,} prefer a (sign test p = "
        f"{row['p_sign']:.3g})",
    ]
    give_tables(given, "\n".join(lines), {"interleaved": table})
    return verdicts_fail(given, table)


def add_aa(commands: Any) -> None:
    command = add_command(
        commands,
        "aa",
        _aa,
        "test whether the tests of an experiment hold on your own data",
        "Split the users of a result at random many times, and count how often a test finds a "
        "difference where there is none.",
        usage="%(prog)s RESULTS [options]",
        epilog=None,
    )
    files = command.add_argument_group("files")
    add_arguments(files, {"RESULTS": "folder that recdf evaluate --out wrote"})
    add_out(files, SPLIT)
    options = command.add_argument_group("options")
    add_arguments(
        options,
        {"--metric NAME ...": "columns, or ratios such as ctr=hits@10/n_pred (default: all)"},
    )
    add_arguments(
        options,
        {"--shares NUMBER ...": "of control and treatment (default 0.5 0.5)"},
        default=(0.5, 0.5),
    )
    add_parameters(options, aa_test, OF_AA)


def _aa(given: argparse.Namespace) -> int:
    result = read_parquet(given.results)
    users, keys = result.per_user, result.spec["user_col"]
    specs = metric_arguments(given.metric, users.columns, result)
    table = aa_test(
        users, specs, user_col=keys, shares=given.shares, **given_parameters(given, OF_AA)
    )
    give_tables(
        given, _in_columns(table, "rejected", "rejected_low", "rejected_high"), {"aa": table}
    )
    often = table[table["effect"] == "rejects_often"].to_dict("records")
    return fail_on(given, (("warning", f"{row_name(row)}: {row['verdict']}") for row in often))


def _in_columns(table: pd.DataFrame, *numbers: str) -> str:
    """Return the columns of text for a terminal, and some of numbers."""
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    names = [name for name in table.columns if name in (*texts, *numbers, "cap")]
    return text_table(
        {
            name: [
                f"{one:.4g}"
                if name not in texts and not pd.isna(one)
                else ""
                if pd.isna(one)
                else str(one)
                for one in table[name]
            ]
            for name in names
        }
    )


def add_srm(commands: Any) -> None:
    command = add_command(
        commands,
        "srm",
        _srm,
        "find where a broken sample ratio comes from",
        "Find the levels of columns (browser, country, day) in which the users per variant do not "
        "fit the plan.",
        usage="%(prog)s --assignment FILE --column COLUMN ... [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(
        files, {"--assignment FILE": "one row per assigned user: id, variant, more"}, required=True
    )
    add_out(files, RATIO)
    options = command.add_argument_group("options")
    add_arguments(options, {"--column COLUMN ...": "columns to look into"}, required=True)
    add_arguments(
        options,
        {
            "--expected NAME=SHARE ...": "planned shares, such as A=0.9 B=0.1, or of each of "
            "--strata, as week1:A=0.9 (default: equal)",
        },
    )
    add_parameters(options, find_srm, OF_SRM)


def _srm(given: argparse.Namespace) -> int:
    options = given_parameters(given, OF_SRM)
    variant = options.get("variant_col", "variant")
    strata = options.get("strata")
    labels = [variant, *given.column, *options.get("cluster", []), *(strata or [])]
    keys = options.get("user_col", ["user_id"])
    assignment = read_files({"assignment": given.assignment}, keys, labels)["assignment"]
    expected = (
        None
        if given.expected is None
        else planned_arguments(given.expected, assignment[variant], assignment, strata)
    )
    table = find_srm(assignment, given.column, expected=expected, **options)
    said = f"all users: p = {table['p_all'].iloc[0]:.3g}\n\n"
    shown = _in_columns(table, "n_users", "n_variant", "n_expected", "p_adj", "p_without")
    give_tables(given, said + shown, {"srm": table})
    broken = table[table["withheld"] == "sample_ratio"].to_dict("records")
    return fail_on(
        given, (("invalid", f"{row['column']} {row['level']}: {row['verdict']}") for row in broken)
    )


def add_quantiles(commands: Any) -> None:
    command = add_command(
        commands,
        "quantiles",
        _run_quantiles,
        "compare quantiles of the variants of an experiment",
        "Compare quantiles of the variants of an experiment (latency, order value) on a file of "
        "users or of their requests, and metrics of which most users have none by their parts.",
        usage="%(prog)s --rows FILE (--control NAME | --all-pairs) --metric NAME ... [options]",
    )
    files = command.add_argument_group("files")
    add_arguments(
        files, {"--rows FILE": "one row per user or request: variant, metrics, more"}, required=True
    )
    add_out(files, TAILS)
    options = command.add_argument_group("options")
    add_control(options)
    add_arguments(
        options,
        {
            "--metric NAME ...": "columns whose quantiles are compared",
            "--zero-inflated NAME ...": "columns to compare by the share of rows above 0, their "
            "mean, and the total",
        },
    )
    add_arguments(
        options, {"--quantiles NUMBER ...": "default 0.5 0.9 0.99"}, default=(0.5, 0.9, 0.99)
    )
    add_arguments(options, {"--expected NAME=SHARE ...": "planned shares, such as A=0.9 B=0.1"})
    add_parameters(options, compare_variants, OF_QUANTILES)


def _run_quantiles(given: argparse.Namespace) -> int:
    if not (given.metric or given.zero_inflated):
        raise OptionError("--metric and --zero-inflated are missing; name the columns to compare")
    options = given_parameters(given, OF_QUANTILES)
    variant = options.setdefault("variant_col", "variant")
    names = [one for name in ("cluster", "by") for one in options.get(name, [])]
    rows = read_files({"rows": given.rows}, options.get("user_col", []), [variant, *names])["rows"]
    options["control"] = label("control", given.control, rows[variant])
    of_rows = given.expected, rows[variant], rows, None
    options["expected"] = None if given.expected is None else planned_arguments(*of_rows)
    tables = {}
    if given.metric:
        tables["quantiles"] = compare_quantiles(
            rows, given.metric, quantiles=given.quantiles, **options
        )
    if given.zero_inflated:
        tables["parts"] = compare_zero_inflated(rows, given.zero_inflated, **options)
    give_tables(given, "\n\n".join(map(compact, tables.values())), tables)
    return verdicts_fail(given, *tables.values())
