"""A payer's fees count as what he pays does: an upstream runs for nobody who cannot pay both.

The chain takes the most a transaction may burn before it moves anything. A cheap call's fees are
many times its price, so that what is in flight would else be promised many times over.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from typing import Any

import httpx2
import pytest
import rlp
from mpp import Challenge, Credential
from mpp.methods.tempo.account import TempoAccount
from mpp.methods.tempo.client import TempoMethod
from pytempo import Call, TempoTransaction

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.tempo import MODERATO, PATH_USD, PAYER, Tempo
from tests.support.tempo_shop import TempoShop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
OTHER_USD = "0x20c0000000000000000000000000000000000001"
PRICE = 0.000001
AT_ONCE = 8


@pytest.fixture(scope="module")
def store(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TempoShop]:
    with opened(tempo, tmp_path_factory.mktemp("fees")) as shop:
        yield shop


@pytest.fixture
def payer() -> LocalAccount:
    return fresh_account()


def give(store: TempoShop, who: LocalAccount, amount: int, token: str = PATH_USD) -> None:
    call = "0xa9059cbb" + who.address[2:].rjust(64, "0") + f"{amount:064x}"
    store.tempo.request("eth_sendTransaction", {"from": PAYER, "to": token, "data": call})
    asked = {"to": token, "data": "0x70a08231" + who.address[2:].rjust(64, "0")}
    while int(store.tempo.request("eth_call", asked, "latest"), 16) != amount:
        pass


async def credential(
    store: TempoShop, url: str, payer: LocalAccount, **changed: Any
) -> tuple[str, int]:
    """As a stock client makes it, then changed; and the most its fees can be, in base units."""
    answer = store.shop.http.get(url)
    challenge = Challenge.from_www_authenticate(answer.headers["www-authenticate"])
    account = TempoAccount.from_key(payer.key)
    method = TempoMethod(account=account, rpc_url=store.tempo.url, chain_id=MODERATO)
    made = await method.create_credential(challenge)
    stock: Any = rlp.decode(bytes.fromhex(str(made.payload["signature"])[4:]))
    chain, priority, most, gas, nonce_key, nonce, before = (
        int.from_bytes(stock[place]) for place in (0, 1, 2, 3, 6, 7, 8)
    )
    fields: dict[str, Any] = {
        "chain_id": chain,
        "max_priority_fee_per_gas": priority,
        "max_fee_per_gas": most,
        "gas_limit": gas,
        "nonce_key": nonce_key,
        "nonce": nonce,
        "valid_before": before,
        "fee_token": stock[10],
        "calls": tuple(Call.create(to=to, data=data) for to, _, data in stock[4]),
        **changed,
    }
    raw = "0x" + TempoTransaction.create(**fields).sign(payer.key).encode().hex()
    source = f"did:pkh:eip155:{MODERATO}:{payer.address}"
    payload = {"type": "transaction", "signature": raw}
    header = Credential(challenge.to_echo(), payload, source).to_authorization()
    return header, -(-fields["max_fee_per_gas"] * fields["gas_limit"] // 10**12)


def pay(store: TempoShop, url: str, header: str) -> httpx2.Response:
    return store.shop.http.get(url, headers={"authorization": header})


async def test_what_is_in_flight_is_promised_with_its_fees(
    store: TempoShop, payer: LocalAccount
) -> None:
    """Enough for two calls with their fees, and for thousands without."""
    url = store.wrap("/held/fees", price=PRICE)
    made = [await credential(store, url, payer) for _ in range(AT_ONCE)]
    fees = max(fee for _, fee in made)
    assert fees > 100  # of a price of 1
    give(store, payer, 2 * (fees + 1) + fees // 2)
    Timer(1.5, store.up.gate.set).start()  # until then all are in flight
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda one: pay(store, url, one[0]), made))
    served = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code == 402]
    assert len(served) + len(refused) == AT_ONCE
    assert 1 <= len(served) <= 3  # what a call did not burn is there for another
    assert store.up.calls("/held/fees") == len(served)
    assert {answer.json()["reason"] for answer in refused} == {"insufficient_funds"}


async def test_fees_in_a_token_the_payer_does_not_have_are_no_payment(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/token", price=PRICE)
    give(store, payer, 10**6)
    header, _ = await credential(store, url, payer, fee_token=OTHER_USD)
    answer = pay(store, url, header)
    assert (answer.status_code, answer.json()["reason"]) == (402, "insufficient_funds")
    assert store.up.calls("/echo/token") == 0


async def test_fees_in_another_token_the_payer_has_are_paid_in_it(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/paid-in-it", price=PRICE)
    header, fees = await credential(store, url, payer, fee_token=OTHER_USD)
    give(store, payer, 1)
    give(store, payer, fees, OTHER_USD)
    answer = pay(store, url, header)
    assert answer.status_code == 200, answer.text
    assert store.tempo.balance(payer.address) == 0


async def test_a_transaction_that_names_no_token_pays_its_fees_in_the_one_it_moves(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/none", price=PRICE)
    header, fees = await credential(store, url, payer, fee_token=None)
    give(store, payer, fees)  # and nothing to pay with
    assert pay(store, url, header).json()["reason"] == "insufficient_funds"
    assert store.up.calls("/echo/none") == 0
    again = fresh_account()
    header, fees = await credential(store, url, again, fee_token=None)
    give(store, again, fees + 1)
    answer = pay(store, url, header)
    assert answer.status_code == 200, answer.text


async def test_fees_nobody_has_are_refused_and_break_no_sum(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/absurd", price=PRICE)
    give(store, payer, 10**6)
    for most in (2**127, 2**63):
        header, _ = await credential(store, url, payer, max_fee_per_gas=most)
        answer = pay(store, url, header)
        assert (answer.status_code, answer.json()["reason"]) == (402, "insufficient_funds")
    assert store.up.calls("/echo/absurd") == 0


async def test_fees_that_somebody_else_is_to_pay_are_no_payment(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/sponsored", price=PRICE)
    give(store, payer, 10**6)
    header, _ = await credential(store, url, payer, awaiting_fee_payer=True)
    answer = pay(store, url, header)
    assert answer.status_code == 402, answer.text
    assert store.up.calls("/echo/sponsored") == 0
