"""The ladder's numbers as data, and the demands of rungs 2 to 4. Pure.

The ladder's numbers as data: settings change them, and every evaluation stores its own.

Source of the defaults: docs/grades.md#the-ladder; ADR 0024.

The demands of rungs 2 to 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import pairwise
from math import inf
from typing import Literal

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.control import rules

RUNGS = ("unproven", "functional", "steady", "used", "vouched")
"""The names of the rungs, from 0."""

RULES = 1
"""Increased when code changes what the same evidence proves; part of the policy's version."""

_MAX = 1_000_000_000
"""Upper bound of every number of the ladder: any bound that excludes infinity."""


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """The demands of each rung, and the ceiling on the score of agents on it."""

    ceilings: tuple[float, ...] = (64.0, 74.0, 84.0, 89.0, 100.0)
    """Highest score on rung 0 to 4; they never fall."""
    sold_clusters: int = 3
    """Independent clusters of payers charged within 30 days, which prove the function of a service
    that only sells."""
    sold_days: int = 2
    """Different days on which they paid."""
    sold_usd: float = 1.0
    """The net sum of their payments, USD."""
    steady_visits: int = 5
    """Visits timed by the scheduler."""
    steady_days: int = 3
    """Different days those visits were on."""
    steady_span_days: int = 7
    """Days from the first of them to the last."""
    steady_unannounced_share: float = 0.5
    """Share of those visits that did not identify themselves."""
    used_days: int = 30
    """Days since the first paying customer."""
    used_clusters: int = 20
    """Independent clusters of payers."""
    used_payment_days: int = 10
    """Different days on which they paid."""
    used_largest_share: float = 0.2
    """Largest share of the money that one cluster may have paid."""
    used_usd: float = 20.0
    """Net revenue, USD."""
    vouched_days: int = 60
    vouched_proofs: int = 2
    """How many of the four kinds of voucher are needed."""
    vouched_stake_usd: float = 500.0
    """A stake that can be lost on chain, USD."""
    vouched_agents_per_human: int = 3
    """Agents that one proof of a human may back."""
    vouched_usd: float = 1000.0
    vouched_clusters: int = 100
    """Net revenue, USD, and clusters that together vouch for an agent."""
    vouched_response: int = 80
    """Lowest answer of a trusted validator, 0 to 100, that vouches for an agent."""
    vouched_by: tuple[str, ...] = ()
    """Addresses of validators and attesters the operator trusts, lower case."""
    caller_days: int = 2
    """Different days on which a key agent passed all caller scenarios."""
    caller_usd: float = 5.0
    """Payments of a key agent to unrelated wrappers, USD."""

    def document(self) -> JsonObject:
        """Return every number by name, as it is stored with an evaluation."""
        numbers: dict[str, JsonValue] = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**numbers, "ceilings": [*self.ceilings], "vouched_by": [*self.vouched_by]}


def ladder_from(overrides: Mapping[str, JsonValue]) -> LadderPolicy:
    """Return the default policy with `overrides` by name.

    Raises `ValueError` with a plain sentence for an unknown name, a value of the wrong kind or out
    of range, and for ceilings that fall or are not one per rung.
    """
    known = {f.name: getattr(LadderPolicy, f.name, f.default) for f in fields(LadderPolicy)}
    given: dict[str, object] = {}
    for name, value in overrides.items():
        if name not in known:
            raise ValueError(f"the ladder has no number {name!r}; it has: {', '.join(known)}")
        given[name] = _read(name, value)
    policy = LadderPolicy(**given)  # pyright: ignore[reportArgumentType] - read by name above
    _check(policy)
    return policy


def _read(name: str, value: JsonValue) -> object:
    if name == "ceilings":
        if not is_array(value) or not all(_is_number(one) for one in value):
            raise ValueError("the ladder's ceilings must be a list of numbers")
        return tuple(float(str(one)) for one in value)
    if name == "vouched_by":
        if not is_array(value) or not all(isinstance(one, str) for one in value):
            raise ValueError("the ladder's vouched_by must be a list of addresses")
        return tuple(str(one).lower() for one in value)
    if not _is_number(value):
        raise ValueError(f"the ladder's {name} must be a number")
    number = float(str(value))
    if isinstance(LadderPolicy.__dataclass_fields__[name].default, int):
        if not number.is_integer():
            raise ValueError(f"the ladder's {name} must be a whole number")
        return int(number)
    return number


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX


