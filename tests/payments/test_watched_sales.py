"""What was sold is looked at until nothing can take it back, and what was not until it cannot come.

Chains reorganise, nodes lag, and who was shown an authorisation may submit it later.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from assay.payments.model import PaymentState
from tests.payments.boundary import Fault
from tests.payments.facilitator import said_so
from tests.payments.outside import PRICE, SOLD, FakeReply
from tests.payments.sales import (
    ELSEWHERE,
    PAID,
    STRANGER,
    Sale,
    nothing,
    places,
    sale,
)
from tests.payments.service import Process
from tests.payments.world import Terms, World
from tests.simulation.chain import NETWORK, Send

DEPTH = 3


def served(made: Sale) -> Process:
    """The process that has sold it."""
    process = made.process()
    made.is_served_and_paid_once(made.comes_again(process))
    return process


def taken_back(made: Sale) -> None:
    """A reorganisation undoes the transfer, and its transaction is forgotten."""
    made.world.chain.reorganise(DEPTH, kept=0.0)
    assert made.world.taken() == 0


def watched_at(world: World) -> int | None:
    """When the row is looked at next, as the disk has it."""
    with closing(sqlite3.connect(world.path)) as connection:
        ((at,),) = connection.execute("SELECT watch_us FROM payments").fetchall()
        return at


def test_a_payment_that_is_taken_back_is_sent_again_wherever_the_watcher_is_cut(
    folder: Path,
) -> None:
    with sale(folder, Terms(), nothing) as made:
        served(made)
        taken_back(made)
        process = made.process()
        made.goes_on(6, process)
        steps = process.boundary.steps
        assert "eth_sendRawTransaction" in steps
    for place in places(steps):
        with sale(folder, Terms(), nothing) as made:
            first = served(made)
            taken_back(made)
            first.kill()
            cut = made.process(Fault("killed", place, is_after=True))
            made.goes_on(6, cut)
            assert cut.boundary.is_dead
            second = made.process()
            made.ends(second)
            made.is_served_and_paid_once(made.comes_again(second))
            made.books_agree(second)
            assert len(made.world.upstream.keys) == 1  # nothing was asked of the seller again


def test_a_payment_that_can_never_come_again_is_reversed(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = served(made)
        taken_back(made)
        payer = made.payer.address
        made.world.chain.submit_plain(payer, Send(payer, ELSEWHERE, PRICE))
        made.world.chain.mine()
        made.ends(process)
        assert made.world.row().state is PaymentState.REVERSED
        made.books_agree(process)
        reply = made.show(process)
        assert reply is not None
        assert reply.status == 402


@pytest.mark.parametrize("is_blind", [0, 1])
def test_one_endpoint_that_shows_nothing_makes_no_payment_be_sent_for_ever(
    folder: Path, is_blind: int
) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = served(made)
        url = NETWORK.rpc_urls[is_blind]
        made.world.nodes[url].blind_url = url
        for _ in range(3):
            made.ends(process)
        assert made.world.row().state in PAID
        assert made.world.taken() == PRICE
        assert made.world.chain.pending_nonce(made.world.signer.address) <= 2
        assert made.comes_again(process).body == SOLD


def test_an_outage_of_every_node_changes_nothing_and_ends(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = served(made)
        row = made.world.row()
        made.world.down.update(NETWORK.rpc_urls)
        made.goes_on(6, process)
        made.goes_on(60, process)
        assert made.world.row() == row
        made.world.down.clear()
        made.ends(process)
        assert made.world.row() == row


def test_what_every_endpoint_shows_as_final_is_looked_at_no_more(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = served(made)
        assert watched_at(made.world) is not None
        for _ in range(NETWORK.final_blocks):
            made.world.chain.mine()
        made.ends(process)
        assert watched_at(made.world) is None
        asked = len(process.boundary.steps)
        made.goes_on(4000, process)
        assert "eth" not in "".join(process.boundary.steps[asked:])


@pytest.mark.parametrize("missing", ["down", "blind"])
def test_what_one_endpoint_alone_shows_as_final_is_looked_at_again(
    folder: Path, missing: str
) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = served(made)
        for _ in range(NETWORK.final_blocks):
            made.world.chain.mine()
        url = NETWORK.rpc_urls[0]
        if missing == "down":
            made.world.down.add(url)
        else:
            made.world.nodes[url].blind_url = url
        made.ends(process)
        assert watched_at(made.world) is not None
        assert made.world.row().state in PAID


def refused_upstream(made: Sale) -> None:
    made.world.upstream.script = [FakeReply(404)]


def refusing_facilitator(made: Sale) -> None:
    said = said_so({"success": False, "errorReason": "insufficient_funds"})
    made.world.facilitator.script = lambda path, _: said if path == "/settle" else None


@pytest.mark.parametrize(
    ("terms", "prepare", "state"),
    [
        (Terms(), refused_upstream, PaymentState.RELEASED),
        (Terms(has_facilitator=True), refused_upstream, PaymentState.RELEASED),
        (Terms(has_facilitator=True), refusing_facilitator, PaymentState.FAILED),
    ],
)
def test_who_is_charged_late_by_a_stranger_is_served_what_was_bought(
    folder: Path, terms: Terms, prepare: Callable[[Sale], None], state: PaymentState
) -> None:
    with sale(folder, terms, prepare) as made:
        process = made.process()
        reply = made.show(process)
        assert reply is not None
        assert reply.status in {402, 404}
        assert made.world.row().state is state
        made.world.chain.submit_plain(STRANGER, made.signed)
        made.ends(process)
        assert made.world.row().state is PaymentState.SETTLED
        made.is_served_and_paid_once(made.comes_again(process))
        made.books_agree(process)


def test_what_can_never_move_any_more_is_asked_about_no_more(folder: Path) -> None:
    with sale(folder, Terms(), refused_upstream) as made:
        process = made.process()
        made.show(process)
        made.ends(process)
        made.ends(process)
        row = made.world.row()
        assert (row.state, row.look.at, watched_at(made.world)) == (
            PaymentState.RELEASED,
            None,
            None,
        )
        asked = len(process.boundary.steps)
        reply = made.show(process)
        assert reply is not None
        assert reply.status == 402
        assert "eth" not in "".join(process.boundary.steps[asked:])
