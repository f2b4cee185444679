"""Work that is done to its end, whoever is cancelled."""

import asyncio

import pytest

from assay.common.tasks import finish


async def test_it_ends_for_a_caller_cancelled_however_often_and_the_caller_is_told() -> None:
    gate, done, after = asyncio.Event(), list[str](), list[str]()

    async def work() -> str:
        await gate.wait()
        done.append("work")
        return "result"

    async def caller() -> None:
        after.append(await finish(work()))
        await asyncio.sleep(0)
        after.append("never")

    task = asyncio.ensure_future(caller())
    await asyncio.sleep(0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (done, after) == (["work"], ["result"])


async def test_a_result_and_a_failure_are_the_works_own() -> None:
    async def work(*, fail: bool) -> int:
        await asyncio.sleep(0)
        if fail:
            raise ValueError("x")
        return 5

    assert await finish(work(fail=False)) == 5
    with pytest.raises(ValueError, match="x"):
        await finish(work(fail=True))
