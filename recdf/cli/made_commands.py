"""Commands about logs, experiments and the past: each calls its functions once."""

from __future__ import annotations

import ast
from argparse import Namespace
from contextlib import ExitStack, suppress
from itertools import product
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat

from ..diagnostics import History, diff, past_runs, past_tests
from ..display.leaderboard import leaderboard
from ..errors import OptionError
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import local_path
from ..experiments import (
    aa_test,
    arrivals_by_day,
    compare_interleaved,
    compare_quantiles,
    compare_zero_inflated,
    find_srm,
    interleave,
    plan_comparison,
    plan_experiment,
    proxy_metrics,
    roll_up,
)
from ..experiments.samples import subset
from ..formats.file_sets import FileSet, is_remote, read_files
from ..inputs.frames import column
from ..inputs.options import as_columns
from ..judge.verdict import is_withheld
from ..logs import from_impressions
from ..logs.impression_tables import SPANS
from ..off_policy.beside_estimates import ope_compare, ope_diagnostics
from ..off_policy.estimate_value import FLAGS, ope_estimate
from ..off_policy.log_additions import target_from_recs
from ..partitions.dealt_users import IMPRESSION_FILES, impressions_parquet
from ..publishing import PER_USER, is_there, made, staging_folder
from ..tables.cells import amount, doing
from .arguments import BOUNDS_FLAG, Given, as_bounds, as_pairs, flag, given_files, taken_by
from .commands import ESTIMATED, Command, Reply, Tables, brief_text, plain_signs, texts_and
from .deciding import compact, expected_arguments, metric_arguments, read_lists, sides_of_folders
from .stored_runs import (
    ONE_RESULT,
    RUNS,
    frames_of_call,
    given_for_models,
    given_margins,
    label,
    read_results,
    with_times,
)

# -- before and after an experiment


def _interleave(given: Namespace, options: Given) -> Reply:
    lists = interleave(**frames_of_call(given, interleave, options, "a", "b"), **options)
    n = lists.groupby(as_columns(options.get("user_col", "user_id")), observed=True).ngroups
    of_team = [f"{(lists['team'] == team).sum():,} of " for team in ("a", "b", "")]
    said = "{}team a, {}team b, {}no team".format(*of_team)
    return Reply(f"{amount(n, 'list')} with {amount(len(lists), 'item')}: {said}", {"lists": lists})


def _interleaved(given: Namespace, options: Given) -> Reply:
    frames = frames_of_call(given, compare_interleaved, options, "log", "clicks", labels=["team"])
    table = compare_interleaved(**frames, **options)
    row = table.iloc[0]
    lines = [
        f"{amount(row['n_users'], 'user')}, {amount(row['n_clicks'], 'click')}, of which "
        f"{row['n_clicks_no_team']:,} on items of no team and {row['n_clicks_elsewhere']:,} "
        "elsewhere",
        "",
        compact(table),
    ]
    if not is_withheld(row.to_dict()):
        said = f"{doing(row['wins'], 'prefer', 'user')} b, {doing(row['losses'], 'prefer')} a "
        tested = row["wins"] + row["losses"]
        p = f"sign test p = {row['p_sign']:.3g}" if tested else "no test possible"
        lines.append(f"{said}({p})")
    return Reply("\n".join(lines), {"interleaved": table})


def _users_and_metrics(given: Namespace) -> tuple[Evaluation, DataFrame, dict[str, Any]]:
    """Return a result, its users, and the columns of the metrics that are asked for."""
    result = read_parquet(given.results)
    users = result.per_user
    return result, users, metric_arguments(given, users.columns, result)


def _aa(given: Namespace, options: Given) -> Reply:
    result, users, specs = _users_and_metrics(given)
    table = aa_test(users, specs, user_col=result.spec["user_col"], **options)
    names = texts_and(table, "cap", "rejected", "rejected_low", "rejected_high")
    return Reply(brief_text(table, names), {"aa": table})


