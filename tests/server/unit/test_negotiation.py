"""Which representation a request gets (RFC 9110, section 12.5.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.server.negotiation import preferred

OFFERS = ("text/html", "application/json", "text/markdown")
CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (CHROME, "text/html"),
        ("*/*", "text/html"),
        ("", "text/html"),
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        ("text/markdown, text/html;q=0.5", "text/markdown"),
        ("text/*;q=0.5, application/json;q=0.6", "application/json"),
        ("text/html;q=0, */*", "application/json"),
        ("text/html;q=0.1, */*;q=0.2", "application/json"),
        ("image/png", "text/html"),
        ("application/json;q=nonsense, text/markdown;q=0.001", "text/markdown"),
        ("application/json;q=5", "application/json"),
        (";;;,,,q=1", "text/html"),
    ],
)
def test_the_heaviest_range_that_fits_decides(accept: str, wanted: str) -> None:
    assert preferred(accept, OFFERS) == wanted


def test_of_equals_the_first_offer_is_chosen() -> None:
    assert preferred("*/*", ("application/json", "text/html")) == "application/json"


@given(st.text(max_size=2000))
def test_any_header_chooses_one_of_the_offers(accept: str) -> None:
    assert preferred(accept, OFFERS) in OFFERS
