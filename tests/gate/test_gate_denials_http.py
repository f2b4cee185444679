"""Denials say what counts against the agent, what would change it, and what was meant."""

import json

from tests.support.live_service import OWNER_KEY, TestService, address, refused
from tests.support.raw_server import keeps_open, plain, serving

OK = keeps_open(plain(b'{"ok":1}', "200 OK", "Content-Type: application/json"))


async def test_a_gates_denial_carries_causes_and_what_each_is_worth(service: TestService) -> None:
    op, who = await service.operator(), await service.session(OWNER_KEY)
    ask = {"minScore": 99}
    for _ in range(2):  # the second is from the cache
        answer = await service.http.post("/operator/gate/7", json=ask, headers={**op, **who})
        body = answer.json()
        assert body["allow"] is False
        assert body["improve"]
        assert [one["points"] for one in body["improve"] if not one["slug"]] == []
        for one in body["improve"]:
            assert one["scoreAfter"] == round(body["score"] + one["points"], 2)
            assert one["docs"].startswith("docs/")
        findings = [one["finding"] for one in body["improve"]]
        assert set(body["reasons"]) <= set(findings)
        assert body["didYouMean"] == []
    assert body["cached"] is True


async def test_an_allowed_answer_names_no_improvement(service: TestService) -> None:
    op, who = await service.operator(), await service.session(OWNER_KEY)
    answer = await service.http.post(
        "/operator/gate/7", json={"minScore": 0}, headers={**op, **who}
    )
    body = answer.json()
    assert (body["allow"], body["improve"], body["problems"]) == (True, [], [])


async def test_an_owner_judged_as_a_key_agent_is_shown_its_registered_agent(
    service: TestService,
) -> None:
    op, who = await service.operator(), await service.session(OWNER_KEY)
    path = f"/operator/gate/{address(OWNER_KEY)}"
    for _ in range(2):
        answer = await service.http.post(path, json={"minScore": 99}, headers={**op, **who})
        body = answer.json()
        assert body["allow"] is False
        hint = {"agentId": "7", "chain": body["chain"]["name"], "send": "x-agent-id: 7"}
        assert body["didYouMean"][0] == hint
        assert len(body["didYouMean"]) <= 5


async def test_wrapper_and_playground_refuse_in_the_same_words(service: TestService) -> None:
    who = await service.session(OWNER_KEY)
    op = await service.operator()
    token = await service.token()
    async with serving(OK) as up:
        made = await service.http.post(
            "/operator/endpoints",
            json={
                "path": "/strict",
                "pricePerCall": 0,
                "targetUrl": up.url(""),
                "trustEnabled": True,
                "minScore": 99,
            },
            headers=token,
        )
        assert made.status_code == 200, made.text
        me = (await service.http.get("/operator/me", headers=token)).json()
        url = f"/wrap/{me['operator']['id']}/strict"
        wrapped = refused(
            await service.http.get(url, headers={**who, "x-agent-id": "7"}), 403, "trust_denied"
        )
        played = await service.http.post(
            "/operator/playground", json={"path": "/strict", "agentId": "7"}, headers=token
        )
        inner = json.loads(played.json()["responseBody"])
        assert inner.pop("requestId") != wrapped.pop("requestId")
        assert inner == wrapped
        asked = await service.http.post(
            "/operator/gate/7",
            json={"minScore": 99},
            headers={**op, **who},
        )
        same = {"riskLevel", "improve", "problems", "didYouMean", "minScore", "denialReason"}
        same |= {"reasons", "score", "scoreLow", "scoreHigh", "tier", "agentId"}
        gate = asked.json()
        assert {name: wrapped[name] for name in same} == {name: gate[name] for name in same}
        assert wrapped["denialReason"] in {"insufficient_evidence", "low_score"}
        for name in ("rung", "ceiling"):
            assert wrapped[name] == gate["ladder"][name]
        wrong = await service.http.get(url, headers={**who, "x-agent-id": "seven"})
        body = refused(wrong, 400, "invalid_request")
        assert body["details"][0]["loc"] == ["header", "x-agent-id"]
