"""Whatever two operators do, neither sees, uses up or ends anything of the other's."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.live_service import TestService, refused

WHO = st.sampled_from(["one@b.cc", "two@b.cc"])
STEPS = st.lists(st.tuples(WHO, st.sampled_from(["rotate", "revoke", "trespass"])), max_size=8)


async def listed(service: TestService, token: dict[str, str]) -> dict[str, bool]:
    """The operator's keys by id, and whether each is revoked."""
    keys: list[dict[str, Any]] = (await service.http.get("/operator/keys", headers=token)).json()
    return {key["id"]: key["revoked"] for key in keys}


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
async def test_two_operators_have_nothing_to_do_with_each_other(
    service: TestService, steps: list[tuple[str, str]]
) -> None:
    """A model of both lists, kept beside the real ones."""
    emails = ("one@b.cc", "two@b.cc")
    known = {o.email for o in await service.app.operators.list_for_admin()}
    for email in emails:
        if email not in known:
            await service.operator(email)
    tokens = {email: await service.token(email) for email in emails}
    model = {email: await listed(service, tokens[email]) for email in emails}
    for who, step in steps:
        other = next(email for email in emails if email != who)
        if step == "rotate":
            made = await service.http.post("/operator/keys/rotate", headers=tokens[who])
            model[who][made.json()["id"]] = False
        elif step == "revoke":
            key = next(iter(model[who]))
            await service.http.delete(f"/operator/keys/{key}", headers=tokens[who])
            model[who][key] = True
        else:
            key = next(iter(model[other]))
            answer = await service.http.delete(f"/operator/keys/{key}", headers=tokens[who])
            refused(answer, 404, "key_not_found")
        assert {email: await listed(service, tokens[email]) for email in emails} == model
    assert model[emails[0]].keys().isdisjoint(model[emails[1]].keys())
