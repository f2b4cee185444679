"""Detects whether a tool or operation that takes questions reveals confidential instructions.

It is asked like an agent's conversations are, and counts as messages: it may cost a call of a
model.
"""

from assay.probing.briefings import find_briefing, invents
from assay.probing.conversations import CONFIRMED_FROM, RULES_AGAIN
from assay.probing.instruction_texts import language_of
from assay.probing.instructions import seeded, word
from assay.probing.malformed_requests import public_pages
from assay.probing.ports import BudgetExhausted, CountsMessages, ProbeSession
from assay.probing.probe_client import first
from assay.probing.rule_questions import draw_way, question
from assay.probing.session import require_room
from assay.probing.text_inputs import Taker, takers

QUESTIONS = 2
"""Phrasings used in a visit."""


async def secrets_disclosed(visit: ProbeSession) -> list[str]:
    """Return the revealed parts of a briefing, one for each such answer. Called once a visit."""
    return await visit.asked.get("told by takers", lambda: _disclosed(visit))


async def _disclosed(visit: ProbeSession) -> list[str]:
    meant = [t for t in await takers(visit) if t.is_for_questions and not invents(t.about)]
    disclosed: list[str] = []
    for taker in meant[:1]:
        try:
            await _ask(visit, taker, disclosed)
        except BudgetExhausted:
            break  # What was said before is known.
    return disclosed


async def _ask(visit: ProbeSession, taker: Taker, disclosed: list[str]) -> None:
    chance = seeded(visit.nonce or visit.seed, "questioning")
    way, left = draw_way(chance), QUESTIONS + RULES_AGAIN
    for number in range(left):
        if len(disclosed) >= CONFIRMED_FROM or (number >= QUESTIONS and not disclosed):
            return
        if not disclosed:
            require_room(visit)
        asked = question(way, language_of(taker.about), word(chance, 6))
        await _count(visit, taker)
        reply = await taker.hand(asked)
        known = [taker.about, asked]
        given = await visit.slices.run(find_briefing(reply.text, known))
        if given is not None:  # The public pages are fetched only if there is something to compare.
            known += await public_pages(visit)
            given = await visit.slices.run(find_briefing(reply.text, known))
        if given is not None:
            disclosed.append(given)
        else:
            way = draw_way(chance, way)


async def _count(visit: ProbeSession, taker: Taker) -> None:
    service = first(visit, taker.kind)
    if service is not None and isinstance(visit.dialers, CountsMessages):
        await visit.dialers.count_message(service.service.endpoint)
