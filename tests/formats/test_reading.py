"""How `rd.read` and the command recognise a format, which ids they read, and what they say of other
files."""

import bz2
import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.command import fails, run
from quick import few

import recdf as rd
from recdf.formats.format_records import FORMATS

TRUE = "user_id,item_id\n007,1\n8,2\n"
PRED = "user_id,item_id,score\n007,1,2.5\n8,3,1e3\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, text):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text",
    [
        # ratings of MovieLens, which are no qrels
        "196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
        "1 2 3\n",
        "user_id,item_id\n1,2\n",
        "",
        "\x00\x01\x02",
    ],
)
def test_an_unknown_file_is_told_with_its_first_line_and_all_formats(text, capsys):
    write("u.data", text)
    with pytest.raises(rd.DataError) as found:
        rd.read("u.data")
    message = str(found.value)
    assert message.startswith("u.data: the format of this file is not known")
    assert (repr(text.splitlines()[0]) if text else "it is empty") in message
    assert all(name in message for name in FORMATS)
    write("true.csv", TRUE)
    assert "name its format" in fails(
        capsys, "evaluate", "--true", "true.csv", "--pred", "u.data", "-m", "mrr"
    )


@pytest.mark.usefixtures("folder")
def test_a_format_may_be_named(capsys):
    write("judged.data", "q1 3 d1 1\nq1 3 d2 0\n")  # an iteration that is not 0
    write("als.data", "q1 x d2 1 2.5 als\nq1 x d1 2 1.5 als\n")
    true, pred = rd.read("judged.data", "trec_qrels"), rd.read(Path("als.data"), format="trec_run")
    assert true["iteration"].tolist() == ["3", "3"]
    assert rd.evaluate(true, pred, "mrr@10").summary["value"].item() == 0.5
    call = [
        "evaluate",
        "--true",
        "judged.data",
        "--pred",
        "als.data",
        "-m",
        "mrr@10",
        "--format",
        "csv",
    ]
    formats = ["--file-format", "true=trec_qrels", "pred=trec_run"]
    for more in ([], ["--stream"]):
        code, out, _ = run(capsys, *call, *formats, *more)
        assert code == 0
        assert "mrr,10,0.5," in out
    assert "one of delta," in fails(capsys, *call, "--file-format", "true=trec", "pred=trec_run")
    assert "there is no file --preds" in fails(capsys, *call, "--file-format", "preds=trec_run")
    with pytest.raises(rd.OptionError, match="'trec_runs' is unknown; did you mean 'trec_run'"):
        rd.read("als.data", "trec_runs")
    with pytest.raises(TypeError, match="path is"):
        rd.read(pd.DataFrame())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "ending", ["qrels", "txt", "trec", "tsv", "2019-qrels", "qrels.gz", "txt.bz2"]
)
def test_qrels_by_any_name(ending):
    text = b"\n 1 0\td1  1 \r\n01 0 d2 -1\n\n"
    text = (
        gzip.compress(text)
        if ending.endswith("gz")
        else bz2.compress(text)
        if ending.endswith("bz2")
        else text
    )
    found = rd.read(write(f"test.{ending}", text))
    assert found[["user_id", "item_id", "relevance"]].values.tolist() == [
        ["1", "d1", 1],
        ["01", "d2", -1],
    ]


@pytest.mark.usefixtures("folder")
def test_a_run_is_ordered_by_its_scores_and_not_by_the_ranks_that_it_states():
    write("a.run", "q Q0 d1 1 0.5 x\nq Q0 d2 2 0.9 x\nq Q0 d3 3 0.5 x\n")
    found = rd.evaluate({"q": ["d1"]}, rd.read("a.run"), "mrr@10")
    assert found.per_user["mrr@10"].item() == pytest.approx(
        1 / 3
    )  # d2, d3, d1: of equal scores the larger id first


@pytest.mark.usefixtures("folder")
def test_ids_of_one_csv():
    frame = rd.read(write("a.csv", "user_id,item_id,score,shelf,n\n1,7.0,1,007,5\n2,NA,2,12,6\n"))
    assert frame["user_id"].tolist() == [1, 2]
    assert frame["item_id"].tolist() == ["7.0", "NA"]
    assert frame["shelf"].tolist() == ["007", "12"]
    assert frame["n"].tolist() == [5, 6]
    named = rd.read("a.csv", user_col="n", item_col="shelf", by="score")
    assert named["item_id"].isna().tolist() == [False, True]  # not named as ids, so that NA is null
    options = rd.Options(user_col="user_id", item_col="item_id")
    pd.testing.assert_frame_equal(rd.read("a.csv", options=options), frame)


