"""A result from elsewhere whose spec or tables were rewritten is a named error, and never a trace
or another number."""

import copy
import json

import pytest
from cases import case

import recdf as rd
from recdf.cli import main

pytestmark = pytest.mark.slow

SHOP = rd.sample_shop(n_users=40, n_items=30)
MODELS = rd.evaluate(SHOP.true, SHOP.pred, ["ndcg", "first_rank"], k=[5, 10], by="model")
EXPOSED = rd.evaluate(
    SHOP.true, SHOP.pred, ["ndcg@5", "coverage@5"], by="model", items=SHOP.items, item_by="category"
)
WEIGHTED = rd.evaluate(SHOP.true.assign(w=1.5), SHOP.pred, "ndcg@5", by="model", weight_col="w")
ODD = [
    "absent",
    None,
    [],
    {},
    "x",
    5,
    -1.5,
    True,
    ["nope"],
    [3],
    {"a": 1},
    {"a": {}},
    [None],
    "ndcg@10",
]
# Parts of a spec that are only shown: any text or number may stand there.
SHOWN = {
    "recdf",
    "truth",
    "definition",
    "counts",
    "side_tables",
    "relevance",
    "column",
    "rows",
    "digest",
    "columns",
}


def places(spec, before=()):
    """The path of every entry of a spec."""
    for key, value in spec.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from places(value, (*before, key))


def changed(spec, place, value):
    spec = json.loads(json.dumps(spec))
    inside = spec
    for key in place[:-1]:
        inside = inside[key]
    if value == "absent":
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return spec


@pytest.mark.parametrize(
    "result", [MODELS, EXPOSED, WEIGHTED], ids=["models", "exposed", "weighted"]
)
def test_results_that_recdf_wrote_are_read(result, tmp_path):
    result.to_parquet(tmp_path)
    assert rd.read_parquet(tmp_path) == result


def test_every_entry_of_a_spec_may_be_anything(tmp_path):
    """Each entry in turn is left out or replaced; what is read then gives the same answers as the
    result itself."""
    expected = MODELS.compare_models("ndcg@5", baseline="popularity")["diff"].tolist()
    read, refused = [], []
    for place in places(copy.deepcopy(dict(MODELS.spec))):
        for value in ODD[:: 1 if len(place) == 1 else 13]:
            spec = changed(MODELS.spec, place, value)
            if spec == MODELS.spec:
                continue
            rd.Evaluation(MODELS.per_user, MODELS.summary, spec).to_parquet(
                tmp_path, overwrite=True
            )
            with case(f"{place} = {value!r}"):
                try:
                    result = rd.read_parquet(tmp_path)
                except rd.DataError as error:
                    refused.append(str(error))
                    continue
                read.append(place)
                assert (
                    result.compare_models("ndcg@5", baseline="popularity")["diff"].tolist()
                    == expected
                )
    assert min(len(read), len(refused)) > 30
    assert all(place[0] == "options" or SHOWN & set(place) for place in read)
    assert all(
        text.startswith(f"{tmp_path} holds a result that does not fit together: ")
        for text in refused
    )


@pytest.mark.parametrize(
    ("frame", "column", "change", "words"),
    [
        (
            "summary",
            "value",
            lambda x: x + 1e-6,
            "the summary's ndcg@5 is not the mean of the rows of per_user",
        ),
        (
            "per_user",
            "ndcg@10",
            lambda x: x[::-1].to_numpy(),
            "the summary's ndcg@10 is not the mean",
        ),
        (
            "per_user",
            "first_rank@5",
            lambda x: x.fillna(9.0),
            "the summary's first_rank@5 is not the mean",
        ),
        (
            "per_user",
            "ndcg@5",
            lambda x: x.astype(str),
            r"per_user\['ndcg@5'\] is .*; expected numbers",
        ),
        ("summary", "se", lambda x: x.astype(str), r"summary\['se'\] is .*; expected numbers"),
        (
            "summary",
            "metric",
            lambda x: x.replace("ndcg", "mrr"),
            "neither table has|the spec has no metric",
        ),
        (
            "summary",
            "model",
            lambda x: x.replace("knn", "svd"),
            "the summary's ndcg@5 is not the mean",
        ),
    ],
)
def test_tables_that_do_not_fit_each_other(frame, column, change, words, tmp_path):
    tables = {"per_user": MODELS.per_user, "summary": MODELS.summary}
    tables[frame] = tables[frame].assign(**{column: change(tables[frame][column])})
    rd.Evaluation(tables["per_user"], tables["summary"], MODELS.spec).to_parquet(tmp_path)
    with pytest.raises(rd.DataError, match=words):
        rd.read_parquet(tmp_path)


@pytest.mark.parametrize("frame", ["per_user", "summary"])
def test_a_column_or_rows_that_are_missing(frame, tmp_path):
    tables = {"per_user": MODELS.per_user, "summary": MODELS.summary}
    for name in tables[frame].columns:
        less = tables | {frame: tables[frame].drop(columns=name)}
        rd.Evaluation(less["per_user"], less["summary"], MODELS.spec).to_parquet(
            tmp_path, overwrite=True
        )
        if name in MODELS.spec["metrics"] and frame == "per_user":
            continue  # a metric without rows is one of exposure
        with case(name), pytest.raises(rd.DataError, match="does not fit together"):
            rd.read_parquet(tmp_path)
    fewer = tables | {frame: tables[frame].query("model != 'knn'")}
    rd.Evaluation(fewer["per_user"], fewer["summary"], MODELS.spec).to_parquet(
        tmp_path, overwrite=True
    )
    if frame == "summary":
        with pytest.raises(rd.DataError, match="is not the mean"):
            rd.read_parquet(tmp_path)


def test_weighted_means_and_means_of_own_names_fit(tmp_path):
    weights = SHOP.true["user_id"].str[-1].astype(float)
    own = rd.evaluate(
        SHOP.true.assign(w=weights), SHOP.pred, {"mine": "ndcg@5"}, by="model", weight_col="w"
    )
    own.to_parquet(tmp_path)
    assert rd.read_parquet(tmp_path) == own
    per_user = WEIGHTED.per_user.assign(w=WEIGHTED.per_user.groupby("model").cumcount() + 1.0)
    rd.Evaluation(per_user, WEIGHTED.summary, WEIGHTED.spec).to_parquet(tmp_path, overwrite=True)
    with pytest.raises(rd.DataError, match="the summary's ndcg@5 is not the mean"):
        rd.read_parquet(tmp_path)


@pytest.mark.parametrize(
    "command", [["compare"], ["report", "--out", "report.html"], ["experiment", "--control", "A"]]
)
def test_each_command_says_it_in_one_line(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    SHOP.assignment.to_parquet("groups.parquet")
    rd.Evaluation(
        MODELS.per_user, MODELS.summary, changed(MODELS.spec, ("user_col",), 5)
    ).to_parquet("night")
    name, *rest = command
    more = ["--assignment", "groups.parquet"] if name == "experiment" else []
    assert main([name, "night", *rest, *more]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"recdf {name}: error: night holds a result that does not fit together: spec['user_col'] "
        "is 5; expected a list; evaluate it again\n"
    )
