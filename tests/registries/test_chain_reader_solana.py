"""Solana agents read from a real runtime's accounts and an indexer, both over their real wire.

Whatever node and indexer do, an agent is read whole, is not there, or cannot be read now.
"""

import base64
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from decimal import Decimal

import pytest

from assay.chains.model import ChainUnavailable
from assay.registries.model import AgentNotFound, OnchainAgent
from assay.registries.registration import TYPE
from tests.support.solana import golden, loopback
from tests.support.solana.clusters import SYSTEM_PROGRAM, keypair
from tests.support.solana.indexer import gone, graphql_error
from tests.support.solana.loopback import Fault
from tests.support.solana.reading import Reading, reading
from tests.support.solana.registry import Agent
from tests.support.solana.rpc import behind, not_indexed, rpc_error


@pytest.fixture
async def ground() -> AsyncGenerator[Reading]:
    async with reading() as found:
        yield found


def data_uri(**file: object) -> str:
    text = json.dumps({"type": TYPE, "name": "Steady", **file})
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()


async def read(ground: Reading, agent: Agent) -> OnchainAgent:
    return await ground.reader.fetch_agent(ground.network, str(agent.asset))


async def test_an_agent_is_read_whole(ground: Reading) -> None:
    wallet = keypair("wallet").pubkey()
    agent = ground.registry.agent(
        wallet=wallet,
        uri=data_uri(services=[{"type": "MCP", "value": "https://a.example/mcp"}]),
        feedback_count=42,
        atom=golden.atom("forty-clients"),
    )
    found = await read(ground, agent)
    assert found.agent_id == str(agent.asset)
    assert found.owner == str(agent.account.owner)
    assert found.wallet == str(wallet)
    assert found.controllers == {found.owner, found.wallet}
    assert found.collection == str(ground.registry.collection)
    assert found.feedback_count == 42
    assert found.registration is not None
    assert [(s.name, s.endpoint) for s in found.registration.services] == [
        ("MCP", "https://a.example/mcp")
    ]
    figures = golden.account("AtomStats", "forty-clients").decoded
    assert found.atom is not None
    assert found.atom.quality_score == figures["qualityScore"]
    assert found.atom.unique_callers == figures["uniqueCallers"]


async def test_the_owner_is_the_assets_and_not_the_registrys_copy(ground: Reading) -> None:
    buyer = keypair("buyer").pubkey()
    found = await read(ground, ground.registry.agent(core_owner=buyer))
    assert found.owner == str(buyer)
    assert found.controllers == {str(buyer)}


async def test_an_agent_without_figures_or_file_is_an_agent(ground: Reading) -> None:
    found = await read(ground, ground.registry.agent())
    assert (found.atom, found.wallet, found.registration) == (None, None, None)
    assert found.registration_problem == "The agent has no token URI."


async def test_a_sequential_id_is_the_agent_the_index_names(ground: Reading) -> None:
    first, second = ground.registry.agent("first"), ground.registry.agent("second")
    identify = ground.reader.identify
    assert await identify(ground.network, "1") == str(first.asset)
    assert await identify(ground.network, "2") == str(second.asset)
    assert (await ground.reader.fetch_agent(ground.network, "2")).agent_id == str(second.asset)
    with pytest.raises(AgentNotFound):
        await identify(ground.network, "3")


async def test_an_id_nobody_has_is_not_found(ground: Reading) -> None:
    for missing in (str(keypair("nobody").pubkey()), str(SYSTEM_PROGRAM)):
        with pytest.raises(AgentNotFound):
            await ground.reader.fetch_agent(ground.network, missing)


async def test_a_number_whose_asset_is_not_on_chain_is_not_found(ground: Reading) -> None:
    agent = ground.registry.agent()
    ground.registry.vanish(agent.address)
    with pytest.raises(AgentNotFound):
        await ground.reader.fetch_agent(ground.network, "1")


