"""Ids of the Solana registry: public keys, and sequential numbers of its indexer."""

from dataclasses import replace
from decimal import Decimal

import pytest

from assay.common.errors import InvalidRequest
from assay.registries.model import Feedback, number_asked, sequential_id, summarise
from tests.support.fakes.chain import NETWORK

SOLANA = replace(NETWORK, family="solana")
KEY = "8oo4dC4JvBLwy5tGgiH3WwK4B9PWxL9Z4XjA2jzkQMbQ"


def test_a_number_is_read_with_and_without_its_prefix() -> None:
    assert [number_asked(SOLANA, text) for text in ("42", "sol:42")] == [42, 42]
    assert number_asked(SOLANA, KEY) is None


def test_ids_of_other_chains_are_no_sequential_numbers() -> None:
    assert number_asked(NETWORK, "42") is None
    assert sequential_id(NETWORK, "42") is None
    assert sequential_id(SOLANA, "42") == 42


@pytest.mark.parametrize("text", ["0", "sol:", "x", "1" * 19])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        number_asked(SOLANA, text)


def test_scores_of_the_solana_registry_count_as_they_are_and_missing_ones_do_not() -> None:
    found = summarise([scored(80), scored(90), scored(None)])
    assert (found.average_score, found.counted, found.discarded) == (85.0, 2, 1)


def scored(score: int | None) -> Feedback:
    return Feedback(str(score), 1, Decimal(7), 0, "any", "", score=score, is_scored=True)
