import asyncio
from collections.abc import Sequence

import pytest

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.registries.model import WalletMatch
from assay.registries.wallet_index import SLICE, SLICES_AT_ONCE, WalletIndex
from tests.support.fakes.chain import NETWORK, ZERO, FakeRpc, Token, wallet
from tests.support.fakes.clock import FrozenClock

OWNER_OF = "6352211e"
NOBODY = wallet(10**9)


class World:
    def __init__(self, agents: int, budget_s: float = 8.0) -> None:
        self.rpc = FakeRpc([Token(wallet(n + 1)) for n in range(agents)])
        self.clock = FrozenClock()
        self.index = WalletIndex(self.rpc, self.clock, budget_s)

    async def find(self, someone: str) -> list[str]:
        return [match.agent_id for match in await self.index.find(NETWORK, someone)]


@pytest.mark.parametrize("agents", [0, 1, 2, 3, 31, 32, 33, 99, 100, 101, 400, 401, 1948])
async def test_first_and_last_agent_are_found_in_a_registry_of_any_size(agents: int) -> None:
    world = World(agents)
    assert await world.find(NOBODY) == []
    for last in {0, agents - 1} if agents else set[int]():
        assert await world.find(wallet(last + 1)) == [str(last)]


async def test_reading_all_costs_two_calls_an_agent_and_a_few_to_count() -> None:
    world = World(1948)
    await world.find(NOBODY)
    assert len(world.rpc.asked) < 2 * 1948 + 8 * 32
    assert world.rpc.rounds < 1948 / SLICE + 8


async def test_owner_and_agent_wallet_both_match_lowest_id_first() -> None:
    world = World(4)
    world.rpc.tokens[3].wallet = wallet(1)
    world.rpc.tokens[2] = Token(wallet(1), wallet=wallet(1))
    assert await world.index.find(NETWORK, wallet(1)) == (
        WalletMatch("0", "owner"),
        WalletMatch("2", "owner"),
        WalletMatch("3", "agentWallet"),
    )


async def test_the_zero_address_speaks_for_nobody() -> None:
    assert await World(3).find(ZERO) == []


async def test_an_address_is_not_found_across_the_edges_of_others() -> None:
    world = World(0)
    world.rpc.tokens = [Token("0x" + "11" * 19 + "22", wallet="0x" + "33" * 20)]
    assert await world.find("0x" + "11" * 18 + "22" + "33") == []
    assert await world.find("0x" + "22" + "33" * 19) == []


async def test_what_was_remembered_is_confirmed_before_it_is_said() -> None:
    world = World(3)
    assert await world.find(wallet(2)) == ["1"]
    world.rpc.tokens[1].owner = wallet(50)
    assert await world.find(wallet(2)) == []


async def test_a_new_agent_is_found_within_seconds_without_reading_all_again() -> None:
    world = World(500)
    await world.find(NOBODY)
    world.rpc.asked.clear()
    world.rpc.tokens.append(Token(wallet(777)))
    world.clock.move(2)
    assert await world.find(wallet(777)) == ["500"]
    assert world.rpc.asked.count(OWNER_OF) < 80


async def test_an_old_agent_that_changed_hands_is_found_after_the_next_pass() -> None:
    world = World(500)
    await world.find(NOBODY)
    world.rpc.tokens[7].owner = wallet(777)
    world.clock.move(61)
    assert await world.find(wallet(777)) == ["7"]


async def test_new_agents_do_not_put_the_next_pass_off() -> None:
    world = World(5)
    await world.find(NOBODY)
    world.rpc.tokens[0].owner = wallet(777)
    for _ in range(20):
        world.clock.move(3.1)
        world.rpc.tokens.append(Token(wallet(60)))
        await world.find(NOBODY)
    assert await world.find(wallet(777)) == ["0"]


async def test_many_at_once_share_one_reading() -> None:
    world = World(300)
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(world.find(wallet(1000 + n)))
    assert world.rpc.asked.count(OWNER_OF) < 300 + 8 * 32


class SlowRpc(FakeRpc):
    """Every round takes a moment of real time."""

    pause_s = 0.02

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        await asyncio.sleep(self.pause_s)
        return await super().call(network, calls)


