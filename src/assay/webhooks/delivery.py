"""Delivers pending events: at most one attempt each, whatever happens.

Source: conventions.md#webhook-delivery.

If an account's receivers are slow, few of its deliveries run at once. An unknown account has two at
a time, and one more for each that ended quickly, up to eight. A slow one halves them. Accounts that
have one left hold at most half of all slots together, however many they are: the other half is for
everybody else.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.egress_budget import UseClass, egress_use
from assay.common.keyring import SecretBox
from assay.common.tasks import finish
from assay.evaluation.model import EvaluationCompleted
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.webhooks.model import (
    DELIVERY_S,
    OVER_BUDGET,
    WAIT_S,
    Delivery,
    DeliveryState,
    WebhookRegistration,
)
from assay.webhooks.payload import signature
from assay.webhooks.ports import WebhookStore
from assay.webhooks.receiver_proof import ReceiverProofs
from assay.webhooks.service import place

AT_ONCE: Final = 64
"""Attempts that run in one process at once."""

AT_ONCE_OPERATOR: Final = 8
AT_ONCE_UNKNOWN: Final = 2
"""Attempts at once of an unknown account."""

AT_ONCE_SLOW: Final = AT_ONCE // 2
"""Attempts at once of all accounts with slow receivers together."""

SLOW_S: Final = 2.0
"""Seconds from which an attempt counts as slow."""

REMEMBERED_MAX: Final = 2_000
"""Accounts with an unusual share; the one that changed least recently is forgotten."""


class DeliverySlots:
    """Counts running attempts, and decides whose may begin."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()
        self._shares: BoundedMap[str, int] = BoundedMap(REMEMBERED_MAX)

    def batch(self) -> int:
        """Return how many attempts may begin next, of accounts that are not `full`; 0: none."""
        slow_left = AT_ONCE_SLOW - self._slow_busy()
        free = min(AT_ONCE_OPERATOR, AT_ONCE - self._busy.total())
        return min(free, slow_left) if slow_left > 0 else free

    def left(self, operator_id: str) -> int:
        """Return how many more attempts an account's share leaves."""
        return max(0, self._share(operator_id) - self._busy[operator_id])

    def full(self) -> list[str]:
        """Return accounts of which no attempt may begin now."""
        full = {who for who, busy in self._busy.items() if busy >= self._share(who)}
        if self._slow_busy() >= AT_ONCE_SLOW:
            full |= {who for who, share in self._shares.items() if share == 1}
        return sorted(full)

    def begin(self, operator_id: str) -> None:
        """Count an attempt."""
        self._busy[operator_id] += 1

    def end(self, operator_id: str, *, is_slow: bool | None) -> None:
        """Record the end of an attempt; `is_slow` is None if nothing was sent."""
        self._busy[operator_id] -= 1
        if not self._busy[operator_id]:
            del self._busy[operator_id]
        if is_slow is None:
            return
        share = self._share(operator_id)
        changed = max(1, share // 2) if is_slow else min(AT_ONCE_OPERATOR, share + 1)
        self._shares.put(operator_id, changed)

    def _share(self, operator_id: str) -> int:
        return self._shares.get(operator_id) or AT_ONCE_UNKNOWN

    def _slow_busy(self) -> int:
        return sum(busy for who, busy in self._busy.items() if self._share(who) == 1)


ABANDONED_AFTER: Final = timedelta(seconds=60)
"""An attempt takes ten seconds; one that has not ended by then never will."""

KEPT: Final = timedelta(days=30)
"""How long the delivery log goes back."""

IDLE_S: Final = 1.0
"""Seconds between two looks for other processes' evaluations."""

WAIT_MIN_S: Final = 1.0
WAIT_MAX_S: Final = 20.0
"""Seconds until a delivery that waits for its receiver's budget is tried again."""

CARE_S: Final = 30.0
"""Seconds between two looks for abandoned and old deliveries."""

LIMITS: Final = Limits(
    connect_s=5.0, total_s=DELIVERY_S, body_bytes_max=64 * 1024, header_bytes_max=32 * 1024
)

_SUCCESS, _REDIRECT = range(200, 300), range(300, 400)

Spawn = Callable[[str, Coroutine[Any, Any, object]], object]


@dataclass(frozen=True, slots=True)
class _Ended:
    state: DeliveryState
    status: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Waits:
    until: datetime


class Deliverer:
    """Listens for evaluations and delivers what is pending. As a listener it never waits."""

    def __init__(
        self,
        store: WebhookStore,
        secrets: SecretBox,
        http: EgressClient,
        clock: Clock,
        spawn: Spawn,
        proofs: ReceiverProofs,
    ) -> None:
        self._proofs = proofs
        self._store = store
        self._secrets = secrets
        self._http = http
        self._clock = clock
        self._spawn = spawn
        self._wake = asyncio.Event()
        self._slots = DeliverySlots()
        self._care_at_s = 0.0

    def evaluated(self, completed: EvaluationCompleted) -> None:
        """Look for deliveries: their rows exist already."""
        del completed
        self._wake.set()

    async def run(self) -> None:
        """Do one round: begin what can begin now, then wait for an evaluation or a moment."""
        self._wake.clear()
        await self._care()
        while (limit := self._slots.batch()) > 0:
            full, left = self._slots.full(), self._slots.left
            # A write that is cut off keeps its lock on the database, so it is finished.
            begun = await finish(self._store.claim_due(self._clock.now(), limit, full, left))
            for delivery in begun:
                self._slots.begin(delivery.operator_id)
                self._spawn("webhook delivery", self._deliver(delivery))
            if not begun:
                break
        try:
            async with asyncio.timeout(IDLE_S):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _care(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s < self._care_at_s:
            return
        self._care_at_s = now_s + CARE_S
        now = self._clock.now()
        await self._store.give_up(now - timedelta(seconds=WAIT_S), now)
        await self._store.fail_abandoned(now - ABANDONED_AFTER, now)
        await self._store.purge(now - KEPT)

    async def _deliver(self, delivery: Delivery) -> None:
        begun_s, is_slow = self._clock.monotonic_s(), None
        try:
            ended = await self._attempt(delivery)
            if isinstance(ended, _Waits):
                await finish(self._store.put_back(delivery, ended.until))
                return
            is_slow = self._clock.monotonic_s() - begun_s >= SLOW_S
            now = self._clock.now()
            await finish(
                self._store.complete(delivery.id, ended.state, ended.status, ended.reason, now)
            )
            is_slow = is_slow and not await self._is_proven(delivery)
        finally:
            self._slots.end(delivery.operator_id, is_slow=is_slow)
            self._wake.set()  # there is room again

    async def _is_proven(self, delivery: Delivery) -> bool:
        use = await self._proofs.use_of(delivery.operator_id, delivery.url)
        return use.use_class is UseClass.OWN

    async def _attempt(self, delivery: Delivery) -> "_Ended | _Waits":
        found = await self._store.find(delivery.operator_id, delivery.webhook_id)
        if found is None:
            return _failed("the registration is gone")
        try:
            headers = self._headers(delivery, found)
        except ValueError:
            return _failed("the secret cannot be opened any more")
        outgoing = OutboundRequest("POST", delivery.url, headers, delivery.payload.encode())
        try:
            reply = await self._send(delivery, outgoing)
        except EgressError as error:
            if error.failure is not Failure.BUDGET:
                return _failed(error.failure.value)
            return _failed(OVER_BUDGET) if error.is_sent else self._wait(delivery, error.retry_s)
        if reply.status in _SUCCESS:
            return _Ended(DeliveryState.SENT, reply.status, None)
        what = "redirects are not followed" if reply.status in _REDIRECT else "the receiver refused"
        return _Ended(DeliveryState.FAILED, reply.status, what)

    async def _send(self, delivery: Delivery, outgoing: OutboundRequest) -> EgressResponse:
        """Send within the budget of the receiver's domain, or its own if it proved itself.

        The proof is asked for if it is needed: if the budget was used up before.
        """
        use = await self._proofs.use_of(delivery.operator_id, delivery.url)
        if use.use_class is not UseClass.OWN and delivery.has_waited:
            await self._proofs.ask(delivery.operator_id, delivery.url)
            use = await self._proofs.use_of(delivery.operator_id, delivery.url)
        with egress_use(use):
            return await self._http.send(outgoing, LIMITS)

    def _wait(self, delivery: Delivery, retry_s: float) -> "_Ended | _Waits":
        """Keep it pending, because nothing was sent, unless it has waited too long."""
        now = self._clock.now()
        if (now - delivery.created_at).total_seconds() >= WAIT_S:
            return _failed(OVER_BUDGET)
        return _Waits(now + timedelta(seconds=min(max(retry_s, WAIT_MIN_S), WAIT_MAX_S)))

    def _headers(self, delivery: Delivery, to: WebhookRegistration) -> dict[str, str]:
        """Return the headers, signed if the registration has a secret.

        Raises `ValueError` if the secret is lost.
        """
        headers = {"content-type": "application/json"}
        if to.sealed_secret is None:
            return headers
        key = self._secrets.open(to.sealed_secret, place(to.id))
        now_s = int(self._clock.now().timestamp())
        signed = signature(key, delivery.id, now_s, delivery.payload.encode())
        return headers | {
            "webhook-id": delivery.id,
            "webhook-timestamp": str(now_s),
            "webhook-signature": signed,
        }


def _failed(reason: str) -> _Ended:
    return _Ended(DeliveryState.FAILED, None, reason)
