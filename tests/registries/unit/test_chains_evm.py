import asyncio
import json
from decimal import Decimal

import pytest

from assay.chains.model import ChainUnavailable
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.registries.families.evm import FAMILY, EvmReader
from assay.registries.model import AgentNotFound
from assay.registries.ports import ReaderDependencies
from tests.support.fakes.chain import (
    NETWORK,
    FakeDocuments,
    FakeRpc,
    NoIndex,
    Row,
    Token,
    feedback,
    refuse,
    wallet,
)
from tests.support.fakes.clock import FrozenClock

OWNER_OF, TOKEN_URI, ALL_FEEDBACK = "6352211e", "c87b56dd", "d9d84224"
FILE = json.dumps({"name": "Steady"}).encode()
DIGEST, SIGNATURE = b"d" * 32, b"s" * 65


class World:
    def __init__(self, rpc: FakeRpc, **files: bytes) -> None:
        self.rpc = rpc
        self.documents = FakeDocuments({f"https://a.example/{n}": b for n, b in files.items()})
        self.clock = FrozenClock()
        self.reader = EvmReader(ReaderDependencies(rpc, self.documents, NoIndex(), self.clock))


def answering(selector: str, answer: Returned | Reverted) -> FakeRpc:
    """A node that answers one function with this."""

    def lie(call: ContractCall) -> Returned | Reverted | None:
        return answer if call.data[:4].hex() == selector else None

    return FakeRpc([Token(wallet(1))], lie=lie)


async def test_an_agent_is_read_whole() -> None:
    world = World(FakeRpc([Token(wallet(1), "https://a.example/f", wallet(2))]), f=FILE)
    agent = await world.reader.fetch_agent(NETWORK, "0")
    assert (agent.owner, agent.wallet) == (wallet(1), wallet(2))
    assert agent.controllers == {wallet(1), wallet(2)}
    assert agent.token_uri == "https://a.example/f"
    assert agent.registration is not None
    assert agent.registration.name == "Steady"
    assert agent.registration_problem is None


async def test_an_agent_is_read_in_one_round_after_the_registries_were_checked() -> None:
    world = World(FakeRpc([Token(wallet(1)), Token(wallet(1))]))
    await world.reader.fetch_agent(NETWORK, "0")
    before = world.rpc.rounds
    await world.reader.fetch_agent(NETWORK, "1")
    assert world.rpc.rounds == before + 1


async def test_an_unset_wallet_is_none() -> None:
    agent = await World(FakeRpc([Token(wallet(1))])).reader.fetch_agent(NETWORK, "0")
    assert agent.wallet is None
    assert agent.controllers == {wallet(1)}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "no token URI"),
        ("https://a.example/gone", "not there"),
        ("https://a.example/html", "not JSON"),
        ("https://a.example/" + "x" * 70_000, "longer than"),
    ],
)
async def test_an_agent_without_its_file_says_why(uri: str, said: str) -> None:
    world = World(FakeRpc([Token(wallet(1), uri)]), html=b"<html>")
    agent = await world.reader.fetch_agent(NETWORK, "0")
    assert agent.registration is None
    assert said in str(agent.registration_problem)
    assert len(agent.token_uri) <= 64 * 1024


async def test_an_id_that_the_registry_does_not_know_is_not_found() -> None:
    with pytest.raises(AgentNotFound):
        await World(FakeRpc([])).reader.fetch_agent(NETWORK, "0")


@pytest.mark.parametrize(
    "rpc",
    [
        answering(OWNER_OF, Reverted(b"", "out of gas")),
        answering(OWNER_OF, Reverted(bytes.fromhex("08c379a0"), "no")),
        answering(OWNER_OF, Reverted(bytes.fromhex("7e2732"), "cut off")),
        answering(OWNER_OF, Returned(b"")),
        answering(OWNER_OF, Returned(bytes(32))),
        answering(TOKEN_URI, Reverted(bytes.fromhex("7e273289"), "only the URI is missing")),
        answering(TOKEN_URI, Returned(b"\xff" * 64)),
        answering("00339509", Reverted(b"", "")),
        FakeRpc(down=True),
    ],
    ids=range(9),
)
async def test_any_other_failure_is_unavailable_and_never_not_found(rpc: FakeRpc) -> None:
    with pytest.raises(ChainUnavailable):
        await World(rpc).reader.fetch_agent(NETWORK, "0")