def _check(policy: LadderPolicy) -> None:
    ceilings = policy.ceilings
    if len(ceilings) != len(RUNGS):
        raise ValueError(f"the ladder has {len(RUNGS)} rungs and needs as many ceilings")
    if any(below > above for below, above in pairwise(ceilings)) or ceilings[-1] > 100:  # noqa: PLR2004
        raise ValueError("the ladder's ceilings must never fall from rung to rung, at most to 100")
    for name in ("steady_unannounced_share", "used_largest_share"):
        if getattr(policy, name) > 1:
            raise ValueError(f"the ladder's {name} must be from 0 to 1")


State = Literal["met", "missing", "unknown"]

CHAIN_SIGNAL, BEHAVIOUR_SIGNAL = "8004", "sandbox"


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand of a rung, and whether it is met."""

    rung: int
    name: str
    state: State
    asks: str
    """The demand in one sentence, with the current value."""
    why: str = ""
    """A slug for the reason, if there is more to say than that it is missing."""
    is_fault: bool = False
    """Whether it is unmet because of known faults of the agent, not for lack of evidence."""
    action: str = ""
    """What to do about it, with the exact file or record if there is one."""


@dataclass(frozen=True, slots=True)
class Evidences:
    """The evidence of one evaluation by signal; absent or malformed evidence is empty."""

    by_signal: Mapping[str, JsonObject]
    unavailable: frozenset[str]

    def of(self, signal: str) -> JsonObject:
        """Return a signal's evidence."""
        return self.by_signal.get(signal, {})

    @property
    def behaviour(self) -> JsonObject:
        """Return the evidence of visits."""
        return self.of(BEHAVIOUR_SIGNAL)

    @property
    def history(self) -> JsonObject:
        """Return the evidence of earlier visits inside the window."""
        return member(self.behaviour, "history")

    @property
    def reached_rung(self) -> int:
        """Return the agent's previous rung."""
        return int(number(self.history, "heldRung"))

    def days_of(self, of: JsonObject, name: str) -> float:
        """Return a number of days, not counting days before a transfer without the services."""
        owned_days = rules.owned_days(self.behaviour)
        return min(number(of, name), inf if owned_days is None else owned_days)


def member(of: JsonObject, name: str) -> JsonObject:
    """Return a member that is an object; empty if there is none."""
    found = of.get(name)
    return found if is_object(found) else {}


def rows(of: JsonObject, name: str) -> list[JsonObject] | None:
    """Return the objects of a member that is an array; None if there is none."""
    found = of.get(name)
    return [row for row in found if is_object(row)] if is_array(found) else None


def number(of: JsonObject, name: str) -> float:
    """Return a member that is a number, or a text of one; 0 if there is none."""
    value: JsonValue = of.get(name)
    if isinstance(value, bool):
        return 0.0
    if isinstance(value, str):
        try:
            exact = Decimal(value)
        except InvalidOperation:
            return 0.0
        return float(exact) if exact.is_finite() else 0.0
    return float(value) if isinstance(value, int | float) else 0.0


def at_least(rung: int, name: str, value: float, asked: float, unit: str) -> Demand:
    """Return a demand for a number."""
    asks = f"At least {asked:g} {unit}; there {'is' if value == 1 else 'are'} {value:g}."
    return Demand(rung, name, "met" if value >= asked else "missing", asks)


