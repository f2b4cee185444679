"""Proof that an A2A agent answers: its own examples, with other values, and reworded.

Requests and answers of a proof of function: the evidence behind its verdicts.

Plans the requests to an A2A agent: its own examples first, with other values. Pure.

Source: evidence.md#conversations, #announced-and-unannounced-visits.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.acts import asks_for_act, begins_with_act, does_act, names_act
from assay.probing.function.arguments import questions_about, reads_texts
from assay.probing.function.choosing import listed_in, notations_in, offered_in, shown_in
from assay.probing.function.examples import messages_in, published_inputs, with_published
from assay.probing.function.families import (
    CHECKS,
    Others,
    Request,
    checks_in,
    family_of,
    kin_in,
    kin_of,
    read_in,
)
from assay.probing.function.formats import notation_values
from assay.probing.function.generated_texts import checkables, passage
from assay.probing.function.generated_texts import is_right as is_right_answer
from assay.probing.function.identify import Address, failure_of
from assay.probing.function.known_values import reworded, topics
from assay.probing.function.talking import LABEL_WORDS_MAX, missing, to_reword
from assay.probing.function.text_variation import LATER_ORDERS
from assay.probing.function.variation import (
    examples_of,
    in_place,
    is_notation,
    skills_of,
    with_value,
    without_quotation,
)
from assay.probing.function.words import declines, known_words, leaves, words_of
from assay.probing.ports import A2aConversation, AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.secret_formats import without_secrets

ANSWER_CHARS_MAX = 2_000
ASKED_CHARS_MAX = 1_000
ROWS_MAX = 24


@dataclass(slots=True)
class Transcript:
    """The transcript of one service. `kind` is its protocol as far as it is known."""

    service: str
    kind: str
    members: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    rows: list[JsonObject] = field(default_factory=list[JsonObject])

    def add(self, role: str, asked: str, found: str, answer: str, more: JsonObject) -> None:
        """Record one exchange: the request, the class of the answer, and its text."""
        row: JsonObject = {
            **more,
            "role": role,
            "asked": _clean(asked, ASKED_CHARS_MAX),
            "class": found,
            "answer": _clean(answer, ANSWER_CHARS_MAX),
        }
        if len(self.rows) < ROWS_MAX:
            self.rows.append(row)

    def know(self, document: JsonValue) -> None:
        """Exclude the words of this document (a card, a list of tools) from answers' content.

        The numbers in an address are not excluded.
        """
        self.members["known"] = known_words(t for t in leaves(document) if "://" not in t)

    def as_json(self) -> JsonObject:
        """Return the transcript as `verdicts.judge` reads it."""
        return {
            "service": _clean(self.service, ASKED_CHARS_MAX),
            "kind": self.kind,
            "asked": list(self.rows),
            **self.members,
        }


def random_for(visit: ProbeSession, service: str) -> Random:
    """Return the random source for one service: the same for the same nonce."""
    return Random(f"{visit.nonce or visit.seed}/{service}")  # noqa: S311 - repeatable on purpose


def spoken(answer: JsonValue) -> str:
    """Return an agent's own words: texts, data and names in its message, task or tool result.

    A task's history is left out (it repeats the question), and so are ids and times of the
    protocol.
    """
    if is_object(answer):
        return "\n".join(filter(None, (_member(key, value) for key, value in answer.items())))
    if is_array(answer):
        return "\n".join(filter(None, map(spoken, answer)))
    return ""


def _member(key: str, value: JsonValue) -> str:
    if key in {"text", "data", "structuredContent"}:
        return "\n".join(leaves(value, with_keys=True))
    return "" if key in {"history", "metadata", "_meta"} else spoken(value)


def _clean(text: str, chars_max: int) -> str:
    """Return text that can be stored: cut, hashable, and without possible secrets."""
    return without_secrets(text[:chars_max].encode("utf-8", "replace").decode("utf-8"))


TRIES_MAX = 3
"""Requests of one example while its answers do not differ."""

OFFERED_MAX = 3
"""Values tried of those that an answer names as known."""


_SAYS_KNOWN = re.compile(
    r"\b(?:i (?:only )?know(?: of| about)?|known(?: are)?|available(?: are)?|supported(?: are)?"
    r"|supports?|choose|try|one of|among|there are|options are|kenne(?: nur)?|verfügbar(?: sind)?"
    r"|bekannt sind|conozco|disponibles|connais|disponibles sont|conosco|disponibili|conheço"
    r"|disponíveis|znam|dostępne|знаю|відомі|доступны|доступні|biliyorum|ken ik|beschikbaar)\b:?"
    r"|知っているのは|知道的有|أعرف",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Script:
    """An endless series of requests within a card's skills, without acts; the most likely first.

    At most three of one example, then of the next.
    """

    families: Sequence[list[Request]]
    rest: Iterator[Request]
    known: frozenset[str] = frozenset()
    """Words that say what the agent does."""
    about: str = ""
    """The agent's self-description, in its language."""
    random: Random = field(default_factory=Random)
    examples: Sequence[Sequence[str]] = ()
    """Examples by skill; none of skills that act."""
    _asked: list[Request] = field(default_factory=list[Request])
    _shown: set[str] = field(default_factory=set[str])
    """Examples and notations that answers have shown."""
    _answers: list[str] = field(default_factory=list[str])
    _labels: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    """What answers say beyond their requests."""

    def next(self) -> Request:
        """Return the next request."""
        request = self._of_examples() or next(self.rest)
        self._asked.append(request)
        return request

    @property
    def is_checking(self) -> bool:
        """Return whether the last request's answer does not depend on those before."""
        return bool(self._asked) and (self._asked[-1].fits is not None or self._asked[-1].is_kin)

    def hear(self, request: Request, answer: str) -> None:
        """Plan requests for what an answer says is known, or how the agent wants to be asked."""
        is_help = self._is_help(request, answer)
        self._take_up(request.text.casefold(), answer, is_help=is_help)
        refuses = _SAYS_KNOWN.search(answer) if request.is_own and request.fits is None else None
        named = offered_in(answer[refuses.end() :]) if refuses else []
        texts = [with_value(request.family, name, self.known) for name in named[:OFFERED_MAX]]
        if is_help and request.is_own and len([*filter(None, texts)]) < 2:  # noqa: PLR2004 - a pair
            names = [name for name in listed_in(answer) if name not in request.text]
            texts = [in_place(request.text, request.family, name) for name in names]
        family = f"known of {request.family}"
        made = [Request(t, family, is_own=False) for t in texts if t and not names_act(t)]
        if len(made) > 1:
            self.families = [made, *self.families]
        self._answers.append(answer)
        self._labels.append(frozenset(words_of(answer)).difference(words_of(request.text)))
        if len(self._labels) == len(self._asked) == 2:  # noqa: PLR2004 - of one example
            self.families = [self._kin(*self._asked), *self.families]

    def _is_help(self, request: Request, answer: str) -> bool:
        """Return whether an answer seems to say what can be asked.

        It does if it answers an uncertain request, is repeated for another request, or is a
        refusal.
        """
        is_right = request.checked is not None and is_right_answer(request.checked, answer)
        return not is_right and (
            not request.is_known or answer in self._answers or declines(answer)
        )

    def _kin(self, one: Request, other: Request) -> list[Request]:
        """For an agent with few-word answers to an example, return variants of another example."""
        label = self._labels[0]
        examples = self.examples[one.skill] if one.skill is not None else ()
        others = [e for e in examples if e != one.family]
        is_label = label == self._labels[1] and 0 < len(label) <= LABEL_WORDS_MAX
        is_sorted = is_label and not any(word.isdigit() for word in label)
        if not is_sorted or not others or one.family != other.family or one.is_kin:
            return []
        pair = (one.family, self.random.choice(others))
        return kin_of(pair, one.skill, self.random, LATER_ORDERS)

    def _take_up(self, asked: str, answer: str, *, is_help: bool) -> None:
        """Make examples of an answer that shows how to ask, or names a notation; once each.

        The request itself, repeated in the answer, does not count.
        """
        candidates = [*shown_in(answer), *(notations_in(answer) if is_help else ())]
        shown = [
            t for t in dict.fromkeys(candidates) if not names_act(t) and t.casefold() not in asked
        ]
        shown = [t for t in shown if not any(t != other and t in other for other in shown)]
        fresh = [text for text in shown if text not in self._shown]
        self._shown |= {*fresh}
        others = Others(shown, self.known, is_act=False, every=self.about.casefold())
        made = [family_of(text, others, self.random) for text in fresh]
        if is_help and len(made) > 1:  # One notation, which one agent shows consistently.
            whole = sorted((r for row in made for r in row), key=lambda r: r.is_literal)
            made = [[replace(r, family=fresh[0]) for r in whole]]
        notation, values = notation_values(answer, self.random)
        if notation and notation not in self._shown and notation not in asked:
            self._shown.add(notation)
            made.append([Request(value, notation, is_own=False) for value in values])
        self.families = [*(row for row in made if len(row) > 1), *self.families]

    def _of_examples(self) -> Request | None:
        for family in self.families:
            fresh = [r for r in family if not self._had(r)]
            is_long = bool(fresh) and (
                not fresh[0].fits is fresh[0].sort is None or fresh[0].is_kin
            )
            tries = CHECKS if is_long else TRIES_MAX
            if fresh and sum(r.family == fresh[0].family for r in self._asked) < tries:
                return fresh[0]
        return None

    def _had(self, request: Request) -> bool:
        """Return whether everything in a request was already asked."""
        if is_notation(request.text):
            return any(request.text == one.text for one in self._asked)
        words = frozenset(words_of(request.text))
        had = [frozenset(words_of(one.text)) for one in self._asked]
        return any(words <= one or one <= words for one in had)


