"""Is the agent card what the A2A specification requires? Source: A2A 1.0, 4.4.1 (AgentCard)."""

from collections.abc import Iterable
from typing import ClassVar, Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import failure_class, first, host_of, interfaces

_TEXTS = ("name", "description", "version")
_LISTS = ("defaultInputModes", "defaultOutputModes", "skills")
_SKILL_TEXTS = ("id", "name", "description")
_PASSING = frozenset({"busy", "closed", "timeout", "unreachable"})


class A2aCardValid:
    """The official client reads the card, and every required field is there and of its type.

    Both forms in use are accepted: 1.0 (`supportedInterfaces`) and 0.3 (`url`).
    """

    name: ClassVar[str] = "a2a_card_valid"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "a2a")
        if service is None:
            return None
        try:
            async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
                return {"card": "read", "wrong": sorted(set(_wrong(agent.card)))}
        except AgentCallFailed as error:
            return {"card": failure_class(error), "wrong": []}

    def weigh(self, seen: JsonObject) -> Finding:
        card, wrong = seen["card"], seen["wrong"]
        if card in _PASSING:
            return Finding("not_tested", "The agent card could not be had.")
        if card != "read":
            return Finding("fail", "There is no agent card that the official client can read.")
        if is_array(wrong) and wrong:
            listed = ", ".join(str(field) for field in wrong)
            return Finding("fail", f"The agent card lacks or misstates: {listed}.")
        return Finding("pass", "The agent card follows the specification.")


def _wrong(card: JsonObject) -> Iterable[str]:
    yield from (key for key in _TEXTS if not _is_text(card.get(key)))
    yield from (key for key in _LISTS if not is_array(card.get(key)))
    if not is_object(card.get("capabilities")):
        yield "capabilities"
    declared = interfaces(card)
    if not declared or not all(host_of(url) for binding, url in declared if binding != "GRPC"):
        yield "supportedInterfaces"
    skills = card.get("skills")
    if is_array(skills) and not all(_is_skill(skill) for skill in skills):
        yield "skills"


def _is_skill(skill: JsonValue) -> bool:
    return (
        is_object(skill)
        and all(_is_text(skill.get(key)) for key in _SKILL_TEXTS)
        and is_array(skill.get("tags"))
    )


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value.strip())


PROBE: Final[Probe] = A2aCardValid()
