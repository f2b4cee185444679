"""Laws of whose request it is, for any chain of proxies."""

from ipaddress import ip_address, ip_network
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.app.application import Application
from tests.support.fakes.clock import FrozenClock

OURS = "10.0.0.0/8"
PROXIES = st.ip_addresses(v=4, network=OURS).map(str)
STRANGERS = st.ip_addresses(v=4).map(str).filter(lambda a: ip_address(a) not in ip_network(OURS))
WORDS = st.one_of(PROXIES, STRANGERS, st.text("abc.:0 ", min_size=1, max_size=80))


async def nothing(*_: object) -> None:
    """No framework: only the address is asked for."""


def parts(settings: SimpleNamespace) -> SimpleNamespace:
    """What the application is made of before its first request."""
    return SimpleNamespace(
        settings=settings,
        clock=FrozenClock(),
        quota_lease=None,
        api_keys=None,
        logins=None,
        sessions=SimpleNamespace(owner_of=None),
        course=SimpleNamespace(run_of=None),
    )


def client(peer: str, *lines: str, trusted: tuple[str, ...] = (OURS,)) -> str:
    settings = SimpleNamespace(
        anonymous_per_minute=1,
        keyed_per_minute=1,
        guesses_per_minute=1,
        cors_origins=(),
        trusted_proxies=trusted,
    )
    app: Any = parts(settings)
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in lines]
    lane: Any = SimpleNamespace()
    edge = Application(app, nothing, (), lane)
    return edge.client_of((peer, 1) if peer else None, headers)


@given(STRANGERS, st.lists(WORDS, max_size=5))
def test_a_stranger_is_whoever_called_whatever_he_forwards(peer: str, hops: list[str]) -> None:
    assert client(peer, ",".join(hops)) == peer


@given(PROXIES, st.lists(WORDS, max_size=5))
def test_without_configured_proxies_nobody_is_believed(peer: str, hops: list[str]) -> None:
    assert client(peer, ",".join(hops), trusted=()) == peer


@given(PROXIES, st.lists(WORDS, max_size=4), STRANGERS, st.lists(PROXIES, max_size=3))
def test_what_stands_before_the_last_stranger_changes_nothing(
    peer: str, invented: list[str], caller: str, behind: list[str]
) -> None:
    """A caller may write what it likes; each of our proxies adds whom it saw to the right."""
    assert client(peer, ",".join([*invented, caller, *behind])) == caller


@given(PROXIES, st.ip_addresses().map(str), st.integers(0, 65535))
def test_a_port_that_a_proxy_writes_makes_no_other_caller(
    peer: str, caller: str, port: int
) -> None:
    shown = f"[{caller}]" if ":" in caller else caller
    assert client(peer, f"{shown}:{port}") == client(peer, shown) == client(peer, caller)


@given(PROXIES, STRANGERS, st.text("abc._:-[] ", min_size=1, max_size=20).filter(str.strip))
def test_what_is_no_address_is_the_one_that_said_so(peer: str, caller: str, word: str) -> None:
    """A word of the caller's choice would be a limit of its own for each."""
    told = [f"{word}%", f"{caller}:5x", f"[{caller}", f"{caller}]:1", f"x{caller}:1"]
    assert {client(peer, one) for one in told} == {peer}
    assert client(peer, f"{word}%, {peer}:80") == peer
    assert client(peer, f"{word}%, {caller}:80") == caller


@given(PROXIES, st.lists(WORDS, max_size=5), st.data())
def test_lines_and_words_are_one_list(peer: str, hops: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(hops)))
    lines = [",".join(part) for part in (hops[:cut], hops[cut:])]
    assert client(peer, *lines) == client(peer, ",".join(hops))


@given(PROXIES, st.lists(WORDS, max_size=5))
def test_an_address_is_short(peer: str, hops: list[str]) -> None:
    assert len(client(peer, ",".join(hops))) <= 64


def test_a_caller_without_an_address_is_somebody() -> None:
    """A Unix socket has no peer name."""
    app: Any = parts(
        SimpleNamespace(
            anonymous_per_minute=1,
            keyed_per_minute=1,
            guesses_per_minute=1,
            cors_origins=(),
            trusted_proxies=(),
        )
    )
    lane: Any = SimpleNamespace()
    assert Application(app, nothing, (), lane).client_of(None, [])
