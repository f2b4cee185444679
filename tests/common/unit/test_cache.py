import asyncio

import pytest

from assay.common.cache import Cache
from tests.support.fakes.clock import FrozenClock


class Loader:
    def __init__(self, clock: FrozenClock, ttl_s: float = 10, weight_max: int = 1000) -> None:
        self.cache: Cache[str] = Cache(clock, ttl_s, weight_max, len)
        self.loaded: list[str] = []

    async def get(self, value: str) -> str:
        async def load() -> str:
            self.loaded.append(value)
            await asyncio.sleep(0)
            return value

        return await self.cache.get(value, load)


async def test_a_value_is_loaded_once_until_it_ends() -> None:
    clock = FrozenClock()
    loader = Loader(clock)
    assert [await loader.get("a"), await loader.get("a")] == ["a", "a"]
    clock.move(10)
    await loader.get("a")
    assert loader.loaded == ["a", "a"]


async def test_those_who_miss_at_once_share_one_load() -> None:
    loader = Loader(FrozenClock())
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(loader.get("a"))
    assert loader.loaded == ["a"]


async def test_the_oldest_go_when_it_grows_too_heavy() -> None:
    loader = Loader(FrozenClock(), weight_max=10)
    for value in ("aaaa", "bbbb", "cccc"):
        await loader.get(value)
    loader.loaded.clear()
    for value in ("cccc", "bbbb", "aaaa"):
        await loader.get(value)
    assert loader.loaded == ["aaaa"]


async def test_what_alone_is_too_heavy_is_given_but_not_kept() -> None:
    loader = Loader(FrozenClock(), weight_max=3)
    assert [await loader.get("aaaa"), await loader.get("aaaa")] == ["aaaa", "aaaa"]
    assert loader.loaded == ["aaaa", "aaaa"]
    await loader.get("b")
    await loader.get("b")
    assert loader.loaded == ["aaaa", "aaaa", "b"]


async def test_reloading_does_not_count_a_value_twice() -> None:
    clock = FrozenClock()
    loader = Loader(clock, weight_max=5)
    for _ in range(5):
        await loader.get("aaa")
        clock.move(11)
    await loader.get("aaa")
    await loader.get("bb")
    loader.loaded.clear()
    await loader.get("aaa")
    assert loader.loaded == []


async def test_a_failure_is_not_remembered() -> None:
    cache: Cache[str] = Cache(FrozenClock(), 10)
    answers = iter([ValueError("no"), "yes"])

    async def load() -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        await cache.get("k", load)
    assert await cache.get("k", load) == "yes"


async def test_how_long_may_depend_on_what_was_loaded() -> None:
    clock = FrozenClock()
    cache: Cache[int] = Cache(clock, float)
    loads: list[int] = []

    async def load(value: int) -> int:
        loads.append(value)
        return value

    for _ in range(2):
        await cache.get("short", lambda: load(1))
        await cache.get("long", lambda: load(100))
        clock.move(2)
    assert loads == [1, 100, 1]
