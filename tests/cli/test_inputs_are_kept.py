"""No command replaces a file that it reads, and each one replaces what it wrote before."""

import json
from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, run
from cli.frames import CALL, PRED

import recdf as rd

LOG = pd.DataFrame(
    {
        "user_id": range(40),
        "item_id": 1,
        "reward": [0.0, 1.0] * 20,
        "propensity": 0.5,
        "target_propensity": 0.4,
    }
)
GATE = ("gate", "models", "--model", "knn", "--baseline", "models", "--baseline-model")
# Commands that write beside the result that they read.
BESIDE = [
    (*GATE, "popularity", "--budget", "ndcg@10=-90%"),
    ("aa", "ab", "--metric", "hits@10", "--n", "20"),
    ("plan", "ab", "--metric", "hits@10", "--rel-effect", "0.05"),
    ("leaderboard", "models"),
    ("compare", "models", "--metric", "ndcg@10"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.few(2)
@pytest.mark.parametrize("call", BESIDE, ids=lambda call: call[0])
def test_a_command_replaces_what_it_wrote_beside_the_result(capsys, call):
    first = run(capsys, *call, "--out", call[1])
    assert run(capsys, *call, "--out", call[1], "--overwrite") == first
    assert first[0] in (0, 1, 3)
    name = next(Path(call[1]).glob("run*.json"))
    record = json.loads(name.read_text(encoding="utf-8"))
    read = {Path(one["path"]).name for one in record["inputs"]["results"]}
    assert read == {"per_user.parquet", "summary.parquet"}


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_read_is_not_replaced(capsys):
    LOG.to_parquet("ope.parquet")
    for call, lost in (
        (("ope", "ope.parquet", "--out", "."), "--out . would replace ope.parquet"),
        (("diff", "ab", "ab", "--out", "ab"), "--out ab would replace ab/summary.parquet"),
        (
            (*GATE, "popularity", "--budget", "ndcg@10=-2%", "--junit", "models/per_user.parquet"),
            "--junit models/per_user.parquet would replace models/per_user.parquet",
        ),
        (
            ("report", "models", "--out", "ab/../models/summary.parquet"),
            "--out ab/../models/summary.parquet would replace models/summary.parquet",
        ),
    ):
        overwrite = ("--overwrite",) * ("--out" in call)
        assert lost in fails(capsys, *call, *overwrite).replace("\\", "/")
    assert pd.read_parquet("ope.parquet").equals(LOG)
    assert rd.read_parquet("models").summary.shape[0]


@pytest.mark.usefixtures("in_their_folder")
@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["whole", "stream"])
def test_a_statistic_that_cannot_be_printed_leaves_no_result(capsys, stream):
    for words, said in (
        (("--stat", "midian"), "--stat midian; valid are"),
        (("--weight-by", "users"), "--weight-by users; valid are"),
        (("--weight-by", "rows", "--stat", "sum"), "--stat sum is of lists that count alike"),
    ):
        assert said in fails(capsys, *CALL, *stream, *words, "--out", "out")
        assert not Path("out").exists()


@pytest.mark.usefixtures("in_their_folder")
@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["whole", "stream"])
def test_a_model_without_rows_is_not_there(capsys, stream):
    """Files keep the categories of models that have no row any more."""
    names = PRED["model"].unique().tolist()
    kept = PRED[PRED["model"] == names[0]]
    kept.assign(model=pd.Categorical(kept["model"], names)).to_parquet("pred.parquet")
    call = (*CALL, *stream, "--expect")
    code, _, err = run(capsys, *call, f"models={','.join(names)}")
    assert code == 1
    assert f"lacks 1 in 'model': {names[1]}" in err
    assert run(capsys, *call, f"models={names[0]}")[0] == 0


@pytest.mark.usefixtures("in_their_folder")
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "days", ["0", "-1", "99999999", "2026-11-01..", "..", "2026-11-02..2026-11-01", "nan..nan"]
)
def test_days_that_are_none(capsys, days):
    PRED.assign(day="2026-11-20").to_parquet("pred.parquet")
    assert "expected 2026-11-01..2026-11-30 or a number" in fails(
        capsys, *CALL, f"--expect-days={days}"
    )
    assert "expected rows, pred.rows" in fails(capsys, *CALL, "--expect", "rows>=_")


@pytest.mark.usefixtures("in_their_folder")
def test_misspelt_columns_of_beside_files(capsys):
    """An index without a name, which pandas wrote, is no column that the answer could name."""
    pd.DataFrame({"user_id": range(9), "variant": list("ABA") * 3, "x": 1.0}).iloc[::2].to_parquet(
        "rows.parquet"
    )
    there = "it has 'user_id', 'variant', 'x'\n"
    has_none = "has no column 'arm'; " + there
    srm = ("srm", "--assignment", "rows.parquet", "--column", "x", "--expected", "A=1", "B=1")
    quantiles = ("quantiles", "--rows", "rows.parquet", "--control", "A", "--metric", "x")
    assert f"assignment {has_none}" in fails(capsys, *srm, "--variant-col", "arm")
    assert f"assignment {has_none}" in fails(capsys, *srm, "--user-col", "arm")
    assert f"rows {has_none}" in fails(capsys, *quantiles, "--variant-col", "arm")
    features = fails(capsys, *CALL, "--features", "rows.parquet")
    assert "features has no column 'item_id'; " + there in features
    assert rd.read("rows.parquet").columns.tolist() == ["user_id", "variant", "x"]
    with pytest.raises(rd.ColumnError, match=r"it has 'user_id', 'variant', 'x'$"):
        rd.experiments.find_srm("rows.parquet", "arm")
