"""A till for the sixth set's sellers: x402's own middleware, and a facilitator beside it."""

import hashlib
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data
from fastapi import FastAPI
from x402 import x402ResourceServer
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

NETWORK = "eip155:84532"
FIELDS = ("from", "to", "value", "validAfter", "validBefore", "nonce")
KINDS = ("address", "address", "uint256", "uint256", "uint256", "bytes32")
DOMAIN = [("name", "string"), ("version", "string"), ("chainId", "uint256"),
          ("verifyingContract", "address")]  # fmt: skip


def signer(payload: dict[str, Any], asked: PaymentRequirements) -> str:
    """Who signed the transfer."""
    given = payload["authorization"]
    message = {name: int(given[name]) if kind == "uint256" else given[name]
               for name, kind in zip(FIELDS, KINDS, strict=True)}  # fmt: skip
    typed = {
        "types": {
            "EIP712Domain": [{"name": n, "type": t} for n, t in DOMAIN],
            "TransferWithAuthorization": [
                {"name": n, "type": t} for n, t in zip(FIELDS, KINDS, strict=True)
            ],
        },
        "primaryType": "TransferWithAuthorization",
        "domain": {
            "name": asked.extra["name"], "version": asked.extra["version"],
            "chainId": int(NETWORK.split(":")[1]), "verifyingContract": asked.asset,
        },
        "message": message,
    }  # fmt: skip
    signable = encode_typed_data(full_message=typed)
    return Account.recover_message(signable, signature=payload["signature"])


class Till:
    """Takes signed transfers once each, and books them."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    async def verify(
        self, payload: PaymentPayload, requirements: PaymentRequirements, **_more: Any
    ) -> VerifyResponse:
        try:
            given = payload.payload["authorization"]
            by = signer(payload.payload, requirements)
            short = int(given["value"]) < int(requirements.amount)
            other = given["to"].lower() != requirements.pay_to.lower()
        except (KeyError, TypeError, ValueError):
            return VerifyResponse(is_valid=False, invalid_reason="unreadable_payload")
        if short or other or by.lower() != given["from"].lower():
            return VerifyResponse(is_valid=False, invalid_reason="not_as_asked")
        if given["nonce"] in self._taken:
            return VerifyResponse(is_valid=False, invalid_reason="already_used", payer=by)
        return VerifyResponse(is_valid=True, payer=by)

    async def settle(
        self, payload: PaymentPayload, requirements: PaymentRequirements, **_more: Any
    ) -> SettleResponse:
        given = payload.payload["authorization"]
        self._taken.add(given["nonce"])
        receipt = "0x" + hashlib.sha256(str(given["nonce"]).encode()).hexdigest()
        return SettleResponse(success=True, transaction=receipt, network=requirements.network,
                              payer=given["from"], amount=requirements.amount)  # fmt: skip

    def get_supported(self) -> SupportedResponse:
        kind = SupportedKind(x402_version=2, scheme="exact", network=NETWORK)
        return SupportedResponse(kinds=[kind])


def charged(app: FastAPI, payee: str, prices: dict[str, tuple[str, str]]) -> FastAPI:
    """The app, asking for money on some routes: their price and what is sold there."""
    books = x402ResourceServer(Till())
    register_exact_evm_server(books, NETWORK)
    routes = {
        route: RouteConfig(
            accepts=PaymentOption("exact", payee, price, NETWORK, max_timeout_seconds=90),
            description=text, mime_type="application/json",
        )
        for route, (price, text) in prices.items()
    }  # fmt: skip
    app.middleware("http")(payment_middleware(routes, books))
    return app
