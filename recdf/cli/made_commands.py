"""Commands about logs, experiments and the past: each calls its functions once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..diagnostics.history import History
from ..diagnostics.list_changes import diff
from ..diagnostics.run_records import past_runs, past_tests
from ..display.leaderboard import leaderboard
from ..errors import OptionError
from ..evaluation.result import read_parquet
from ..evaluation.storage import is_result, local_path
from ..experiments.compare.interleaving import compare_interleaved, interleave
from ..experiments.compare.quantiles import compare_quantiles, compare_zero_inflated
from ..experiments.compare.variants import compare_variants
from ..experiments.decide.experiment_health import find_srm
from ..experiments.decide.proxy_metrics import proxy_metrics
from ..experiments.join.roll_up import roll_up
from ..experiments.plan.aa_splits import aa_test
from ..experiments.plan.plan_experiment import (
    arrivals_by_day,
    plan_comparison,
    plan_experiment,
)
from ..formats.file_sets import FileSet, is_remote, read_files
from ..inputs.options import as_columns
from ..logs.impression_tables import SPANS
from ..logs.impressions import from_impressions
from ..off_policy.beside_estimates import ope_compare, ope_diagnostics
from ..off_policy.estimate_value import MEANINGS, ope_estimate
from ..off_policy.log_additions import target_from_recs
from ..partitions.dealt_logs import IMPRESSION_FILES, impressions_parquet
from ..publishing import made, staging_folder
from ..tables.cells import amount, doing
from .arguments import BOUNDS_FLAG, as_pairs, flag, given_files
from .commands import Command, Given, Reply, Tables
from .deciding import compact, expected_arguments, metric_arguments, read_lists, side_of_folder
from .output import ESTIMATED, brief_text, plain_signs, texts_and
from .stored_runs import (
    ONE_RESULT,
    RUNS,
    frames_of_call,
    given_for_models,
    given_margins,
    label,
    read_results,
    taken_by,
    with_times,
)

# -- before and after an experiment


def _interleave(given: argparse.Namespace, options: Given) -> Reply:
    lists = interleave(**frames_of_call(given, interleave, options, "a", "b"), **options)
    teams = lists["team"].value_counts()
    n = len(lists[as_columns(options.get("user_col", "user_id"))].drop_duplicates())
    of_teams = f"{teams.get('a', 0):,} of team a, {teams.get('b', 0):,} of team b"
    of_teams += f", {teams.get('', 0):,} of no team"
    said = f"{amount(n, 'list')} with {amount(len(lists), 'item')}: {of_teams}"
    return Reply(said, {"lists": lists})


def _interleaved(given: argparse.Namespace, options: Given) -> Reply:
    frames = frames_of_call(given, compare_interleaved, options, "log", "clicks", labels=["team"])
    table = compare_interleaved(**frames, **{**options, "details": True})
    row = table.iloc[0]
    lines = [
        f"{amount(row['n_users'], 'user')}, {amount(row['n_clicks'], 'click')}, of which "
        f"{row['n_clicks_no_team']:,} on items of no team and {row['n_clicks_elsewhere']:,} "
        "elsewhere",
        "",
        compact(table),
        f"{doing(row['wins'], 'prefer', 'user')} b, {doing(row['losses'], 'prefer')} a "
        f"(sign test p = {row['p_sign']:.3g})",
    ]
    return Reply("\n".join(lines), {"interleaved": table})


def _aa(given: argparse.Namespace, options: Given) -> Reply:
    result = read_parquet(given.results)
    users, keys = result.per_user, result.spec["user_col"]
    specs = metric_arguments(given.metric, users.columns, result)
    table = aa_test(users, specs, user_col=keys, **options)
    names = texts_and(table, "cap", "rejected", "rejected_low", "rejected_high")
    return Reply(brief_text(table, names), {"aa": table})


def _srm(given: argparse.Namespace, options: Given) -> Reply:
    asked = {**options, "columns": given.column}
    rows = frames_of_call(given, find_srm, asked, "assignment")["assignment"]
    table = find_srm(rows, expected=expected_arguments(given, options, rows), **asked)
    names = texts_and(table, "n_users", "n_variant", "n_expected", "p_adj", "p_without")
    said = f"all users: p = {table['p_all'].iloc[0]:.3g}\n\n"
    return Reply(said + brief_text(table, names), {"srm": table})


def _quantiles(given: argparse.Namespace, options: Given) -> Reply:
    if not (given.metric or given.zero_inflated):
        raise OptionError("--metric and --zero-inflated are missing; name the columns to compare")
    rows = frames_of_call(given, compare_quantiles, options, "rows")["rows"]
    variants = rows[options.get("variant_col", "variant")]
    options |= {"expected": expected_arguments(given, options, rows), "details": True}
    options["control"] = label("control", given.control, variants)
    tables = {}
    if given.metric:
        tables["quantiles"] = compare_quantiles(rows, given.metric, **options)
    if given.zero_inflated:
        options.pop("quantiles", None)
        tables["parts"] = compare_zero_inflated(rows, given.zero_inflated, **options)
    return Reply("\n\n".join(map(compact, tables.values())), tables)


def _plan(given: argparse.Namespace, options: Given) -> Reply:
    result = read_parquet(given.results)
    users, keys = result.per_user, result.spec["user_col"]
    specs = metric_arguments(given.metric, users.columns, result)
    if given.baseline is not None:
        if len(result.spec["by"]) != 1:
            raise OptionError(
                "--baseline plans a comparison of models; the result has no column of models (--by)"
            )
        by = result.spec["by"][0]
        table = plan_comparison(
            users,
            list(specs),
            baseline=label("baseline", given.baseline, users[by]),
            model_col=by,
            user_col=keys,
            **taken_by(plan_comparison, options),
        )
    else:
        if given.how is not None:
            keys, used = keys[:1], [name for spec in specs.values() for name in as_columns(spec)]
            users = roll_up(users, keys, dict.fromkeys(used, given.how))
        elif "cluster" not in options and users.duplicated(keys[:1]).any():
            raise OptionError(
                f"{given.results} has several rows of a {keys[0]}, and a plan counts users; --how "
                "sum adds them up"
            )
        coming = None
        if given.log is not None:
            log = read_files({"log": given.log}, keys, [given.time_col])["log"]
            log = with_times(log, given.time_col)
            coming = arrivals_by_day(log, time_col=given.time_col, user_col=keys)
        table = plan_experiment(
            users,
            specs,
            arrivals=coming,
            guardrails=given_margins(given) or None,
            **taken_by(plan_experiment, options),
        )
    return Reply(brief_text(table, table.columns), {"plan": table})


# -- results and logs


def _leaderboard(given: argparse.Namespace, options: Given) -> Reply:
    result = read_results(given.results)
    found = leaderboard(result, **given_for_models(given, result), **options)
    tables = {"leaderboard": found.frame, "comparison": found.comparisons}
    return Reply(plain_signs(str(found)), tables, {"leaderboard": found.frame})


def _diff(given: argparse.Namespace, options: Given) -> Reply:
    roles, flags = ("before", "after"), ("before_model", "after_model")
    paths = {role: getattr(given, role) for role in roles}
    results = [not is_remote(path) and is_result(path) for path in paths.values()]
    if any(results) and not all(results):
        raise OptionError(
            f"{paths[roles[results.index(False)]]} is no result, and the other side is one; name "
            "two results, or two files of recommendations"
        )
    if all(results):
        sides = [
            side_of_folder(given, role, role, flag) for role, flag in zip(roles, flags, strict=True)
        ]
        found = diff(sides[0], sides[1], **read_lists(given, sides, {}, flags), **options)
    elif given.before_model or given.after_model:
        raise OptionError(
            "--before-model and --after-model choose from results, and these are no results"
        )
    else:
        columns = {"user_col": "user_id", "item_col": "item_id"} | options
        found = diff(**frames_of_call(given, diff, columns, *roles), pred=given.pred, **options)
    tables = {"summary": found.summary, "lists": found.per_list}
    tables |= {"items": found.items} if found.items is not None else {}
    return Reply(repr(found), tables, {"summary": found.summary})


def _ope(given: argparse.Namespace, options: Given) -> Reply:
    log, by = _log_with_target(given, options), as_columns(options.get("by"))
    asked = {name: value for name, value in options.items() if name not in ("on", "k")}
    tables = {"ope": ope_estimate(log, **asked)}
    # Of slates, each estimator may name another interaction.
    if "slate_col" not in options or "interaction" in options:
        tables["ope_diagnostics"] = ope_diagnostics(log, **taken_by(ope_diagnostics, asked))
    numbers = ["value", "ci_low", "ci_high", "logging_value", "lift", "ess_reward"]
    names = [*by, "estimator", "clip", *numbers, "trust", "flags"]
    lines = [brief_text(tables["ope"], names), ""]
    if given.pred is not None and len(by) == 1 and log[by[0]].nunique() > 1:
        one = taken_by(ope_compare, asked) | {"by": by[0]}
        tables["ope_comparison"] = ope_compare(log, baseline=given.baseline, **one)
        numbers = ["diff", "ci_low", "ci_high", "n_clusters"]
        names = ["baseline", *by, "estimator", "clip", *numbers, "trust", "flags"]
        lines += [brief_text(tables["ope_comparison"], names), ""]
    found = set(tables["ope"]["flags"].str.split(", ").explode())
    meant = [f"{name}: {text}" for name, text in MEANINGS.items() if name in found]
    meant = meant or ["no flags: the intervals hold what they say if the propensities are right"]
    return Reply("\n".join([*lines, *meant]), tables)


def _log_with_target(given: argparse.Namespace, options: Given) -> pd.DataFrame:
    """The log, with the target policy of --pred where that is given."""
    on, by = options.get("on") or ["user_id", "item_id"], as_columns(options.get("by"))
    others = (options.get("cluster", "user_id"), options.get("slate_col"))
    keys = [*on, *(name for one in others for name in as_columns(one))]
    paths = {"log": given.log} | ({} if given.pred is None else {"pred": given.pred})
    frames = read_files(paths, list(dict.fromkeys(keys)), by)
    if given.pred is None:
        return frames["log"]
    return target_from_recs(
        **frames,
        on=on,
        position_col=options.get("position_col", "position") if given.match_position else None,
        k=options.get("k"),
        by=[name for name in by if name in frames["pred"].columns] or None,
    )


# -- logs of impressions


def _impressions(given: argparse.Namespace, options: Given) -> Reply:
    if given.out is None:
        raise OptionError("--out is missing; name the folder to write")
    options |= {name: _span(options[name]) for name in SPANS if name in options}
    if given.list_cols is not None:
        options["list_cols"] = given.list_cols
    if given.rank_by_time:
        options["rank_col"] = None
    gains = "an event and its gain, such as clicked=1"
    if relevance := as_pairs("--relevance", given.relevance, gains, float):
        options["relevance"] = relevance
    if given.clicks or given.purchases or "session_gap" in options:
        options.setdefault("time_col", "time")
    options = {"user_col": "user_id", "item_col": "item_id", **options}
    paths = given_files(given, "log", "clicks", "purchases", "refunds", "persons")
    for path in paths.values():
        local_path(path)  # refuses an address
    with ExitStack() as stack:
        if not all(FileSet.of(path).is_plain_parquet for path in paths.values()):
            stack.enter_context(made(given.out))
            paths = _as_parquet(paths, options, stack.enter_context(staging_folder(given.out)))
        rest = {name: getattr(given, name) for name in ("overwrite", "memory_limit", "against")}
        named = {f"{role}_path": path for role, path in paths.items()}
        spec = impressions_parquet(**named, out=given.out, **rest, **options)
    counts = _count_table(spec["counts"])
    usual = {"rank_col": "rank", "relevance_col": "relevance", "item_col": "item_id"}
    flags = " ".join(
        " ".join([flag(name), *as_columns(value)])
        for name, value in spec["options"].items()
        if usual.get(name) != value
    )
    n_lists = amount(spec["counts"]["lists"], "list")
    true, pred, _ = written = [str(given.out / name) for name in IMPRESSION_FILES]
    text = f"""\
{amount(spec["counts"]["impressions"], "impression")} in {n_lists}

