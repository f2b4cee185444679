"""Laws of what is read from chains: parsers hold against anything, sums do not depend on order."""

import json
from contextlib import suppress
from decimal import Context, Decimal
from random import Random

from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import is_address
from assay.registries import erc8004
from assay.registries.model import Feedback, summarise
from assay.registries.registration import NotRegistration, parse_registration
from tests.support.fakes.chain import Row, feedback, wallet

EXACT = Context(prec=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=20,
)
SERVICES = st.sampled_from(["services", "endpoints", "registrations", "supportedTrust"])
KEYS = SERVICES | st.sampled_from(["type", "name", "description", "image", "x402", "active"])
SERVICE = st.fixed_dictionaries({}, optional={"name": JSON, "endpoint": JSON, "version": JSON})
NEARLY = st.dictionaries(KEYS, JSON | st.lists(SERVICE | JSON, max_size=4))
ENTRIES = st.lists(
    st.builds(
        Feedback,
        client=st.sampled_from([wallet(n) for n in range(1, 6)]),
        index=st.integers(1, 2**64 - 1),
        value=st.builds(
            lambda value, decimals: Decimal(value).scaleb(-decimals),
            st.integers(-(10**20), 10**22) | st.integers(0, 100),
            st.integers(0, 18),
        ),
        decimals=st.integers(0, 18),
        tag1=st.sampled_from(["starred", "", "uptime", " Starred"]),
        tag2=st.text(max_size=5),
    ),
    max_size=30,
)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_registration_file_or_are_refused(body: bytes) -> None:
    with suppress(NotRegistration):
        parse_registration(body)


@given(NEARLY | JSON)
def test_any_json_is_a_registration_file_or_is_refused(value: object) -> None:
    with suppress(NotRegistration):
        found = parse_registration(json.dumps(value).encode())
        if isinstance(value, dict):
            assert found.raw == value
        assert len(found.services) <= 64
        assert all(problem.sentence.endswith(".") for problem in found.problems)
        for text in (found.name, found.image, *(s.endpoint for s in found.services)):
            assert "\x00" not in text
            assert "\u202e" not in text
            text.encode("utf-8")


@given(ENTRIES, st.randoms(use_true_random=False))
def test_a_reputation_is_bounded_and_does_not_depend_on_the_order(
    entries: list[Feedback], random: Random
) -> None:
    found = summarise(entries)
    shuffled = list(entries)
    random.shuffle(shuffled)
    again = summarise(shuffled)
    assert again.average_score == found.average_score
    assert (again.counted, again.discarded, again.reviewers) == (
        found.counted,
        found.discarded,
        found.reviewers,
    )
    assert found.counted + found.discarded == found.feedback_count == len(entries)
    assert (found.average_score is None) == (found.counted == 0)
    assert found.average_score is None or 0 <= found.average_score <= 100


@given(st.binary(max_size=600))
def test_any_bytes_are_an_answer_or_are_refused(data: bytes) -> None:
    for read in (
        erc8004.read_address,
        erc8004.read_addresses,
        erc8004.read_text,
        erc8004.read_feedback,
    ):
        with suppress(BadAnswer):
            read(data)


@given(st.integers(0, 2**160 - 1), st.text(max_size=200))
def test_what_the_reference_codec_writes_is_read_back(number: int, text: str) -> None:
    address = erc8004.read_address(encode(["address"], [wallet(number)]))
    assert address == (wallet(number) if number else None)
    assert address is None or is_address(address)
    assert erc8004.read_text(encode(["string"], [text])) == text


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2**160 - 1).map(wallet),
            st.integers(0, 2**64 - 1),
            st.integers(-(10**38), 10**38),
            st.integers(0, 18),
            st.text(max_size=50),
            st.text(max_size=50),
        ),
        max_size=8,
    )
)
def test_feedback_that_the_reference_codec_writes_is_read_back_exactly(rows: list[Row]) -> None:
    found = erc8004.read_feedback(feedback(rows))
    assert [
        (f.client, f.index, int(EXACT.scaleb(f.value, f.decimals)), f.decimals, f.tag1, f.tag2)
        for f in found
    ] == rows
