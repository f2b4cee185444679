"""What a seller is told of its money, over the interface, beside what the ledger says."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.shop import Shop

PAID = frozenset({"settled", "delivered"})
IN_FLIGHT = frozenset({"settling", "pending"})
RECOVERED_S = 90.0
"""How long the service has to write down the calls that kills have lost, after the last one."""


@dataclass(frozen=True)
class Books:
    """Of one seller's payments: amounts in base units."""

    ledger: Mapping[str, tuple[str, int]]
    """State and amount of every payment that came to an end, or is under way."""
    log: Mapping[str, int]
    """What the call log says was charged, by payment; each is charged to one call."""
    outcomes: Counter[str] = field(default_factory=Counter[str])
    """How the calls ended that were charged."""
    funnel: Mapping[str, int] = field(default_factory=dict[str, int])
    revenue: int = 0

    @property
    def settled(self) -> dict[str, int]:
        return {one: amount for one, (state, amount) in self.ledger.items() if state in PAID}

    def _count(self, states: frozenset[str]) -> int:
        return sum(state in states for state, _ in self.ledger.values())

    @property
    def differences(self) -> list[str]:
        """Where the seller is told something else than the ledger says."""
        settled, failed = len(self.settled), self._count(frozenset({"failed"}))
        wanted = {
            "paid": settled + failed + self._count(IN_FLIGHT),
            "settled": settled,
            "failed": failed,
        }
        told = [
            f"{name}: funnel {self.funnel.get(name)}, ledger {count}"
            for name, count in wanted.items()
            if self.funnel.get(name) != count
        ]
        if self.log != self.settled:
            one_sided = {*self.log.items()} ^ {*self.settled.items()}
            told.append(f"log and ledger differ in {sorted(one_sided)[:5]} of {len(one_sided)}")
        if self.revenue != sum(self.settled.values()):
            told.append(f"revenue {self.revenue}, ledger {sum(self.settled.values())}")
        return told

    def cells(self) -> tuple[str, ...]:
        """Ledger, funnel and log, as columns of a table."""
        states = Counter(state for state, _ in self.ledger.values())
        names = ("paid", "settled", "failed")
        return (
            _counts(states),
            ", ".join(f"{name}: {self.funnel.get(name)}" for name in names),
            f"{len(self.log)} ({_counts(self.outcomes)})",
        )


COLUMNS = ("ledger by state", "funnel", "log, charged (by outcome)")


def _counts(of: Counter[str]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(of.items())) or "none"


def books(shop: Shop, ledger: Callable[[], Mapping[str, tuple[str, int]]]) -> Books:
    """What is told once the service has recovered what it can, or after `RECOVERED_S`."""
    deadline = time.monotonic() + RECOVERED_S
    while True:
        found = _read(shop, ledger)
        if not found.differences or time.monotonic() > deadline:
            return found
        time.sleep(0.25)


def _read(shop: Shop, ledger: Callable[[], Mapping[str, tuple[str, int]]]) -> Books:
    charged: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    cursor: str | None = None
    while True:
        after = f"&cursor={cursor}" if cursor else ""
        page = _told(shop, f"/operator/analytics/logs?limit=500{after}")
        for row in page["items"]:
            if amount := _units(row["costCharged"]):
                charged[str(row["paymentReference"])] += amount
                outcomes[row["outcome"]] += 1
        cursor = page["nextCursor"]
        if cursor is None:
            break
    stats = _told(shop, "/operator/analytics/stats")
    return Books(
        dict(ledger()), dict(charged), outcomes, stats["funnel"], _units(stats["totalRevenue"])
    )


def _units(usd: str) -> int:
    whole, _, part = usd.partition(".")
    return int(whole) * 10**6 + int(part.ljust(6, "0"))


def _told(shop: Shop, path: str) -> Any:
    answer = shop.http.get(path, headers=dict(shop.token))
    assert answer.status_code == 200, answer.text
    return answer.json()
