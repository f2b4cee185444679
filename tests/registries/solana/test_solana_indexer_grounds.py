"""The local indexer answers the SDK's own requests in the golden shapes."""

from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest
from solders.pubkey import Pubkey

from tests.support.solana import golden, loopback
from tests.support.solana.clusters import MAINNET
from tests.support.solana.ground import STARRED, WALLET, Ground
from tests.support.solana.indexer import Indexer, gone, graphql_error, indexer
from tests.support.solana.layouts import AtomNumbers, Chain
from tests.support.solana.registry import Agent, Registry
from tests.support.solana.world import solana_world

CALLS = [
    pytest.param(call, id=f"{call['transport']}-{call['call']}")
    for call in golden.read("indexer")["calls"]
]
NOT_EVENTS = {"sort_key", "tx_signature", "running_digest", "created_at", "updated_at"}
"""What no client reads, or what depends on the hour."""


def golden_registry() -> tuple[Registry, Agent]:
    """The one agent of the golden answers, with its one rating."""
    registry = Registry(MAINNET)
    row = golden.read("indexer")["calls"][0]["result"]
    key = Pubkey.from_string
    atom = AtomNumbers(
        trust_tier=1, quality_score=2017, confidence=640, risk_score=3, diversity_ratio=255
    )
    agent = registry.agent(
        asset=key(row["asset"]), owner=key(row["owner"]), wallet=key(row["agent_wallet"]),
        collection=key(row["collection"]), uri=row["agent_uri"], name=row["nft_name"],
        feedback=Chain(count=4), atom=atom, number=42,
    )  # fmt: skip
    client = key("4bzGuaQyZfb6EeMrz1BxVdWiMSvsgi5AKgrtMxYH9QXt")
    registry.feedback(
        agent, client, slot=431_000_009, value=8750, decimals=2, score=88, tag1="starred",
        tag2="sandbox", created_at=1_772_755_200, signature="sig2",
    )  # fmt: skip
    return registry, agent


@pytest.fixture
def index() -> Iterator[Indexer]:
    registry, _ = golden_registry()
    with indexer(registry) as made:
        yield made


def ask(index: Indexer, request: dict[str, Any]) -> Any:
    url = index.url + request["url"]
    if request["method"] == "POST":
        return httpx2.post(url, json=request["body"]).json()
    return httpx2.get(url).json()


def same_shape(ours: Any, theirs: Any, path: str = "") -> None:
    """The same members and kinds of values; of known facts, the same values."""
    assert type(ours) is type(theirs), path
    if isinstance(theirs, dict):
        for name, value in cast("dict[str, Any]", theirs).items():
            assert name in ours, f"{path}.{name}"
            if value is not None and name not in NOT_EVENTS:
                same_shape(ours[name], value, f"{path}.{name}")
    elif isinstance(theirs, list):
        for one, other in zip(ours, cast("list[Any]", theirs), strict=True):
            same_shape(one, other, path)
    elif not path.endswith(("avg_score", "avgScore", "id", "createdAt", "Count", "_count")):
        assert ours == theirs, path


@pytest.mark.parametrize("call", CALLS)
def test_the_sdks_requests_get_the_golden_shapes(index: Indexer, call: dict[str, Any]) -> None:
    for request in call["requests"]:
        told = ask(index, request)
        if call["call"].startswith("getAgentByAgentId") and call["transport"] == "graphql":
            # The SDK declares the id a String, where the schema has BigInt: refused in truth too.
            assert "BigInt" in told["errors"][0]["message"]
            continue
        golden_one = _asked_for(request, request["response"])
        same_shape(told, golden_one)


def _asked_for(request: dict[str, Any], response: Any) -> Any:
    """Of a golden answer, the members that its query asks for."""
    if request["method"] != "POST":
        return response
    query = request["body"]["query"]

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value).items()
            return {n: kept(v) for n, v in members if n == "data" or f"{n} " in query}
        return [kept(x) for x in cast("list[Any]", value)] if isinstance(value, list) else value

    return kept({k: v for k, v in response.items() if k == "data"}) if response else response


def test_an_agent_is_found_by_every_key(index: Indexer) -> None:
    agent = index.registry.agents[0]
    account = agent.account
    other = index.registry.agent("other", owner=account.owner)
    for where, expected in [
        (f'id: "{agent.asset}"', [agent]),
        ("agentId: 42", [agent]),
        ('agentId: "42"', [agent]),
        (f'agentWallet: "{account.wallet}"', [agent]),
        (f'owner: "{account.owner}"', [other, agent]),
        ("agentId: 43", []),
    ]:
        query = f"{{ agents(where: {{ {where} }}) {{ id agentId }} }}"
        found = httpx2.post(index.url + "/v2/graphql", json={"query": query}).json()
        assert [one["id"] for one in found["data"]["agents"]] == [
            str(one.asset) for one in expected
        ], where
    variables = {"query": "query($id: BigInt!) { agents(first: 1, where: {agentId: $id}) { id } }"}
    variables |= {"variables": {"id": "42"}}
    found = httpx2.post(index.url + "/v2/graphql", json=variables).json()
    assert found == {"data": {"agents": [{"id": str(agent.asset)}]}}


