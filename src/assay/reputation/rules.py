"""Computes a value, expensive to buy, from votes and payments. Pure and deterministic.

Groups payers that share a source of funds and cannot be distinguished.

    weight of a payer cluster = matured money, at most FULL dollars' worth
                                x spread over unrelated sellers x decay
    value = weighted mean of the clusters' ratings        confidence = mass / (mass + PRIOR_MASS)

This is a maximum flow of depth three (source of funds -> cluster -> agent), so that it is a sum of
minima: money bounds what any number of accounts can add, and one cluster bounds what any amount of
money can. Every rule here is continuous in the weights and moves by a bounded amount per unit of
them, so a voter with little weight changes little, whatever the others have said.
Source: Tran et al. 2009 (SumUp: votes bounded by a flow); ADR 0028; docs/reputation.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.common.json import JsonObject
from assay.common.numbers import MICRO
from assay.reputation.model import Payer, Reputation, Vote


def groups_of(payers: Mapping[str, Payer]) -> list[list[str]]:
    """Group payers and their sources by union-find; members keep their order."""
    parent: dict[str, str] = {}

    def root(one: str) -> str:
        parent.setdefault(one, one)
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for payer in payers.values():
        for source in payer.sources:
            first, second = sorted((root(payer.address), root(source)))
            parent[second] = first
    groups: dict[str, list[str]] = {}
    for address in sorted(payers):
        groups.setdefault(root(address), []).append(address)
    return list(groups.values())


NEUTRAL = 50.0

FULL = 2 * MICRO
"""Net spending that gives a cluster its full weight of 1."""

THRESHOLD = MICRO
THRESHOLD_PRICES = 10
"""A voter that spent less than this, or less than this many usual prices (the lower), is not a
customer."""

PRICE_RANK = 10
"""The usual price is that of the payer one tenth up from the cheapest. A large payer can raise the
median of few payments, and with it the threshold for customers; no payer can raise this one
alone."""

MATURE_DAYS = 30
"""Days after which money counts in full as not returned; before that, in proportion."""

ALONE = 0.5
"""Weight of a cluster that pays no other seller; with as much spent elsewhere it is 1."""

HALF_LIFE_DAYS = 180
"""Half-life of a cluster's weight, from its last payment or vote."""

SILENT_RATING = 75.0
SILENT_SHARE = 0.5
SILENT_DAYS = 2
"""Customers that paid on this many days without a vote count as mild praise at half their
weight."""

OTHERS_EACH, OTHERS_MOST = 0.05, 3.0
"""Weight of a voter without proven payments, and of all of them together: less than 3 points."""

PRIOR_MASS = 50.0
"""Mass at which confidence is one half."""

CHANGE_WINDOWS = (30, 90)
CHANGE_DAY_MOST = 7.5
CHANGE_MASS = 15.0
CHANGE_SHARE = 0.25
CHANGE_DROP, CHANGE_RANGE = 15.0, 30.0
"""A change point: what customers said inside a window, where a day counts at most
`CHANGE_DAY_MOST`, so that it takes three of them, against what was said before. From `CHANGE_MASS`
on, every unit of the newer takes up to `CHANGE_SHARE` of a unit of the older away, in either
direction, growing with the difference between both from `CHANGE_DROP` points on."""

CAP_PER_UNIT = 0.25
CAP_SHOWN = 95.0
"""Points by which the ceiling of the whole score falls per unit of net bad weight of customers."""

_HALVES_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Indistinguishable payers, and their weight. `rating` is None without an opinion."""

    members: tuple[str, ...]
    net: int
    weight: float
    rating: float | None
    day: int | None
    """Day of the newest vote."""
    is_customer: bool


@dataclass(frozen=True, slots=True)
class ReputationValue:
    """The result of feedback and payments."""

    value: float
    confidence: float
    mass: float
    clusters: tuple[Cluster, ...]
    others: int
    """Number of voters without proven payments."""
    own: int
    """Payers of the agent's own side, which do not count."""
    changed: bool
    """Whether customers changed their opinion, so that earlier votes count less."""
    cap: float | None