def _srm(given: Namespace, options: Given) -> Reply:
    asked = {**options, "columns": given.column}
    rows = frames_of_call(given, find_srm, asked, "assignment")["assignment"]
    table = find_srm(rows, expected=expected_arguments(given, options, rows), **asked)
    names = texts_and(table, "n_users", "n_variant", "n_expected", "p_adj", "p_without")
    said = f"all users: p = {table['p_all'].iloc[0]:.3g}\n\n"
    return Reply(said + brief_text(table, names), {"srm": table})


def _quantiles(given: Namespace, options: Given) -> Reply:
    if not (given.metric or given.zero_inflated):
        raise OptionError("--metric and --zero-inflated are missing; name the columns to compare")
    rows = frames_of_call(given, compare_quantiles, options, "rows")["rows"]
    variants = column(rows, options.get("variant_col", "variant"), "rows")
    options["expected"] = expected_arguments(given, options, rows)
    options["control"] = label("control", given.control, variants)
    both = given.metric or [], given.zero_inflated or []
    named = {
        name: subset(name, options[name], [*both[0], *both[1]])
        for name in ("smaller_is_better", "larger_is_better", "primary")
        if name in options
    }
    # What names metrics of both tables names those of each.
    of_quantiles, of_parts = (
        options | {of: [one for one in names if one in own] for of, names in named.items()}
        for own in both
    )
    tables = {}
    if given.metric:
        tables["quantiles"] = compare_quantiles(rows, given.metric, **of_quantiles)
    if given.zero_inflated:
        of_parts.pop("quantiles", None)
        tables["parts"] = compare_zero_inflated(rows, given.zero_inflated, **of_parts)
    return Reply("\n\n".join(map(compact, tables.values())), tables)


def _plan(given: Namespace, options: Given) -> Reply:
    result, users, specs = _users_and_metrics(given)
    keys = result.spec["user_col"]
    options["bounds"] = as_bounds(given.bounds)
    if given.baseline is not None:
        if len(result.spec["by"]) != 1:
            raise OptionError(
                "--baseline plans a comparison of models; the result has no column of models (--by)"
            )
        (by,) = result.spec["by"]
        table = plan_comparison(
            users,
            list(specs),
            baseline=label("baseline", given.baseline, users[by]),
            model_col=by,
            user_col=keys,
            **taken_by(plan_comparison, options),
        )
    else:
        if result.spec["by"]:
            raise OptionError(
                f"{given.results} has several models, and a plan of an experiment is of one; pass "
                "a result of one model, or --baseline for a comparison of models"
            )
        if given.how is not None:
            keys = keys[:1]
            used = [name for spec in specs.values() for name in as_columns(spec)]
            users = roll_up(users, keys, dict.fromkeys(used, given.how))
        elif "cluster" not in options and users.duplicated(keys[:1]).any():
            raise OptionError(
                f"{given.results} has several rows of a {keys[0]}, and a plan counts users; --how "
                "sum adds them up"
            )
        coming = None
        if given.log is not None:
            if given.time_col is None:
                raise OptionError("--log needs --time-col, the column of its times")
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


def _leaderboard(given: Namespace, options: Given) -> Reply:
    result = read_results(given.results)
    found = leaderboard(result, **given_for_models(given, result), **options)
    tables = {"leaderboard": found.frame, "comparison": found.comparisons}
    return Reply(plain_signs(str(found)), tables, {"leaderboard": found.frame})


def _diff(given: Namespace, options: Given) -> Reply:
    flags = {"before": "before_model", "after": "after_model"}
    paths = [getattr(given, role) for role in flags]
    others = [
        path for path in paths if is_remote(path) or not is_there(local_path(path) / PER_USER)
    ]
    if len(others) == 1:
        FileSet.of(others[0])  # raises where nothing has this name
        raise OptionError(
            f"{others[0]} is no result, and the other side is one; name two results, or two files "
            "of recommendations"
        )
    if not others:
        before, after = sides = sides_of_folders(given, flags, map(Path, paths))
        if given.pred is None and given.project:  # it names the columns of all its jobs
            for name in ("item_col", "rank_col", "score_col"):
                options.pop(name, None)
        found = diff(
            before, after, **read_lists(given, sides, {}, flags, options.get("item_col")), **options
        )
    elif given.before_model or given.after_model:
        raise OptionError(
            "--before-model and --after-model choose from results, and these are no results"
        )
    else:
        columns = {"user_col": "user_id", "item_col": "item_id"} | options
        found = diff(**frames_of_call(given, diff, columns, *flags), pred=given.pred, **options)
    tables = {"summary": found.summary, "lists": found.per_list, "items": found.items}
    there = {name: one for name, one in tables.items() if one is not None}
    unlike = [("warning", f"not comparable: {one}") for one in found.unlike]
    return Reply(repr(found), there, {"summary": found.summary}, failings=unlike)


