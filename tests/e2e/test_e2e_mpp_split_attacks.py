"""What tries to pay an MPP seller without the platform's fee, or both with another's money.

The chain is real; the balances of seller and platform are read before and after.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import rlp
from mpp import Challenge, Credential
from mpp.methods.tempo._attribution import encode
from pytempo import Call, TempoTransaction

from assay.common.addresses import keccak256
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from tests.e2e.test_e2e_mpp_attacks import asked, credential, mined, pay, refused, transaction
from tests.e2e.test_e2e_mpp_fees import give
from tests.e2e.test_e2e_mpp_splits import FEE, PLATFORM, SETTINGS, balances, grown
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.eventually import eventually
from tests.support.tempo import KEY, PATH_USD, PAYER, Tempo
from tests.support.tempo_shop import CENT, SELLER, TempoShop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
KINDS = ("transaction", "hash")
REST = CENT - FEE
PLAIN = ""
"""No memo."""


@dataclass(frozen=True)
class Leg:
    """A transfer; without a memo of its own it has that of the challenge."""

    to: str
    amount: int
    memo: str | None = None
    token: str = PATH_USD


BOTH = (Leg(SELLER, REST), Leg(PLATFORM, FEE))


@dataclass
class Split:
    """A shop whose account has a fee, and where its database is."""

    store: TempoShop
    folder: Path

    def set_rate(self, rate: str, url: str, fee: int) -> None:
        """Change the account's fee, and wait until the 402 asks for it."""
        with closing(sqlite3.connect(self.folder / "assay.db")) as database, database:
            database.execute("UPDATE operators SET fee_rate = ?", (rate,))
        eventually(lambda: fee_of(asked(self.store, url)) == fee)

    def row(self, challenge: Challenge) -> tuple[Any, ...]:
        """What the ledger says of the payment of a challenge."""
        names = "amount, pay_to, fee_rate, direct_fee, direct_fee_payee"
        with closing(sqlite3.connect(self.folder / "assay.db")) as database:
            query = f"SELECT {names} FROM payments WHERE nonce = ?"  # noqa: S608 - our own words
            (found,) = database.execute(query, (challenge.id,)).fetchall()
        return tuple(found)


@pytest.fixture(scope="module")
def shop(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Split]:
    folder = tmp_path_factory.mktemp("splits")
    with opened(tempo, folder, **SETTINGS) as store:
        yield Split(store, folder)


@pytest.fixture
def store(shop: Split) -> TempoShop:
    return shop.store


def fee_of(challenge: Challenge) -> int:
    splits = challenge.request["methodDetails"].get("splits", [])
    assert len(splits) <= 1
    return sum(int(one["amount"]) for one in splits)


def call(leg: Leg, challenge: Challenge) -> Call:
    memo = encode(challenge.id, challenge.realm) if leg.memo is None else leg.memo
    name = b"transferWithMemo(address,uint256,bytes32)" if memo else b"transfer(address,uint256)"
    words = leg.to[2:].rjust(64, "0") + f"{leg.amount:064x}" + memo.removeprefix("0x")
    return Call.create(to=leg.token, data=keccak256(name)[:4] + bytes.fromhex(words))


async def sign(
    store: TempoShop, calls: list[tuple[Leg, Challenge]], payer: LocalAccount | None = None
) -> str:
    """A transaction as a stock client makes it, of other calls."""
    stock: Any = rlp.decode(bytes.fromhex((await transaction(store, calls[0][1]))[4:]))
    places = (0, 1, 2, 3, 6, 7, 8)
    chain, priority, most, gas, nonce_key, nonce, before = (
        int.from_bytes(stock[place]) for place in places
    )
    made = TempoTransaction.create(
        chain_id=chain,
        max_priority_fee_per_gas=priority,
        max_fee_per_gas=most,
        gas_limit=gas,
        nonce_key=nonce_key,
        nonce=nonce,
        valid_before=before,
        fee_token=stock[10],
        calls=tuple(call(leg, challenge) for leg, challenge in calls),
    )
    return "0x" + made.sign(payer.key if payer else KEY).encode().hex()


