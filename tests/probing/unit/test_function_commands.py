"""Command lines and addresses as pages show them: what call they make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import JsonValue
from assay.probing.function.described_operations import operations_shown
from assay.probing.function.examples import called, own_address, values_at
from assay.probing.function.shown_calls import LINES_MAX, lines_in, words_of_line

HOME = "https://service.example/"
PIECES = (
    *("curl ", "http ", "-d ", "-X POST ", "--json ", "'", '"', "\\", "\\\n", "$'", "\n", "|", ";"),
    *("https://service.example/v1/turn", " :8080/x ", "a=1", "{", "}", "--data-urlencode ", "@-"),
    *("echo 'words' | ", "-G ", "-H 'Content-Type: text/plain' ", " a:=2", "<<", "$("),
)
PAGES = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("line", "place", "body"),
    [
        ("curl -d 'a=3&b=5' /x", "form", {"a": "3", "b": "5"}),
        ("curl -d a=3 -d a=5 /x", "form", {"a": ["3", "5"]}),
        ("curl -sXPOST -d'{\"a\": 3}' /x", "body", {"a": 3}),
        ('curl /x --data-raw "{\\"a\\": 3}"', "body", {"a": 3}),
        ("curl --json '[3, 5]' /x", "whole", [3, 5]),
        ("curl --data-binary $'two\\nlines' /x # words", "text", "two\nlines"),
        ("curl /x \\\n  -F one=3 \\\r\n  -F two=5", "form", {"one": "3", "two": "5"}),
        ("curl --data-urlencode 'a=b & c' /x", "form", {"a": "b & c"}),
        ("printf 'some words' | curl -s --data-binary @- /x", "text", "some words"),
        ("http POST :3000/x a=word b:=[3]", "body", {"a": "word", "b": [3]}),
        ("http -f POST host/x a=word", "form", {"a": "word"}),
    ],
)
def test_a_line_makes_a_call_with_a_body(line: str, place: str, body: JsonValue) -> None:
    [one] = lines_in(f"Some words\n$ {line}\nMore words, and it's said.")
    assert (one.method, one.place, one.body) == ("POST", place, body)


@pytest.mark.parametrize(
    "line",
    [
        "curl -X DELETE /x -d a=3",
        "curl -T file /x",
        "curl -F 'file=@photo' /x",
        "curl --data @file /x",
        "curl --data-binary 'never ended /x",
        "curl -H 'Content-Type: application/json' -d '{\"a\": <number>}' /x",
        "http PUT :3000/x a=3",
        "over http you may call it",
    ],
)
def test_a_line_that_cannot_be_sent_as_it_is_makes_none(line: str) -> None:
    assert lines_in(f"{line}\nMore.") == []


def test_a_line_that_asks_has_a_query() -> None:
    [one] = lines_in("curl -G https://a.example/x -d p=3 --data-urlencode 'q=a b'")
    assert (one.method, one.query) == ("GET", [("p", "3"), ("q", "a b")])


@given(PAGES)
def test_any_line_is_read_and_ends_within_its_text(page: str) -> None:
    assert len(lines_in(page)) <= LINES_MAX
    _, end = words_of_line(page, 0)
    assert 0 <= end <= len(page) + 1
    assert all(one.path.startswith("/") for one in operations_shown(page.encode(), HOME))


@pytest.mark.parametrize(
    ("shown", "meant"),
    [
        ("$BASE/x", "/x"),
        ("https://<host>/x", "/x"),
        (":8080/x", "/x"),
        ("localhost:9/x?y=1", "/x?y=1"),
        ("https://api.example.com/x", "/x"),
        ("service.net/x", "/x"),
        ("?y=1", "/here?y=1"),
        ("https://other.net/x", "https://other.net/x"),
    ],
)
def test_a_host_that_stands_for_ones_own_is_ones_own(shown: str, meant: str) -> None:
    found = own_address(shown, "https://service.net/here")
    assert found == (meant if "://" in meant else f"https://service.net{meant}")


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("https://a.net/v1/cf/355/113", "/v1/cf/{cf a}/{cf b}"),
        ("https://a.net/rate/EUR/2024-03-01", "/rate/{rate a}/{rate b}"),
        ("https://a.net/agents/17/ask", "/agents/17/ask"),
        ("https://a.net/stops/{stop}", "/stops/{stop}"),
    ],
)
def test_values_in_a_path_are_told_from_names(address: str, path: str) -> None:
    one = called(address)
    assert one is not None
    assert one.path == path


def test_the_values_that_a_template_names_are_found() -> None:
    assert values_at("/rate/{one}/{two}", "/rate/EUR/USD") == {"one": "EUR", "two": "USD"}
    assert values_at("/rate/{one}", "/rates/EUR") is None
    assert values_at("/rate/{one}", "/rate/{one}") is None


def test_what_names_an_act_is_no_operation() -> None:
    page = b"Returns its number.\ncurl -d 'a=3' /orders/create\nBooks a room: curl -d 'a=3' /rooms"
    assert operations_shown(page, HOME) == []
