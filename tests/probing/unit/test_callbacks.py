"""A result counts only for the task and the callback that it was issued for."""

import json

import pytest

from assay.common.errors import Unavailable
from assay.common.shared_state import MemorySharedState
from assay.probing.result_callbacks import (
    BODY_BYTES_MAX,
    DELIVERIES_MAX,
    OPEN_S,
    PREFIX,
    CallbackDelivery,
    Callbacks,
)
from tests.support.fakes.clock import FrozenClock

OURS, CANARY = "https://assay.example", "https://files.example"


def made(state: MemorySharedState | None = None) -> tuple[FrozenClock, Callbacks]:
    clock = FrozenClock()
    state = state or MemorySharedState(clock)  # type: ignore[arg-type]
    return clock, Callbacks(state, ("s" * 32,), [OURS], [CANARY])


async def issued(callbacks: Callbacks) -> CallbackDelivery:
    found = await callbacks.issue(announced=True)
    assert found is not None
    return found


def word_of(pending: CallbackDelivery) -> str:
    return pending.callback.url.rpartition("/")[2]


def task(task_id: str = "t1", text: str = "row 3", state: str = "completed") -> bytes:
    """A task as 0.3 delivers it."""
    parts = [{"kind": "text", "text": text}]
    document = {"id": task_id, "kind": "task", "status": {"state": state}}
    return json.dumps({**document, "artifacts": [{"parts": parts}]}).encode()


def told(answer: object) -> str:
    return json.dumps(answer)


EVENTS = {
    "a task of 0.3": [task()],
    "a task of 1.0": [
        json.dumps({"task": json.loads(task(state="TASK_STATE_COMPLETED"))}).encode()
    ],
    "events of 1.0": [
        b'{"artifactUpdate": {"taskId": "t1", "artifact": {"parts": [{"text": "row 3"}]}}}',
        b'{"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_COMPLETED"}}}',
    ],
    "a message": [b'{"message": {"taskId": "t1", "parts": [{"text": "row 3"}]}}'],
    "an answer of JSON-RPC": [
        json.dumps({"jsonrpc": "2.0", "result": json.loads(task())}).encode()
    ],
}


@pytest.mark.parametrize("bodies", EVENTS.values(), ids=EVENTS.keys())
async def test_every_form_of_a_delivery_is_read(bodies: list[bytes]) -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    for body in bodies:
        await callbacks.note(word_of(pending), pending.callback.token, body)
    assert "row 3" in told(await pending.delivered("t1"))


async def test_a_task_that_goes_on_is_no_result_yet() -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    await callbacks.note(word_of(pending), None, task(state="working", text="thinking"))
    assert await pending.delivered("t1") is None
    await callbacks.note(word_of(pending), None, task())
    answer = told(await pending.delivered("t1"))
    assert "row 3" in answer
    assert "thinking" not in answer


async def test_a_delivery_arrives_at_another_process() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock)  # type: ignore[arg-type]
    (_, one), (_, other) = made(state), made(state)
    pending = await issued(one)
    await other.note(word_of(pending), pending.callback.token, task())
    assert "row 3" in told(await pending.delivered("t1"))


async def test_a_result_of_another_task_counts_for_nothing() -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    await callbacks.note(word_of(pending), pending.callback.token, task("t2"))
    assert await pending.delivered("t1") is None


async def test_a_wrong_token_is_refused() -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    for token in ("", "0" * 32, pending.callback.token.upper() + "x", "ä\ud800"):
        await callbacks.note(word_of(pending), token, task())
    assert await pending.delivered("t1") is None


async def test_a_guessed_address_is_not_noted() -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    name, _, mac = word_of(pending).partition(".")
    other = word_of(await issued(callbacks)).partition(".")[0]
    for word in (f"{other}.{mac}", f"{name}.{'0' * 32}", name, f"{name}.{mac}/", "", "x" * 5000):
        await callbacks.note(word, None, task())
    assert await pending.delivered("t1") is None


async def test_a_callback_is_closed_once_the_result_is_there() -> None:
    """A replay, or a second result, changes nothing."""
    _, callbacks = made()
    pending = await issued(callbacks)
    await callbacks.note(word_of(pending), None, task())
    first = await pending.delivered("t1")
    await callbacks.note(word_of(pending), pending.callback.token, task(text="something else"))
    assert await pending.delivered("t1") == first


async def test_what_comes_late_is_dropped() -> None:
    clock, callbacks = made()
    pending = await issued(callbacks)
    clock.move(OPEN_S + 1)
    await callbacks.note(word_of(pending), pending.callback.token, task())
    assert await pending.delivered("t1") is None


async def test_a_flood_of_deliveries_fills_no_store() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock)  # type: ignore[arg-type]
    _, callbacks = made(state)
    pending = await issued(callbacks)
    for number in range(100):
        await callbacks.note(word_of(pending), None, task(text=str(number), state="working"))
    assert len(state._entries) == DELIVERIES_MAX + 1


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"\xff", b"{" * 10_000, task(text="x" * BODY_BYTES_MAX)]
)
async def test_what_is_no_delivery_is_dropped(body: bytes) -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    await callbacks.note(word_of(pending), None, body)
    assert await pending.delivered("t1") is None


async def test_a_long_result_of_odd_characters_is_cut_and_kept() -> None:
    _, callbacks = made()
    pending = await issued(callbacks)
    await callbacks.note(word_of(pending), None, task(text='"\\\0\ud800' * 3000))
    assert await pending.delivered("t1") is not None


async def test_unannounced_visits_never_name_this_service() -> None:
    _, callbacks = made()
    for _ in range(20):
        found = await callbacks.issue(announced=False)
        assert found is not None
        assert found.callback.url.startswith(f"{CANARY}{PREFIX}/")
        assert "assay" not in found.callback.url


async def test_without_an_address_no_callback_is_issued() -> None:
    state = MemorySharedState(FrozenClock())  # type: ignore[arg-type]
    callbacks = Callbacks(state, ("s" * 32,), [OURS], [])
    assert await callbacks.issue(announced=False) is None


async def test_a_store_that_cannot_be_reached_issues_none() -> None:
    class Full(MemorySharedState):
        async def put(self, key: str, value: str, ttl_s: float) -> None:
            del key, value, ttl_s
            raise Unavailable("full")

    _, callbacks = made(Full(FrozenClock()))  # type: ignore[arg-type]
    assert await callbacks.issue(announced=True) is None
