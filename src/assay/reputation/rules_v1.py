"""Rules 1 of the 8004 signal, for evidence that was made under them. Pure, and never changed.

Evaluations from before votes counted by money (evidence without `rules`) are checked and replayed
with these rules: the same evidence gives the value, confidence and sentences it was graded with.
They collect no new evidence. ADR 0028.

Sources: feedback.md#manipulation; Kish 1965 (effective sample size); Kamvar et al. 2003
(EigenTrust: a rating weighs as much as its reviewer's trust); Viswanath et al. 2010 (sybil defences
find communities).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.common.json import JsonObject, JsonValue, is_array, is_object

DAY_S = 86_400
HALF_LIFE_DAYS = 90
"""Source: feedback.md#manipulation."""

REVIEWER_WEIGHT_MIN = 0.02
"""Weight of a reviewer of whom only the address is known."""

TRANSACTIONS_FROM, TRANSACTIONS_FULL = 5, 100
"""Transactions an account must have sent for a third of the weight: none below the first number,
all of it at the second."""

AGE_FULL_DAYS = 30
"""Days since its first feedback to any agent for another third."""

OTHERS_FULL = 3
"""Other agents it must have rated for the last third."""

NO_HISTORY = 0.25
"""Reviewers below this weight cannot be distinguished, so all of them form one
cluster."""

BURST_GAP_S = 600
BURST_MIN = 5
BURST_WEIGHT = 0.6
"""Reviewers of at most this weight whose feedback came in a burst, each within ten minutes of the
one before, at least five of them: one cluster."""

RING_MIN = 3
SAME_SET_MIN = 3
SAME_SET_SHARE = 0.6
SETS_COMPARED = 100
"""Reviewers that rated three or more other agents and share three fifths of them: one cluster. At
most this many different sets are compared with each other."""

RECIPROCAL = 0.1
"""Factor for a reviewer whose own agents this agent's owner rated."""

HALF_SURE_AT = 3.0
"""Mass at which confidence is one half: three reviewers of full weight, this week."""

RECENT_MASS = 6.0
RECENT_DROP = 15.0
"""The newest reviewers that together have this mass decide for all, if most of them are this many
points below the mean of those before: an agent that turns bad does not keep its past rating."""

_UNKNOWN_DECAY = 0.5
_HALVES_MAX = 60.0


@dataclass(frozen=True, slots=True)
class ReviewerRating:
    """One reviewer: the latest rating, and what is known of the account.

    None for unknown values. Times are unix seconds.
    """

    address: str
    value: float
    given_s: int | None
    first_s: int | None
    """Time of its first feedback to any agent."""
    transactions: int | None
    rated: frozenset[str] | None
    """The other agents it rated."""
    relation: str | None
    """`self` or `reciprocal`."""


@dataclass(frozen=True, slots=True)
class WeightedRating:
    """A rating and its weight; `cluster` names the group that its reviewer belongs to."""

    rating: ReviewerRating
    reviewer_weight: float
    weight: float
    cluster: str | None


@dataclass(frozen=True, slots=True)
class ReputationResult:
    """The result of all feedback. `mass` is the effective number of ratings."""

    value: float
    confidence: float
    mass: float
    ratings: tuple[WeightedRating, ...]
    clusters: Mapping[str, int]
    """Cluster sizes by name."""
    own: int
    reciprocal: int
    betrayed: bool
    unknown: int
    """Number of reviewers about whom nothing could be found."""


def judge(
    ratings: Sequence[ReviewerRating], as_of_s: int, since_s: int | None
) -> ReputationResult | None:
    """Return the result at a time; None without any rating that counts.

    `since_s`: times of feedback are known from then on; an entry without a time is older.
    """
    counted = sorted((v for v in ratings if v.relation != "self"), key=lambda v: v.address)
    if not counted:
        return None
    weights = {v.address: _reviewer_weight(v, as_of_s) for v in counted}
    cluster_of = _clusters(counted, weights)
    sizes: dict[str, int] = {}
    for name in cluster_of.values():
        sizes[name] = sizes.get(name, 0) + 1
    weighted = tuple(
        _weigh(rating, weights, cluster_of.get(rating.address), sizes, as_of_s, since_s)
        for rating in counted
    )
    total = sum(w.weight for w in weighted)
    mass = min(total, total * total / sum(w.weight * w.weight for w in weighted))
    value, betrayed = _value(weighted, total)
    return ReputationResult(
        value=round(value, 2),
        confidence=round(mass / (mass + HALF_SURE_AT), 4),
        mass=round(mass, 4),
        ratings=weighted,
        clusters=sizes,
        own=len(ratings) - len(counted),
        reciprocal=sum(v.relation == "reciprocal" for v in counted),
        betrayed=betrayed,
        unknown=sum(v.transactions is None and v.first_s is None for v in counted),
    )


def _reviewer_weight(rating: ReviewerRating, as_of_s: int) -> float:
    """Return a reviewer's weight, `REVIEWER_WEIGHT_MIN` to 1: a third for each of the parts."""
    sent = rating.transactions or 0
    history = (sent - TRANSACTIONS_FROM) / (TRANSACTIONS_FULL - TRANSACTIONS_FROM)
    age_s = as_of_s - rating.first_s if rating.first_s is not None else 0
    others = len(rating.rated or ())
    parts = (history, age_s / (AGE_FULL_DAYS * DAY_S), others / OTHERS_FULL)
    share = (1.0 - REVIEWER_WEIGHT_MIN) / len(parts)
    return REVIEWER_WEIGHT_MIN + sum(share * min(1.0, max(0.0, part)) for part in parts)


