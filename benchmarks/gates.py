"""Wrong passes and power of `rd.gate` at the boundary, beside a plain t test and a fixed threshold;
repeated looks.

    python benchmarks/gates.py 4000       # runs per setting; about ten minutes

A population has a true mean change. A budget of exactly this change is just broken, so that at most
5 % of the runs may pass. Power is the share that passes if the budget is four standard errors
larger than the change.

    python benchmarks/gates.py 400 labels  # few labels of people and many cheap ones
    python benchmarks/gates.py 400 FOLDER  # the same on lists of MovieLens, beside a published gate

FOLDER is that of `docs/draw_movielens.py`. The published gate is that of the package
retrieval-eval-gate, if it is installed: its sequential test, which is given the budget, and its
rule "no significant paired drop", which has none.
"""

import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import recdf as rd
from recdf.stats.always_valid import STAKES, Change

RANKS = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 0, 0, 0])
SIZES = (30, 50, 100, 300, 1000, 3000)


def ndcg(rng, n):
    """Half of the lists differ a little, as those of two versions of a model do."""
    base = rng.beta(0.4, 1.6, n) * (rng.random(n) < 0.7)
    return np.clip(base + rng.normal(0, 0.12, n) * (rng.random(n) < 0.6) * (base > 0), 0, 1), base


def rare_losses(rng, n):
    """3 % of the lists lose all, .5 % win all."""
    base, u = (rng.random(n) < 0.5).astype(float), rng.random(n)
    return np.where(
        (u < 0.06) & (base == 1), 0.0, np.where((u < 0.01) & (base == 0), 1.0, base)
    ), base


def rare_hits(rng, n):
    """Hits in 2.5 % and in 3 % of the lists."""
    return (rng.random(n) < 0.025).astype(float), (rng.random(n) < 0.03).astype(float)


def reciprocal_rank(rng, n):
    """Half of the lists have the first hit at another rank."""
    base = rng.integers(0, 8, n)
    return RANKS[np.where(rng.random(n) < 0.5, base, rng.integers(0, 8, n))], RANKS[base]


def collapse(rng, n):
    """All lists differ a little; 2 % lose all they had, which many small samples do not hold."""
    base = 0.05 + 0.9 * rng.beta(2, 3, n)
    return np.where(rng.random(n) < 0.02, 0.0, base + rng.uniform(-0.02, 0.02, n)), base


def top_lists(rng, n):
    """Most lists have little and hardly change; of the few best, 30 % lose all."""
    base = np.where(rng.random(n) < 0.05, 1.0, 0.05)
    own = np.where(base < 1, base + rng.uniform(-0.05, 0.05, n), 1.0)
    return np.where((base == 1) & (rng.random(n) < 0.3), 0.0, own), base


def counts(rng, n):
    """Hits among ten, of which a fifth is lost and a few are new."""
    base = rng.binomial(10, 0.08, n)
    return (rng.binomial(base, 0.8) + rng.binomial(10 - base, 0.01)) / 10, base / 10


# Each population, the true means of candidate and baseline where they are known, and the bounds of
# the metric.
POPULATIONS = {
    "ndcg": (ndcg, None, (0.0, 1.0)),
    "rare losses": (rare_losses, (0.475, 0.5), (0.0, 1.0)),
    "rare hits": (rare_hits, (0.025, 0.03), (0.0, 1.0)),
    "reciprocal rank": (reciprocal_rank, (RANKS.mean(), RANKS.mean()), (0.0, 1.0)),
    "collapse": (collapse, (0.41 * 0.98, 0.41), (0.0, 1.0)),
    "top lists": (top_lists, (0.0825, 0.0975), (0.0, 1.0)),
    "counts": (counts, (0.0732, 0.08), (0.0, 1.0)),
}


def passes(own, base, allowed, values, relative=False):
    low, high = values
    ones = np.ones(len(own))
    found = Change(
        own - base,
        base if relative else ones,
        ones,
        high - low,
        values,
        False,
        relative,
        allowed,
        0.05,
    )
    return found.p_value(allowed, better=True) <= 0.05


