"""What the local Solana node serves, and how it fails its callers when told to."""

import base64
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.support.solana import base58, golden, loopback
from tests.support.solana.clusters import DEVNET, MAINNET, keypair
from tests.support.solana.ground import Ground
from tests.support.solana.ground import ground as grounded
from tests.support.solana.layouts import AgentAccount
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import SOL, behind, rpc_error
from tests.support.solana.transactions import wire


def test_accounts_are_read_as_they_are(ground: Ground) -> None:
    address = ground.agent.address
    told = ground.get("getAccountInfo", str(address), {"encoding": "base64"})
    assert told["context"]["slot"] == ground.get("getSlot")
    value = told["value"]
    assert base64.b64decode(value["data"][0]) == ground.agent.account.encoded()
    assert (value["owner"], value["space"]) == (str(MAINNET.registry), 748)
    assert value["lamports"] == 6_096_960
    assert ground.get("getAccountInfo", str(keypair("none").pubkey()))["value"] is None
    keys = [str(key) for key in (address, keypair("none").pubkey(), ground.agent.asset)]
    options = {"encoding": "base64", "dataSlice": {"offset": 1, "length": 32}}
    several = ground.get("getMultipleAccounts", keys, options)["value"]
    assert several[1] is None
    assert base64.b64decode(several[2]["data"][0]) == bytes(ground.agent.account.owner)


def test_programs_accounts_are_found_by_their_bytes(ground: Ground) -> None:
    for number in range(5):
        ground.registry.agent(f"other {number}")
    wallet = ground.agent.account.wallet
    assert wallet is not None
    disc = {"memcmp": {"offset": 0, "bytes": base58.encode(AgentAccount.DISCRIMINATOR)}}
    raw = b"\1" + bytes(wallet)
    for held in (
        {"bytes": base58.encode(raw)},
        {"bytes": base64.b64encode(raw).decode(), "encoding": "base64"},
    ):
        filters = [disc, {"memcmp": {"offset": 138, **held}}, {"dataSize": 748}]
        options: dict[str, Any] = {"filters": filters, "encoding": "base64"}
        options["dataSlice"] = {"offset": 104, "length": 32}
        [found] = ground.get("getProgramAccounts", str(MAINNET.registry), options)
        assert found["pubkey"] == str(ground.agent.address)
        assert base64.b64decode(found["account"]["data"][0]) == bytes(ground.agent.asset)
    every = ground.get(
        "getProgramAccounts", str(MAINNET.registry), {"filters": [disc], "encoding": "base64"}
    )
    assert len(every) == 6


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("getAccountInfo", [], -32602),
        ("getAccountInfo", ["0OIl"], -32602),
        ("getAccountInfo", ["1" * 31], -32602),
        ("getMultipleAccounts", [["1" * 32] * 101], -32602),
        ("getProgramAccounts", ["1" * 32, {"filters": [{"dataSize": 1}] * 5}], -32602),
        ("getAccountInfo", ["1" * 32, {"minContextSlot": 2**40}], -32016),
        ("getNothing", [], -32601),
        ("call", [], -32601),
        ("shown", [], -32601),
    ],
)
def test_calls_that_make_no_sense_get_the_nodes_codes(
    ground: Ground, method: str, params: list[Any], code: int
) -> None:
    assert ground.ask(method, *params)["error"]["code"] == code


def test_long_data_is_not_served_in_base_58(ground: Ground) -> None:
    assert ground.ask("getAccountInfo", str(ground.agent.address))["error"]["code"] == -32600


def test_a_batch_is_answered_in_order_and_nonsense_is_named(ground: Ground) -> None:
    calls = [{"jsonrpc": "2.0", "id": n, "method": "getHealth"} for n in (3, 1)]
    told = ground.http.post(ground.rpc.url, json=calls).json()
    assert [(one["id"], one["result"]) for one in told] == [(3, "ok"), (1, "ok")]
    json_type = {"content-type": "application/json"}
    bad = ground.http.post(ground.rpc.url, content=b"{", headers=json_type).json()
    assert bad["error"]["code"] == -32700
    assert ground.http.get(ground.rpc.url).status_code == 405
    assert ground.http.post(ground.rpc.url, content=b"{}").status_code == 415