async def test_a_burnt_asset_is_no_agent_any_more(ground: Reading) -> None:
    agent = ground.registry.agent()
    ground.registry.vanish(agent.asset)
    with pytest.raises(AgentNotFound):
        await read(ground, agent)


async def test_accounts_that_are_not_what_they_should_be_are_not_believed(ground: Reading) -> None:
    cut = ground.registry.agent("cut")
    ground.registry.truncate(cut.address, 265)
    other = ground.registry.agent("other program")
    ground.registry.hand_over(other.address, SYSTEM_PROGRAM)
    core = ground.registry.agent("other core")
    ground.registry.hand_over(core.asset, SYSTEM_PROGRAM)
    figures = ground.registry.agent("other figures", atom=golden.atom("one-feedback"))
    ground.registry.truncate(figures.stats_address, 560)
    swapped = ground.registry.agent("swapped")
    stranger = ground.registry.agent("stranger")
    ground.registry.put(
        swapped.address, stranger.account.encoded(), ground.registry.cluster.registry
    )
    for agent in (cut, other, core, figures, swapped):
        with pytest.raises(ChainUnavailable):
            await read(ground, agent)


async def test_an_agent_is_remembered_for_half_a_minute(ground: Reading) -> None:
    agent = ground.registry.agent(feedback_count=1)
    await read(ground, agent)
    ground.registry.change(agent, wallet=keypair("new").pubkey())
    assert (await read(ground, agent)).wallet is None
    ground.later()
    assert (await read(ground, agent)).wallet == str(keypair("new").pubkey())


NODE_FAULTS: list[Fault] = [
    loopback.hang(),
    loopback.hang_up(),
    loopback.rate_limited(1),
    loopback.unavailable(),
    loopback.status(403),
    loopback.garbage(),
    loopback.huge(),
    loopback.drip(0.5),
    loopback.cut(),
    behind(),
    rpc_error(-32603, "Internal error"),
    rpc_error(-32602, "Invalid params"),
    loopback.rewritten(lambda body: {**body, "result": None}),
    loopback.rewritten(lambda body: {**body, "result": {"value": []}}),
    loopback.rewritten(lambda body: {**body, "result": {"value": [1, 2, 3]}}),
    loopback.rewritten(lambda body: {**body, "id": 10**9}),
    loopback.rewritten(lambda _: [[[]]]),
]


@pytest.mark.parametrize("fault", NODE_FAULTS, ids=range(len(NODE_FAULTS)))
async def test_a_node_that_misbehaves_makes_the_chain_unavailable(
    ground: Reading, fault: Fault
) -> None:
    agent = ground.registry.agent()
    ground.node.faults.on(fault, only="getMultipleAccounts")
    with pytest.raises(ChainUnavailable):
        await read(ground, agent)


async def test_a_node_of_another_cluster_is_not_asked(ground: Reading) -> None:
    agent = ground.registry.agent()
    elsewhere = replace(ground.network, genesis="EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG")
    with pytest.raises(ChainUnavailable):
        await ground.reader.fetch_agent(elsewhere, str(agent.asset))
    assert {method for method, _ in ground.node.calls()} == {"getGenesisHash"}


async def test_feedback_is_read_in_full_with_its_exact_values(ground: Reading) -> None:
    agent = ground.registry.agent()
    ground.registry.feedback(agent, "one", value=87, score=87, tag1="starred", created_at=1000)
    ground.registry.feedback(agent, "two", value=-(2**127), decimals=18, tag1="revenues")
    ground.registry.feedback(agent, "gone", value=1, score=1, revoked=True)
    ground.registry.feedback(agent, "orphan", value=1, score=1, status="ORPHANED")
    one, two = await ground.reader.fetch_feedback(ground.network, str(agent.asset))
    assert (one.client, one.index) == (str(keypair("client:one").pubkey()), 0)
    assert (one.value, one.score, one.given_s, one.tag1) == (Decimal(87), 87, 1000, "starred")
    assert (two.score, two.is_scored, two.decimals) == (None, True, 18)
    assert two.value == Decimal("-170141183460469231731.687303715884105728")


