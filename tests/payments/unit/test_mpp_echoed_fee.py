"""The fee of a payment is that of the challenge it echoes, in our own form or not at all."""

import base64
import json
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.payments.model import DirectFee, Quote
from assay.payments.mpp.charges import FEE_RATE, as_asked
from tests.simulation.payers import quote_of

PLATFORM, EARLIER = "0x" + "ab" * 20, "0x" + "cd" * 20
SPLIT = {"recipient": EARLIER, "amount": "250"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@dataclass
class Challenge:
    request: str
    opaque: str | None


@dataclass
class Echo:
    """A credential, as far as its fee goes."""

    challenge: Challenge


def text_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def echo(splits: object, rate: object = "0.025") -> Any:
    details = {} if splits is None else {"methodDetails": {"splits": splits}}
    return Echo(Challenge(text_of({"amount": "10000", **details}), text_of({FEE_RATE: rate})))


def quote(**fields: Any) -> Quote:
    given = {"direct_fee": DirectFee(PLATFORM, 500), "fee_rate": Decimal("0.05")}
    return replace(quote_of("p", Random(1)), **{**given, **fields})


def test_an_earlier_fee_and_an_earlier_wallet_are_taken_as_they_were_asked_for() -> None:
    found = as_asked(quote(), echo([SPLIT]))
    assert (found.direct_fee, found.fee_rate) == (DirectFee(EARLIER, 250), Decimal("0.025"))
    found = as_asked(quote(direct_fee=None, fee_rate=None), echo([SPLIT]))
    assert (found.direct_fee, found.fee_rate) == (DirectFee(EARLIER, 250), Decimal("0.025"))


def test_a_challenge_from_before_there_was_a_fee_has_none() -> None:
    found = as_asked(quote(), echo(None))
    assert (found.direct_fee, found.fee_rate) == (None, None)
    kept = as_asked(quote(direct_fee=None), echo(None))  # the platform is the payee
    assert (kept.direct_fee, kept.fee_rate) == (None, Decimal("0.05"))


@pytest.mark.parametrize(
    "odd",
    [
        *(echo(value) for value in ([], [SPLIT, SPLIT], {}, "x", 5, [5], [None], [[]])),
        *(echo([{**SPLIT, "amount": value}]) for value in ("-1", "1.5", "9" * 31, "", 5.5, None)),
        *(echo([{**SPLIT, "recipient": value}]) for value in ("0x12", EARLIER.upper(), None, 5)),
        *(echo([SPLIT], value) for value in ("2", "-0.1", "1e-3", "NaN", "0." + "1" * 31, None)),
        Echo(Challenge(text_of({"methodDetails": {"splits": [SPLIT]}}), None)),
        Echo(Challenge(text_of({"methodDetails": {"splits": [SPLIT]}}), "!!")),
    ],
)
def test_what_we_never_asked_for_changes_nothing(odd: Any) -> None:
    """It is refused then: the quote is another one than the challenge's."""
    assert as_asked(quote(), odd) == quote()


@pytest.mark.parametrize("request_text", ["", "!!", "e30", "bnVsbA", "W10", "ä"])
def test_a_request_of_no_form_asks_for_no_fee(request_text: str) -> None:
    assert as_asked(quote(), Echo(Challenge(request_text, None))).direct_fee is None


@given(splits=JSON, rate=JSON)
def test_nothing_that_is_echoed_makes_a_fault(splits: object, rate: object) -> None:
    for some in (splits, [splits], [{**SPLIT, "amount": splits}], [{**SPLIT, "recipient": splits}]):
        assert as_asked(quote(), echo(some, rate)).amount == quote().amount