def assess(seen: Reputation) -> ReputationValue | None:
    """Return the result; None if neither a customer nor a voter has an opinion.

    An address that paid only resellers, or nothing, counts as a voter without payments.
    """
    paying_here = tuple(p for p in seen.payers if p.spent or p.is_own)
    seen = replace(seen, payers=paying_here)
    clusters = clusters_of(seen)
    own = frozenset(p.address for p in seen.payers if p.is_own)
    paying = frozenset(one for c in clusters if c.is_customer for one in c.members)
    others = sorted(v.rating for v in seen.votes if v.address not in paying | own)
    rated = [c for c in clusters if c.rating is not None and c.weight > 0]
    faded, changed = _after_change(rated, seen.day)
    points = sum(_points(c) for c in faded)
    mass = sum(c.weight for c in faded)
    if others:
        crowd = min(OTHERS_MOST, OTHERS_EACH * len(others))
        points += crowd * (sum(others) / len(others) - NEUTRAL)
        mass += crowd
    if mass <= 0:
        return None
    return ReputationValue(
        value=round(min(100.0, max(0.0, NEUTRAL + points / mass)), 2),
        confidence=round(mass / (mass + PRIOR_MASS), 4),
        mass=round(mass, 4),
        clusters=clusters,
        others=len(others),
        own=len(own),
        changed=changed,
        cap=_cap(rated),
    )


def customers(seen: Reputation, *, is_main: bool) -> JsonObject:
    """Return the `customers` member of the evidence, which rungs 3 and 4 of the ladder require.

    A cluster is independent only as far as it lost money at unrelated sellers too: paying here
    costs the agent's own side nothing, because it receives the payment. `unproven` are clusters
    that lost less there than a customer must spend.
    """
    proven = tuple(p for p in seen.payers if p.counts_as_customer and not p.is_pending)
    by_address = {p.address: p for p in proven}
    paid = {c: _paid(c, by_address) for c in clusters_of(replace(seen, payers=proven))}
    least = threshold(seen.price) if seen.price else THRESHOLD
    paying = {c: usd for c, usd in paid.items() if c.is_customer or usd >= least}
    lost = {
        c: min(usd, sum(by_address[one].elsewhere for one in c.members))
        for c, usd in paying.items()
    }
    found = {c: usd for c, usd in lost.items() if usd >= least}
    days = {day for c in found for one in c.members for day in _days(by_address[one])}
    total = sum(found.values())
    return {
        "clusters": len(found),
        "unproven": len(paying) - len(found),
        "days": len(days),
        "largestShare": round(max(found.values(), default=0) / total, 4) if total else 0.0,
        "usdNet": f"{total // MICRO}.{total % MICRO:06d}",
        "sinceDays": seen.day - min(days) if days else 0,
        "network": "main" if is_main else "test",
    }


def _paid(cluster: Cluster, by_address: Mapping[str, Payer]) -> int:
    """Return what a cluster paid, including at most `FULL` to resellers of the agent.

    The limit keeps resellers that pay themselves from becoming a rival's largest customer.
    """
    others = sum(sum(by_address[one].resold.values()) for one in cluster.members)
    return cluster.net + min(FULL, others)


def _days(payer: Payer) -> Sequence[int]:
    return [*payer.spent, *payer.resold]