@pytest.mark.usefixtures("folder")
def test_ids_of_two_kinds_are_an_error_and_never_a_silent_mismatch():
    true, pred = (
        rd.read(write("true.csv", "user_id,item_id\n7,1\n")),
        rd.read(write("pred.csv", PRED)),
    )
    with pytest.raises(rd.IdTypeError, match="user_id"):
        rd.evaluate(true, pred, "mrr@10")


@pytest.mark.long
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "pred", few(["pred.tsv", "pred.csv", "pred.jsonl", "pred.run", "pred.arrow"], 1)
)
def test_streamed_files_of_other_formats_are_evaluated_as_whole_ones(capsys, pred, monkeypatch):
    """In pieces of few bytes: whether ids are integers is seen in the last of them."""
    monkeypatch.setattr("recdf.formats.file_sets.PIECE_BYTES", 256)
    users = [*range(1, 200), "0x" if pred in ("pred.csv", "pred.tsv") else 200]
    frame = pd.DataFrame(
        {
            "user_id": users,
            "item_id": [i % 7 for i in range(200)],
            "score": [i % 11 / 2 for i in range(200)],
        }
    )
    frame["extra"] = [*["1"] * 150, "x", *["2"] * 49]
    if pred == "pred.run":
        rd.write_trec(frame.drop(columns="extra"), pred)
    elif pred == "pred.arrow":
        frame.astype({"user_id": str}).to_feather(pred)
    elif pred == "pred.jsonl":
        frame.to_json(pred, orient="records", lines=True)
    else:
        frame.to_csv(pred, index=False, sep="\t" if pred.endswith("tsv") else ",")
    frame[["user_id", "item_id"]].rename(columns={"user_id": "uid"})[::2].to_csv(
        "true.csv", index=False
    )
    call = [
        "evaluate",
        "--true",
        "true.csv",
        "--pred",
        pred,
        "-m",
        "mrr@10",
        "--true-cols",
        "user_id=uid",
    ]
    whole = run(capsys, *call)
    assert whole[0] == 0
    assert run(capsys, *call, "--stream") == whole
    assert run(capsys, *call, "--memory-limit", "20KB") == whole


@pytest.mark.skipif(
    not hasattr(pa, "string_view"), reason="pyarrow 15 streams no frame of text without rows"
)
@pytest.mark.usefixtures("folder")
def test_streamed_files_of_only_a_header(capsys):
    write("true.csv", TRUE)
    write("pred.csv", "user_id,item_id,score\n")
    call = ["evaluate", "--true", "true.csv", "--pred", "pred.csv", "-m", "mrr@10"]
    assert run(capsys, *call, "--stream") == run(capsys, *call)
    assert run(capsys, *call, "--stream", "--allow-empty") == run(capsys, *call, "--allow-empty")


@pytest.mark.usefixtures("folder")
def test_json_lines_keep_the_types_of_json():
    text = (
        '{"user_id": "2026-11-20", "item_id": "007", "score": 1}\n{"user_id": "u", "item_id": "8", '
        '"score": 2.5}\n'
    )
    found = rd.read(write("a.jsonl", text))
    assert found.values.tolist() == [["2026-11-20", "007", 1.0], ["u", "8", 2.5]]
    dates = rd.read(write("b.jsonl", '{"user_id": "2026-11-20", "item_id": 3}\n'))
    assert dates.values.tolist() == [["2026-11-20", 3]]


@pytest.mark.usefixtures("folder")
def test_a_table_of_two_columns_with_titles_is_no_submission():
    found = rd.read(write("items.csv", "item_id,title\n1,The Matrix\n2,Up\n"))
    assert found["title"].tolist() == ["The Matrix", "Up"]


@pytest.mark.usefixtures("folder")
def test_a_folder_of_beir_without_a_test_names_its_files():
    for name in ("corpus.jsonl", "qrels/train.tsv", "qrels/dev.tsv"):
        write(f"data/{name}", "query-id\tcorpus-id\tscore\nq\td\t1\n")
    with pytest.raises(rd.DataError, match=r"name one of its files: dev\.tsv, train\.tsv"):
        rd.read("data")
    assert rd.read("data/qrels/dev.tsv").values.tolist() == [["q", "d", 1]]


@pytest.mark.usefixtures("folder")
def test_what_is_no_folder_of_beir_has_no_judgements():
    write("data/corpus.jsonl", "")
    write("a.run", "q Q0 d 1 2.0 t\n")
    for path in ("data", "a.run"):
        with pytest.raises(rd.DataError, match=r"has no test\.tsv; name one of its files: none"):
            rd.read(path, "beir")