def no_critical_finding(seen: Evidences) -> Demand:
    """Require that no critical finding is open; a single sighting is checked again first."""
    asks = "No open critical finding"
    listed = [row for row in rows(seen.behaviour, "findings") or [] if _is_critical(row)]
    older = _names(seen.history.get("openCritical"))
    followed = [reason.sentence.rstrip(".") for reason in rules.inherited(seen.behaviour)]
    # Corroboration is not possible: the sighting counts.
    if rows(seen.behaviour, "findings") is None:
        older |= _names(seen.behaviour.get("criticalFailed"))
    sure = [row for row in listed if number(row, "sightings") >= 2]  # noqa: PLR2004 - corroborated
    if sure or older or followed:
        names = sorted({str(row.get("check")) for row in sure} | older)
        return Demand(
            1,
            "no_critical_finding",
            "missing",
            f"{asks}: {', '.join([*names, *followed])}.",
            "critical_finding",
            is_fault=True,
        )
    if listed or _names(seen.history.get("sighted")):
        return Demand(1, "no_critical_finding", "unknown", f"{asks}; one is being confirmed.")
    return Demand(1, "no_critical_finding", "met", f"{asks}.")


def _is_critical(row: JsonObject) -> bool:
    return row.get("severity") == "critical" and row.get("open") is not False


def _names(listed: JsonValue) -> set[str]:
    if not is_array(listed):
        return set()
    return {str(one.get("check")) if is_object(one) else str(one) for one in listed}


def steady(seen: Evidences, policy: LadderPolicy) -> list[Demand]:
    """Return rung 2's demands: visits at times the agent did not choose."""
    past = seen.history
    days = partial(seen.days_of, past)
    visits = number(past, "scheduled")
    share = number(past, "unannounced") / visits if visits else 0.0
    asked = policy.steady_unannounced_share
    critical = past.get("criticalUnannounced") is True
    changed = past.get("silentChange") is True
    behind = _only_entered(seen)
    hidden: list[Demand] = [
        Demand(
            2,
            "unannounced_visits",
            "met" if visits and share >= asked else "missing",
            f"At least {100 * asked:g} % of the visits unannounced; now {100 * share:.0f} %.",
        ),
        Demand(
            2,
            "critical_checks_unannounced",
            "met" if critical else "missing",
            "Every critical check that can be made unannounced was.",
        ),
    ]
    return [
        at_least(2, "scheduled_visits", visits, policy.steady_visits, "scheduled visits"),
        at_least(2, "visit_days", days("days"), policy.steady_days, "days of visits"),
        at_least(2, "visit_span", days("spanDays"), policy.steady_span_days, "days between them"),
        *([_independent_traffic(seen, policy, behind)] if behind else hidden),
        Demand(
            2,
            "no_silent_change",
            "missing" if changed else "met",
            "No material change that was not declared.",
            "silent_change" if changed else "",
            is_fault=changed,
        ),
    ]


def _only_entered(seen: Evidences) -> list[str]:
    """Return services that alone of their kind work, and open only to a deposited credential."""
    entry = member(seen.behaviour, "entry")
    listed = entry.get("entered")
    entered = {str(one) for one in listed} if is_array(listed) else set[str]()
    works = member(seen.history, "functions")
    by_kind: dict[str, list[str]] = {}
    for row in rows(seen.behaviour, "function") or [] if entered else []:
        service = str(row.get("service"))
        if works.get(service, row.get("state")) == "functional":
            by_kind.setdefault(str(row.get("kind")), []).append(service)
    return sorted(s for of_kind in by_kind.values() if entered.issuperset(of_kind) for s in of_kind)


def _independent_traffic(seen: Evidences, policy: LadderPolicy, behind: list[str]) -> Demand:
    """Require independent traffic in place of unannounced visits for credentialed services.

    The owner recognises every visit by the credential. So others must have used the service: as
    many as rung 3 requires, since fewer can be faked for a few dollars.
    """
    states = {one.state for one in used(seen, policy)}
    state: State = "missing" if "missing" in states else "unknown" if "unknown" in states else "met"
    return Demand(
        2,
        "independent_traffic",
        state,
        "Visits that nobody recognises, or the customers that rung 3 asks for; a deposited"
        f" credential, by which its owner recognises a visit, alone opens {', '.join(behind)}.",
        "entered_by_deposit",
        action=""
        if state == "met"
        else "Serve something of the kind that works without a"
        " credential, or let customers pay the agent's wallet.",
    )


