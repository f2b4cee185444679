"""A paid or trusted wrapper beside a freer one: its 402, 401, 403 and row for every spelling."""

from typing import Any

import pytest

from tests.support.live_service import OWNER_KEY, refused
from tests.wrappers.test_wrap_http import Stall, stall, up

__all__ = ["stall", "up"]

PAYOUT = "0x" + "ab" * 20
SPELLED = ["/shop/quote/", "/shop/QUOTE", "/shop/quote;x", "/shop//quote", "/shop/quote%20"]
MORE = ["/shop/quote%2f", "/shop/quote.", "/shop/%2571uote", "/shop%2Fquote", "/Shop/quote"]


async def warnings(stall: Stall, path: str, **fields: Any) -> list[str]:
    body = {"path": path, "pricePerCall": 0, "targetUrl": stall.up.url, **fields}
    answer = await stall.service.http.post("/operator/endpoints", json=body, headers=stall.token)
    assert answer.status_code == 200, answer.text
    return [one for one in answer.json()["warnings"] if "asks for less" in one]


@pytest.mark.parametrize("path", SPELLED + MORE)
async def test_a_spelling_of_a_paid_path_asks_for_its_price(stall: Stall, path: str) -> None:
    """All but the first spelling were forwarded without a payment."""
    await stall.wrap("/*", method="*")
    await stall.wrap("/shop/quote", pricePerCall=0.01, payoutAddress=PAYOUT)
    url = f"/wrap/{stall.operator_id}"
    body = refused(await stall.service.http.get(url + path), 402, "payment_required")
    assert path in str(body)
    assert (await stall.service.http.get(url + "/shop/other")).status_code == 200
    assert [seen.target for seen in stall.up.asked] == ["/shop/other"]
    await stall.service.app.flush()
    logs = await stall.service.http.get("/operator/analytics/logs", headers=stall.token)
    listed = await stall.service.http.get("/operator/endpoints", headers=stall.token)
    paid = next(row["id"] for row in listed.json() if row["path"] == "/shop/quote")
    row = logs.json()["logs"][-1]
    assert (row["endpointId"], row["statusCode"], row["path"]) == (paid, 402, path)


@pytest.mark.parametrize("path", SPELLED + MORE)
async def test_a_spelling_of_a_trusted_path_asks_who_calls(stall: Stall, path: str) -> None:
    await stall.wrap("/*")
    await stall.wrap("/shop/quote", trustEnabled=True, minScore=0)
    url, http = f"/wrap/{stall.operator_id}{path}", stall.service.http
    refused(await http.get(url), 401, "identity_required")
    who = {**await stall.service.session(OWNER_KEY), "x-agent-id": "7"}
    assert (await http.get(url, headers=who)).status_code == 200
    [seen] = stall.up.asked
    assert seen.target == path  # forwarded as it was spelled
    assert seen.all("x-assay-agent") == ["7"]


async def test_a_spelling_of_a_path_the_agent_is_too_poor_for_is_denied(stall: Stall) -> None:
    await stall.wrap("/*", trustEnabled=True, minScore=0)
    await stall.wrap("/shop/quote", trustEnabled=True, minScore=99)
    who = {**await stall.service.session(OWNER_KEY), "x-agent-id": "7"}
    url = f"/wrap/{stall.operator_id}/SHOP/quote"
    refused(await stall.service.http.get(url, headers=who), 403, "trust_denied")
    assert stall.up.asked == []


async def test_making_such_a_pair_warns_whichever_is_made_first(stall: Stall) -> None:
    paid = {"pricePerCall": 0.01, "payoutAddress": PAYOUT}
    assert await warnings(stall, "/shop/*") == []
    [warned] = await warnings(stall, "/shop/quote", **paid)
    assert "/shop/quote" in warned
    assert "/shop/*" in warned
    assert await warnings(stall, "/other/quote", **paid) == []
    [warned] = await warnings(stall, "/other/*", method="*")
    assert "/other/quote" in warned
    assert await warnings(stall, "/third/quote") == []


async def test_the_playground_goes_by_the_same_route(stall: Stall) -> None:
    await stall.wrap("/*")
    await stall.wrap("/shop/quote", trustEnabled=True, minScore=99)
    await stall.wrap("/a/b", method="POST")

    async def play(path: str, **fields: Any) -> Any:
        body = {"path": path, "agentId": "7", **fields}
        answer = await stall.service.http.post(
            "/operator/playground", json=body, headers=stall.token
        )
        return answer.json()

    assert (await play("/shop/QUOTE"))["statusCode"] == 403
    assert (await play("/a%2Fb?c=%2F", method="POST"))["statusCode"] == 200
    assert [seen.target for seen in stall.up.asked] == ["/a/b?c=%2F"]
