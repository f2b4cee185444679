"""A facilitator's word is worth nothing: the chain says what was paid, and for what.

Whatever it answers, no body goes out unpaid, nobody pays twice, and no word of its own reaches the
receipt.
"""

import secrets
from collections.abc import Iterator
from decimal import Decimal
from threading import Timer
from typing import Any

import pytest
from eth_account import Account

from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from assay_demo.chain.registries import checksum
from tests.e2e.test_e2e_payment_attacks import fresh_account, refused, submit
from tests.support.cases import first_then_slow
from tests.support.lying_facilitator import (
    HASH,
    PAID,
    PAID_UNTOLD,
    UNPAID,
    LyingFacilitator,
    lying,
)
from tests.support.shop import SELLER, USDC, Dollars, Shop, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000


@pytest.fixture(scope="module")
def liar(dollar_chain: Dollars) -> Iterator[LyingFacilitator]:
    wallet = dollar_chain.wallet
    with lying(lambda payload: submit(wallet, payload), other_transactions(dollar_chain)) as made:
        yield made


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars, liar: LyingFacilitator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    settings = {
        "ASSAY_X402_FACILITATOR_URL": liar.url,
        "ASSAY_SETTLEMENT_S": "1",
        "ASSAY_SETTLEMENT_LEASE_S": "1",
    }
    folder = tmp_path_factory.mktemp("lies")
    with upstream() as up, shop(folder, dollar_chain, up, **settings) as made:
        yield made


@pytest.fixture(autouse=True)
def honest(liar: LyingFacilitator) -> Iterator[None]:
    yield
    liar.lie = ""
    liar.late.clear()


@pytest.fixture(scope="module")
def payers() -> list[LocalAccount]:
    """Everybody who has paid here."""
    return []


@pytest.fixture
def payer(dollar_chain: Dollars, payers: list[LocalAccount]) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, 10 * CENT)
    payers.append(account)
    return account


def other_transactions(chain: Dollars) -> dict[str, str]:
    """Real ones, that pay for something else or for nothing."""
    someone = fresh_account()
    chain.mint(someone.address, 10 * CENT)

    def moved(to: str, amount: int) -> str:
        requirement = {
            "amount": str(amount),
            "payTo": to,
            "asset": USDC,
            "extra": {"name": "USDC", "version": "2"},
        }
        signed = dollars.authorize(someone.key, requirement, 84532, valid_s=86_400)
        return submit(chain.wallet, signed)

    gift = chain.wallet.send(ACCOUNTS[1].key, USDC, mint_call(SELLER.address, CENT))
    return {
        "another payment": moved(SELLER.address, CENT),
        "another payee": moved(ACCOUNTS[34].address, CENT),
        "another amount": moved(SELLER.address, 1),
        "a gift": str(gift["transactionHash"]),
        "reverted": reverted(chain),
    }


def reverted(chain: Dollars) -> str:
    """A transfer of what its sender does not have; the sender is nobody else's."""
    sender = ACCOUNTS[33]
    nonce = int(chain.wallet.request("eth_getTransactionCount", sender.address, "latest"), 16)
    data = bytes.fromhex("a9059cbb") + bytes.fromhex(SELLER.address[2:]).rjust(32, b"\0")
    made = {
        "chainId": 84532,
        "nonce": nonce,
        "gas": 100_000,
        "gasPrice": 2 * 10**9,
        "value": 0,
        "to": checksum(USDC),
        "data": data + CENT.to_bytes(32),
    }
    raw = Account.sign_transaction(made, sender.key).raw_transaction.hex()
    sent = chain.wallet.request("eth_sendRawTransaction", "0x" + raw.removeprefix("0x"))
    assert chain.wallet.request("eth_getTransactionReceipt", sent)["status"] == "0x0"
    return str(sent)


def mint_call(to: str, amount: int) -> bytes:
    return bytes.fromhex("40c10f19") + bytes.fromhex(to[2:]).rjust(32, b"\0") + amount.to_bytes(32)


def path_of(lie: str) -> str:
    return "/echo/" + "".join(c if c.isalnum() else "-" for c in lie)


