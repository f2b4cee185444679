"""The same service on PostgreSQL; wallets that are contracts; chains by header; a lost chain."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from eth_abi.abi import encode
from eth_account import Account

from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import Wallet, set_agent_wallet, transfer
from assay_demo.chain.registries import register as register_agent
from assay_demo.world import World
from tests.support.assay import Served, operator, served, session, sign
from tests.support.chain import LocalChain
from tests.support.postgres import postgres

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@dataclass
class Standing:
    server: Served
    http: httpx2.Client
    op: dict[str, str]


@pytest.fixture(scope="module")
def standing(
    world: World, chain: LocalChain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standing]:
    """A server on PostgreSQL, with two local chains and one that is gone."""
    own = dict(world.network_override)
    second = own | {
        "chain_id": 31338,
        "identity_registry": chain.registries.identity,
        "reputation_registry": chain.registries.reputation,
        "rpc_urls": [chain.url],
    }
    gone = own | {"chain_id": 4242, "rpc_urls": ["http://127.0.0.1:9"]}
    mislabelled = own | {"chain_id": 4243}
    chains = {"local": own, "second": second, "gone": gone, "mislabelled": mislabelled}
    with (
        served(
            tmp_path_factory.mktemp("pg"), chains, ASSAY_DATABASE_URL=postgres().new_database()
        ) as server,
        httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http,
    ):
        yield Standing(server, http, operator(http, "pg@example.com"))


def test_the_main_job_runs_on_postgresql(standing: Standing, world: World) -> None:
    agent = world.agents[0]
    headers = standing.op | session(standing.http, agent.owner_key)
    first = standing.http.post(f"/operator/gate/{agent.agent_id}", headers=headers).json()
    second = standing.http.post(f"/operator/gate/{agent.agent_id}", headers=headers).json()
    assert (first["allow"], first["cached"]) == (True, False)
    assert (second["allow"], second["cached"]) == (True, True)
    assert standing.http.get(f"/operator/agent/{agent.agent_id}/snapshot").status_code == 200


def test_a_contract_wallet_proves_itself_by_its_own_judgement(
    standing: Standing, world: World
) -> None:
    """ERC-1271: the owner signs, the contract says whether that is its own signature."""
    owner, stranger = ACCOUNTS[10].key, ACCOUNTS[11].key
    with Wallet(world.rpc_url) as wallet:
        address = wallet.deploy(
            ACCOUNTS[0].key, "ContractWallet", encode(["address"], [ACCOUNTS[10].address])
        )
    for key, status in ((stranger, 401), (owner, 200)):
        asked = standing.http.post(f"/operator/key/{address}/challenge").json()["challenge"]
        body = {"agentAddress": address, "challenge": asked, "signature": sign(key, asked)}
        answer = standing.http.post("/operator/key/verify", json=body)
        assert answer.status_code == status, answer.text


def test_the_registered_agent_wallet_speaks_for_the_agent_and_a_former_owner_does_not(
    standing: Standing, world: World
) -> None:
    owner, new_wallet, buyer = ACCOUNTS[12], ACCOUNTS[13], ACCOUNTS[14]
    with Wallet(world.rpc_url) as wallet:
        agent_id = register_agent(wallet, world.registries, owner.key, "data:application/json,{}")
        block = wallet.request("eth_getBlockByNumber", "latest", False)  # noqa: FBT003 - JSON-RPC
        deadline = int(block["timestamp"], 16) + 200
        set_agent_wallet(wallet, world.registries, owner.key, agent_id, new_wallet.key, deadline)
        path = f"/operator/gate/{agent_id}"
        for key in (owner.key, new_wallet.key):
            headers = standing.op | session(standing.http, key)
            assert standing.http.post(path, headers=headers).status_code == 200
        other = register_agent(wallet, world.registries, owner.key, "data:application/json,{}")
        transfer(wallet, world.registries, owner.key, other, buyer.address)
    headers = standing.op | session(standing.http, owner.key)
    sold = standing.http.post(f"/operator/gate/{other}", headers=headers)
    assert (sold.status_code, sold.json()["error"]) == (401, "identity_mismatch")


def test_the_chain_is_chosen_by_query_or_header_and_the_query_wins(standing: Standing) -> None:
    def asked(query: str = "", **headers: str) -> tuple[int, str]:
        answer = standing.http.get(f"/operator/agent/77{query}", headers=standing.op | headers)
        return answer.status_code, answer.json()["error"]

    assert asked("?chain=local") == (404, "agent_not_found")
    assert asked("?chain=gone") == (503, "chain_unavailable")
    assert asked(**{"x-chain": "gone"}) == (503, "chain_unavailable")
    assert asked("?chain=local", **{"x-chain": "gone"}) == (404, "agent_not_found")
    assert asked(**{"x-chain": "atlantis"}) == (400, "invalid_request")


def test_a_chain_that_lies_about_its_id_is_never_believed(standing: Standing, world: World) -> None:
    agent = world.agents[0]
    answer = standing.http.get(
        f"/operator/agent/{agent.agent_id}?chain=mislabelled", headers=standing.op
    )
    assert (answer.status_code, answer.json()["error"]) == (503, "chain_unavailable")
    headers = standing.op | session(standing.http, agent.owner_key)
    gated = standing.http.post(
        f"/operator/gate/{agent.agent_id}?chain=mislabelled", headers=headers
    )
    assert gated.status_code == 503
    assert int(gated.headers["retry-after"]) >= 1


def test_a_key_agent_is_the_same_on_every_chain(standing: Standing) -> None:
    key = Account.create().key.hex()
    address = Account.from_key(key).address
    headers = standing.op | session(standing.http, key)
    answer = standing.http.post(f"/operator/gate/{address}", headers=headers)
    assert answer.status_code == 200
    assert answer.json()["agentId"] == address.lower()
