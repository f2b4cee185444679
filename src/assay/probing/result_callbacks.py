"""Results of tasks that an agent delivers later: to a callback of ours, or when asked again.

Parses results that A2A agents deliver to a callback (push notifications), untrusted. Pure.

A delivery is a task of 0.3, or an event of 1.0 (`task`, `statusUpdate`, `artifactUpdate`,
`message`). Source: A2A 0.3, section 9.5; A2A 1.0, section 4.3.3.

Callbacks: addresses of ours where an agent delivers the result of one task.

An address is a signed random word. Only a call with an open word of ours is recorded, so that
nobody can fill the store; all others get the same response. The store is shared: a delivery may
arrive at another process than the one that waits for it.

Waits for the result of a task that an agent has accepted, by polling and by delivery.
"""

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import choice
from typing import Final

from assay.common.errors import Unavailable
from assay.common.json import JsonObject, is_object
from assay.common.keyring import MacKeys, SecretRing
from assay.common.shared_state import SharedState
from assay.probing.function.conversation import spoken
from assay.probing.ports import A2aConversation, AgentCallFailed, Callback, PendingResult
from assay.probing.probe_client import decode

BODY_BYTES_MAX: Final = 64 * 1024
"""A longer delivery is ignored."""

TEXT_CHARS_MAX: Final = 1_800
"""Characters kept of a delivery: about as much as a transcript keeps of an answer, and small enough
for a value of the shared state in any escaping."""

TASK_ID_CHARS_MAX: Final = 128

WORKING: Final = frozenset({"submitted", "working", "task_state_submitted", "task_state_working"})
"""States, in lower case, of an unfinished task. Source: A2A 1.0, section 4.1.3."""


@dataclass(frozen=True, slots=True)
class PushedResult:
    """The relevant content of one delivery."""

    task_id: str
    text: str
    is_end: bool
    """Whether the task is finished, as far as it says."""
    is_whole: bool
    """Whether it is the whole task, not a part of it."""


def read_delivery(body: bytes) -> PushedResult | None:
    """Return the task and content of a delivery; None if it is invalid."""
    document = decode(body) if len(body) <= BODY_BYTES_MAX else None
    if not is_object(document):
        return None
    result = document.get("result")
    event = result if is_object(result) else document
    for name in ("task", "statusUpdate", "artifactUpdate", "message"):
        inner = event.get(name)
        if is_object(inner) and "status" not in event:
            return _from_event(inner, is_message=name == "message")
    return _from_event(event, is_message=event.get("kind") == "message")


def _from_event(event: JsonObject, *, is_message: bool) -> PushedResult | None:
    is_whole = "status" in event and isinstance(event.get("id"), str)
    task_id = event.get("id") if is_whole else event.get("taskId")
    if not isinstance(task_id, str) or not 0 < len(task_id) <= TASK_ID_CHARS_MAX:
        return None
    state = _state_of(event)
    text = _plain(spoken(event))[:TEXT_CHARS_MAX]
    is_end = is_message or (state != "" and state not in WORKING)
    return PushedResult(_plain(task_id), text, is_end, is_whole)


def is_working(answer: JsonObject) -> bool:
    """Return whether an answer is an unfinished task."""
    task = answer.get("task")
    return is_object(task) and _state_of(task) in WORKING


def _state_of(task: JsonObject) -> str:
    """Return the state of a task or an event, in lower case; empty if it has none."""
    status = task.get("status")
    state = status.get("state") if is_object(status) else None
    return state.casefold() if isinstance(state, str) else ""


_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def _plain(text: str) -> str:
    """Drop control characters, and lone surrogates from JSON escapes."""
    return _CONTROLS.sub(" ", text).encode("utf-8", "replace").decode("utf-8")


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
                self._seen.append(_from_kept(found))
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
    """Creates addresses where an agent delivers the result of one message."""

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


def _from_kept(kept: str) -> PushedResult:
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


POLLS_MAX: Final = 12
POLL_FROM_S, POLL_TO_S, POLL_GROWTH = 0.4, 8.0, 1.4

DELIVERY_WAIT_S: Final = 0.2
"""Seconds between two checks for deliveries, which cost the agent nothing."""


async def task_result(
    agent: A2aConversation, answer: JsonObject, wait_s: float, pending: PendingResult | None
) -> JsonObject:
    """Return the answer, or its finished task; else the task as it is after `wait_s`.

    Raises `AgentCallFailed` if polling fails and nothing can be delivered, and if an expected
    delivery did not come.
    """
    task = answer.get("task")
    if not is_object(task) or not is_working(answer):
        return answer
    task_id = str(task.get("id"))
    ends_s = asyncio.get_running_loop().time() + wait_s
    pause_s, polls = POLL_FROM_S, 0
    while polls < POLLS_MAX and (left_s := ends_s - asyncio.get_running_loop().time()) > 0:
        delivered = await _delivered(pending, task_id, min(pause_s, left_s))
        if delivered is not None:
            return delivered
        pause_s = min(POLL_GROWTH * pause_s, POLL_TO_S)
        polls += 1
        try:
            answer = await agent.get_task(task_id)
        except AgentCallFailed:
            if pending is None:
                raise
            continue
        if not is_working(answer):
            return answer
    if pending is not None:
        raise AgentCallFailed("timeout", "no end was delivered")
    return answer


async def _delivered(
    pending: PendingResult | None, task_id: str, wait_s: float
) -> JsonObject | None:
    """Return what was delivered within that time."""
    if pending is None:
        await asyncio.sleep(wait_s)
        return None
    ends_s = asyncio.get_running_loop().time() + wait_s
    while True:
        found = await pending.delivered(task_id)
        left_s = ends_s - asyncio.get_running_loop().time()
        if found is not None or left_s <= 0:
            return found
        await asyncio.sleep(min(DELIVERY_WAIT_S, left_s))
