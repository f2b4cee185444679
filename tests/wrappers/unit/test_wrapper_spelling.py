"""A paid or trusted route cannot be walked round by spelling its path otherwise."""

import pytest

from assay.wrappers.endpoint_rules import is_walked_round
from assay.wrappers.matching import (
    PARTS_MAX,
    READINGS_MAX,
    BadPath,
    Match,
    RouteRow,
    RouteTable,
    Unfoldable,
    folded,
    readings,
)
from assay.wrappers.model import Terms

PAID, TRUSTED, STRICTER = Terms(10_000), Terms(0, 65.0, needs_proof=True), Terms(10_000, 65.0)

SPELLINGS = [
    *("/shop/quote", "/shop/quote/", "/shop/quote//", "/shop//quote", "//shop/quote"),
    *("/shop/QUOTE", "/Shop/Quote", "/shop/quote;x", "/shop/quote;x=1/", "/shop;a=b/quote"),
    *("/shop/;/quote", "/shop/quote%20", "/shop/quote%20%20", "/shop/quote.", "/shop/quote..."),
    *("/shop/quote.%20.", "/shop%2Fquote", "/shop%2fquote", "/shop/quote%2f", "/shop/quote%2F%2f"),
    *("/shop/%71uote", "/shop/quot%65", "/shop/%2571uote", "/shop/%252571uote", "/shop%255Cquote"),
    *("/shop\\quote", "/shop/quote\\", "/shop%5Cquote", "/shop/quote%3Bx", "/shop/quote%3fx"),
    *("/shop/quote%23x", "/shop/%51UOTE/", "/shop/quote%c2%a0", "/shop/%ef%bd%91uote"),
    *("/shop/%c1%b1uote", "/shop%c0%afquote", "/shop/%u0071uote", "/shop/quote;/", "/;/shop/quote"),
    *("/shop/a%252f%252e%252e%252fquote", "/free/%252e%252e/shop/quote", "/shop/quote%2e"),
    *("/shop;a%2Fb/quote", "/shop;a%252Fb/quote", "/SHO%50;a%2Fb/quote"),
    *("/shop/%E0%81%B1uote", "/shop/%F0%80%81%B1uote", "/shop/%uFF51uote", "/shop%u002fquote"),
    *(
        "/shop/quote::$DATA",
        "/shop/quote%3A%3A%24data",
        "/shop/QUOTE.%20::$DATA/",
        "/shop\\quote::$data",
    ),
    *("/shop::$INDEX_ALLOCATION/quote", "/shop/quote%253a%253a%2524DATA", "/shop/quote::$DATA;x"),
    *(
        "/shop:$i30:$INDEX_ALLOCATION/quote",
        "/shop:$I30:$Index_Allocation/QUOTE/",
        "/shop:x:$DATA/quote",
    ),
    *(
        "/shop/quote:x:$data",
        "/shop%3A%24i30%3A%24INDEX_ALLOCATION%2Fquote",
        "/shop::$BITMAP/quote",
    ),
    *(
        "/shop%EF%BC%9A$i30:$INDEX_ALLOCATION/quote",
        "/shop:$i30:$INDEX_ALLOCATION.;x/quote:y:$DATA%20",
    ),
    *("/shop/quote%2500x", "/shop/quo%2509te", "/shop/quote%250d%250a", "/shop%EF%BC%8Fquote"),
    *(
        "/shop/%EF%BC%8571uote",
        "/shop/QUOTE%3B%2Fx",
        "/SHOP/quote%3Fa%2Fb",
        "/shop/quote%EF%BC%9Fx",
    ),
]
"""What lenient servers take for `/shop/quote`."""


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize("terms", [PAID, TRUSTED, STRICTER])
def test_every_spelling_of_a_stricter_route_is_the_stricter_routes(path: str, terms: Terms) -> None:
    rows = [RouteRow("GET", "/shop/quote", "strict", terms), RouteRow("*", "/*", "free")]
    for table in (RouteTable(rows), RouteTable(rows[::-1])):
        match = table.match("GET", path)
        assert match == Match("strict", path)  # and it is forwarded as it is spelled


@pytest.mark.parametrize(
    "path",
    [
        *("/shop", "/shop/quotes", "/shop/quote/x", "/shop/quot", "/shopquote", "/quote"),
        *(
            "/shop/quote-",
            "/shop/quote.json",
            "/shop/quote:x",
            "/shop/quote:x:y",
            "/shop/quote:$x",
            "/shop:$i30/quote",
            "/x/shop/quote",
            "/shop/q%2Fuote",
            "/shop/quote+",
        ),
    ],
)
def test_another_path_stays_with_its_own_route(path: str) -> None:
    table = RouteTable(
        [RouteRow("GET", "/shop/quote", "strict", PAID), RouteRow("*", "/*", "free")]
    )
    assert table.match("GET", path) == Match("free", path)


