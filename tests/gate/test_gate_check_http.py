"""The gate for reverse proxies: the status is the decision, and callers cannot soften it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    forged,
    refused,
    start_test_service,
)

LENIENT = {"lenient": {"minScore": 0}}


async def policies(service: TestService, wanted: dict[str, Any]) -> httpx2.Response:
    """Set the policies of the account's only key."""
    token = await service.token()
    (key,) = (await service.http.get("/operator/keys", headers=token)).json()
    return await service.http.put(
        f"/operator/keys/{key['id']}/gate-policies", headers=token, json={"policies": wanted}
    )


async def check(
    service: TestService, headers: dict[str, str], path: str = "", method: str = "GET"
) -> httpx2.Response:
    return await service.http.request(
        method, f"/gate/check{path}", headers={"x-agent-id": "7", **headers}
    )


async def used(service: TestService) -> int:
    me = await service.http.get("/operator/me", headers=await service.token())
    return me.json()["allowance"]["used"]


async def test_200_means_allow_and_says_who_it_is(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, LENIENT)
    answer = await check(service, headers, "/lenient")
    assert answer.status_code == 200
    said = answer.json()
    assert answer.headers["x-assay-agent"] == f"eip155:{said['chain']['chainId']}/7"
    assert answer.headers["x-assay-tier"] == said["tier"]
    assert float(answer.headers["x-assay-score"]) == said["score"]
    assert answer.headers["x-assay-identity-proven"] == "true"
    keys = KeySet.import_key_set((await service.http.get("/.well-known/jwks.json")).json())
    token = jwt.decode(answer.headers["x-assay-decision-token"], keys, algorithms=["ES256"])
    assert token.claims["allow"] is True
    assert token.claims["sub"] == answer.headers["x-assay-agent"]


async def test_403_is_a_denial_with_its_reasons(service: TestService) -> None:
    """Nobody listens at the agent's only service."""
    answer = await check(service, await service.operator() | await service.session())
    body = refused(answer, 403, "trust_denied")
    assert body["denialReason"] == "low_score"
    assert body["minScore"] == 65
    assert body["reasons"]
    assert answer.headers["x-assay-error"] == "trust_denied"
    assert "x-assay-tier" not in answer.headers


