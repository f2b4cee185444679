"""DELETE /operator/keys/{keyId}, by status."""

import pytest

from tests.support.live_service import TestService, refused


async def test_200_a_revoked_key_stays_listed_and_is_refused_at_once(service: TestService) -> None:
    key = await service.operator()
    token = await service.token()
    assert (await service.http.get("/operator/agent/7", headers=key)).status_code == 200
    (record,) = (await service.http.get("/operator/keys", headers=token)).json()
    answers = [
        await service.http.delete(f"/operator/keys/{record['id']}", headers=token) for _ in range(2)
    ]
    for answer in answers:  # a second time is no mistake
        assert answer.status_code == 200
        assert answer.json() == {"ok": True, "id": record["id"], "revoked": True}
    refused(await service.http.get("/operator/agent/7", headers=key), 401, "unauthorized")
    (record,) = (await service.http.get("/operator/keys", headers=token)).json()
    assert record["revoked"] is True


@pytest.mark.parametrize("key_id", ["01900000-0000-7000-8000-000000000000", "x", "%ff", "a%20b"])
async def test_404_a_key_that_is_not_there(service: TestService, key_id: str) -> None:
    await service.operator()
    answer = await service.http.delete(f"/operator/keys/{key_id}", headers=await service.token())
    refused(answer, 404, "key_not_found")


@pytest.mark.parametrize("key_id", ["%00", "x" * 65])
async def test_400_an_id_that_no_key_can_have(service: TestService, key_id: str) -> None:
    await service.operator()
    answer = await service.http.delete(f"/operator/keys/{key_id}", headers=await service.token())
    refused(answer, 400, "invalid_request")
