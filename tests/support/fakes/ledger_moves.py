"""Entries brought to a state as payments get there: by legal moves, the shortest way."""

from typing import Any

from assay.payments.model import TRANSITIONS, LedgerEntry, PaymentState


def way(before: PaymentState, after: PaymentState) -> list[PaymentState]:
    """The states on the shortest way, the last included; one move where that is legal."""
    ways: dict[PaymentState, list[PaymentState]] = {
        one: [one] for one in sorted(TRANSITIONS[before])
    }
    while after not in ways:
        known = dict(ways)
        for one, steps in known.items():
            for following in sorted(TRANSITIONS[one]):
                ways.setdefault(following, [*steps, following])
        assert len(ways) > len(known), f"{after} is not reached from {before}"
    return ways[after]


async def moved_on(
    ledger: Any, entry: LedgerEntry, state: PaymentState, **last: Any
) -> LedgerEntry | None:
    """The entry in that state; `last` is what its last move writes. None as `LedgerStore.move`."""
    *steps, end = way(entry.state, state)
    for step in steps:
        moved = await ledger.move(entry, step)
        assert moved is not None
        entry = moved
    return await ledger.move(entry, end, **last)
