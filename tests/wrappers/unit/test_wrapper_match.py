"""Which wrapper answers: exact beats parameter beats prefix; no path is read two ways."""

from collections.abc import Sequence

import pytest

from assay.wrappers.matching import (
    BadPath,
    Match,
    RouteRow,
    RouteTable,
    check_method,
    check_pattern,
    route_key,
    segments_of,
)


def table(rows: Sequence[tuple[str, str, object]]) -> RouteTable[object]:
    return RouteTable([RouteRow(*row) for row in rows])


def found(rows: Sequence[tuple[str, str, object]], method: str, path: str) -> object:
    match = table(rows).match(method, path)
    return None if match is None else match.value


ROWS = [
    ("GET", "/quote", "exact"),
    ("*", "/quote", "any"),
    ("GET", "/items/{id}", "parameter"),
    ("GET", "/items/new", "new"),
    ("GET", "/items/*", "prefix"),
    ("POST", "/items/{id}", "post"),
    ("*", "/*", "everything"),
    ("GET", "/items/{id}/parts/*", "parts"),
    ("GET", "/t/", "slash"),
]


@pytest.mark.parametrize(
    ("method", "path", "value"),
    [
        ("GET", "/quote", "exact"),
        ("HEAD", "/quote", "exact"),
        ("POST", "/quote", "any"),
        ("GET", "/items/new", "new"),
        ("GET", "/items/7", "parameter"),
        ("GET", "/items/%37", "parameter"),
        ("GET", "/items/n%65w", "new"),
        ("GET", "/items/7/8", "prefix"),
        ("GET", "/items/7/parts/a/b", "parts"),
        ("GET", "/items/", "prefix"),
        ("POST", "/items/7", "post"),
        ("DELETE", "/items/7", "everything"),
        ("GET", "/t/", "slash"),
        ("GET", "/t", "everything"),
        ("GET", "/", "everything"),
        ("GET", "/Quote", "everything"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_more_exact_one_answers(method: str, path: str, value: str, *, turned: bool) -> None:
    routes = table(ROWS[::-1] if turned else ROWS)
    assert routes.match(method, path) == Match(value, path)
    assert routes.match(method, path) == Match(value, path)  # remembered


@pytest.mark.parametrize("path", ["/a", "/items/{id}", "/x/*"])
def test_what_answers_nobody_is_not_answered_by_a_wider_one(path: str) -> None:
    rows = [("GET", path, None), ("GET", "/*", "wider"), ("*", path, "any method")]
    for given in (rows, rows[::-1]):
        assert found(given, "GET", path.replace("{id}", "7").replace("*", "y")) is None
        assert found(given, "GET", "/other") == "wider"


def test_nothing_matches_nothing() -> None:
    assert found([("GET", "/a", 1)], "GET", "/b") is None
    assert found([("GET", "/a", 1)], "POST", "/a") is None
    assert found([("GET", "/a/*", 1)], "GET", "/a") is None


@pytest.mark.parametrize(
    "path",
    [
        *("/..", "/a/..", "/../a", "/./a", "/a/.", "/%2e%2e/a", "/%2E./a", "/a%2f..%2fb"),
        *("/a\\..\\b", "/a%5c..", "/..;x/a", "/.;/a", "/a%00", "/a\x7f", "/" + "a" * 3000),
        *("/a;../b", "/a;%2e%2e/b", "/a;./b", "/a;.."),
    ],
)
def test_a_path_two_readers_could_read_two_ways_is_none(path: str) -> None:
    with pytest.raises(BadPath):
        segments_of(path)


def test_an_encoded_slash_parts_a_path_only_where_nothing_matches_it_as_it_is() -> None:
    """Generated clients send `a%2Fb` for a parameter that holds a slash (`/wrap/{op}/{path}`)."""
    routes = table([("GET", "/a/b", "exact"), ("GET", "/x/{id}", "parameter")])
    assert routes.match("GET", "/a%2Fb") == Match("exact", "/a/b")
    assert routes.match("GET", "/a%2fb") == Match("exact", "/a/b")
    assert routes.match("GET", "/%61%2Fb") == Match("exact", "/%61/b")
    assert routes.match("GET", "/%61/b") == Match("exact", "/%61/b")
    # One segment, as the upstream may read it.
    assert routes.match("GET", "/x/a%2Fb") == Match("parameter", "/x/a%2Fb")


def test_an_encoded_slash_is_decoded_once() -> None:
    routes = table([("GET", "/a/b", "exact"), ("GET", "/a/{id}", "parameter")])
    assert routes.match("GET", "/a%252Fb") is None
    assert routes.match("GET", "/a%2Fb%252Fc") == Match("parameter", "/a/b%252Fc")


def test_an_encoded_slash_does_not_pass_over_what_answers_nobody() -> None:
    routes = table([("GET", "/x/{id}", None), ("GET", "/x/a/b", "deeper")])
    assert routes.match("GET", "/x/a%2Fb") == Match(None, "/x/a%2Fb")


@pytest.mark.parametrize("path", ["/a%2F..%2Fb", "/a%2F%2e%2e%2Fb", "/a%2F.", "/%2F..%2Fa"])
def test_an_encoded_slash_makes_no_dot_segment(path: str) -> None:
    with pytest.raises(BadPath):
        table([("*", "/a/b", "exact")]).match("GET", path)


@pytest.mark.parametrize("method", ["FOO", "foo", "VERSION-CONTROL", "X!#$%&'*+.^_`|~-9", "A" * 24])
def test_any_method_is_answered_by_the_wrapper_for_any(method: str) -> None:
    assert found([("*", "/a", "any"), ("GET", "/a", "get")], method, "/a") == "any"


@pytest.mark.parametrize(
    "method",
    ["TRACE", "trace", "Trace", "CONNECT", "connect", "A" * 25, "", "A B", "A\r", "\u017f"],
)
def test_no_wrapper_answers_a_tunnel_a_mirror_or_what_is_no_method(method: str) -> None:
    assert found([("*", "/a", "any")], method, "/a") is None


@pytest.mark.parametrize("method", ["FOO", "*", "VERSION-CONTROL", "M-SEARCH", "A" * 24])
def test_methods_a_config_may_have(method: str) -> None:
    check_method(method)


@pytest.mark.parametrize("path", ["/a", "/", "/a/", "/a/{id}", "/a/{id}/*", "/*", "/a.b/~c", "/@x"])
def test_patterns_a_config_may_have(path: str) -> None:
    check_pattern(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "a", "/a//b", "/../a", "/a/*/b", "/a b", "/a?b", "/a#b", "/{}", "/{a b}", "/a%20"),
        *("/é", "/" + "a/" * 70, "/" + "a" * 3000, "/{1}", "/a*"),
    ],
)
def test_patterns_a_config_may_not_have(path: str) -> None:
    with pytest.raises(BadPath):
        check_pattern(path)


@pytest.mark.parametrize("method", ["", "get", "CONNECT", "TRACE", "A B", "G" * 25, "GET\r\n"])
def test_methods_a_config_may_not_have(method: str) -> None:
    with pytest.raises(BadPath):
        check_method(method)


def test_parameters_of_other_names_overlap() -> None:
    assert route_key("GET", "/a/{x}") == route_key("GET", "/a/{y}")
    assert route_key("GET", "/a/{x}") != route_key("POST", "/a/{x}")