def _ope(given: Namespace, options: Given) -> Reply:
    on = options.get("on") or ["user_id", "item_id"]
    by = as_columns(options.get("by"))
    keys = [*on, *as_columns(options.get("cluster", "user_id"))]
    keys += as_columns(options.get("slate_col"))
    frames = read_files(given_files(given, "log", "pred"), list(dict.fromkeys(keys)), by)
    log = frames["log"]
    if given.pred is not None:  # the target policy
        log = target_from_recs(
            **frames,
            on=on,
            position_col=options.get("position_col", "position") if given.match_position else None,
            k=options.get("k"),
            by=[name for name in by if name in frames["pred"].columns] or None,
        )
    asked = {name: value for name, value in options.items() if name not in ("on", "k")}
    tables = {"ope": ope_estimate(log, **asked)}
    # Of slates, each estimator may name another interaction.
    alike = "slate_col" not in options or "interaction" in options
    if alike:
        tables["ope_diagnostics"] = ope_diagnostics(log, **taken_by(ope_diagnostics, asked))
    numbers = ["value", "ci_low", "ci_high", "logging_value", "lift", "ess_reward"]
    names = [*by, "estimator", "clip", *numbers, "trust", "flags"]
    lines = [brief_text(tables["ope"], names), ""]
    named = given.baseline is not None
    if named and len(by) != 1:
        raise OptionError("--baseline: name the column of the targets in --by, and no other")
    of_pred = given.pred is not None and len(by) == 1 and by[0] in frames["pred"]
    if named or (of_pred and len(keys) > len(on) and log[by[0]].nunique() > 1):
        one = taken_by(ope_compare, asked) | {"by": by[0]}
        one["baseline"] = label("baseline", given.baseline, log[by[0]])
        estimators = tables["ope"]["estimator"].unique()
        calls = [one] if alike else [one | {"estimators": name} for name in estimators]
        compared = [ope_compare(log, **call) for call in calls]
        tables["ope_comparison"] = concat(compared, ignore_index=True)
        numbers = ["diff", "ci_low", "ci_high", "n_clusters"]
        names = ["baseline", *by, "estimator", "clip", *numbers, "trust", "flags"]
        lines += [brief_text(tables["ope_comparison"], names), ""]
    found = set(tables["ope"]["flags"].str.split(", ").explode())
    meant = [f"{name}: {text}" for name, (_, text) in FLAGS.items() if name in found]
    meant = meant or ["no flags: the intervals hold what they say if the propensities are right"]
    return Reply("\n".join([*lines, *meant]), tables)


# -- logs of impressions


def _impressions(given: Namespace, options: Given) -> Reply:
    if given.out is None:
        raise OptionError("--out is missing; name the folder to write")
    for name in options.keys() & {*SPANS}:  # text with a unit, or a number where times are numbers
        with suppress(ValueError, SyntaxError):
            options[name] = ast.literal_eval(options[name])
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
            # Text files, and those beside them, become parquet files with ids alike.
            stack.enter_context(made(given.out))
            folder = stack.enter_context(staging_folder(given.out))
            keys = ["user_col", "item_col", "order_col", "person_col"]
            ids = [options[name] for name in keys if name in options]
            frames = read_files(paths, [*ids, *options.get("list_cols", ["session_id"])], [])
            for role, frame in frames.items():
                paths[role] = str(folder / f"{role}.parquet")
                with_times(frame, options.get("time_col")).to_parquet(paths[role], index=False)
        rest = {name: getattr(given, name) for name in ("overwrite", "memory_limit", "against")}
        named = {f"{role}_path": path for role, path in paths.items()}
        spec = impressions_parquet(**named, out=given.out, **rest, **options)
    # One row per count: of the log, of its clicks, of its purchases.
    parts = {"log": {}} | {of: one for of, one in spec["counts"].items() if isinstance(one, dict)}
    parts["log"] = {name: n for name, n in spec["counts"].items() if name not in parts}
    rows = [(of, *pair) for of, found in parts.items() for pair in found.items()]
    counts = DataFrame(rows, columns=["of", "count", "n"])
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


