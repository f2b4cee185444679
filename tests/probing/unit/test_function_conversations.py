"""What agents can prove that do not read what they are asked, and what those can that do."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

import pytest

from assay.common.json import JsonObject
from assay.probing.function.conversation import Transcript, converse, script_of
from assay.probing.function.verdicts import judge
from assay.probing.ports import ProbeSession

CARD: JsonObject = {
    "name": "Harbour office",
    "description": "Tells when tides turn and which berth is free.",
    "skills": [
        {
            "name": "Tides",
            "description": "High water at a place on a date.",
            "examples": [
                "When is high water in Oslo on 2024-05-03?",
                "When is high water in Lima on 2024-06-14?",
            ],
        },
        {
            "name": "Berths",
            "description": "Whether a berth of a length is free.",
            "examples": ["Which berths are free for 24 metres?"],
        },
    ],
}
VISIT = ProbeSession(None, (), None, None, "s")  # type: ignore[arg-type]
Reply = Callable[[str], str]
TEMPLATES = (
    "A careful survey of the quay suggests patience and a second opinion.",
    "Demand has doubled since spring, and crews expect calmer weeks ahead.",
    "Records disagree, though the pilot's diary settles most of them quickly.",
    "Our register lists nothing unusual; ask again after the autumn storms.",
    "Fog, drizzle, traffic: everything argues for the eastern entrance tonight.",
    "Insurance covers scratches, never propellers, and seldom patience.",
)


@dataclass
class Line:
    """An agent at the other end, without a network."""

    reply: Reply
    card: JsonObject = field(default_factory=lambda: CARD)
    card_url: str = "https://agent.example/card"
    has_answered: bool = True
    heard: list[str] = field(default_factory=list[str])

    async def send_text(
        self, text: str, context_id: str = "", *, wait_s: float | None = None
    ) -> JsonObject:
        del context_id, wait_s
        self.heard.append(text)
        return {"message": {"parts": [{"text": self.reply(text)}]}}

    async def get_task(self, task_id: str) -> JsonObject:
        raise AssertionError(task_id)


def proven(reply: Reply, seed: int, card: JsonObject = CARD) -> bool:
    random, notes, line = (
        Random(seed),
        Transcript("https://agent.example/", "a2a"),
        Line(reply, card),
    )
    notes.know(card)
    asyncio.run(converse(line, script_of(card, VISIT, random), notes, random))
    assert len(line.heard) <= 5
    return judge(notes.as_json()).state == "functional"


def rotating(count: int) -> Reply:
    turns = iter(range(10**6))
    return lambda _: TEMPLATES[next(turns) % count]


def canned(text: str) -> str:
    """Prepared for the examples on its card, word for word."""
    prepared = {
        e: TEMPLATES[n]
        for n, e in enumerate(e for skill in CARD["skills"] for e in skill["examples"])  # type: ignore[index,union-attr]
    }
    return prepared.get(text, "Please ask about tides or berths.")


def of_skill(text: str) -> str:
    """Prepared for each skill, by its words."""
    return TEMPLATES["water" in text or "tide" in text.casefold()]


def counting(text: str) -> str:
    return f"Your message of {len(text)} characters and {len(text.split())} words was handled."


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda _: TEMPLATES[0],
        lambda: lambda text: f"You asked: {text} We will look into it.",
        lambda: lambda text: text.upper(),
        lambda: canned,
        lambda: of_skill,
        lambda: counting,
        *(lambda n=n: rotating(n) for n in range(2, 7)),
    ],
)
def test_answers_that_do_not_come_of_the_request_prove_nothing(make: Callable[[], Reply]) -> None:
    assert not any(proven(make(), seed) for seed in range(25))


def test_answers_drawn_by_lot_are_seldom_taken_for_work() -> None:
    lots = Random(7)
    times = sum(proven(lambda _: lots.choice(TEMPLATES), seed) for seed in range(200))
    assert times <= 200 // 20


def tides(text: str) -> str:
    """Works out an answer of the place and the date, or of the length; declines all else."""
    place, date = re.search(r"water in (.+?) on", text), re.search(r"\d{4}-\d\d-\d\d", text)
    length = re.search(r"(\d+) metres", text)
    if place and date:
        minutes = crc32((place[1] + date[0]).encode()) % 720
        return f"High water at {minutes // 60}:{minutes % 60:02}."
    if length:
        return f"Berths {int(length[1]) % 7 + 2} and {int(length[1]) % 5 + 11}."
    return "I only know tides and berths."


def test_an_agent_that_works_its_answers_out_is_proven() -> None:
    assert sum(proven(tides, seed) for seed in range(30)) >= 28


@pytest.mark.parametrize("opening", ["", "Let me see. ", "Gladly! ", "Well, as far as I know: "])
def test_talk_around_an_answer_does_not_hide_it(opening: str) -> None:
    turns = iter(range(10**6))
    times = sum(
        proven(lambda text: (opening if next(turns) % 2 else "") + tides(text), seed)
        for seed in range(30)
    )
    assert times >= 26


CLASSIFIER: JsonObject = {
    "name": "Mood of a sentence",
    "description": "Says in one word how a letter is meant.",
    "skills": [
        {
            "name": "Mood",
            "description": "One of two moods of a letter.",
            "examples": ["How is this meant: 'The soup was cold and nobody came to take it back.'"],
        }
    ],
}


def test_one_who_classifies_is_proven_by_both_of_its_answers() -> None:
    def mood(text: str) -> str:
        inside = text[text.find("'") : text.rfind("'")]
        return "Grateful." if len(inside) % 2 else "Disappointed."

    assert any(proven(mood, seed, CLASSIFIER) for seed in range(20))


def test_a_question_about_a_passage_is_checked_in_a_passage_of_ours() -> None:
    card: JsonObject = {
        "name": "Clippings",
        "description": "Finds the sentence on a subject.",
        "skills": [
            {
                "name": "Find",
                "description": "The sentence of a text on a subject.",
                "examples": ["What is said of the roof: 'The roof leaks. The cellar is dry.'"],
            }
        ],
    }

    def find(text: str) -> str:
        question, _, quoted = text.partition("'")
        subject = question.strip(" :").rpartition(" ")[2]
        said = [s for s in quoted.strip("'").split(". ") if subject in s]
        return said[0] if said else "Nothing."

    assert all(proven(find, seed, card) for seed in range(20))
    assert not any(proven(lambda text: text.partition("'")[2], seed, card) for seed in range(20))


def test_who_shows_no_example_is_proven_by_requests_with_one_right_answer() -> None:
    card: JsonObject = {"name": "Helper", "description": "Answers questions.", "skills": []}

    def model(text: str) -> str:
        if "alphabetical" in text:
            return ", ".join(sorted(text.partition(": ")[2].rstrip(".").split(", ")))
        thing = re.search(r"Who got the (\w+)", text)
        who = re.search(rf"(\w+) got the \w+ {thing[1]}\b", text) if thing else None
        return who[1] if who else "I cannot say."

    assert any(proven(model, seed, card) for seed in range(40))
    assert not any(proven(lambda text: text, seed, card) for seed in range(40))