def _decay(age_s: float) -> float:
    """Return one half every `HALF_LIFE_DAYS`, interpolated linearly in between."""
    halves, rest = divmod(min(max(0.0, age_s) / (HALF_LIFE_DAYS * DAY_S), _HALVES_MAX), 1.0)
    return 0.5 ** int(halves) * (1.0 - rest / 2)


@lru_cache(maxsize=4096)
def _voices_of_cluster(size: int) -> float:
    """Return the weight of a cluster: 1 + 1/2 + ... + 1/n, about 0.58 + ln n."""
    return sum(1.0 / k for k in range(size, 0, -1))


def _weigh(
    rating: ReviewerRating,
    weights: Mapping[str, float],
    cluster: str | None,
    sizes: Mapping[str, int],
    as_of_s: int,
    since_s: int | None,
) -> WeightedRating:
    rank = weights[rating.address]
    weight = rank * _recency(rating, as_of_s, since_s)
    if rating.relation == "reciprocal":
        weight *= RECIPROCAL
    if cluster is not None:
        weight *= _voices_of_cluster(sizes[cluster]) / sizes[cluster]
    return WeightedRating(rating, rank, weight, cluster)


def _recency(rating: ReviewerRating, as_of_s: int, since_s: int | None) -> float:
    given_s = rating.given_s if rating.given_s is not None else since_s
    return _UNKNOWN_DECAY if given_s is None else _decay(as_of_s - given_s)


def _clusters(ratings: Sequence[ReviewerRating], weights: Mapping[str, float]) -> dict[str, str]:
    """Return the cluster of each clustered reviewer; the first match, strongest suspicion first."""
    found: dict[str, str] = {}
    for rating in ratings:
        if weights[rating.address] < NO_HISTORY:
            found[rating.address] = "no history"
    rest = [v for v in ratings if v.address not in found]
    for number, ring in enumerate(_rings(rest), 1):
        found.update(dict.fromkeys(ring, f"ring {number}"))
    rest = [v for v in rest if v.address not in found and weights[v.address] <= BURST_WEIGHT]
    for number, burst in enumerate(_bursts(rest), 1):
        found.update(dict.fromkeys(burst, f"burst {number}"))
    return found


def _rings(ratings: Sequence[ReviewerRating]) -> list[list[str]]:
    """Return groups that rated the same other agents."""
    by_set: dict[frozenset[str], list[str]] = {}
    for rating in ratings:
        if rating.rated is not None and len(rating.rated) >= SAME_SET_MIN:
            by_set.setdefault(rating.rated, []).append(rating.address)
    # The sets most reviewers share first: rings look like that.
    sets = sorted(by_set, key=lambda s: (-len(by_set[s]), sorted(s)))
    rings: list[tuple[frozenset[str], list[str]]] = []
    for one in sets:
        near = (ring for ring in rings[:SETS_COMPARED] if _alike(ring[0], one))
        ring = next(near, None)
        if ring is None:
            rings.append((one, list(by_set[one])))
        else:
            ring[1].extend(by_set[one])
    return [sorted(members) for _, members in rings if len(members) >= RING_MIN]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SAME_SET_SHARE * len(one | other)


def _bursts(ratings: Sequence[ReviewerRating]) -> list[list[str]]:
    timed = sorted((v.given_s, v.address) for v in ratings if v.given_s is not None)
    bursts: list[list[str]] = []
    last_s: int | None = None
    for given_s, address in timed:
        if last_s is None or given_s - last_s > BURST_GAP_S:
            bursts.append([])
        bursts[-1].append(address)
        last_s = given_s
    return [burst for burst in bursts if len(burst) >= BURST_MIN]


def _value(weighted: Sequence[WeightedRating], total: float) -> tuple[float, bool]:
    """Return the weighted mean, or that of the newest ratings if they show a recent drop."""
    newest = sorted(
        (w for w in weighted if w.rating.given_s is not None),
        key=lambda w: (-(w.rating.given_s or 0), w.rating.address),
    )
    points = sum(w.weight * w.rating.value for w in weighted)
    recent: list[WeightedRating] = []
    mass = 0.0
    while mass < RECENT_MASS and len(recent) < len(newest):
        recent.append(newest[len(recent)])
        mass += recent[-1].weight
    if mass < RECENT_MASS or total - mass < RECENT_MASS:
        return points / total, False
    newer = sum(w.weight * w.rating.value for w in recent)
    before = (points - newer) / (total - mass)
    if before - _median(recent, mass) < RECENT_DROP:
        return points / total, False
    return newer / mass, True


def _median(weighted: Sequence[WeightedRating], mass: float) -> float:
    """Return the weighted median, which a few heavy ratings do not move."""
    below = 0.0
    ranked = sorted(weighted, key=lambda w: (w.rating.value, w.rating.address))
    for w in ranked:
        below += w.weight
        if below >= mass / 2:
            return w.rating.value
    return ranked[-1].rating.value


def voices_of(seen: JsonObject) -> tuple[ReviewerRating, ...]:
    """Return the ratings of a signal's evidence (see `signals/registry_8004.py`)."""
    reviewers = seen["reviewers"]
    rows = reviewers.items() if is_object(reviewers) else ()
    return tuple(rating_of(address, row) for address, row in rows if is_object(row))


def rating_of(address: str, row: JsonObject) -> ReviewerRating:
    """Parse one reviewer of the evidence."""
    rated = row.get("rated")
    relation = row.get("relation")
    return ReviewerRating(
        address=address,
        value=float(str(row["value"])),
        given_s=_whole(row.get("given")),
        first_s=_whole(row.get("first")),
        transactions=_whole(row.get("transactions")),
        rated=frozenset(str(one) for one in rated) if is_array(rated) else None,
        relation=relation if isinstance(relation, str) else None,
    )


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
