"""Files of feedback: fetched, held against their event, and their payments looked up on a chain."""

import json
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from eth_account import Account
from sqlalchemy import select

from assay.common.addresses import keccak256
from assay.common.json import JsonObject, JsonValue
from assay.common.numbers import MICRO
from assay.db.engine import Database
from assay.db.schema.everything import chain_feedback
from assay.db.store_costs import DailyBudgets
from assay.net.egress.budget_client import SiteBudgetHttp
from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import Limits
from assay.net.egress.url import EgressPolicy
from assay.registries.documents import GuardedDocuments
from assay.reputation.events import DAY_S
from assay.reputation.evidence import entries_of, evidence_of
from assay.reputation.files import FILE_BYTES_MAX, PER_SITE, PER_VOTER, FeedbackFiles
from assay.reputation.model import AgentFacts, reputation_of
from assay.reputation.rules import assess
from assay.reputation.store_files import SqlFileQueue
from assay_demo.chain.registries import give_feedback, revoke_feedback, set_agent_wallet
from tests.reputation.test_reputation_reading import (
    DOLLAR,
    MINTER,
    OWNER,
    Shop,
    address,
    endow,
    mint,
    money,
    pay,
    shop,
)
from tests.support.quiet_server import QuietHandler, serving

pytestmark = pytest.mark.slow

__all__ = ["money", "shop"]

DAY = int(time.time()) // DAY_S


@dataclass
class Files:
    """A host of feedback files, and what reads them."""

    shop: Shop
    database: Database
    url: str
    bodies: dict[str, bytes]
    asked: list[str]
    reader: FeedbackFiles
    state: dict[str, int] = field(default_factory=dict[str, int])

    async def read(self, day: int = DAY) -> None:
        """Everything indexed, asked for, and every file that is due."""
        await self.shop.facts()
        await self.shop.index()
        await self.shop.facts()
        while await self.reader.step(day):
            pass

    async def states(self) -> dict[str, str]:
        async with self.database.read() as connection:
            mine = chain_feedback.c.agent_id == self.shop.agent.agent_id
            rows = (await connection.execute(select(chain_feedback).where(mine))).all()
        return {row.client: row.file for row in rows}

    def say(self, key: str, rating: int, body: bytes, *, digest: bytes | None = None) -> None:
        """Feedback that names a file here, committed to by hash unless `digest` says else."""
        path = f"/{len(self.bodies)}.json"
        self.bodies[path] = body
        shop, made = self.shop, keccak256(body) if digest is None else digest
        give_feedback(
            *(shop.chain.wallet, shop.chain.registries, key, shop.agent.agent_id, rating),
            uri=self.url + path,
            digest=made,
        )

    def file(self, key: str, rating: int, **more: JsonValue) -> JsonObject:
        """The file as the EIP has it."""
        shop = self.shop
        return {
            "agentRegistry": f"eip155:31337:{shop.agent.network.identity_registry}",
            "agentId": int(shop.agent.agent_id),
            "clientAddress": f"eip155:31337:{address(key)}",
            "createdAt": "2026-11-24T12:00:00Z",
            "value": rating,
            "valueDecimals": 0,
            "tag1": "starred",
            **more,
        }

    def proof(self, key: str, tx: str, **more: JsonValue) -> JsonObject:
        return {
            "fromAddress": address(key),
            "toAddress": self.shop.agent.wallet,
            "chainId": "31337",
            "txHash": tx,
            **more,
        }

    def last_payment(self) -> str:
        """The hash of the newest transfer to the agent's wallet."""
        word = "0x" + (self.shop.agent.wallet or "")[2:].rjust(64, "0")
        query = {"address": DOLLAR, "fromBlock": "0x0", "topics": [None, None, word]}
        return str(self.shop.chain.wallet.request("eth_getLogs", query)[-1]["transactionHash"])


def body(file: JsonObject) -> bytes:
    return json.dumps(file).encode()