{brief_text(counts, counts.columns)}

wrote {", ".join(written)}
next: recdf evaluate --true {true} --pred {pred} {flags} -m hits@10 ndcg@10"""
    moved = (("drift", sentence) for sentence in spec.get("moved", []))
    return Reply(text, printed={"counts": counts}, failings=moved)


def _span(text: str) -> Any:
    """A span of time: text with a unit, or a plain number where times are numbers."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _as_parquet(paths: dict[str, Path], options: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Text files, and those beside them, as parquet files in the folder, with ids alike and times
    as datetimes."""
    import pyarrow.parquet as pq  # costs time that other commands need not take

    lists = options.get("list_cols", ["session_id"])
    keys = [options["user_col"], options["item_col"], *lists]
    keys += [options[name] for name in ("order_col", "person_col") if name in options]
    frames = read_files(paths, keys, [])
    found = {}
    for role, frame in frames.items():
        frame = with_times(frame, options.get("time_col"))
        found[role] = folder / f"{role}.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), found[role])
    return found


def _count_table(counts: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per count: of the log, of its clicks, of its purchases."""
    rows = [("log", name, n) for name, n in counts.items() if not isinstance(n, dict)]
    for of, found in counts.items():
        rows += [(of, *pair) for pair in found.items()] if isinstance(found, dict) else []
    return pd.DataFrame(rows, columns=["of", "count", "n"])


