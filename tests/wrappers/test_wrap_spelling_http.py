"""A paid or trusted wrapper beside a freer one: its 402, 401, 403 and row for every spelling."""

from typing import Any

import pytest

from tests.support.live_service import OWNER_KEY, refused
from tests.wrappers.test_wrap_http import Seller, seller, up

__all__ = ["seller", "up"]

PAYOUT = "0x" + "ab" * 20
SPELLED = ["/shop/quote/", "/shop/QUOTE", "/shop/quote;x", "/shop//quote", "/shop/quote%20"]
MORE = ["/shop/quote%2f", "/shop/quote.", "/shop/%2571uote", "/shop%2Fquote", "/Shop/quote"]


async def warnings(seller: Seller, path: str, **fields: Any) -> list[str]:
    body = {"path": path, "pricePerCall": 0, "targetUrl": seller.up.url, **fields}
    answer = await seller.service.http.post("/operator/endpoints", json=body, headers=seller.token)
    assert answer.status_code == 200, answer.text
    return [one for one in answer.json()["warnings"] if "asks for less" in one]


@pytest.mark.parametrize("path", SPELLED + MORE)
async def test_a_spelling_of_a_paid_path_asks_for_its_price(seller: Seller, path: str) -> None:
    """All but the first spelling were forwarded without a payment."""
    await seller.wrap("/*", method="*")
    await seller.wrap("/shop/quote", pricePerCall=0.01, payoutAddress=PAYOUT)
    url = f"/wrap/{seller.operator_id}"
    body = refused(await seller.service.http.get(url + path), 402, "payment_required")
    assert path in str(body)
    assert (await seller.service.http.get(url + "/shop/other")).status_code == 200
    assert [seen.target for seen in seller.up.asked] == ["/shop/other"]
    await seller.service.app.flush()
    logs = await seller.service.http.get("/operator/analytics/logs", headers=seller.token)
    listed = await seller.service.http.get("/operator/endpoints", headers=seller.token)
    paid = next(row["id"] for row in listed.json() if row["path"] == "/shop/quote")
    row = logs.json()["logs"][-1]
    assert (row["endpointId"], row["statusCode"], row["path"]) == (paid, 402, path)


@pytest.mark.parametrize("path", SPELLED + MORE)
async def test_a_spelling_of_a_trusted_path_asks_who_calls(seller: Seller, path: str) -> None:
    await seller.wrap("/*")
    await seller.wrap("/shop/quote", trustEnabled=True, minScore=0)
    url, http = f"/wrap/{seller.operator_id}{path}", seller.service.http
    refused(await http.get(url), 401, "identity_required")
    who = {**await seller.service.session(OWNER_KEY), "x-agent-id": "7"}
    assert (await http.get(url, headers=who)).status_code == 200
    [seen] = seller.up.asked
    assert seen.target == path  # forwarded as it was spelled
    assert seen.all("x-assay-agent") == ["7"]


async def test_a_spelling_of_a_path_the_agent_is_too_poor_for_is_denied(seller: Seller) -> None:
    await seller.wrap("/*", trustEnabled=True, minScore=0)
    await seller.wrap("/shop/quote", trustEnabled=True, minScore=99)
    who = {**await seller.service.session(OWNER_KEY), "x-agent-id": "7"}
    url = f"/wrap/{seller.operator_id}/SHOP/quote"
    refused(await seller.service.http.get(url, headers=who), 403, "trust_denied")
    assert seller.up.asked == []


async def test_making_such_a_pair_warns_whichever_is_made_first(seller: Seller) -> None:
    paid = {"pricePerCall": 0.01, "payoutAddress": PAYOUT}
    assert await warnings(seller, "/shop/*") == []
    [warned] = await warnings(seller, "/shop/quote", **paid)
    assert "/shop/quote" in warned
    assert "/shop/*" in warned
    assert await warnings(seller, "/other/quote", **paid) == []
    [warned] = await warnings(seller, "/other/*", method="*")
    assert "/other/quote" in warned
    assert await warnings(seller, "/third/quote") == []


async def test_the_playground_goes_by_the_same_route(seller: Seller) -> None:
    await seller.wrap("/*")
    await seller.wrap("/shop/quote", trustEnabled=True, minScore=99)
    await seller.wrap("/a/b", method="POST")

    async def play(path: str, **fields: Any) -> Any:
        body = {"path": path, "agentId": "7", **fields}
        answer = await seller.service.http.post(
            "/operator/playground", json=body, headers=seller.token
        )
        return answer.json()

    assert (await play("/shop/QUOTE"))["statusCode"] == 403
    assert (await play("/a%2Fb?c=%2F", method="POST"))["statusCode"] == 200
    assert [seen.target for seen in seller.up.asked] == ["/a/b?c=%2F"]