async def shown(
    store: TempoShop, challenge: Challenge, legs: tuple[Leg, ...], kind: str
) -> httpx2.Response:
    """The answer to a payment of these transfers, sent by us or shown as sent."""
    raw = await sign(store, [(leg, challenge) for leg in legs])
    payload = {"type": "transaction", "signature": raw}
    if kind == "hash":
        payload = {"type": "hash", "hash": await mined(store, raw)}
    url = f"{store.shop.server.address}{challenge.opaque['path']}"  # type: ignore[index]
    return pay(store, url, credential(store, challenge, payload))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "legs"),
    [
        ("all to the seller", (Leg(SELLER, CENT),)),
        ("the seller's part alone", (Leg(SELLER, REST),)),
        ("the platform's part alone", (Leg(PLATFORM, FEE),)),
        ("all to the platform", (Leg(PLATFORM, CENT),)),
        ("the fee to the seller as well", (Leg(SELLER, REST), Leg(SELLER, FEE))),
        ("less for the platform", (Leg(SELLER, REST + 1), Leg(PLATFORM, FEE - 1))),
        ("less for the seller", (Leg(SELLER, REST - 1), Leg(PLATFORM, FEE))),
        ("one for the other", (Leg(SELLER, FEE), Leg(PLATFORM, REST))),
        ("another token", (Leg(SELLER, REST), Leg(PLATFORM, FEE, token=PATH_USD[:-1] + "1"))),
        ("no memo", (Leg(SELLER, REST, PLAIN), Leg(PLATFORM, FEE, PLAIN))),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
async def test_what_does_not_pay_both_buys_nothing(
    store: TempoShop, name: str, legs: tuple[Leg, ...], kind: str
) -> None:
    path = f"/echo/half/{kind}/{name.replace(' ', '-')}"
    challenge = asked(store, store.wrap(path))
    assert fee_of(challenge) == FEE
    refused(await shown(store, challenge, legs, kind))
    assert store.up.calls(path) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "legs"),
    [
        ("reordered", BOTH[::-1]),
        ("a-plain-fee", (BOTH[0], Leg(PLATFORM, FEE, PLAIN))),
        ("a-plain-price", (Leg(SELLER, REST, PLAIN), BOTH[1])),
    ],
)
async def test_both_transfers_pay_in_any_order_with_the_memo_on_either(
    store: TempoShop, name: str, legs: tuple[Leg, ...], kind: str
) -> None:
    path = f"/echo/both/{kind}/{name}"
    challenge = asked(store, store.wrap(path))
    before = balances(store)
    answer = await shown(store, challenge, legs, kind)
    assert answer.status_code == 200, answer.text
    assert grown(store, before) == (REST, FEE)
    assert store.up.calls(path) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("foreign", [0, 1])
async def test_a_transfer_with_another_challenges_memo_is_no_part_of_this_one(
    store: TempoShop, kind: str, foreign: int
) -> None:
    url = store.wrap(f"/echo/foreign/{kind}/{foreign}")
    one, other = asked(store, url), asked(store, url)
    memo = encode(other.id, other.realm)
    legs = tuple(
        Leg(leg.to, leg.amount, memo if place == foreign else None)
        for place, leg in enumerate(BOTH)
    )
    refused(await shown(store, one, legs, kind))
    assert store.up.calls(f"/echo/foreign/{kind}/{foreign}") == 0