# -- the past of a job, and of experiments

COULD_SEE = "could_see: a change of this size is found within a week in 8 of 10 cases"


def _past(given: argparse.Namespace, options: Given) -> Reply:
    tests = past_tests(given.results)
    tables = {"runs": past_runs(given.results)}
    if not len(tests) and (given.offline or given.online):
        raise OptionError(
            f"--offline and --online are about experiments, and {given.results} holds none: a "
            "folder each, with the results of recdf compare and recdf experiment"
        )
    said = []
    if not len(tests) or given.metric or "since" in options:
        dated, more = _job_tables(given, options)
        said, tables = [dated], {**tables, **more}
    if len(tests):
        tables |= {"tests": tests, **_proxies(given, options, tests)}
        said.append(brief_text(tests, tests.columns))
        if "proxies" in tables:
            names = ("slope", "slope_low", "slope_high", "naive_slope", "called_right", "verdict")
            said.append(brief_text(tables["proxies"], ["online", "offline", *names]))
    first: Tables = {name: tables[name] for name in ("changes", "tests") if name in tables}
    return Reply("\n\n".join(said), tables, {**first, **tables})


def _job_tables(given: argparse.Namespace, options: Given) -> tuple[str, Tables]:
    """Return the text and the tables of a job's results."""
    asked = taken_by(History, options)
    if given.users is not None:
        asked |= read_files({"users": given.users}, ["user_id"], [])
    history = History(given.results, **asked)
    how = {"weekly": not given.not_weekly, **taken_by(History.changes, options)}
    changes, drift = history.changes(given.metric, **how), history.drift(**how)
    gaps = history.gaps(**taken_by(History.gaps, options))
    texts, numbers = [history.headline], ("level", "could_see", "changed", "before", "after")
    for table in (changes, drift):
        names = [*table.columns[: table.columns.get_loc("n_runs")], *numbers, "verdict"]
        texts.append(brief_text(table.drop(columns="remarks"), names))
    texts += [COULD_SEE] if changes["could_see"].notna().any() else []
    texts += [brief_text(gaps, ["job", "what", "last", "verdict"])] if len(gaps) else []
    return "\n\n".join(texts), {
        "changes": changes,
        "drift": drift,
        "gaps": gaps,
        "summary": history.summary.drop(columns="path"),
    }