@pytest.mark.parametrize("cluster", [MAINNET, DEVNET], ids=lambda one: one.name)
def test_each_cluster_has_its_genesis(cluster: Any) -> None:
    registry = Registry(cluster)
    with grounded(registry, registry.agent()) as on:
        assert on.get("getGenesisHash") == cluster.genesis
        assert on.get("getHealth") == "ok"
        assert "solana-core" in on.get("getVersion")
        to = str(keypair("lucky").pubkey())
        for _ in range(2):
            on.get("requestAirdrop", to, SOL)
        assert on.get("getBalance", to)["value"] == 2 * SOL


# --- what may go wrong ------------------------------------------------------------------------


def test_golden_accounts_are_served_as_they_are() -> None:
    registry = Registry(MAINNET)
    whole = [one for one in golden.accounts() if one.cluster == "mainnet-beta"]
    registry.put_golden(*whole)
    with grounded(registry, registry.agent()) as on:
        for one in whole:
            told = on.get("getAccountInfo", one.address, {"encoding": "base64"})["value"]
            assert base64.b64decode(told["data"][0]) == one.data, one.title
            assert told["owner"] == one.program


def test_a_hanging_node_says_nothing(ground: Ground) -> None:
    with ground.rpc.faults.during(loopback.hang()), pytest.raises(httpx2.ReadTimeout):
        ground.http.post(ground.rpc.url, json={"jsonrpc": "2.0"}, timeout=0.3)
    assert ground.get("getHealth") == "ok"


@pytest.mark.parametrize(
    ("fault", "status", "retry_after"),
    [
        (loopback.rate_limited(), 429, None),
        (loopback.rate_limited(7), 429, "7"),
        (loopback.unavailable(), 503, None),
    ],
)
def test_a_busy_node_says_so(
    ground: Ground, fault: loopback.Fault, status: int, retry_after: str | None
) -> None:
    ground.rpc.faults.on(fault, only="getHealth", times=1)
    call = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
    answer = ground.http.post(ground.rpc.url, json=call)
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)
    assert ground.get("getHealth") == "ok"


def test_a_node_can_lie_in_every_way(ground: Ground) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
    faults, url = ground.rpc.faults, ground.rpc.url
    with faults.during(behind()):
        told = ground.http.post(url, json=call).json()["error"]
        assert (told["code"], told["data"]) == (-32005, {"numSlotsBehind": 157})
    with faults.during(rpc_error(-32603, "Internal error")):
        assert ground.http.post(url, json=call).json()["error"]["code"] == -32603
    with faults.during(loopback.garbage()):
        assert ground.http.post(url, json=call).text.startswith("<html>")
    with faults.during(loopback.cut()), pytest.raises(httpx2.RemoteProtocolError):
        ground.http.post(url, json=call)
    with faults.during(loopback.hang_up()), pytest.raises(httpx2.RemoteProtocolError):
        ground.http.post(url, json=call)
    with faults.during(loopback.drip(0.001)):
        assert ground.http.post(url, json=call).json()["result"] == "ok"
    with faults.during(loopback.huge()), ground.http.stream("POST", url, json=call) as answer:
        assert int(answer.headers["content-length"]) == 100_000_000
        assert next(answer.iter_bytes()).startswith(b'{"jsonrpc"')
    with faults.during(loopback.rewritten(lambda told: told | {"id": 99})):
        assert ground.http.post(url, json=call).json()["id"] == 99
    assert ground.get("getHealth") == "ok"


@pytest.mark.parametrize(
    ("fault", "count"),
    [
        (loopback.hang(), 42),
        (loopback.hang_up(), 42),
        (loopback.rate_limited(), 42),
        (loopback.unavailable(), 42),
        (behind(), 42),
        (loopback.lost(), 43),
        (loopback.cut(), 43),
        (loopback.slow(0.01), 43),
    ],
    ids=["hang", "hang up", "429", "503", "behind", "lost", "cut", "slow"],
)
def test_what_is_refused_is_not_done_and_what_is_lost_is(
    ground: Ground, fault: loopback.Fault, count: int
) -> None:
    made = ground.rating()
    call = {"jsonrpc": "2.0", "id": 1, "method": "sendTransaction"}
    call |= {"params": [wire(made), {"encoding": "base64"}]}
    with ground.rpc.faults.during(fault, only="sendTransaction"), suppress(httpx2.TransportError):
        ground.http.post(ground.rpc.url, json=call, timeout=0.3)
    assert ground.agent.account.feedback.count == count