async def test_401_has_the_challenge_in_header_and_body_and_its_signature_lets_in(
    service: TestService,
) -> None:
    operator = await service.operator()
    await policies(service, LENIENT)
    named = operator | {"x-agent-address": address(OWNER_KEY)}
    answer = await check(service, named, "/lenient")
    body = refused(answer, 401, "challenge_required")
    assert answer.headers["x-agent-challenge"] == body["challenge"]
    signed = await service.challenge(OWNER_KEY)
    proof = named | {
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    first = await check(service, proof, "/lenient")
    assert first.status_code == 200
    session = {"x-agent-session": first.headers["x-agent-session"]}
    assert (await check(service, named | session, "/lenient")).status_code == 200


async def test_the_same_signature_again_gets_the_same_session_and_counts_once(
    service: TestService,
) -> None:
    operator = await service.operator()
    await policies(service, LENIENT)
    signed = await service.challenge(OWNER_KEY)
    proof = operator | {
        "x-agent-address": address(OWNER_KEY),
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    async with asyncio.TaskGroup() as group:
        together = [group.create_task(check(service, proof, "/lenient")) for _ in range(3)]
    service.clock.move(29)
    answers = [*(one.result() for one in together), await check(service, proof, "/lenient")]
    assert {one.status_code for one in answers} == {200}
    assert len({one.headers["x-agent-session"] for one in answers}) == 1
    assert await used(service) == 1
    service.clock.move(2)
    refused(await check(service, proof, "/lenient"), 401, "challenge_required")


async def test_a_revoked_session_ends_the_repeats_of_its_signature(service: TestService) -> None:
    operator = await service.operator()
    await policies(service, LENIENT)
    signed = await service.challenge(OWNER_KEY)
    named = {"x-agent-address": address(OWNER_KEY)}
    proof = (
        operator
        | named
        | {
            "x-agent-challenge": signed["challenge"],
            "x-agent-signature": signed["signature"],
        }
    )
    session = (await check(service, proof, "/lenient")).headers["x-agent-session"]
    await service.app.sessions.revoke(address(OWNER_KEY), session)
    refused(await check(service, proof, "/lenient"), 401, "challenge_required")


async def test_nobody_else_gets_the_session_of_a_signature(service: TestService) -> None:
    """Neither at another account, nor beside a session, nor with another address."""
    one, two = await service.operator("one@example.com"), await service.operator("two@example.com")
    signed = await service.challenge(OWNER_KEY)
    proof = {
        "x-agent-address": address(OWNER_KEY),
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    assert (await check(service, one | proof)).headers["x-agent-session"]
    other = await check(service, two | proof)
    refused(other, 401, "challenge_required")
    assert "x-agent-session" not in other.headers
    as_another = one | proof | {"x-agent-address": address(STRANGER_KEY)}
    refused(await check(service, as_another), 401, "challenge_required")


async def test_a_valid_session_makes_no_proof_of_a_signature_beside_it(
    service: TestService,
) -> None:
    operator, session = await service.operator(), await service.session()
    nonsense = {"x-agent-challenge": "x", "x-agent-signature": "0x00"}
    refused(await check(service, operator | session | nonsense), 403, "trust_denied")
    without = {"x-agent-address": session["x-agent-address"], **nonsense}
    refused(await check(service, operator | without), 401, "challenge_required")
    refused(await check(service, operator | forged(session) | nonsense), 401, "challenge_required")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
async def test_every_method_is_answered_alike(service: TestService, method: str) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, LENIENT)
    assert (await check(service, headers, "/lenient", method)).status_code == 200
    refused(await check(service, headers, "", method), 403, "trust_denied")


@pytest.mark.parametrize(
    "suffix", ["", "/", "/a/b", "//x", "/%2e%2e/strict", "/a?minScore=0", "/a?chain=nowhere"]
)
async def test_what_follows_the_policy_is_the_path_of_the_callers_request(
    service: TestService, suffix: str
) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, {**LENIENT, "strict": {"minScore": 100}})
    assert (await check(service, headers, f"/lenient{suffix}")).status_code == 200
    refused(await check(service, headers, f"/strict{suffix}"), 403, "trust_denied")


@pytest.mark.parametrize("path", ["/none", "/", "/LENIENT", "/lenient%2f", "/lenientx"])
async def test_404_a_policy_that_the_key_does_not_have(service: TestService, path: str) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, LENIENT)
    answer = await check(service, headers, path)
    if path == "/lenient%2f":  # decoded, it is the policy and the path of a request
        assert answer.status_code == 200
    else:
        refused(answer, 404, "gate_policy_not_found")


async def test_404_elsewhere_below_gate(service: TestService) -> None:
    refused(await service.http.get("/gate/other"), 404, "not_found")
    refused(await service.http.get("/gate/"), 404, "not_found")


async def test_a_caller_may_raise_the_threshold_and_never_lower_it(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, {"open": {"minScore": 10}})
    score = (await check(service, headers, "/open")).json()["score"]
    for asked in ("0", "9.99", "10"):
        lowered = await check(service, headers | {"x-min-score": asked}, "/open")
        assert lowered.json()["minScore"] == 10
        lowered = await check(service, headers, f"/open?agentId=7&minScore={asked}")
        assert lowered.json()["minScore"] == 10
    raised = refused(
        await check(service, headers | {"x-min-score": "99.5"}, "/open"), 403, "trust_denied"
    )
    assert raised["minScore"] == 99.5 > score
    both = await check(service, headers | {"x-min-score": "0"}, "/open?agentId=7&minScore=100")
    assert refused(both, 403, "trust_denied")["minScore"] == 100


NO_POINTS = ["-1", "101", "nan", "inf", "1e2", "0x1", "1_0", " 5", "\u0665", ""]


