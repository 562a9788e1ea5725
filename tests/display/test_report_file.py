"""The report as a file: inert, one file, the same bytes for the same tables, and errors that say
what to change."""

import base64
import hashlib
import re
import sys
from html import unescape

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.display.report.page import _template

from .conftest import HOSTILE
from .page_read import Page, off_policy


@pytest.mark.long
def test_one_file_with_a_policy_of_its_own_digests(full):
    page, _ = full
    written = unescape(re.search(r'Security-Policy" content="([^"]+)"', page.source)[1])
    policy = dict(part.split(" ", 1) for part in written.split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page.source, re.S)
        assert len(texts) == 1
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | ({"style", "src"} & names)
    links = [value for name, value in page.attributes if name in ("href", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert page.open == []


def test_ids_are_unique_and_every_reference_has_its_id(full):
    page, _ = full
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = re.findall(r"url\(#([^)]+)\)", page.source) + re.findall(r'href="#([^"]+)"', page.source)
    assert set(used) <= set(ids)


@pytest.mark.long
def test_hostile_names_stay_letters(hostile, tmp_path):
    bad = HOSTILE[0]
    findings = pd.DataFrame(
        {
            "finding": [bad],
            "severity": ["error"],
            "count": [1],
            "share": [0.5],
            "effect": [bad],
            "code": [bad],
        }
    )
    shown = pd.DataFrame({"model": HOSTILE, "item_id": HOSTILE, "shown": 3, "share": 0.1})
    page = Page(
        rd.report(
            hostile,
            tmp_path / "r.html",
            title=bad,
            check=findings,
            exposure=shown,
            k=3,
            off_policy=off_policy().assign(policy=bad, flags=bad),
        )
    )
    assert page.tags <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "div",
        "h1",
        "bdi",
        "p",
        "nav",
        "ul",
        "li",
        "main",
        "section",
        "h2",
        "h3",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "b",
        "u",
        "sup",
        "small",
        "math",
        "mi",
        "mtext",
        "msub",
        "msup",
        "details",
        "summary",
        "pre",
        "figure",
        "figcaption",
        "svg",
        "g",
        "path",
        "use",
        "defs",
        "clippath",
        "rect",
        "text",
        "line",
        "circle",
        "polygon",
        "dl",
        "dt",
        "dd",
        "code",
        "footer",
        "script",
        "pattern",
        "tspan",
    }
    assert page.source.count("<script") == 1
    assert not {name for name, _ in page.attributes if name.startswith("on")}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", page.source)
    assert "{{ 7 * 7 }}" in page.text("leaderboard")


@pytest.mark.long
def test_the_same_tables_give_the_same_bytes(small, tmp_path):
    one, two = (rd.report(small, tmp_path / f"{i}.html", baseline="popularity") for i in (1, 2))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.long
def test_ten_models_with_many_metrics_stay_below_a_megabyte(tmp_path):
    rng = np.random.default_rng(0)
    models, users = np.repeat([f"m{i}" for i in range(10)], 400), np.tile(np.arange(400) % 80, 10)
    rows = pd.DataFrame({"model": models, "user_id": users})
    rows["item_id"] = rng.integers(0, 10**6, len(rows))
    true = rows.sample(500, random_state=0)[["user_id", "item_id"]].drop_duplicates()
    metrics = ["ndcg", "recall", "precision", "mrr", "hitrate", "mapr", "f1", "hits"]
    result = rd.evaluate(true, rows, metrics, k=[1, 2, 3], by="model", duplicates="drop")
    assert rd.report(result, tmp_path / "r.html", baseline="m0").stat().st_size < 1_000_000


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_long_tables_say_what_is_left_out(result, tmp_path):
    page = Page(rd.report(result, tmp_path / "r.html", max_rows=2))
    n_pairs = len(result.compare_models("ndcg@10"))
    for name, n in {"leaderboard": 3, "comparison": n_pairs}.items():
        assert len(page.tables[name][0]) == 1 + 2
        assert f"Not shown here: {n - 2} more row" in page.text(name)


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_a_file_is_not_overwritten_by_chance(small, tmp_path):
    path = rd.report(small, tmp_path / "r.html")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        rd.report(small, path)
    assert path.read_bytes() == before
    rd.report(small, path, title="new", overwrite=True)
    assert path.read_bytes() != before
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_a_place_that_takes_no_report(small, tmp_path):
    with pytest.raises(
        IsADirectoryError,
        match=r"is a folder; expected the path of a file, such as .*report\.html$",
    ):
        rd.report(small, tmp_path, overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file is a file; expected a folder"):
        rd.report(small, tmp_path / "file" / "r.html")
    with pytest.raises(OSError, match="File name too long"):
        rd.report(small, tmp_path / "new" / ("x" * 999))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"baseline": "x"}, rd.OptionError, "baseline='x' is not a model"),
        ({"k": 0}, rd.OptionError, "k=0"),
        ({"max_rows": 0}, rd.OptionError, "max_rows=0"),
        (
            {"comparison": pd.DataFrame({"a": [1]})},
            rd.ColumnError,
            "comparison has no column 'metric'",
        ),
        ({"experiment": {"x": pd.DataFrame()}}, rd.ColumnError, "experiment['x'] has no column"),
        (
            {"health": pd.DataFrame()},
            rd.ColumnError,
            "what rd.experiments.experiment_health returned",
        ),
        ({"check": pd.DataFrame()}, rd.ColumnError, "what rd.check returned"),
        ({"off_policy": pd.DataFrame()}, rd.ColumnError, "what rd.ope.estimate returned"),
        ({"unit_col": 5}, rd.ColumnError, "per_user has no column 5"),
        ({"log": pd.DataFrame()}, rd.OptionError, "needs exposure="),
        ({"segments": pd.DataFrame({"x": [1]})}, rd.ColumnError, "expected some of the key"),
    ],
)
@pytest.mark.usefixtures("without_pictures")
def test_bad_input_says_what_to_change_and_writes_nothing(options, error, words, small, tmp_path):
    with pytest.raises(error) as raised:
        rd.report(small, tmp_path / "r.html", **options)
    assert words in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_names_itself(module, small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    _template.cache_clear()  # as in a new process
    with pytest.raises(rd.MissingExtraError, match=r"recdf\[report\]"):
        rd.report(small, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_result_read_back_gives_the_same_report(small, tmp_path):
    small.to_parquet(tmp_path / "stored")
    again = rd.read_parquet(tmp_path / "stored")
    one, two = (rd.report(found, tmp_path / f"{i}.html") for i, found in enumerate((small, again)))
    assert one.read_bytes() == two.read_bytes()
