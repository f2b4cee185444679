"""The comparison of a kill campaign's books finds what differs, whichever book it is."""

from collections import Counter
from dataclasses import replace

from tests.support.seller_books import Books

AGREED = Books(
    ledger={
        "a": ("delivered", 10),
        "b": ("settled", 20),
        "c": ("failed", 5),
        "d": ("released", 5),
        "e": ("pending", 7),
    },
    log={"a": 10, "b": 20},
    outcomes=Counter(forwarded=1, recovered=1),
    funnel={"paid": 4, "settled": 2, "failed": 1},
    revenue=30,
)


def test_books_that_agree_differ_in_nothing() -> None:
    assert AGREED.differences == []


def test_every_book_that_differs_is_named() -> None:
    lost = replace(AGREED, log={"a": 10})
    doubled = replace(AGREED, log={"a": 10, "b": 40})
    taken_back = replace(AGREED, ledger={**AGREED.ledger, "b": ("reversed", 20)})
    funnels = [replace(AGREED, funnel={**AGREED.funnel, name: 9}) for name in AGREED.funnel]
    for wrong in (lost, doubled, taken_back, *funnels, replace(AGREED, revenue=31)):
        assert wrong.differences
    assert len(taken_back.differences) == 4
    assert "log" in lost.differences[0]
