"""Generated pages of every kind, a fault planted in half of them; each card is read against an own
computation.

As a script it tries 2,000: python -m tests.display.planted_kinds 2000
"""

import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy import stats

import recdf as rd
from recdf.display.plot.picture import Drawing

from .planted import card_of, numbers

POSITIVE = re.compile(r"^(Ship|Test .* online|Replace the baseline:|Prefer)")
# Badges and actions of the table in docs/report.md, where … stands for any words.
RULES = [
    tuple("|".join(re.escape(one).replace("…", ".*") for one in cell.split(" · ")) for cell in row)
    for row in re.findall(
        r"^\| ([^|]+?) \|[^|]*\| ((?:Do not|Collect|Ship|Keep|Choose|Name|Compare)[^|]*?) \|$",
        (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8"),
        re.M,
    )
]
FAULTS = ["leak", "few", "lists", "ties", "segment", "harm"]


def holm(p):
    """Adjusted p-values by Holm's method, step by step."""
    order, found, most = np.argsort(p), np.empty(len(p)), 0.0
    for rank, place in enumerate(order):
        most = max(most, min(1.0, (len(p) - rank) * p[place]))
        found[place] = most
    return found


def paired(one, two):
    """p of the paired t test; 1 where nothing differs."""
    apart = one - two
    return 1.0 if np.ptp(apart) == 0 else stats.ttest_rel(one, two).pvalue


def near(found, wanted):
    """Whether a number as written is the wanted one, to the digits that are written."""
    return abs(found - wanted) <= 0.006 * max(1.0, abs(wanted))


# -- models


def model_case(seed, rng):
    """True, pred, segments and train of two to five models, and the fault that was planted."""
    fault = FAULTS[seed // 2 % len(FAULTS)] if seed % 2 else ""
    n = int(rng.integers(10, 29)) if fault == "few" else int(rng.integers(60, 500))
    names = ["old", "new", "mid", "far", "odd"][: int(rng.integers(2, 6))]
    users, luck = np.arange(n), rng.random(n)
    part = np.array(["x", "y"])[users % 2]
    rows = []
    for name in names:
        rate = np.full(n, rng.choice([0.2, 0.35, 0.4, 0.5, 0.7]))
        if fault == "segment" and name == "new":
            rate = np.where(part == "x", 0.1, 0.8)
        hit = (luck + rng.random(n)) / 2 < rate
        first = np.where(hit, 0, 1 + users % 40)
        late = np.where(hit | (rng.random(n) < 0.5), 60 + users % 7, 0)
        for rank, items in enumerate([first, late]):
            score = 0.0 if fault == "ties" and name == "new" else -float(rank)
            frame = {"model": name, "user_id": users, "item_id": items, "score": score}
            rows.append(pd.DataFrame(frame))
    pred = pd.concat(rows, ignore_index=True)
    if fault == "lists":
        gone = (pred["model"] == "new") & (pred["user_id"] < n * rng.uniform(0.1, 0.6))
        pred = pred[~gone].reset_index(drop=True)
    if fault == "harm":  # the second place of new has no hit
        late = (pred["model"] == "new") & (pred["score"] == -1.0)
        pred.loc[late, "item_id"] = 60
    return pd.DataFrame({"user_id": users, "item_id": 0}), pred, part, fault


def try_models(seed, rng, folder):
    true, pred, part, fault = model_case(seed, rng)
    n, names = len(true), list(dict.fromkeys(pred["model"]))
    baseline = "old" if rng.random() < 0.6 else None
    result = rd.evaluate(true, pred, ["hitrate@1", "recall@2"], by="model")
    given = {"baseline": baseline}
    share = float(rng.choice([0.03, 0.3, 0.67])) if fault == "leak" else 0.0
    if fault == "leak":
        some = pd.DataFrame({"user_id": np.arange(900, 1000), "item_id": np.arange(100)})
        train = pd.concat([some, true.head(round(share * n))])
        given["check"] = rd.audit(true, pred, ["hitrate"], 1, train=train, by="model")
    elif rng.random() < 0.5 or fault == "ties":
        given["check"] = rd.check(true, pred, 1, by="model")
    segments = pd.DataFrame({"user_id": np.arange(n), "part": part})
    if fault == "segment" or rng.random() < 0.3:
        given["segments"] = segments
    if baseline is not None and rng.random() < 0.3:  # the call of the README
        given["comparison"] = result.compare_models(baseline="old")
        given.pop("baseline")
    lines, kind, badge = card_of(
        rd.report(result, Path(folder) / "r.html", overwrite=True, **given)
    )
    wide = result.per_user.pivot(index="user_id", columns="model", values="hitrate@1").sort_index()
    means = wide.mean()
    # -- what is said, against the values
    which, amount = lines["Which"].replace(" :", ":"), lines["By how much"]
    if said := re.match(r"(\w+) − (\w+) ", amount):
        one, two = said.groups()
        apart = (wide[one] - wide[two]).to_numpy()
        number = [0.0] if re.match(r"\w+ − \w+ : 0(, 0%)?\. ", amount) else numbers(amount)
        assert near(number[0], apart.mean()), (amount, apart.mean())
        counts = re.search(r"([\d,]+) of [\d,]+ users? gains? and ([\d,]+) lose", amount)
        up, down = counts.groups()
        assert (int(up), int(down)) == ((apart > 0).sum(), (apart < 0).sum())
        assert int(re.search(r"of ([\d,]+) users? gain", amount)[1]) == n
    best = means.idxmax()
    for model in re.findall(r"(\w+)(?: , which)? has the best mean", which):
        assert model == "It" or means[model] == means.max()
    if said := re.search(r"(\w+) is better than the (?:baseline|second best,) (\w+) on", which):
        one, two = said.groups()
        assert means[one] == means.max()
        assert paired(wide[one], wide[two]) < 0.05
        assert two == "old" if baseline else means[two] == means.sort_values().iloc[-2]
    pairs = [(one, two) for i, one in enumerate(names) for two in names[i + 1 :]]
    own_p = holm([paired(wide[a], wide[b]) for a, b in pairs])
    p = dict(zip(map(frozenset, pairs), own_p, strict=True))
    how = f"over all {len(pairs)} pair"
    if said := re.search(r"Not shown to be worse than (\w+): ([\w, ]+?) \(over", which):
        alike = {name.strip() for name in said[2].split(",")}
        rows = result.compare_models("hitrate@1").to_dict("records")
        held = {
            frozenset((row["model"], row["baseline"]))
            for row in rows
            if row["effect"] not in ("better", "worse") or "missing_lists" in row["remarks"]
        }
        rival = re.search(r"(?:baseline|second best,|[Aa]gainst(?! the)) (\w+)", which)
        others = {*names} - {said[1]} - ({rival[1]} if rival else set())
        assert alike == {one for one in others if frozenset((said[1], one)) in held}
        for one in alike - {name for pair in held for name in pair if p[pair] <= 0.05}:
            assert p[frozenset((said[1], one))] > 0.05
        assert how in which
    said = re.search(r"shown to be worse than (\w+) \(over", which)
    if said and "Not shown" not in which:
        # Ties have no order.
        rival = {*re.findall(r"(?:baseline|second best,|[Aa]gainst(?! the)) (\w+)", which)}
        for one in {*names} - {said[1]} - rival:
            assert means[one] < means[said[1]]
            assert p[frozenset((said[1], one))] <= 0.05
    # -- lists that are missing
    has = pred.groupby("model")["user_id"].nunique()
    for name, lost, of in re.findall(r"(\w+) lacks ([\d,]+) of ([\d,]+) \(", str(lines)):
        assert (int(lost), int(of)) == (n - has[name], n)
    assert ("Every model has recommendations" in str(lines)) == bool((has == n).all())
    # -- segments
    worse = lines["For whom worse"]
    if "segments" in given and (said := re.search(r"(\w+) against (\w+) : (.*)", worse)):
        one, two, text = said.groups()
        if "worse in none" in text and "withheld" not in text:
            for name in "xy":
                own = wide[part == name]
                assert own[one].mean() >= own[two].mean() or paired(own[one], own[two]) > 0.02
        for name in re.findall(r"part = (\w): worse, −", text):
            own = wide[part == name]
            assert own[one].mean() < own[two].mean()
            assert paired(own[one], own[two]) <= 0.05
    # -- the badge
    if fault == "few":
        assert badge == "too few lists to tell"
        assert lines["So"].startswith("Collect")
    if fault == "leak":
        at = f"{round(share * n) / n:.0%} of the test rows stand in train"
        stopped = round(share * n) >= 0.1 * n
        assert stopped == (badge == f"withheld: {at}"), (badge, at)
        assert not stopped or lines["So"] == f"Do not act: {at}."
    assert any(re.fullmatch(mark, badge) and re.match(todo, lines["So"]) for mark, todo in RULES), (
        badge,
        lines["So"],
    )
    if kind == "better":
        assert lines["So"].startswith(f"Ship {best} ") or means.eq(means.max()).sum() > 1
        other = result.per_user.pivot(index="user_id", columns="model", values="recall@2")
        if baseline:
            lost = other[best].mean() < other["old"].mean()
            assert not lost or paired(other[best], other["old"]) > 0.01
    return fault, kind, badge, lines


# -- experiments


def try_experiment(seed, rng, folder):
    fault = ["ratio", "harm", "missing", "hidden", "unchecked"][seed // 2 % 5] if seed % 2 else ""
    n = int(rng.integers(300, 1500))
    b = rng.random(n) < 0.5
    if fault == "ratio":
        b &= rng.random(n) < 0.7
    frame = pd.DataFrame({"user_id": range(n), "variant": np.where(b, "B", "A")})
    size = rng.choice([-0.4, -0.1, 0.0, 0.1, 0.4], 2)
    size[1] = -0.5 if fault in ("harm", "hidden") else size[1]
    for name, by in zip(["clicks", "sales"], size, strict=True):
        frame[name] = rng.normal(1, 0.5, n) + by * b
    if fault == "missing":
        frame.loc[b & (rng.random(n) < 0.3), "clicks"] = np.nan
    if fault == "hidden":
        frame.loc[b & (rng.random(n) < 0.3), "sales"] = np.nan
    expected = None if fault == "unchecked" else {"A": 1, "B": 1}
    given = {}
    if rng.random() < 0.4:
        given["roles"] = {"clicks": "success", "sales": ("guardrail", "-10%")}
    options = {"control": "A", "expected": expected, "nan": "drop"}
    table = rd.compare_variants(frame, ["clicks", "sales"], details="roles" in given, **options)
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", experiment=table, overwrite=True, **given)
    )
    arms = {
        name: [part[b & part.notna()], part[~b & part.notna()]]
        for name, part in frame[["clicks", "sales"]].items()
    }
    apart = {name: new.mean() - old.mean() for name, (new, old) in arms.items()}
    tests = [stats.ttest_ind(*two, equal_var=False).pvalue for two in arms.values()]
    p = dict(zip(arms, holm(tests), strict=True))
    row = table.iloc[0]
    if row["withheld"] or fault == "ratio":
        assert kind in ("error", "warning") or "roles" in given
        assert not numbers(lines["By how much"]), lines
        assert "Checked: " in lines["By how much"]
    else:
        assert near(numbers(lines["By how much"])[0], apart["clicks"])
    if said := re.search(r"B is (better|worse) than the control A on clicks", lines["Which"]):
        assert p["clicks"] < 0.06
        assert (apart["clicks"] > 0) == (said[1] == "better")
    for name in re.findall(r"Worse: B against A on (\w+): worse", lines["For whom worse"]):
        assert apart[name] < 0
        assert p[name] < 0.06
    if "No metric is shown to be worse" in lines["For whom worse"] and fault != "ratio":
        for name in arms:
            assert (
                apart[name] > 0 or p[name] > 0.04 or table.set_index("metric").loc[name, "withheld"]
            )
    if lines["So"].startswith("Ship"):
        assert apart["clicks"] > 0
        assert fault not in ("ratio", "missing", "hidden")
        assert "roles" in given or not (apart["sales"] < 0 and p["sales"] < 0.04)
        assert "roles" in given or fault != "unchecked"
    if "roles" in given:
        decided = rd.experiments.decide_experiment(table, roles=given["roles"])["decision"].iloc[0]
        unchecked = fault == "unchecked" and decided.startswith("ship")
        assert badge == decided + ", but the sample ratio is not checked" * unchecked
    return fault, kind, badge, lines


# -- the other kinds


def try_off_policy(seed, rng, folder):
    n = int(rng.integers(1, 6))
    value = rng.uniform(0.01, 0.1, n)
    lift = value - rng.uniform(0.01, 0.1)
    half = rng.uniform(0.001, 0.05, n)
    flags = np.where(rng.random(n) < 0.5 * (seed % 2), "low_ess", "")
    held = (flags != "") & (rng.random(n) < 0.5)
    flags = np.where((flags != "") & ~held, "same_policy", flags)
    table = pd.DataFrame({"policy": [f"p{i}" for i in range(n)], "estimator": "dr"})
    table = table.assign(value=value, ci_low=value - half, ci_high=value + half, lift=lift)
    table = table.assign(lift_ci_low=lift - half, lift_ci_high=lift + half, ess=500.0, flags=flags)
    table["withheld"] = np.where(held, "low_ess", "")
    table["effect"] = np.where(held, "", np.where(flags == "", "ok", "wide"))
    table["trust"] = np.where(held, "do not use: low ess", table["effect"])
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", off_policy=table, overwrite=True)
    )
    clean, usable = flags == "", ~held
    pool = clean if clean.any() else usable if usable.any() else np.ones(n, bool)
    best = int(np.argmax(np.where(pool, value, -1)))
    assert f"p{best} , estimated by dr" in lines["Which"]
    assert badge == table["trust"][best]
    if not usable.any():
        assert not numbers(lines["By how much"])
        assert kind == "error"
    else:
        assert near(numbers(lines["By how much"])[0], value[best])
    gain = usable.any() and lift[best] - half[best] > 0
    assert (lines["So"] == f"Test p{best} online.") == gain
    below = {f"p{i}" for i in range(n) if clean[i] and lift[i] + half[i] < 0}
    assert set(re.findall(r"(p\d) by dr", lines["For whom worse"])) == below
    return "flags" if (flags != "").any() else "", kind, badge, lines


def try_gate(seed, rng, folder):
    n = int(rng.integers(40, 300))
    luck, hits = rng.random(n), {}
    for name, rate in (("old", 0.5), ("new", float(rng.choice([0.2, 0.48, 0.5, 0.7])))):
        hits[name] = (luck + rng.random(n)) / 2 < rate
    true = pd.DataFrame({"user_id": range(n), "item_id": 0})
    own, base = (
        rd.evaluate(true, true.assign(item_id=np.where(hits[name], 0, 1)), "hitrate@1")
        for name in ("new", "old")
    )
    gate = rd.gate(own, base, {"hitrate@1": float(rng.choice([-0.02, -0.1]))})
    lines, kind, badge = card_of(rd.report(path=Path(folder) / "r.html", gate=gate, overwrite=True))
    assert badge == gate.verdict
    change = hits["new"].mean() - hits["old"].mean()
    assert gate.headline in lines["Which"]
    assert near(numbers(lines["Which"].partition("hitrate@1")[2])[0], change)
    assert lines["So"].startswith("Replace") == (gate.verdict == "pass")
    assert (gate.verdict == "pass") <= (change > -0.1)
    return "loss" if change < -0.02 else "", kind, badge, lines


def try_beside(seed, rng, folder):
    n = int(rng.integers(400, 1200))
    b = rng.random(n) < 0.5
    frame = pd.DataFrame({"user_id": range(n), "variant": np.where(b, "B", "A")})
    frame["device"] = rng.choice(["app", "web"], n)
    frame["clicks"] = rng.poisson(2, n).astype(float)
    x, fault = rd.experiments, ""
    if seed % 3 == 0:
        if seed % 2:
            fault = "ratio"
            frame = frame[~((frame["device"] == "app") & b & (rng.random(n) < 0.6))]
        table = x.find_srm(frame, ["device"], expected={"A": 1, "B": 1})
    elif seed % 3 == 1:
        table = x.aa_test(frame, ["clicks"], n=100)
    else:
        table = x.plan_experiment(frame, ["clicks"], rel_effect=float(rng.uniform(0.02, 0.2)))
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", experiment=table, overwrite=True)
    )
    if "verdict" in table.columns and len(table) > 4:
        for verdict, count in Counter(table["verdict"]).items():
            assert f"{count} of {len(table)}: {verdict}" in lines["Which"]
    elif "verdict" in table.columns:  # each row is told
        assert all(f": {verdict}, " in lines["Which"] for verdict in table["verdict"])
    if fault:
        lost = frame.loc[frame["device"] == "app", "variant"].eq("B").mean()
        assert lost > 0.4 or (kind == "error" and lines["So"].startswith("Do not act"))
    if seed % 3 == 2:
        users = int(table["n_control"].iloc[0] + table["n_treatment"].iloc[0])
        assert f"{users:,} users" in lines["Which"]
    return fault, kind, badge, lines