def test_ratings_come_in_pages_newest_first_without_orphans(index: Indexer) -> None:
    registry = index.registry
    agent = registry.agent("rated")
    for n in range(25):
        status = "ORPHANED" if n == 3 else "FINALIZED"
        registry.feedback(
            agent, f"c{n}", score=n, created_at=1_800_000_000 + n, revoked=n == 5, status=status
        )
    query = """query($a: ID!, $skip: Int!) { feedbacks(first: 10, skip: $skip,
      where: {agent: $a, isRevoked: false}, orderBy: createdAt, orderDirection: desc)
      { solana { score } } }"""
    scores: list[int] = []
    for skip in (0, 10, 20):
        body = {"query": query, "variables": {"a": str(agent.asset), "skip": skip}}
        told = httpx2.post(index.url + "/v2/graphql", json=body).json()["data"]["feedbacks"]
        scores += [one["solana"]["score"] for one in told]
    assert scores == [n for n in reversed(range(25)) if n not in {3, 5}]
    query = f"asset=eq.{agent.asset}&order=feedback_id.desc&limit=10&offset=10&is_revoked=eq.false"
    rows = httpx2.get(f"{index.url}/rest/v1/feedbacks?{query}").json()
    assert [row["score"] for row in rows] == scores[10:20]
    rows = httpx2.get(f"{index.url}/rest/v1/agent_reputation?asset=eq.{agent.asset}").json()
    assert rows[0]["avg_score"] == 13  # 292 / 23 = 12.7


def test_sequential_ids_may_differ_or_be_missing(index: Indexer) -> None:
    index.shift = 100
    index.registry.agent("legacy", number=None)
    rows = httpx2.get(f"{index.url}/rest/v1/agents").json()
    assert [row["agent_id"] for row in rows] == ["142", None]
    assert httpx2.get(f"{index.url}/rest/v1/agents?agent_id=eq.42").json() == []


def test_what_has_left_the_chain_is_listed_still(index: Indexer) -> None:
    agent = index.registry.agents[0]
    index.registry.vanish(agent.address, agent.asset, agent.stats_address)
    [row] = httpx2.get(f"{index.url}/rest/v1/agents?asset=eq.{agent.asset}").json()
    assert row["owner"] == str(agent.registered.owner)


def test_nonsense_is_refused(index: Indexer) -> None:
    post = f"{index.url}/v2/graphql"
    for query in ("{ agents { nothing } }", "{ agents(where: {nothing: 1}) { id } }", "{"):
        assert "errors" in httpx2.post(post, json={"query": query}).json(), query
    assert httpx2.post(post, content=b"{").status_code == 400
    assert httpx2.get(post).status_code == 405
    assert httpx2.get(f"{index.url}/rest/v1/agents?nothing=eq.1").status_code == 400
    assert httpx2.get(f"{index.url}/rest/v1/nothing").status_code == 404


def test_an_indexer_can_fail_on_one_side_only(index: Indexer) -> None:
    rest, post = f"{index.url}/rest/v1/agents", f"{index.url}/v2/graphql"
    body = {"query": "{ agents { id } }"}
    with index.faults.during(gone(), only="rest"):
        assert httpx2.get(rest).status_code == 410
        assert "data" in httpx2.post(post, json=body).json()
    with index.faults.during(graphql_error(code="RATE_LIMITED"), only="graphql"):
        assert httpx2.post(post, json=body).json()["data"] is None
        assert httpx2.get(rest).status_code == 200
    with index.faults.during(loopback.rate_limited(30)):
        assert httpx2.get(f"{index.url}/health").headers["retry-after"] == "30"
    with index.faults.during(loopback.garbage()), pytest.raises(ValueError, match="Expecting"):
        httpx2.get(rest).json()
    assert httpx2.get(f"{index.url}/ready").json() == {"status": "ready"}


def test_the_node_and_the_indexer_of_one_world_agree() -> None:
    with solana_world() as world, httpx2.Client(timeout=5) as http:
        uri = world.zoo.registration("web")
        agent = world.registry.agent(uri=uri)
        on = Ground(world.registry, world.rpc, http, agent)
        world.rpc.fund(WALLET.pubkey())
        signature = on.send(on.rating())["result"]
        url = f"{world.index.url}/rest/v1"
        [row] = http.get(f"{url}/feedbacks?asset=eq.{agent.asset}").json()
        assert (row["tx_signature"], row["score"]) == (signature, STARRED.score)
        [row] = http.get(f"{url}/agents?asset=eq.{agent.asset}").json()
        assert (row["feedback_count"], row["agent_uri"]) == (1, uri)
        assert http.get(row["agent_uri"]).json()["services"][0]["name"] == "web"
