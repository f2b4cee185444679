"""Callbacks: addresses of ours where an agent delivers the result of one task.

An address is a signed random word. Only a call with an open word of ours is recorded, so that
nobody can fill the store; all others get the same response. The store is shared: a delivery may
arrive at another process than the one that waits for it.
"""

import hmac
import json
import re
import secrets
from collections.abc import Sequence
from secrets import choice
from typing import Final

from assay.common.errors import Unavailable
from assay.common.json import JsonObject
from assay.common.keyring import MacKeys, SecretRing
from assay.common.shared_state import SharedState
from assay.probing.ports import Callback
from assay.probing.push_results import PushedResult, read_delivery

PREFIX: Final = "/notifications"
"""Neutral, because unannounced visits have callbacks too."""

TOKEN_HEADER: Final = "x-a2a-notification-token"  # noqa: S105 - its name
"""Source: A2A 0.3, section 9.5, and the official library in both versions."""

OPEN_S: Final = 120.0
"""How long a callback is open: the longest wait for an answer, twice."""

DELIVERIES_MAX: Final = 12
"""Deliveries of one task: each change of its state is one. More are not recorded."""

MAC_BYTES = 16
_WORD = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")


class CallbackDelivery:
    """The deliveries to one callback so far; implements `probing.ports.PendingResult`."""

    def __init__(self, callback: Callback, name: str, state: SharedState) -> None:
        self.callback = callback
        self._name = name
        self._state = state
        self._seen: list[PushedResult] = []
        self._is_closed = False

    async def delivered(self, task_id: str) -> JsonObject | None:
        """Implement `PendingResult.delivered`; deliveries for another task are ignored."""
        try:
            while len(self._seen) < DELIVERIES_MAX:
                found = await self._state.get(_slot(self._name, len(self._seen)))
                if found is None:
                    break
                self._seen.append(_read(found))
            own = [one for one in self._seen if one.task_id == task_id]
            if not any(one.is_end for one in own):
                return None
            if not self._is_closed:
                self._is_closed = True
                await self._state.take(_key(self._name))
        except Unavailable:
            return None
        return _as_task(task_id, own)


class Callbacks:
    """Issues callbacks, and records what is delivered to them."""

    def __init__(
        self,
        state: SharedState,
        keys: SecretRing,
        announced: Sequence[str],
        unannounced: Sequence[str],
    ) -> None:
        """Create it with addresses that lead to this service and that agents can reach.

        Those of `unannounced` visits do not contain our name. Without addresses, none is issued.
        """
        self._state = state
        self._keys = MacKeys(b"callback/", keys)
        self._announced, self._unannounced = tuple(announced), tuple(unannounced)

    async def issue(self, *, announced: bool) -> CallbackDelivery | None:
        """Return a callback for one message; None if agents cannot reach this service."""
        addresses = self._announced if announced else self._unannounced
        if not addresses:
            return None
        name, token = secrets.token_hex(16), secrets.token_hex(16)
        try:
            await self._state.put(_key(name), token, OPEN_S)
        except Unavailable:
            return None
        word = f"{name}.{self._keys.mac(name.encode())[:MAC_BYTES].hex()}"
        url = f"{choice(addresses).rstrip('/')}{PREFIX}/{word}"
        return CallbackDelivery(Callback(url, token), name, self._state)

    async def note(self, word: str, token: str | None, body: bytes) -> None:
        """Record a delivery. It is dropped unless it is for an open callback of ours.

        A token that is sent must be the one that was issued; for agents that send none, the address
        itself, which nobody can guess, suffices. Raises `Unavailable`.
        """
        found = _WORD.fullmatch(word)
        if found is None or not self._keys.is_mac(found[1].encode(), bytes.fromhex(found[2])):
            return
        issued = await self._state.get(_key(found[1]))
        if issued is None or (token is not None and not _equal(token, issued)):
            return
        delivery = read_delivery(body)
        if delivery is None:
            return
        kept = json.dumps(
            [delivery.task_id, delivery.text, delivery.is_end, delivery.is_whole],
            ensure_ascii=False,
        )
        for number in range(DELIVERIES_MAX):
            if await self._state.put_if_absent(_slot(found[1], number), kept, OPEN_S):
                return


def _equal(token: str, issued: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "replace"), issued.encode())


def _read(kept: str) -> PushedResult:
    task_id, text, is_end, is_whole = json.loads(kept)
    return PushedResult(str(task_id), str(text), bool(is_end), bool(is_whole))


def _as_task(task_id: str, deliveries: Sequence[PushedResult]) -> JsonObject:
    """Return the task as tasks/get does: the last whole one, and what came after it."""
    wholes = [place for place, one in enumerate(deliveries) if one.is_whole and one.text]
    texts = [one.text for one in deliveries[wholes[-1] if wholes else 0 :] if one.text]
    parts: list[JsonObject] = [{"text": text} for text in dict.fromkeys(texts)]
    return {
        "task": {
            "id": task_id,
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"parts": [*parts]}],
        }
    }


def _key(name: str) -> str:
    return f"callback:{name}"


def _slot(name: str, number: int) -> str:
    return f"callback:{name}:{number}"
