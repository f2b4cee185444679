import asyncio

from assay.kit.tasks import Tasks


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
