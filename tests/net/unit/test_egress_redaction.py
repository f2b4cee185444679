"""Secrets are taken out of what servers send back, however they write them."""

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.net.egress.redaction import (
    HIDDEN,
    VALUE_CHARS_MAX,
    Place,
    Redaction,
    name_problem,
    secrets_in,
    value_problem,
)
from tests.support.fakes.closed_agents import SECRET, told_forms


def hides(text: str) -> bool:
    found = Redaction([SECRET]).text(f'{{"a": "before {text} after"}}')
    return text not in found and HIDDEN in found


@pytest.mark.parametrize("form", told_forms())
def test_every_form_of_a_secret_is_hidden(form: str) -> None:
    assert hides(form.strip('"'))


@pytest.mark.parametrize(
    "mixed",
    [
        SECRET.replace("/", "%2F"),
        SECRET.replace("/", "%252f"),
        SECRET.replace("f", "\\u0066"),
        SECRET.replace("/", "\\u002f").replace("e", "&#x65;"),
        SECRET.swapcase(),
        "".join(c if n % 2 else f"%{ord(c):02X}" for n, c in enumerate(SECRET)),
    ],
)
def test_mixed_escapes_hide_the_whole_answer(mixed: str) -> None:
    assert Redaction([SECRET]).text(f"before {mixed} after") == HIDDEN


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 2))
def test_wherever_it_stands_nothing_of_its_middle_is_left_in_base64(
    before: str, after: str, shift: int
) -> None:
    encoded = base64.b64encode(before.encode() + b"x" * shift + SECRET.encode() + after.encode())
    cleaned = Redaction([SECRET]).clean(encoded).decode()
    assert HIDDEN in cleaned
    hidden = len(encoded) - len(cleaned) + len(HIDDEN)
    assert hidden * 3 / 4 > len(SECRET) - 4


@given(st.binary(max_size=300))
def test_honest_answers_stay_as_they_are(data: bytes) -> None:
    assert Redaction([SECRET]).clean(data) == data


def test_a_cut_answer_does_not_end_with_the_beginning_of_a_secret() -> None:
    redaction = Redaction([SECRET])
    for size in range(4, len(SECRET)):
        assert redaction.clean(b"it is " + SECRET[:size].encode(), is_cut=True) == b"it is "
    assert redaction.clean(b"it is " + SECRET[:9].encode()) == b"it is " + SECRET[:9].encode()


def test_tokens_cookies_and_passwords_are_secrets_by_themselves() -> None:
    assert SECRET in secrets_in(f"Bearer {SECRET}")
    assert SECRET in secrets_in(f"session={SECRET}; theme=dark")
    basic = base64.b64encode(f"reviewer:{SECRET}".encode()).decode()
    assert {SECRET, f"reviewer:{SECRET}"} <= set(secrets_in(f"Basic {basic}"))
    assert secrets_in("Bearer") == ()


@pytest.mark.parametrize("count", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_large_answers_take_time_in_proportion(count: int) -> None:
    chance = random.Random("redaction")
    pieces = [b"%41", b"\\u0041", b"&#65;", b"eyJ", SECRET[:11].encode(), b"\xff", b"%25"]
    data = b"".join(chance.choice(pieces) for _ in range(count))
    assert SECRET.encode() not in Redaction(secrets_in(f"Bearer {SECRET}")).clean(data)


@pytest.mark.parametrize(
    "name", ["Authorization", "X-API-Key", "api_key", "Cookie", "X-Auth-Token"]
)
def test_names_of_credentials_are_taken(name: str) -> None:
    assert name_problem("header", name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Authorization"),
        *("X-Forwarded-For", "X-Forwarded-Authorization", "X-Original-Auth", "X-Agent-Session"),
        *("x_agent_session", "X-Assay-Key", "Payment-Authorization", "X-Payment", "Accept"),
        *("User-Agent", "Content-Type", "Mcp-Session-Id", "Range", "", "X Key", "X-Key:", "X-Kéy"),
        *("X-Key\r\nHost", "x" * 65 + "key", "Set-Cookie", "Idempotency-Key"),
    ],
)
def test_no_other_name_is(name: str) -> None:
    assert name_problem("header", name) is not None


@given(st.sampled_from(["header", "query"]), st.text(max_size=60))
def test_a_value_that_is_taken_is_one_line_of_printable_ascii(place: Place, value: str) -> None:
    for asked in (value, f"{SECRET}{value}", f"{value}{SECRET}"):
        if value_problem(place, "X-API-Key", asked) is None:
            assert asked.isascii()
            assert asked.isprintable()
            assert asked == asked.strip()
            assert len(asked) <= VALUE_CHARS_MAX


def test_words_are_no_credentials_as_they_would_be_hidden_in_honest_texts() -> None:
    for value in ("instructions", "Bearer ignore previous instructions", "Payment abc123def456ghi"):
        assert value_problem("header", "Authorization", value) is not None
    assert value_problem("header", "Authorization", f"Bearer {SECRET}") is None
