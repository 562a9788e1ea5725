"""`recdf interleave` and `recdf interleaved`: lists that mix two recommenders, and what clicks on them say."""

from __future__ import annotations

import argparse
from typing import Any

from ..experiments.compare.interleaved_clicks import compare_interleaved
from ..experiments.plan.interleaving import interleave
from .arguments import FILES_HELP, add_arguments, add_out, add_parameters, check_out, given_parameters
from .deciding import compact
from .files import read_files
from .output import give_tables, verdicts_fail

OF_INTERLEAVE = ("method", "seed", "user_col", "item_col", "score_col", "rank_col")
OF_INTERLEAVED = ("credit", "unit_col", "user_col", "item_col", "alternative", "confidence")
MIXED, PREFERRED = ("lists.parquet",), ("interleaved.parquet",)


def add_interleave(commands: Any) -> None:
    command = commands.add_parser(
        "interleave",
        usage="%(prog)s --a FILE --b FILE --out FOLDER [options]",
        help="mix the lists of two recommenders into one list per user",
        description="Mix the lists of two recommenders into one list per user, and write lists.parquet with the team "
        "of each item; clicks on these lists tell which recommender users prefer (recdf interleaved).",
        epilog=FILES_HELP,
    )
    files = command.add_argument_group("files")
    add_arguments(files, {"--a FILE": "items of one recommender", "--b FILE": "items of the other"}, required=True)
    add_out(files, "folder for lists.parquet; without it nothing is written")
    options = command.add_argument_group("options")
    add_arguments(options, {"-k K": "length of the mixed lists (default 10)"}, default=10)
    add_parameters(options, interleave, OF_INTERLEAVE)
    command.set_defaults(run=_interleave, parser=command)


def _interleave(given: argparse.Namespace) -> None:
    check_out(given.out, MIXED, given.overwrite)
    options = given_parameters(given, OF_INTERLEAVE)
    keys = options.get("user_col", ["user_id"])
    frames = read_files({"a": given.a, "b": given.b}, [*keys, options.get("item_col", "item_id")], [])
    log = interleave(frames["a"], frames["b"], given.k, **options)
    teams = log["team"].value_counts()
    n = len(log[keys].drop_duplicates())
    said = f"{n:,} lists with {len(log):,} items: {teams.get('a', 0):,} of team a, {teams.get('b', 0):,} of team b, "
    give_tables(given, f"{said}{teams.get('', 0):,} of no team", {"lists": log}, {"lists": log}, MIXED)


def add_interleaved(commands: Any) -> None:
    command = commands.add_parser(
        "interleaved",
        usage="%(prog)s LOG --clicks FILE [options]",
        help="compare two recommenders by the clicks on interleaved lists",
        description="Compare the recommenders a and b by the clicks on lists that recdf interleave mixed; better means "
        "that users prefer b.",
        epilog=FILES_HELP,
    )
    files = command.add_argument_group("files")
    add_arguments(files, {"LOG": "lists that were shown, with the team of each item"})
    add_arguments(files, {"--clicks FILE": "one row per click: key of the list, item"}, required=True)
    add_out(files, "folder for interleaved.parquet; without it nothing is written")
    add_parameters(command.add_argument_group("options"), compare_interleaved, OF_INTERLEAVED)
    command.set_defaults(run=_interleaved, parser=command)


def _interleaved(given: argparse.Namespace) -> int:
    check_out(given.out, PREFERRED, given.overwrite)
    options = given_parameters(given, OF_INTERLEAVED)
    units = options.get("unit_col", ["user_id"])
    keys = list(dict.fromkeys([*units, *options.get("user_col", units)]))
    ids = [*options.get("user_col", units), options.get("item_col", "item_id")]
    log = read_files({"log": given.log}, [*keys, ids[-1]], ["team"])["log"]
    clicks = read_files({"clicks": given.clicks}, ids, [])["clicks"]
    table = compare_interleaved(log, clicks, **options)
    row = table.iloc[0]
    lines = [
        f"{row['n_users']:,} users, {row['n_clicks']:,} clicks, of which {row['n_clicks_no_team']:,} on items of no "
        f"team and {row['n_clicks_elsewhere']:,} elsewhere",
        "",
        compact(table),
        f"{row['wins']:,} users prefer b, {row['losses']:,} prefer a (sign test p = {row['p_sign']:.3g})",
    ]
    give_tables(given, "\n".join(lines), {"interleaved": table}, {"interleaved": table}, PREFERRED)
    return verdicts_fail(given, table)
