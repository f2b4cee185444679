"""`docs/glossary.md` stays short: few words, in order, each in one sentence."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS_MAX = 60
ROW = re.compile(r"(?m)^\| (.+?) \| (.+?) \|$")


def words() -> list[tuple[str, str]]:
    page = (ROOT / "docs/glossary.md").read_text("utf-8")
    return list(ROW.findall(page.partition("|---|---|\n")[2]))


def test_there_are_few_words_each_once_and_in_order() -> None:
    names = [word.lower() for word, _ in words()]
    assert 40 <= len(names) <= WORDS_MAX
    assert names == sorted(set(names))


def test_every_word_is_defined_in_one_short_sentence() -> None:
    wrong = [
        word
        for word, meaning in words()
        if not re.fullmatch(r"[A-Z][^.]*\.", meaning) or len(meaning.split()) > 25
    ]
    assert wrong == []