@pytest.mark.parametrize(
    "rpc",
    [
        FakeRpc([Token(wallet(1))], versions=("1.0.0", "2.0.0")),
        FakeRpc([Token(wallet(1))], versions=("2.0.0", "0.0.1")),
        FakeRpc([Token(wallet(1))], linked=wallet(3)),
        answering("0d8e6e2c", Returned(b"")),
        answering("bc4d861b", Reverted(b"", "")),
    ],
    ids=range(5),
)
async def test_a_chain_without_the_real_registries_is_unavailable_to_everybody(
    rpc: FakeRpc,
) -> None:
    reader = World(rpc).reader
    for asked in (
        reader.fetch_agent(NETWORK, "0"),
        reader.fetch_feedback(NETWORK, "0"),
        reader.fetch_agents_of(NETWORK, wallet(1)),
    ):
        with pytest.raises(ChainUnavailable, match="no ERC-8004 registries"):
            await asked
    assert rpc.rounds == 1


async def test_registries_that_were_not_there_are_looked_for_again_after_a_minute() -> None:
    world = World(FakeRpc([Token(wallet(1))], versions=("", "")))
    with pytest.raises(ChainUnavailable):
        await world.reader.fetch_agent(NETWORK, "0")
    world.rpc.versions = ("2.0.0", "2.0.0")
    world.clock.move(59)
    with pytest.raises(ChainUnavailable):
        await world.reader.fetch_agent(NETWORK, "0")
    world.clock.move(2)
    assert (await world.reader.fetch_agent(NETWORK, "0")).owner == wallet(1)


async def test_a_chain_that_is_down_at_first_is_not_held_to_have_no_registries() -> None:
    world = World(FakeRpc([Token(wallet(1))], down=True))
    with pytest.raises(ChainUnavailable):
        await world.reader.fetch_agent(NETWORK, "0")
    world.rpc.down = False
    assert (await world.reader.fetch_agent(NETWORK, "0")).owner == wallet(1)


async def test_an_agent_is_remembered_for_half_a_minute() -> None:
    world = World(FakeRpc([Token(wallet(1))]))
    await world.reader.fetch_agent(NETWORK, "0")
    world.rpc.tokens[0].owner = wallet(2)
    world.clock.move(29)
    assert (await world.reader.fetch_agent(NETWORK, "0")).owner == wallet(1)
    world.clock.move(2)
    assert (await world.reader.fetch_agent(NETWORK, "0")).owner == wallet(2)


async def test_readers_at_once_share_one_reading() -> None:
    world = World(FakeRpc([Token(wallet(1))]))
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(world.reader.fetch_agent(NETWORK, "0"))
    assert world.rpc.asked.count(OWNER_OF) == 1


async def test_a_file_is_remembered_for_five_minutes_and_its_absence_for_half_a_minute() -> None:
    tokens = [Token(wallet(1), "https://a.example/f"), Token(wallet(1), "https://a.example/g")]
    world = World(FakeRpc(tokens), f=FILE)

    async def read() -> list[bool]:
        agents = [await world.reader.fetch_agent(NETWORK, n) for n in "01"]
        return [agent.registration is not None for agent in agents]

    assert await read() == [True, False]
    world.documents.files["https://a.example/g"] = FILE
    world.clock.move(31)
    assert await read() == [True, True]
    assert world.documents.fetched.count("https://a.example/f") == 1
    world.clock.move(300)
    await read()
    assert world.documents.fetched.count("https://a.example/f") == 2


def rows(clients: int, each: int = 1) -> list[Row]:
    return [
        (wallet(c + 1), n + 1, 10 * c + n, 1, "starred", f"t{n}")
        for c in range(clients)
        for n in range(each)
    ]


