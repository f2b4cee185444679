"""What an operator is warned of when a wrapper is made beside many others."""

import asyncio
from dataclasses import replace

from assay.wrappers.endpoint_rules import COMPARED_AT_ONCE, WARNINGS_MAX, warnings_beside
from tests.wrappers.test_stores_wrappers import config

OTHERS = 200


async def test_comparing_with_many_others_holds_up_nobody() -> None:
    """With a thousand of long paths it took the loop for a second."""
    others = [config(f"c{number}", path=f"/{number};x") for number in range(OTHERS)]
    turns = 0

    async def counted() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    free = replace(config("free", path="/*"), price=0, trust_enabled=False)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(counted())
        told = await warnings_beside(free, others)
        task.cancel()
    assert len(told) == WARNINGS_MAX + 1
    assert turns >= OTHERS // COMPARED_AT_ONCE
