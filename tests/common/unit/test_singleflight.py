import asyncio

from assay.common.cache import SingleFlight


class Work:
    def __init__(self) -> None:
        self.calls = 0
        self.go = asyncio.Event()

    async def run(self) -> int:
        self.calls += 1
        await self.go.wait()
        return self.calls


def flights() -> SingleFlight[int]:
    return SingleFlight()


async def test_of_many_at_once_one_works_and_all_get_its_result() -> None:
    work, flight = Work(), flights()
    waiting = [asyncio.ensure_future(flight.run("a", work.run)) for _ in range(50)]
    await asyncio.sleep(0)
    work.go.set()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 1) == [1] * 50  # noqa: TID251
    assert work.calls == 1


async def test_the_next_call_after_the_end_works_anew() -> None:
    work, flight = Work(), flights()
    work.go.set()
    assert [await flight.run("a", work.run), await flight.run("a", work.run)] == [1, 2]


async def test_other_keys_do_not_wait() -> None:
    stuck, free, flight = Work(), Work(), flights()
    free.go.set()
    waiting = asyncio.ensure_future(flight.run("stuck", stuck.run))
    assert await asyncio.wait_for(flight.run("free", free.run), 1) == 1
    stuck.go.set()
    await waiting


async def test_a_caller_that_goes_away_does_not_take_the_work_from_the_others() -> None:
    work, flight = Work(), flights()
    first = asyncio.ensure_future(flight.run("a", work.run))
    second = asyncio.ensure_future(flight.run("a", work.run))
    await asyncio.sleep(0)
    first.cancel()
    work.go.set()
    assert await second == 1


async def test_a_failure_reaches_every_caller_and_is_not_remembered() -> None:
    flight = flights()

    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def work() -> int:
        return 7

    waiting = [asyncio.ensure_future(flight.run("a", fail)) for _ in range(3)]
    ends = await asyncio.gather(*waiting, return_exceptions=True)  # noqa: TID251
    assert [type(end) for end in ends] == [ValueError] * 3
    assert await flight.run("a", work) == 7
