"""Comparisons return the columns that a decision needs; `details=True` gives the others."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd
from recdf.errors import ColumnError
from recdf.judge.verdict import VERDICT_COLUMNS

EX = rd.experiments
HALVES = {"A": 1, "B": 1}
rng = np.random.default_rng(4)
USERS = pd.DataFrame(
    {
        "user_id": range(400),
        "variant": ["A", "B"] * 200,
        "land": ["fi", "se", "se", "fi"] * 100,
        "day": [1, 1, 2, 2] * 100,
        "assigned": 0,
        "clicks": rng.poisson(3, 400) + 1.0,
        "sales": rng.normal(10, 2, 400),
    }
)
MODELS = pd.DataFrame({"model": ["new"] * 60 + ["old"] * 60, "user_id": [*range(60)] * 2}).assign(
    **{"ndcg@10": rng.random(120)}
)
TEAMS = pd.DataFrame(
    {"user_id": np.repeat(range(40), 2), "item_id": [1, 2] * 40, "team": ["a", "b"] * 40}
)
of = {"control": "A", "expected": HALVES}
CALLS = {
    "compare_variants": lambda **more: rd.compare_variants(
        USERS, ["clicks", "sales"], **of, **more
    ),
    "from_moments": lambda **more: EX.compare_variants_from_moments(
        EX.variant_moments(USERS, ["clicks", "sales"]), control="A", **more
    ),
    "quantiles": lambda **more: EX.compare_quantiles(USERS, "sales", **of, **more),
    "zero_inflated": lambda **more: EX.compare_zero_inflated(USERS, "clicks", **of, **more),
    "over_time": lambda **more: EX.effect_over_time(
        USERS, "clicks", time_col="day", exposure_col="assigned", missing="drop", **of, **more
    ),
    "segments": lambda **more: EX.segment_effects(
        rd.compare_variants(USERS, "clicks", by="land", **of), **more
    ),
    "compare_models": lambda **more: rd.compare_models(MODELS, baseline="old", **more),
    "cheap": lambda **more: rd.compare_models(
        MODELS,
        "ndcg@10",
        baseline="old",
        cheap=pd.concat([MODELS, MODELS.assign(user_id=MODELS["user_id"] + 100)]),
        **more,
    ),
    "interleaved": lambda **more: EX.compare_interleaved(TEAMS, TEAMS[::3], **more),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CALLS)
def test_a_table_has_at_most_twenty_columns_beside_its_keys(name):
    short, whole = CALLS[name](), CALLS[name](details=True)
    keys = list(whole.columns).index("metric")
    assert len(short.columns) - keys <= 20 < len(whole.columns) - keys
    said = {"metric", "diff", "ci_low", "ci_high", "p_value", "p_adj"}
    assert said | {"effect", "withheld", "remarks", "verdict"} <= {*short.columns}
    pd.testing.assert_frame_equal(pd.DataFrame(short), pd.DataFrame(whole[list(short.columns)]))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["compare_variants", "compare_models", "cheap", "interleaved"])
def test_a_short_table_can_be_read_by_everything(name, tmp_path):
    table = CALLS[name]()
    assert "95% CI" in EX.report_table(table).to_markdown()
    assert "95% CI" in repr(table)
    assert rd.plot.forest.data(table)["n"].tolist()
    again = EX.adjust_pvalues(table)
    assert again["p_adj"].tolist() == pytest.approx(table["p_adj"].tolist())
    pd.testing.assert_frame_equal(again[VERDICT_COLUMNS], pd.DataFrame(table[VERDICT_COLUMNS]))
    table.to_parquet(tmp_path / "t.parquet")
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert back.attrs["recdf_comparison"]["confidence"] == 0.95
    rd.report(path=tmp_path / "page.html", experiment=back)


def test_the_record_of_a_comparison_travels_without_being_copied():
    """pandas copies `attrs` for each column that is taken out of a frame."""
    table = CALLS["compare_variants"]()
    assert table["diff"].attrs["recdf_comparison"] is table.attrs["recdf_comparison"]


def test_roles_without_margins_need_no_details_and_guardrails_name_what_they_need():
    table, roles = CALLS["compare_variants"](), {"clicks": "success"}
    whole = CALLS["compare_variants"](details=True)
    for function in (EX.role_verdicts, EX.decide_experiment):
        pd.testing.assert_frame_equal(function(table, roles=roles), function(whole, roles=roles))
    with pytest.raises(ColumnError, match=r"no column 'se_control'; make .* with details=True"):
        EX.role_verdicts(table, roles | {"sales": ("guardrail", "-2%")})
    table.attrs = {}  # as after a merge: 1 − alpha is not known any more
    with pytest.raises(ColumnError, match=r"no column 'confidence'; make .* with details=True"):
        EX.decide_experiment(table, roles=roles)


@pytest.mark.long
def test_a_report_of_a_short_table_says_which_numbers_it_lacks(tmp_path):
    def page(table):
        rd.report(path=tmp_path / "page.html", experiment=table, overwrite=True)
        return (tmp_path / "page.html").read_text("utf-8")

    fits = page(CALLS["compare_variants"]())
    assert "Sample ratio of the users who are compared as planned." in fits
    assert "Checked: the sample ratio." in fits
    assert "covariates" not in fits  # whether they were tested, such a table does not say
    unchecked = page(rd.compare_variants(USERS, "clicks", control="A"))
    assert "The sample ratio was not checked" in unchecked
    assert "Checked: nothing." in unchecked
    broken = page(rd.compare_variants(USERS, "clicks", control="A", expected={"A": 1, "B": 9}))
    assert "do not fit the plan" in broken
    assert "Checked: the sample ratio." in broken


def test_warnings_of_a_short_table_name_the_column_with_their_numbers():
    users = USERS.assign(before=USERS["sales"] + 5 * (USERS["variant"] == "B"))
    options = {"control": "A", "covariates": "before", "expected": HALVES}
    row = rd.compare_variants(users, "sales", **options).iloc[0]
    assert row["verdict"] == "check: covariate differs"
    notes = EX.report_table(pd.DataFrame([row])).frame["notes"].iloc[0]
    assert "covariate differs (unbalanced, with details=True)" in notes
    whole = EX.report_table(rd.compare_variants(users, "sales", details=True, **options))
    assert whole.frame["notes"].iloc[0].endswith(": before")


def test_a_row_whose_numbers_are_details_is_turned_without_them():
    from recdf.judge.verdict import turned

    frame = MODELS.assign(latency=lambda t: t["ndcg@10"] + (t["model"] == "new"))
    pair = {"baseline": "old", "smaller_is_better": "latency"}
    row = rd.compare_models(frame, "latency", **pair).iloc[0].to_dict()
    assert row["verdict"].startswith("worse, unless 3 in 60 users differ")
    assert turned(row)["verdict"] == f"better (new against old: {row['verdict']})"


@pytest.mark.long
def test_the_command_has_a_flag(tmp_path, capsys):
    shop = rd.sample_shop()
    result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    result.to_parquet(tmp_path / "results")
    call = ("compare", tmp_path / "results", "--baseline", "popularity", "--format", "json")
    for flags, n in (((), 20), (("--details",), len(result.compare_models(details=True).columns))):
        out = tmp_path / f"out{n}"
        assert run(capsys, *call, *flags, "--out", out)[0] == 0
        assert len(pd.read_parquet(out / "comparison.parquet").columns) == n
        assert len(json.loads(run(capsys, *call, *flags)[1])[0]) == n
