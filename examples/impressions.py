"""From a raw log of an A/B test to a decision: impressions, clicks and purchases of a million
visits.

    python examples/impressions.py            # a million visits
    python examples/impressions.py 50000      # fewer

Needs `recdf[stats]` (SciPy). The log is generated, so the true effect is known, and it is not
clean: programs that look at thousands of items, a broken hour, and clicks on items that were never
shown. docs/impressions.md explains each step of the analysis.
"""

import sys
import textwrap

import numpy as np
import pandas as pd

import recdf as rd

K = 4  # items of a page
LIFT = {
    "new": 0.12,
    "regular": 0.05,
    "loyal": 0.0,
}  # true effect of B on the chance of a click, by segment
START = pd.Timestamp("2026-09-01", tz="UTC")


def generate(n_visits, seed=1):
    """A log, its clicks and purchases, the assignment, and the true click rates (A, B) by
    segment."""
    rng = np.random.default_rng(seed)
    n_users = max(n_visits // 5, 100)
    segment = rng.choice(list(LIFT), n_users, p=[0.3, 0.5, 0.2])
    variant = rng.choice(["A", "B"], n_users)
    taste = rng.gamma(4, 1 / 4, n_users)  # how much more, or less, than others a user clicks
    assignment = pd.DataFrame(
        {"user_id": np.arange(n_users), "variant": variant, "segment": segment}
    )
    assignment["assigned_at"] = (
        START  # all on the first day; with a ramp-up, the shares would change over this time
    )
    assignment["clicks_before"] = rng.poisson(
        3 * taste
    )  # of the month before: a covariate that B cannot have changed

    user = rng.integers(0, n_users, n_visits)
    begin = rng.integers(0, 14 * 86400, n_visits)
    # Each impression: a visit, a position from 0, an item. Chances of a click fall with the
    # position.
    visit, position = np.repeat(np.arange(n_visits), K), np.tile(np.arange(K), n_visits)
    who = user[visit]
    base = np.minimum(0.10 * taste[who] / np.sqrt(position + 1), 0.8)
    chance = {"A": base, "B": base * (1 + pd.Series(segment).map(LIFT).to_numpy()[who])}
    click = rng.random(len(visit)) < np.where(variant[who] == "B", chance["B"], chance["A"])
    log = pd.DataFrame(
        {
            "user_id": who,
            "session_id": visit,
            "item_id": rng.integers(0, 1000, len(visit)),
            "position": position,
            "variant": variant[who],
            "time": START + pd.to_timedelta(begin[visit], unit="s"),
        }
    )
    clicks = _events(log[click], rng.integers(5, 300, click.sum()))
    buys = np.flatnonzero(click & (rng.random(len(visit)) < 0.2))
    purchases = _events(log.iloc[buys], rng.integers(300, 7200, len(buys)))
    purchases["price"] = np.round(rng.lognormal(2.5, 0.6, len(buys)), 2)
    truth = pd.DataFrame({"segment": segment[who], **chance})
    truth = pd.concat([truth, truth.assign(segment="all")]).groupby("segment")[["A", "B"]].mean()
    return _spoiled(log, rng), clicks, purchases, assignment, truth


def _events(shown, seconds):
    events = shown[["user_id", "item_id", "time"]].reset_index(drop=True)
    return events.assign(time=events["time"] + pd.to_timedelta(seconds, unit="s"))


def _spoiled(log, rng):
    """Programs that look at 2,000 items each and click nothing, and an hour of which the log has no
    row."""
    lost = log["time"].between(
        START + pd.Timedelta("5D12h"), START + pd.Timedelta("5D13h"), inclusive="left"
    )
    users = rng.choice(log["user_id"].max() + 1, 20, replace=False)
    own = log.drop_duplicates("user_id").set_index("user_id")["variant"]
    n = 2000
    programs = pd.DataFrame(
        {
            "user_id": np.repeat(users, n),
            "session_id": np.repeat(log["session_id"].max() + 1 + np.arange(20), n),
            "item_id": rng.integers(0, 1000, 20 * n),
            "position": np.tile(np.arange(n), 20),
            "variant": own.reindex(np.repeat(users, n)).fillna("A").to_numpy(),
            "time": START + pd.Timedelta("3D"),
        }
    )
    return pd.concat([log[~lost], programs], ignore_index=True)


def main(n_visits):
    log, clicks, purchases, assignment, truth = generate(n_visits)

    # 1. What is odd in the log? Programs and a broken hour: leave both out, in both variants alike.
    later = {"clicks": clicks, "purchases": purchases, "window": "24h"}
    found = rd.logs.check_log(log, time_col="time", **later, variant_col="variant")
    print(found[["finding", "severity", "count", "share"]].round(4).to_string(index=False), "\n")
    rows = log["user_id"].value_counts()
    programs = rows.index[rows > 1000]
    log, assignment = (frame[~frame["user_id"].isin(programs)] for frame in (log, assignment))

    # 2. The two tables: each click and purchase belongs to the last impression of its item within a
    # day before it.
    events = {"clicks": clicks, "purchases": purchases, "value_col": "price"}
    lists = rd.from_impressions(log, time_col="time", window="24h", **events)
    print(lists, "\n")

    # 3. One row per visit, then one row per assigned user: 0 for those who never came.
    metrics = ["clicked@4", "shown@4", "revenue@4", "ndcg@4"]
    visits = rd.evaluate(*lists, metrics, **lists.options)
    print(
        visits.summary[["metric", "k", "value", "ci_low", "ci_high", "n"]]
        .round(4)
        .to_string(index=False),
        "\n",
    )
    sums = {"clicked@4": "sum", "shown@4": "sum", "revenue@4": "sum"}
    users = visits.join_experiment(assignment, how=sums, missing="zero")

    # 4. Is the experiment sound? Users per variant as planned.
    expected = {"A": 0.5, "B": 0.5}
    visitors = rd.experiments.roll_up(visits.per_user, how=sums)
    health = rd.experiments.experiment_health(visitors, assignment, expected=expected)
    print(
        health[["variant", "n_assigned", "share", "srm_p", "missing_rate", "missing_p"]]
        .round(3)
        .to_string()
    )
    assert not health["srm_flag"].any(), (
        "users per variant do not fit the plan: find out why before reading an effect"
    )

    # 5. The effect: clicks per impression decide; revenue per user explains. CUPED takes out what
    # users did before.
    compared = {"ctr": ("clicked@4", "shown@4"), "revenue per user": "revenue@4"}
    options = {
        "control": "A",
        "covariates": "clicks_before",
        "expected": expected,
        "time_col": "assigned_at",
        "details": True,  # a guardrail needs the errors of both arms
    }
    effect = rd.compare_variants(users, compared, primary="ctr", **options)
    print("\n", rd.experiments.report_table(effect), "\n", sep="")

    # 6. Ship? The click rate should become better, and revenue per user must not lose more than 5
    # %.
    roles = {"ctr": "success", "revenue per user": ("guardrail", "-5%")}
    decided = rd.experiments.decide_experiment(effect, roles=roles).iloc[0]
    print(
        f"{decided['treatment']}: {decided['decision']}",
        textwrap.fill(decided["reasons"], 76, subsequent_indent="    "),
        sep="\n    ",
        end="\n\n",
    )

    # 7. For whom? Beside the truth that only a generated log can show.
    segments = rd.compare_variants(users, {"ctr": compared["ctr"]}, by="segment", **options)
    found = pd.concat(
        [effect[effect["metric"] == "ctr"].assign(segment="all"), segments]
    ).set_index("segment")
    found["true_diff"] = (truth["B"] - truth["A"]).reindex(found.index)
    print(found[["diff", "ci_low", "ci_high", "true_diff", "verdict"]].round(5).to_string())
    print(f"ctr: {rd.experiments.segment_effects(segments)['verdict'].iloc[0]}\n")
    ctr = found.loc["all"]
    print(
        f"B is {ctr['verdict']} on clicks per impression, {ctr['diff']:+.4f} ({ctr['ci_low']:+.4f} "
        f"to {ctr['ci_high']:+.4f}); the truth is {ctr['true_diff']:+.4f}."
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
