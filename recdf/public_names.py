"""The public names: where each stands, and in which namespace users find it. All load when they are
first used.

To add a public name, write it into a row here, and run `python tests/generated.py`, which writes
the stubs that type checkers read. A row is a module and its names; "estimate as ope_estimate" is
the name `estimate` under another one.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import errors

NamesByModule = Mapping[str, Sequence[str]]

# Modules that are attributes of `recdf`.
NAMESPACES = {
    "experiments": "experiments",
    "ope": "ope",
    "logs": "logs",
    "diagnostics": "diagnostics",
    "metrics": "metrics",
    "errors": "errors",
    "plot": "display.plot",
    "spark": "partitions.spark",
    "dask": "partitions.dask",
}

PUBLIC = {
    # What `dir(recdf)` lists, beside the metrics. Classes are here if users make or annotate them:
    # a result of their own, the options of a project, a convention, and what the function of a
    # metric takes.
    "recdf": {
        "errors": [
            name
            for name in vars(errors)
            if name.endswith(("Error", "Warning")) and not name.startswith("_")
        ],
        "datasets": ["sample_shop"],
        "diagnostics.audits": ["audit"],
        "diagnostics.data_checks": ["check"],
        "diagnostics.levels": ["chance_level", "ceiling"],
        "diagnostics.gates": ["gate"],
        "diagnostics.list_changes": ["diff"],
        "display.leaderboard": ["leaderboard"],
        "display.report.page": ["report"],
        "evaluation.evaluate": ["evaluate"],
        "evaluation.result": ["Evaluation", "join_results", "read_parquet"],
        "evaluation.summary": ["summarize"],
        "experiments.compare.compare_models": ["compare_models"],
        "experiments.compare.variants": ["compare_variants"],
        "experiments.join.join_experiment": ["join_experiment"],
        "formats.file_sets": ["read"],
        "formats.trec_files": ["write_trec"],
        "inputs.conventions": ["Convention", "conventions_table"],
        "inputs.options": ["Options"],
        "logs.impressions": ["from_impressions"],
        "matching.counts": ["Counts"],
        "matching.hits": ["Hits"],
        "matching.lists": ["Lists"],
        "metrics.metric": ["Metric", "metric", "metrics_table"],
        "partitions.evaluate_parquet": ["evaluate_parquet"],
    },
    "recdf.experiments": {
        "experiments.compare.bootstrap_ci": ["bootstrap_ci"],
        "experiments.compare.cheap_labels": ["prediction_powered"],
        "experiments.compare.compare_models": ["compare_models"],
        "experiments.compare.variants": ["compare_variants"],
        "experiments.compare.over_time": ["effect_over_time"],
        "experiments.compare.interleaving": ["compare_interleaved", "interleave"],
        "experiments.compare.quantiles": ["compare_quantiles", "compare_zero_inflated"],
        "experiments.compare.by_segment": ["segment_effects"],
        "experiments.compare.from_moments": ["compare_variants_from_moments", "variant_moments"],
        "experiments.decide.decide_experiment": ["decide_experiment", "read_plan", "role_verdicts"],
        "experiments.decide.experiment_health": ["experiment_health", "find_srm"],
        "experiments.decide.proxy_metrics": ["proxy_metrics"],
        "experiments.decide.adjust_pvalues": ["adjust_pvalues"],
        "experiments.join.join_experiment": ["join_experiment"],
        "experiments.join.roll_up": ["roll_up"],
        "experiments.plan.aa_splits": ["aa_test"],
        "experiments.plan.plan_comparison": ["plan_comparison"],
        "experiments.plan.plan_experiment": ["arrivals_by_day", "plan_experiment"],
        "judge.comparisons": ["report_table"],
        "tables.cells": ["ReportTable"],
    },
    "recdf.ope": {
        "off_policy.beside_estimates": [
            "propensity_check",
            "ope_compare as compare",
            "ope_diagnostics as diagnostics",
        ],
        "off_policy.estimate_value": ["ope_estimate as estimate"],
        "off_policy.log_additions": ["popularity_propensity", "reward_table", "target_from_recs"],
    },
    "recdf.logs": {
        "inputs.frames": ["from_dict", "from_labelled"],
        "inputs.list_cells": ["from_sparse", "from_top_k"],
        "logs.impressions": ["Impressions", "assign_persons", "from_impressions"],
        "logs.log_checks": ["check_log"],
        "logs.times": ["time_slice"],
        "partitions.dealt_users": ["impressions_parquet"],
    },
    "recdf.diagnostics": {
        "diagnostics.conventions_compared": ["compare_conventions"],
        "diagnostics.count_tables": ["exposure_table", "hit_table", "position_table", "user_gap"],
        "diagnostics.audits": ["audit"],
        "diagnostics.data_checks": ["check", "data_profile"],
        "diagnostics.levels": ["chance_level", "ceiling"],
        "diagnostics.gates": ["gate"],
        "diagnostics.list_changes": ["diff"],
        "diagnostics.history": ["History"],
        "diagnostics.judging": ["label_agreement", "sample_to_judge"],
        "diagnostics.run_records": ["past_runs", "past_tests"],
        "metrics.sampled": ["sampled_values"],
    },
}

# Names at the top that `dir(recdf)` does not list: registries, and classes of results.
UNLISTED = {
    "datasets": ["Shop"],
    "diagnostics.gate_records": ["Gate"],
    "diagnostics.list_changes": ["Diff"],
    "display.leaderboard": ["Leaderboard"],
    "inputs.conventions": ["CONVENTIONS"],
    "logs.impressions": ["Impressions"],
    "metrics.metric": ["METRICS"],
}


def places(rows: NamesByModule) -> Iterator[tuple[str, str, str]]:
    """Yield the module of each name, its name there and its public name."""
    for module, names in rows.items():
        for name in names:
            own, _, public = name.partition(" as ")
            yield module, own, public or own


def late_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose public names load when they
    are first used."""
    top = package == "recdf"
    found = {public: (module, own) for module, own, public in places(PUBLIC[package])}
    listed = sorted(found, key=lambda name: (name.lower() == name, name))
    if top:
        found |= {public: (module, own) for module, own, public in places(UNLISTED)}
        found |= {name: (module, "") for name, module in NAMESPACES.items()}

    def get(name: str) -> Any:
        if name not in found:
            where = [
                space for space, rows in PUBLIC.items() if name in (p[2] for p in places(rows))
            ]
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
                + "".join(f"; it is {space}.{name}" for space in where),
                name=name,
                obj=sys.modules[package],
            )
        module, own = found[name]
        loaded = importlib.import_module(f"recdf.{module}")
        thing = getattr(loaded, own) if own else loaded
        setattr(sys.modules[package], name, thing)  # the next use finds it at once
        return thing

    def names() -> list[str]:
        own = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        return sorted({*own, *sys.modules[package].__all__, *(NAMESPACES if top else ())})

    return get, names, listed
