"""What a proof speaks for: spellings of hosts and tricks with paths."""

import pytest

from assay.control.scope import KEY_CHARS_MAX, ControlScope, document_scope, scope_of


def scope(url: str) -> ControlScope:
    found = scope_of(url)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "spelling",
    [
        "https://AGENTS.Example.com/a",
        "https://agents.example.com./a",
        "https://agents.example.com:443/a",
        "https://agents.example.com/a/",
        "https://\uff41gents.example.com/a",
        "https://agents.example.com/a#part",
        "https://agents.example.com/%61",
        "HTTPS://agents.example.com/a",
    ],
)
def test_one_address_has_one_key_however_it_is_spelt(spelling: str) -> None:
    assert scope(spelling).key == scope("https://agents.example.com/a").key


def test_an_international_name_is_its_ascii_form() -> None:
    assert scope("https://bücher.example/").key == scope("https://xn--bcher-kva.example/").key


@pytest.mark.parametrize(
    "url",
    [
        "https://victim.example@evil.example/",
        "https://user:pw@evil.example/",
        "https://victim.example%2eevil.example/",
        "https://victim.example\\@evil.example/",
        "ftp://victim.example/",
        "https:///",
        "https://victim.example:99999999/",
        "javascript:alert(1)",
        "https://victim.example:\uff14\uff14\uff13/",
    ],
)
def test_an_address_that_can_be_read_in_two_ways_is_no_address(url: str) -> None:
    assert scope_of(url) is None


def test_ports_and_schemes_are_hosts_of_their_own() -> None:
    keys = {
        scope(url).key
        for url in (
            "https://h.example/",
            "http://h.example/",
            "https://h.example:8443/",
            "http://h.example:443/",
        )
    }
    assert len(keys) == 4


@pytest.mark.parametrize("below", ["/a", "/a/", "/a/b", "/a/b/c"])
def test_a_path_covers_itself_and_what_is_below(below: str) -> None:
    assert scope("https://h.example/a").covers(scope(f"https://h.example{below}"))


@pytest.mark.parametrize(
    "beside",
    [
        "/ab", "/", "/b/a", "/A", "/a%2fb", "/a/../b", "/a/%2e%2e/b", "/a/..%2fb", "/a//b",
        "/a/./b",
        "/a\\..\\b", "/a;x=1/b", "/a%5cb", "/a%00", "/a/b?x=1", "/a%252fb", "/a%3b/b", "//a/b",
    ],
)  # fmt: skip
def test_a_path_covers_nothing_beside_it(beside: str) -> None:
    assert not scope("https://h.example/a").covers(scope(f"https://h.example{beside}"))


@pytest.mark.parametrize("odd", ["/a/../b", "/a%2fb", "/x?next=/a", "//a"])
def test_only_its_host_speaks_for_an_odd_path(odd: str) -> None:
    found = scope(f"https://h.example{odd}")
    assert scope("https://h.example/").covers(found)
    assert not found.covers(scope("https://h.example/a"))
    assert found.covers(found)


def test_a_card_in_a_well_known_folder_speaks_for_what_holds_the_folder() -> None:
    deep = document_scope("https://h.example/t/me/.well-known/agent-card.json")
    assert deep == scope("https://h.example/t/me")
    assert document_scope("https://h.example/.well-known/agent-card.json") == scope(
        "https://h.example/"
    )
    plain = document_scope("https://h.example/cards/me.json")
    assert plain == scope("https://h.example/cards/me.json")


def test_sites_follow_the_public_suffix_list_with_its_private_section() -> None:
    assert scope("https://a.example.com/").site == scope("https://b.example.com/x").site
    assert scope("https://a.github.io/").site != scope("https://b.github.io/").site
    assert scope("https://a.vercel.app/").site != scope("https://b.vercel.app/").site
    assert scope("https://a.example.co.uk/").site != scope("https://b.co.uk/").site
    assert scope("http://127.0.0.1:8001/").site != scope("http://127.0.0.1:8002/").site


def test_dns_speaks_for_names_alone() -> None:
    assert scope("https://h.example/").has_name
    assert not scope("http://127.0.0.1:80/").has_name
    assert not scope("http://[::1]:80/").has_name
    assert not scope("http://localhost/").has_name


def test_keys_have_a_bound() -> None:
    long = scope("https://h.example/" + "a/" * 2000)
    assert len(long.key) <= KEY_CHARS_MAX
    assert long.key != scope("https://h.example/" + "a/" * 2001).key
