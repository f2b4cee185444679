"""Sellers by x402's own middleware, whose payments are settled on a local chain, good and bad."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data
from fastapi import FastAPI, HTTPException
from starlette.requests import Request
from starlette.responses import Response
from x402 import x402ResourceServer
from x402.extensions.bazaar import declare_discovery_extension
from x402.http.middleware.fastapi import payment_middleware
from x402.http.types import PaymentOption, RouteConfig
from x402.mechanisms.evm.exact.register import register_exact_evm_server
from x402.schemas import PaymentPayload, PaymentRequirements
from x402.schemas.responses import (
    SettleResponse,
    SupportedKind,
    SupportedResponse,
    VerifyResponse,
)

from assay.payments.x402.codec import authorization_of
from assay.payments.x402.eip3009 import transfer_data
from assay_demo.chain.registries import checksum
from tests.support.shop import ENGINE, NETWORK, USDC, Dollars

FIELDS = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


@dataclass
class ChainTill:
    """A facilitator in the seller's process: checks signature and balance, and settles for real."""

    chain: Dollars
    payers: list[str] = field(default_factory=list)
    """Who paid, in order."""

    async def verify(
        self, payload: PaymentPayload, requirements: PaymentRequirements, **_more: Any
    ) -> VerifyResponse:
        given = payload.payload["authorization"]
        message = {n: int(v) if n.startswith("val") else v for n, v in given.items()}
        domain = {"name": requirements.extra["name"], "version": requirements.extra["version"],
                  "chainId": 84532, "verifyingContract": checksum(requirements.asset)}  # fmt: skip
        signed = encode_typed_data(domain, FIELDS, message)
        signer = Account.recover_message(signed, signature=payload.payload["signature"])
        held = await asyncio.to_thread(self.chain.balance, given["from"])
        if signer != given["from"] or held < int(requirements.amount):
            return VerifyResponse(is_valid=False, invalid_reason="insufficient_funds")
        return VerifyResponse(is_valid=True, payer=signer)

    async def settle(
        self, payload: PaymentPayload, requirements: PaymentRequirements, **_more: Any
    ) -> SettleResponse:
        signed = authorization_of(payload.payload)
        data = transfer_data(signed)
        receipt = await asyncio.to_thread(self.chain.wallet.send, ENGINE.key, USDC, data)
        self.payers.append(signed.payer)
        return SettleResponse(success=True, transaction=receipt["transactionHash"],
                              network=requirements.network, payer=signed.payer,
                              amount=requirements.amount)  # fmt: skip

    def get_supported(self) -> SupportedResponse:
        kind = SupportedKind(x402_version=2, scheme="exact", network=NETWORK)
        return SupportedResponse(kinds=[kind])


def honest(number: int) -> dict[str, Any]:
    """Sells the divisors of a number."""
    if not 1 <= number <= 10**6:
        raise HTTPException(422, "number: 1 to 1000000")
    found = [one for one in range(1, number + 1) if number % one == 0]
    return {"divisors": found, "sum": sum(found)}


def template(number: int) -> dict[str, Any]:
    """The same to everybody."""
    del number
    return {"divisors": [1, 2, 4, 7, 14, 28], "sum": 56}


def nothing(number: int) -> dict[str, Any]:
    """Nothing."""
    del number
    return {}


def broken(number: int) -> dict[str, Any]:
    """Fails at every call."""
    raise HTTPException(500, f"no answer for {number}")


def selling(
    chain: Dollars,
    payee: str,
    answer: Callable[[int], dict[str, Any]],
    *,
    price: str = "$0.01",
    takes_anyway: bool = False,
    documented: bool = True,
    till: ChainTill | None = None,
) -> Callable[[str], FastAPI]:
    """One paid operation; `takes_anyway`: the money is taken, and nothing is answered.

    It is described by the app's OpenAPI document, or else by the 402's own extension.
    """

    def make(_base: str) -> FastAPI:
        app = FastAPI(
            title="Number desk", version="1", openapi_url="/openapi.json" if documented else None
        )

        def divisors(number: int) -> dict[str, Any]:
            """The divisors of a whole number, and their sum."""
            return answer(number)

        app.get("/divisors", summary="Divisors of a number")(divisors)
        server = x402ResourceServer(till or ChainTill(chain))
        register_exact_evm_server(server, NETWORK)
        option = PaymentOption("exact", payee, price, NETWORK, max_timeout_seconds=60)
        shown = declare_discovery_extension(
            input={"number": 60}, input_schema={"properties": {"number": {"type": "integer"}}}
        )
        described = RouteConfig(
            accepts=option,
            description="The divisors of a number",
            mime_type="application/json",
            extensions=None if documented else shown,
        )
        routes = {"GET /divisors": described}
        app.middleware("http")(payment_middleware(routes, server))
        if takes_anyway:

            @app.middleware("http")
            async def spoil(request: Request, go: Callable[[Request], Any]) -> Response:
                answered: Response = await go(request)  # it has been settled by now
                paid = (
                    "payment-signature" in request.headers and answered.status_code == HTTPStatus.OK
                )
                return Response("oops", 500) if paid else answered

        return app

    return make
