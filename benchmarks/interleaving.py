"""How many users interleaving saves beside an A/B test on the same traffic: python
benchmarks/interleaving.py

Users differ in how much they click. Recommender b is better than a: it puts a relevant item, which
a has at rank 4, at rank 2. In the A/B test, half of the users see the lists of a and half those of
b. In interleaving, all users see lists that are mixed from both. Each needs so many users that it
finds the difference in four experiments out of five.
"""

import numpy as np
import pandas as pd

import recdf as rd

N, K, ITEMS, RUNS = 20_000, 10, 40, 300


def lists(rng):
    """Lists of two recommenders: the same items, of which one relevant one stands two ranks higher
    in b."""
    items = np.argsort(rng.random((N, ITEMS)), axis=1)[:, : K + 2]
    a = items.copy()
    b = items.copy()
    b[:, 1], b[:, 2:4] = items[:, 3], items[:, 1:3]
    swapped = rng.random((N, K + 2)).argsort(axis=1)[
        :, :2
    ]  # two recommenders never agree on the rest
    rows = np.arange(N)
    far = swapped > 3
    one, two = np.where(far[:, 0], swapped[:, 0], K), np.where(far[:, 1], swapped[:, 1], K + 1)
    b[rows, one], b[rows, two] = b[rows, two], b[rows, one]
    relevant = items[:, 3]
    return [frame_of(own[:, :K]) for own in (a, b)], relevant


def frame_of(matrix):
    return pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(N), K),
            "item_id": matrix.ravel(),
            "rank": np.tile(np.arange(1, K + 1), N),
        }
    )


def clicked(shown, activity, relevant, rng):
    """Rows that were clicked: a user's activity, times the position, times whether the item is
    relevant."""
    user = shown["user_id"].to_numpy()
    liked = np.where(shown["item_id"].to_numpy() == relevant[user], 0.5, 0.1)
    return shown[
        rng.random(len(shown)) < np.minimum(activity[user] * liked / np.log2(shown["rank"] + 1), 1)
    ]


def main() -> None:
    for spread in (0.5, 1.0, 2.0):
        rng = np.random.default_rng(7)
        (a, b), relevant = lists(rng)
        activity = rng.gamma(1 / spread, spread, N)
        users = pd.DataFrame({"user_id": np.arange(N), "variant": rng.choice(["A", "B"], N)})
        in_a = users["variant"].to_numpy() == "A"
        shown = pd.concat([a[in_a[a["user_id"]]], b[~in_a[b["user_id"]]]])
        n = clicked(shown, activity, relevant, rng)["user_id"].value_counts()
        users["clicks"] = users["user_id"].map(n).fillna(0.0)
        row = rd.compare_variants(users, "clicks", control="A", details=True).iloc[0]
        both = [[len(clicked(one, activity, relevant, rng)) for _ in range(20)] for one in (a, b)]
        true = (np.mean(both[1]) - np.mean(both[0])) / N
        needed = N * (row["mde"] / true) ** 2
        gain = f"{true:.4f} clicks per user more ({true * N / np.mean(both[0]):+.1%})"
        print(f"activity: mean 1, variance {spread:g}; b gets {gain}")
        print(
            f"  A/B test: {needed:,.0f} users, {found_in(users, int(needed), rng):.0%} of such "
            "experiments find it"
        )
        for method in ("team_draft", "optimized"):
            log = rd.experiments.interleave(a, b, K, method=method)
            clicks = clicked(log, activity, relevant, rng)
            n = int(
                rd.experiments.compare_interleaved(log, clicks, details=True)["n_needed"].iloc[0]
            )
            share = mixed_found_in(log, clicks, n, rng)
            print(f"  {method}: {n:,} users, {needed / n:.0f} times fewer, {share:.0%} find it")


def found_in(users, n, rng):
    """Share of experiments with n of these users that find the difference."""
    found = []
    for _ in range(RUNS):
        some = users.iloc[rng.integers(0, N, n)].assign(user_id=np.arange(n))
        found.append(
            (rd.compare_variants(some, "clicks", control="A", details=True)["p_value"] < 0.05).iloc[
                0
            ]
        )
    return np.mean(found)


def mixed_found_in(log, clicks, n, rng):
    """The same for interleaved lists."""
    found = []
    for _ in range(RUNS):
        some = rng.choice(N, n, replace=False)
        own = [one[one["user_id"].isin(some)] for one in (log, clicks)]
        found.append(
            (rd.experiments.compare_interleaved(*own, details=True)["p_value"] < 0.05).iloc[0]
        )
    return np.mean(found)


if __name__ == "__main__":
    main()