def used(seen: Evidences, policy: LadderPolicy) -> list[Demand]:
    """Return rung 3's demands: customers whose money was not returned."""
    found = member(seen.of(CHAIN_SIGNAL), "customers")
    days = partial(seen.days_of, found)
    largest, asked = number(found, "largestShare"), policy.used_largest_share
    share = "met" if found and largest <= asked else "missing"
    network = "met" if found.get("network") == "main" else "missing"
    listed = [
        at_least(3, "customer_days", days("sinceDays"), policy.used_days, "days with customers"),
        at_least(
            3,
            "payer_clusters",
            number(found, "clusters"),
            policy.used_clusters,
            "independent clusters of payers",
        ),
        at_least(3, "payment_days", days("days"), policy.used_payment_days, "days of payments"),
        Demand(
            3,
            "largest_payer",
            share,
            f"At most {100 * asked:g} % of the money from one cluster; now {100 * largest:.0f} %.",
        ),
        at_least(3, "net_revenue", number(found, "usdNet"), policy.used_usd, "USD of net revenue"),
        Demand(3, "main_network", network, "Payments in listed assets on main networks."),
    ]
    return _unless_unread(seen, listed)


def vouched(seen: Evidences, policy: LadderPolicy) -> list[Demand]:
    """Return rung 4's demands: a stake that is lost, or a guarantor, if the agent misbehaves."""
    found = member(seen.of(CHAIN_SIGNAL), "customers")
    vouchers = sorted(_vouchers(seen, policy))
    has = ", ".join(vouchers) or "none"
    listed = [
        at_least(
            4,
            "vouched_days",
            seen.days_of(found, "sinceDays"),
            policy.vouched_days,
            "days with customers",
        ),
        Demand(
            4,
            "vouchers",
            "met" if len(vouchers) >= policy.vouched_proofs else "missing",
            f"{policy.vouched_proofs} of: a trusted validator or attester, a stake of"
            f" {policy.vouched_stake_usd:g} USD, a human behind at most"
            f" {policy.vouched_agents_per_human} agents, {policy.vouched_usd:g} USD from"
            f" {policy.vouched_clusters} clusters of customers; there are: {has}.",
        ),
    ]
    return _unless_unread(seen, listed)


def _vouchers(seen: Evidences, policy: LadderPolicy) -> set[str]:
    chain, attested, listed = seen.of(CHAIN_SIGNAL), seen.of("attestation"), seen.of("self")
    found: set[str] = set()
    if str(attested.get("attester", "")).lower() in policy.vouched_by:
        found.add("attester")
    trusted = [value for who, value in _validations(chain) if who in policy.vouched_by]
    if max(trusted, default=-1.0) >= policy.vouched_response:
        found.add("attester")  # The same kind of voucher: both together count once.
    if number(member(chain, "stake"), "usd") >= policy.vouched_stake_usd:
        found.add("stake")
    agents = number(listed, "agents") if listed.get("holds") is True else 0.0
    one_human = isinstance(seen.of("personhood").get("level"), str)
    if one_human or 1 <= agents <= policy.vouched_agents_per_human:
        found.add("human")
    money = member(chain, "customers")
    many = number(money, "clusters") >= policy.vouched_clusters
    if many and number(money, "usdNet") >= policy.vouched_usd:
        found.add("customers")
    return found


def _validations(chain: JsonObject) -> list[tuple[str, float]]:
    """Return validators and their answers."""
    listed = chain.get("validations")
    return [
        (str(row[0]).lower(), number({"value": row[1]}, "value"))
        for row in (listed if is_array(listed) else ())
        if is_array(row) and len(row) == 2  # noqa: PLR2004 - a pair
    ]


def _unless_unread(seen: Evidences, demands: list[Demand]) -> list[Demand]:
    """Mark demands as unknown if chain data could not be read: no rung is earned or lost."""
    if CHAIN_SIGNAL not in seen.unavailable:
        return demands
    return [Demand(d.rung, d.name, "unknown", d.asks, "unread") for d in demands]