@pytest.mark.parametrize("points", NO_POINTS)
async def test_403_a_threshold_that_is_no_number_from_0_to_100(
    service: TestService, points: str
) -> None:
    headers = await service.operator() | await service.session()
    sent = {**headers, "x-agent-id": "7"}
    raw = [*sent.items(), ("x-min-score", points.encode())]
    answer = await service.http.get("/gate/check", headers=raw)  # type: ignore[arg-type]
    assert answer.status_code == 403
    assert answer.json()["code"] == ("invalid_request" if points.strip() else "trust_denied")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"x-agent-id": "99"}, "agent_not_found"),
        ({"x-agent-id": "not an id"}, "invalid_request"),
        ({"x-agent-id": "7", "x-chain": "nowhere"}, "invalid_request"),
    ],
)
async def test_403_what_is_400_or_404_elsewhere(
    service: TestService, sent: dict[str, str], code: str
) -> None:
    """A proxy such as nginx would answer 500 to it."""
    headers = await service.operator() | await service.session()
    answer = await check(service, headers | sent)
    assert refused(answer, 403, code)
    assert answer.headers["x-assay-error"] == code


async def test_401_an_agent_that_its_caller_does_not_control(service: TestService) -> None:
    headers = await service.operator() | await service.session(STRANGER_KEY)
    answer = refused(await check(service, headers), 401, "identity_mismatch")
    assert "reasons" not in answer


async def test_the_agent_may_be_named_in_the_query_but_a_header_comes_first(
    service: TestService,
) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, LENIENT)
    path = "/gate/check/lenient"
    by_query = await service.http.get(f"{path}?agentId=8&chain=local", headers=headers)
    assert by_query.headers["x-assay-agent"].endswith("/8")
    both = await service.http.get(f"{path}?agentId=8", headers={**headers, "x-agent-id": "7"})
    assert both.headers["x-assay-agent"].endswith("/7")
    neither = await service.http.get(path, headers=headers)
    assert neither.headers["x-assay-agent"] == f"key/{address(OWNER_KEY)}"


async def test_401_a_second_authorization_header_replaces_no_key(service: TestService) -> None:
    """The key of an account with a lenient policy, sent by the caller through a careless proxy."""
    own = (await service.operator("own@example.com"))["authorization"]
    other = (await service.operator("other@example.com"))["authorization"]
    session = await service.session()
    for pair in ((own, other), (other, own)):
        lines = [*session.items(), *(("authorization", one) for one in pair)]
        answer = await service.http.get("/gate/check", headers=lines)
        refused(answer, 401, "unauthorized")


async def test_a_key_without_the_scope_and_no_key_are_refused(service: TestService) -> None:
    await service.operator()
    session = await service.session()
    refused(await check(service, session), 401, "unauthorized")
    made = await service.http.post(
        "/operator/keys/rotate", headers=await service.token(), json={"scopes": ["evaluate"]}
    )
    key = {"authorization": f"Bearer {made.json()['key']}"}
    refused(await check(service, key | session), 403, "insufficient_scope")


async def test_calls_within_half_a_minute_count_once_whatever_threshold_they_ask(
    service: TestService,
) -> None:
    """Otherwise any caller could use up the account's allowance."""
    headers = await service.operator() | await service.session()
    for points in range(20):
        await check(service, headers | {"x-min-score": str(points)})
        await service.http.get("/gate/refusal/default", headers={**headers, "x-agent-id": "7"})
    assert await used(service) == 1
    service.clock.move(31)
    await check(service, headers)
    assert await used(service) == 2
    await check(service, headers | {"x-agent-id": "8"})
    assert await used(service) == 3


async def test_refusals_of_identity_do_not_count(service: TestService) -> None:
    headers = await service.operator() | await service.session(STRANGER_KEY)
    await check(service, headers)
    await check(service, headers | {"x-agent-id": "99"})
    assert await used(service) == 0


