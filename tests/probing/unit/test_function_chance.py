"""How often numbers that are made up pass for work: a price or a clock moves a little, too."""

import json
from random import Random

import pytest

from assay.common.json import JsonObject
from assay.probing.function.verdicts import one_tool

VISITS = 2_000
INPUTS = {"a": 48, "b": 305, "c": 77}


def row(given: int, value: int) -> JsonObject:
    return {
        "tool": "t", "asked": f't {{"n": {given}}}', "input": True, "class": "ok", "valid": True,
        "role": "call", "answer": json.dumps({"value": value}),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "greatest", "one_in"),
    [("aba", 10**6, 15), ("abca", 10**6, 15), ("aba", 100, 8), ("abca", 100, 8)],
)
def test_numbers_that_are_made_up_seldom_come_near_themselves(
    asked: str, greatest: int, one_in: int
) -> None:
    proven = 0
    for seed in range(VISITS):
        random = Random(seed)
        rows = [row(INPUTS[name], random.randint(1, greatest)) for name in asked]
        proven += one_tool(rows, frozenset()) == "varies"
    assert 0 < proven <= VISITS / one_in
