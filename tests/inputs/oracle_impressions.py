"""Attribution, sessions and lists by plain loops over rows: slow, obvious, and never imported by the package."""

from collections import defaultdict


def attributed(impressions, events, window, rule, skew=0):
    """For each event, a dict of impression row -> share; an empty dict if it belongs to none.

    `impressions` and `events` are lists of (user, item, time).
    """
    result = []
    for user, item, time in events:
        mine = [(shown, row) for row, (who, what, shown) in enumerate(impressions) if (who, what) == (user, item)]
        before = [(shown, row) for shown, row in mine if shown <= time and (window is None or time - shown <= window)]
        if not before and not any(shown <= time for shown, _ in mine):
            soon = sorted((shown, row) for shown, row in mine if time < shown <= time + skew)
            before = soon[:1] if skew > 0 else []
        before.sort()
        if not before:
            result.append({})
        elif rule == "last":
            result.append({before[-1][1]: 1.0})
        elif rule == "first":
            result.append({before[0][1]: 1.0})
        else:
            result.append({row: 1 / len(before) for _, row in before})
    return result


def sessions(rows, gap):
    """Session number of each row of (user, time), from 1 for each user."""
    result = [0] * len(rows)
    by_user = defaultdict(list)
    for row, (user, time) in enumerate(rows):
        by_user[user].append((time, row))
    for visits in by_user.values():
        visits.sort()
        number, before = 0, None
        for time, row in visits:
            if before is None or time - before > gap:
                number += 1
            result[row], before = number, time
    return result


def ranks(rows):
    """Rank of each row of (list, position, time) within its list."""
    result = [0] * len(rows)
    by_list = defaultdict(list)
    for row, (key, position, time) in enumerate(rows):
        by_list[key].append((position, time, row))
    for entries in by_list.values():
        for rank, (_, _, row) in enumerate(sorted(entries), start=1):
            result[row] = rank
    return result


def standing(rows, repeats):
    """For each row of (list, item, time, position), the row that stands for its item in its list."""
    by_pair = defaultdict(list)
    for row, (key, item, time, position) in enumerate(rows):
        by_pair[key, item].append((time, position, row))
    if repeats == "each":
        return list(range(len(rows)))
    chosen = {pair: min(e)[2] if repeats == "first" else max(e)[2] for pair, e in by_pair.items()}
    return [chosen[key, item] for key, item, _, _ in rows]