# -- the past of a job, and of experiments


def _past(given: Namespace, options: Given) -> Reply:
    tests = past_tests(given.results)
    said = []
    tables = {"runs": past_runs(given.results)}
    if not len(tests) or given.metric or "since" in options:  # the results of a job
        asked = taken_by(History, options)
        if given.users is not None:
            asked |= read_files({"users": given.users}, ["user_id"], [])
        history = History(given.results, **asked)
        how = taken_by(History.changes, options)
        changes = history.changes(given.metric, **how)
        drift = history.drift(**how)
        gaps = history.gaps(**taken_by(History.gaps, options))
        said = [history.headline]
        numbers = ("level", "could_see", "changed", "before", "after")
        for table in (changes, drift):
            names = [*table.columns[: table.columns.get_loc("n_runs")], *numbers, "verdict"]
            said.append(brief_text(table.drop(columns="remarks"), names))
        if changes["could_see"].notna().any():
            said.append("could_see: a change of this size is found within a week in 8 of 10 cases")
        if len(gaps):
            said.append(brief_text(gaps, ["job", "what", "last", "verdict"]))
        tables |= {"changes": changes, "drift": drift, "gaps": gaps}
        tables["summary"] = history.summary.drop(columns="path")
    if len(tests):
        tables |= {"tests": tests, **_proxies(options, tests)}
        said.append(brief_text(tests, tests.columns))
        if "proxies" in tables:
            shown = (
                "n_tests",
                "slope",
                "slope_low",
                "slope_high",
                "naive_slope",
                "called_right",
                "verdict",
            )
            said.append(brief_text(tables["proxies"], ["online", "offline", *shown]))
    first: Tables = {name: tables[name] for name in ("changes", "tests") if name in tables}
    return Reply("\n\n".join(said), tables, {**first, **tables})


def _proxies(options: Given, tests: DataFrame) -> Tables:
    """Relate each offline metric of past experiments to each online one, if three experiments
    measured both."""
    online, offline = (
        [str(name) for name in tests.filter(regex=f"^{kind}_") if f"{name}_se" in tests]
        for kind in ("online", "offline")
    )
    pairs = [
        (pair, whole)
        for pair in product(online, offline)
        if len(whole := tests.dropna(subset=[*pair, *(f"{name}_se" for name in pair)])) >= 3
    ]
    how = taken_by(proxy_metrics, options)
    confidence = how.get("confidence", 0.95)
    how["experiment_col"] = "experiment"
    how["confidence"] = 1 - (1 - confidence) / max(len(pairs), 1)  # as of one call
    found = []
    for pair, whole in pairs:
        for name in how.keys() & {"smaller_is_better", "larger_is_better"}:
            how[name] = [one for one in pair if one.partition("_")[2] in options[name]]
        one = proxy_metrics(whole, online=pair[0], offline=pair[1], **how)
        found.append(one.assign(confidence=confidence))
    return {"proxies": concat(found, ignore_index=True)} if found else {}


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
            "--guardrail METRIC=MARGIN ...": "a metric that must not fall by more than a margin, "
            "such as revenue@10=-2%%",
            "--how RULE": "sum or mean: adds up the lists of a user, where a user has several "
            "(lists by session)",
            "--baseline NAME": "plan a comparison of models with this one",
        }
        | BOUNDS_FLAG,
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
        },
        ["metrics", "offline", "online", "cov", "experiment_col"],
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