async def test_a_worse_grade_counts_at_once(service: TestService) -> None:
    """The answer to a repeated check is decided again, not remembered."""
    headers = await service.operator() | await service.session()
    await policies(service, {"here": {"minScore": 1}})
    first = await check(service, headers, "/here")
    assert first.status_code == 200
    ran = (await service.http.post("/operator/trigger-sandbox/7")).json()
    again = await check(service, headers, "/here")
    assert again.json()["evaluatedAt"] == ran["evaluatedAt"]


async def test_the_refusal_repeats_a_denial_and_never_lets_in(service: TestService) -> None:
    """A proxy that cannot show the body of a check fetches it here."""
    headers = {**(await service.operator() | await service.session()), "x-agent-id": "7"}
    await policies(service, LENIENT)
    denied = await service.http.get("/gate/refusal/default/any/path", headers=headers)
    assert refused(denied, 403, "trust_denied")["reasons"]
    allowed = await service.http.get("/gate/refusal/lenient", headers=headers)
    refused(allowed, 503, "temporarily_unavailable")
    assert allowed.headers["retry-after"] == "1"
    assert "x-assay-tier" not in allowed.headers
    refused(await service.http.get("/gate/refusal/none", headers=headers), 404,
            "gate_policy_not_found")  # fmt: skip


async def test_a_policy_lets_unknown_agents_in_slowly(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, {"slow": {"coldStart": "throttle"}, "closed": {"coldStart": "deny"}})
    answers = [await check(service, headers, "/slow") for _ in range(11)]
    assert {one.status_code for one in answers[:10]} == {200}
    assert answers[0].headers["x-assay-route"] == "prod_throttled"
    refused(answers[10], 429, "rate_limited")
    assert int(answers[10].headers["retry-after"]) >= 1
    refused(await check(service, headers, "/closed"), 403, "trust_denied")