def two_arms(rng, n, size):
    """Users of A and B in two segments, whose clicks differ by `size` in each, in the order of
    x and y."""
    frame = pd.DataFrame({"user_id": range(n), "variant": rng.permutation(["A", "B"] * (n // 2))})
    frame["part"] = rng.choice(["x", "y"], n)
    by = np.where(frame["part"] == "x", *size)
    frame["clicks"] = rng.normal(1, 0.5, n) + by * (frame["variant"] == "B")
    frame["sales"] = rng.normal(1, 0.5, n)
    return frame


def apart_in(frame, metric, shift=0.0, scale=1.0, way="two-sided"):
    """Difference of means and Welch's p, where the control is scaled and shifted first."""
    new, old = (frame.loc[frame["variant"] == arm, metric] for arm in "BA")
    test = stats.ttest_ind(new, scale * old + shift, equal_var=False, alternative=way)
    return new.mean() - old.mean(), test.pvalue


def try_segments(seed, rng, folder):
    """Effects in two segments, by themselves or as one test of whether they differ."""
    fault = ["", "differs"][seed % 2]
    size = [float(rng.choice([-0.3, 0.0, 0.3]))] * 2
    size = [0.4, -0.3] if fault else size
    frame = two_arms(rng, 2 * int(rng.integers(150, 500)), size)
    of = {"control": "A", "expected": {"A": 1, "B": 1}}
    within = rd.compare_variants(frame, "clicks", by="part", **of)
    whole = rd.compare_variants(frame, "clicks", **of)
    each = dict(list(frame.groupby("part")))
    found = {name: apart_in(own, "clicks") for name, own in each.items()}
    p = dict(zip(each, holm([found[name][1] for name in each]), strict=True))
    alone = rng.random() < 0.3
    if rng.random() < 0.5:  # every segment has a verdict of its own
        given = within if alone else {"": whole, "by part": within}
        lines, kind, badge = card_of(
            rd.report(path=Path(folder) / "r.html", experiment=given, overwrite=True)
        )
        worse = lines["For whom worse"]
        for name in each:
            shown = found[name][0] < 0 and p[name] <= 0.05
            told = f"B against A on clicks (part = {name}): worse" in worse
            assert told == shown or abs(p[name] - 0.05) < 0.005 or f"part = {name}): ch" in worse
            if shown and kind == "better":
                assert not told
        return fault, kind, badge, lines
    apart = rd.experiments.segment_effects(within)
    given = apart if alone else {"": whole, "by part": apart}
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", experiment=given, overwrite=True)
    )
    effects = np.array([found[name][0] for name in each])
    se = [
        np.sqrt(own.groupby("variant")["clicks"].agg(lambda one: one.var() / len(one)).sum())
        for own in each.values()
    ]
    weight = 1 / np.square(se)
    q = float(weight @ (effects - weight @ effects / weight.sum()) ** 2)
    own_p = stats.chi2.sf(q, len(each) - 1)
    text = lines["Which"] if alone else lines["For whom worse"]
    said = re.search(r"clicks, B against A: (.*?) \(Q = ([\d.e-]+) of (\d) segments", text)
    assert near(float(said[2]), q), (said[2], q)
    assert int(said[3]) == len(each)
    if abs(own_p - 0.05) > 0.01:
        differs = said[1].partition(" (")[0] == "differs between segments"
        assert differs == (own_p <= 0.05), (said[1], own_p)
    assert "Worse: B against A on clicks (part" not in text
    return fault, kind, badge, lines


def try_roles(seed, rng, folder):
    """A page of roles: the decision of an experiment, or what each role shows."""
    fault = ["harm", "small"][seed // 2 % 2] if seed % 2 else ""
    n = 2 * int(rng.integers(40, 80) if fault == "small" else rng.integers(150, 800))
    frame = two_arms(rng, n, [float(rng.choice([-0.2, 0.0, 0.2]))] * 2)
    frame["sales"] -= (0.4 if fault == "harm" else 0.0) * (frame["variant"] == "B")
    table = rd.compare_variants(
        frame, ["clicks", "sales"], control="A", expected={"A": 1, "B": 1}, details=True
    )
    margin, u = [("-10%", -0.1), ("-20%", -0.2), (-0.15, -0.15)][int(rng.integers(3))]
    roles = {"clicks": "success", "sales": ("guardrail", margin)}
    moved = {"scale": 1 + u} if isinstance(margin, str) else {"shift": u}
    safe, harmed = (apart_in(frame, "sales", way=way, **moved)[1] for way in ("greater", "less"))
    change, p = apart_in(frame, "clicks")
    p_loss = holm([p, apart_in(frame, "sales")[1]])[1]
    sales = apart_in(frame, "sales")[0]
    held = dict(zip(table["metric"], table["withheld"], strict=True))
    shown = "not shown safe"
    if not held["sales"]:
        if harmed <= 0.05:
            shown = "harmed beyond the margin"
        elif safe <= 0.05:
            shown = "worse, within the margin" if sales < 0 and p_loss <= 0.05 else "safe"
    p_clicks = holm([p, apart_in(frame, "sales")[1]])[0]
    clicks = "none" if held["clicks"] or p_clicks > 0.05 else "better" if change > 0 else "worse"
    wanted = "keep running"
    if shown.startswith("harmed") or clicks == "worse":
        wanted = "do not ship"
    elif clicks == "better" and shown in ("safe", "worse, within the margin"):
        wanted = "ship"
    close = min(abs(one - 0.05) for one in (safe, harmed, p_clicks, p_loss)) < 0.004
    judged = rng.random() < 0.4
    given = {"experiment": rd.experiments.role_verdicts(table, roles)} if judged else {}
    given = given or {"experiment": table, "roles": roles}
    lines, kind, badge = card_of(rd.report(path=Path(folder) / "r.html", overwrite=True, **given))
    if close:
        return fault, kind, badge, lines
    if judged:
        assert f"sales, B: {shown}, guardrail" in _without_bounds(lines["Which"], shown)
        harm = shown.startswith("harmed") or clicks == "worse"
        assert lines["So"].startswith("Do not ship") == (kind in ("worse", "error"))
        assert not harm or kind in ("worse", "error"), (kind, badge)
        return fault, kind, badge, lines
    assert badge == wanted, (badge, wanted, shown, clicks)
    assert f"sales: {shown} (" in _without_bounds(lines["Which"], shown)
    so = {"ship": "Ship B .", "do not ship": "Do not ship B ."}
    assert lines["So"] == so.get(wanted, "Keep the experiment running: do not ship B yet.")
    assert near(numbers(lines["By how much"])[0], change) or held["clicks"]
    told = "Worse: B against A on sales: worse" in lines["For whom worse"]
    assert told == (sales < 0 and p_loss <= 0.05 and not held["sales"])
    return fault, kind, badge, lines


def _without_bounds(line, shown):
    """The line without what sales, which have no bounds, would need to turn what it shows."""
    said = r", unless 3 in [\d,]+ users( of the control)? have [−\d.,]+ or (less|more)"
    of_sales = re.search(rf"sales(, B)?: {re.escape(shown)}{said}", line)
    assert bool(of_sales) == (shown != "not shown safe"), line
    return re.sub(said, "", line)


def try_interleaving(seed, rng, folder):
    """Clicks on interleaved lists, some of them with few users or with lists that are lost."""
    fault = ["few", "lost"][seed // 2 % 2] if seed % 2 else ""
    n = int(rng.integers(10, 29)) if fault == "few" else int(rng.integers(60, 300))
    coin = rng.random((n, 2)) < 0.5  # which team places its item first, in each of two rounds
    team = np.stack([coin, ~coin], axis=2).reshape(n, 4)
    log = pd.DataFrame({"user_id": np.repeat(range(n), 4), "item_id": np.tile(range(4), n)})
    log["team"] = np.where(team.ravel(), "b", "a")
    if fault == "lost":  # where b had the first place
        log = log[~np.repeat(coin[:, 0] & (rng.random(n) < 0.9), 4)]
    rate = np.where(log["team"] == "b", float(rng.choice([0.1, 0.3, 0.5])), 0.3)
    clicks = log[rng.random(len(log)) < rate]
    table = rd.experiments.compare_interleaved(log, clicks.drop(columns="team"))
    d = np.where(clicks["team"] == "b", 1, -1)
    users = log["user_id"].unique()
    own = pd.Series(d, clicks["user_id"]).groupby(level=0).sum().reindex(users, fill_value=0)
    p = stats.ttest_1samp(own, 0.0).pvalue
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", experiment=table, overwrite=True)
    )
    which = lines["Which"]
    if fault:
        assert kind in ("warning", "error"), (kind, badge)
        assert badge == ("check: too few lists" if fault == "few" else table["verdict"].iloc[0])
        assert lines["So"].startswith("Do not act")
        assert not numbers(which), which
        return fault, kind, badge, lines
    if kind in ("better", "worse"):
        assert p <= 0.05
        assert (own.mean() > 0) == (kind == "better")
        assert lines["So"] == f"Prefer {'b' if own.mean() > 0 else 'a'} ."
    elif kind == "open":
        assert p > 0.05
        assert lines["So"] == "Keep a : no difference is shown."
    if kind != "warning":
        said = re.search(r", ([+−]?[\d.]+) \(interval", which)[1]
        assert near(numbers(said)[0], own.mean()), which
        assert f"{(own > 0).sum()} user" in which
        assert f"{(own < 0).sum()} prefer a" in which
        sign = stats.binomtest(int((own > 0).sum()), int((own != 0).sum())).pvalue
        said = float(re.search(r"sign test, p [<]?([\d.]+)", which)[1])
        assert sign < 0.001 if "p <" in which else abs(said - sign) < 0.001
    return fault, kind, badge, lines


def try_history(seed, rng, folder):
    """Nights of a job: the level falls, a night is missing, or there are few of them."""
    fault = ["fall", "gap", "few"][seed // 2 % 3] if seed % 2 else ""
    n, users = int(rng.integers(6, 20)) if fault == "few" else int(rng.integers(24, 40)), 150
    fell = int(rng.integers(n // 2, n - 8)) if fault == "fall" else n
    gone = int(rng.integers(3, n - 2)) if fault == "gap" else -1
    days, means, job = pd.date_range("2026-01-05", periods=n), [], Path(folder) / f"job{seed}"
    true = pd.DataFrame({"user_id": range(users), "item_id": 0})
    for i, day in enumerate(days):
        hit = rng.random(users) < (0.3 if i >= fell else 0.6)
        means.append(hit.mean())
        if i != gone:
            night = rd.evaluate(true, true.assign(item_id=np.where(hit, 0, 1)), "hitrate@1")
            night.to_parquet(job / f"{day:%Y-%m-%d}")
    lines, kind, badge = card_of(
        rd.report(path=Path(folder) / "r.html", history=rd.diagnostics.History(job), overwrite=True)
    )
    which, means = lines["Which"], np.array(means)
    there = n - (gone >= 0)
    assert lines["How sure"] == f"{there} results, {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}."
    assert (f"Gaps: night {days[gone]:%Y-%m-%d}: missing" in which) == (gone >= 0)
    if badge == "missing":  # the badge stands before the first sentence, which has to say what is
        assert which.split(badge, 1)[-1].strip().startswith("Gaps: night "), which
    if fault == "gap":
        assert kind in ("error", "worse")
        assert lines["So"].startswith("Find out what changed")
    if there < 22:
        assert badge == "cannot tell: fewer than 22 nights"
        assert lines["So"] == "Do nothing now: wait for more nights."
    for word, old, new, day in re.findall(
        r"hitrate@1: (\w+)[^:]*?, ([\d.]+) to ([\d.]+) from ([\d-]+)", which
    ):
        at = int(days.get_loc(day))
        before, after = means[:at], means[at:]
        assert near(float(old), before.mean()), (old, before.mean())
        assert near(float(new), after.mean()), (new, after.mean())
        assert (word == "worse") == (after.mean() < before.mean())
        assert stats.ttest_ind(before, after, equal_var=False).pvalue < 0.01
        assert fault != "fall" or abs(at - fell) <= 1
    if fault == "fall" and "early: " not in which and "cannot tell" not in which:
        assert "hitrate@1: worse" in which, which
        assert kind == "error"
    return fault, kind, badge, lines


TRIES = [try_models, try_models, try_models, try_experiment, try_off_policy, try_gate, try_beside]
TRIES += [try_segments, try_roles, try_interleaving, try_history]
GENERAL = (
    r"\b1 (more )?(users|models|lists|pairs|errors|warnings|segments)\b",
    r"\bnan\b",
    r"\bNone\b",
    r"by holm\b",
    r"could be (\S+) to \1\b",
    r"± 0\.?0*\b",
    r"\(\)",
)


def try_kind(seed, folder):
    """Make one page without its pictures, and hold its card against the data."""
    rng = np.random.default_rng(seed)
    blank = patch(
        "recdf.display.report.about_models.drawing", lambda *_, **__: Drawing({}, svg="<svg></svg>")
    )
    with blank, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fault, kind, badge, lines = TRIES[seed % len(TRIES)](seed // len(TRIES), rng, folder)
    text = " ".join(lines.values())
    for wrong in GENERAL:
        assert not re.search(wrong, text), (wrong, text)
    assert list(lines)[-1] == "So"
    assert not re.search(r"[a-z]\.[a-z]", lines["So"]), lines["So"]
    if POSITIVE.match(lines["So"]):  # never stronger than the badge
        other = kind == "worse" and lines["So"] == "Prefer a ."  # the one that b is worse than
        sound = kind in ("better", "good") or badge == "ship, not as planned" or other
        assert sound, (badge, lines["So"])
    return fault, kind, badge


if __name__ == "__main__":
    seen, wrong = Counter(), []
    with tempfile.TemporaryDirectory() as place:
        for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0, int(sys.argv[1])):
            try:
                fault, kind, _ = try_kind(seed, place)
                seen[TRIES[seed % len(TRIES)].__name__, bool(fault), kind] += 1
            except Exception as error:
                import traceback

                at = traceback.extract_tb(error.__traceback__)[-1]
                wrong.append((seed, at.lineno, at.line, repr(error)[:300]))
    for key, count in sorted(seen.items()):
        print(count, *key)
    print(f"{sum(seen.values())} pages hold, {len(wrong)} do not")
    for one in wrong[:12]:
        print(*one)
