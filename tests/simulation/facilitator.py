"""Somebody's x402 facilitator with a key of its own, honest or not, behind a client's transport."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from assay.common.json import JsonObject
from assay.payments.ports import Authorization
from assay.payments.x402.codec import authorization_of
from tests.simulation.chain import Chain
from tests.simulation.wire import Killable, Wire

ADDRESS = "0x" + "fa" * 20
WAIT_S = 8.0

STRANGER = "0x" + "5b" * 20
"""Sends for whoever submits what nobody has asked to be settled."""

LIES = (
    *("breaks_after_settling", "breaks", "other_payer", "settled_without_settling"),
    "submits_when_asked",
)
"""What it may do instead of its work, and costs nobody anything."""


@dataclass(slots=True)
class FacilitatorService:
    """The service itself: it outlives our processes."""

    chain: Chain
    wire: Wire
    asked: Callable[[Authorization], None] = lambda _signed: None
    submitted: Callable[[Authorization], None] = lambda _signed: None
    """Told of what it has submitted when it was only to verify it."""
    lies: tuple[str, ...] = LIES
    """What it may do."""
    settled: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def client(self, process: Killable) -> Any:
        """What stands for the HTTP client of one process."""
        return _Client(self, process)

    def answer(self, path: str, body: JsonObject) -> tuple[float, Callable[[], JsonObject | None]]:
        """When it answers, and what; None for a 500. What it does on the chain is done now."""
        payload: Any = body["paymentPayload"]
        signed = authorization_of(payload["payload"])
        random, trouble = self.wire.random, self.wire.trouble
        lie = random.choice(self.lies) if random.random() < trouble.facilitator else ""
        if path.endswith("/verify"):
            if lie == "submits_when_asked":
                self.submitted(signed)
                self._submit(signed, STRANGER)
            return 0.0, lambda: self._verified(signed, lie)
        self.asked(signed)
        if lie == "breaks":
            return 0.0, lambda: None
        if lie == "settled_without_settling":
            made_up = {"success": True, "transaction": "0x" + "77" * 32, "payer": signed.payer}
            return 0.0, lambda: made_up
        self._submit(signed)
        return WAIT_S, lambda: self._settled(signed, lie)

    def is_known(self, signed: Authorization) -> bool:
        return (signed.payer, signed.nonce) in self.chain.state.used

    def _submit(self, signed: Authorization, sender: str = ADDRESS) -> None:
        if not any(sent.action == signed for sent in self.chain.pool.values()):
            at_s = self.chain.head.time_s
            if self.chain.would_move(signed, self.chain.state, at_s):
                self.chain.submit_plain(sender, signed)

    def _verified(self, signed: Authorization, lie: str) -> JsonObject | None:
        if lie == "breaks":
            return None
        payer = "0x" + "ee" * 20 if lie == "other_payer" else signed.payer
        moves = self.chain.would_move(signed, self.chain.state, self.chain.head.time_s)
        if not moves:
            return {"isValid": False, "invalidReason": "insufficient_funds", "payer": payer}
        return {"isValid": True, "payer": payer}

    def _settled(self, signed: Authorization, lie: str) -> JsonObject | None:
        use = self.chain.state.used.get((signed.payer, signed.nonce))
        if lie == "breaks_after_settling":
            return None
        if use is not None and use.to == signed.to and use.sender == ADDRESS:
            return {"success": True, "transaction": use.transaction, "payer": signed.payer}
        if use is None and any(sent.action == signed for sent in self.chain.pool.values()):
            return {"success": False, "errorReason": "settlement_pending", "transaction": ""}
        return {"success": False, "errorReason": "invalid_transaction_state", "transaction": ""}


@dataclass(slots=True)
class _Client:
    """As much of `httpx2.AsyncClient` as one POST takes."""

    service: FacilitatorService
    process: Killable

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *, json: JsonObject, headers: Mapping[str, str]
    ) -> AsyncIterator["_Answer"]:
        del method, headers
        service, wire = self.service, self.service.wire
        lost = wire.trouble.rpc_lost
        later_s, answer = await wire.exchange(
            self.process, lambda: service.answer(url, json), lost, _lost
        )
        payload: Any = json["paymentPayload"]
        signed = authorization_of(payload["payload"])
        waited_s = 0.0
        while waited_s < later_s and not service.is_known(signed):
            await asyncio.sleep(1.0)
            waited_s += 1.0
        yield _Answer(await wire.exchange(self.process, answer, lost, _lost))

    async def aclose(self) -> None:
        """Nothing is open."""


def _lost() -> Exception:
    return httpx2.ReadTimeout("timeout")


class _Answer:
    """One answer, read in one piece."""

    def __init__(self, said: JsonObject | None) -> None:
        self.status_code = 500 if said is None else 200
        self.headers: dict[str, str] = {}
        self._body = b"" if said is None else json.dumps(said).encode()

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        yield self._body
