"""Payers that mean no good, against a shop on a `hostile_chain`: each does one thing to its money.

They are stock callers otherwise: what a wrapper asks is what they sign.
"""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from eth_account import Account

from assay_demo.chain.accounts import LocalAccount
from tests.services.hostile_chain import HostileChain
from tests.services.shop import PASSWORD, Shop
from tests.simulation.chain import Cancel, Send

ELSEWHERE = "0x" + "e1" * 20
PRICES = (0.000001, 1.0)
ACCOUNTS = 50


def fresh_payer(chain: HostileChain, amount: int = 10**6) -> LocalAccount:
    """Somebody nobody has seen before, with so many base units."""
    key = "0x" + secrets.token_hex(32)
    account = LocalAccount(key, Account.from_key(key).address.lower())
    chain.mint(account.address, amount)
    return account


def cancel(chain: HostileChain, payment: Mapping[str, Any]) -> None:
    """Take a signed payment back, on the chain."""
    signed = payment["payload"]["authorization"]
    payer = signed["from"].lower()
    chain.act(payer, Cancel(payer, signed["nonce"].lower()))


def empty(chain: HostileChain, payer: LocalAccount) -> None:
    """Send everything away, to another wallet of one's own."""
    chain.act(payer.address, Send(payer.address, ELSEWHERE, chain.balance(payer.address)))


def shortest(shop: Shop, url: str, payer: LocalAccount) -> tuple[dict[str, Any], httpx2.Response]:
    """The payment that ends soonest of all that are taken, and its answer."""
    for valid_s in range(1, 300):
        payment = shop.payment(url, payer, valid_s=valid_s)
        answer = shop.pay(url, payment)
        reason = str(answer.json().get("reason")) if answer.status_code == 402 else ""
        if not reason.endswith("valid_before"):
            return payment, answer
    raise AssertionError("no payment is taken")


@contextmanager
def while_serving(shop: Shop, act: Callable[[], None]) -> Iterator[threading.Event]:
    """Do something on the chain once the upstream has been asked, and before it answers."""
    done = threading.Event()

    def hook(_path: str) -> None:
        if not done.is_set():
            done.set()
            act()

    shop.upstream.before = hook
    try:
        yield done
    finally:
        shop.upstream.before = lambda _path: None


@dataclass
class Spent:
    """What payers made the service do, and what it cost its key."""

    answers: Counter[int] = field(default_factory=Counter[int])
    codes: Counter[str] = field(default_factory=Counter[str])
    gas_wei: int = 0


@dataclass
class Seller:
    """A self-registered account with one wrapper."""

    token: Mapping[str, str]
    url: str


def circle(
    shop: Shop, chain: HostileChain, settler: str, *, accounts: int, price: float, calls: int = 1
) -> Spent:
    """One person's wallets pay each other through fresh accounts: nothing is lost but our gas."""
    amount = round(price * 10**6)
    one, other = (fresh_payer(chain, amount * accounts * calls) for _ in range(2))
    sellers = [
        fresh_seller(shop, (other if number % 2 else one).address, price)
        for number in range(accounts)
    ]
    had, spent = gas_of(chain, settler), Spent()
    for number, seller in enumerate(sellers):
        payer = one if number % 2 else other
        for _ in range(calls):
            note(spent, shop.pay(seller.url, shop.payment(seller.url, payer)))
    spent.gas_wei = had - gas_of(chain, settler)
    return spent


def pay_oneself(shop: Shop, chain: HostileChain, settler: str, calls: int) -> Spent:
    """Payer and payee are one wallet: its balance never changes."""
    wallet = fresh_payer(chain)
    seller = fresh_seller(shop, wallet.address, PRICES[0])
    had, spent = gas_of(chain, settler), Spent()
    for _ in range(calls):
        note(spent, shop.pay(seller.url, shop.payment(seller.url, wallet)))
    spent.gas_wei = had - gas_of(chain, settler)
    return spent


def fresh_seller(shop: Shop, payout: str, price: float) -> Seller:
    """A new account with a wrapper that is paid to `payout`."""
    email = f"{secrets.token_hex(8)}@example.com"
    body = {"email": email, "password": PASSWORD, "name": "Seller"}
    assert shop.http.post("/operator/register", json=body).status_code == 200
    login = shop.http.post("/operator/login", json={"email": email, "password": PASSWORD}).json()
    token = {"authorization": f"Bearer {login['token']}"}
    made = {
        "path": "/echo/circle",
        "pricePerCall": price,
        "targetUrl": shop.upstream.url,
        "paymentNetwork": "eip155:84532",
        "payoutAddress": payout,
    }
    answer = shop.http.post("/operator/endpoints", json=made, headers=token)
    assert answer.status_code == 200, answer.text
    return Seller(token, f"{shop.server.address}/wrap/{login['operator']['id']}/echo/circle")


def gas_of(chain: HostileChain, settler: str) -> int:
    """The coins that an address has for gas, in wei."""
    with chain.lock:
        return chain.model.state.coins.get(settler.lower(), 0)


def note(spent: Spent, answer: httpx2.Response) -> None:
    spent.answers[answer.status_code] += 1
    if answer.status_code != 200:
        spent.codes[str(answer.json().get("code"))] += 1


def until(call: Callable[[], httpx2.Response], seconds: float = 40) -> httpx2.Response:
    """The answer once it is not 503 any more."""
    deadline = time.monotonic() + seconds
    while (answer := call()).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.2)
    return answer
