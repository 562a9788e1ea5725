"""Print the table of history.md, on how soon a change is found: python docs/simulate_history.py"""

import numpy as np

from recdf.stats.change_points import changes_of_level

RUNS, BEFORE, AFTER, WATCHED = 200, 45, 45, 4


def main() -> None:
    rng, day = np.random.default_rng(0), np.arange(BEFORE + AFTER) % 7
    print(
        "| change | found after (median) | nine of ten found within | found within a week "
        "|\n|---|---|---|---|"
    )
    for size in (2.0, 2.7, 3.5):
        nights = []
        for _ in range(RUNS):
            values = rng.normal(size=BEFORE + AFTER)
            values[BEFORE:] += size
            found, _ = changes_of_level(values, day, 0.05 / WATCHED)
            nights.append(found[0].found - BEFORE + 1 if found else np.inf)
        median, most = np.quantile(nights, [0.5, 0.9], method="inverted_cdf")
        print(
            f"| {size:g} | {median:g} nights | {most:g} nights | "
            f"{np.mean(np.array(nights) <= 7):.0%} |"
        )
    year = np.arange(365) % 7
    false = np.mean(
        [bool(changes_of_level(rng.normal(size=365), year, 0.05)[0]) for _ in range(RUNS)]
    )
    print(f"years without a change and with an alarm: {false:.1%}")


if __name__ == "__main__":
    main()