async def test_pages_of_feedback_are_read_to_the_end(ground: Reading) -> None:
    agent = ground.registry.agent()
    for number in range(530):
        ground.registry.feedback(agent, f"c{number}", score=number % 101)
    found = await ground.reader.fetch_feedback(ground.network, str(agent.asset))
    assert [entry.index for entry in found] == list(range(530))


INDEX_FAULTS: list[Fault] = [
    loopback.hang(),
    loopback.hang_up(),
    loopback.rate_limited(),
    loopback.unavailable(),
    loopback.garbage(),
    loopback.huge(),
    loopback.cut(),
    graphql_error(),
    loopback.rewritten(lambda _: None),
    loopback.rewritten(lambda _: {"data": {"agents": [{"id": "no key"}], "feedbacks": [{}]}}),
    loopback.rewritten(lambda _: {"data": {"agents": [7], "feedbacks": ["x"]}}),
]


@pytest.mark.parametrize("fault", INDEX_FAULTS, ids=range(len(INDEX_FAULTS)))
async def test_an_index_that_misbehaves_is_unavailable_and_the_agent_is_not(
    ground: Reading, fault: Fault
) -> None:
    agent = ground.registry.agent(feedback_count=3)
    ground.index.faults.on(fault)
    with pytest.raises(ChainUnavailable):
        await ground.reader.identify(ground.network, "1")
    with pytest.raises(ChainUnavailable):
        await ground.reader.fetch_feedback(ground.network, str(agent.asset))
    assert (await read(ground, agent)).feedback_count == 3


@pytest.mark.parametrize("fault", [gone(), graphql_error(), loopback.status(404)], ids=range(3))
async def test_either_form_of_the_index_is_enough(ground: Reading, fault: Fault) -> None:
    agent = ground.registry.agent()
    ground.registry.feedback(agent, "one", value=875, decimals=1, score=88, created_at=1772755200)
    for form in ("rest", "graphql"):
        ground.index.faults.off()
        ground.index.faults.on(fault, only=form)
        ground.later(400)
        assert await ground.reader.identify(ground.network, "1") == str(agent.asset)
        (entry,) = await ground.reader.fetch_feedback(ground.network, str(agent.asset))
        assert (entry.value, entry.score, entry.given_s) == (Decimal("87.5"), 88, 1772755200)


async def test_an_index_that_is_down_is_left_for_the_next(ground: Reading) -> None:
    agent = ground.registry.agent()
    dead = "http://127.0.0.1:9"
    network = replace(ground.network, index_urls=(dead, *ground.network.index_urls))
    assert await ground.reader.identify(network, "1") == str(agent.asset)
    nowhere = replace(ground.network, cluster="devnet", index_urls=())
    with pytest.raises(ChainUnavailable):
        await ground.reader.identify(nowhere, "1")


@pytest.mark.parametrize("indexed", [True, False], ids=["by the index", "by the accounts"])
async def test_a_wallet_leads_to_its_agents(ground: Reading, *, indexed: bool) -> None:
    wallet, owner = keypair("wallet").pubkey(), keypair("owner").pubkey()
    named = ground.registry.agent("named", wallet=wallet)
    owned = ground.registry.agent("owned", owner=owner)
    ground.registry.agent("creators", creator=owner)
    ground.registry.agent("sold", owner=owner, core_owner=keypair("buyer").pubkey())
    if not indexed:
        ground.index.faults.on(loopback.unavailable())
    of_wallet = await ground.reader.fetch_agents_of(ground.network, str(wallet))
    of_owner = await ground.reader.fetch_agents_of(ground.network, str(owner))
    assert [(m.agent_id, m.source) for m in of_wallet] == [(str(named.asset), "agentWallet")]
    assert [(m.agent_id, m.source) for m in of_owner] == [(str(owned.asset), "owner")]
    assert await ground.reader.fetch_agents_of(ground.network, str(SYSTEM_PROGRAM)) == ()


