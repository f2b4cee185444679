"""Proof that an A2A agent answers: its own examples, with other values, and reworded.

Source: evidence.md#conversations, #announced-and-unannounced-visits.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue
from assay.probing.function.acts import asks_for_act
from assay.probing.function.identify import Address, failure_of
from assay.probing.function.languages import reworded
from assay.probing.function.published import published_inputs
from assay.probing.function.script import Request, Script, script_of
from assay.probing.function.talking import missing, to_reword
from assay.probing.function.transcript import Transcript, random_for, spoken
from assay.probing.ports import A2aConversation, AgentCallFailed, BudgetExhausted, ProbeSession

ANSWER_WAIT_S = 60.0
"""Longest wait for one answer. Source: evidence.md#conversations."""

RETRY_WAIT_S = 30.0
"""Longest `Retry-After` that we wait for."""

FUNCTION_MESSAGES: Final = 5
"""Messages of a visit for this proof, out of eight."""

RETRIES_MAX = 3
WORDINGS = 8
"""Alternative wordings from which an unused one is taken."""


async def prove_conversation(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Ask until function is proven or the visit's time, requests or messages end."""
    random = random_for(visit, address.service.endpoint)
    try:
        async with visit.dialers.a2a(address.service.endpoint, visit.http) as agent:
            notes.know(agent.card)
            notes.members["security"] = needs_credentials(agent.card)
            published = await published_inputs(visit, address.url)
            script = script_of(agent.card, visit, random, published)
            await converse(agent, script, notes, random, at_once=visit.announced)
    except BudgetExhausted:
        notes.members["cut"] = True
    except AgentCallFailed as error:
        notes.add("first", "", failure_of(error), "", {})


async def converse(
    agent: A2aConversation,
    script: Script,
    notes: Transcript,
    random: Random,
    *,
    at_once: bool = False,
) -> None:
    """Send at most `FUNCTION_MESSAGES`; the visit's other messages are for critical checks.

    `at_once`: two messages at a time, so that an agent that needs seconds can be proven within a
    gate's deadline.
    """
    while (sent := len(notes.rows)) < FUNCTION_MESSAGES:
        wanted = missing(notes.as_json())
        if wanted is None:
            return
        most = min(2 if at_once else 1, FUNCTION_MESSAGES - sent)
        texts = to_reword(notes.as_json())[:most] if wanted == "reworded" else []
        if texts:
            again = [Request(_in_other_words(text, notes, random, script), "") for text in texts]
            await _say_all(agent, notes, [("reworded", request) for request in again])
        elif not await _ask_new(agent, script, notes, at_once=at_once) and not sent:
            return


def _in_other_words(text: str, notes: Transcript, random: Random, script: Script) -> str:
    """Return the text in a wording not used for it yet, if there is one."""
    had = {str(row["asked"]) for row in notes.rows}
    is_data = "\n" in text or (
        asks_for_act(text) and not text.rstrip().endswith(("?", "\uff1f", "\u061f"))
    )
    made = [reworded(text, random, script.about, is_data=is_data) for _ in range(WORDINGS)]
    return next((asked for asked in made if asked not in had), made[0])


async def _ask_new(
    agent: A2aConversation, script: Script, notes: Transcript, *, at_once: bool
) -> bool:
    """Send new requests, and give the answers to the script; return whether any came."""
    sent = len(notes.rows)
    said = [script.next()]
    most = 1
    if at_once and script.is_checking:
        most = FUNCTION_MESSAGES - sent
    elif at_once and not sent and said[0].is_promising:
        most = 2  # Otherwise its answer decides the next request.
    said += [script.next() for _ in range(most - 1)]
    roles = ["other" if sent or place else "first" for place in range(len(said))]
    answers = await _say_all(agent, notes, list(zip(roles, said, strict=True)))
    for request, answer in zip(said, answers, strict=True):
        script.hear(request, answer or "")
    return any(answer is not None for answer in answers)


async def _say_all(
    agent: A2aConversation, notes: Transcript, said: Sequence[tuple[str, Request]]
) -> list[str | None]:
    """Send concurrently, record in order; return each answer, or None without one."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_say(agent, request)) for _, request in said]
    results = [task.result() for task in tasks]
    for (role, request), (found, answer) in zip(said, results, strict=True):
        notes.add(role, request.text, found, answer, _facts(request))
    if any(found == "cut" for found, _ in results):
        raise BudgetExhausted
    return [answer if found == "ok" else None for found, answer in results]


def _facts(said: Request) -> dict[str, JsonValue]:
    """Return what the judge of an answer must know of a request."""
    more: dict[str, JsonValue] = {"family": said.family[:80], "literal": said.is_literal}
    if said.checked is not None:
        more["sort"] = said.checked.kind
        more["expected"] = [*said.checked.expected]
        more["excluded"] = [*said.checked.excluded]
    if said.fits is not None:
        more["fits"] = said.fits
    if said.is_published:
        more["published"] = "fresh" if said.is_fresh else "theirs"
    if said.skill is not None and said.sort is said.fits is None:
        more["skill"] = said.skill
        more["kin"] = said.is_kin
    if said.sort is not None:
        more["of"] = said.sort.sort
        more["own"], more["ours"] = said.sort.own, said.sort.ours
    return more


async def _say(agent: A2aConversation, said: Request) -> tuple[str, str]:
    """Send a request; return the answer's class and text. Waits as requested, within reason."""
    for attempt in range(RETRIES_MAX):
        try:
            answer = await agent.send_text(said.text, wait_s=ANSWER_WAIT_S)
        except BudgetExhausted:
            return "cut", ""
        except AgentCallFailed as error:
            is_last = attempt + 1 == RETRIES_MAX
            if error.retry_s is None or error.retry_s > RETRY_WAIT_S or is_last:
                return failure_of(error), ""
            await asyncio.sleep(error.retry_s)
        else:
            return "ok", spoken(answer)
    return "busy", ""


def needs_credentials(card: JsonObject) -> bool:
    """Return whether the card says that callers must authenticate."""
    return any(bool(card.get(name)) for name in ("securityRequirements", "security"))
