"""Whatever a facilitator says, only the chain says who has paid, and nobody is served unpaid."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.common.json import JsonObject
from assay.payments.model import PaymentState, PaymentsUnavailable
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from tests.payments.facilitator import plain, said_so
from tests.payments.sales import PAID, STRANGER, nothing, sale
from tests.payments.world import Terms
from tests.simulation.chain import NETWORK

REMOTE = Terms(has_facilitator=True)
JUNK = "0x" + "77" * 32


def answering(path: str, answer: Callable[[], httpx2.Response | Exception]) -> Any:
    """A script that answers one path so, and does its work elsewhere."""

    def script(asked: str, _body: JsonObject) -> httpx2.Response | None:
        if asked != path:
            return None
        found = answer()
        if isinstance(found, Exception):
            raise found
        return found

    return script


def broken() -> Exception:
    return httpx2.ConnectError("refused")


UNUSABLE: Mapping[str, Callable[[], httpx2.Response | Exception]] = {
    "no JSON": lambda: plain(b"<html>", 200),
    "a list": lambda: said_so([True]),
    "another object": lambda: said_so({"ok": True}, 500),
    "no connection": broken,
    "too large": lambda: said_so({"isValid": True, "more": "x" * 10**6}),
    "no boolean": lambda: said_so({"isValid": "yes"}),
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_a_payment_that_cannot_be_verified_buys_nothing_yet_and_is_bought_with_later(
    folder: Path, how: str
) -> None:
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/verify", UNUSABLE[how])
        reply = made.show(process)
        assert reply is not None
        assert (reply.status, reply.code) == (503, "payments_unavailable")
        assert made.world.upstream.keys == []
        assert made.world.row().state is PaymentState.RELEASED
        made.world.facilitator.script = lambda _path, _body: None
        made.goes_on(5, process)
        made.is_served_and_paid_once(made.comes_again(process))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"isValid": False, "invalidReason": "insufficient_funds"}, "insufficient_funds"),
        ({"isValid": False, "invalidReason": "<b>no</b>"}, "invalid_payload"),
        ({"isValid": False, "invalidReason": 7}, "invalid_payload"),
        ({"isValid": True, "payer": STRANGER}, "invalid_payload"),
    ],
)
def test_a_payment_that_a_facilitator_does_not_accept_is_refused_by_its_word(
    folder: Path, answer: JsonObject, reason: str
) -> None:
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/verify", lambda: said_so(answer))
        reply = made.show(process)
        assert reply is not None
        assert (reply.status, reply.reason) == (402, reason)
        assert made.world.upstream.keys == []
        assert made.world.taken() == 0


CLAIMS: Mapping[str, Any] = {
    "no transaction": {"success": True},
    "junk": {"success": True, "transaction": JUNK},
    "no hash": {"success": True, "transaction": "0xzz"},
}


@pytest.mark.parametrize("said", CLAIMS)
def test_a_facilitator_that_claims_to_have_settled_is_not_believed(folder: Path, said: str) -> None:
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/settle", lambda: said_so(CLAIMS[said]))
        reply = made.show(process)
        assert reply is not None
        assert (reply.status, reply.code) == (503, "settlement_pending")
        row = made.world.row()
        assert (row.state, row.look.is_used, row.attempt.transaction) == (
            PaymentState.PENDING,
            True,
            "",
        )
        made.ends(process)
        made.books_agree(process)
        made.is_charged_nothing(made.comes_again(process))


@pytest.mark.parametrize("said", CLAIMS)
def test_what_the_chain_shows_later_of_a_claim_is_served(folder: Path, said: str) -> None:
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/settle", lambda: said_so(CLAIMS[said]))
        made.show(process)
        made.world.chain.submit_plain(STRANGER, made.signed)
        made.is_served_and_paid_once(made.comes_again(process))
        made.ends(process)
        made.books_agree(process)


UNSURE: Mapping[str, Callable[[], httpx2.Response | Exception]] = {
    "no connection": broken,
    "pending": lambda: said_so({"success": False, "errorReason": "settlement_pending"}),
    "no reason": lambda: said_so({"success": False}),
    "a transaction": lambda: said_so(
        {"success": False, "errorReason": "timeout", "transaction": JUNK}
    ),
}


@pytest.mark.parametrize("how", UNSURE)
def test_what_may_have_settled_is_neither_refused_nor_charged_twice(folder: Path, how: str) -> None:
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/settle", UNSURE[how])
        reply = made.show(process)
        assert reply is not None
        assert (reply.status, reply.code) == (503, "settlement_pending")
        made.world.facilitator.script = lambda _path, _body: None
        made.is_served_and_paid_once(made.comes_again(process))
        made.ends(process)
        made.books_agree(process)


@pytest.mark.parametrize("endpoints", [1, 2])
def test_a_refusal_to_settle_what_a_stranger_has_submitted_is_a_payment(
    folder: Path, endpoints: int
) -> None:
    def refuse_after_it_was_submitted() -> httpx2.Response:
        made.world.chain.submit_plain(STRANGER, made.signed)
        made.world.chain.mine()
        return said_so({"success": False, "errorReason": "invalid_transaction_state"})

    terms = Terms(has_facilitator=True, endpoints=endpoints)
    with sale(folder, terms, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/settle", refuse_after_it_was_submitted)
        made.is_served_and_paid_once(made.comes_again(process))
        assert made.world.row().state in PAID
        assert made.told[0] is not None
        assert made.told[0].status != 402


def test_a_facilitator_is_told_nothing_of_the_buyer(folder: Path) -> None:
    with sale(folder, REMOTE, nothing) as made:
        made.comes_again(made.process())
        asked = made.world.facilitator.asked
        assert [path for path, _ in asked] == ["/verify", "/settle"]
        for _, body in asked:
            payload: Any = body["paymentPayload"]
            assert set(payload["payload"]) == {"authorization", "signature"}
            assert payload["accepted"] == body["paymentRequirements"]


EXACT = {"scheme": "exact", "network": NETWORK.id}


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ({"kinds": [EXACT]}, {NETWORK.id}),
        ({"kinds": [{**EXACT, "network": NETWORK.short_name}]}, {NETWORK.id}),
        ({"kinds": [{**EXACT, "scheme": "upto"}, 7, {**EXACT, "network": 7}]}, set()),
        ({"kinds": [{**EXACT, "network": "x" * 65}, {**EXACT, "network": "eip155:1"}]}, set()),
        ({"kinds": [EXACT] * 1001}, None),
        ({"kinds": 7}, None),
        ([], None),
    ],
)
def test_the_networks_that_a_facilitator_lists_are_those_of_ours(
    folder: Path, body: Any, listed: set[str] | None
) -> None:
    assert supported(folder, lambda: said_so(body)) == listed


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_facilitator_that_is_down_says_nothing_of_networks(folder: Path, status: int) -> None:
    with pytest.raises(PaymentsUnavailable):
        supported(folder, lambda: said_so({}, status))
    with pytest.raises(PaymentsUnavailable):
        supported(folder, broken)


def test_a_list_without_end_is_no_list(folder: Path) -> None:
    assert supported(folder, lambda: said_so({"kinds": ["x" * 10**6]})) is None


def test_what_was_never_asked_has_nothing_to_close() -> None:
    nobody: Any = None
    asyncio.run(
        RemoteFacilitator([FacilitatorEndpoint("https://f.test")], {}, nobody, nobody, 1.0).aclose()
    )


def supported(folder: Path, answer: Callable[[], httpx2.Response | Exception]) -> Any:
    with sale(folder, REMOTE, nothing) as made:
        made.world.facilitator.script = answering("/supported", answer)
        process = made.process()
        try:
            return made.world.run(process.facilitator.supported("https://facilitator.test"))
        finally:
            made.world.run(process.facilitator.aclose())


def test_a_facilitator_that_is_slow_to_show_its_transfer_is_waited_for(folder: Path) -> None:
    def claimed_before_it_is_mined() -> httpx2.Response:
        made.world.chain.submit_plain(STRANGER, made.signed)
        return said_so({"success": True, "transaction": JUNK.upper().replace("X", "x")})

    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        made.world.facilitator.script = answering("/settle", claimed_before_it_is_mined)
        reply = made.show(process)
        assert reply is not None
        made.is_served_and_paid_once(reply)
        assert made.world.row().attempt.transaction != JUNK


def test_it_is_told_what_is_sold_when_it_verifies_and_when_it_settles(folder: Path) -> None:
    """The catalogue of one facilitator lists what it verified, that of another what it settled."""
    with sale(folder, REMOTE, nothing) as made:
        process = made.process()
        reply = made.show(process)
        assert reply is not None
        assert reply.status == 200
        verify, settle = (body for _, body in made.world.facilitator.asked)
        said: Any = verify["paymentPayload"]
        assert said["resource"]["description"] == "a quote"
        assert said["extensions"]["bazaar"]["info"]["input"]["method"] == "GET"
        assert settle["paymentPayload"] == said
