"""Attribution, sessions and lists by plain loops over rows: slow, obvious, and never imported by
the package."""

from collections import defaultdict


def attributed(impressions, events, window, rule, skew=0, lists=(), named=()):
    """For each event, a dict of impression row -> share; an empty dict if it belongs to none.

    `impressions` and `events` are lists of (user, item, time). `lists` are those of the
    impressions, and `named` those that the events name, or None.
    """
    result, limits = [], (window, skew)
    for number, (user, item, time) in enumerate(events):
        mine = [
            (shown, row)
            for row, (who, what, shown) in enumerate(impressions)
            if (who, what) == (user, item)
        ]
        window, skew = limits
        if named and named[number] is not None:
            mine = [(shown, row) for shown, row in mine if lists[row] == named[number]]
            window, skew = None, 10**9
        before = [
            (shown, row)
            for shown, row in mine
            if shown <= time and (window is None or time - shown <= window)
        ]
        if not before and not any(shown <= time for shown, _ in mine):
            soon = sorted((shown, row) for shown, row in mine if time < shown <= time + skew)
            before = [one for one in soon if one[0] == soon[0][0]] if skew > 0 else []
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


def standing(rows):
    """For each row of (list, item, time, position), the first row of its item in its list."""
    by_pair = defaultdict(list)
    for row, (key, item, time, position) in enumerate(rows):
        by_pair[key, item].append((time, position, row))
    chosen = {pair: min(entries)[2] for pair, entries in by_pair.items()}
    return [chosen[key, item] for key, item, _, _ in rows]


GAINS = {"shown": 0.0, "clicked": 1.0, "bought": 3.0}


def tables(
    log,
    clicks,
    purchases,
    *,
    window=None,
    attribution="last",
    unattributed="count",
    skew=0,
    named_lists=(),
):
    """`true` and `pred` of a log by loops over dicts, and the counts of what became of the events.

    `named_lists` are the kinds of events that belong to the list of the key "session", which may be
    None.

    Rows of the log have user, session, item, time, position; events user, item, time and, of
    purchases, price. `true` is a dict (user, session, item) -> [relevance, clicks, purchases,
    value]; `pred` is a dict of the same keys -> (rank, position).
    """
    lists = [(row["user"], row["session"]) for row in log]
    impressions = [(row["user"], row["item"], row["time"]) for row in log]
    stands = standing(
        [(lists[i], row["item"], row["time"], row["position"]) for i, row in enumerate(log)],
    )

    def key(row):
        return (*lists[row], log[row]["item"])

    true = {key(row): [0.0, 0.0, 0.0, 0.0] for row in sorted(set(stands))}
    counts, left = {}, []
    for name, events in (("clicks", clicks), ("purchases", purchases)):
        named = [
            (e["user"], e["session"]) if e.get("session") is not None else None for e in events
        ]
        named = named if name in named_lists else [None] * len(events)
        moments = [(e["user"], e["item"], e["time"]) for e in events]
        found = attributed(impressions, moments, window, attribution, skew, lists, named)
        counts[name] = sum(map(bool, found))
        counts[name, "by_list"] = sum(
            bool(shares) and key is not None for shares, key in zip(found, named, strict=True)
        )
        counts[name, "unknown_list"] = sum(key is not None and key not in lists for key in named)
        for event, shares in zip(events, found, strict=True):
            for row, share in shares.items():
                _respond(true[key(stands[row])], name, event, share)
            if not shares:
                left.append((name, event))
    if unattributed == "true":
        more = {}
        for name, event in left:
            mine = [row for row in range(len(log)) if log[row]["user"] == event["user"]]
            begin = {}
            for row in mine:
                begin[lists[row]] = min(begin.get(lists[row], log[row]["time"]), log[row]["time"])
            if not begin:
                continue
            begun = [(start, one) for one, start in begin.items() if start <= event["time"]]
            # Lists that begin together: the last one by its label, or the first one by its label.
            chosen = (
                max(begun)[1] if begun else min((start, one) for one, start in begin.items())[1]
            )
            if not any(lists[row] == chosen and log[row]["item"] == event["item"] for row in mine):
                _respond(more.setdefault((*chosen, event["item"]), [0.0] * 4), name, event, 1.0)
        true |= more
    kept = sorted(set(stands))
    rank = ranks([(lists[row], log[row]["position"], log[row]["time"]) for row in kept])
    pred = {key(row): (rank[i], log[row]["position"]) for i, row in enumerate(kept)}
    return true, pred, counts


def _respond(entry, name, event, share):
    entry[0] = max(entry[0], GAINS["clicked" if name == "clicks" else "bought"])
    entry[1 if name == "clicks" else 2] += share
    if name == "purchases":
        entry[3] += share * event["price"]


def person_of(device, persons):
    """The person of a device: of the first row that names it, by time and then by row; else the
    device itself."""
    mine = [(time, row, person) for row, (one, person, time) in enumerate(persons) if one == device]
    return min(mine)[2] if mine else device


def refunded(purchases, refunds, amounts=True):
    """What is left of each purchase, and for each refund what it found (None: nothing) and what of
    it is left.

    Rows have user, item, order, time and price. Without amounts, all prices are 1.
    """
    price = [row["price"] if amounts else 1 for row in purchases]
    left = list(price)
    found = [None] * len(refunds)
    for number in sorted(range(len(refunds)), key=lambda i: (refunds[i]["time"], i)):
        refund = refunds[number]
        rest, met = refund["price"] if amounts else 1, False
        mine = [
            (purchase["time"], row)
            for row, purchase in enumerate(purchases)
            if all(purchase[key] == refund[key] for key in ("user", "item", "order"))
            and purchase["time"] <= refund["time"]
        ]
        for _, row in sorted(mine, reverse=True):
            if left[row] > 0 and (rest > 0 or not met):
                met = True
                part = min(rest, left[row])
                left[row], rest = left[row] - part, rest - part
                if rest == 0:
                    break
        found[number] = rest if met else None
    return left, found
