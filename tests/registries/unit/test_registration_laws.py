"""Laws of reading registration files: nothing raises, work is bounded, order says nothing."""

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.registries.documents import RegistrationFiles
from assay.registries.model import FOUND_CHARS_MAX, PROBLEMS_MAX
from assay.registries.ports import Document, DocumentUnavailable
from assay.registries.registration import NotRegistration, parse_registration
from assay.registries.registration_json import BYTES_MAX
from tests.registries.unit.test_registration_vectors import VECTORS, text_of
from tests.support.fakes.clock import FrozenClock

LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
WORD = st.sampled_from(
    [
        "name",
        "Name",
        "type",
        "endpoint",
        "url",
        "URL",
        "uri",
        "value",
        "services",
        "endpoints",
        "service",
        "agentId",
        "agent_id",
        "tokenId",
        "agentRegistry",
        "registrations",
        "image",
        "supportedTrust",
        "x402Support",
        "x402support",
        "x402",
        "active",
        "data",
        "skills",
        "openapi",
        "remotes",
        "mcpServers",
        "accepts",
        "x402Version",
        "locators",
        "https://a.example/x",
        "0x16",
        "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432",
        "TBD",
        "true",
        "{}",
        "[[1]]",
    ]
)
TEXT = WORD | st.text(max_size=12)
VALUE = st.recursive(
    LEAF | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=25,
)
FILE = st.dictionaries(TEXT, VALUE, max_size=8)
VALID = [row for _, row in VECTORS if "refused" not in row and "as" not in row]


class Host:
    """Has one document, or none."""

    def __init__(self, body: bytes | None) -> None:
        self._body = body

    async def fetch(self, uri: str) -> Document:
        del uri
        if self._body is None:
            raise DocumentUnavailable("there is none")
        return Document(self._body)


def shuffled(value: Any, random: Random) -> Any:
    """The same value, the members of every object in another order."""
    if isinstance(value, dict):
        members = [(key, shuffled(one, random)) for key, one in value.items()]
        random.shuffle(members)
        return dict(members)
    return [shuffled(one, random) for one in value] if isinstance(value, list) else value


def result(value: Any) -> Any:
    try:
        return parse_registration(json.dumps(value).encode(), "https://a.example/agent.json")
    except NotRegistration as refused:
        return str(refused)


@given(FILE, st.randoms(use_true_random=False))
def test_the_order_of_members_says_nothing(value: dict[str, Any], random: Random) -> None:
    assert result(shuffled(value, random)) == result(value)


@pytest.mark.parametrize("row", VALID, ids=[row["name"] for row in VALID])
def test_the_order_of_members_says_nothing_of_any_variant(row: dict[str, Any]) -> None:
    with suppress(ValueError):
        value = json.loads(text_of(row))
        assert result(shuffled(value, Random(7))) == result(value)


@given(st.text(max_size=200) | WORD, st.none() | st.binary(max_size=200))
async def test_no_token_uri_and_no_document_raises(uri: str, body: bytes | None) -> None:
    found, why = await RegistrationFiles(Host(body), FrozenClock()).read(uri)
    assert (found is None) == (why is not None)


@given(VALUE)
def test_what_is_noted_is_bounded_and_shows(value: object) -> None:
    found = result(value)
    if isinstance(found, str):
        assert found.endswith(".")
        return
    assert len(found.problems) <= PROBLEMS_MAX
    for one in found.problems:
        assert one.sentence.isprintable()
        assert len(one.found) <= 2 * FOUND_CHARS_MAX + 60
    json.dumps(found.raw, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "unit",
    [
        "/*",
        "//\n",
        "```\n",
        ", ",
        ",\n",
        '"\\',
        '\\"',
        '"',
        "{",
        "[",
        "\\ud800",
        "*/",
        '"",',
        "/*/",
    ],
)
@pytest.mark.parametrize(
    "before", ["", "{", '{"a":"', "```json\n", '{"services":[', '{"services":"']
)
def test_the_largest_hostile_text_is_read_in_bounded_work(before: str, unit: str) -> None:
    """A quadratic pattern would not end: each is as large as a file may be."""
    room = BYTES_MAX - len(before)
    with suppress(NotRegistration):
        parse_registration((before + unit * (room // len(unit))).encode())