async def test_what_cannot_be_read_in_time_is_unavailable_and_found_later() -> None:
    world = World(4000)
    slow = SlowRpc(world.rpc.tokens)
    index = WalletIndex(slow, world.clock, 0.1)
    with pytest.raises(ChainUnavailable, match="still being read") as refused:
        await index.find(NETWORK, wallet(4000))
    assert refused.value.retry_after_s
    for _ in range(100):
        await asyncio.sleep(0.02)
        try:
            found = await index.find(NETWORK, wallet(4000))
        except ChainUnavailable:
            continue
        assert [match.agent_id for match in found] == ["3999"]
        return
    pytest.fail("the reading did not go on")


async def test_a_match_is_said_before_all_is_read() -> None:
    """The node never answers about the later ids."""

    class Stuck(FakeRpc):
        async def call(
            self, network: Network, calls: Sequence[ContractCall]
        ) -> list[Returned | Reverted]:
            if len(calls) > 64 and int.from_bytes(calls[0].data[4:], "big") >= 400:
                await asyncio.Event().wait()
            return await super().call(network, calls)

    index = WalletIndex(Stuck([Token(wallet(n + 1)) for n in range(800)]), FrozenClock(), 0.2)
    assert await index.find(NETWORK, wallet(1)) == (WalletMatch("0", "owner"),)
    with pytest.raises(ChainUnavailable, match="still being read"):
        await index.find(NETWORK, wallet(500))


async def test_a_failure_in_the_middle_keeps_what_was_read() -> None:
    world = World(3 * SLICE * SLICES_AT_ONCE)
    broken_at = 2 * SLICE * SLICES_AT_ONCE

    def lie(call: ContractCall) -> Returned | Reverted | None:
        broken = call.data[:4].hex() == OWNER_OF and int.from_bytes(call.data[4:]) == broken_at
        return Reverted(b"", "gas") if broken else None

    world.rpc.lie = lie
    with pytest.raises(ChainUnavailable):
        await world.find(NOBODY)
    world.rpc.lie = lambda _call: None
    world.rpc.asked.clear()
    assert await world.find(NOBODY) == []
    assert world.rpc.asked.count(OWNER_OF) <= SLICE * SLICES_AT_ONCE


async def test_a_registry_that_begins_anew_is_read_anew() -> None:
    """A local chain that was started again."""
    world = World(300)
    await world.find(NOBODY)
    world.rpc.tokens = [Token(wallet(777))]
    world.clock.move(61)
    assert await world.find(wallet(5)) == []
    assert await world.find(wallet(777)) == ["0"]


async def test_a_node_that_knows_every_id_is_not_believed() -> None:
    world = World(0)
    world.rpc.lie = lambda _call: Returned(bytes(12) + b"\x11" * 20)
    with pytest.raises(ChainUnavailable, match="more agents"):
        await world.find(NOBODY)


@pytest.mark.parametrize("answer", [Returned(b""), Reverted(b"", ""), Returned(b"\xff" * 32)])
@pytest.mark.parametrize("selector", [OWNER_OF, "00339509"])
async def test_an_answer_that_makes_no_sense_is_unavailable(
    answer: Returned | Reverted, selector: str
) -> None:
    world = World(3)
    world.rpc.lie = lambda call: answer if call.data[:4].hex() == selector else None
    with pytest.raises(ChainUnavailable):
        await world.find(wallet(1))


async def test_fewer_answers_than_calls_are_not_believed() -> None:
    class Short(FakeRpc):
        async def call(
            self, network: Network, calls: Sequence[ContractCall]
        ) -> list[Returned | Reverted]:
            return (await super().call(network, calls))[:-1]

    index = WalletIndex(Short([Token(wallet(1))]), FrozenClock())
    with pytest.raises(ChainUnavailable):
        await index.find(NETWORK, wallet(1))


async def test_a_wallet_with_very_many_agents_gets_the_first_of_them() -> None:
    world = World(0)
    world.rpc.tokens = [Token(wallet(5), wallet=wallet(5)) for _ in range(300)]
    found = await world.find(wallet(5))
    assert found == [str(n) for n in range(SLICE)]


async def test_a_wallet_that_gave_very_many_agents_away_is_not_told_it_has_none() -> None:
    world = World(0)
    world.rpc.tokens = [Token(wallet(5)) for _ in range(300)]
    await world.find(NOBODY)
    for token in world.rpc.tokens[:200]:
        token.owner = wallet(6)
    with pytest.raises(ChainUnavailable):
        await world.find(wallet(5))
