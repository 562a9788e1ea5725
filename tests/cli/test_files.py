"""Files of every layout that the command reads, and a file of its options."""

import errno
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, run
from cli.frames import CALL, PRED, TRUE, expected

import recdf as rd

pytestmark = pytest.mark.usefixtures("in_their_folder")

# -- files of every layout


def hive(frame, root, column, ending):
    for value, rows in frame.groupby(column):
        part = Path(root) / f"{column}={value}" / f"part.{ending}"
        part.parent.mkdir(parents=True)
        rows = rows.drop(columns=column)
        rows.to_parquet(part, index=False) if ending == "parquet" else rows.to_csv(
            part, index=False
        )


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folders_globs_and_hive_folders_are_one_frame(capsys, ending):
    hive(PRED, "lists", "model", ending)
    Path("lists/_SUCCESS").touch()
    Path("lists/.hidden.parquet").write_bytes(b"no parquet")
    for pred in ("lists", f"lists/*/*.{ending}", "lists/model=*"):
        call = [*CALL[:3], "--pred", pred, *CALL[5:]]
        assert run(capsys, *call, "--out", "out", "--overwrite")[0] == 0
        found = rd.read_parquet("out")
        assert found.per_user.astype({"model": str}).equals(
            expected().per_user.astype({"model": str})
        )
    assert "no such file" in fails(capsys, *CALL[:3], "--pred", "lists/*.tsv", *CALL[5:])


def test_a_folder_of_several_kinds_is_refused(capsys):
    Path("mixed").mkdir()
    PRED.to_parquet("mixed/a.parquet")
    PRED.to_csv("mixed/b.csv")
    assert "several kinds (.csv, .parquet)" in fails(
        capsys, *CALL[:3], "--pred", "mixed", *CALL[5:]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "kinds", [("category", "str"), ("str", "category"), ("category", "ordered")]
)
def test_categories_in_some_files_of_a_folder(capsys, kinds):
    """As with --stream: a job that began to write categories is evaluated as before."""
    Path("days").mkdir()
    for number, (kind, part) in enumerate(zip(kinds, (PRED[:3], PRED[3:]), strict=True)):
        label = (
            pd.CategoricalDtype(sorted(part["model"].unique()), ordered=True)
            if kind == "ordered"
            else kind
        )
        part.astype({"model": label}).to_parquet(f"days/{number}.parquet")
    call = [*CALL[:3], "--pred", "days", *CALL[5:]]
    for options in ([], ["--stream"]) if "ordered" not in kinds else ([],):
        assert run(capsys, *call, *options, "--out", "out", "--overwrite")[0] == 0
        found = rd.read_parquet("out").per_user
        assert found.astype({"model": str}).equals(expected().per_user.astype({"model": str}))
        assert isinstance(found["model"].dtype, pd.CategoricalDtype) == (
            kinds == ("category", "str")
        )


@pytest.mark.parametrize("name", ["score", "model", "item_id"])
def test_a_file_of_a_folder_that_lacks_a_column_is_named(capsys, name):
    """Its rows were null there, and --nan-score last would have ranked them without a word."""
    Path("days").mkdir()
    PRED[:3].assign(new=1).to_parquet("days/0.parquet")
    PRED[3:].drop(columns=name).to_parquet("days/1.parquet")
    call = [*CALL[:3], "--pred", "days", *CALL[5:]]
    for options in ([], ["--stream"]):
        assert f"days/1.parquet has no column '{name}'" in fails(capsys, *call, *options)


def test_a_full_disk_is_told_with_its_place(capsys, monkeypatch):
    """Arrow names no file. The error is raised where a writer is made, since a test has no disk to
    fill."""

    def full(*_, **__):
        raise OSError(
            errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device"
        )

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    place = (
        f"nothing can be written into the folder {Path('out').absolute()}: No space left on device"
    )
    code, out, err = run(capsys, *CALL, "--out", "out")
    assert (code, out) == (4, "")
    assert place in err
    assert not Path("out").exists()


