"""Of several facilitators another is asked only if the one before cannot have the payment."""

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.common.json import JsonObject
from assay.payments.model import PaymentState
from tests.payments.facilitator import plain, said_so
from tests.payments.outside import incoming, payment
from tests.payments.sales import Sale, nothing, sale
from tests.payments.service import Process, Reply
from tests.payments.world import Terms
from tests.simulation.chain import NETWORK

TWO = Terms(has_facilitator=True, has_second_facilitator=True)
FIRST, SECOND = "", "second.test"
REFUSED = {"success": False, "errorReason": "insufficient_funds", "transaction": ""}

Answer = httpx2.Response | Exception


def answers(made: Sale, by_path: Mapping[str, Callable[[], Answer]]) -> None:
    """Let the paths answer so; everything else does its work."""

    def script(path: str, _body: JsonObject) -> httpx2.Response | None:
        found = by_path[path]() if path in by_path else None
        if isinstance(found, Exception):
            raise found
        return found

    made.world.facilitator.script = script


def settles(made: Sale) -> list[str]:
    """The facilitators that were asked to settle, in order."""
    asked = [path for path, _ in made.world.facilitator.asked if path.endswith("/settle")]
    return [path.removesuffix("/settle") for path in asked]


def shown(made: Sale, process: Process) -> Reply:
    reply = made.show(process)
    assert reply is not None
    return reply


UNSENT: Mapping[str, Callable[[], Answer]] = {
    "refused connection": lambda: httpx2.ConnectError("refused"),
    "no connection in time": lambda: httpx2.ConnectTimeout("late"),
}
TURNED_AWAY = {
    f"status {status}": (lambda status=status: said_so({"error": "no"}, status))
    for status in (401, 403, 404, 429)
}
UNKNOWN: Mapping[str, Callable[[], Answer]] = {
    "timeout": lambda: httpx2.ReadTimeout("late"),
    "cut connection": lambda: httpx2.RemoteProtocolError("cut"),
    "status 500": lambda: said_so({"error": "no"}, 500),
    "no JSON": lambda: plain(b"<html>"),
    "no answer of the protocol": lambda: said_so({"ok": True}),
}


@pytest.mark.parametrize("how", [*UNSENT, *TURNED_AWAY, *UNKNOWN])
def test_another_one_verifies_if_the_first_does_not_answer(folder: Path, how: str) -> None:
    with sale(folder, TWO, nothing) as made:
        answer = {**UNSENT, **TURNED_AWAY, **UNKNOWN}[how]
        answers(made, {"/verify": answer, "/settle": UNSENT["refused connection"]})
        made.is_served_and_paid_once(shown(made, made.process()))
        assert settles(made) == [FIRST, SECOND]


def test_a_refusal_of_the_first_stands(folder: Path) -> None:
    with sale(folder, TWO, nothing) as made:
        refusal = {"isValid": False, "invalidReason": "insufficient_funds"}
        answers(made, {"/verify": lambda: said_so(refusal)})
        assert (shown(made, made.process()).status, settles(made)) == (402, [])


@pytest.mark.parametrize("how", [*UNSENT, *TURNED_AWAY])
def test_another_one_settles_what_the_first_cannot_have_begun(folder: Path, how: str) -> None:
    with sale(folder, TWO, nothing) as made:
        answers(made, {"/settle": {**UNSENT, **TURNED_AWAY}[how]})
        process = made.process()
        made.is_served_and_paid_once(shown(made, process))
        assert settles(made) == [FIRST, SECOND]
        made.ends(process)
        made.books_agree(process)


@pytest.mark.parametrize("how", UNKNOWN)
def test_no_other_one_is_asked_what_the_first_may_have_settled(folder: Path, how: str) -> None:
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        answers(made, {"/settle": UNKNOWN[how]})
        assert (shown(made, process).code, settles(made)) == ("settlement_pending", [FIRST])
        for _ in range(6):  # the breaker of the first is open by then
            made.goes_on(6, process)
            assert shown(made, process).status == 503
        assert set(settles(made)) == {FIRST}
        made.ends(process)
        made.books_agree(process)
        assert made.world.taken() == 0


def test_a_settlement_that_the_first_lost_and_made_is_found_on_the_chain(folder: Path) -> None:
    with sale(folder, TWO, nothing) as made:
        process = made.process()

        def settled_and_cut() -> Answer:
            made.world.chain.submit_plain("0x" + "fa" * 20, made.signed)
            return httpx2.ReadTimeout("late")

        answers(made, {"/settle": settled_and_cut})
        assert shown(made, process).code == "settlement_pending"
        answers(made, {})
        made.is_served_and_paid_once(made.comes_again(process))
        assert SECOND not in settles(made)


def test_a_refusal_by_the_second_is_none_if_the_first_may_have_the_payment(folder: Path) -> None:
    """It said 401, and settles all the same: the payer must not be sent to pay again."""
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        answers(
            made,
            {"/settle": TURNED_AWAY["status 401"], f"{SECOND}/settle": lambda: said_so(REFUSED)},
        )
        assert shown(made, process).code == "settlement_pending"
        assert made.world.row().state is PaymentState.PENDING
        made.world.chain.submit_plain("0x" + "fa" * 20, made.signed)
        made.is_served_and_paid_once(made.comes_again(process))