@pytest.mark.usefixtures("folder")
def test_a_form_feed_is_white_space():
    write("a.run", "\x0cq1 Q0 d1 1 3.5 t\n")
    assert rd.read("a.run")["user_id"].tolist() == ["q1"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("names", [["a", "a"], ["items", "items"]])
def test_two_columns_of_one_name_are_refused(names):
    columns = [pa.array([{"id": 1}])] * 2
    pq.write_table(pa.table(columns, names=names), "two.parquet")
    with pytest.raises(rd.DataError, match=r"two\.parquet has two columns of one name"):
        rd.read("two.parquet")


@pytest.mark.usefixtures("folder")
def test_a_broken_file_is_named(capsys):
    write("a.inter", "user_id\titem_id\n1\t2\n")
    with pytest.raises(rd.DataError, match="expected a type behind each name, as in user_id:token"):
        rd.read("a.inter")
    for name in ("b.run", "c.arrow", "d.json", "e.jsonl", "f.parquet", "g.csv.gz"):
        write(name, b"{ no such thing")
        with pytest.raises(rd.DataError, match=name):
            rd.read(name)
    with pytest.raises(FileNotFoundError, match=r"h\.run"):
        rd.read("h.run")


def test_a_path_is_no_frame_and_the_message_says_how_to_read_it(tmp_path):
    path = tmp_path / "pred.csv"
    path.write_text(PRED)
    with pytest.raises(TypeError, match=r"pred = rd\.read\(pred\)"):
        rd.evaluate({"u": ["a"]}, str(path), "mrr@10")
    with pytest.raises(rd.DataError, match=r"rd\.read"):
        rd.evaluate_parquet(path, path, "mrr@10")


def test_the_page_has_every_format():
    page = (Path(__file__).parents[2] / "docs/files.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in FORMATS)


@pytest.mark.usefixtures("folder")
def test_whole_numbers_in_json_may_be_either(capsys):
    write("a.json", '{"q": {"d1": 3, "d2": 5}}')
    with pytest.raises(rd.DataError, match="json_qrels, json_run"):
        rd.read("a.json")
    assert (
        rd.evaluate({"q": ["d2"]}, rd.read("a.json", "json_run"), "mrr@10")
        .per_user["mrr@10"]
        .item()
        == 1
    )
    assert rd.read("a.json", "json_qrels")["relevance"].tolist() == [3, 5]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.run", "q Q0 d1 1 1e400 x\nq Q0 d2 2 1e390 x\n", "a.run: 1e400 is larger"),
        ("a.qrels", f"q 0 d1 {10**400}\n", "is larger"),
        (
            "a.inter",
            "user_id:token\titem_id:token\tscore:float\nq\td1\t1e400\n",
            "a.inter: 1e400 is larger",
        ),
        ("a.jsonl", "", "a.jsonl is empty"),
        ("a.csv", "", "a.csv cannot be read: Empty CSV file"),
    ],
)
def test_a_file_with_no_numbers_or_rows_that_can_be_stored_is_named(capsys, name, text, words):
    write("true.csv", TRUE)
    with pytest.raises(rd.DataError, match=words):
        rd.read(write(name, text))
    for more in ([], ["--stream"]):
        assert words in fails(
            capsys, "evaluate", "--true", "true.csv", "--pred", name, "-m", "mrr", *more
        )


@pytest.mark.usefixtures("folder")
def test_a_run_with_a_null_score_is_told_as_such():
    """And not as a file of an unknown format, whose first line is without fault."""
    write("a.run", "q Q0 d1 1 1 x\nq Q0 d2 2 nan x\nq Q0 d3 3 -inf x\n")
    with pytest.raises(rd.DataError, match="1 null scores of 3"):
        rd.evaluate({"q": ["d1"]}, rd.read("a.run"), "mrr@10")


@pytest.mark.usefixtures("folder")
def test_a_format_that_is_no_text():
    with pytest.raises(rd.OptionError, match="format 3 is unknown"):
        rd.read(write("a.csv", TRUE), 3)


@pytest.mark.usefixtures("folder")
def test_predictions_of_several_splits_are_not_mixed():
    write("a.json", '{"default": {"dev": {"q": {"d1": 1.5}}, "test": {"q": {"d2": 2.5}}}}')
    with pytest.raises(rd.DataError, match="holds the lists of dev, test; expected those of one"):
        rd.read("a.json")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_named_as_such(order):
    for name, data in (("true.csv", TRUE), ("true.csv.gz", TRUE)):
        text = f"\ufeff{data}".encode(order)
        write(name, gzip.compress(text) if name.endswith("gz") else text)
        with pytest.raises(rd.DataError, match=rf"{name} is encoded as UTF-16; save it as UTF-8"):
            rd.read(name)