def t_passes(d, allowed):
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (d.mean() - allowed) / (d.std(ddof=1) / np.sqrt(len(d)))
    return d.mean() > allowed if not d.std() > 0 else stats.t.sf(t, len(d) - 1) <= 0.05


def boundary(runs):
    print(
        "population        users | wrong passes %: gate, relative, t, fixed threshold; power %: "
        "gate, t"
    )
    for name, (draw, means, values) in POPULATIONS.items():
        own, base = draw(np.random.default_rng(99), 4_000_000)
        spread, level = (own - base).std(), base.mean() if means is None else means[1]
        change = (own - base).mean() if means is None else means[0] - means[1]
        for n in SIZES:
            rng, counts = np.random.default_rng([n, len(name)]), np.zeros(6)
            for _ in range(runs):
                own, base = draw(rng, n)
                d, far = own - base, change - 4 * spread / np.sqrt(n)
                counts += [
                    passes(own, base, change, values),
                    base.any() and passes(own, base, change / level, values, relative=True),
                    t_passes(d, change),
                    d.mean() > change,
                    passes(own, base, far, values),
                    t_passes(d, far),
                ]
            share = 100 * counts / runs
            print(f"{name:16} {n:6} | " + " ".join(f"{one:5.1f}" for one in share))


def looks(runs):
    """Looks after each list from the tenth on; both bounds, each at 2.5 %."""
    print("\nmissed in some look, %: a fixed 95 % interval, and the bounds of looks='any'")
    for n in (50, 300):
        rng, counts, i = np.random.default_rng(n), np.zeros(2), np.arange(10, n + 1)
        for _ in range(runs):
            own, base = reciprocal_rank(rng, n)
            d = own - base
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = np.cumsum(d)[9:] / i
                t = mean / np.sqrt((np.cumsum(d * d)[9:] / i - mean**2) / (i - 1))
            # The capital of each share after each list, as `log_capital_anytime` has it after the
            # last one.
            logs = [np.cumsum(np.log1p(STAKES[:, None] * sign * d), axis=1) for sign in (1, -1)]
            won = np.max([np.logaddexp.reduce(one)[9:] for one in logs], axis=0) - np.log(
                len(STAKES)
            )
            counts += [(np.abs(t) > stats.t.ppf(0.975, i - 1)).any(), (won >= np.log(40)).any()]
        print(f"{n:5} lists {100 * counts[0] / runs:6.1f} {100 * counts[1] / runs:6.1f}")


