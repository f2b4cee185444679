"""What key agents bring, and money of our own ledger, in both databases."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from assay.db.engine import Database, to_us
from assay.db.schema.everything import (
    chain_fundings,
    chain_transfers,
    control_keys,
    operators,
    payments,
    wrapper_revisions,
    wrappers,
)
from assay.key_agents.store import PERSON_DAYS, SqlAttestedPeople, SqlPurchases
from assay.reputation.agent_facts import Money, payers_of
from assay.reputation.ports import LedgerPayment
from assay.reputation.store_events import SqlEventStore
from assay.reputation.store_sellers import OTHER_PAYERS
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import onchain_agent

NET, DOLLAR = "eip155:8453", "0x" + "d0" * 20
KEY, AGENT = "0x" + "aa" * 20, "eip155:8453/7"
SERVICE, SELLER = "https://agent.example.com/api", "0x" + "5e" * 20


def addr(n: int) -> str:
    return f"0x{n:040x}"


@dataclass
class Books:
    """A ledger with operators, wrappers and settled payments."""

    database: Database
    clock: FrozenClock = field(default_factory=FrozenClock)
    count: int = 0

    async def put(self, table: Any, **values: Any) -> None:
        async with self.database.write() as connection:
            await connection.execute(insert(table).values(**values))

    async def operator(self, payout: str, target: str = "https://shop.example", **more: Any) -> str:
        """One with a wrapper; its id, which is that of the wrapper too."""
        one, now_us = str(uuid.uuid4()), to_us(self.clock.now())
        known = {"email": one, "email_lower": one, "name": "", "role": "operator", "plan": "free"}
        await self.put(
            operators,
            **{**known, "id": one, "fee_rate": "0", "password_hash": "", "created_us": now_us},
            updated_us=now_us,
        )
        config = {
            "operator_id": one, "path": "/", "method": "GET", "price": 1, "description": "",
            "target_url": target, "payment_protocol": "x402", "payment_network": NET,
            "payout_address": payout, "trust_enabled": False, "min_score": 0.0,
            "identity_proof": "none", "settle": "before", "max_body_bytes": 1, "timeout_ms": 1,
            "active": True, "created_us": now_us,
        }  # fmt: skip
        await self.put(wrappers, id=one, **config)
        await self.put(
            wrapper_revisions,
            **{**config, "wrapper_id": one, "revision": 1, "at_us": now_us, "actor_kind": ""},
            action="create",
            changes="[]",
            **more,
        )
        return one

    async def pay(self, payer: str, operator: str, usd: float, to: str, **more: Any) -> None:
        self.count += 1
        now_us = to_us(self.clock.now())
        row = {
            "id": str(uuid.uuid4()), "protocol": "x402", "network": NET, "asset": DOLLAR,
            "payer": payer, "nonce": str(self.count), "digest": "", "amount": int(usd * 1e6),
            "pay_to": to, "operator_id": operator, "wrapper_id": operator, "request_digest": "",
            "state": "settled", "tx": f"0x{self.count:064x}", "raw_tx": "", "reason": "",
            "credential": "", "version": 2, "expires_us": now_us, "lease_us": 0,
            "created_us": now_us, "updated_us": now_us, "moves": 1, "agent_id": "",
            "settled_us": now_us,
        }  # fmt: skip
        await self.put(payments, **{**row, **more})

    async def crowd(self, operator: str, to: str, count: int = OTHER_PAYERS) -> None:
        for n in range(count):
            await self.pay(addr(1000 + n), operator, 0.01, to)

    async def spent(self, *listed: str) -> float:
        return await SqlPurchases(self.database, {NET: [DOLLAR]}, listed).spent([KEY]) / 1e6

    async def prove(self, key: str, **more: Any) -> None:
        now_us = to_us(self.clock.now())
        row = {"subject_key": AGENT, "key": key, "proof": "dns", "disputed": False}
        await self.put(control_keys, **{**row, "seen_us": now_us, **more})

    async def resold(self, *side: str) -> list[str]:
        store = SqlEventStore(self.database, self.clock)
        found = await store.resold(NET, AGENT, [SERVICE], side or (KEY,))
        return sorted(one.payer for one in found)


@pytest.fixture
def books(database: Database) -> Books:
    return Books(database)


async def test_money_counts_that_a_key_lost_at_wrappers_others_pay(books: Books) -> None:
    operator = await books.operator(SELLER)
    await books.pay(KEY, operator, 5, SELLER)
    await books.crowd(operator, SELLER, OTHER_PAYERS - 1)
    assert await books.spent() == 0
    await books.pay(addr(7), operator, 0.01, SELLER)
    assert await books.spent() == 5
    assert await books.spent(addr(9)) == 0
    assert await books.spent(SELLER) == 5


@pytest.mark.parametrize(
    "more", [{"state": "failed"}, {"asset": "0x" + "ee" * 20}, {"network": "eip155:84532"}]
)
async def test_only_settled_money_of_main_networks_counts(books: Books, more: object) -> None:
    operator = await books.operator(SELLER)
    await books.crowd(operator, SELLER)
    await books.pay(KEY, operator, 5, SELLER, **dict[str, Any](more))  # type: ignore[arg-type]
    assert await books.spent() == 0


async def test_a_wrapper_of_one_s_own_is_not_unrelated(books: Books) -> None:
    """By its payout, by another wrapper of the operator, by who funded whom, by what came back."""
    own = await books.operator(KEY)
    await books.crowd(own, SELLER)
    await books.pay(KEY, own, 5, SELLER)
    assert await books.spent() == 0
    shop = await books.operator(SELLER)
    await books.crowd(shop, SELLER)
    await books.pay(KEY, shop, 5, SELLER)
    assert await books.spent() == 5
    back = {"network": NET, "tx": "0x1", "log": 0, "sender": SELLER, "recipient": KEY}
    await books.put(chain_transfers, **back, amount=2_000_000, block=1, day=1, is_charge=False)
    assert await books.spent() == 3
    await books.put(chain_fundings, network=NET, account=KEY, funder=SELLER, block=1)
    assert await books.spent() == 0


async def test_an_attestation_belongs_to_the_address_that_used_it_first(books: Books) -> None:
    people = SqlAttestedPeople(books.database, books.clock)
    assert await people.others(KEY, ["github\nann", "x\nann"]) == 0
    assert await people.others(SELLER, ["x\nann", "farcaster\nbob"]) == 1
    assert await people.others(KEY, ["github\nann", "x\nann"]) == 0
    assert await people.others(addr(1), ["farcaster\nbob", "github\nann"]) == 2
    books.clock.move(timedelta(days=PERSON_DAYS + 1).total_seconds())
    assert await people.others(SELLER, ["x\nann"]) == 0


async def test_what_others_earn_with_a_proven_service_is_its_customers_money(books: Books) -> None:
    reseller = await books.operator(SELLER, SERVICE)
    elsewhere = await books.operator(SELLER, "https://agent.example.com.evil.example/api")
    await books.pay(addr(1), reseller, 2, SELLER)
    await books.pay(addr(2), elsewhere, 2, SELLER)
    await books.pay(addr(3), reseller, 2, SELLER, state="reversed")
    await books.pay(addr(4), reseller, 2, SELLER, wrapper_revision=2)
    assert await books.resold() == []
    await books.prove("at https://agent.example.com:443/")
    assert await books.resold() == [addr(1)]


@pytest.mark.parametrize("tie", ["payout", "payer", "payee pays"])
async def test_a_reseller_tied_to_the_agent_does_not_count(books: Books, tie: str) -> None:
    await books.prove("at https://agent.example.com:443/")
    owner = addr(99)
    reseller = await books.operator(owner if tie == "payout" else SELLER, SERVICE)
    payer = {"payout": addr(1), "payer": owner, "payee pays": SELLER}[tie]
    await books.pay(payer, reseller, 2, SELLER)
    assert await books.resold(owner) == []


async def test_control_that_is_disputed_or_of_another_path_proves_no_reseller(books: Books) -> None:
    await books.prove("at https://agent.example.com:443/other")
    await books.prove("at https://agent.example.com:443/", disputed=True)
    await books.pay(addr(1), await books.operator(SELLER, SERVICE), 2, SELLER)
    assert await books.resold() == []
    await books.prove("at https://agent.example.com:443/api")
    assert await books.resold() == [addr(1)]


def test_money_of_resellers_weighs_no_vote_and_is_counted_once() -> None:
    agent, payer, other = onchain_agent(wallet=SELLER), addr(1), addr(2)
    money = Money(
        transfers=(),
        ledger=(),
        elsewhere={},
        sources={payer: (), other: (addr(5),)},
        pending=frozenset(),
        resold=[
            LedgerPayment(payer, 2_000_000, 9, "0x1", payee=addr(5)),
            LedgerPayment(other, 2_000_000, 9, "0x2", payee=addr(5)),
        ],
    )
    found, prices = payers_of([money], agent, frozenset(), 10)
    assert [(p.address, dict(p.spent), dict(p.resold)) for p in found] == [
        (payer, {}, {9: 2_000_000})
    ]
    assert prices == {}
