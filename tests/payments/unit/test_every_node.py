"""What nodes say together: money that one shows counts, and nothing is refused on one's word."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from assay.chains.model import ChainUnavailable, Network
from assay.payments.finality import ask_nodes
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided, is_unused
from tests.payments.unit.test_authorization_outcomes import network, payment

PAID, EXPIRED = Settled("0x" + "11" * 32), Rejected("expired_unused")
UNUSED = Undecided("not used yet", is_unused=True, answers=1)
UNKNOWN = Undecided("used, not found")
ONE, TWO, THREE = "http://one", "http://two", "http://three"


async def asked(
    told: Mapping[str, PaymentOutcome | None], *, every_node: bool
) -> tuple[PaymentOutcome, Sequence[str]]:
    """What came of one payment, and who was asked; None: that node does not answer."""
    urls = list[str]()

    async def ask(node: Network, entries: Sequence[LedgerEntry]) -> Sequence[PaymentOutcome]:
        (url,) = node.rpc_urls
        urls.append(url)
        said = told[url]
        if said is None:
            raise ChainUnavailable("down")
        return [said for _ in entries]

    (found,) = await ask_nodes(network(*told), [payment()], ask, every_node=every_node)
    return found, urls


async def test_the_first_that_answers_is_enough_for_what_refuses_nobody() -> None:
    assert await asked({ONE: UNUSED, TWO: PAID}, every_node=False) == (UNUSED, [ONE])
    assert await asked({ONE: None, TWO: PAID}, every_node=False) == (PAID, [ONE, TWO])


@pytest.mark.parametrize("liar", [UNUSED, EXPIRED, UNKNOWN, Rejected("transaction-failed"), None])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_money_that_any_of_them_shows_counts(liar: PaymentOutcome | None, place: int) -> None:
    urls = [ONE, TWO, THREE]
    told = {url: PAID if url == urls[place] else liar for url in urls}
    assert (await asked(told, every_node=True))[0] == PAID
    if isinstance(liar, Rejected):
        assert (await asked(told, every_node=False))[0] == PAID


async def test_a_refusal_is_everybodys_who_answers_and_twos_at_least() -> None:
    for every_node in (True, False):
        found, urls = await asked({ONE: EXPIRED, TWO: EXPIRED, THREE: None}, every_node=every_node)
        assert (found, len(urls)) == (EXPIRED, 3)
        assert isinstance(found, Rejected)
        assert found.is_agreed
        for other in (UNUSED, UNKNOWN, None):
            found, _ = await asked({ONE: EXPIRED, TWO: other}, every_node=every_node)
            assert isinstance(found, Undecided)
            assert not is_unused(found)
    assert await asked({ONE: EXPIRED}, every_node=True) == (EXPIRED, [ONE])


async def test_unused_for_every_node_is_the_word_of_two_where_there_are_two() -> None:
    found, _ = await asked({ONE: UNUSED, TWO: UNUSED}, every_node=True)
    assert found == UNUSED
    assert isinstance(found, Undecided)
    assert found.answers == 2
    assert not is_unused((await asked({ONE: UNUSED, TWO: None}, every_node=True))[0])
    assert not is_unused((await asked({ONE: UNUSED, TWO: UNKNOWN}, every_node=True))[0])
    assert (await asked({ONE: UNUSED}, every_node=True))[0] == UNUSED


async def test_nobody_who_answers_is_a_fault_and_no_word() -> None:
    for every_node in (True, False):
        with pytest.raises(ChainUnavailable):
            await asked({ONE: None, TWO: None}, every_node=every_node)


async def test_what_one_node_has_shown_is_asked_of_no_other() -> None:
    """Of many payments in one question, each by itself."""
    some = [replace(payment(n), id=str(n)) for n in range(3)]
    told = {ONE: (PAID, UNUSED, EXPIRED), TWO: (UNKNOWN, UNUSED, EXPIRED)}
    named = dict[str, list[str]]()

    async def ask(node: Network, entries: Sequence[LedgerEntry]) -> Sequence[PaymentOutcome]:
        (url,) = node.rpc_urls
        named[url] = [one.id for one in entries]
        return [told[url][int(one.id)] for one in entries]

    found = await ask_nodes(network(ONE, TWO), some, ask, every_node=True)
    assert found == [PAID, UNUSED, EXPIRED]
    assert named == {ONE: ["0", "1", "2"], TWO: ["1", "2"]}
    await ask_nodes(network(ONE, TWO), some, ask, every_node=False)
    assert named[TWO] == ["2"]
