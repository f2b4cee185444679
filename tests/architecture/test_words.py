"""Names are the field's terms, and each has one meaning: a retired word comes back nowhere.

Looked at are the names that code defines, cut at underscores and capitals, and those of files.
String literals are not looked at: some of these words are stored, hashed or public.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.syntax import nodes, parsed

PACKAGE = Path(__file__).parents[2] / "src/assay"

RETIRED = {
    "bait": ("out of band URL", 4),
    "betrayal": ("recent drop", 0),
    "desk": ("SQL transaction", 0),
    "dice": ("seeded random", 0),
    "door": ("egress guard", 0),
    "edge": ("application", 0),
    "gathering": ("batch", 0),
    "ground": ("dependencies", 0),
    "grounds": ("dependencies", 0),
    "hall": ("what it fakes", 0),
    "heard": ("collected", 0),
    "held": ("claimed, buffered", 3),
    "house": ("test service", 0),
    "journey": ("call record", 0),
    "lane": ("fast path, raw handler", 0),
    "leases": ("quota lease", 0),
    "lure": ("out of band URL", 0),
    "mend": ("fix", 0),
    "news": ("event", 0),
    "noted": ("recorded", 0),
    "obstacle": ("scenario", 0),
    "squeeze": ("overcommit", 0),
    "stall": ("fake seller", 0),
    "standing": ("state; reviewer weight", 0),
    "till": ("payment service", 0),
    "together": ("group commit; at once", 0),
    "told": ("message, event", 0),
    "trail": ("scenario run", 2),
    "trip": ("fast path call", 1),
    "visiting": ("probe session", 0),
    "voice": ("reviewer's rating", 0),
    "wrapping": ("dependencies", 0),
}
"""The word, what to say instead, and how many names still have it: that number only falls."""


def words_of(name: str) -> list[str]:
    """A name, cut at underscores and capitals."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names_in(source: str) -> Iterator[str]:
    """The names that a module defines: of functions, classes, arguments, variables, attributes."""
    for node in nodes(source):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr
            case _:
                pass


def found() -> dict[str, set[str]]:
    """The names in the package that have a retired word, by word."""
    by_word: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        if "migrations" not in path.parts:  # what was released stays as it is
            for name in {path.stem, *names_in(path.read_text("utf-8"))}:
                for word in RETIRED.keys() & words_of(name):
                    by_word[word].add(name)
    return by_word


RETIRED_NAMES = {
    "at_most": "limit, is_upper_bound",
    "but_not": "exclude",
    "is_alone": "is_local",
    "let_go": "release",
    "unspend": "release",
}
"""Names of several words, and what to say instead."""


def test_a_retired_name_comes_back_nowhere() -> None:
    public = {("evaluation/schemas_grade.py", "at_most")}  # a member of a public answer
    left = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        if "migrations" not in path.parts
        for name in names_in(path.read_text("utf-8"))
        if name.lstrip("_") in RETIRED_NAMES
    }
    assert left == public


def test_a_retired_word_comes_back_nowhere() -> None:
    names = found()
    left = {word: (len(names[word]), sorted(names[word])) for word in RETIRED}
    assert {w: seen for w, seen in left.items() if seen[0] != RETIRED[w][1]} == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class SqlDesk: ...", {"sql", "desk"}),
        ("def f(the_till, *, HELD_MAX=1): ...", {"f", "the", "till", "held", "max"}),
        ("self.lane = 1\nfor voice in (): ...", {"lane", "voice"}),
        ("desk.ask('the house')", set()),
    ],
)
def test_words_are_found_in_whatever_a_module_defines(source: str, words: set[str]) -> None:
    assert {word for name in names_in(source) for word in words_of(name)} == words


def test_a_public_type_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if "migrations" not in path.parts:
            for node in parsed(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