def _proxies(given: argparse.Namespace, options: Given, tests: pd.DataFrame) -> Tables:
    """Relate the offline metrics of past experiments to the online ones, if three experiments
    measured both."""
    sides: Given = {}
    for kind in ("offline", "online"):
        own = map(str, tests.filter(regex=f"^{kind}_"))
        known = [name for name in own if f"{name}_se" in tests]
        asked = [f"{kind}_{name}" for name in as_columns(getattr(given, kind))]
        if unknown := [name for name in asked if name not in known]:
            missing, *there = (name.removeprefix(f"{kind}_") for name in (unknown[0], *known))
            raise OptionError(
                f"--{kind} {missing}: no experiment measured it; there is {', '.join(there)}"
            )
        sides[kind] = asked or known
    measured = [name for names in sides.values() for name in names]
    whole = tests.dropna(subset=[*measured, *(f"{name}_se" for name in measured)])
    if len(whole) < 3:
        return {}
    how = taken_by(proxy_metrics, options)
    for name in how.keys() & {"smaller_is_better", "larger_is_better"}:
        how[name] = [one for one in measured if one.partition("_")[2] in options[name]]
    return {"proxies": proxy_metrics(whole, **sides, experiment_col="experiment", **how)}


METRIC = {
    "--metric NAME ...": "columns such as ndcg@10, or ratios as ctr=hits@10/n_pred (default: all)"
}
MADE = (
    Command(
        "impressions",
        "turn a log of impressions into files of lists",
        "Attribute clicks and purchases to the impressions of a log, and write true.parquet and "
        "pred.parquet, which recdf evaluate reads. Parquet files may be larger than memory: users "
        "are attributed part by part. Where a time is needed and --time-col is not given, it is "
        "time.",
        "LOG --out FOLDER",
        _impressions,
        [from_impressions],
        IMPRESSION_FILES,
        {
            "LOG": "one row per impression",
            "--clicks FILE": "one row per click: user, item, time",
            "--purchases FILE": "one row per purchase: user, item, time, price",
            "--refunds FILE": "one row per refund: user, item, time, and the amount if it may be "
            "a part of the price",
            "--persons FILE": "one row per device: user (the device) and person",
            "--memory-limit SIZE": "1GB, 512MiB (default a quarter of the machine's)",
            "--against PATH": "impressions.json of an earlier run, or its folder: warn of shares "
            "(attributed, logged twice, unknown, ...) that moved beyond chance and by a quarter "
            "of their odds",
        },
        {
            "--list-cols COLUMN [...]": "columns that, with the user, name one list (default "
            "session_id); none for one list per user",
            "--rank-by-time": "there is no column of positions",
            "--relevance EVENT=GAIN ...": "gains by the deepest event (default shown=0 clicked=1 "
            "bought=3)",
        },
        untyped=SPANS,
        out=f"folder for {', '.join(IMPRESSION_FILES)} (the record of rules and counts)",
    ),
    Command(
        "leaderboard",
        "print models by metrics, with intervals and marks",
        "Print models by metrics: values with intervals, the best, and which differences hold.",
        "RESULTS [RESULTS ...]",
        _leaderboard,
        [leaderboard],
        ("leaderboard.parquet", "comparison.parquet"),
        RUNS
        | {
            "--segments FILE": "one row per user: id and columns of segments",
            "--cheap RESULTS": "folder of the same models on more lists under cheap labels",
        },
        {"--baseline NAME": "model that the others are compared with"} | BOUNDS_FLAG,
    ),
    Command(
        "diff",
        "say what changed from one version to another",
        "Say which lists gained and lost between two results, or which items entered, left and "
        "moved between two files of recommendations, without any truth.",
        "BEFORE AFTER",
        _diff,
        [diff],
        ("summary.parquet", "lists.parquet", "items.parquet"),
        {
            "BEFORE": "folder that recdf evaluate --out wrote, or recommendations",
            "AFTER": "folder that recdf evaluate --out wrote, or recommendations",
            "--pred FILE ...": "recommendations beside two results, before and after",
            "--before-model NAME": "recommender of BEFORE, if that holds several",
            "--after-model NAME": "recommender of AFTER, if that holds several",
        },
    ),
    Command(
        "interleave",
        "mix the lists of two recommenders into one list per user",
        "Mix the lists of two recommenders into one list per user, and write lists.parquet with "
        "the team of each item; clicks on these lists tell which recommender users prefer (recdf "
        "interleaved).",
        "--a FILE --b FILE --out FOLDER",
        _interleave,
        [interleave],
        ("lists.parquet",),
        {
            "--a FILE (required)": "items of one recommender",
            "--b FILE (required)": "items of the other",
        },
    ),
    Command(
        "interleaved",
        "compare two recommenders by the clicks on interleaved lists",
        "Compare the recommenders a and b by the clicks on lists that recdf interleave mixed; "
        "better means that users prefer b.",
        "LOG --clicks FILE",
        _interleaved,
        [compare_interleaved],
        ("interleaved.parquet",),
        {
            "LOG": "lists that were shown, with the team of each item",
            "--clicks FILE (required)": "one row per click: key of the list, item",
        },
    ),
    Command(
        "aa",
        "test whether the tests of an experiment hold on your own data",
        "Split the users of a result at random many times, and count how often a test finds a "
        "difference where there is none.",
        "RESULTS",
        _aa,
        [aa_test],
        ("aa.parquet",),
        ONE_RESULT,
        METRIC,
        ["metrics", "user_col"],
    ),
    Command(
        "srm",
        "find where a broken sample ratio comes from",
        "Find the levels of columns (browser, country, day) in which the users per variant do not "
        "fit the plan.",
        "--assignment FILE --column COLUMN ...",
        _srm,
        [find_srm],
        ("srm.parquet",),
        {"--assignment FILE (required)": "one row per assigned user: id, variant, more"},
        {
            "--column COLUMN ... (required)": "columns to look into",
            "--expected NAME=SHARE ...": "planned shares, such as A=0.9 B=0.1, or of each of "
            "--strata, as week1:A=0.9 (default: equal)",
        },
        ["columns"],
    ),
    Command(
        "quantiles",
        "compare quantiles of the variants of an experiment",
        "Compare quantiles of the variants of an experiment (latency, order value) on a file of "
        "users or of their requests, and metrics of which most users have none by their parts.",
        "--rows FILE --control NAME --metric NAME ...",
        _quantiles,
        [compare_quantiles],
        ("quantiles.parquet", "parts.parquet"),
        {"--rows FILE (required)": "one row per user or request: variant, metrics, more"},
        {
            "--metric NAME ...": "columns whose quantiles are compared",
            "--zero-inflated NAME ...": "columns to compare by the share of rows above 0, their "
            "mean, and the total",
            "--expected NAME=SHARE ...": "planned shares, such as A=0.9 B=0.1",
        },
        ["metrics"],
        with_control=True,
        explained_by=compare_variants,
    ),
    Command(
        "plan",
        "say how many users and days an experiment needs, or lists a comparison",
        "Say from a result of the past how many users and days an experiment needs; with "
        "--baseline, how many lists a comparison of models needs.",
        "RESULTS",
        _plan,
        [plan_experiment, plan_comparison],
        ("plan.parquet",),
        ONE_RESULT
        | {
            "--log FILE": "log whose new users by day an experiment would gain (needs --time-col)",
            "--time-col COLUMN": "times of the log",
        },
        METRIC
        | {
            "--guardrail METRIC=MARGIN ...": "what is to be shown not to be lost, such as "
            "revenue@10=-2%%",
            "--how RULE": "sum or mean: adds up the lists of a user, where a user has several "
            "(lists by session)",
            "--baseline NAME": "plan a comparison of models with this one",
        },
        ["metrics", "model_col", "user_col", "covariates", "arrivals"],
    ),
    Command(
        "history",
        "say when metrics or data changed, and which offline metric predicts",
        "Read all results below a folder: when a metric or the data of a nightly job changed, what "
        "was decided, and which offline metric predicted the results of experiments.",
        "RESULTS",
        _past,
        [History, History.changes, History.gaps, proxy_metrics],
        tuple(
            f"{name}.parquet"
            for name in ("changes", "drift", "gaps", "summary", "runs", "tests", "proxies")
        ),
        {
            "RESULTS": "folder of dated folders that recdf evaluate --out wrote (2026-11-20), or "
            "of folders of experiments",
            "--users FILE": "one row per user: id and columns of segments (with --by)",
        },
        {
            "--metric NAME ...": "columns such as ndcg@10 whose changes are looked for (default: "
            "all)",
            "--not-weekly": "expect the same level on all days of the week",
            "--offline NAME ...": "offline metrics of past experiments (default: all)",
            "--online NAME ...": "online metrics of past experiments (default: all)",
        },
        ["metrics", "cov", "experiment_col"],
    ),
    Command(
        "ope",
        "estimate what a policy that did not run would have earned",
        "Estimate from a log with propensities what other policies would have earned. The column "
        "trust says whether an estimate may be used, and flags say why not.",
        "LOG",
        _ope,
        [ope_estimate, target_from_recs],
        ESTIMATED,
        {
            "LOG": "one row per item that was shown, with its propensity",
            "--pred FILE": "recommendations to give a value to (default: --target-col of LOG)",
        },
        {
            "--baseline NAME": "target that others are compared with (default: all pairs)",
            "--match-position": "an item of --pred counts only at its --position-col of LOG",
        },
    ),
)
