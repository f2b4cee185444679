"""Routes that start a scenario run, and the handler of its steps.

Source: conventions.md#behavioural-evidence.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Path, Request

from assay.accounts.auth import public
from assay.caller_behaviour import schemas as wire
from assay.caller_behaviour.scenario import ScenarioRequest
from assay.caller_behaviour.scenario_run import PREFIX, ScenarioRuns, Step
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.clock import Clock
from assay.common.errors import NotFound
from assay.common.json import JsonObject, is_object
from assay.common.quota_lease import QuotaLease
from assay.identity.auth import agent
from assay.identity.model import AgentPrincipal, IdentityMismatch
from assay.probing.out_of_band_url import PREFIX as BAIT
from assay.probing.out_of_band_url import OutOfBandCalls
from assay.server.rate_limits import RateLimit, rate_limit
from assay.server.request_context import JSON, AsgiScope, Receive, Send, exchange_of, read_body
from assay.server.route import route, service

CUT = "assay.cut"
"""The server's extension that closes a connection abruptly."""

BODY_BYTES_MAX = 64 * 1024
RECORDED_BYTES = 8 * 1024
RUNS_PER_MINUTE = 6
_TRAIL_CHARS_MAX = 200


router = APIRouter(tags=["Conduct"])


@dataclass(frozen=True, slots=True)
class CourseEntrance:
    """Starts runs, and limits how many one address may start."""

    address: str
    """The service's base address, without a slash at the end."""
    limit: RateLimit

    @classmethod
    def at(cls, address: str, clock: Clock, quota_lease: QuotaLease | None) -> "CourseEntrance":
        """Return the entrance of the service at an address."""
        return cls(address, rate_limit("course", RUNS_PER_MINUTE, clock, quota_lease))


@route(
    router,
    "GET",
    PREFIX,
    operation="course_instructions",
    auth=public,
    answers=wire.InstructionsResponse,
)
async def course_instructions(request: Request) -> wire.InstructionsResponse:
    """Return the instructions for the obstacle course. Beyond the specification."""
    return wire.InstructionsResponse(
        name="Assay obstacle course",
        instructions=list(wire.INSTRUCTIONS),
        start=service(request, CourseEntrance).address + PREFIX,
        steps=len(SCENARIOS),
    )


@route(
    router,
    "POST",
    PREFIX,
    operation="enter_course",
    auth=agent,
    answers=wire.EnteredResponse,
)
async def enter_course(request: Request) -> wire.EnteredResponse:
    """Begin a run as the address that proved itself. Beyond the specification."""
    principal: AgentPrincipal = request.state.principal
    if not principal.is_key_agent:  # What it does would count for the address on all chains.
        raise IdentityMismatch("The contract accepts on another chain than key agents' own.")
    await service(request, CourseEntrance).limit.require(principal.address)
    course = service(request, ScenarioRuns)
    begun = await course.enter(principal.address)
    return wire.entered(begun, *course.task(begun.run, 0))


@route(
    router,
    "GET",
    BAIT + "/{word}",
    operation="bait",
    auth=public,
    answers=wire.BaitResponse,
)
async def bait(
    request: Request,
    word: Annotated[str, Path(max_length=100, description="Which of the addresses.")],
) -> wire.BaitResponse:
    """Record a call to an address that no task requires. Beyond the specification."""
    await service(request, OutOfBandCalls).taken(word)
    return wire.BaitResponse(ok=True)


class ScenarioHandler:
    """Answers every step: any method, any body, as its scenario decides."""

    prefix = PREFIX + "/"
    route = PREFIX + "/{step}"

    def __init__(self, course: ScenarioRuns, elsewhere: str | None) -> None:
        """Create it; `elsewhere` is the second address of the service, if it has one."""
        self._course = course
        self._elsewhere = urlsplit(elsewhere).netloc.lower() if elsewhere else None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one call of a step; raises refusals."""
        token, _, trail = scope["path"][len(self.prefix) :].partition("/")
        if not token:
            raise NotFound("There is nothing at this path.")
        exchange = exchange_of(scope)
        body = await read_body(scope, receive, BODY_BYTES_MAX)
        course = self._course
        trail = trail[:_TRAIL_CHARS_MAX]
        request = ScenarioRequest(
            method=scope["method"],
            headers=exchange.headers,
            body=body[:RECORDED_BYTES],
            trail=trail,
            carries_session=course.is_session_of(
                token, exchange.headers.get("x-course-session", "")
            ),
            is_elsewhere=exchange.headers.get("host", "").lower() == self._elsewhere,
        )
        step = await course.call(token, trail, request)
        if step.reply.delay_s and await _left(receive, step.reply.delay_s):
            return
        await _answer(scope, send, step)
        if step.call_id is not None:
            await course.ended(token, step.call_id)


async def _left(receive: Receive, delay_s: float) -> bool:
    """Wait; return whether the caller disconnected meanwhile."""
    try:
        async with asyncio.timeout(delay_s):
            while (await receive())["type"] != "http.disconnect":
                continue
    except TimeoutError:
        return False
    return True


async def _answer(scope: AsgiScope, send: Send, step: Step) -> None:
    reply = step.reply
    body = _body(step)
    headers = [(name.lower().encode(), value.encode()) for name, value in reply.headers]
    if not any(name == b"content-type" for name, _ in headers):
        headers.append(JSON)
    if step.next:
        headers += [
            (b"course-next", step.next.encode()),
            (b"course-next-method", step.next_method.encode()),
            (b"course-next-task", step.next_task.encode("ascii", "replace")),
        ]
    cut = scope.get("extensions", {}).get(CUT, {}).get("cut") if reply.is_cut else None
    headers.append((b"content-length", b"%d" % (len(body) + (1000 if cut else 0))))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if cut is None:
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    await asyncio.sleep(0.05)  # Written data is sent before the connection closes.
    cut()
    await asyncio.sleep(0.05)  # And the server is notified before this ends.


def _body(step: Step) -> bytes:
    if isinstance(step.reply.body, bytes):
        return step.reply.body
    document: JsonObject = step.reply.body
    if step.next and is_object(document) and document.get("next") == step.next:
        document = {**document, "nextMethod": step.next_method, "nextTask": step.next_task}
    return json.dumps(document).encode()
