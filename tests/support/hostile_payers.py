"""Payers that mean no good, against a shop on a `hostile_chain`: each does one thing to its money.

They are stock callers otherwise: what a wrapper asks is what they sign.
"""

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from eth_account import Account

from assay_demo.chain.accounts import LocalAccount
from tests.simulation.chain import Cancel, Send
from tests.support.hostile_chain import HostileChain
from tests.support.shop import PASSWORD, Shop

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
        answer = shop.pay(url, payment, once=True)
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


def circle(shop: Shop, chain: HostileChain, settler: str) -> Spent:
    """One person's two wallets pay each other through fresh accounts, at every price once each."""
    enough = round(sum(PRICES) * 10**6) * ACCOUNTS
    wallets = [fresh_payer(chain, enough) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:  # making an account takes a while
        payees = [wallets[number % 2].address for number in range(ACCOUNTS)]
        sellers = list(pool.map(lambda payee: fresh_seller(shop, payee), payees))
    had, spent = gas_of(chain, settler), Spent()
    for number, urls in enumerate(sellers):
        for url in urls:
            note(spent, shop.pay(url, shop.payment(url, wallets[(number + 1) % 2]), once=True))
    spent.gas_wei = had - gas_of(chain, settler)
    return spent


def fresh_seller(shop: Shop, payout: str) -> list[str]:
    """The addresses of a new, self-registered account's wrappers: one of each price."""
    email = f"{secrets.token_hex(8)}@example.com"
    body = {"email": email, "password": PASSWORD, "name": "Seller"}
    assert shop.http.post("/operator/register", json=body).status_code == 200
    login = shop.http.post("/operator/login", json={"email": email, "password": PASSWORD}).json()
    token = {"authorization": f"Bearer {login['token']}"}
    urls = list[str]()
    for place, price in enumerate(PRICES):
        made = {
            "path": f"/echo/circle/{place}",
            "pricePerCall": price,
            "targetUrl": shop.upstream.url,
            "paymentNetwork": "eip155:84532",
            "payoutAddress": payout,
        }
        answer = shop.http.post("/operator/endpoints", json=made, headers=token)
        assert answer.status_code == 200, answer.text
        urls.append(f"{shop.server.address}/wrap/{login['operator']['id']}/echo/circle/{place}")
    return urls


def gas_of(chain: HostileChain, settler: str) -> int:
    """The coins that an address has for gas, in wei."""
    with chain.lock:
        return chain.model.state.coins.get(settler.lower(), 0)


def note(spent: Spent, answer: httpx2.Response) -> None:
    spent.answers[answer.status_code] += 1
    if answer.status_code != 200:
        spent.codes[str(answer.json().get("code"))] += 1