def test_a_refusal_by_the_second_counts_if_the_first_was_never_reached(folder: Path) -> None:
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        refusing = {f"{SECOND}/settle": lambda: said_so(REFUSED)}
        answers(made, {"/settle": UNSENT["refused connection"], **refusing})
        made.is_charged_nothing(shown(made, process))


def test_after_a_restart_no_refusal_is_believed(folder: Path) -> None:
    """The process before may have asked another one, which is settling meanwhile."""
    with sale(folder, TWO, nothing) as made:
        first = made.process()
        answers(made, {"/settle": UNKNOWN["timeout"]})
        assert shown(made, first).code == "settlement_pending"
        first.kill()
        process = made.process()
        answers(made, {"/settle": lambda: said_so(REFUSED)})
        made.goes_on(6, process)
        assert shown(made, process).status == 503
        assert made.world.row().state is PaymentState.PENDING
        made.ends(process)
        made.books_agree(process)


def test_one_that_does_not_list_the_network_is_not_asked(folder: Path) -> None:
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        exact = {"scheme": "exact", "network": NETWORK.id}
        answers(
            made,
            {
                "/supported": lambda: said_so({"kinds": []}),
                f"{SECOND}/supported": lambda: said_so({"kinds": [exact]}),
            },
        )
        for url in process.facilitator.urls:
            made.world.run(process.facilitator.supported(url))
        made.is_served_and_paid_once(shown(made, process))
        asked = [path for path, _ in made.world.facilitator.asked if "supported" not in path]
        assert asked == [f"{SECOND}/verify", f"{SECOND}/settle"]


def test_one_that_fails_is_left_out_for_a_while(folder: Path) -> None:
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        down = UNSENT["refused connection"]
        answers(made, {"/verify": down, f"{SECOND}/verify": down})
        for _ in range(4):
            assert shown(made, process).code == "payments_unavailable"
        asked = len(made.world.facilitator.asked)
        assert asked == 6
        answers(made, {})
        made.is_served_and_paid_once(made.comes_again(process))


@pytest.mark.parametrize("status", [400, 402, 409, 413, 422])
def test_answers_that_a_payment_causes_do_not_make_it_look_broken(
    folder: Path, status: int
) -> None:
    """Else any buyer could turn away the facilitator of all the others."""
    with sale(folder, TWO, nothing) as made:
        process = made.process()
        refused = {"/verify": lambda: said_so({"error": "no"}, status)}
        answers(made, {**refused, f"{SECOND}/verify": refused["/verify"]})
        for _ in range(4):
            assert shown(made, process).code == "payments_unavailable"
        assert len(made.world.facilitator.asked) == 8
        answers(made, {})
        made.is_served_and_paid_once(shown(made, process))
        assert settles(made) == [FIRST]


UNSAYABLE = {"infinity": "1e999", "half a character": '"\\ud800"', "too long": f'"{"x" * 4096}"'}
"""Texts of JSON that parsers accept, and that cannot be passed on."""


def with_extension(made: Sale, text: str) -> tuple[bytes, bytes]:
    """The header that pays, with this text of JSON in an extension."""
    name, value = payment(made.signed, extensions={"gas": {"info": ["HERE"]}, "other": 1})
    said = base64.b64decode(value).replace(b'"HERE"', text.encode())
    return name, base64.b64encode(said)


@pytest.mark.parametrize("how", UNSAYABLE)
def test_extensions_that_cannot_be_passed_on_are_left_out_and_the_payment_counts(
    folder: Path, how: str
) -> None:
    with sale(folder, TWO, nothing) as made:
        reply = made.process().call(incoming(with_extension(made, UNSAYABLE[how])))
        assert reply is not None
        assert reply.status == 200
        for path, body in made.world.facilitator.asked:
            payload: Any = body["paymentPayload"]
            assert not {"gas", "other"} & set(payload.get("extensions", {})), path


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_payment_that_is_not_json_is_asked_of_nobody(folder: Path, text: str) -> None:
    with sale(folder, TWO, nothing) as made:
        reply = made.process().call(incoming(with_extension(made, text)))
        assert reply is not None
        assert (reply.status, made.world.facilitator.asked) == (402, [])


def test_extensions_of_a_payment_reach_the_facilitator_and_no_buyer_writes_the_catalogue(
    folder: Path,
) -> None:
    given = {"gas": {"info": {"sponsor": True}}, "bazaar": {"info": "a lie"}}
    with sale(folder, TWO, nothing) as made:
        reply = made.process().call(incoming(payment(made.signed, extensions=given)))
        assert reply is not None
        assert reply.status == 200
        for path, body in made.world.facilitator.asked:
            payload: Any = body["paymentPayload"]
            assert payload["extensions"]["gas"] == given["gas"], path
            assert "a lie" not in str(body)
