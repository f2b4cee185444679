"""Claims of paid calls from several processes at once: no limit is ever exceeded."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assay.common.ids import new_id
from assay.probing.paid_calls import GAS, PAYEE_MAX, PaidCall

CENT = 10_000
NETWORK = "eip155:84532"


def wanted(operator: Any, number: int, **changes: Any) -> PaidCall:
    """A claim of nine cents for a seller that shares nothing with the others."""
    made = PaidCall(
        id=new_id(),
        subject_key=f"agent {number}",
        service=f"https://s{number}.example/x",
        payee=f"0x{number + 2**20:040x}",
        owner=f"0x{number + 2**30:040x}",
        site=f"s{number}.example",
        domain=f"s{number}.example",
        network=NETWORK,
        sender="0x" + "1" * 40,
        wallet="0x" + "2" * 40,
        amount=9 * CENT,
        opened_at=operator.clock.now(),
    )
    return replace(made, **changes)


async def claimed(operator: Any, claims: Sequence[PaidCall], day_budget: int) -> int:
    """How many of these got through, asked for at once by three processes."""
    stores = [(await operator.process())[1] for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        asked = [stores[n % 3].claim(one, day_budget) for n, one in enumerate(claims)]
        tasks = [group.create_task(one) for one in asked]
    return sum(task.result() is not None for task in tasks)


async def claim_at_once(operator: Any) -> None:
    """Each limit by itself, in a month of its own."""
    ample = 1000 * PAYEE_MAX
    same: dict[str, dict[str, Any]] = {
        "payee": {"payee": "0x" + "3" * 40},
        "site": {"site": "one.example"},
        "agent": {"subject_key": "one agent"},
    }
    for shared in same.values():
        claims = [wanted(operator, n, **shared) for n in range(9)]
        assert await claimed(operator, claims, ample) == 1
        operator.clock.move(29 * 86_400)
        again = [wanted(operator, 50 + n, **shared) for n in range(3)]
        assert await claimed(operator, again, ample) == 0
        operator.clock.move(2 * 86_400)
        assert await claimed(operator, [wanted(operator, 90, **shared)], ample) == 1
        operator.clock.move(31 * 86_400)
    cost = 9 * CENT + GAS
    for shared in ({"owner": "0x" + "4" * 40}, {"domain": "hoster.example"}):
        claims = [wanted(operator, n, **shared) for n in range(9)]
        assert await claimed(operator, claims, 10 * 3 * cost) == 3  # a tenth of the day's budget
        operator.clock.move(31 * 86_400)
    claims = [wanted(operator, n) for n in range(20)]
    assert await claimed(operator, claims, 10 * cost + CENT) == 10
    operator.clock.move(86_400 - 60)
    assert await claimed(operator, [wanted(operator, 30)], 10 * cost + CENT) == 0
    operator.clock.move(120)
    assert await claimed(operator, [wanted(operator, 31)], 10 * cost + CENT) == 1
