"""Receivers of every kind: each hears of an event once at most, and none holds up the others."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assay.common.egress_budget import EgressUse
from assay.common.ids import new_id
from assay.common.keyring import SecretBox
from assay.common.tasks import Tasks
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.webhooks import delivery as deliver
from assay.webhooks.delivery import Deliverer
from assay.webhooks.model import Delivery, DeliveryState, WebhookRegistration
from assay.webhooks.service import place
from tests.support.certificates import TestAuthority
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import Respond, keeps_open, plain, sends, serving

pytestmark = pytest.mark.slow

NAME = "hooks.example"
CLOCK = FrozenClock()
BOX = SecretBox.from_secrets("s" * 32)
KEY = b"k" * 32


@dataclass
class MemoryWebhooks:
    """Deliveries in memory, by the port's rules."""

    registrations: dict[str, WebhookRegistration] = field(default_factory=dict)
    pending: list[Delivery] = field(default_factory=list)
    ended: dict[str, tuple[DeliveryState, int | None, str | None]] = field(default_factory=dict)

    def want(self, url: str, operator_id: str = "o", secret: bytes | None = None) -> str:
        webhook_id, now = new_id(), CLOCK.now()
        sealed = None if secret is None else BOX.seal(secret, place(webhook_id))
        self.registrations[webhook_id] = WebhookRegistration(
            webhook_id, operator_id, "evaluation_complete", url, None, sealed, now
        )
        delivery_id = new_id()
        state = DeliveryState.PENDING
        self.pending.append(
            Delivery(
                *(delivery_id, webhook_id, operator_id, url, "7", '{"event":"x"}'),
                *(state, None, None, now, None),
            )
        )
        return delivery_id

    async def find(self, operator_id: str, webhook_id: str) -> WebhookRegistration | None:
        found = self.registrations.get(webhook_id)
        return found if found and found.operator_id == operator_id else None

    async def claim_due(
        self, now: Any, limit: int, exclude: Any, left: Callable[[str], int]
    ) -> list[Delivery]:
        del now
        begun: list[Delivery] = []
        for one in self.pending:
            same = sum(other.operator_id == one.operator_id for other in begun)
            if one.operator_id not in exclude and same < left(one.operator_id):
                begun.append(one)
        begun = begun[:limit]
        self.pending = [d for d in self.pending if d not in begun]
        return begun

    async def complete(
        self, delivery_id: str, state: Any, status: Any, reason: Any, now: Any
    ) -> None:
        del now
        assert delivery_id not in self.ended
        self.ended[delivery_id] = (state, status, reason)

    async def fail_abandoned(self, *_: Any) -> int:
        return 0

    async def give_up(self, *_: Any) -> int:
        return 0

    async def purge(self, *_: Any) -> int:
        return 0


class Unproven:
    async def use_of(self, operator_id: str, url: str) -> EgressUse:
        del url
        return EgressUse(account=operator_id)


@dataclass
class Office:
    store: MemoryWebhooks
    server_tls: ssl.SSLContext
    resolver: ScriptedResolver

    async def ended(self, *ids: str) -> list[tuple[DeliveryState, int | None, str | None]]:
        async with asyncio.timeout(8):
            while not set(ids) <= self.store.ended.keys():  # noqa: ASYNC110 - a plain store
                await asyncio.sleep(0.01)
        return [self.store.ended[one] for one in ids]


@asynccontextmanager
async def opened(folder: Path, *, private: bool = True) -> AsyncIterator[Office]:
    authority = TestAuthority(folder)
    resolver = ScriptedResolver(
        hooks_example=[["127.0.0.1"]],
        inside_example=[["10.0.0.8"]],
        rebinding_example=[["93.184.216.34", "127.0.0.1"]],
        metadata_example=[["169.254.169.254"]],
    )
    policy = EgressPolicy(allow_private=private, require_https=True)
    tls = authority.client_context()
    http = GuardedHttp(policy, resolver, tls=tls, keep_alive_s=0)
    failures: list[BaseException] = []
    tasks = Tasks(lambda _, error: failures.append(error))
    store = MemoryWebhooks()
    deliverer = Deliverer(store, BOX, http, CLOCK, tasks.spawn, Unproven())  # type: ignore[arg-type]

    async def run() -> None:
        while True:
            await deliverer.run()

    tasks.spawn("deliver", run())
    yield Office(store, authority.server_context(NAME), resolver)
    await tasks.drain(0)
    await http.aclose()
    assert failures == []


