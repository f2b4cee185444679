"""Who may read an attestation: a Pro operator, or the agent itself; either is enough.

Source: interface.md#credentials-by-operation.
"""

import pytest

from tests.support.live_service import OWNER_KEY, STRANGER_KEY, TestService, address, refused

PATH = f"/operator/key/{address(OWNER_KEY)}/attestation"


async def test_a_free_key_does_not_stand_in_the_way_of_the_agents_own_session(
    service: TestService,
) -> None:
    free, session = await service.operator(), await service.session(OWNER_KEY)
    refused(await service.http.get(PATH, headers=free), 403, "plan_required")
    assert (await service.http.get(PATH, headers=session)).status_code == 200
    answer = await service.http.get(PATH, headers={**free, **session})
    assert answer.status_code == 200, answer.text
    assert answer.json()["attestation"]["attested"] is False


@pytest.mark.parametrize("key", ["Bearer svc_op_nobodys", "Bearer", "Basic eDp5"])
async def test_a_credential_that_is_no_key_does_not_either(service: TestService, key: str) -> None:
    session = await service.session(OWNER_KEY)
    answer = await service.http.get(PATH, headers={"authorization": key, **session})
    assert answer.status_code == 200, answer.text
    refused(await service.http.get(PATH, headers={"authorization": key}), 401, "unauthorized")


async def test_a_pro_key_is_enough_whatever_session_comes_with_it(service: TestService) -> None:
    key, other = await service.operator(), await service.session(STRANGER_KEY)
    await service.pro()
    for agent in ({}, other, {"x-agent-address": "nobody"}):
        assert (await service.http.get(PATH, headers={**key, **agent})).status_code == 200


async def test_a_free_key_and_somebody_elses_session_are_none(service: TestService) -> None:
    free, other = await service.operator(), await service.session(STRANGER_KEY)
    answer = await service.http.get(PATH, headers={**free, **other})
    refused(answer, 401, "identity_mismatch")
    ended = {"x-agent-address": address(OWNER_KEY), "x-agent-session": "over"}
    refused(await service.http.get(PATH, headers={**free, **ended}), 401, "challenge_required")