def pairs_of_movielens(folder):
    """Pairs of values per list: a worse model, the same lists, and a release that is empty for 2 %
    of the users."""
    page = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "draw_movielens.py"))
    past, later = page["split"](pd.read_parquet(Path(folder) / "ratings.parquet"))
    true, pred = later[later["rating"] >= page["LIKED"]], page["recommend"](past)
    found = rd.evaluate(true, pred, ["ndcg@10", "hitrate@10"], by="model").per_user.set_index(
        "user_id"
    )
    for metric in ("ndcg@10", "hitrate@10"):
        values = {
            model: rows[metric].sort_index().to_numpy() for model, rows in found.groupby("model")
        }
        yield f"{metric}, popularity", values["popularity"], values["itemknn"]
        broken = values["itemknn"].copy()
        broken[
            np.flatnonzero(broken > 0)[:: max(1, np.count_nonzero(broken) // (len(broken) // 50))]
        ] = 0
        noise = np.random.default_rng(0).uniform(-0.01, 0.01, len(broken)) * (metric == "ndcg@10")
        yield (
            f"{metric}, some lists empty",
            np.clip(broken + noise * (broken > 0), 0, 1),
            values["itemknn"],
        )


def published(own, base, allowed):
    """Whether the sequential test and the rule of no significant drop pass; None without the
    package."""
    try:
        from rag_eval_gate.sequential import SequentialGate
        from rag_eval_gate.stats import paired_permutation_test
    except ImportError:
        return None, None
    if len(own) > 1000:  # it is written in plain Python
        return None, None
    shares = ((own - base + 1) / 2).tolist()
    sequential = SequentialGate((allowed + 1) / 2).run(shares).passed
    if len(own) > 100:
        return sequential, None
    drop = paired_permutation_test(own, base, iters=200)
    return sequential, not (drop.significant and own.mean() < base.mean())


def sparse_losses(rng, n):
    """Half of the lists differ, and 40 % have no value."""
    base, other = (np.where(rng.random(n) < 0.6, rng.random(n), 0.0) for _ in range(2))
    return np.clip(np.where(rng.random(n) < 0.5, base, other) - 0.05 * (base > 0), 0, 1), base


def small_losses(rng, n):
    base = rng.beta(2, 3, n)
    return np.clip(base - 0.03 + rng.normal(0, 0.05, n), 0, 1), base


def labels(runs, many=3000):
    """Wrong passes with few labels of people and many cheap ones, and how often both count."""
    print("\nlosses, judge, judged lists | wrong passes %, both kinds of labels used %")
    for draw in (small_losses, sparse_losses, collapse):
        drawn = (draw(np.random.default_rng(10**6 + i), many) for i in range(300))
        allowed = float(np.mean([(own - base).mean() for own, base in drawn]))
        for judge in ("good", "biased", "useless"):
            for n in (30, 100, 300):
                rows = []
                for seed in range(runs):
                    rng = np.random.default_rng([seed, n])
                    truth = draw(rng, many)
                    if judge == "good":
                        seen = [one + rng.normal(0, 0.05, many) for one in truth]
                    elif judge == "biased":
                        seen = [0.5 * truth[0] + 0.4, 0.5 * truth[1]]
                    else:
                        seen = rng.random((2, many))
                    at = np.sort(rng.choice(many, n, replace=False))
                    people = [pd.DataFrame({"user_id": at, "m": one[at]}) for one in truth]
                    cheap = [pd.DataFrame({"user_id": np.arange(many), "m": one}) for one in seen]
                    gate = rd.gate(
                        *people,
                        {"m": allowed},
                        cheap=cheap,
                        bounds={"m": (0, 1)},
                        larger_is_better="m",
                    )
                    row = gate.table.iloc[0]
                    rows.append([row["effect"].startswith("pass"), row["labels"] == "both"])
                passed, both = 100 * np.mean(rows, axis=0)
                name = draw.__name__
                print(f"{name:13} {judge:8} {n:4} | {passed:5.1f} {both:5.1f}", flush=True)


def real(runs, folder):
    print(
        "\nlists | wrong passes %, then power %: gate, t, fixed threshold, sequential, no "
        "significant drop"
    )
    for name, own_all, base_all in pairs_of_movielens(folder):
        change, spread = (own_all - base_all).mean(), (own_all - base_all).std()
        print(f"{name}: change {change:.4f}, standard deviation {spread:.3f}, {len(own_all)} lists")
        for n in (30, 100, 300, 1000, 10_000, 100_000):
            rng, rows, some = np.random.default_rng(n), [], runs if n <= 10_000 else runs // 2
            for _ in range(some):
                drawn = rng.integers(0, len(own_all), n)
                own, base = own_all[drawn], base_all[drawn]
                for allowed in (change, change - 4 * spread / np.sqrt(n)):
                    fixed = (own - base).mean() > allowed
                    gate = passes(own, base, allowed, (0.0, 1.0))
                    rows.append(
                        [gate, t_passes(own - base, allowed), fixed, *published(own, base, allowed)]
                    )
            shares = [100 * pd.DataFrame(rows[start::2]).astype(float).mean() for start in (0, 1)]
            texts = [" ".join(f"{one:5.1f}" for one in part) for part in shares]
            print(f"{n:7} | {' | '.join(texts)} ({some} runs)", flush=True)


if __name__ == "__main__":
    runs_of = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    if sys.argv[2:] == ["labels"]:
        labels(runs_of)
    elif len(sys.argv) > 2:
        real(runs_of, sys.argv[2])
    else:
        boundary(runs_of)
        looks(runs_of)
