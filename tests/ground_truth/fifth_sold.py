"""The fifth set's sellers: a free part, and a price for the rest, by x402 without its library."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from eth_account import Account
from eth_account.messages import encode_typed_data

from tests.ground_truth.fifth_base import honest
from tests.ground_truth.fifth_sums import rhymes, throw, vigenere
from tests.ground_truth.site import Build, Built, Proof, Scope, Site, header, send_json

USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
CHAIN = 84532
FIELDS = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"}, {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"}, {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"}, {"name": "nonce", "type": "bytes32"},
    ]
}  # fmt: skip
Serve = Callable[[Mapping[str, str]], dict[str, Any]]


@dataclass
class Counter:
    """One thing for sale. Authorisations are checked here and collected in the evening."""

    site: Site
    path: str
    about: str
    units: int
    serve: Serve
    free: Callable[[Mapping[str, str]], bool]
    old: bool = False
    example: dict[str, str] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)

    def terms(self) -> dict[str, Any]:
        """What has to be signed."""
        row: dict[str, Any] = {
            "scheme": "exact", "asset": USDC, "payTo": self.site.wallet, "maxTimeoutSeconds": 120,
            "extra": {"name": "USDC", "version": "2"},
        }  # fmt: skip
        where = self.site.url + self.path
        if self.old:
            row |= {
                "network": "base-sepolia",
                "maxAmountRequired": str(self.units),
                "resource": where,
                "description": self.about,
                "mimeType": "application/json",
            }
            return {"x402Version": 1, "error": "payment needed", "accepts": [row]}
        row |= {"network": f"eip155:{CHAIN}", "amount": str(self.units)}
        resource = {"url": where, "description": self.about, "mimeType": "application/json"}
        return {"x402Version": 2, "error": "payment needed", "resource": resource, "accepts": [row]}

    def paid_by(self, sent: str) -> str:
        """The number of the payment, if this header pays: signed by its payer, and not used yet."""
        try:
            made = json.loads(base64.b64decode(sent))["payload"]
            paid = {**made["authorization"]}
            for name in ("value", "validAfter", "validBefore"):
                paid[name] = int(paid[name])
            domain = {"name": "USDC", "version": "2", "chainId": CHAIN, "verifyingContract": USDC}
            signed = encode_typed_data(domain, FIELDS, paid)
            signer = Account.recover_message(signed, signature=made["signature"])
        except Exception:  # noqa: BLE001 - whatever cannot be read does not pay
            return ""
        fresh = paid["nonce"] not in self.spent
        to = str(paid["to"]).lower() == self.site.wallet.lower()
        right = signer.lower() == str(paid["from"]).lower() and paid["value"] >= self.units and to
        if fresh and right and paid["validAfter"] <= time.time() < paid["validBefore"]:
            return str(paid["nonce"])
        return ""

    async def __call__(self, scope: Scope, _receive: Any, send: Any) -> None:
        asked = dict(parse_qsl(scope["query_string"].decode()))
        if scope["path"] == "/":
            body = {"for_sale": self.about, "usd": self.units / 1e6, "at": self.path}
            await send_json(send, body | {"try_for_free": self.example})
        elif scope["path"] == "/openapi.json":
            await send_json(send, self._document())
        elif scope["path"] != self.path:
            await send_json(send, {"error": "nothing is sold here"}, 404)
        else:
            await self._sell(scope, send, asked)

    async def _sell(self, scope: Scope, send: Any, asked: Mapping[str, str]) -> None:
        number = self.paid_by(header(scope, "x-payment") or header(scope, "payment-signature"))
        if number or self.free(asked):
            answer = self.serve(asked)
            if "error" in answer:  # nothing was handed over: the payment stays unused
                return await send_json(send, answer, 400)
            self.spent.add(number)
            return await send_json(send, answer)
        terms = self.terms()
        packed = base64.b64encode(json.dumps(terms).encode()).decode()
        return await send_json(send, terms, 402, {} if self.old else {"payment-required": packed})

    def _document(self) -> dict[str, Any]:
        arguments = [
            {
                "name": name,
                "in": "query",
                "required": True,
                "example": value,
                "schema": {"type": "string"},
            }
            for name, value in self.example.items()
        ]
        info = {"title": self.site.name, "version": "1", "description": self.about}
        ends = {"200": {"description": "Done"}, "402": {"description": "Pay first"}}
        get = {"summary": self.about, "parameters": arguments, "responses": ends}
        return {"openapi": "3.0.3", "info": info, "paths": {self.path: {"get": get}}}


def rhyme(asked: Mapping[str, str]) -> dict[str, Any]:
    found = rhymes(asked.get("word", ""))
    return {"word": asked.get("word"), "rhymes": found} if found else {"error": "no rhyme known"}


def cipher(asked: Mapping[str, str]) -> dict[str, Any]:
    key = asked.get("key", "")
    if not (key.isascii() and key.isalpha()):
        return {"error": "key: letters a to z"}
    return {"out": vigenere(asked.get("text", ""), key, back=asked.get("mode") == "decrypt")}


def flight(asked: Mapping[str, str]) -> dict[str, Any]:
    try:
        speed, angle = float(asked["speed"]), float(asked["angle"])
        return dict(throw(speed, angle, float(asked.get("height", 0))))
    except (KeyError, ValueError):
        return {"error": "speed in m/s and angle in degrees are needed"}


def sells(
    path: str, about: str, units: int, serve: Serve, free: Callable[[Mapping[str, str]], bool],
    example: dict[str, str], *, old: bool = False,
) -> Build:  # fmt: skip
    """A seller of one thing."""

    def build(site: Site) -> Built:
        counter = Counter(site, path, about, units, serve, free, old, example)
        return Built([("x402", site.url + path), ("web", site.url + "/openapi.json")], counter)

    return build


PAYEE: Proof = "payee"
AGENTS = (
    honest("x402", "Rhyme for a dime", sells(
        "/rhymes", "Words that rhyme with yours. 'moon' and 'stone' are free.", 1200, rhyme,
        lambda asked: asked.get("word", "").lower() in {"moon", "stone"}, {"word": "moon"}), PAYEE),
    honest("x402", "Square of letters", sells(
        "/vigenere", "Vigenère cipher, both ways (mode=decrypt). Up to 12 letters are free.", 2700,
        cipher, lambda asked: 0 < len(asked.get("text", "")) <= 12,
        {"text": "attack", "key": "lemon"})),
    honest("x402", "Long throw", sells(
        "/flight", "Range, time and peak of a throw without air. Free at 45 degrees.", 2500,
        flight, lambda asked: asked.get("angle") == "45",
        {"speed": "20", "angle": "45"}, old=True)),
)  # fmt: skip