async def test_assets_sent_to_a_wallet_do_not_hide_its_own_agent(ground: Reading) -> None:
    owner = keypair("target").pubkey()
    own = ground.registry.agent("own", owner=owner)
    for number in range(20):
        ground.registry.agent(f"sent {number}", owner=owner)
    for form in ("none", "graphql"):
        ground.index.faults.on(gone(), only=form)
        found = await ground.reader.fetch_agents_of(ground.network, str(owner))
        assert found[0].agent_id == str(own.asset)


async def test_entries_about_another_agent_are_not_believed(ground: Reading) -> None:
    agent, other = ground.registry.agent("asked"), ground.registry.agent("other")
    ground.registry.feedback(other, "one", score=100)
    for form in ("graphql", "rest"):
        rows = rows_of(other, form)
        ground.index.faults.on(loopback.rewritten(lambda _, rows=rows: rows), only=form)
    with pytest.raises(ChainUnavailable):
        await ground.reader.fetch_feedback(ground.network, str(agent.asset))


async def test_of_several_agents_the_newest_that_names_the_wallet_comes_first(
    ground: Reading,
) -> None:
    key = keypair("both").pubkey()
    ground.registry.agent("owned first", owner=key)
    older = ground.registry.agent("older", wallet=key)
    newer = ground.registry.agent("newer", wallet=key)
    found = await ground.reader.fetch_agents_of(ground.network, str(key))
    assert [m.agent_id for m in found[:2]] == [str(newer.asset), str(older.asset)]
    assert [m.source for m in found] == ["agentWallet", "agentWallet", "owner"]


async def test_a_wallet_cannot_be_looked_up_where_nobody_lists(ground: Reading) -> None:
    ground.index.faults.on(loopback.unavailable())
    ground.node.faults.on(not_indexed(ground.registry.cluster.registry), only="getProgramAccounts")
    with pytest.raises(ChainUnavailable):
        await ground.reader.fetch_agents_of(ground.network, str(keypair("w").pubkey()))


async def test_an_index_that_lies_about_a_wallet_is_not_believed(ground: Reading) -> None:
    victim = ground.registry.agent("victim")
    attacker = str(keypair("attacker").pubkey())
    rows = {"data": {"agents": [{"id": str(victim.asset)}]}}
    ground.index.faults.on(loopback.rewritten(lambda _: rows), only="graphql")
    assert await ground.reader.fetch_agents_of(ground.network, attacker) == ()


async def test_an_account_shows_its_balance_and_whether_a_key_signs_for_it(
    ground: Reading,
) -> None:
    key = keypair("somebody").pubkey()
    ground.node.fund(key, 2_000_000_000)
    account = await ground.reader.fetch_account(ground.network, str(key))
    assert account.balance == 2 * 10**18
    assert account.is_contract is False
    pda = str(ground.registry.agent().address)
    assert (await ground.reader.fetch_account(ground.network, pda)).is_contract is True


async def test_nobody_signs_for_a_solana_wallet_by_contract(ground: Reading) -> None:
    wallet = str(keypair("w").pubkey())
    assert not await ground.reader.accepts_signature(ground.network, wallet, b"", b"x")


def rows_of(agent: Agent, form: str) -> object:
    """One entry about `agent`, as an indexer gives it."""
    client, asset = str(keypair("client:one").pubkey()), str(agent.asset)
    if form == "rest":
        row = {"asset": asset, "client_address": client, "feedback_index": "0", "score": 100}
        return [row | {"value": "100", "value_decimals": 0}]
    solana = {"valueRaw": "100", "valueDecimals": 0, "score": 100}
    entry = {"agent": {"id": asset}, "clientAddress": client, "feedbackIndex": "0"}
    return {"data": {"feedbacks": [entry | {"solana": solana}]}}
