"""What a receipt proves: this authorisation was used, and its own transfer paid us."""

from dataclasses import replace
from typing import Any

import pytest

from assay.chains.evm.abi import address_word, word
from assay.common.addresses import keccak256
from assay.payments.model import LedgerEntry
from assay.payments.x402.eip3009 import CANCELLED, event_of, gas_spent, pays
from tests.payments.unit.test_x402_vectors import VECTORS, entry

USED = "0x" + keccak256(b"AuthorizationUsed(address,bytes32)").hex()
TRANSFER = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
APPROVAL = "0x" + keccak256(b"Approval(address,address,uint256)").hex()
PAYER, SELLER, OTHER = ("0x" + digit * 40 for digit in "abc")
ONE, TWO = "0x" + "11" * 32, "0x" + "22" * 32
ENTRY: LedgerEntry = replace(
    entry(VECTORS["receipts"][0]), payer=PAYER, pay_to=SELLER, nonce=ONE, amount=10_000
)


def log(*topics: str, amount: int | None = None, asset: str = ENTRY.asset) -> dict[str, Any]:
    data = "0x" if amount is None else "0x" + word(amount).hex()
    return {"address": asset, "topics": list(topics), "data": data}


def used(nonce: str, payer: str = PAYER, **where: str) -> dict[str, Any]:
    return log(USED, "0x" + address_word(payer).hex(), nonce, **where)  # type: ignore[arg-type]


def moved(to: str, amount: int = 10_000, payer: str = PAYER, **where: str) -> dict[str, Any]:
    who = ("0x" + address_word(one).hex() for one in (payer, to))
    return log(TRANSFER, *who, amount=amount, **where)  # type: ignore[arg-type]


ELSEWHERE = log(APPROVAL, asset="0x" + "99" * 20)
PAYS: dict[str, list[dict[str, Any]]] = {
    "alone": [used(ONE), moved(SELLER)],
    "among others": [used(TWO), moved(OTHER), used(ONE), moved(SELLER), moved(OTHER)],
    "other contracts between": [used(ONE), ELSEWHERE, moved(SELLER)],
    "in capitals": [{**used(ONE), "address": ENTRY.asset.upper()}, moved(SELLER)],
}
PAYS_NOT: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "a transfer alone": [moved(SELLER)],
    "used alone": [used(ONE)],
    "another's nonce": [used(TWO), moved(SELLER)],
    "another's transfer": [used(ONE), moved(PAYER), used(TWO), moved(SELLER)],
    "another's transfer before": [used(TWO), moved(SELLER), used(ONE), moved(PAYER)],
    "turned round": [moved(SELLER), used(ONE)],
    "to somebody else": [used(ONE), moved(OTHER)],
    "too little": [used(ONE), moved(SELLER, 9_999)],
    "too much": [used(ONE), moved(SELLER, 10_001)],
    "another payer": [used(ONE, payer=OTHER), moved(SELLER, payer=OTHER)],
    "another asset": [used(ONE, asset="0x" + "99" * 20), moved(SELLER, asset="0x" + "99" * 20)],
}


@pytest.mark.parametrize("name", PAYS)
def test_the_transfer_of_this_authorisation_pays(name: str) -> None:
    assert pays({"status": "0x1", "logs": PAYS[name]}, ENTRY)
    assert not pays({"status": "0x0", "logs": PAYS[name]}, ENTRY)


@pytest.mark.parametrize("name", PAYS_NOT)
def test_no_other_transfer_pays(name: str) -> None:
    """One payment in a transaction of several would else be counted for all of them."""
    assert not pays({"status": "0x1", "logs": PAYS_NOT[name]}, ENTRY)


@pytest.mark.parametrize(
    "odd", [None, [], "x", {}, {"status": "0x1"}, {"status": "0x1", "logs": 5}]
)
def test_what_is_no_receipt_proves_nothing(odd: Any) -> None:
    assert not pays(odd, ENTRY)
    assert not pays({"status": "0x1", "logs": [odd]}, ENTRY)
    assert not pays({"status": "0x1", "logs": [used(ONE), {"address": ENTRY.asset}]}, ENTRY)


@pytest.mark.parametrize("data", ["-0x2710", "0x_2710", " 0x2710", "0X2710", "10000", "0x2710\n"])
def test_an_amount_that_is_no_plain_number_pays_nothing(data: str) -> None:
    logs = [used(ONE), {**moved(SELLER), "data": data}]
    assert not pays({"status": "0x1", "logs": logs}, ENTRY)


def test_the_event_of_a_receipt_is_of_this_authorisation_alone() -> None:
    cancelled = log(CANCELLED, "0x" + address_word(PAYER).hex(), ONE)
    other = log(CANCELLED, "0x" + address_word(PAYER).hex(), TWO)
    foreign = {**cancelled, "address": "0x" + "99" * 20}

    def event(*logs: Any, status: str = "0x1") -> str:
        return event_of({"status": status, "logs": list(logs)}, ENTRY)

    assert event(other, cancelled) == CANCELLED
    assert event(cancelled, used(ONE)) == event(used(ONE)) == USED
    assert {event(), event(other), event(foreign), event(cancelled, status="0x0")} == {""}
    assert event_of(None, ENTRY) == event_of({"status": "0x1", "logs": "0x"}, ENTRY) == ""


@pytest.mark.parametrize(
    ("more", "wei"),
    [
        ({}, 62_432 * 10**7),
        ({"l1Fee": hex(10**12)}, 62_432 * 10**7 + 10**12),  # Base: writing it to Ethereum
        ({"l1Fee": "junk"}, 62_432 * 10**7),
        ({"gasUsed": None}, None),
        ({"effectiveGasPrice": "-0x1"}, None),
    ],
)
def test_a_settlement_costs_its_gas_and_what_the_chain_takes_besides(
    more: dict[str, Any], wei: int | None
) -> None:
    receipt = {"gasUsed": hex(62_432), "effectiveGasPrice": hex(10**7), **more}
    assert gas_spent(receipt) == wei
