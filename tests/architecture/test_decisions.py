"""Every page of `docs/decisions` says what else was possible, and when to decide again."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs/decisions").glob("*.md"))


def missing_in(text: str) -> list[str]:
    """The parts that a decision lacks."""
    parts = {
        "Alternatives": r"(?m)^\*\*Alternatives\.\*\*(?: \S|\n\n- \S)",
        "Revisit": r"(?m)^\*\*Revisit(?: when)?\*\* \S",
    }
    return [name for name, pattern in parts.items() if not re.search(pattern, text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:4])
def test_a_decision_has_alternatives_and_says_when_to_revisit_it(page: Path) -> None:
    assert missing_in(page.read_text("utf-8")) == []


def test_a_decision_without_a_part_is_noticed() -> None:
    assert missing_in("**Decision.** This.\n\n**Revisit when** it rains.") == ["Alternatives"]
    assert missing_in("**Alternatives.** *That*: worse.\n") == ["Revisit"]


def test_each_number_is_of_one_decision() -> None:
    numbers = [page.stem[:4] for page in PAGES]
    assert len(numbers) == len(set(numbers))