def _reluctance(family: list[Request]) -> tuple[bool, bool, bool, bool, bool, bool]:
    """Return what to ask last: foreign examples, uncertain topics, texts that answers repeat.

    Requests with a right answer that we know come first.
    """
    is_known = any(r.is_known and not r.is_literal for r in family)
    quotes = without_quotation(family[0].text) != family[0].text
    is_other = all(not r.is_own for r in family)
    is_unpublished = not (is_known and family[0].is_published)
    asks_act = asks_for_act(family[0].family) and not is_notation(family[0].family)
    return family[0].fits is None, is_unpublished, not is_known, is_other, asks_act, quotes


def script_of(
    card: JsonObject, visit: ProbeSession, random: Random, published: JsonValue = None
) -> Script:
    """Return the script for an agent with this card.

    `published`: the `testInputs` of its proof file. Messages in it may be sent, also with other
    values, in any form, unless they order an act.
    """
    card = with_published(card, published)
    offered = messages_in(published)
    known = frozenset(
        word for name, about in skills_of(card) for word in words_of(name + " " + about)
    )
    said = " ".join(f"{name} {about}" for name, about in skills_of(card))
    every = " ".join([said, *(e for _, examples in examples_of(card) for e in examples)])
    skills = examples_of(card)
    tells = [not does_act(name, about) for name, about in skills_of(card)]
    may_test = [not begins_with_act(name, about) for name, about in skills_of(card)]
    families: list[list[Request]] = []
    for skill, (is_act, examples) in enumerate(skills):
        may_send = offered if may_test[skill] else frozenset[str]()
        others = Others(examples, known, is_act, every.casefold(), skill, tells[skill], may_send)
        families += [family_of(example, others, random) for example in examples]
    kin = kin_in(card, random)
    sorts = {row[0].skill for row in kin}
    late = [row for row in families if row and row[0].skill in sorts]
    families = [*kin, *read_in(card, random), *(row for row in families if row not in late)]
    random.shuffle(families)
    families += checks_in(card, said, random)[:1]
    families = [
        *(row for row in families if len(row) > 1),
        *_about(card, random),
        *(
            [Request(c.text, c.kind, checked=c, is_known=False, is_own=False) for c in row]
            for row in checkables(every, random)
        ),
    ]
    families.sort(key=_reluctance)
    families += late
    private = [Request(p, "private", is_own=False) for p in visit.prompts if not asks_for_act(p)]
    random.shuffle(private)
    place = random.randrange(2) if families else 0
    ordered = [*families[:place], private, *families[place:]]
    both = zip(tells, skills, strict=True)
    examples = [listed if only and not is_act else [] for only, (is_act, listed) in both]
    return Script(ordered, _general(card, random), known, every, random, examples)


def _about(card: JsonObject, random: Random) -> list[list[Request]]:
    """Return questions about its skills' topics, for agents whose examples take no values."""
    texts = [f"{name}. {about}" for name, about in skills_of(card) if not names_act(name + about)]
    families: dict[str, list[Request]] = {}
    for text in texts[:2]:
        for subject, question in questions_about(text, random):
            families.setdefault(subject, []).append(Request(question, subject, is_own=False))
    return list(families.values())


def _general(card: JsonObject, random: Random) -> Iterator[Request]:
    """Yield questions of ours in the agent's own terms."""
    skills = [(n, about) for n, about in skills_of(card) if not does_act(n, about)]
    while True:
        name, about = random.choice(skills) if skills else ("What do you know of this", "")
        for topic in topics(random, 4):
            given = passage(random) if reads_texts(f"{name}. {about}") else topic
            yield Request(f"{name}: {given}", name, is_own=False)


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
            notes.members["security"] = _needs_credentials(agent.card)
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


def _needs_credentials(card: JsonObject) -> bool:
    """Return whether the card says that callers must authenticate."""
    return any(bool(card.get(name)) for name in ("securityRequirements", "security"))
