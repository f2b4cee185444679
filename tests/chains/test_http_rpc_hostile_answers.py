"""Whatever one node answers, the next one is asked, and nothing is raised but the typed refusal.

Each answer of `hostile_answers` is given by the first of two nodes, to every question or to all but
those that say which chain it serves and how high it is, and then by both.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable, Network
from assay.common import addresses
from tests.support.ethereum_node import CHAIN_ID, REGISTRY, Node
from tests.support.fakes.clock import FrozenClock
from tests.support.hostile_answers import ALL, SLOW, Hostile, as_list
from tests.support.raw_server import RawServer, Request, plain, sends, serving
from tests.support.rpc_bench import THREE, expected

pytestmark = pytest.mark.slow

PATIENT = RpcLimits(endpoint_s=5.0, total_s=20.0, reply_bytes_max=100_000)
"""For answers that come at once: a busy machine takes long to give the honest one."""

BRIEF = RpcLimits(endpoint_s=0.8, total_s=10.0, reply_bytes_max=100_000)
"""For answers that never end."""

FIRST_QUESTIONS = {"eth_chainId", "eth_blockNumber", "getGenesisHash"}

WORD = "0x" + "ab" * 32
RECEIPT: dict[str, Any] = {"status": "0x1", "transactionHash": WORD, "logs": []}
KEY, SIGNATURE = addresses.encode(b"\7" * 32), addresses.encode(b"\7" * 64)
ACCOUNT = {"owner": KEY, "data": ["AAAA", "base64"], "lamports": 1}

TOLD: Mapping[str, Any] = {
    "eth_gasPrice": "0x77359400",
    "eth_getTransactionCount": "0x5",
    "eth_getBalance": "0xde0b6b3a7640000",
    "eth_getCode": "0x6001",
    "eth_getTransactionReceipt": RECEIPT,
    "eth_sendRawTransaction": WORD,
    "getGenesisHash": KEY,
    "getBalance": {"context": {"slot": 1}, "value": 5},
    "getLatestBlockhash": {"context": {"slot": 1}, "value": {"blockhash": KEY}},
    "getMultipleAccounts": {"context": {"slot": 1}, "value": [ACCOUNT, None]},
    "getProgramAccounts": [{"pubkey": KEY, "account": ACCOUNT}],
    "getSignaturesForAddress": [{"signature": SIGNATURE, "blockTime": 1_700_000_000}],
    "sendTransaction": SIGNATURE,
}
"""What an honest node says of both families."""

COUNTS = [("eth_getTransactionCount", (f"0x{n:040x}", "latest")) for n in range(3)]
PASTS: list[tuple[str, tuple[Any, ...]]] = [
    ("getSignaturesForAddress", (KEY, {})) for _ in range(3)
]

Ask = Callable[[JsonRpc, Network], Awaitable[Any]]
HONEST = {
    ("eth_getTransactionReceipt", "result null"),
    ("request_all", "result a list"),
    ("getProgramAccounts", "result a list"),
}
"""There may be no receipt yet, and no transactions: nobody can tell that from a lie."""


def request(method: str, *params: Any) -> Ask:
    return lambda rpc, network: rpc.request(network, method, params)


async def called(answers: Awaitable[Sequence[Any]]) -> list[bytes]:
    return [answer.data for answer in await answers]


EVM: Mapping[str, tuple[Ask, Any]] = {
    "call": (lambda rpc, network: called(rpc.call(network, THREE)), expected()),
    "call_newest": (lambda rpc, network: called(rpc.call_newest(network, THREE)), expected()),
    "request_all": (lambda rpc, network: rpc.request_all(network, COUNTS), ["0x5"] * 3),
    **{
        method: (request(method, *params), TOLD[method])
        for method, params in {
            "eth_gasPrice": (),
            "eth_getBalance": ("0x0", "latest"),
            "eth_getTransactionReceipt": (WORD,),
            "eth_sendRawTransaction": ("0x02",),
        }.items()
    },
}
SOLANA_PARAMS: Mapping[str, tuple[Any, ...]] = {
    "getBalance": (KEY, {}),
    "getLatestBlockhash": ({},),
    "getMultipleAccounts": ([KEY, KEY], {}),
    "getProgramAccounts": (KEY, {}),
    "sendTransaction": ("AAAA", {}),
}
SOLANA: Mapping[str, tuple[Ask, Any]] = {
    "request_all": (
        lambda rpc, network: rpc.request_all(network, PASTS),
        [TOLD["getSignaturesForAddress"]] * 3,
    ),
    **{
        method: (request(method, *params), TOLD[method]) for method, params in SOLANA_PARAMS.items()
    },
}


@dataclass(frozen=True)
class Liar:
    """Answers as `lie` has it, or honestly where there is none."""

    lie: Hostile | None = None
    at_once: bool = True

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        asked: Any = json.loads(request.body)
        listed = as_list(asked)
        honest: Any = [_honest(one) for one in listed]
        honest = honest if isinstance(asked, list) else honest[0]
        is_first = not self.at_once and all(one["method"] in FIRST_QUESTIONS for one in listed)
        if self.lie is None or is_first:
            writer.write(plain(json.dumps(honest).encode()))
            return
        reply = self.lie(honest)
        await sends(*([reply] if isinstance(reply, bytes) else reply))(request, writer)


def _told(asked: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any] | None:
    known = TOLD.get(asked["method"])
    return None if known is None else {"jsonrpc": "2.0", "id": reply["id"], "result": known}


NODE = Node(answer=_told)


def _honest(asked: dict[str, Any]) -> dict[str, Any]:
    return NODE.handle(asked)


@asynccontextmanager
async def nodes(
    *liars: Liar, family: str, limits: RpcLimits = PATIENT
) -> AsyncGenerator[tuple[JsonRpc, Network]]:
    async with AsyncExitStack() as stack:
        running: list[RawServer] = [
            await stack.enter_async_context(serving(one.respond)) for one in liars
        ]
        rpc = JsonRpc(FrozenClock(), limits)
        stack.push_async_callback(rpc.aclose)
        yield (
            rpc,
            Network(
                slug="local",
                name="Local",
                chain_id=CHAIN_ID if family == "evm" else 0,
                testnet=True,
                identity_registry=REGISTRY,
                reputation_registry=REGISTRY,
                rpc_urls=tuple(one.url("/key123") for one in running),
                source="a test",
                multicall3=True,
                family=family,  # type: ignore[arg-type]
                genesis=KEY,
            ),
        )


FAMILIES = {"evm": EVM, "solana": SOLANA}


def campaign(family: str, lie: str) -> tuple[RpcLimits, Mapping[str, tuple[Ask, Any]]]:
    """How long one node is waited for, and what is asked: of a slow one only one question."""
    asked = {name: one for name, one in FAMILIES[family].items() if (name, lie) not in HONEST}
    if lie not in SLOW:
        return PATIENT, asked
    return BRIEF, dict(list(asked.items())[:1])


CAMPAIGN = [(family, lie) for family in FAMILIES for lie in ALL]


def test_the_campaign_is_large_enough() -> None:
    assert len(ALL) >= 60


@pytest.mark.parametrize(("family", "lie"), CAMPAIGN, ids=[": ".join(one) for one in CAMPAIGN])
async def test_a_hostile_answer_never_defeats_fail_over(family: str, lie: str) -> None:
    limits, asked = campaign(family, lie)
    for at_once in (True, False):
        for name, (ask, truth) in asked.items():
            liars = (Liar(ALL[lie], at_once), Liar())
            async with nodes(*liars, family=family, limits=limits) as (rpc, network):
                assert await ask(rpc, network) == truth, name


@pytest.mark.parametrize(("family", "lie"), CAMPAIGN, ids=[": ".join(one) for one in CAMPAIGN])
async def test_a_hostile_answer_is_a_typed_refusal_and_never_an_answer(
    family: str, lie: str
) -> None:
    limits, asked = campaign(family, lie)
    for name, (ask, _) in asked.items():
        liars = (Liar(ALL[lie]), Liar(ALL[lie], at_once=False))
        async with nodes(*liars, family=family, limits=limits) as both:
            try:
                found = await ask(*both)
            except ChainUnavailable as error:
                said = f"{error.message} {error.detail}"
                said.encode("utf-8")
                assert "\0" not in said
                assert "\x1b" not in said
                assert "key123" not in said
            else:
                # Where every node refused, each part of the answer is missing.
                assert (name, found) == ("request_all", [None] * 3), name


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_honest_node_of_the_campaign_is_believed(family: str) -> None:
    async with nodes(Liar(), family=family) as (rpc, network):
        for ask, truth in FAMILIES[family].values():
            assert await ask(rpc, network) == truth
