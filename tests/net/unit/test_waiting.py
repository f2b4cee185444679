"""What waits for us costs no time-out of the host's, and is counted to whoever waits."""

import asyncio

import pytest

from assay.net.egress.request_slots import count_own_waits, current_party, host_timeout, own_wait


class Ticks:
    """The loop's clock, moved by hand; timers that are due fire when the loop turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self._ahead_s = 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead_s)

    async def pass_by(self, seconds: float) -> None:
        self._ahead_s += seconds
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
async def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    return Ticks(monkeypatch)


async def test_a_host_has_its_whole_time_however_long_we_let_it_wait(ticks: Ticks) -> None:
    with count_own_waits() as waits:
        async with host_timeout(100), host_timeout(50):
            await ticks.pass_by(40)
            with own_wait():
                await ticks.pass_by(1000)
            await ticks.pass_by(5)
    assert 1000 <= waits.waited_s < 1005


async def test_a_host_has_no_more_than_its_time(ticks: Ticks) -> None:
    async def ask() -> None:
        async with host_timeout(100):
            with own_wait():
                await ticks.pass_by(1000)
            await ticks.pass_by(101)

    with pytest.raises(TimeoutError):
        await ask()


async def test_a_wait_that_is_cut_off_is_counted_too(ticks: Ticks) -> None:
    async def wait() -> None:
        with own_wait():
            await ticks.pass_by(30)
            raise EOFError

    with count_own_waits() as visit, count_own_waits() as request, pytest.raises(EOFError):
        await wait()
    assert 30 <= request.waited_s < 35
    assert abs(visit.waited_s - request.waited_s) < 5


async def test_a_wait_that_goes_on_is_counted_so_far(ticks: Ticks) -> None:
    with count_own_waits() as visit:
        with own_wait():
            await ticks.pass_by(30)
            with own_wait():
                await ticks.pass_by(10)
                assert 50 <= visit.waited_s < 55
        assert 50 <= visit.waited_s < 55


async def test_the_outermost_block_is_the_party_of_all_its_tasks() -> None:
    async def seen() -> object:
        with count_own_waits():
            return current_party()

    assert current_party() is None
    with count_own_waits(is_visit=True) as visit:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(seen())
        assert task.result() is visit
    assert current_party() is None
