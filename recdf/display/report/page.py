"""`report`: tables in, one HTML file out, that needs nothing but a browser."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..._version import __version__
from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...errors import DataError, OptionError, not_loaded
from ...evaluation.result import Evaluation
from ...evaluation.storage import local_path
from ...experiments.decide.decide_experiment import ExperimentPlan, decide_experiment
from ...experiments.decide.experiment_health import withheld_by
from ...judge.choices import Columns, Positive, checks_names
from ...judge.comparisons import segments_first, unit_of_rows, with_known_codes
from ...progress import Progress
from ...publishing import publish_text, refuse_files, refuse_two_runs
from ...tables.cells import amount, as_written, visible
from ..given_tables import (
    model_rows,
    need,
    need_gate,
    need_history,
)
from ..kinds import TABLE_KINDS, record_of
from ..leaderboard_values import read_result
from ..page_blocks import BAR_HEIGHT, BAR_WIDTH, CLOSE, FOR_WHOM_WORSE, OPEN, Section
from ..plot.effects import BY_PERIOD, PERIOD_COLUMNS
from . import about_experiment, about_models
from .about_models import GivenTable, Page, ReportTables, Sections, Subject
from .card import card_section, models_card

EXPERIMENT_SOURCE = (
    "what rd.compare_variants or a function of rd.experiments returned, or a mapping of names to "
    "such"
)
# Where the tables that have an argument of their own should come from.
SOURCES = {
    "health": "what rd.experiments.experiment_health returned",
    "check": "what rd.check returned",
    "off_policy": "what rd.ope.estimate returned",
    "over_time": BY_PERIOD,
}
MANY_SEGMENTS = 12  # a carried column of more values names no segments


@checks_names
def report(
    result: Evaluation | Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    baseline: Any = None,
    k: Positive = 10,
    comparison: DataFrame | None = None,
    experiment: DataFrame | Mapping[str, DataFrame] | None = None,
    health: DataFrame | None = None,
    check: DataFrame | None = None,
    gate: Gate | None = None,
    segments: DataFrame | None = None,
    off_policy: DataFrame | None = None,
    exposure: DataFrame | None = None,
    log: DataFrame | None = None,
    position: DataFrame | None = None,
    over_time: DataFrame | None = None,
    metrics: Columns | None = None,
    examples: bool | DataFrame = False,
    max_rows: Positive = 500,
    overwrite: bool = False,
    progress: bool | None = None,
    unit_col: Columns | None = None,
    roles: Mapping[str, Any] | ExperimentPlan | None = None,
    ran: Mapping[str, Any] | None = None,
    history: History | None = None,
    cheap: Evaluation | None = None,
    fold: Columns | None = None,
    seed_col: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Path:
    """Write one HTML file that says which model to take, by how much, for whom it is worse, and
    whether to believe it.

    The file opens from disk, makes no request, runs under a strict policy that it carries itself,
    and is readable without script, in light and dark, on a phone and in print. It holds aggregates
    only.

    Parameters
    ----------
    result : Evaluation or mapping, optional
        What `rd.evaluate` or `rd.read_parquet` returned, or model → its own result or folder. The
        first metric is the one that decides. Without it the page is about `experiment`, or else
        about `off_policy`.
    path : path, default "report.html"
        The file to write.
    title : str, optional
        Heading of the page.
    baseline : label, optional
        The model that the others are compared with. Default: the best model is compared with the
        second best.
    k : int, default 10
        Cut-off of the tables; for a metric that lacks it, the nearest one that it has. Curves show
        every k.
    comparison : DataFrame, optional
        What `rd.compare_models` returned, to be shown instead of paired t tests with Holm's
        correction.
    experiment : DataFrame or mapping, optional
        What `rd.compare_variants` returned; a mapping of names to tables shows several, such as
        with and without adjustment. Of the functions of `rd.experiments` it takes every table,
        known by its columns: other comparisons of variants (quantiles), `effect_over_time`,
        `segment_effects`, `decide_experiment`, `role_verdicts`, `aa_test`, `find_srm`,
        `plan_experiment`, `plan_comparison`, `compare_interleaved`.
    health : DataFrame, optional
        What `rd.experiments.experiment_health` returned.
    check : DataFrame, optional
        What `rd.check` or `rd.audit` returned; the levels of an audit stand beside its findings.
    gate : Gate, optional
        What `rd.gate` returned.
    segments : DataFrame, optional
        One row per user, with the list key and columns of segments: models are compared within
        each, all tests being one family; dates and amounts are cut into bands. Or a comparison
        within segments.
    off_policy : DataFrame, optional
        What `rd.ope.estimate` returned.
    exposure, log : DataFrame, optional
        What `rd.diagnostics.exposure_table` returned; past interactions, for the picture of the
        long tail.
    position, over_time : DataFrame, optional
        What `rd.diagnostics.position_table` returned; effects by period.
    metrics : str or list of str, optional
        Metrics of the page, such as "ndcg" or "ndcg@10"; the first one decides. Default: all of the
        result.
    examples : bool or DataFrame, default False
        True shows the examples of `check`, which hold ids of users. What `rd.diagnostics.hit_table`
        returned shows the lists of its first users side by side, hits marked: rows of users are
        then in the page.
    max_rows : int, default 500
        Rows of a table that are shown; the page says how many are left out.
    overwrite : bool, default False
        Replace a file that is already there.
    progress : bool, optional
        Show the progress on stderr, in plain lines. By default only on a
        terminal, and only after two seconds.
    unit_col : str or list of str, optional
        Columns that name who is independent of whom, for intervals and tests. Default: `user_id`,
        or else the first of the list key.
    roles : mapping, optional
        Roles of the metrics of `experiment` (its first table), or a plan, as
        `rd.experiments.decide_experiment` takes them: the page then says whether to ship, with the
        reasons, and what each guardrail shows.
    ran : mapping, optional
        What a plan says and the table does not, as `decide_experiment` takes it: {"looks": 1}.
    history : History, optional
        Earlier results of the job: when its metrics and its data changed. It may have a page of its
        own.
    cheap : Evaluation, optional
        The same models on more lists under cheap labels, where people judged those of `result`, a
        random sample of them. Verdict, tables and curves then use both, and say how far the cheap
        labels are off. Pictures of lists, and the counts of who gains and who loses, are those of
        people.
    fold, seed_col : str, optional
        Columns of folds and of repeated trainings of a model, as in `rd.leaderboard`: a model has
        one row, and the spread over seeds stands beside the interval over users.
    bounds : mapping, optional
        Metric of one's own → its smallest and largest value, as in `rd.compare_models`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    FileExistsError, IsADirectoryError
        If the file is there and `overwrite` is False, or if the path is that of a folder.
    ColumnError, OptionError
        If a table is not what its function returns, or a model or option is unknown.
    MissingExtraError
        If Jinja2 or matplotlib is not installed (`recdf[report]`), or SciPy for the tests
        (`recdf[stats]`).

    Notes
    -----
    The verdict has six lines, each by a rule: which (the first metric decides; the model with the
    best mean is set against the baseline, and is "better" only where the comparison says so after
    the correction for all its tests), by how much, how sure, for whom worse, what could
    overturn it, and what to do. A fault of the data that would change the verdict stands in the
    badge: "better, but not robust: ties". With one model and an experiment, the first row of the
    experiment decides. The same tables give the same bytes.

    Examples
    --------
    >>> import tempfile, recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], k=[5, 10], by="model")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = rd.report(result, f"{folder}/report.html", baseline="popularity")
    ...     "knn</bdi> is better than" in path.read_text(encoding="utf-8").replace("</b>", "")
    True
    """
    local_path(path)
    target = Path(path).expanduser()
    if os.path.isdir(target):  # False where that cannot be known
        raise IsADirectoryError(
            f"{target} is a folder; expected the path of a file, such as {target / 'report.html'}"
        )
    refuse_files([target], overwrite)
    _template()  # is Jinja2 there?
    with Progress(2, "report", progress) as shown:
        subject = None
        if isinstance(experiment, Mapping) and not experiment:
            experiment = None
        alone = (experiment, off_policy, history, gate, check, health, over_time)
        if result is not None or all(one is None for one in alone):
            result = read_result(result, fold, seed_col, bounds)
            subject = Subject(result, baseline, k, comparison, unit_col, metrics, cheap)
            segments = carried_segments(subject.result) if segments is None else segments
        shown.add()
        given = health, check, segments, off_policy, exposure, log, position, over_time, gate
        tables = read_report_tables(experiment, ReportTables({}, *given, roles, ran, history))
        if not subject:
            of_models = {
                "baseline": baseline,
                "comparison": comparison,
                "metrics": metrics,
                "exposure": exposure,
                "unit_col": unit_col,
                "cheap": cheap,
                "fold": fold,
                "seed_col": seed_col,
                "bounds": bounds,
                "segments": None if record_of(segments).part else segments,
            }
            for name, found in of_models.items():
                if found is not None:
                    raise OptionError(
                        f"{name}= is about the models of a result, and the page has none; leave it "
                        "out"
                    )
        page = Page(subject, tables, max_rows, examples)
        sections = _report_sections(page)
        heading, about = _heading(page, sections)
        publish_text(target, _page_text(title or heading, about, sections, examples is not False))
    return target


# Sections of a page in the order of reading: those about the models of a result, those of the
# tables beside it, by the name of the table, and those at the end of a page about models.
OF_MODELS = (
    about_models.leaderboard_section,
    about_models.curves_section,
    about_models.comparison_section,
    about_models.drawn_sections,
    about_models.segments_section,
)
OF_TABLES: dict[str, Callable[[Page, Any], Sections]] = {
    "experiment": about_experiment.experiment_section,
    "over_time": about_experiment.over_time_section,
    "position": about_experiment.position_section,
    "beside": about_experiment.beside_sections,
    "gate": about_experiment.gate_section,
    "off_policy": about_experiment.off_policy_section,
    "history": about_experiment.history_section,
    "check": about_experiment.check_section,
}
AT_THE_END = (
    about_models.examples_section,
    about_models.definitions_section,
    about_models.reproducibility_section,
)


def _report_sections(page: Page) -> list[Section]:
    """Return the sections whose tables are there, behind the verdict, which is made last, because
    it quotes them. A page without a result is about the experiment, or the off-policy estimates:
    validity comes first."""
    subject = page.subject
    tables = page.tables
    sections = list[Section]()
    # Each makes its sections when it is read.
    makers = [
        make(page, table)
        for name, make in OF_TABLES.items()
        if (table := getattr(tables, name)) is not None
    ]
    if not subject:
        makers.insert(1, about_models.segments_section(None, page))
    else:
        before, after = (
            [make(subject, page) for make in makes] for makes in (OF_MODELS, AT_THE_END)
        )
        makers = [*before, *makers, *after]
    with Progress(len(makers), "the sections") as progress:
        for made in makers:
            sections += made
            progress.add()
    if not subject:
        return [*about_experiment.alone_sections(page, sections), *sections]
    said = [reason for one in sections for reason in one.said]
    card = None
    if len(subject.models) == 1:  # nothing is compared: an experiment has the first word
        segments = [one for one in said if one.line == FOR_WHOM_WORSE]
        case = about_experiment.experiment_case(page, segments)
        card = case and card_section(case)
    return [card or models_card(subject, tables.check, said), *sections]


def _heading(page: Page, sections: Sequence[Section]) -> tuple[str, str]:
    """Return the heading of a page and the line below it: how many models and lists it is about,
    and which lists; without a result, what its sections are about."""
    if subject := page.subject:
        lists = max(map(len, model_rows(subject.result).values()), default=0)
        options = subject.result.spec.get("options", {})
        known = {
            "true": "lists of true",
            "pred": "lists of pred",
            "both": "lists in true and pred",
            "all": "all lists",
        }
        who = known.get(str(options.get("users", "true")), "lists that were given")
        said = (
            f"{amount(len(subject.models), 'model')} · {amount(lists, 'list')} · population: {who}"
        )
        if options.get("like"):
            said += f" · as {options['like']} computes them"
        return "Evaluation of recommendations", said
    for table in page.tables.experiment.values():
        arms = [table.set_index(side)[f"n_{side}"] for side in ("control", "treatment")]
        users = pd.concat(arms).groupby(level=0).max()
        about = (
            f"{amount(len(users), 'variant')} · {amount(int(users.sum()), unit_of_rows(table))} · "
            f"{amount(table['metric'].nunique(), 'metric')}"
        )
        return "A/B test of recommendations", about
    titles = [one.title for one in sections if one.id not in ("validity", "verdict")]
    return "Recommendations" + f": {titles[0]}" * (len(titles) == 1), ""


# -- the page


def _page_text(title: str, about: str, sections: Sequence[Section], examples: bool) -> str:
    """Return the page. Its policy names the digests of its own style and script, so that nothing
    else runs."""
    css = _file("report.css")
    js = _file("report.js") + _file("pictures.js")
    style, script = map(_policy_digest, (css, js))
    return _template().render(
        title=title,
        about=about,
        sections=sections,
        examples=examples,
        policy=f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; "
        "form-action 'none'",
        css=css,
        js=js,
        version=__version__,
        bar_width=BAR_WIDTH,
        bar_height=BAR_HEIGHT,
    )


@functools.cache
def _template() -> Any:
    """Return the template of the page. It is compiled once in a process."""
    try:
        import jinja2
    except ImportError as error:
        raise not_loaded("rd.report", "Jinja2", "recdf[report]", error) from error
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_inert,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["amount"] = amount
    environment.filters["pieces"] = lambda text: re.split(f"[{OPEN}{CLOSE}]", text)
    return environment.from_string(_file("report.html"))


def _inert(found: Any) -> Any:
    """Return a text of the page with its hidden characters as numbers, but for line breaks and the
    mark of direction that pictures write. Markup is the page's own."""
    if not isinstance(found, str) or hasattr(found, "__html__"):
        return found
    return re.sub("[^\n\u200e]+", lambda part: visible(part[0]), found)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _policy_digest(text: str) -> str:
    """Return the source expression of a policy that allows one inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# -- the tables beside the result


def carried_segments(result: Evaluation) -> GivenTable:
    """Return the columns of few values that a result carries as segments of its users, if no two
    models have other values."""
    table = result.per_user
    spec = result.spec
    names = [
        name
        for name in spec.get("carry", {})
        if name in table and 0 < table[name].nunique() <= MANY_SEGMENTS
    ]
    keys = spec["user_col"]
    found = table[[*keys, *names]].drop_duplicates()
    return found if names and not found.duplicated(keys).any() else None


def read_report_tables(experiment: Any, given: ReportTables) -> ReportTables:
    """Check the tables beside the result: each must be what its function returns. Those of an
    experiment are told by their columns: effects, those with an argument of their own, and others
    beside the effects."""
    experiment = {} if experiment is None else experiment
    by_name = experiment if isinstance(experiment, Mapping) else {"": experiment}
    parts: dict[str, Any] = {"experiment": {}, "beside": {}}
    for name, table in by_name.items():
        role = f"experiment[{name!r}]" if name else "experiment"
        part = record_of(table).part
        if part in ("experiment", "beside"):
            read = with_known_codes(table, role) if part == "experiment" else segments_first(table)
            parts[part][str(name)] = read
        elif not part:
            need(table, role, TABLE_KINDS["experiment"].columns, EXPERIMENT_SOURCE)
        elif part in parts or getattr(given, part) is not None:
            raise OptionError(
                f"{role} is a second table for the part {part!r} of the page; pass one of them, or "
                "make a page for each experiment"
            )
        else:
            parts[part] = segments_first(table)
    for name, source in SOURCES.items():
        if (table := parts.get(name, getattr(given, name))) is not None:
            columns = PERIOD_COLUMNS if name == "over_time" else TABLE_KINDS[name].columns
            parts[name] = as_written(need(table, name, columns, source))
    given = given._replace(**parts)
    if isinstance(experiment, DataFrame) and given.health is not None:
        # Of several tables, some may be of another run over the same users.
        refuse_two_runs({"experiment": experiment, "health": given.health})
    if given.gate is not None:
        need_gate(given.gate)
    if given.history is not None:
        need_history(given.history)
    alone = {name: parts[name] for name in SOURCES if name in parts and name != "check"}
    for name, table in (alone | parts["experiment"] | parts["beside"]).items():
        if table.empty:
            raise DataError(
                f"{name or 'experiment'} has no rows; leave it out, or pass the table that was "
                "meant"
            )
    if given.log is not None and given.exposure is None:
        raise OptionError(
            "⟦log=⟧ is for the picture of the long tail, which needs ⟦exposure=⟧ (from "
            "rd.diagnostics.exposure_table)"
        )
    # What was compared without the health that stands beside it is withheld all the same.
    code = "sample_ratio" * (given.health is not None and any(given.health["srm_flag"]))
    of_effects = ("experiment", "beside", "segments", "over_time", "decision")
    given = given._replace(**{name: withheld_by(code, getattr(given, name)) for name in of_effects})
    if given.roles is None:
        return given
    if not given.experiment:
        raise OptionError("⟦roles=⟧ is about the metrics of an experiment; pass ⟦+experiment=⟧ too")
    table = next(iter(given.experiment.values()))
    decision = decide_experiment(table, roles=given.roles, ran=given.ran)
    return given._replace(decision=withheld_by(code, decision))