@contextmanager
def host(bodies: dict[str, bytes], asked: list[str]) -> Iterator[str]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            found = bodies.get(self.path)
            if found is not None and found.startswith(b"-> "):
                self.send_response(302)
                self.send_header("location", found[3:].decode())
                found = b""
            else:
                self.send_response(404 if found is None else 200)
            self.send_header("content-length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

    with serving(Handler) as url:
        yield url


@pytest.fixture
async def files(shop: Shop) -> AsyncGenerator[Files]:
    database = shop.store._database
    budgets, bodies, asked = DailyBudgets(database), dict[str, bytes](), list[str]()
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))

    async def take(limits: Any, day: int) -> bool:
        return await budgets.take_all(limits, day) is None

    async def take_site(site: str) -> bool:
        return await take([(site, PER_SITE)], DAY)

    documents = GuardedDocuments(
        SiteBudgetHttp(http, take_site), None, Limits(body_bytes_max=FILE_BYTES_MAX)
    )
    reader = FeedbackFiles(
        queue=SqlFileQueue(database),
        documents=documents,
        rpc=shop.rpc,
        registries={shop.agent.network.slug: shop.agent.network},
        chains=shop.payments,
        keccak256=keccak256,
        take=take,
        tail=0,
    )
    with host(bodies, asked) as url:
        yield Files(shop, database, url, bodies, asked, reader)
    await http.aclose()


def payer(facts: AgentFacts, key: str) -> int:
    return next((p.net for p in facts.payers if p.address == address(key)), 0)


async def test_a_proven_payment_counts_once_beside_the_index(files: Files) -> None:
    key = files.shop.buyer(300)
    tx = files.last_payment()
    file = files.file(key, 90, proofOfPayment=files.proof(key, tx))
    files.say(key, 90, body(file))
    await files.read()
    assert await files.states() == {address(key): "paid"}
    facts = await files.shop.facts()
    assert [(p.transfer.tx, p.transfer.amount) for p in facts.proofs] == [(tx, 3 * MICRO)]
    assert payer(facts, key) == 3 * MICRO


async def test_what_was_proven_stays_when_the_wallet_changes(files: Files) -> None:
    """Of the earlier wallet only what files proved is the agent's, less what came back."""
    shop = files.shop
    proven, other = shop.buyer(300), shop.buyer(400)
    tx = next(
        row["transactionHash"]
        for row in shop.chain.wallet.request("eth_getLogs", {"address": DOLLAR, "fromBlock": "0x0"})
        if row["topics"][1][-40:] == address(proven)[2:]
    )
    files.say(proven, 90, body(files.file(proven, 90, proofOfPayment=files.proof(proven, tx))))
    await files.read()
    new = Account.create()
    key = "0x" + new.key.hex().removeprefix("0x")
    chain = shop.chain
    set_agent_wallet(
        *(chain.wallet, chain.registries, OWNER.key, shop.agent.agent_id, key),
        int(time.time()) + 200,
    )
    shop.agent = replace(shop.agent, wallet=new.address.lower())
    facts = await shop.facts()
    assert payer(facts, proven) == 3 * MICRO
    assert payer(facts, other) == 0


async def test_a_stranger_s_payment_proves_nothing(files: Files) -> None:
    """Hashes are public: who copies one has not paid."""
    customer = files.shop.buyer(300)
    tx = files.last_payment()
    thief = Account.create()
    key = "0x" + thief.key.hex().removeprefix("0x")
    endow(files.shop.chain, thief.address)
    for n, proof in enumerate((files.proof(customer, tx), files.proof(key, tx))):
        files.say(key, n, body(files.file(key, n, proofOfPayment=proof)))
    await files.read()
    facts = await files.shop.facts()
    assert not facts.proofs
    assert payer(facts, key) == 0
    # One of the two is an earlier entry of the same voter: only the latest is read.
    assert set((await files.states()).values()) <= {"good", "unchecked"}


async def test_payments_elsewhere_later_or_none_at_all_prove_nothing(files: Files) -> None:
    shop = files.shop
    other, lists = Account.create().address.lower(), list[str]()
    for case in ("elsewhere", "later", "unknown", "other chain"):
        key = shop.buyer(100)
        tx, more = files.last_payment(), dict[str, JsonValue]()
        if case == "elsewhere":
            mint(shop.chain.wallet, MINTER, DOLLAR, address(key), 3 * MICRO)
            pay(shop.chain, key, other, 300)
            last = shop.chain.wallet.request(
                "eth_getLogs", {"address": DOLLAR, "fromBlock": "0x0"}
            )[-1]
            tx, more = str(last["transactionHash"]), {"toAddress": other}
        if case == "unknown":
            tx = "0x" + "ab" * 32
        if case == "other chain":
            more = {"chainId": "1"}
        lists.append(address(key))
        files.say(key, 90, body(files.file(key, 90, proofOfPayment=files.proof(key, tx, **more))))
    await files.read()
    states = await files.states()
    assert [states[one] for one in lists] == ["good", "paid", "good", "good"]


