"""Whose a payment is: nothing that stands on a chain, and nothing empty, makes a buyer."""

from typing import Any, cast

import pytest

from assay.payments.model import LedgerEntry
from assay.payments.ports import PaidRequest, is_buyer, marked, token_of, unmarked

PAYER, TOKEN = "0x" + "ab" * 20, "k" * 22
SIGNED = {"signature": "0x12", "authorization": {"from": PAYER}}


def entry(token: str = "", caller: str = "10.0.0.1", **fields: Any) -> LedgerEntry:
    credential = fields.get("credential", marked(SIGNED, token, caller))
    return cast("LedgerEntry", type("E", (), {"payer": PAYER, "credential": credential}))


def request(caller: str = "", speaker: str | None = None) -> PaidRequest:
    return PaidRequest("GET", "", (), b"", caller, speaker)


def accepted(token: object) -> dict[str, Any]:
    return {"extra": {"name": "USDC", "token": token}}


def test_the_address_the_token_or_the_payers_session_is_enough() -> None:
    token = token_of(accepted(TOKEN))
    paid = entry(token)
    assert is_buyer(paid, "", request("10.0.0.1"))
    assert is_buyer(paid, token, request("10.0.0.2"))
    assert is_buyer(paid, "", request("10.0.0.2", PAYER))


@pytest.mark.parametrize(
    ("paid", "token", "asked"),
    [
        (entry(), "", request("10.0.0.2")),
        (entry(), "", request("10.0.0.2", "0x" + "cd" * 20)),
        (entry(caller=""), "", request("")),
        (entry(token_of(accepted(TOKEN))), token_of(accepted("x" * 22)), request("10.0.0.2")),
        (entry(credential=SIGNED), "", request("")),
        (entry(credential={"buyer": [PAYER]}), "", request("10.0.0.1")),
    ],
)
def test_everybody_else_is_a_stranger(paid: LedgerEntry, token: str, asked: PaidRequest) -> None:
    assert not is_buyer(paid, token, asked)


@pytest.mark.parametrize("given", [None, 5, "", "short", "k" * 129, ["k" * 22], {}])
def test_what_is_no_token_of_ours_is_none(given: object) -> None:
    assert token_of(accepted(given)) == ""
    assert token_of(None) == token_of({}) == token_of({"extra": given}) == ""


def test_the_ledger_keeps_no_token_and_nobody_else_is_told_of_the_buyer() -> None:
    token = token_of(accepted(TOKEN))
    kept = marked(SIGNED, token, "10.0.0.1")
    assert TOKEN not in str(kept)
    assert unmarked(kept) == SIGNED
    assert token_of(accepted("\ud800" * 22))  # half a pair: text of its own, and no fault
