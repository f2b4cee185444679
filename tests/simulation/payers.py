"""Who pays, and how badly they behave: each buys at an address of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from assay.payments.model import Quote
from assay.payments.ports import Authorization, PaidRequest
from assay.payments.x402.codec import credential_of, encoded, needed_s
from tests.simulation.chain import ASSET, NETWORK, Cancel, Send, signed_authorization
from tests.simulation.facilitator import STRANGER
from tests.simulation.process import EPOCH_S, ConnectionLost, Reply

if TYPE_CHECKING:
    from tests.simulation.world import World

PAYEE: Final = "0x" + "5e" * 20
ELSEWHERE: Final = "0x" + "e1" * 20
PRICE: Final = 10_000
ADDRESS: Final = "https://assay.test"
CHAOTIC: Final = (
    *("cancel", "empty", "elsewhere", "preempt", "steal", "steal", "replay"),
    "submit_released",
)
"""What somebody does beside a call: the first four on the chain, at any moment."""


@dataclass(slots=True, eq=False)
class Purchase:
    """One payment for one request."""

    name: str
    quote: Quote
    signed: Authorization
    caller: str
    version: int
    token: str
    is_patient: bool = True
    """Whether its buyer comes again until he knows."""
    last: Reply | None = None

    @property
    def url(self) -> str:
        return self.quote.url

    def request(self, caller: str, token: str, url: str = "") -> PaidRequest:
        """The request with its payment; a thief has neither the caller nor the token."""
        headers = ((b"payment-signature", _header(self, token)),)
        url = url or self.url
        return PaidRequest("GET", url, headers, b"", caller, target=url.removeprefix(ADDRESS))


def _header(purchase: Purchase, token: str) -> bytes:
    payload = credential_of(purchase.signed)
    if purchase.version == 1:
        v1 = {"x402Version": 1, "scheme": "exact", "network": NETWORK.id, "payload": payload}
        return encoded(v1)
    accepted = {
        "scheme": "exact",
        "network": NETWORK.id,
        "asset": ASSET,
        "amount": str(purchase.quote.amount),
        "payTo": purchase.quote.pay_to,
        **({"extra": {"token": token}} if token else {}),
    }
    return encoded({"x402Version": 2, "accepted": accepted, "payload": payload})


def quote_of(name: str, random: Random) -> Quote:
    return Quote(
        wrapper_id="w",
        operator_id="op",
        url=f"{ADDRESS}/wrap/op/{name}",
        method="GET",
        path=f"/wrap/op/{name}",
        query="",
        description="",
        network=NETWORK,
        amount=PRICE,
        pay_to=PAYEE,
        work_s=random.choice((1.0, 3.0)),
        settles_first=random.random() < 0.3,
    )


def purchase_of(name: str, payer: str, now_s: float, random: Random) -> Purchase:
    """A fresh payment: as short-lived as is taken, or longer."""
    quote = quote_of(name, random)
    ends_s = EPOCH_S + now_s + needed_s(quote) + random.choice((1, 20, 45))
    unsigned = Authorization(
        payer=payer,
        to=PAYEE,
        value=PRICE,
        valid_after=0,
        valid_before=int(ends_s) + 1,
        nonce=f"0x{random.getrandbits(256):064x}",
        signature="",
    )
    return Purchase(
        name=name,
        quote=quote,
        signed=signed_authorization(unsigned),
        caller=f"192.0.2.{random.randrange(1, 250)}",
        version=random.choice((1, 2, 2)),
        token=f"token-of-{name}-0123456789",
    )


async def buy(world: "World", purchase: Purchase) -> None:
    """Come again with the same payment until it is known what became of it."""
    random = world.random
    while not world.is_late:
        patience_s = None
        if random.random() < world.trouble.cancel:
            patience_s = random.choice((0.0, 0.02, 0.5, 2.0, 4.0))
        try:
            request = purchase.request(purchase.caller, purchase.token)
            reply = await world.pick().call(request, purchase.quote, world.upstream, patience_s)
        except ConnectionLost:
            reply = None
        if reply is not None:
            world.invariants.answered(purchase, reply, purchase.url, is_thief=False)
            if purchase.last is None or purchase.last.status != 200:
                purchase.last = reply  # no refusal of an earlier try that comes late
            if reply.status == 200 or (reply.status == 402 and not world.is_owed(purchase.signed)):
                return
        if not purchase.is_patient:
            return
        await asyncio.sleep(random.choice((0.1, 2.0, 6.0, 12.0)))


async def buy_again(world: "World", purchase: Purchase) -> None:
    """Who has been served comes again: the same answer, whatever happened since."""
    await buy(world, purchase)
    if purchase.last is not None and purchase.last.status == 200:
        await asyncio.sleep(world.random.choice((0.5, 5.0, 30.0)))
        purchase.last = None
        await buy(world, purchase)


async def cancel(world: "World", purchase: Purchase) -> None:
    signed = purchase.signed
    world.chain.submit_plain(signed.payer, Cancel(signed.payer, signed.nonce))


async def empty(world: "World", purchase: Purchase) -> None:
    payer = purchase.signed.payer
    value = world.chain.state.balances.get(payer, 0)
    world.chain.submit_plain(payer, Send(payer, ELSEWHERE, value))


async def elsewhere(world: "World", purchase: Purchase) -> None:
    """The same nonce, signed once more to a wallet of his own."""
    signed = purchase.signed
    other = Authorization(
        signed.payer, ELSEWHERE, 1, 0, signed.valid_before, signed.nonce, signature=""
    )
    world.chain.submit_plain(signed.payer, signed_authorization(other))


async def preempt(world: "World", purchase: Purchase) -> None:
    """Somebody who sees the settlement sends its authorisation himself."""
    world.chain.submit_plain("0x" + "bd" * 20, purchase.signed)


async def submit_released(world: "World", purchase: Purchase) -> None:
    """A node that was shown the authorisation submits it, once its claim has served nobody.

    A buyer who has gone away with a refusal comes again: the money has left the wallet.
    """
    signed = purchase.signed
    for _ in range(40):
        if world.is_released(signed):
            world.invariants.owed.add((signed.payer, signed.nonce))
            world.chain.submit_plain(STRANGER, signed)
            if purchase.last is not None and purchase.last.status == 402:
                await buy(world, purchase)
            return
        await asyncio.sleep(0.5)


async def steal(world: "World", purchase: Purchase) -> None:
    """Whoever reads the chain shows the payment that he finds there, at its own address."""
    if world.is_public(purchase.signed) and not world.is_owed(purchase.signed):
        request = purchase.request("198.51.100.7", "")
        await _show(world, purchase, request, purchase.quote, is_thief=True)


async def replay(world: "World", purchase: Purchase) -> None:
    """The buyer shows his payment at another address: one that comes first buys there instead."""
    if world.is_public(purchase.signed) and not world.is_owed(purchase.signed):
        other = quote_of(purchase.name + "-other", world.random)
        request = purchase.request(purchase.caller, purchase.token, other.url)
        await _show(world, purchase, request, other, is_thief=False)


async def _show(
    world: "World", purchase: Purchase, request: PaidRequest, quote: Quote, *, is_thief: bool
) -> None:
    try:
        reply = await world.pick().call(request, quote, world.upstream, None)
    except ConnectionLost:
        return
    world.invariants.answered(purchase, reply, request.url, is_thief=is_thief)


async def interfere(world: "World", purchase: Purchase, how: str) -> None:
    """Do something nasty once or twice, at moments that chance chooses."""
    for _ in range(world.random.choice((1, 1, 2))):
        await asyncio.sleep(world.random.choice((0.0, 0.02, 1.0, 2.0, 3.5, 6.0, 15.0)))
        if world.is_late:
            return
        await NASTY[how](world, purchase)


NASTY: dict[str, Callable[["World", Purchase], Awaitable[None]]] = {
    "cancel": cancel,
    "empty": empty,
    "elsewhere": elsewhere,
    "preempt": preempt,
    "submit_released": submit_released,
    "steal": steal,
    "replay": replay,
}
