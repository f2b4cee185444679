"""Pages of services: what is read of them, whatever bytes they are."""

from collections.abc import Iterable
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.net.egress.ports import EgressResponse
from assay.probing.function.described_operations import SHOWN_MAX, operations_shown
from assay.probing.function.examples import DOCUMENTS_MAX, documents_linked
from assay.probing.function.words import visible_text

HOME = "https://service.example/"
PIECES = (
    *("<script>", "</script>", "<style", "<a href='/v1/rate?from=EUR'>", "</a>", "<", ">", "&lt;"),
    *("GET /v1/stops/{name}", "POST /v1/say", '{"text": "hello"}', "curl -d", "openapi.json"),
    *("https://other.example/v1/x?y=1", "<!-- ", "-->", " a < b ", "\u3042", "="),
    *("service-desc", "{", "[", "\n"),
)  # fmt: skip
PAGES = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40).map("".join)


def reply(page: str, link: str = "") -> EgressResponse:
    headers = (("link", link),) if link else ()
    return EgressResponse(200, headers, page.encode(), truncated=False, elapsed_ms=1.0)


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<p>Two<br>words</p>", ["Two", "words"]),
        ("<script>let hidden = '<b>';</script>shown", ["shown"]),
        ("<STYLE>p {}</STYLE >shown", ["shown"]),
        ("1 < 2 and 3 > 2", ["1", "<", "2", "and", "3", ">", "2"]),
        ("before<script>never ended", ["before"]),
        ("before<a href='", ["before"]),
        ("a &amp; b", ["a", "&", "b"]),
    ],
)
def test_what_a_reader_sees_of_a_page_is_read(page: str, seen: Iterable[str]) -> None:
    assert visible_text(page).split() == seen


@given(PAGES)
def test_any_page_is_read_and_gives_bounded_operations_of_its_own_origin(page: str) -> None:
    found = operations_shown(page.encode(), HOME)
    assert len(found) <= SHOWN_MAX
    assert all(one.path.startswith("/") for one in found)
    sent_to = {urlsplit(HOME.rstrip("/") + one.path).netloc for one in found}
    assert sent_to <= {"service.example"}  # a path may well hold another's name


@given(PAGES, PAGES)
def test_any_page_and_header_link_to_few_documents_of_the_same_site(page: str, link: str) -> None:
    found = documents_linked(reply(page, link), HOME)
    assert len(found) <= DOCUMENTS_MAX
    assert all(url.startswith(HOME) for url in found)


@pytest.mark.parametrize(
    "page",
    [
        '<link rel="service-desc" href="/docs/openapi.json">',
        "SwaggerUIBundle({url: 'docs/openapi.json'})",
        "The document is at /docs/openapi.json .",
        "<redoc spec-url=/docs/openapi.json></redoc>",
    ],
)
def test_a_linked_document_is_found(page: str) -> None:
    assert documents_linked(reply(page), HOME) == [f"{HOME}docs/openapi.json"]