def _office(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    limits = deliver.LIMITS
    quick = type(limits)(connect_s=0.5, total_s=1.0, body_bytes_max=1024)
    monkeypatch.setattr(deliver, "LIMITS", quick)
    return opened(folder)


WELL = keeps_open(plain(b"ok"))

RECEIVERS: dict[str, tuple[Respond, DeliveryState, int | None, str | None]] = {
    "well": (WELL, DeliveryState.SENT, 200, None),
    "no content": (keeps_open(plain(b"", "204 No Content")), DeliveryState.SENT, 204, None),
    "slow but in time": (sends(0.3, plain(b"ok")), DeliveryState.SENT, 200, None),
    "too slow": (sends(1.5, plain(b"ok")), DeliveryState.FAILED, None, "timeout"),
    "hanging": (sends(b"HTTP/1.1 200 OK\r\n", 60.0), DeliveryState.FAILED, None, "timeout"),
    "dripping": (sends(*[b"H", 0.4] * 9), DeliveryState.FAILED, None, "timeout"),
    "answers 500": (
        keeps_open(plain(b"no", "500 Oh No")), DeliveryState.FAILED, 500, "the receiver refused",
    ),
    "answers 410": (
        keeps_open(plain(b"", "410 Gone")), DeliveryState.FAILED, 410, "the receiver refused",
    ),
    "redirecting": (
        keeps_open(plain(b"", "302 Found", "Location: https://hooks.example/other")),
        DeliveryState.FAILED, 302, "redirects are not followed",
    ),
    "dying at once": (sends(), DeliveryState.FAILED, None, "protocol_error"),
    "dying half-way": (
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"),
        DeliveryState.FAILED, None, "protocol_error",
    ),
    "no HTTP": (sends(b"SSH-2.0-x\r\n"), DeliveryState.FAILED, None, "protocol_error"),
}  # fmt: skip


@pytest.mark.parametrize("kind", RECEIVERS)
async def test_each_kind_of_receiver_is_asked_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond, *expected = RECEIVERS[kind]
    async with (
        _office(tmp_path, monkeypatch) as office,
        serving(respond, office.server_tls) as receiver,
    ):
        delivery = office.store.want(receiver.url("/hook", NAME))
        assert await office.ended(delivery) == [tuple(expected)]
        await asyncio.sleep(0.1)
        assert len(receiver.requests) == 1
        [request] = receiver.requests
        assert (request.method, request.target, request.body) == (
            "POST",
            "/hook",
            b'{"event":"x"}',
        )
        assert request.headers["content-type"] == "application/json"
        assert not any(name.startswith("webhook-") for name in request.headers)


@pytest.mark.parametrize("name", ["inside.example", "metadata.example", "rebinding.example"])
async def test_a_name_that_leads_inside_is_never_dialled(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path, private=False) as office:
        delivery = office.store.want(f"https://{name}/hook")
        [(state, status, reason)] = await office.ended(delivery)
        assert (state, status, reason) == (DeliveryState.FAILED, None, "refused_address")


async def test_a_name_nobody_knows_and_a_door_nobody_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _office(tmp_path, monkeypatch) as office:
        unknown = office.store.want("https://unknown.example/hook")
        shut = office.store.want(f"https://{NAME}:8999/hook")
        found = await office.ended(unknown, shut)
        assert [reason for _, _, reason in found] == ["name_not_resolved", "connect_failed"]


async def test_a_certificate_of_another_name_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _office(tmp_path, monkeypatch) as office:
        other = TestAuthority(tmp_path).server_context(NAME)
        async with serving(WELL, other) as receiver:
            delivery = office.store.want(receiver.url("/hook", NAME))
            [(_, _, reason)] = await office.ended(delivery)
            assert reason == "tls_failed"
            assert receiver.requests == []


async def test_a_secret_signs_by_the_letter_of_standard_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        _office(tmp_path, monkeypatch) as office,
        serving(WELL, office.server_tls) as receiver,
    ):
        delivery = office.store.want(receiver.url("/hook", NAME), secret=KEY)
        await office.ended(delivery)
        [request] = receiver.requests
        assert request.headers["webhook-id"] == delivery
        stamp = request.headers["webhook-timestamp"]
        assert int(stamp) == int(CLOCK.now().timestamp())
        signed = f"{delivery}.{stamp}.".encode() + request.body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        assert request.headers["webhook-signature"] == f"v1,{expected}"
        assert json.loads(request.body)


async def test_a_secret_that_is_lost_never_becomes_an_unsigned_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        _office(tmp_path, monkeypatch) as office,
        serving(WELL, office.server_tls) as receiver,
    ):
        delivery = office.store.want(receiver.url("/hook", NAME), secret=KEY)
        [only] = office.store.registrations.values()
        broken = WebhookRegistration(
            *(only.id, only.operator_id, only.event, only.url, None, b"broken", CLOCK.now())
        )
        office.store.registrations[only.id] = broken
        [(state, _, reason)] = await office.ended(delivery)
        assert (state, reason) == (
            DeliveryState.FAILED,
            "the secret cannot be opened any more",
        )
        assert receiver.requests == []


async def test_what_was_registered_no_more_is_not_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        _office(tmp_path, monkeypatch) as office,
        serving(WELL, office.server_tls) as receiver,
    ):
        delivery = office.store.want(receiver.url("/hook", NAME))
        office.store.registrations.clear()
        assert (await office.ended(delivery))[0][2] == "the registration is gone"
        assert receiver.requests == []


async def test_slow_receivers_of_one_operator_hold_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        _office(tmp_path, monkeypatch) as office,
        serving(sends(60.0), office.server_tls) as slow,
        serving(WELL, office.server_tls) as quick,
    ):
        for _ in range(40):
            office.store.want(slow.url("/hook", NAME), "slow")
        begun = asyncio.get_running_loop().time()
        delivery = office.store.want(quick.url("/hook", NAME), "quick")
        assert (await office.ended(delivery))[0][0] is DeliveryState.SENT
        assert asyncio.get_running_loop().time() - begun < 2.5