def usual_price(payments: Mapping[str, Sequence[int]]) -> int:
    """Return a low rank of the payers' median payments."""
    each = sorted(sorted(paid)[(len(paid) - 1) // 2] for paid in payments.values() if paid)
    return each[(len(each) - 1) // PRICE_RANK] if each else 0


def threshold(price: int) -> int:
    """Return the net amount that a voter must have spent to be a customer."""
    return min(THRESHOLD, max(1, THRESHOLD_PRICES * price))


def clusters_of(seen: Reputation) -> tuple[Cluster, ...]:
    """Group payers that share a source of funds; leave out those of the agent's side."""
    by_address = {p.address: p for p in seen.payers if not p.is_own}
    votes = {v.address: v for v in seen.votes}
    made = [
        _cluster([by_address[one] for one in group], votes, seen) for group in groups_of(by_address)
    ]
    return tuple(sorted(made, key=lambda c: c.members))


def decay(days: float) -> float:
    """Return one half every `HALF_LIFE_DAYS`, interpolated linearly in between."""
    halves, rest = divmod(min(max(0.0, days) / HALF_LIFE_DAYS, _HALVES_MAX), 1.0)
    return 0.5 ** int(halves) * (1.0 - rest / 2)


def _cluster(members: Sequence[Payer], votes: Mapping[str, Vote], seen: Reputation) -> Cluster:
    net = sum(p.net for p in members)
    cast = [(votes[p.address], p.net) for p in members if p.address in votes and p.net]
    last = max((day for p in members for day in p.spent), default=seen.day)
    newest = max((v.day for v, _ in cast if v.day is not None), default=None)
    weight = _weight(members, net, seen.day) * decay(seen.day - max(last, newest or last))
    rating = _mean(cast)
    if rating is None and _came_back(members):
        rating, weight = SILENT_RATING, weight * SILENT_SHARE
    if any(p.is_pending for p in members) and (rating is None or rating > NEUTRAL):
        weight = 0.0
    is_customer = net >= threshold(seen.price)
    return Cluster(
        members=tuple(p.address for p in members),
        net=net,
        weight=round(weight, 9) if is_customer else 0.0,
        rating=rating,
        day=newest,
        is_customer=is_customer,
    )


def _weight(members: Sequence[Payer], net: int, day: int) -> float:
    """Return the weight of the oldest money up to `FULL`, by maturity and by spending elsewhere."""
    if net <= 0:
        return 0.0
    paid = sorted(
        (at, amount * p.net / sum(p.spent.values()))
        for p in members
        for at, amount in p.spent.items()
        if amount and p.net
    )
    left, matured = float(FULL), 0.0
    for at, amount in paid:
        taken = min(left, amount)
        matured += taken * min(1.0, max(0, day - at) / MATURE_DAYS)
        left -= taken
    spread = min(1.0, sum(p.elsewhere for p in members) / min(net, FULL))
    return matured / FULL * (ALONE + (1.0 - ALONE) * spread)


def _mean(cast: Sequence[tuple[Vote, int]]) -> float | None:
    """Return the mean of the members' votes, weighted by spending."""
    total = sum(spent for _, spent in cast)
    return sum(v.rating * spent for v, spent in cast) / total if total else None


def _came_back(members: Sequence[Payer]) -> bool:
    return any(p.is_charge and len(p.spent) >= SILENT_DAYS for p in members)


def _points(cluster: Cluster) -> float:
    return cluster.weight * ((cluster.rating or 0.0) - NEUTRAL)


def _cap(rated: Sequence[Cluster]) -> float | None:
    """Return the ceiling of the whole score set by customers; None if it is above everything."""
    bad = -sum(_points(c) for c in rated) / NEUTRAL
    cap = round(100.0 - CAP_PER_UNIT * max(0.0, bad), 2)
    return cap if cap < CAP_SHOWN else None


def _after_change(rated: Sequence[Cluster], day: int) -> tuple[list[Cluster], bool]:
    """Return the clusters, with votes before a change point counting less."""
    shares = [1.0] * len(rated)
    for window in CHANGE_WINDOWS:
        older = [n for n, c in enumerate(rated) if c.day is None or c.day <= day - window]
        newer = [c for c in rated if c.day is not None and c.day > day - window]
        before = sum(rated[n].weight for n in older)
        if not newer or not older:
            continue
        taken = _taken(newer, [rated[n] for n in older])
        for n in older:
            shares[n] -= min(1.0, taken / before)
    faded = [replace(c, weight=c.weight * max(0.0, s)) for c, s in zip(rated, shares, strict=True)]
    return faded, any(share < 1.0 for share in shares)


def _taken(newer: Sequence[Cluster], older: Sequence[Cluster]) -> float:
    """Return how much weight the newer votes take from the older ones."""
    by_day: dict[int, float] = {}
    for c in newer:
        by_day[c.day or 0] = by_day.get(c.day or 0, 0.0) + c.weight
    mass = sum(min(CHANGE_DAY_MOST, by_day[day]) for day in sorted(by_day))
    apart = abs(_level(newer) - _level(older))
    ramp = min(1.0, max(0.0, (apart - CHANGE_DROP) / CHANGE_RANGE))
    return CHANGE_SHARE * max(0.0, mass - CHANGE_MASS) * ramp


def _level(clusters: Sequence[Cluster]) -> float:
    return sum(_points(c) for c in clusters) / sum(c.weight for c in clusters)
