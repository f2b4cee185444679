"""Which wrapper answers: exact beats parameter beats prefix; no path is read two ways."""

import pytest

from assay.wrapper.match import BadPath, Table, check_method, check_pattern, route_key, segments_of

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
    table = Table(ROWS[::-1] if turned else ROWS)
    assert table.find(method, path) == value
    assert table.find(method, path) == value  # remembered


@pytest.mark.parametrize("path", ["/a", "/items/{id}", "/x/*"])
def test_what_answers_nobody_is_not_answered_by_a_wider_one(path: str) -> None:
    rows = [("GET", path, None), ("GET", "/*", "wider"), ("*", path, "any method")]
    for given in (rows, rows[::-1]):
        assert Table(given).find("GET", path.replace("{id}", "7").replace("*", "y")) is None
        assert Table(given).find("GET", "/other") == "wider"


def test_nothing_matches_nothing() -> None:
    assert Table([("GET", "/a", 1)]).find("GET", "/b") is None
    assert Table([("GET", "/a", 1)]).find("POST", "/a") is None
    assert Table([("GET", "/a/*", 1)]).find("GET", "/a") is None


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


def test_an_encoded_slash_parts_nothing() -> None:
    """The upstream is given `/a%2Fb`, which is not what `/a/b` was configured for."""
    table = Table([("GET", "/a/b", "exact"), ("GET", "/x/{id}", "parameter")])
    assert table.find("GET", "/a%2Fb") is None
    assert table.find("GET", "/a%2fb") is None
    assert table.find("GET", "/%61/b") == "exact"
    assert table.find("GET", "/x/a%2Fb") == "parameter"  # one segment, as the upstream may read it


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


@pytest.mark.parametrize("method", ["", "get", "CONNECT", "TRACE", "A B", "G" * 40, "GET\r\n"])
def test_methods_a_config_may_not_have(method: str) -> None:
    with pytest.raises(BadPath):
        check_method(method)


def test_parameters_of_other_names_overlap() -> None:
    assert route_key("GET", "/a/{x}") == route_key("GET", "/a/{y}")
    assert route_key("GET", "/a/{x}") != route_key("POST", "/a/{x}")
