"""What a seller's OpenAPI document says of its MPP wrappers is what their 402s ask for."""

import base64
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.payments.networks import payment_networks
from assay.wrappers.discovery import OPERATIONS_MAX, sold_operations
from assay.wrappers.matching import BadPath, check_pattern
from assay.wrappers.model import WrapperConfig
from assay.wrappers.route_table import REMEMBERED_S
from tests.support import node
from tests.support.live_service import TestService, refused, start_test_service

PUBLIC = "https://svc.example"
WALLET = "0x" + "5e" * 20
NETWORKS = payment_networks({})
PATH_USD = NETWORKS["tempo:42431"].asset.address


@dataclass
class Seller:
    service: TestService
    id: str
    token: dict[str, str]

    @property
    def url(self) -> str:
        return f"/wrap/{self.id}/openapi.json"

    async def sell(self, path: str, **fields: Any) -> str:
        body = {
            "path": path,
            "pricePerCall": 0.01,
            "description": f"What {path} is.",
            "targetUrl": "https://api.example.com",
            "paymentProtocol": "mpp",
            "paymentNetwork": "tempo-moderato",
            "payoutAddress": WALLET,
            **fields,
        }
        http = self.service.http
        answer = await http.post("/operator/endpoints", json=body, headers=self.token)
        assert answer.status_code == 200, answer.text
        return answer.json()["id"]

    async def document(self) -> dict[str, Any]:
        answer = await self.service.http.get(self.url, headers={"host": "evil.example"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()


async def opened(service: TestService, email: str = "op@example.com") -> Seller:
    await service.operator(email)
    token = await service.token(email)
    me = (await service.http.get("/operator/me", headers=token)).json()
    return Seller(service, me["operator"]["id"], token)


@pytest.fixture
async def seller(tmp_path: Path) -> AsyncGenerator[Seller]:
    async with start_test_service(tmp_path, public_url=PUBLIC) as service:
        yield await opened(service)


def offers(document: dict[str, Any]) -> dict[str, Any]:
    """By method and path."""
    return {
        f"{method.upper()} {path}": operation["x-payment-info"]["offers"]
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def challenge(header: str) -> dict[str, Any]:
    found = dict(re.findall(r'(\w+)="([^"]*)"', header))
    asked = found["request"]
    request = json.loads(base64.urlsafe_b64decode(asked + "=" * (-len(asked) % 4)))
    return {**request, "method": found["method"], "intent": found["intent"]}


async def test_what_is_offered_is_what_the_402_asks_for(seller: Seller) -> None:
    await seller.sell("/quote")
    await seller.sell("/orders/{id}", method="POST", pricePerCall=0.000001)
    await seller.sell("/files/*", method="*", pricePerCall=2)
    document = await seller.document()
    assert document["servers"] == [{"url": f"{PUBLIC}/wrap/{seller.id}"}]
    assert document["paths"]["/quote"]["get"]["summary"] == "What /quote is."
    assert document["x-service-info"]["docs"]["llms"] == f"{PUBLIC}/llms.txt"
    found = offers(document)
    anything = [f"{method} /files/{{rest}}" for method in ("DELETE", "GET", "PATCH", "POST", "PUT")]
    assert sorted(found) == [
        *anything[:2],
        "GET /quote",
        *anything[2:4],
        "POST /orders/{id}",
        anything[4],
    ]
    for name, (offer,) in found.items():
        method, _, path = name.partition(" ")
        url = f"/wrap/{seller.id}{path}".format(id="7", rest="a/b")
        asked = await seller.service.http.request(method, url)
        assert asked.status_code == 402
        assert "402" in document["paths"][path][method.lower()]["responses"]
        said = challenge(asked.headers["www-authenticate"])
        members = ("intent", "method", "amount", "currency")
        assert [offer[one] for one in members] == [said[one] for one in members]


async def test_only_active_sold_mpp_wrappers_with_a_description_are_listed(seller: Seller) -> None:
    await seller.sell("/listed")
    await seller.sell("/nameless", description="")
    await seller.sell("/free", pricePerCall=0)
    x402 = {"paymentProtocol": "x402", "paymentNetwork": "base-sepolia"}
    await seller.sell("/x402", **x402)
    await seller.sell("/odd", method="PROPFIND")
    other = await opened(seller.service, "other@example.com")
    await other.sell("/others")
    gone = await seller.sell("/gone")
    assert sorted(offers(await seller.document())) == ["GET /gone", "GET /listed"]
    http, token = seller.service.http, seller.token
    await http.delete(f"/operator/endpoints/{gone}", headers=token)
    assert sorted(offers(await seller.document())) == ["GET /listed"]
    assert sorted(offers(await other.document())) == ["GET /others"]
    await seller.service.app.operators.suspend_for_admin("other@example.com", suspended=True)
    seller.service.clock.move(REMEMBERED_S + 1)
    refused(await http.get(other.url), 404, "wrapper_not_found")


async def test_a_price_that_depends_on_the_grade_is_not_a_number(seller: Seller) -> None:
    tiers = [{"minTier": "A", "pricePerCall": 0.001}]
    await seller.sell("/tiers", pricing=tiers, trustEnabled=True)
    [offer] = offers(await seller.document())["GET /tiers"]
    assert (offer["amount"], offer["currency"]) == (None, PATH_USD)
    assert "At most 0.010000 USD" in offer["description"]


async def test_a_wrapper_of_the_seller_at_that_path_comes_first(seller: Seller) -> None:
    await seller.sell("/quote")
    everything = await seller.sell("/*")
    http = seller.service.http
    assert (await http.get(seller.url)).status_code == 402
    await http.delete(f"/operator/endpoints/{everything}", headers=seller.token)
    assert list((await seller.document())["paths"]) == ["/quote"]
    refused(await http.post(seller.url), 404, "wrapper_not_found")


async def test_a_method_with_a_wrapper_of_its_own_is_not_listed_at_another_ones_price(
    seller: Seller,
) -> None:
    await seller.sell("/a/{x}", method="*")
    await seller.sell("/a/{y}", method="GET", description="")
    await seller.sell("/a/*", method="HEAD")
    found = offers(await seller.document())
    assert sorted(found) == [
        "DELETE /a/{x}", "HEAD /a/{x}", "PATCH /a/{x}", "POST /a/{x}", "PUT /a/{x}"
    ]  # fmt: skip


async def test_nothing_tells_a_stranger_from_a_seller_that_lists_nothing(seller: Seller) -> None:
    await seller.sell("/nameless", description="")
    http = seller.service.http
    for operator_id in (seller.id, "0" * 36, "x" * 500):
        answer = await http.get(f"/wrap/{operator_id}/openapi.json")
        assert refused(answer, 404, "wrapper_not_found")["message"] == (
            "No active wrapper answers this operator, path and method."
        )


async def test_the_operator_of_the_service_can_turn_it_off(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, mpp_discovery=False) as service:
        seller = await opened(service)
        await seller.sell("/quote")
        refused(await service.http.get(seller.url), 404, "wrapper_not_found")


async def test_copies_are_asked_for_again_by_their_tag_and_pages_follow_each_other(
    seller: Seller,
) -> None:
    for number in range(OPERATIONS_MAX // 5 + 1):
        await seller.sell(f"/p{number}", method="*")
    http = seller.service.http
    first = await http.get(seller.url)
    assert first.headers["cache-control"] == "public, max-age=300"
    for tag in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
        again = await http.get(seller.url, headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b"")
    head = await http.head(seller.url)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(first.content))
    link = f'<{PUBLIC}/wrap/{seller.id}/openapi.json?page=2>; rel="next"'
    assert first.headers["link"] == link
    second = await http.get(f"{seller.url}?page=2")
    assert "link" not in second.headers
    found = [*offers(first.json()), *offers(second.json())]
    assert (len(set(found)), len(found)) == (OPERATIONS_MAX + 5, OPERATIONS_MAX + 5)
    for query in ("page=3", "page=0", "page=02", "page=99999", "page=1&x=1", "x"):
        refused(await http.get(f"{seller.url}?{query}"), 404, "wrapper_not_found")


@pytest.mark.slow
async def test_the_stock_validator_has_no_findings(seller: Seller) -> None:
    await seller.sell("/quote")
    await seller.sell("/orders/{id}/{id}", method="*", description="\u00fc \u201c<b>")
    tiers = [{"minTier": "A", "pricePerCall": 0.001}]
    await seller.sell("/tiers/*", pricing=tiers, trustEnabled=True, method="PUT")
    document = await seller.document()
    assert len(offers(document)) == 7
    assert json.loads(node.run("mppx_validate.mjs", {"document": document}).body) == []
    del document["paths"]["/quote"]["get"]["responses"]["402"]
    assert json.loads(node.run("mppx_validate.mjs", {"document": document}).body)


BASE = WrapperConfig(
    id="w",
    operator_id="op1",
    path="/",
    method="GET",
    price=1,
    description="d",
    rate_limit=None,
    target_url="https://api.example.com",
    protocol="mpp",
    network="tempo:4217",
    payout_address=WALLET,
    trust_enabled=False,
    min_score=0,
    identity_proof="required",
    settle="after",
    max_body_bytes=1,
    timeout_ms=1,
    auth=None,
    active=True,
    created_at=datetime(2026, 11, 1, tzinfo=UTC),
)
SEGMENT = st.sampled_from(["a", "b.c", "{x}", "{y}", "{rest}", "*", ""])
ROUTES = st.lists(
    st.tuples(
        st.lists(SEGMENT, min_size=1, max_size=4).map(lambda found: "/" + "/".join(found)),
        st.sampled_from(["*", "GET", "HEAD", "POST", "PROPFIND"]),
        st.sampled_from([0, 1]),
    ),
    max_size=8,
)


@given(ROUTES)
def test_whatever_is_sold_no_path_of_openapi_is_listed_twice(
    routes: list[tuple[str, str, int]],
) -> None:
    configs = [
        replace(BASE, id=str(place), path=path, method=method, price=price)
        for place, (path, method, price) in enumerate(routes)
        if is_pattern(path)
    ]
    found = list(sold_operations(configs, NETWORKS))
    assert found == list(sold_operations(list(reversed(configs)), NETWORKS)) or len(
        {(one.path, one.method) for one in configs}
    ) < len(configs)
    assert len({(one.path, one.method) for one in found}) == len(found)
    paths = {one.path for one in found}
    assert len({re.sub(r"{[^}]*}", "{}", path) for path in paths}) == len(paths)
    for one in found:
        names = re.findall(r"{([^}]*)}", one.path)
        assert (tuple(names), len(set(names))) == (one.parameters, len(names))
        assert one.config.price
        assert one.config.method in {"*", one.method}


def is_pattern(path: str) -> bool:
    try:
        check_pattern(path)
    except BadPath:
        return False
    return True
