"""HTTP services of the second set: documents that name their agent, and sellers that deliver."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI
from x402.schemas import PaymentRequired, PaymentRequirements, ResourceInfo

from tests.ground_truth.second_crafts_a import Craft
from tests.ground_truth.site import Scope, Site, send_json

COIN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
"""USDC on Base Sepolia, by its issuer."""


def naming(site: Site, document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document that names its agent where that is its proof."""
    if site.proof == "openapi":
        document["info"]["x-agent-registrations"] = site.identity["registrations"]
        document["info"]["x-agent-wallet"] = site.identity["agentWallet"]
    return document


def named_api(site: Site, app: FastAPI) -> FastAPI:
    """The same for FastAPI."""
    plain = app.openapi
    app.openapi = lambda: naming(site, plain())  # type: ignore[method-assign]
    return app


def argument(scope: Scope, name: str) -> str:
    """One argument of the address."""
    return parse_qs(scope["query_string"].decode("latin-1")).get(name, [""])[0]


def paper(site: Site, title: str, paths: Mapping[str, Any], about: str = "") -> dict[str, Any]:
    """An OpenAPI document by hand."""
    info = {"title": title, "version": "2026.3", "description": about or title}
    servers = [{"url": site.url}]
    return naming(site, {"openapi": "3.0.3", "info": info, "servers": servers, "paths": paths})


def operation(
    craft: Craft, name: str, *, number: int = 0, answers: str = "result", paid: str = ""
) -> dict[str, Any]:
    """One documented `get` with one argument."""
    one = {"name": name, "in": "query", "required": True, "schema": {"type": "string"},
           "example": craft.examples[number]}  # fmt: skip
    shape = {"type": "object", "required": [answers], "properties": {answers: {"type": "string"}}}
    fine = {"description": "Answered", "content": {"application/json": {"schema": shape}}}
    made = {"summary": craft.about, "operationId": f"get_{name}", "parameters": [one],
            "responses": {"200": fine, "422": {"description": "Not understood"}}}  # fmt: skip
    if paid:
        made["responses"]["402"] = {"description": f"Costs {paid} USD"}  # type: ignore[index]
    return {"get": made}


def bill(site: Site, path: str, units: int, **changes: Any) -> PaymentRequirements:
    """What one call costs, in millionths of a dollar."""
    del path
    terms: dict[str, Any] = {
        "scheme": "exact", "network": "eip155:84532", "asset": COIN, "amount": str(units),
        "pay_to": site.wallet, "max_timeout_seconds": 120,
        "extra": {"name": "USDC", "version": "2"},
    }  # fmt: skip
    return PaymentRequirements(**(terms | changes))


async def present(
    send: Any,
    site: Site,
    path: str,
    *bills: PaymentRequirements,
    old: bool = False,
    about: str = "",
) -> None:
    """402 in the older or the newer protocol."""
    url, words = site.url + path, about or "One answer"
    if old:
        rows = [
            {"scheme": b.scheme, "network": "base-sepolia", "maxAmountRequired": b.amount,
             "resource": url, "description": words, "mimeType": "application/json",
             "payTo": b.pay_to, "asset": b.asset, "maxTimeoutSeconds": b.max_timeout_seconds,
             "extra": b.extra}
            for b in bills
        ]  # fmt: skip
        await send_json(send, {"x402Version": 1, "error": "Payment needed", "accepts": rows}, 402)
        return
    info = ResourceInfo(url=url, description=words, mime_type="application/json")
    need = PaymentRequired(error="Payment needed", resource=info, accepts=list(bills))
    text = need.model_dump_json(by_alias=True, exclude_none=True)
    code = base64.b64encode(text.encode()).decode()
    await send_json(send, text.encode(), 402, {"payment-required": code})


def settled(scope: Scope, price: PaymentRequirements) -> bool:
    """Whether a payment of this price to this payee came along; its chain is asked elsewhere."""
    heads = dict(scope["headers"])
    given = heads.get(b"payment-signature") or heads.get(b"x-payment") or b""
    try:
        paid = json.loads(base64.b64decode(given, validate=True))
        deed = paid["payload"]["authorization"]
        return deed["to"].lower() == price.pay_to.lower() and int(deed["value"]) >= int(
            price.amount
        )
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        return False
