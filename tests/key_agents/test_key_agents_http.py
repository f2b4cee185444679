"""Key agents (interface.md#key-agents, #agent-identity), by status."""

import asyncio
import re

import pytest

from tests.support.live_service import OWNER_KEY, STRANGER_KEY, TestService, address, refused


async def test_challenge_200_is_one_line_a_person_can_read(service: TestService) -> None:
    answer = (await service.http.post(f"/operator/key/{address(OWNER_KEY)}/challenge")).json()
    assert answer.keys() == {"challenge", "expiresAt", "agentAddress"}
    assert address(OWNER_KEY) in answer["challenge"]
    assert service.app.settings.address in answer["challenge"]
    assert answer["expiresAt"] in answer["challenge"]


@pytest.mark.parametrize("name", ["0x12", "nobody", "0x" + "g" * 40, "0x" + "a" * 41])
async def test_challenge_400_for_what_is_no_address(service: TestService, name: str) -> None:
    refused(await service.http.post(f"/operator/key/{name}/challenge"), 400, "invalid_request")


async def test_verify_200_gives_a_profile_and_a_session(service: TestService) -> None:
    answer = await service.http.post(
        "/operator/key/verify", json=await service.challenge(OWNER_KEY)
    )
    profile = answer.json()
    assert (profile["verified"], profile["score"], profile["attestation"]) == (True, None, None)
    assert profile["agentAddress"] == address(OWNER_KEY)
    assert answer.headers["x-agent-session"]


async def test_verify_401_a_challenge_is_good_once_even_for_many_at_once(
    service: TestService,
) -> None:
    signed = await service.challenge(OWNER_KEY)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(service.http.post("/operator/key/verify", json=signed))
            for _ in range(20)
        ]
    statuses = sorted(t.result().status_code for t in tasks)
    assert statuses == [200] + [401] * 19
    refused(await service.http.post("/operator/key/verify", json=signed), 401, "challenge_required")


async def test_verify_401_after_five_minutes(service: TestService) -> None:
    signed = await service.challenge(OWNER_KEY)
    service.clock.move(300)
    answer = await service.http.post("/operator/key/verify", json=signed)
    assert refused(answer, 401, "challenge_required")["challenge"] != signed["challenge"]


@pytest.mark.parametrize(
    "change", [lambda t: t + " ", lambda t: t.replace(" ", "  ", 1), str.upper, lambda _: "hello"]
)
async def test_verify_401_for_a_challenge_that_was_changed(
    service: TestService, change: object
) -> None:
    signed = await service.challenge(OWNER_KEY)
    signed["challenge"] = change(signed["challenge"])  # type: ignore[operator]
    refused(await service.http.post("/operator/key/verify", json=signed), 401, "challenge_required")


@pytest.mark.parametrize("issued", ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-0100"])
async def test_verify_401_for_a_challenge_from_the_end_of_the_calendar(
    service: TestService, issued: str
) -> None:
    """Five minutes later there is no date: adding them ended the request with a 500."""
    signed = await service.challenge(OWNER_KEY)
    changed = re.sub(r"Issued: \S+ ", f"Issued: {issued}. ", signed["challenge"])
    signed["challenge"] = changed
    refused(await service.http.post("/operator/key/verify", json=signed), 401, "challenge_required")


async def test_verify_401_for_another_address(service: TestService) -> None:
    signed = await service.challenge(OWNER_KEY)
    signed["agentAddress"] = address(STRANGER_KEY)
    refused(await service.http.post("/operator/key/verify", json=signed), 401, "challenge_required")


async def test_verify_401_a_wrong_signature_uses_nothing_up(service: TestService) -> None:
    signed = await service.challenge(OWNER_KEY)
    wrong = signed | {"signature": "0x" + "11" * 65}
    refused(await service.http.post("/operator/key/verify", json=wrong), 401, "signature_invalid")
    assert (await service.http.post("/operator/key/verify", json=signed)).status_code == 200


async def test_verify_400_for_a_body_that_does_not_hold(service: TestService) -> None:
    for body in ({}, {"agentAddress": "0x12", "challenge": "x", "signature": "0x"}, []):
        answer = await service.http.post("/operator/key/verify", json=body)
        refused(answer, 400, "invalid_request")


async def test_profile_200_of_an_address_nobody_proved(service: TestService) -> None:
    key = await service.operator()
    answer = await service.http.get(f"/operator/key/{address(OWNER_KEY)}", headers=key)
    assert (answer.json()["verified"], answer.json()["tier"]) == (False, None)
    refused(await service.http.get(f"/operator/key/{address(OWNER_KEY)}"), 401, "unauthorized")


async def test_a_session_can_be_ended_and_is_then_no_more(service: TestService) -> None:
    op, session = await service.operator(), await service.session()
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    other = f"/operator/key/{address(STRANGER_KEY)}/session"
    refused(await service.http.delete(other, headers=session), 401, "identity_mismatch")
    assert (await service.http.delete(path, headers=session)).json()["ok"] is True
    refused(await service.gate(op | session), 401, "challenge_required")