def test_addresses_are_read_by_fsspec(capsys):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/bucket/model=a/1.csv", "w") as file:
        PRED[PRED["model"] == "a"].drop(columns="model").to_csv(file, index=False)
    with memory.open("/bucket/model=b/1.csv", "w") as file:
        PRED[PRED["model"] == "b"].drop(columns="model").to_csv(file, index=False)
    with memory.open("/true/true.parquet", "wb") as file:
        file.write(Path("true.parquet").read_bytes())
    tail = ["-m", "mrr@2", "hits@2", "--by", "model", "--format", "csv"]
    for pred in ("memory://bucket", "memory://bucket/*/*.csv"):
        _, out, err = run(
            capsys, "evaluate", "--true", "memory://true/true.parquet", "--pred", pred, *tail
        )
        assert err == ""
        assert pd.read_csv(StringIO(out))["value"].tolist() == expected().summary["value"].tolist()
    assert "no such file" in fails(
        capsys, "evaluate", "--true", "memory://no.csv", "--pred", "memory://bucket", *tail
    )


def test_without_fsspec_an_address_names_the_package(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec" in fails(
        capsys, *CALL[:3], "--pred", "s3://bucket/pred.parquet", *CALL[5:]
    )


@pytest.mark.parametrize(
    "call",
    [
        [*CALL, "--out", "s3://bucket/result"],
        ["compare", "s3://bucket/result"],
        ["experiment", "s3://bucket/result", "--assignment", "true.parquet", "--control", "A"],
        ["report", "s3://bucket/result"],
        ["report", "result", "--out", "s3://bucket/report.html"],
        ["report", "result", "--check", "s3://bucket/check.parquet"],
        ["impressions", "s3://bucket/log.parquet", "--out", "lists"],
        ["impressions", "true.parquet", "--out", "s3://bucket/lists"],
    ],
)
def test_results_are_not_written_to_addresses_nor_read_from_them(capsys, call):
    assert "s3://bucket/" in (message := fails(capsys, *call))
    assert "is an address; expected a path of this machine" in message
    assert sorted(path.name for path in Path().iterdir()) == ["pred.parquet", "true.parquet"]


@pytest.mark.long
def test_side_tables_come_from_files(capsys):
    items = pd.DataFrame(
        {
            "item_id": [10, 20, 30, 40],
            "group": list("xxyy"),
            "price": [1.0, 2.0, 3.0, 4.0],
            "size": [0, 1, 0, 1],
        }
    )
    log = pd.DataFrame({"user_id": [1, 2, 2, 3], "item_id": [10, 10, 20, 40]})
    aspects = pd.DataFrame({"user_id": [1, 2, 3], "aspect": [1, 1, 2], "item_id": [10, 30, 10]})
    base = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [40, 40, 10]})
    for name, frame in {"items": items, "log": log, "aspects": aspects, "base": base}.items():
        frame.to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"item_id": [40]}).to_csv("popular.csv", index=False)
    items[["item_id", "price", "size"]].to_parquet("features.parquet")
    metrics = ["surprisal@2", "subtopic_recall@2", "serendipity@2", "ild@2", "hits@2"]
    given = {
        "items": items,
        "log": log,
        "aspects": aspects,
        "base": base,
        "popular": [40],
        "item_by": "group",
    }
    flags = [
        word
        for name in ("items", "log", "aspects", "base", "popular")
        for word in (f"--{name}", f"{name}.csv")
    ]
    call = [*CALL[:7], "-m", *metrics, *flags, "--item-by", "group", "--out", "out", "--overwrite"]
    assert run(capsys, *call, "--features", "price", "size")[0] == 0
    assert rd.read_parquet("out") == expected(metrics=metrics, **given, features=["price", "size"])
    assert run(capsys, *call, "--features", "features.parquet")[0] == 0
    of_file = items.set_index("item_id")[["price", "size"]]
    assert rd.read_parquet("out") == expected(metrics=metrics, **given, features=of_file)


@pytest.mark.few(1)
@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_seen_items_of_a_file_are_left_out(capsys, stream):
    seen = PRED[["user_id", "item_id"]].iloc[[1, 2, 4]]
    seen.to_csv("seen.csv", index=False)
    code, out, _ = run(capsys, *CALL, "--exclude", "seen.csv", "--out", "out", *stream)
    found = rd.read_parquet("out")
    assert (code, found) == (0, expected(exclude=seen))
    assert "--exclude (3 rows) left out 3 rows of pred and 1 of true." in out
    assert found != expected()


