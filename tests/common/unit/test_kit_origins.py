"""An origin has one spelling, the one browsers send."""

import pytest

from assay.common.http_heads import authority_of, canonical_origin, origin_of
from assay.wrappers.origin import WrapperOrigin


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://a.example", "https://a.example"),
        ("HTTPS://A.Example:443", "https://a.example"),
        ("http://a.example:80", "http://a.example"),
        ("http://a.example:443", "http://a.example:443"),
        ("http://[::1]:8787", "http://[::1]:8787"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        *((text, None) for text in ("a.example", "https://", "https://a/b", "https://a?b", "null")),
        *((text, None) for text in ("https://a b", "https://u@a", "https://a:x", "*", "")),
    ],
)
def test_the_spelling_of_an_origin(text: str, origin: str | None) -> None:
    assert canonical_origin(text) == origin


def test_an_address_with_a_path_has_the_origin_of_its_host() -> None:
    assert origin_of("https://A.example:443/assay") == "https://a.example"


@pytest.mark.parametrize(
    ("scheme", "host", "authority"),
    [
        ("https", "A.example", "a.example"),
        ("https", "a.example:443", "a.example"),
        ("https", "a.example.", "a.example"),
        ("https", "a.example.:443", "a.example"),
        ("http", "a.example:443", "a.example:443"),
        ("http", "[::1]:80", "[::1]"),
        ("http", "[::1]", "[::1]"),
        ("http", "", ""),
    ],
)
def test_the_spelling_of_a_host(scheme: str, host: str, authority: str) -> None:
    assert authority_of(scheme, host) == authority


def test_wrappers_and_app_are_served_at_one_host_each_or_both_at_every_host() -> None:
    own = WrapperOrigin.of("https://app.example", "https://wrap.example")
    assert not own.is_shared
    for host in ("wrap.example", "WRAP.example:443"):
        assert own.serves_wrappers(host)
        assert not own.serves_app(host)
    for host in ("app.example", "wrap.example:80", "x", ""):
        assert own.serves_app(host)
        assert not own.serves_wrappers(host)
    for url in (None, "https://app.example"):
        shared = WrapperOrigin.of("https://app.example", url)
        assert shared.is_shared
        assert shared.serves_app("x")
        assert shared.serves_wrappers("x")
