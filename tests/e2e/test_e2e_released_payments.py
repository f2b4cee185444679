"""Money taken for a claim that served nobody: its buyer is owed the answer, and no one else is.

A facilitator submits when it is only asked to verify; a stranger submits what was released. The
chain is real, and is asked before a buyer is told that nothing was charged. ADR 0019.
"""

import time
from collections.abc import Iterator
from decimal import Decimal

import httpx2
import pytest

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import (
    elsewhere,
    fresh_account,
    refused,
    stolen,
    submit,
)
from tests.support.cases import first_then_slow
from tests.support.lying_facilitator import SUBMITS, LyingFacilitator, lying
from tests.support.shop import Dollars, Shop, Upstream, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
SOON = {"ASSAY_SETTLEMENT_S": "1", "ASSAY_SETTLEMENT_LEASE_S": "1"}


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture(scope="module")
def liar(dollar_chain: Dollars) -> Iterator[LyingFacilitator]:
    with lying(lambda payload: submit(dollar_chain.wallet, payload)) as made:
        yield made


@pytest.fixture(scope="module")
def remote(
    dollar_chain: Dollars,
    up: Upstream,
    liar: LyingFacilitator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    settings = {**SOON, "ASSAY_X402_FACILITATOR_URL": liar.url}
    with shop(tmp_path_factory.mktemp("remote"), dollar_chain, up, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def own(
    dollar_chain: Dollars, up: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("own"), dollar_chain, up, **SOON) as made:
        yield made


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    """With exactly the price: whoever takes it leaves nothing."""
    account = fresh_account()
    dollar_chain.mint(account.address, CENT)
    return account


def revenue(store: Shop) -> int:
    stats = store.http.get("/operator/analytics/stats", headers=dict(store.token)).json()
    return int(Decimal(stats["totalRevenue"]) * 10**6)


def served_once(store: Shop, answer: httpx2.Response, payer: LocalAccount) -> None:
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(payer.address) == 0
    shown = store.chain.wallet.request("eth_getTransactionReceipt", receipt(answer)["transaction"])
    assert shown["status"] == "0x1"


@pytest.mark.parametrize("lie", first_then_slow(SUBMITS))
def test_a_facilitator_that_takes_the_money_when_it_verifies_has_sold_the_answer(
    remote: Shop, liar: LyingFacilitator, payer: LocalAccount, lie: str
) -> None:
    path = "/echo/" + lie.replace(", ", "-").replace(" ", "-")
    url, had = remote.wrap(path), revenue(remote)
    payment = remote.payment(url, payer)
    liar.lie = lie
    answers = [remote.pay(url, payment, once=True)]
    if answers[0].status_code == 503:
        answers.append(remote.pay(url, payment))
    assert [answer.status_code for answer in answers] in ([200], [503, 200])
    served_once(remote, answers[-1], payer)
    assert remote.pay(url, payment).content == answers[-1].content
    assert remote.upstream.calls(path) == 1
    assert revenue(remote) == had + CENT


def test_what_a_facilitator_takes_for_an_upstream_that_fails_stays_paid_for(
    remote: Shop, liar: LyingFacilitator, payer: LocalAccount
) -> None:
    url, had = remote.wrap("/status/500"), revenue(remote)
    payment = remote.payment(url, payer)
    liar.lie = "submits, and calls it valid"
    failed = remote.pay(url, payment)
    assert failed.status_code == 502
    told = failed.json()["message"]
    assert remote.chain.balance(payer.address) == 0  # so what is said must not deny it
    assert "charged" not in told
    assert "checks on the chain whether anybody else has" in told
    assert "send the same request with the same payment again" in told
    liar.lie = ""
    again = remote.pay(url, payment)
    assert again.status_code == 502, again.text  # asked once more, and not paid once more
    assert "The payment has settled" in again.json()["message"]
    assert receipt(again)["success"] is True
    assert revenue(remote) == had + CENT


def test_what_somebody_submits_after_it_was_released_is_served_to_its_buyer(
    own: Shop, payer: LocalAccount
) -> None:
    path = "/echo/released"
    url, had = own.wrap(path), revenue(own)
    payment = own.payment(url, payer)
    own.upstream.fails = True
    assert own.pay(url, payment).status_code == 502
    own.upstream.fails = False
    submit(own.chain.wallet, payment["payload"])
    with elsewhere() as there:
        for headers in stolen(own, url, payment):  # who reads it on the chain comes first
            refused(there.get(url, headers=headers), "invalid_exact_evm_nonce_already_used")
    answer = own.pay(url, payment)
    served_once(own, answer, payer)
    assert own.pay(url, payment).content == answer.content
    assert revenue(own) == had + CENT
    calls = [one for one in own.upstream.seen if one.path == path]
    assert len(calls) == 2
    assert len({one.headers["idempotency-key"] for one in calls}) == 1


def test_a_payment_that_was_sent_elsewhere_meanwhile_runs_its_request_under_the_same_key(
    own: Shop, payer: LocalAccount
) -> None:
    """The upstream has acted, then fails: again it must know the call, whatever was between."""
    path = "/echo/between"
    url, other = own.wrap(path), own.wrap("/status/404")
    payment = own.payment(url, payer)
    own.upstream.fails = True
    assert own.pay(url, payment).status_code == 502
    own.upstream.fails = False
    assert own.pay(other, {**payment, "resource": {"url": other}}).status_code == 404
    assert own.pay(url, payment).status_code == 200
    keys = [one.headers["idempotency-key"] for one in own.upstream.seen if one.path == path]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    elsewhere = [one for one in own.upstream.seen if one.path == "/status/404"]
    assert {one.headers["idempotency-key"] for one in elsewhere}.isdisjoint(keys)


@pytest.mark.slow
def test_what_was_used_before_it_came_here_buys_nothing(own: Shop, payer: LocalAccount) -> None:
    """Anybody can read it on the chain: it may have paid the seller for something else."""
    url = own.wrap("/echo/used-before")
    payment = own.payment(url, payer)
    submit(own.chain.wallet, payment["payload"])
    for _ in range(3):
        answer = own.pay(url, payment)
        refused(answer)
        assert answer.json()["reason"] == "invalid_exact_evm_nonce_already_used"
        time.sleep(0.1)
    assert own.upstream.calls("/echo/used-before") == 0