@pytest.mark.parametrize(
    ("strict", "path"),
    [
        ("/items/{id}", "/items/7/"),
        ("/items/{id}", "/ITEMS/7"),
        ("/items/{id}", "/items//7"),
        ("/items/{id}", "/items%2F7"),
        ("/paid/*", "/paid"),
        ("/paid/*", "/PAID/x/y"),
        ("/paid/*", "//paid/x"),
        ("/paid/*", "/paid;x/y"),
        ("/paid/", "/paid"),
        ("/paid", "/paid/"),
        ("/a;v=1", "/A;v=1"),
        ("/a/quit", "/a/qu%C4%B1t"),
        ("/a/quit", "/a/QU%C4%B0T"),
        ("/a/task", "/a/ta%C5%BFk"),
        ("/a/task", "/a/tas%E2%84%AA"),
    ],
)
def test_patterns_are_met_in_every_spelling_too(strict: str, path: str) -> None:
    table = RouteTable([RouteRow("GET", strict, "strict", PAID), RouteRow("*", "/*", "free")])
    assert table.match("GET", path) == Match("strict", path)


@pytest.mark.parametrize(
    "held",
    [
        *(
            "a%2Fb",
            "a%2fb%2F",
            "%2F",
            "a%252Fb",
            "a%5Cb",
            "a\\b",
            "\\",
            "a%3Fb",
            "%3F",
            "a%23b",
            "%23",
        ),
        *("a%2500b", "a;b", ";x", "%3Bx", ";a%2Fb", "a;b%2Fc", "...", "%20", ". .", "a..", "%252e"),
        *(
            "%252e%252e",
            "%EF%BC%8E%EF%BC%8E",
            "%E2%80%A5",
            "a%EF%BC%8Fb",
            "a%EF%BC%9Fb",
            "a%C0%AFb",
        ),
    ],
)
@pytest.mark.parametrize(
    ("strict", "path"),
    [
        ("/shop/{id}", "/SHOP/{}"),
        ("/shop/{id}", "/shop/{}/"),
        ("/shop/{id}/buy", "/SHOP/{}/buy"),
        ("/shop/{id}/buy", "/shop/{}/BUY"),
        ("/shop/{id}/buy", "/shop/{}/buy/"),
        ("/shop/{id}/buy", "//shop/{}/buy"),
        ("/shop/{id}/buy", "/shop;v=1/{}/%62uy"),
        ("/shop/*", "/SHOP/{}/{}/x"),
        ("/shop/*", "/;/shop/{}/../x".replace("..", "%252e%252e")),
    ],
)
def test_what_a_parameter_or_the_rest_of_a_prefix_holds_hides_nothing(
    strict: str, path: str, held: str
) -> None:
    """Express parts a path before it decodes: there `a%2Fb` and `...` are one segment each."""
    table = RouteTable([RouteRow("GET", strict, "strict", PAID), RouteRow("*", "/*", "free")])
    assert table.match("GET", path.replace("{}", held)).value == "strict"  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["frob", "Frob", "fROB"])
def test_a_method_is_a_spelling_too(method: str) -> None:
    """Django and Werkzeug take it for FROB."""
    rows = [RouteRow("FROB", "/q", "strict", PAID), RouteRow("*", "/*", "free")]
    assert RouteTable(rows).match(method, "/q") == Match("strict", "/q")
    assert RouteTable(rows).match("PUT", "/q") == Match("free", "/q")


@pytest.mark.parametrize("method", ["get", "Post", "hEAD", "propfind"])
def test_a_method_in_another_case_is_treated_as_the_stricter_one(method: str) -> None:
    rows = [RouteRow(method.upper(), "/q", "strict", PAID), RouteRow("*", "/*", "free")]
    assert RouteTable(rows).match(method, "/q") == Match("strict", "/q")
    assert RouteTable(rows).match(method, "/other") == Match("free", "/other")


def test_head_is_spelled_as_get_is() -> None:
    rows = [RouteRow("GET", "/q", "strict", PAID), RouteRow("*", "/*", "free")]
    assert RouteTable(rows).match("HEAD", "/Q") == Match("strict", "/Q")


def test_what_asks_for_more_is_stricter_and_nothing_else() -> None:
    more = [
        (Terms(2), Terms(1)),
        (Terms(0, 65.0), Terms(0)),
        (Terms(0, 70.0), Terms(0, 65.0)),
        (Terms(0, 65.0, needs_proof=True), Terms(0, 65.0)),
        (Terms(1), Terms(0, 65.0)),
        (Terms(0, 65.0), Terms(1)),
    ]
    for strict, free in more:
        rows = [RouteRow("GET", "/q", "strict", strict), RouteRow("GET", "/*", "free", free)]
        assert RouteTable(rows).match("GET", "/Q") == Match("strict", "/Q")
    for one in (PAID, TRUSTED, Terms()):
        rows = [RouteRow("GET", "/q", "one", one), RouteRow("GET", "/*", "other", one)]
        assert RouteTable(rows).match("GET", "/Q") == Match("other", "/Q")