async def test_429_when_the_allowance_is_used_up(service: TestService) -> None:
    service.app.allowance._limit = 1
    headers = await service.operator() | await service.session()
    refused(await check(service, headers), 403, "trust_denied")
    answer = await check(service, headers | {"x-agent-id": "8"})
    refused(answer, 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")
    assert answer.headers["retry-after"]


@pytest.fixture
async def believing(tmp_path: Path) -> AsyncGenerator[TestService]:
    async with start_test_service(tmp_path / "data", identity_proof="asserted") as opened:
        yield opened


async def test_an_address_that_is_only_asserted_is_shown_as_such(believing: TestService) -> None:
    headers = await believing.operator() | {"x-agent-address": address(OWNER_KEY)}
    await policies(believing, LENIENT)
    answer = await check(believing, headers, "/lenient")
    assert answer.status_code == 200
    assert answer.headers["x-assay-identity-proven"] == "false"


@pytest.fixture
async def for_pages(tmp_path: Path) -> AsyncGenerator[TestService]:
    async with start_test_service(tmp_path / "data", cors_origins=("*",)) as opened:
        yield opened


async def test_a_preflight_of_a_page_is_checked_like_every_request(for_pages: TestService) -> None:
    """Some proxies let every 2xx in."""
    asked = {"origin": "https://page.example", "access-control-request-method": "POST"}
    refused(await check(for_pages, asked, "", "OPTIONS"), 401, "unauthorized")


# -- policies -------------------------------------------------------------------------------------


async def test_policies_are_replaced_and_listed_and_recorded(service: TestService) -> None:
    await service.operator()
    wanted = {
        "paid": {"minScore": 80, "ttlMs": 60000, "trustSignals": ["sandbox"], "chain": "local"},
        "default": {"minScore": 10, "coldStart": "deny"},
    }
    answer = await policies(service, wanted)
    assert answer.status_code == 200
    token = await service.token()
    (key,) = (await service.http.get("/operator/keys", headers=token)).json()
    path = f"/operator/keys/{key['id']}/gate-policies"
    listed = (await service.http.get(path, headers=token)).json()
    assert listed == answer.json()
    assert listed["policies"]["paid"] == {**wanted["paid"], "coldStart": None, "authorities": []}
    assert listed["policies"]["default"]["ttlMs"] == 86_400_000
    await policies(service, {})
    assert (await service.http.get(path, headers=token)).json() == {"policies": {}}


async def test_a_changed_policy_counts_at_once(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, {"default": {"minScore": 0}})
    assert (await check(service, headers)).status_code == 200
    await policies(service, {"default": {"minScore": 100}})
    refused(await check(service, headers), 403, "trust_denied")
    await policies(service, {})
    assert refused(await check(service, headers), 403, "trust_denied")["minScore"] == 65


INVALID: list[Any] = [
    {"a b": {}},
    {"UPPER": {}},
    {"x" * 41: {}},
    {"a/b": {}},
    {"": {}},
    {"a": {"minScore": 101}},
    {"a": {"ttlMs": 1}},
    {"a": {"minScore": "10"}},
    {"a": {"unknown": 1}},
    {"a": {"chain": "nowhere"}},
    {"a": {"trustSignals": ["nothing"]}},
    {f"a{n}": {} for n in range(21)},
    [],
    None,
]


@pytest.mark.parametrize("wanted", INVALID)
async def test_400_policies_that_are_invalid_change_nothing(
    service: TestService, wanted: Any
) -> None:
    headers = await service.operator() | await service.session()
    await policies(service, LENIENT)
    refused(await policies(service, wanted), 400, "invalid_request")
    assert (await check(service, headers, "/lenient")).status_code == 200


async def test_403_a_policy_with_a_paid_signal_on_the_free_plan(service: TestService) -> None:
    await service.operator()
    answer = await policies(service, {"a": {"trustSignals": ["personhood"]}})
    assert answer.status_code in {400, 403}


async def test_404_the_policies_of_another_operators_key(service: TestService) -> None:
    await service.operator("one@example.com")
    await service.operator("two@example.com")
    one, two = await service.token("one@example.com"), await service.token("two@example.com")
    (key,) = (await service.http.get("/operator/keys", headers=two)).json()
    path = f"/operator/keys/{key['id']}/gate-policies"
    refused(await service.http.get(path, headers=one), 404, "key_not_found")
    refused(
        await service.http.put(path, headers=one, json={"policies": LENIENT}),
        404,
        "key_not_found",
    )
    assert (await service.http.get(path, headers=two)).json() == {"policies": {}}
    refused(await service.http.get(path), 401, "unauthorized")


async def test_one_key_does_not_know_the_policies_of_another(service: TestService) -> None:
    """A proxy's key reaches the policies it was given, whatever path a caller makes it ask."""
    await service.operator()
    await policies(service, LENIENT)
    made = await service.http.post("/operator/keys/rotate", headers=await service.token())
    other = {"authorization": f"Bearer {made.json()['key']}"} | await service.session()
    refused(await check(service, other, "/lenient"), 404, "gate_policy_not_found")


async def test_a_new_key_gets_the_policies_of_the_key_it_replaces(service: TestService) -> None:
    """A proxy that changes its key keeps its thresholds."""
    await service.operator("one@example.com")
    token = await service.token("one@example.com")
    (key,) = (await service.http.get("/operator/keys", headers=token)).json()
    strict = {"policies": {"strict": {"minScore": 90}}}
    path = f"/operator/keys/{key['id']}/gate-policies"
    assert (await service.http.put(path, headers=token, json=strict)).status_code == 200
    body = {"gatePoliciesOf": key["id"]}
    made = await service.http.post("/operator/keys/rotate", headers=token, json=body)
    shown = await service.http.get(path.replace(key["id"], made.json()["id"]), headers=token)
    assert shown.json() == (await service.http.get(path, headers=token)).json()
    export = (await service.http.get("/operator/me/export", headers=token)).json()
    assert set(export["gatePolicies"]) == {key["id"], made.json()["id"]}
    await service.operator("two@example.com")
    two = await service.token("two@example.com")
    refused(
        await service.http.post("/operator/keys/rotate", headers=two, json=body),
        *(404, "key_not_found"),
    )
    assert len((await service.http.get("/operator/keys", headers=two)).json()) == 1
