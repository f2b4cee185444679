"""Does the A2A agent answer a message? Source: facts, "A2A"; A2A 1.0, 3.1.1 (Send Message)."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import canary, failure_class, first, speaks

GREETING = "Hello, my reference is {word}. What can you do for me? Please use one sentence."


class A2aAnswers:
    """A greeting through the official client gets a message or a task.

    What it says is not judged, a message answered before in this visit will do, and a refusal by a
    protocol error of A2A's own (such as "content type not supported") is an answer.
    """

    name: ClassVar[str] = "a2a_answers"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "a2a")
        if service is None:
            return None
        try:
            async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
                if not speaks(agent):
                    return None
                if not agent.has_answered:
                    await agent.send_text(GREETING.format(word=canary(visit, "greeting")))
        except AgentCallFailed as error:
            return {"answer": _refined(error)}
        return {"answer": "ok"}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer in {"no_grpc", "no_callback"}:
            return Finding("not_tested", "This service has no means to talk to the agent.")
        if answer in {"ok", "own_error"}:
            return Finding("pass", "A message to the agent is answered.")
        if answer in {"closed", "busy"}:
            return Finding("not_tested", "The agent wants credentials, payment or time first.")
        return Finding("fail", "A message to the agent gets no valid A2A answer.")


def _refined(error: AgentCallFailed) -> str:
    """As `failure_class`, A2A's own errors (-32001 to -32099) told from general ones."""
    if error.code is not None and -32099 <= error.code <= -32001:  # noqa: PLR2004 - A2A 1.0, 5.4
        return "own_error"
    return failure_class(error)


PROBE: Final[Probe] = A2aAnswers()