def test_what_an_operator_has_said_in_so_many_words_holds() -> None:
    rows = [
        RouteRow("GET", "/items/new", "free", Terms()),
        RouteRow("GET", "/items/{id}", "paid", PAID),
        RouteRow("GET", "/files/*", "paid files", PAID),
        RouteRow("GET", "/files/readme", "free file", Terms()),
        RouteRow("POST", "/files/*", "free upload", Terms()),
        RouteRow("*", "/x", "paid x", PAID),
        RouteRow("GET", "/x", "free x", Terms()),
        RouteRow("GET", "/d", "free d", Terms()),
        RouteRow("GET", "/d/*", "paid d", PAID),
    ]
    table = RouteTable(rows)
    for method, path, value in (
        ("GET", "/items/new", "free"),
        ("GET", "/items/old", "paid"),
        ("GET", "/files/readme", "free file"),
        ("GET", "/files/README", "paid files"),
        ("POST", "/files/a", "free upload"),
        ("GET", "/x", "free x"),
        ("PUT", "/x", "paid x"),
        ("GET", "/d", "free d"),
        ("GET", "/d/", "paid d"),
    ):
        assert table.match(method, path) == Match(value, path)


def test_of_two_that_differ_in_spelling_only_the_stricter_one_answers() -> None:
    rows = [
        RouteRow("GET", "/Shop/Quote", "free", Terms()),
        RouteRow("GET", "/shop/quote", "paid", PAID),
    ]
    assert RouteTable(rows).match("GET", "/Shop/Quote") == Match("paid", "/Shop/Quote")
    assert RouteTable(rows).match("GET", "/SHOP/quote") is None


def test_a_stricter_route_that_answers_nobody_is_not_walked_round() -> None:
    rows = [RouteRow[str | None]("GET", "/q", None, PAID), RouteRow("*", "/*", "free")]
    assert RouteTable(rows).match("GET", "/Q/") == Match(None, "/Q/")


def test_a_path_encoded_without_end_is_none() -> None:
    rows = [RouteRow("GET", "/q", "paid", PAID), RouteRow("*", "/*", "free")]
    path = "%71"
    for _ in range(12):  # the first digit of the last code, encoded
        before, _, code = path.rpartition("%")
        path = f"{before}%%{ord(code[0]):02X}{code[1:]}"
    with pytest.raises(BadPath):
        RouteTable(rows).match("GET", "/" + path)
    with pytest.raises(Unfoldable):
        folded("/" + path)


@pytest.mark.parametrize(
    "text", ["%25" * 680, "%2525" * 400, "%EF%B7%BA" * 220, "/" * 2000, ";" * 2000]
)
def test_folding_a_path_made_to_be_slow_ends(text: str) -> None:
    assert len("".join(folded("/" + text))) < 20_000


@pytest.mark.parametrize(
    "path",
    ["/a" * PARTS_MAX + "/b", "/%252561" * 200, "/;%3B%253B/..%255c%5c" * 60, "/%3F%23%2500" * 100],
)
def test_a_path_that_is_read_in_too_many_ways_is_none(path: str) -> None:
    """What a reading costs is bounded: a path of that many segments is nobody's honest one."""
    try:
        assert len(readings(path)) <= READINGS_MAX
        assert all(len(reading) <= PARTS_MAX for reading in readings(path))
    except Unfoldable:
        with pytest.raises(BadPath):
            RouteTable([RouteRow("GET", "/q", "paid", PAID), RouteRow("*", "/*", "free")]).match(
                "GET", path
            )


@pytest.mark.parametrize("path", ["/", "/a", "/a/b-c/d.json", "/v1/Items/7", "/a%20b/c", "/%C3%A9"])
def test_an_ordinary_path_has_one_reading(path: str) -> None:
    assert readings(path) == {folded(path)}


@pytest.mark.parametrize(
    ("strict", "free", "is_walked"),
    [
        (("GET", "/shop/quote"), ("GET", "/shop/*"), True),
        (("GET", "/shop/quote"), ("*", "/*"), True),
        (("*", "/shop/quote"), ("GET", "/shop/{name}"), True),
        (("GET", "/shop/quote"), ("GET", "/shop/Quote"), True),
        (("GET", "/shop/quote"), ("GET", "/shop/quote/"), True),
        (("GET", "/shop/*"), ("GET", "/*"), True),
        (("GET", "/shop/*"), ("GET", "/SHOP/*"), True),
        (("GET", "/q"), ("HEAD", "/*"), True),
        (("GET", "/shop/quote"), ("POST", "/shop/*"), False),
        (("GET", "/shop/quote"), ("GET", "/other/*"), False),
        (("*", "/shop/quote"), ("GET", "/shop/quote"), False),  # said in so many words
        (("GET", "/shop/{id}"), ("GET", "/shop/quote"), False),
        (("GET", "/shop/*"), ("GET", "/shop/quote"), False),
        (("GET", "/a/b/c"), ("GET", "/a/b"), False),
    ],
)
def test_a_pair_of_which_one_takes_the_others_spellings_is_known(
    strict: tuple[str, str], free: tuple[str, str], *, is_walked: bool
) -> None:
    assert is_walked_round(strict, free) is is_walked
