"""Oracles of the user models: one step from rank to rank, by the chance to go on."""

import math

from oracles.lists import ranks
from oracles.numbers import NAN
from oracles.ranking import weight
from oracles.registry import oracle

UP_TO_K = ("precision", "sdcg", "bpm", "nerr8", "nerr9", "set")


def chance(model, i, share, so_far, one, p, T, beta):
    """C(i): the chance to go on from rank i."""
    if model in UP_TO_K and i >= one.k:
        return 0.0
    insq = ((i + 2 * T - 1) / (i + 2 * T)) ** 2
    left = i + 2 * T - so_far
    match model:
        case "rbp" | "npv":
            return p
        case "precision":
            return 1.0
        case "sdcg":
            return math.log2(i + 1) / math.log2(i + 2)
        case "insq":
            return insq
        case "inst":
            return ((left - 1) / left) ** 2
        case "bpm":
            return 1.0 if so_far < T - 1e-12 else 0.0
        case "nerr8":
            return 1 - share
        case "nerr9":
            return (1 - share) * i / (i + 1)
        case "nerr10":
            return p * (1 - share)
        case "nerr11":
            return (1 - share) * insq
        case "set":
            return ((i + 2) ** beta - (i + 1) ** beta) / ((i + 1) ** beta - i**beta)
    raise ValueError(model)


def seen_at(model, shares, costs, one, p, T, beta, halflife, length, weights):
    """V of every rank, or numbers in proportion to W for models without chances; and of the rank
    after them."""
    if model == "weights":
        return [weight(i, weights, 2) if i <= one.m else 0.0 for i in range(1, len(shares) + 1)] + [
            0.0
        ]
    if model in ("tbg", "umeasure"):
        times = [sum(costs[:i]) for i in range(len(shares) + 1)]
        return [2 ** (-t / halflife) if model == "tbg" else max(0.0, 1 - t / length) for t in times]
    found, so_far = [1.0], 0.0
    for i, share in enumerate(shares, start=1):
        so_far += share
        found.append(found[-1] * chance(model, i, share, so_far, one, p, T, beta))
    return found


def mean_gain(seen, shares):
    """Σ V γ / Σ V."""
    return sum(v * share for v, share in zip(seen, shares, strict=False)) / sum(seen[:-1])


@oracle
def user_model(
    one,
    *,
    model="rbp",
    measure="utility",
    p=None,
    rate=0.25,
    T=1.0,
    beta=0.5,
    halflife=224.0,
    length=1000.0,
    weights="log",
    gain="linear",
    max_gain=None,
    depth=1000,
    cost_col=None,
):
    """Walk down the ranks 1 to depth; after the list all gains are 0 and all costs 1."""
    p = 1 / (1 + rate) if model == "npv" else p or (0.9 if model == "nerr10" else 0.8)
    top = max_gain or one.largest_gain or 1.0
    items = one.ranked[:depth]
    behind = [0.0] * (depth - len(items))
    shares = [(float(s.hit) if gain == "binary" else s.gain / top) for s in items] + behind
    costs = [1.0 if cost_col is None else one.world.items[s.item][cost_col] for s in items] + [
        1.0
    ] * len(behind)
    own = (costs, one, p, T, beta, halflife, length, weights)
    seen = seen_at(model, shares, *own)
    if measure == "items":
        return sum(seen[:-1])
    if measure == "total":
        so_far = [sum(shares[:i]) for i in range(1, depth + 1)]
        found = sum((seen[i] - seen[i + 1]) * so_far[i] for i in range(depth))
    else:
        found = mean_gain(seen, shares) if sum(seen[:-1]) else 0.0
    if measure == "residual":
        judged = [s.judged for s in items] + [False] * len(behind)
        best = [share if known else 1.0 for share, known in zip(shares, judged, strict=True)]
        seen = seen_at(model, best, *own)
        return (mean_gain(seen, best) if sum(seen[:-1]) else 1.0) - found
    return found if one.n else NAN


@oracle
def rbp_residual(one, *, p=0.8, beyond="always"):
    """(1 − p) Σ p^(i−1) over shown ranks that are not judged, and p^m for all ranks after them."""
    if beyond == "unjudged" and one.m and all(s.judged for _, s in ranks(one)):
        return 0.0
    return (1 - p) * sum(p ** (i - 1) for i, s in ranks(one) if not s.judged) + p**one.m
