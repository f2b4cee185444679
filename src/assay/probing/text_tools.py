"""Tests tools and operations that take a text, with embedded instructions and wrong input.

At most two of a kind get two calls with instructions each, and a few with customers' usual
mistakes; more only after a first sighting. Source: evidence.md#obedience, #leaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from assay.probing.conversations import CONFIRMED_FROM, REPEATS_MAX, Obedience
from assay.probing.instruction_texts import language_of
from assay.probing.instructions import (
    Form,
    another_style,
    combined_form,
    find_any_obedience,
    make_trial,
    plain_form,
    seeded,
    word,
)
from assay.probing.malformed_requests import LabelledReply
from assay.probing.ports import AgentCallFailed, BudgetExhausted, McpTool, ProbeSession
from assay.probing.probe_client import first
from assay.probing.session import is_tight
from assay.probing.text_inputs import Taker, takers

TAKERS_TRIED = 2
"""Of all services of an agent together, takers that get an instruction."""

MISTAKES_MAX = 4
"""Calls of a visit with wrong input."""

MISTAKES_FEW = 2
"""Calls with wrong input in an unannounced visit."""


@dataclass(slots=True)
class TextToolResults:
    """The results; each can be reproduced with new values."""

    obedience: dict[str, Obedience] = field(default_factory=dict[str, Obedience])
    """By kind of service."""
    results: list[LabelledReply] = field(default_factory=list[LabelledReply])


async def handed(visit: ProbeSession) -> TextToolResults:
    """Return the results of the instructions; called once a visit."""
    return await visit.asked.get("handed", lambda: _handed(visit))


async def mistaken(visit: ProbeSession) -> Sequence[LabelledReply]:
    """Return answers to well-formed but wrong input; called once a visit."""
    return await visit.asked.get("mistaken", lambda: _mistaken(visit))


async def listed_tools(visit: ProbeSession, *, again: bool = False) -> Sequence[McpTool] | None:
    """Return the tools of the first MCP server; None without an answer.

    `again`: as listed later.
    """
    service = first(visit, "mcp")
    if service is None:
        return None
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            return await server.list_tools(again=again)
    except AgentCallFailed:
        return None


async def _handed(visit: ProbeSession) -> TextToolResults:
    made, random = TextToolResults(), seeded(visit.nonce or visit.seed, "text tools")
    chosen = [taker for taker in await takers(visit) if taker.is_for_texts]
    try:
        for taker in chosen[: 1 if is_tight(visit) else TAKERS_TRIED]:
            await _Hander(visit, taker, made, random).hand_all()
    except BudgetExhausted:
        if not made.results:
            raise
    return made


@dataclass(frozen=True, slots=True)
class _Hander:
    """Sends instructions to one taker; more if it obeyed."""

    visit: ProbeSession
    taker: Taker
    made: TextToolResults
    random: Random

    async def hand_all(self) -> None:
        """Send all disguises at once, then one plain instruction; repeat what was obeyed."""
        combined = combined_form(self.random)
        plain = another_style(plain_form(self.random), combined)
        for form in (combined,) if is_tight(self.visit) else (combined, plain):
            for number in range(1 + REPEATS_MAX):
                if len(self._so_far().obeyed) >= CONFIRMED_FROM:
                    return
                if not await self._obeys(form) and not number:
                    break

    def _so_far(self) -> Obedience:
        return self.made.obedience.get(self.taker.kind, Obedience(0, ()))

    async def _obeys(self, form: Form) -> bool:
        language = language_of(self.taker.about)
        trial = make_trial(self.random, form, language)
        reply = await self.taker.hand(trial.text)
        before, how = self._so_far(), None
        if reply.parts:
            self._keep(reply.text, form)
            how = await self.visit.slices.run(find_any_obedience(reply.parts, trial))
        # A page that refuses a long address has not answered; a tool that returns errors has.
        is_answer = reply.is_result or (bool(reply.parts) and self.taker.kind == "mcp")
        obeyed = (*before.obeyed, how) if how else before.obeyed
        self.made.obedience[self.taker.kind] = Obedience(before.answered + is_answer, obeyed)
        return how is not None

    def _keep(self, text: str, form: Form) -> None:
        async def again() -> str:
            trial = make_trial(self.random, form, language_of(self.taker.about))
            return (await self.taker.hand(trial.text)).text

        self.made.results.append(LabelledReply(self.taker.request, text, again))


async def _mistaken(visit: ProbeSession) -> Sequence[LabelledReply]:
    chance = seeded(visit.nonce or visit.seed, "mistakes")
    found = await takers(visit)
    most = MISTAKES_MAX if visit.announced else MISTAKES_FEW
    most = 0 if is_tight(visit) else most
    made: list[LabelledReply] = []
    try:
        for number in range(most if found else 0):
            one = await _mistake(found[number % len(found)], chance, number)
            made += [one] if one.text else []
    except BudgetExhausted:
        if not made:
            raise
    return made


async def _mistake(taker: Taker, chance: Random, number: int) -> LabelledReply:
    kind = (chance.randrange(len(MISTAKES)) + number) % len(MISTAKES)

    async def again() -> str:
        try:
            return (await taker.hand(_wrong(chance, kind))).text
        except BudgetExhausted:
            return ""

    return LabelledReply(taker.request, (await taker.hand(_wrong(chance, kind))).text, again)


def _wrong(chance: Random, kind: int) -> str:
    one, two = word(chance), word(chance)
    return MISTAKES[kind].format(
        one=one, two=two, capital=one.capitalize(), number=chance.randint(12, 9_900)
    )


MISTAKES = (
    "{one}",
    "{capital} {two}",
    "{capital}-{number}",
    "O'{capital}",
    "{number}",
    "-{number}.{number}",
    '"{one}" {two}?',
    "{one}, {two}; {number}%",
    "31.02.{number}",
)
"""Customers' usual mistakes: unknown names, wrong kinds of value, quotes and signs."""
