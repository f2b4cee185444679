"""No document makes the reader raise anything but the refusal of the document."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.wrappers.matching import BadPath, check_pattern
from assay.wrappers.openapi_operations import DocumentOperation, operations_of
from assay.wrappers.openapi_text import DEPTH_MAX, REQUEST, BadDocument, TextBounds, read_document

FOLDER = Path(__file__).parents[1] / "openapi"
TEXTS = [one.read_text("utf-8") for one in sorted(FOLDER.iterdir()) if ".expected." not in one.name]
NAMES = (
    *("openapi", "swagger", "paths", "servers", "url", "variables", "default", "get", "post"),
    *("parameters", "$ref", "name", "in", "style", "summary", "description", "webhooks", "host"),
    *("basePath", "schemes", "components", "additionalOperations", "allowReserved", "x-a"),
)
LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    st.sampled_from(
        (
            *("3.1.0", "2.0", "path", "/a/{b}", "#/paths/~1a", "#/components", "#", "b", "label"),
            *("https://a.example.com/{b}", "{", "\ud800", "https"),
        )
    ),
)
KEYS = st.sampled_from((*NAMES, "/a", "/a/{b}", "/a{b}", "b")) | st.text(max_size=8)


def holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5)


VALUES = st.recursive(LEAVES, holders, max_leaves=20)
PATHS = st.dictionaries(st.sampled_from(("/a", "/a/{b}", "b", "/{", "x-a")), VALUES, max_size=4)


def operations(text: str, *, has_target: bool = False) -> list[DocumentOperation]:
    """What the document has, or nothing if it is refused."""
    try:
        found = operations_of(read_document(text), ("POST /a",), has_target=has_target)
    except BadDocument:
        return []
    return [*found]


def check(found: list[DocumentOperation]) -> None:
    for one in found:
        assert one.name.isprintable()
        assert one.description.isprintable()
        assert one.problem.isprintable()
        if not one.problem:
            assert one.method == "GET" or one.name == "POST /a"
            assert "*" not in one.path.split("/")
            assert one.server == "" or "://" in one.server


@given(VALUES, PATHS)
@settings(max_examples=60)
def test_any_values_are_a_document_or_refused(root: Any, paths: Any) -> None:
    for value in (root, {"openapi": "3.1.0", "paths": paths}, {"swagger": "2.0", "paths": paths}):
        for has_target in (False, True):
            check(operations(json.dumps(value), has_target=has_target))


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=100)
def test_a_document_with_a_piece_changed_is_read_or_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    between = data.draw(st.text(max_size=6) | st.sampled_from(("*a", "&a ", "!x ", "<<: ", "- ")))
    check(operations(text[:start] + between + text[end:]))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    check(operations(text))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        '{"a":' * 100_000,
        "{a: " * 100_000,
        '{"a":' * (DEPTH_MAX + 1) + "1" + "}" * (DEPTH_MAX + 1),
        "[" + "a," * REQUEST.values_max + "]",
        '{"a": [' + "1," * REQUEST.values_max + "1]}",
        "a: &a [*a]",
        "a: &a {<<: *a}",
        "a: *missing",
        "<<: 7",
        "? [a]\n: b",
        "a: 1\n---\nb: 2",
        "a: \x07",
        '{"openapi": "3.1.0", "openapi": "3.0.0", "paths": {}}',
        "\ud800",
        "{" + "9" * 5000 + ": 1}",
    ],
)
def test_a_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(BadDocument):
        read_document(text)


def test_a_merge_counts_what_it_copies() -> None:
    """Otherwise a small document would take the square of its size."""
    parts = ", ".join(f"k{n}: 1" for n in range(200))
    text = f"a: &a {{{parts}}}\n" + "".join(f"b{n}: {{<<: *a}}\n" for n in range(100))
    assert len(read_document(text)) == 101
    nothing = "e: &e {}\na: &a [" + "*e, " * 200 + "]\n"
    nothing += "".join(f"b{n}: {{<<: *a}}\n" for n in range(100))
    assert len(read_document(nothing)) == 102
    for one in (text, nothing):
        with pytest.raises(BadDocument, match="cannot be imported"):
            read_document(one, TextBounds(len(one), 20_000))


def test_a_version_that_is_made_of_aliases_is_not_written_out() -> None:
    lines = ["x0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 8)}]" for n in range(1, 20)]
    for member in ("openapi", "swagger"):
        assert operations("\n".join([*lines, f"{member}: *x19"])) == []


def test_every_path_that_is_imported_is_one_that_a_wrapper_may_have() -> None:
    kept = 0
    for text in TEXTS:
        for one in operations(text):
            if one.problem:
                continue
            try:
                check_pattern(one.path)
            except BadPath:
                assert one.path in {"/two words", "relative"}
            else:
                kept += 1
    assert kept > 20


def test_references_are_followed_only_so_often() -> None:
    """A small document could have each path resolve the same long chains again and again."""
    chain = {f"p{n}": {"$ref": f"#/a/p{n + 1}", "name": "x", "in": "query"} for n in range(8)}
    chain["p8"] = {"name": "x", "in": "query"}
    lists = {"parameters": [{"$ref": "#/a/p0"}] * 200}
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://a.example.com"}],
        "a": chain,
        "i": lists | {"get": lists},
        "paths": {f"/p{n}": {"$ref": "#/i"} for n in range(2000)},
    }
    with pytest.raises(BadDocument) as refused:
        operations_of(document, (), has_target=False)
    assert "more references" in str(refused.value.extras)


def test_a_server_is_no_longer_than_an_address_may_be() -> None:
    variables = {"a": {"default": "x" * 2048}}
    document: Any = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://x.example/" + "{a}" * 20, "variables": variables}],
        "paths": {"/p": {"get": {}}},
    }
    (one,) = operations_of(document, (), has_target=False)
    assert (one.server, one.problem) == ("", "has a server whose address is too long")
