"""Inputs that owners publish in their proof file: values by argument name, messages by skill."""

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError
from assay.probing.consent import binding_request
from assay.probing.function.acts import names_act
from assay.probing.function.skills import EXAMPLES_MAX, does_act_in, skill_rows
from assay.probing.ports import ProbeSession
from assay.probing.probe_client import decode

MESSAGES = "messages"
"""Key of messages of no particular skill."""


async def published_inputs(visit: ProbeSession, url: str) -> JsonValue:
    """Return `testInputs` of the host's proof file, the owner's test inputs; None without any.

    Customers do not read the file, so unannounced visits do not either.
    """
    if not visit.announced:
        return None
    try:
        reply = await visit.http.send(binding_request(url))
    except EgressError:
        return None
    document = decode(reply.body)
    return document.get("testInputs") if is_object(document) else None


def with_published(card: JsonObject, published: JsonValue) -> JsonObject:
    """Return the card with published messages among its examples. Pure.

    Those of no particular skill become examples of the first skill that does not act.
    """
    by_skill: JsonObject = published if is_object(published) else {MESSAGES: published}
    skills = skill_rows(card) or [{"name": card.get("name"), "description": ""}]
    plain = next((n for n, skill in enumerate(skills) if not does_act_in(skill)), 0)
    rows: list[JsonValue] = []
    for number, skill in enumerate(skills):
        own = _messages(by_skill.get(str(skill.get("id"))))
        own += _messages(by_skill.get(MESSAGES)) if number == plain else []
        shown = skill.get("examples")
        listed = list(shown) if is_array(shown) else []
        rows.append({**skill, "examples": [*own, *listed]} if own else skill)
    return card if rows == skills else {**card, "skills": rows}


def is_offered(schema: JsonObject, published: JsonValue, name: str, about: str) -> bool:
    """Return whether an owner offers a tool's arguments for tests, and the tool does not act.

    All its required arguments have values in `testInputs`. That permits calling it, so its own
    words need not describe it.
    """
    required = schema.get("required")
    names = [str(one) for one in required] if is_array(required) else []
    offered: JsonObject = published if is_object(published) else {}
    is_whole = bool(names) and all(is_array(offered.get(one)) for one in names)
    return is_whole and not names_act(name) and not names_act(about)


def messages_in(published: JsonValue) -> frozenset[str]:
    """Return all messages that an owner publishes, of any skill."""
    by_skill: JsonObject = published if is_object(published) else {MESSAGES: published}
    return frozenset(str(text) for listed in by_skill.values() for text in _messages(listed))


def _messages(listed: JsonValue) -> list[JsonValue]:
    texts: list[JsonValue] = [t for t in listed if isinstance(t, str)] if is_array(listed) else []
    return texts[: EXAMPLES_MAX // 2]