async def test_feedback_is_read_in_one_call_with_its_exact_values() -> None:
    world = World(FakeRpc(rows=[(wallet(3), 1, -12345, 3, "starred", "x")]))
    (found,) = await world.reader.fetch_feedback(NETWORK, "0")
    assert (found.client, found.index, found.value) == (wallet(3), 1, Decimal("-12.345"))
    assert (found.tag1, found.tag2) == ("starred", "x")
    assert world.rpc.asked.count(ALL_FEEDBACK) == 1


@pytest.mark.parametrize("refused", [refuse, lambda: Reverted(b"", "out of gas")])
@pytest.mark.parametrize("rows_max", [3, 20, 64])
async def test_feedback_beyond_the_gas_of_a_call_is_read_in_slices_all_the_same(
    rows_max: int, refused: object
) -> None:
    everything = rows(150, each=3)
    world = World(FakeRpc(rows=everything, rows_max=rows_max, gas_spent=refused))  # type: ignore[arg-type]
    found = await world.reader.fetch_feedback(NETWORK, "0")
    assert [(f.client, f.index) for f in found] == [(r[0], r[1]) for r in everything]


async def test_feedback_that_cannot_be_read_whole_is_unavailable_and_never_a_part() -> None:
    world = World(FakeRpc(rows=rows(3, each=5), rows_max=4))
    with pytest.raises(ChainUnavailable, match="more feedback"):
        await world.reader.fetch_feedback(NETWORK, "0")


async def test_reading_in_slices_ends_in_time() -> None:
    world = World(FakeRpc(rows=rows(100), rows_max=2))
    honest = world.rpc.call

    async def slow(network, calls):  # noqa: ANN001, ANN202
        world.clock.move(1)
        return await honest(network, calls)

    world.rpc.call = slow  # type: ignore[method-assign]
    with pytest.raises(ChainUnavailable, match="more feedback"):
        await world.reader.fetch_feedback(NETWORK, "0")
    assert world.rpc.rounds < 15


@pytest.mark.parametrize("data", [b"", b"\xff" * 500, feedback(rows(3))[:-40]])
async def test_feedback_that_does_not_decode_is_unavailable(data: bytes) -> None:
    with pytest.raises(ChainUnavailable):
        await World(answering(ALL_FEEDBACK, Returned(data))).reader.fetch_feedback(NETWORK, "0")


@pytest.mark.parametrize(
    ("code", "answer", "expected"),
    [
        ("0x60", Returned(bytes.fromhex("1626ba7e") + bytes(28)), True),
        ("0x", Returned(bytes.fromhex("1626ba7e") + bytes(28)), False),
        ("0x60", Returned(b"\xff" * 4 + bytes(28)), False),
        ("0x60", Returned(b""), False),
        ("0x60", Returned(bytes.fromhex("1626ba7e") + DIGEST), False),
        ("0x60", Reverted(bytes.fromhex("1626ba7e") + bytes(28), "no"), False),
    ],
)
async def test_a_contract_wallet_accepts_only_by_the_magic_value(
    code: str,
    answer: Returned | Reverted,
    expected: bool,  # noqa: FBT001 - a row of the table
) -> None:
    rpc = answering("1626ba7e", answer)
    rpc.codes[wallet(7)] = code
    found = await World(rpc).reader.accepts_signature(NETWORK, wallet(7), DIGEST, SIGNATURE)
    assert found is expected


async def test_a_wallet_that_cannot_be_asked_is_unavailable() -> None:
    with pytest.raises(ChainUnavailable):
        await World(FakeRpc(down=True)).reader.accepts_signature(
            NETWORK, wallet(7), DIGEST, SIGNATURE
        )


def test_the_family_is_known_by_its_name() -> None:
    assert FAMILY.name == "evm"
    needs = ReaderDependencies(FakeRpc(), FakeDocuments(), NoIndex(), FrozenClock())
    assert isinstance(FAMILY.reader(needs), EvmReader)