async def test_a_payment_proves_one_feedback_only(files: Files) -> None:
    """The same payment again, after the first vote was read: another entry of the same voter."""
    key = files.shop.buyer(300)
    proof = files.proof(key, files.last_payment())
    files.say(key, 90, body(files.file(key, 90, proofOfPayment=proof)))
    await files.read()
    files.say(key, 95, body(files.file(key, 95, proofOfPayment=proof)))
    await files.read()
    facts = await files.shop.facts()
    assert len(facts.proofs) == 1
    assert payer(facts, key) == 3 * MICRO
    wallet, registries = files.shop.chain.wallet, files.shop.chain.registries
    revoke_feedback(wallet, registries, key, files.shop.agent.agent_id, 1)
    await files.shop.index()
    assert not (await files.shop.facts()).proofs


CONTRADICTIONS: tuple[JsonObject, ...] = (
    {"value": 10},
    {"valueDecimals": 2},
    {"agentId": 9_999},
    {"clientAddress": "0x" + "12" * 20},
    {"agentRegistry": "eip155:1:0x" + "12" * 20},
    {"tag1": "uptime"},
)


@pytest.mark.parametrize("wrong", CONTRADICTIONS, ids=lambda one: next(iter(one)))
async def test_only_a_file_the_voter_committed_to_unsays_a_vote(
    files: Files, wrong: JsonObject
) -> None:
    """By its hash. Whoever serves a file could otherwise unsay the votes of others."""
    own, served = files.shop.buyer(300), files.shop.buyer(300)
    files.say(own, 90, body({**files.file(own, 90), **wrong}))
    files.say(served, 90, body({**files.file(served, 90), **wrong}), digest=b"\x11" * 32)
    await files.read()
    assert await files.states() == {address(own): "bad", address(served): "other"}
    facts = await files.shop.facts()
    entries = await files.shop.reader.fetch_feedback(
        files.shop.agent.network, files.shop.agent.agent_id
    )
    data = evidence_of(files.shop.agent, entries, facts)
    assert data["votes"] == {address(served): {"rating": "90.0", "day": DAY, "file": "other"}}
    assert data["contradicted"] == 1
    stale = evidence_of(files.shop.agent, entries_of(facts.events), facts, stale=True)
    assert stale["votes"] == data["votes"]
    assert assess(reputation_of(data)) is not None


async def test_what_cannot_be_read_is_tried_twice_and_takes_nothing(files: Files) -> None:
    keys = [files.shop.buyer(100) for _ in range(4)]
    for key, file in zip(keys, (b"{", b"[]", b"x" * (FILE_BYTES_MAX + 1), b"gone"), strict=True):
        files.say(key, 90, file)
    del files.bodies["/3.json"]
    await files.read()
    states = await files.states()
    assert [states[address(key)] for key in keys] == ["other", "other", "again", "again"]
    await files.read(DAY + 1)
    states = await files.states()
    assert [states[address(key)] for key in keys] == ["other", "other", "unread", "unread"]
    assert files.asked.count("/3.json") == 2
    assert len((await files.shop.facts()).events) == 4


async def test_votes_make_us_call_no_host_more_often_than_its_budget(files: Files) -> None:
    """Many voters name one host, and one of them by a redirect to it."""
    keys = [files.shop.buyer(1) for _ in range(PER_SITE)]
    for key in keys:
        files.say(key, 50, b"-> /elsewhere")
    files.bodies["/elsewhere"] = b"{}"
    await files.read()
    assert len(files.asked) == PER_SITE
    assert len({one for one in (await files.states()).values() if one == "asked"}) == 1
    assert PER_VOTER < PER_SITE
