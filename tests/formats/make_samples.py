"""Write the files of `samples/` with the tools whose formats they are. `test_samples.py` reads them
without the tools.

Run `python tests/formats/make_samples.py` where ranx, lenskit, mteb, beir, obp, recbole, deltalake
and polars are installed. It was run with ranx 0.3.21, LensKit 2025.8.1, MTEB 2.26.24, BEIR 2.2.0,
obp 0.4.1, RecBole 1.2.1, deltalake 1.6.6, polars 2.1.0 and pandas 2.3.3. What was written by hand
is said beside the calls.
"""

import gzip
import json
import shutil
from pathlib import Path

import matplotlib.cm
import numpy as np
import pandas as pd

matplotlib.cm.register_cmap = lambda *_, **__: None  # ranx 0.3.21 imports a seaborn that needs it
for old, new in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
    setattr(np, old, new)  # RecBole 1.2.1 needs the names of NumPy 1

import beir.util
import deltalake
import mteb
import obp
import polars as pl
from lenskit.data import ItemList, ItemListCollection
from ranx import Qrels, Run

HERE = Path(__file__).parent / "samples"

# Equal scores, ids of digits with leading zeros, and two users in an order that is not sorted.
PRED = {
    "u2": {"007": 3.25, "7": 3.25, "d10": 1.5, "d2": -0.5},
    "u1": {"d1": 0.123456789, "d3": 0.1234567891, "d2": 0.5},
    "u3": {"x": 1e-05},
}
TRUE = {"u2": {"7": 2, "d2": 1, "d9": 0}, "u1": {"d3": 1, "d2": 0, "d1": 3}, "u4": {"x": 1}}


def fresh(name):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def search():
    """Runs and judgements."""
    Run(PRED, name="als").save(str(HERE / "ranx.trec"), kind="trec")
    Qrels(TRUE).save(str(HERE / "ranx_qrels.trec"), kind="trec")
    Run(PRED, name="als").save(str(HERE / "ranx_run.json"), kind="json")
    Qrels(TRUE).save(str(HERE / "ranx_qrels.json"), kind="json")
    beir.util.save_runfile(str(HERE / "beir.run"), PRED, run_name="bm25")


def folder_of_beir():
    """A data set as BEIR's GenericDataLoader reads it; BEIR writes none, so that the files are
    written by hand."""
    folder = fresh("beir")
    (folder / "qrels").mkdir()
    lines = [
        f"{user}\t{item}\t{grade}" for user, items in TRUE.items() for item, grade in items.items()
    ]
    (folder / "qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    (folder / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nother\td1\t1\n")
    items = sorted({item for items in [*TRUE.values(), *PRED.values()] for item in items})
    rows = [
        {"_id": item, "title": f"T {item}", "text": f"text of {item}", "metadata": {}}
        for item in items
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": user, "text": f"query {user}", "metadata": {}} for user in TRUE]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    from beir.datasets.data_loader import GenericDataLoader

    _, _, read = GenericDataLoader(str(folder)).load(split="test")
    assert read == TRUE, read


def predictions_of_mteb():
    """What a task of MTEB saves with `prediction_folder=`."""
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    class Task(AbsTaskRetrieval):
        metadata = mteb.get_task("NFCorpus").metadata

    folder = fresh("mteb")
    model = mteb.get_model_meta("mteb/baseline-random-encoder")

    class Model:
        mteb_model_meta = model

    AbsTaskRetrieval._save_task_predictions(
        Task(), PRED, Model(), folder, hf_split="test", hf_subset="default"
    )


def collections_of_lenskit():
    lists = ItemListCollection.empty(["user_id"])
    for user, items in PRED.items():
        best = sorted(items, key=lambda item: -items[item])
        lists.add(
            ItemList(item_ids=best, scores=[items[item] for item in best], ordered=True),
            user_id=user,
        )
    lists.save_parquet(HERE / "lenskit.parquet")
    lists.save_parquet(HERE / "lenskit_flat.parquet", layout="flat")


def atomic_files():
    """Atomic files by RecBole's page of them; it writes none itself, and reads these as they are
    meant."""
    rows = [
        f"{user}\t{item}\t{score}\t1.5e9"
        for user, items in PRED.items()
        for item, score in items.items()
    ]
    folder = fresh("shop")
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    (folder / "shop.inter").write_text("\n".join([header, *rows]) + "\n")
    header = "item_id:token\ttitle:token_seq\tclass:token_seq\tprice:float"
    (folder / "shop.item").write_text(f"{header}\n007\tThe Spy\tfilm old\t9.5\nd1\tA\t\t1\n")
    from recbole.config import Config
    from recbole.data import create_dataset

    given = {"data_path": str(HERE), "load_col": {"inter": ["user_id", "item_id", "rating"]}}
    read = create_dataset(Config(model="Pop", dataset="shop", config_dict=given))
    inter = read.inter_feat
    found = set(
        zip(
            read.id2token("user_id", inter["user_id"]),
            read.id2token("item_id", inter["item_id"]),
            strict=True,
        )
    )
    assert found == {(user, item) for user, items in PRED.items() for item in items}, found


def open_bandit():
    """Made-up rows under the header of the sample that obp ships, which obp reads."""
    shipped, folder = Path(obp.__file__).parent / "dataset/obd/bts/men", fresh("open_bandit")
    header = (shipped / "men.csv").read_text().splitlines()[0]
    n = header.count(",") - 9
    rows = [
        f"{i},2019-11-2{i} 00:00:00.{i}+00:00,{i % 3},{i % 3 + 1},{i % 2},0.{i + 1}25,f0,f1,f2,f3"
        + ",0.5" * n
        for i in range(6)
    ]
    (folder / "men.csv").write_text("\n".join([header, *rows]) + "\n")
    lines = (shipped / "item_context.csv").read_text().splitlines()
    context = [f"{i},{i},-0.5" + f",c{i}" * (lines[0].count(",") - 2) for i in range(3)]
    (folder / "item_context.csv").write_text("\n".join([lines[0], *context]) + "\n")


def tables():
    frame = pd.DataFrame(
        [(user, item, score) for user, items in PRED.items() for item, score in items.items()],
        columns=["user_id", "item_id", "score"],
    )
    pl.from_pandas(frame).write_ipc(HERE / "polars.arrow", compression="zstd")
    pl.from_pandas(frame).write_ndjson(HERE / "polars.jsonl")
    with gzip.GzipFile(HERE / "polars.jsonl.gz", "wb", mtime=0) as file:
        file.write((HERE / "polars.jsonl").read_bytes())
    frame.to_csv(HERE / "pandas.csv.zst", index=False)
    (HERE / "submission.csv").write_text(  # as on the page of a contest on Kaggle
        "customer_id,prediction\n0001,0706016001 0706016002 0372860001\n0002,0706016001\n0003,\n"
    )
    folder = fresh("delta")
    deltalake.write_deltalake(folder, frame[:3])
    deltalake.write_deltalake(folder, frame[3:], mode="append")
    deltalake.DeltaTable(folder).delete("user_id = 'u3'")


if __name__ == "__main__":
    for step in (
        search,
        folder_of_beir,
        collections_of_lenskit,
        atomic_files,
        open_bandit,
        tables,
        predictions_of_mteb,
    ):
        step()
