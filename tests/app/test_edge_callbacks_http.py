"""Where agents deliver results: the same answer for everybody, and bounded."""

import json

from assay.app.evaluation import callback_addresses
from assay.net.egress.url import EgressPolicy
from assay.probing.result_callbacks import BODY_BYTES_MAX, PREFIX, TOKEN_HEADER, Callbacks
from tests.support.live_service import TestService

TASK = {"id": "t1", "status": {"state": "completed"}, "artifacts": [{"parts": [{"text": "row 3"}]}]}


async def test_a_delivery_reaches_the_visit_that_waits_for_it(service: TestService) -> None:
    callbacks = Callbacks(service.app.callbacks._state, ["k"], ["https://a.example"], [])
    service.app.callbacks._keys = callbacks._keys
    pending = await callbacks.issue(announced=True)
    assert pending is not None
    path = pending.callback.url.removeprefix("https://a.example")
    headers = {TOKEN_HEADER: pending.callback.token}
    answer = await service.http.post(path, json=TASK, headers=headers)
    assert (answer.status_code, answer.json()) == (200, {})
    assert "row 3" in json.dumps(await pending.delivered("t1"))


async def test_nobody_learns_whether_an_address_is_one(service: TestService) -> None:
    answers = [
        await service.http.post(f"{PREFIX}/{word}", content=body)
        for word in ("x", f"{'0' * 32}.{'0' * 32}", "%ff", "a/b")
        for body in (b"", b"{}", json.dumps(TASK).encode())
    ]
    assert {(a.status_code, a.content) for a in answers} == {(200, b"{}")}


async def test_other_methods_and_long_bodies_are_refused(service: TestService) -> None:
    assert (await service.http.get(f"{PREFIX}/x")).status_code == 404
    long = await service.http.post(f"{PREFIX}/x", content=b"x" * (BODY_BYTES_MAX + 1))
    assert long.status_code == 413


def test_addresses_that_agents_cannot_reach_are_not_given(service: TestService) -> None:
    known = service.app.settings.model_copy(
        update={"public_url": "https://assay.example", "canary_hosts": ("https://files.example",)}
    )
    assert callback_addresses(known, EgressPolicy()) == (
        ("https://assay.example",),
        ("https://files.example",),
    )
    inside = known.model_copy(update={"public_url": "https://10.0.0.1", "canary_hosts": ()})
    assert callback_addresses(inside, EgressPolicy()) == ((), ())
    unset = known.model_copy(update={"public_url": None, "canary_hosts": ()})
    assert callback_addresses(unset, EgressPolicy()) == ((), ())
