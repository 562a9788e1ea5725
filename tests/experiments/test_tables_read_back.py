"""A table that was written, read back, filtered or put into another order says what it said."""

import io

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.errors import OptionError

EX = rd.experiments
ROLES = {"ctr": "success", "load": ("guardrail", "+9%")}


def from_csv(table, **how):
    """The table from a file, where empty texts are nulls."""
    return pd.read_csv(io.StringIO(table.to_csv(index=False)), **how)


def sorted_columns(table):
    return table[sorted(table.columns)]


def metric_first(table):
    return table.set_index("metric").reset_index()


# Of dtypes, orders of columns and files.
CHANGED = {
    "csv": from_csv,
    "csv as Arrow reads it": lambda table: from_csv(
        table, engine="pyarrow", dtype_backend="pyarrow"
    ),
    "sorted": sorted_columns,
    "reversed": lambda table: table[table.columns[::-1]],
    "metric first": metric_first,
    "texts as objects": lambda table: table.assign(
        **{name: table[name].astype(object) for name in ["withheld", "remarks", "effect"]}
    ),
    "sorted in a file": lambda table: from_csv(sorted_columns(table)),
    "categories": lambda table: table.astype(
        dict.fromkeys(["metric", "control", "treatment", "verdict"], "category")
    ),
}


@pytest.fixture(scope="module")
def users():
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"user_id": range(900), "variant": ["A", "B"] * 450})
    found["zone"] = rng.choice(["fi", "no", "se"], 900)
    found["ctr"] = rng.normal(1, 1, 900) + 0.5 * (found["variant"] == "B")
    found["load"] = rng.gamma(20, 5, 900)
    return found


@pytest.fixture(scope="module")
def compare(users):
    """Comparisons of all users, or within their zones."""

    def made(**options):
        return rd.compare_variants(
            users,
            ["ctr", "load"],
            control="A",
            expected={"A": 1, "B": 1},
            smaller_is_better="load",
            details=True,
            **options,
        )

    return made


@pytest.mark.few(4)
@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_changed_table_is_read_alike(compare, change):
    table, zones = compare(), compare(by="zone")
    other, other_zones = change(table), change(zones)
    for call in (
        lambda one, _: EX.role_verdicts(one, ROLES),
        lambda one, _: EX.decide_experiment(one, roles=ROLES),
        lambda _, parts: EX.segment_effects(parts, details=True),
        lambda _, parts: EX.report_table(parts).frame,
        lambda _, parts: rd.plot.forest.data(parts),
        lambda one, _: rd.plot.forest.data(EX.role_verdicts(one, ROLES)),
    ):
        want, found = call(table, zones), call(other, other_zones)
        found, want = (pd.DataFrame(one).astype(object) for one in (found, want))
        pd.testing.assert_frame_equal(found, want)
    roles = EX.role_verdicts(table, ROLES)
    drawn = rd.plot.forest.data(from_csv(roles))
    pd.testing.assert_frame_equal(drawn, rd.plot.forest.data(roles), check_dtype=False)
    with pytest.raises(OptionError, match=r"compares within \['zone'\]"):
        EX.decide_experiment(other_zones, roles=ROLES)


def test_one_segment_of_a_comparison_is_not_taken_for_all_users(compare):
    zones = metric_first(compare(by="zone"))
    with pytest.raises(OptionError, match=r"compares within \['zone'\]"):
        EX.decide_experiment(zones[zones["zone"] == "fi"], roles=ROLES)


def test_segments_that_were_named_afterwards_tell_rows_apart(users, compare):
    zones = compare(by="zone")
    parts = [
        rd.compare_variants(part, ["ctr", "load"], control="A", details=True).assign(zone=zone)
        for zone, part in users.groupby("zone")
    ]
    found = EX.segment_effects(pd.concat(parts))
    pd.testing.assert_series_equal(found["q"], EX.segment_effects(zones)["q"])
    assert found.columns[0] == "zone"


def test_a_column_of_the_caller_is_no_segment(compare):
    table = compare().assign(owner=["Ann", "Bo"])
    for one in (table, from_csv(table)):
        found = EX.decide_experiment(one, roles=ROLES)
        pd.testing.assert_frame_equal(found, EX.decide_experiment(compare(), roles=ROLES))
        assert "owner" not in EX.report_table(one).frame


@pytest.mark.parametrize("by", [None, "zone"])
def test_a_health_table_from_a_file_flags_nothing_that_it_did_not(users, by, tmp_path):
    health = EX.experiment_health(
        users[["user_id", "ctr"]], users[["user_id", "variant", "zone"]], by=by
    )
    read = from_csv(health)
    assert read["srm_flag"].isna().all()
    want, found = (
        rd.compare_variants(users, ["ctr", "load"], control="A", by=by, health=one, details=True)
        for one in (health, read)
    )
    pd.testing.assert_frame_equal(found, want)
    pages = []
    for one in (health, read):
        path = rd.report(
            experiment=want, health=one, path=tmp_path / "r.html", overwrite=True, title="t"
        )
        pages.append("Sample ratio as planned" in path.read_text(encoding="utf-8"))
    assert all(pages)


def test_an_estimate_that_is_not_to_be_used_stays_so_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {
            "user_id": np.repeat(range(300), 4),
            "reward": (rng.random(1200) < 0.3).astype(float),
            "propensity": rng.uniform(0.1, 0.9, 1200),
            "target_propensity": rng.uniform(0, 0.3, 1200),  # some of its mass is nowhere
        }
    )
    table = rd.ope.estimate(log)
    assert (table["effect"] == "").all()
    for one in (table, from_csv(table)):
        path = rd.report(off_policy=one, path=tmp_path / "r.html", overwrite=True)
        assert "none should be used" in path.read_text(encoding="utf-8")
