"""Where a broken sample ratio comes from."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

find_srm = rd.experiments.find_srm


def assigned(n=9000):
    """Three variants; in the browser "y", a third of the users of C is lost."""
    rng = np.random.default_rng(3)
    users = pd.DataFrame(
        {"user_id": np.arange(n), "variant": rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])}
    )
    users["browser"] = rng.choice(["x", "y", "z", None], n, p=[0.5, 0.3, 0.15, 0.05])
    users["day"] = pd.Timestamp("2026-09-01") + pd.to_timedelta(rng.integers(0, 5, n), unit="D")
    lost = (users["browser"] == "y") & (users["variant"] == "C") & (rng.random(n) < 1 / 3)
    return users[~lost]


PLAN = {"A": 50, "B": 30, "C": 20}


@pytest.mark.long
def test_it_is_the_chi_squared_test_of_each_level():
    stats = pytest.importorskip("scipy.stats")
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    users = assigned()
    found = find_srm(users, ["browser", "day"], expected=PLAN)
    assert len(found) == 4 + 5
    p = []
    for _, row in found.iterrows():
        text = (
            users[row["column"]]
            .astype(object)
            .where(users[row["column"]].notna(), "(null)")
            .astype(str)
        )
        inside = text == row["level"]
        for part, name in (
            (users[inside], "p_value"),
            (users[~inside], "p_without"),
            (users, "p_all"),
        ):
            n = part["variant"].value_counts()[["A", "B", "C"]].to_numpy()
            want = stats.chisquare(n, n.sum() * np.array([0.5, 0.3, 0.2]))
            assert row[name] == pytest.approx(want.pvalue, rel=1e-9)
        assert row["n_users"] == inside.sum()
        p.append(row["p_value"])
    assert found["p_adj"].tolist() == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert p == sorted(p)


def test_the_level_that_explains_it_is_first():
    found = find_srm(assigned(), ["day", "browser"], expected=PLAN)
    first = found.iloc[0]
    assert first[["column", "level", "variant", "explains", "verdict"]].tolist() == [
        "browser",
        "y",
        "C",
        True,
        "invalid: sample ratio",
    ]
    assert first["n_variant"] < first["n_expected"]
    assert not found["explains"].iloc[1:].any()
    assert set(found["verdict"].iloc[1:]) == {"fits"}
    assert "(null)" in set(found["level"])


def test_small_levels_are_not_tested_and_do_not_count(tmp_path):
    users = assigned()
    few = users.assign(day=np.where(np.arange(len(users)) < 10, "rare", "usual"))
    found = find_srm(few, "day", expected=PLAN).set_index("level")
    assert found.loc["rare", "verdict"] == "not tested"
    assert found.loc["usual", "p_adj"] == found.loc["usual", "p_value"]
    found.reset_index().to_parquet(tmp_path / "srm.parquet")


def test_clusters_are_counted_and_users_of_two_variants_left_out():
    users = pd.DataFrame({"user_id": range(800), "person": np.arange(800) // 2, "browser": "x"})
    users["variant"] = np.where(users["person"] % 4 == 0, "A", "B")
    found = find_srm(users, "browser", cluster="person")
    assert found[["n_users", "n_variant", "n_expected"]].values.tolist() == [[400, 100, 200]]
    twice = pd.concat(
        [users, users.head(10).assign(variant="A"), users.head(10).assign(variant="B")]
    )
    assert find_srm(twice, "browser")["n_users"].tolist() == [790]


def test_bad_calls_are_refused():
    users = assigned(100)
    with pytest.raises(rd.ColumnError):
        find_srm(users, "country")
    with pytest.raises(rd.OptionError, match="expected= has no share"):
        find_srm(users, "browser", expected={"A": 1})
    with pytest.raises(rd.OptionError, match="empty"):
        find_srm(users, [])
