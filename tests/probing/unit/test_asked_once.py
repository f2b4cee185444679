"""What several probes of one visit need is asked once, whenever each of them comes."""

import asyncio

import pytest

from assay.probing.ports import AskedOnce


@pytest.mark.parametrize("steps", range(1, 12))
async def test_it_is_asked_once_at_whatever_step_the_next_one_comes(steps: int) -> None:
    """Also between the end of the asking and the waking of the one who waits for it."""
    once, asked = AskedOnce(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return asked

    first = asyncio.ensure_future(once.get("talk", ask))
    for _ in range(steps):
        await asyncio.sleep(0)
    assert (await once.get("talk", ask), await first, asked) == (1, 1, 1)


async def test_what_raised_is_asked_again() -> None:
    once, asked = AskedOnce(), 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise RuntimeError("asked in vain")
        return asked

    with pytest.raises(RuntimeError, match="in vain"):
        await once.get("talk", ask)
    assert await once.get("talk", ask) == 2
