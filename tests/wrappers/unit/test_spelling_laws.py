"""No spelling of a stricter route's path reaches a freer route; honest paths go where they did."""

from hypothesis import given
from hypothesis import strategies as st

from assay.wrappers.endpoint_rules import is_walked_round
from assay.wrappers.matching import BadPath, RouteRow, RouteTable, folded
from assay.wrappers.model import Terms

WORDS = st.sampled_from(["a", "b", "quote", "shop", "v1", "Items"])
LITERALS = st.lists(WORDS, min_size=1, max_size=4)
STRICT = st.sampled_from([Terms(1), Terms(0, 50.0), Terms(5, 80.0, needs_proof=True)])


def _in_some_case(draw: st.DrawFn, char: str) -> str:
    return draw(st.sampled_from([char, char.upper(), char.lower()]))


def _encoded(char: str, times: int) -> str:
    text = f"%{ord(char):02x}" if times else char
    for _ in range(times - 1):
        text = text.replace("%", "%25")
    return text


@st.composite
def streams(draw: st.DrawFn) -> str:
    """The end of a segment by which NTFS reads what it reads anyway, or another stream of it."""
    name = draw(st.sampled_from(["", "$i30", "$I30", "x", "a.b"]))
    kind = draw(st.sampled_from(["$DATA", "$INDEX_ALLOCATION", "$bitmap", "$Attribute_List"]))
    text = "".join(
        _encoded(char, draw(st.sampled_from([0, 0, 1, 2]))) if char in ":$" else char
        for char in f":{name}:{kind}"
    )
    return text + draw(st.sampled_from(["", "", ".", "%20", ";x"]))


@st.composite
def spellings(draw: st.DrawFn, segments: list[str]) -> str:
    """The path of these segments as some server would read it."""
    text = ""
    for segment in segments:
        slash = draw(st.sampled_from(["/", "/", "//", "/;x/", "%2F", "\\", "/%20/", "%255c"]))
        word = "".join(
            _encoded(_in_some_case(draw, char), draw(st.sampled_from([0, 0, 0, 1, 2])))
            for char in segment
        )
        tail = draw(
            st.sampled_from(["", "", "", ".", "%20", ";v=1", "%3Bx", "..%20", "%2e"]) | streams()
        )
        text += slash + word + tail
    text += draw(st.sampled_from(["", "", "/", "//", "%2F", "/;", "%3Fq", "%23f", "\\"]))
    return text if text.startswith("/") else "/" + text


@given(st.data(), LITERALS, STRICT)
def test_no_spelling_reaches_a_freer_route(
    data: st.DataObject, segments: list[str], terms: Terms
) -> None:
    shape = data.draw(st.sampled_from(["literal", "parameter", "prefix"]))
    pattern = list(segments)
    if shape == "parameter":
        pattern[-1] = "{id}"
    elif shape == "prefix":
        pattern.append("*")
    free = ["/*", *(f"/{'/'.join(segments[:n])}/*" for n in range(1, len(segments)))]
    rows = [RouteRow("GET", "/" + "/".join(pattern), "strict", terms)]
    rows += [RouteRow("*", path, "free") for path in free]
    tail = data.draw(st.lists(WORDS, max_size=2)) if shape == "prefix" else []
    path = data.draw(spellings([*segments, *tail]))
    assert folded(path) == tuple(part.lower() for part in (*segments, *tail))
    try:
        match = RouteTable(rows).match("GET", path)
    except BadPath:
        return  # refused: nobody is let through
    assert match is not None
    assert match.value == "strict"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "*"]), LITERALS, st.booleans(), STRICT | st.just(Terms())
        ),
        min_size=1,
        max_size=6,
    ),
    LITERALS,
)
def test_without_a_pair_that_is_warned_of_spelling_changes_nothing(
    asked: list[tuple[str, list[str], bool, Terms]], segments: list[str]
) -> None:
    """Whoever is not warned has every path answered as if nothing were folded."""
    rows: dict[tuple[str, str], RouteRow[int]] = {}
    for number, (method, parts, is_prefix, terms) in enumerate(asked):
        path = "/" + "/".join(parts) + ("/*" if is_prefix else "")
        rows[method, path] = RouteRow(method, path, number, terms)
    pairs = [
        (strict, free)
        for strict in rows.values()
        for free in rows.values()
        if strict.terms.ask_more_than(free.terms)
    ]
    if any(is_walked_round(s[:2], f[:2]) for s, f in pairs):
        return
    path = "/" + "/".join(segments)
    plain = RouteTable([row._replace(terms=Terms()) for row in rows.values()])
    assert RouteTable(list(rows.values())).match("GET", path) == plain.match("GET", path)
