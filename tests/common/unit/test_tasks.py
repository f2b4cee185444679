import asyncio

import pytest

from assay.common.tasks import Tasks, both
from tests.support.eventually import never


async def test_a_failing_task_is_reported_with_its_name() -> None:
    failures: list[tuple[str, str]] = []
    tasks = Tasks(lambda name, error: failures.append((name, str(error))))

    async def fail() -> None:
        raise ValueError("broken")

    tasks.spawn("flush", fail())
    await tasks.drain(1)
    await asyncio.sleep(0)
    assert failures == [("flush", "broken")]


async def test_drain_lets_work_end_within_its_grace_and_cancels_the_rest() -> None:
    ended: list[str] = []
    tasks = Tasks(lambda _name, _error: None)

    async def work(name: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            ended.append(name)
        except asyncio.CancelledError:
            ended.append(f"{name} cancelled")
            raise

    tasks.spawn("short", work("short", 0.01))
    tasks.spawn("long", work("long", 60))
    await asyncio.wait_for(tasks.drain(0.2), 2)
    assert ended == ["short", "long cancelled"]


async def test_of_both_the_first_to_fail_is_raised_as_it_is_and_the_other_ends() -> None:
    begun: list[str] = []

    async def fail() -> None:
        raise ValueError("broken")

    async def hang() -> None:
        begun.append("hang")
        await never()

    with pytest.raises(ValueError, match="broken"):
        await both(hang(), fail())
    assert begun == ["hang"]
    with pytest.raises(ValueError, match="broken"):
        await both(fail(), hang())
    assert begun == ["hang"]  # not again: a refusal at once begins nothing


async def test_of_both_each_result_has_its_place() -> None:
    assert await both(asyncio.sleep(0, "one"), asyncio.sleep(0, 2)) == ("one", 2)