@pytest.mark.parametrize("memo", [None, PLAIN], ids=["bound", "plain"])
async def test_one_fee_does_not_pay_two_calls(store: TempoShop, memo: str | None) -> None:
    """Two sellers' parts and one fee, in one transaction that the payer sends."""
    path = f"/echo/shared/{'plain' if memo == PLAIN else 'bound'}"
    url = store.wrap(path)
    one, two = asked(store, url), asked(store, url)
    calls = [(BOTH[0], one), (BOTH[0], two), (Leg(PLATFORM, FEE, memo), one)]
    payload = {"type": "hash", "hash": await mined(store, await sign(store, calls))}
    refused(pay(store, url, credential(store, two, payload)))
    answer = pay(store, url, credential(store, one, payload))
    assert answer.status_code == (402 if memo == PLAIN else 200), answer.text
    assert store.up.calls(path) == (0 if memo == PLAIN else 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_of_one_wrapper_pays_no_other(store: TempoShop, kind: str) -> None:
    url, other = store.wrap(f"/echo/mine/{kind}"), store.wrap(f"/echo/other/{kind}")
    challenge, elsewhere = asked(store, url), asked(store, other)
    raw = await sign(store, [(leg, challenge) for leg in BOTH])
    payload = {"type": "transaction", "signature": raw}
    if kind == "hash":
        payload = {"type": "hash", "hash": await mined(store, raw)}
    refused(pay(store, other, credential(store, challenge, payload)))
    refused(pay(store, other, credential(store, elsewhere, payload)))
    assert store.up.calls(f"/echo/other/{kind}") == 0
    assert pay(store, url, credential(store, challenge, payload)).status_code == 200
    refused(pay(store, f"{url}?again", credential(store, challenge, payload)))
    refused(pay(store, other, credential(store, elsewhere, payload)))
    assert store.up.calls(f"/echo/mine/{kind}") == 1


@pytest.mark.parametrize(
    "changed",
    [None, [], [{"recipient": PLATFORM, "amount": "1"}], [{"recipient": PAYER, "amount": "500"}]],
    ids=json.dumps,
)
async def test_the_fee_of_a_challenge_cannot_be_changed(store: TempoShop, changed: Any) -> None:
    path = f"/echo/stripped/{len(json.dumps(changed))}"
    url = store.wrap(path)
    challenge = asked(store, url)
    details = {**challenge.request["methodDetails"], "splits": changed}
    if changed is None:
        del details["splits"]
    fields = {one: getattr(challenge, one) for one in ("id", "method", "intent", "realm")}
    request = {**challenge.request, "methodDetails": details}
    forged = Challenge(
        **fields, request=request, expires=challenge.expires, opaque=challenge.opaque
    )
    raw = await transaction(store, forged)
    source = f"did:pkh:eip155:{store.tempo.chain_id}:{PAYER}"
    payload = {"type": "transaction", "signature": raw}
    header = Credential(forged.to_echo(), payload, source).to_authorization()
    assert refused(pay(store, url, header)) == "invalid-challenge"
    assert store.up.calls(path) == 0


async def test_the_platform_does_not_pay_its_fee_to_itself(store: TempoShop) -> None:
    url = store.wrap("/echo/platform")
    challenge = asked(store, url)
    raw = await sign(store, [(leg, challenge) for leg in BOTH], ACCOUNTS[34])
    source = f"did:pkh:eip155:{store.tempo.chain_id}:{PLATFORM}"
    payload = {"type": "transaction", "signature": raw}
    header = Credential(challenge.to_echo(), payload, source).to_authorization()
    assert refused(pay(store, url, header)) == "verification-failed"
    assert store.up.calls("/echo/platform") == 0


async def test_a_transaction_that_cannot_pay_both_moves_nothing(store: TempoShop) -> None:
    """Else a payer with too little could pay the seller alone, in the platform's name."""
    payer = fresh_account()
    challenge = asked(store, store.wrap("/echo/short"))
    raw = await sign(store, [(leg, challenge) for leg in BOTH], payer)
    fields: Any = rlp.decode(bytes.fromhex(raw[4:]))
    gas_fee = -(-int.from_bytes(fields[2]) * int.from_bytes(fields[3]) // 10**12)
    give(store, payer, gas_fee + REST)
    before = balances(store)
    sent = store.tempo.request("eth_sendRawTransactionSync", raw)
    assert sent["status"] == "0x0"
    assert grown(store, before) == (0, 0)
    url, source = f"{store.shop.server.address}{challenge.opaque['path']}", payer.address  # type: ignore[index]
    for payload in (
        {"type": "hash", "hash": str(sent["transactionHash"])},
        {"type": "transaction", "signature": raw},
    ):
        named = f"did:pkh:eip155:{store.tempo.chain_id}:{source}"
        refused(pay(store, url, Credential(challenge.to_echo(), payload, named).to_authorization()))
    assert store.up.calls("/echo/short") == 0


async def test_a_changed_rate_leaves_what_was_asked_for(shop: Split) -> None:
    """Up, to nothing, and from nothing: each challenge is paid as it was."""
    store, url = shop.store, shop.store.wrap("/echo/rates")
    for rate, fee, next_rate, next_fee in (
        ("0.05", FEE, "0.1", 1000),
        ("0.1", 1000, "0", 0),
        (None, 0, "0.05", FEE),
    ):
        challenge = asked(store, url)
        assert fee_of(challenge) == fee
        shop.set_rate(next_rate, url, next_fee)
        legs = (Leg(SELLER, CENT - fee), *([Leg(PLATFORM, fee)] if fee else ()))
        before = balances(store)
        answer = await shown(store, challenge, legs, "transaction")
        assert answer.status_code == 200, (rate, answer.text)
        assert grown(store, before) == (CENT - fee, fee)
        assert shop.row(challenge) == (CENT, SELLER, rate, fee, PLATFORM if fee else "")


async def test_the_statement_says_what_was_paid_beside_the_seller(shop: Split) -> None:
    store, token = shop.store, dict(shop.store.shop.token)

    def told() -> dict[str, Any]:
        lines = store.shop.http.get("/operator/statement", headers=token).json()["lines"]
        assert len(lines) <= 1
        return {name: float(lines[0][name]) if lines else 0.0 for name in names}

    names = ("received", "fee", "owed", "directPayments", "directReceived", "directFee")
    before = told()
    challenge = asked(store, store.wrap("/echo/statement"))
    assert (await shown(store, challenge, BOTH, "transaction")).status_code == 200
    held = asked(store, store.wrap("/echo/held", payoutAddress=PLATFORM))
    assert fee_of(held) == 0  # the platform keeps it
    whole = (Leg(PLATFORM, CENT),)
    assert (await shown(store, held, whole, "transaction")).status_code == 200
    after = told()
    grew = {name: round(after[name] - before[name], 6) for name in names}
    assert grew == {
        "received": 0.01,
        "fee": 0.0005,
        "owed": 0.0095,
        "directPayments": 1,
        "directReceived": 0.0095,
        "directFee": 0.0005,
    }


@pytest.mark.parametrize(("price", "fee"), [(0.000001, 0), (0.000019, 0), (0.00002, 1)])
def test_a_fee_below_one_base_unit_is_not_asked_for(
    store: TempoShop, price: float, fee: int
) -> None:
    assert fee_of(asked(store, store.wrap(f"/echo/price/{price}", price=price))) == fee