@pytest.mark.few(1)
@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_columns_that_are_carried(capsys, stream):
    pred = PRED.assign(time=range(8), day="mon")
    pred.to_parquet("pred.parquet", index=False)
    assert run(capsys, *CALL, "--carry", "time=min", "day", "--out", "out", *stream)[0] == 0
    assert rd.read_parquet("out") == expected(pred=pred, carry={"time": "min", "day": "constant"})
    assert "--carry time=first (or" in fails(capsys, *CALL, "--carry", "time", *stream)


@pytest.mark.long
def test_groups_of_items_of_streamed_files(capsys):
    items = pd.DataFrame({"item_id": [10, 20, 30, 40], "group": list("xxyy")})
    items.to_parquet("items.parquet")
    call = [*CALL, "--items", "items.parquet", "--item-by", "group", "--out", "out"]
    assert run(capsys, *call, "--stream")[0] == 0
    assert rd.read_parquet("out") == expected(items=items, item_by="group")


# -- a file of options


def config(text):
    Path("job.toml").write_text(text, encoding="utf-8")
    return ["--config", "job.toml"]


@pytest.mark.long
def test_a_file_of_options_stands_for_the_flags(capsys):
    job = config(
        """
        true = "true.parquet"
        pred = "pred.parquet"
        metrics = ["mrr@2", "hits@2"]
        by = "model"
        out = "out"
        judged_only = false
        overwrite = true
        """
    )
    assert run(capsys, "evaluate", *job)[0] == 0
    assert rd.read_parquet("out") == expected()
    assert run(capsys, "evaluate", *job, "-m", "ndcg@1")[0] == 0  # a flag wins
    assert rd.read_parquet("out") == expected(metrics=["ndcg@1"])


@pytest.mark.long
def test_one_file_has_a_table_for_each_command(capsys):
    job = config(
        """
        [evaluate]
        true = "true.parquet"
        pred = "pred.parquet"
        by = ["model"]
        m = "mrr"
        k = [1, 2]
        out = "out"
        [compare]
        results = "out"
        baseline = "a"
        format = "csv"
        seed = -1
        """
    )
    assert run(capsys, "evaluate", *job)[0] == 0
    assert rd.read_parquet("out") == rd.evaluate(TRUE, PRED, "mrr", k=[1, 2], by="model")
    assert "seed" in fails(capsys, "compare", *job)
    assert run(capsys, "compare", *job, "--seed", "1")[0] == 0
    assert "no table [check]" in fails(capsys, "check", *job)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tru = 1", "has no option 'tru'; did you mean 'true'?"),
        ("true = [", "is no TOML file"),
        ("overwrite = 1", "expected true or false"),
        ("true = ['a', 'b']", "expected one value"),
        ("by = [[1]]", "expected text, a number, or a list"),
        ("config = 'other'", "has no option 'config'"),
    ],
)
def test_a_wrong_file_of_options(capsys, text, words):
    assert words in fails(capsys, "evaluate", *config(text))


def test_a_missing_file_of_options(capsys):
    assert "absent.toml: No such file" in fails(capsys, "evaluate", "--config", "absent.toml")


@pytest.mark.few(1)
@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400])
def test_a_number_beyond_floats_is_named_by_file_column_and_row(
    capsys, tmp_path, monkeypatch, number
):
    monkeypatch.chdir(tmp_path)
    TRUE.to_csv("true.csv", index=False)
    Path("pred").mkdir()
    PRED.head(3).to_csv("pred/1.csv", index=False)
    lines = PRED.tail(5).to_csv(index=False).splitlines()
    lines[2] = lines[2].rpartition(",")[0] + f",{number}"
    Path("pred/2.csv").write_text("\n".join(lines), encoding="utf-8")
    call = ["evaluate", "--true", "true.csv", "--pred", "pred", "--by", "model", "-m", "mrr"]
    for more in ([], ["--stream"]):
        assert f"pred/2.csv, row 2, column score: {number} is larger" in fails(capsys, *call, *more)
    lines[2] = lines[2].rpartition(",")[0] + ",inf"
    Path("pred/2.csv").write_text("\n".join(lines), encoding="utf-8")
    assert run(capsys, *call)[0] == 0