def assert_pending(answer: Any) -> None:
    """Nobody can say yet; and nothing that a facilitator said is said again."""
    assert (answer.status_code, answer.json()["code"]) == (503, "settlement_pending"), answer.text
    said = receipt(answer)
    assert (said["success"], said["transaction"]) == (False, "")
    assert HASH not in str(answer.headers) + answer.text


@pytest.mark.parametrize("lie", first_then_slow(UNPAID, 2))
def test_a_success_that_the_chain_does_not_show_is_none(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount, lie: str
) -> None:
    url = store.wrap(path_of(lie))
    payment = store.payment(url, payer)
    liar.lie = lie
    assert_pending(store.pay(url, payment, once=True))
    assert store.chain.balance(payer.address) == 10 * CENT
    liar.lie = ""
    liar.late.set()
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(payer.address) == 9 * CENT
    shown = store.chain.wallet.request("eth_getTransactionReceipt", receipt(answer)["transaction"])
    assert shown["status"] == "0x1"
    assert store.upstream.calls(path_of(lie)) == 1


@pytest.mark.parametrize("lie", first_then_slow(PAID, 2))
def test_a_payment_that_the_chain_shows_is_served_whatever_is_said_of_it(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount, lie: str
) -> None:
    url = store.wrap(path_of(lie))
    payment = store.payment(url, payer)
    liar.lie = lie
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(payer.address) == 9 * CENT
    assert store.upstream.calls(path_of(lie)) == 1
    said = receipt(answer)
    assert (said["payer"], said["network"]) == (payer.address.lower(), "eip155:84532")
    shown = store.chain.wallet.request("eth_getTransactionReceipt", said["transaction"])
    assert shown["status"] == "0x1"


@pytest.mark.parametrize("lie", first_then_slow(PAID_UNTOLD))
def test_a_payment_it_leaves_open_is_found_on_the_chain(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount, lie: str
) -> None:
    url = store.wrap(path_of(lie))
    payment = store.payment(url, payer)
    liar.lie = lie
    assert_pending(store.pay(url, payment, once=True))
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(payer.address) == 9 * CENT
    assert store.upstream.calls(path_of(lie)) == 1


def test_a_transaction_that_is_not_mined_yet_is_waited_for(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/late")
    payment = store.payment(url, payer)
    liar.lie = "settles late"
    timer = Timer(0.2, liar.late.set)
    timer.start()
    answer = store.pay(url, payment)
    timer.join()
    assert answer.status_code == 200, answer.text
    assert receipt(answer)["transaction"] != HASH
    assert store.chain.balance(payer.address) == 9 * CENT
    assert store.upstream.calls("/echo/late") == 1


def test_valid_for_a_bad_signature_is_not_even_asked(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/forged")
    payment = store.payment(url, payer)
    payment["payload"]["authorization"]["nonce"] = "0x" + secrets.token_hex(32)
    asked = len(liar.asked)
    refused(store.pay(url, payment), "invalid_exact_evm_payload_signature")
    assert len(liar.asked) == asked


def test_valid_for_an_empty_wallet_is_not_served(store: Shop) -> None:
    url = store.wrap("/echo/empty")
    answer = store.pay(url, store.payment(url, fresh_account()))
    refused(answer, "insufficient_funds")
    assert store.upstream.calls("/echo/empty") == 0


@pytest.mark.parametrize(
    ("lie", "status"),
    [
        ("valid as a text", 503),
        ("valid as a number", 503),
        ("no word of it", 503),
        ("valid for another", 402),
    ],
)
def test_a_verification_that_says_nothing_forwards_nothing(
    store: Shop, liar: LyingFacilitator, payer: LocalAccount, lie: str, status: int
) -> None:
    url = store.wrap(path_of(lie))
    payment = store.payment(url, payer)
    liar.lie = lie
    assert store.pay(url, payment, once=True).status_code == status
    assert store.upstream.calls(path_of(lie)) == 0
    liar.lie = ""
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text


def test_revenue_is_what_the_chain_shows(store: Shop, payers: list[LocalAccount]) -> None:
    """After every lie above: no more and no less."""
    found = store.http.get("/operator/analytics/stats", headers=dict(store.token)).json()
    spent = sum(10 * CENT - store.chain.balance(payer.address) for payer in payers)
    assert Decimal(found["totalRevenue"]) * 10**6 == spent
