"""Agents that say how they want to be asked are asked so; who only says so proves nothing."""

import re
from collections import Counter
from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.arguments import arguments_for
from assay.probing.function.choosing import Takes, other_arguments, shown_in
from assay.probing.function.formats import in_order, notation_values
from assay.probing.function.variation import is_notation, respelled
from tests.probing.unit.test_function_conversations import Reply, proven

SEEDS = range(12)


def card(about: str) -> JsonObject:
    """Of an agent that shows no example."""
    return {"name": "Bench", "skills": [{"name": "Bench", "description": about}]}


def counts_bases(text: str) -> str:
    strand = re.search(r"\b[ACGT]{4,}\b", text)
    if strand is None:
        return "I need a strand of DNA, in capital letters."
    return ", ".join(f"{base} {n}" for base, n in sorted(Counter(strand[0]).items()))


def mates(text: str) -> str:
    """How many of the young can be pale, by what both parents carry."""
    pair = re.search(r"\b([A-Za-z])([a-z]) \+ ([A-Za-z])([a-z])\b", text)
    if pair is None:
        return "Pairs are written like Kk + kk or Mm + Mm."
    carriers = sum(pair[n].isupper() for n in (1, 3))
    return {0: "Every kitten is pale.", 1: "Half of them, on average.", 2: "One in four."}[carriers]


@pytest.mark.parametrize("reply", [counts_bases, mates])
def test_who_says_how_to_be_asked_is_asked_so(reply: Reply) -> None:
    found = sum(proven(reply, seed, card("Works things out")) for seed in SEEDS)
    assert found >= len(SEEDS) - 2


@pytest.mark.parametrize(
    "refusal",
    ["I need a strand of DNA, in capital letters.", "Pairs are written like Kk + kk or Mm + Mm."],
)
def test_who_only_says_how_to_be_asked_is_not_proven(refusal: str) -> None:
    assert not any(proven(lambda _: refusal, seed, card("Works things out")) for seed in SEEDS)


def test_requests_that_an_answer_shows_are_found() -> None:
    assert shown_in("Ask me for a pair, e.g. Kv + Mb or Mb - Kv.") == ["Kv + Mb", "Mb - Kv"]
    assert shown_in("Nothing of that here.") == []


def test_what_is_no_sentence_is_respelled_and_a_sentence_is_not() -> None:
    assert {"bb y Bb", "B+"} <= {*respelled("Bb y bb", Random(1)), *respelled("B-", Random(1))}
    assert is_notation("Bb y bb")
    assert respelled("Where is the ferry now", Random(1)) == []


def test_a_refusal_that_quotes_a_value_says_what_its_argument_takes() -> None:
    schema: JsonObject = {
        "properties": {"one": {"type": "string"}, "two": {"type": "string"}},
        "required": ["one", "two"],
    }
    row: JsonObject = {
        "tool": "compare",
        "class": "not_found",
        "asked": 'compare {"one": "violin", "two": "harvest"}',
        "answer": "'violin' is no semantic version",
    }
    _, versions = notation_values("semantic version", Random(1))
    made = other_arguments(Takes("compare", schema, ""), [row], {}, Random(3))
    assert made is not None
    assert made["one"] in versions
    assert made["two"] not in versions


def test_a_span_ends_after_it_begins() -> None:
    assert in_order({"start": "18:00", "end": "09:00", "name": "x"}) == {
        "start": "09:00", "end": "18:00", "name": "x",
    }  # fmt: skip
    assert in_order({"low": 9, "high": 2}) == {"low": 2, "high": 9}
    assert in_order({"start": 9, "end": "2"}) == {"start": 9, "end": "2"}


def test_values_beside_a_pattern_are_as_long_as_its_example() -> None:
    word: JsonObject = {"type": "string", "pattern": "^[a-z]{4}$", "examples": ["cold"]}
    schema: JsonObject = {"properties": {"word": word}, "required": ["word"]}
    made = [arguments_for(schema, {}, Random(seed)) for seed in range(40)]
    assert {len(str(one["word"])) for one in made if one is not None} == {4}
