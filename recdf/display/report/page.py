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

from ..._version import __version__
from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...errors import not_loaded
from ...evaluation.result import Evaluation
from ...evaluation.storage import local_path
from ...experiments.plan.experiment_plan import ExperimentPlan
from ...progress import Progress
from ...publishing import publish_text, refuse_files
from ...tables.cells import amount, visible
from ..given_tables import as_result, with_bounds
from ..leaderboard_values import over_repeats
from ..pairs import model_rows
from .about_data import definitions_section, examples_section, reproducibility_section
from .about_experiment import alone_card, experiment_card, experiment_section, validity_section
from .about_models import (
    Pen,
    comparison_section,
    curves_section,
    exposure_section,
    given_segments,
    leaderboard_section,
    segments_section,
    tradeoff_section,
    users_section,
)
from .beside import (
    MadeSection,
    check_section,
    estimate_section,
    gate_section,
    history_section,
    off_policy_section,
)
from .card import models_card
from .page_blocks import BAR_HEIGHT, BAR_WIDTH, CLOSE, OPEN, Reason, Section
from .report_inputs import (
    ReportTables,
    Subject,
    carried_segments,
    check_alone,
    read_report_tables,
    read_subject,
)
from .svg import swatch

__all__ = ["report"]


def report(
    result: Evaluation | Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    title: str | None = None,
    baseline: Any = None,
    k: int = 10,
    comparison: pd.DataFrame | None = None,
    experiment: pd.DataFrame | Mapping[str, pd.DataFrame] | None = None,
    health: pd.DataFrame | None = None,
    check: pd.DataFrame | None = None,
    gate: Gate | None = None,
    segments: pd.DataFrame | None = None,
    off_policy: pd.DataFrame | None = None,
    exposure: pd.DataFrame | None = None,
    log: pd.DataFrame | None = None,
    position: pd.DataFrame | None = None,
    over_time: pd.DataFrame | None = None,
    metrics: str | Sequence[str] | None = None,
    examples: bool | pd.DataFrame = False,
    max_rows: int = 500,
    overwrite: bool = False,
    progress: bool | None = None,
    unit_col: str | Sequence[str] | None = None,
    roles: Mapping[str, Any] | ExperimentPlan | None = None,
    ran: Mapping[str, Any] | None = None,
    history: History | None = None,
    cheap: Evaluation | None = None,
    fold: str | Sequence[str] | None = None,
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
    _jinja()
    with Progress(2, "report", progress) as shown:
        subject = None
        beside = (experiment, off_policy, history, gate, check, health, over_time)
        if result is not None or all(one is None for one in beside):
            result = with_bounds(over_repeats(as_result(result), fold, seed_col), bounds)
            subject = read_subject(
                result, baseline, k, comparison, max_rows, unit_col, metrics, cheap
            )
            segments = carried_segments(subject.result) if segments is None else segments
        shown.add()
        given = ReportTables(
            {},
            health,
            check,
            segments,
            off_policy,
            exposure,
            log,
            position,
            over_time,
            gate,
            roles,
            ran,
            history=history,
        )
        tables = read_report_tables(experiment, given)
        if subject is None:
            check_alone(
                tables,
                {
                    "baseline": baseline,
                    "comparison": comparison,
                    "metrics": metrics,
                    "exposure": exposure,
                    "unit_col": unit_col,
                    "cheap": cheap,
                    "fold": fold,
                    "seed_col": seed_col,
                    "bounds": bounds,
                },
            )
        sections = _report_sections(subject, tables, max_rows, examples)
        heading = "Evaluation of recommendations"
        heading = heading if subject is not None else _heading(tables, sections)
        about = _about(subject) if subject is not None else _about_users(tables)
        publish_text(target, _page(title or heading, about, sections, examples is not False))
    return target


def _report_sections(
    subject: Subject | None, tables: ReportTables, most: int, examples: Any
) -> list[Section]:
    """Return the sections whose tables are there, in the order of reading.

    The verdict is made last, because it quotes the others. A page without a result is about the
    experiment, or the off-policy estimates: validity comes first.
    """
    pen = Pen(subject)
    about: list[Callable[[], Section | MadeSection | None]] = [
        lambda: experiment_section(tables, most, pen, subject is None),
        *(
            functools.partial(estimate_section, f"beside-{i}", name, table, most, pen)
            for i, (name, table) in enumerate(tables.beside.items())
        ),
        lambda: gate_section(tables, most, pen),
        lambda: off_policy_section(tables, most),
        lambda: history_section(tables, most, pen),
        lambda: check_section(tables, most, examples is True),
        lambda: examples_section(subject, examples),
    ]
    if subject is None:
        makers = [about[0], lambda: given_segments(tables, most, pen), *about[1:]]
    else:
        makers = [
            lambda: leaderboard_section(subject, bool(tables.experiment)),
            lambda: curves_section(subject, pen),
            lambda: comparison_section(subject),
            lambda: tradeoff_section(subject, pen),
            lambda: users_section(subject, pen),
            lambda: exposure_section(subject, tables, pen),
            lambda: segments_section(subject, tables, pen),
            *about,
            lambda: definitions_section(subject),
            lambda: reproducibility_section(subject.result),
        ]
    sections: list[Section] = []
    said: dict[str, list[Reason]] = {}
    with Progress(len(makers), "the sections") as progress:
        for make in makers:
            made = make()
            section, sentences = made if isinstance(made, tuple) else (made, [])
            sections += [] if section is None else [section]
            said |= {section.id: sentences} if section is not None and sentences else {}
            progress.add()
    if subject is None:
        valid = validity_section(tables)
        return [*([] if valid is None else [valid]), alone_card(tables, sections, said), *sections]
    # With one model nothing else is compared, so that an experiment has the first word.
    own = experiment_card(tables) if len(subject.models) == 1 else None
    if own is not None:
        return [own, *sections]
    return [models_card(subject, tables.check, said), *sections]


def _heading(tables: ReportTables, sections: Sequence[Section]) -> str:
    """Return the heading of a page without a result: that of its one section, if there is one."""
    if tables.experiment:
        return "A/B test of recommendations"
    shown = [one for one in sections if one.id not in ("validity", "verdict")]
    if shown[0].id in ("gate", "off-policy", "history", "data-health"):
        return f"{shown[0].title} of recommendations"
    about = f": {shown[0].title[:1].lower()}{shown[0].title[1:]}" if len(shown) == 1 else ""
    return f"Experiment on recommendations{about.replace('a/A', 'A/A')}"


def _about_users(tables: ReportTables) -> str:
    """Return the line below the heading of a page without a result."""
    for table in tables.experiment.values():
        sides = [
            table[[side, f"n_{side}"]].set_axis(["variant", "n"], axis=1)
            for side in ("control", "treatment")
        ]
        metrics, arms = table["metric"].nunique(), pd.concat(sides).groupby("variant")["n"].max()
        users = int(arms.sum())
        shown = amount(len(arms), "variant"), amount(users, "user"), amount(metrics, "metric")
        return " · ".join(shown)
    if tables.history is not None and tables.off_policy is None and not tables.beside:
        return tables.history.headline
    counts = {
        "estimate": sum(map(len, tables.beside.values())),
        "off-policy estimate": 0 if tables.off_policy is None else len(tables.off_policy),
        "budget": 0 if tables.gate is None else len(tables.gate.table),
        "finding": 0 if tables.check is None else len(tables.check),
        "treatment": 0 if tables.decision is None else len(tables.decision),
        "period": 0 if tables.over_time is None else len(tables.over_time),
        "comparison": 0 if tables.segments is None else len(tables.segments),
    }
    return " · ".join(amount(n, noun) for noun, n in counts.items() if n)


def _about(subject: Subject) -> str:
    """Return the line below the heading."""
    n = len(subject.models)
    lists = max(map(len, model_rows(subject.result).values()), default=0)
    options = subject.result.spec.get("options", {})
    known = {
        "true": "lists of true",
        "pred": "lists of pred",
        "both": "lists in true and pred",
        "all": "all lists",
    }
    who = known.get(str(options.get("users", "true")), "lists that were given")
    like = f" · as {options['like']} computes them" if options.get("like") else ""
    if subject.people is not subject.result:
        judged = max(map(len, model_rows(subject.people).values()), default=0)
        like += f" · labels of people on {judged:,} of them, cheap labels on all"
    return f"{amount(n, 'model')} · {amount(lists, 'list')} · population: {who}{like}"


# -- the page


def _jinja() -> Any:
    """Return jinja2, or say which extra brings it."""
    try:
        import jinja2
    except ImportError as error:
        raise not_loaded("rd.report", "Jinja2", "recdf[report]", error) from error
    return jinja2


def _page(title: str, about: str, sections: Sequence[Section], examples: bool) -> str:
    """Return the page. Its policy names the digests of its own style and script, so that nothing
    else runs."""
    files = {
        "report.css": _file("report.css"),
        "report.js": _file("report.js") + _file("pictures.js"),
    }
    style, script = _policy_digest(files["report.css"]), _policy_digest(files["report.js"])
    policy = (
        f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action "
        "'none'"
    )
    return str(
        _template().render(
            title=visible(title),
            about=about,
            sections=sections,
            examples=examples,
            policy=policy,
            css=files["report.css"],
            js=files["report.js"],
            version=__version__,
            swatch=swatch,
            bar_width=BAR_WIDTH,
            bar_height=BAR_HEIGHT,
        )
    )


@functools.cache
def _template() -> Any:
    """Return the template of the page. It is compiled once in a process."""
    jinja2 = _jinja()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["amount"] = amount
    environment.filters["pieces"] = lambda text: re.split(f"[{OPEN}{CLOSE}]", text)
    return environment.from_string(_file("report.html"))


def _file(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _policy_digest(text: str) -> str:
    """Return the source expression of a policy that allows one inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
