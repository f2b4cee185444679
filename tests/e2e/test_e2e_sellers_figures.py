"""What a seller is told equals the ledger, whatever dies; what is owed is paid once."""

import csv
import io
import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.payments.networks import FINAL_ON_BASE
from assay_demo.chain.accounts import ACCOUNTS
from tests.e2e.test_e2e_command_line import assay
from tests.support.databases import migrated_postgresql
from tests.support.eventually import eventually
from tests.support.shop import (
    NETWORK,
    PLATFORM,
    SELLER,
    Dollars,
    Shop,
    dollars_on,
    free_port,
    shop,
    upstream,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PAYER = ACCOUNTS[25]
KILLS = 4
CENT = 10_000


@pytest.fixture(scope="module", autouse=True)
def _dollars(dollar_chain: Dollars) -> None:
    dollar_chain.mint(PAYER.address, 10**9)


def told(made: Shop, path: str) -> Any:
    answer = made.http.get(path, headers=dict(made.token))
    assert answer.status_code == 200, answer.text
    return answer.json()


def kill_and_start(made: Shop) -> None:
    process, address = made.server.process, made.server.address
    assert process is not None
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    made.server.start()
    made.server.address = address


def wait_for_log(made: Shop, payments: int) -> list[dict[str, Any]]:
    """The calls that were paid for, once there are as many as payments: what is lost is found."""

    def paid() -> list[dict[str, Any]]:
        logs = told(made, "/operator/analytics/logs?limit=500")["items"]
        return [row for row in logs if row["costCharged"] != "0.000000"]

    found = eventually(paid, lambda rows: len(rows) >= payments)
    assert len(found) == payments
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_after_kills_log_funnel_and_analytics_are_what_the_ledger_says(
    kind: str, dollar_chain: Dollars, tmp_path: Path
) -> None:
    own = {} if kind == "sqlite" else {"ASSAY_DATABASE_URL": migrated_postgresql()}
    with upstream() as up, shop(tmp_path, dollar_chain, up, port=free_port(), **own) as made:
        url = made.wrap("/echo/killed")
        for _ in range(KILLS):
            payment = made.payment(url, PAYER)
            assert made.pay(url, payment).status_code == 200
            kill_and_start(made)  # its row was to be written within a second
        paid = wait_for_log(made, KILLS)
        stats = told(made, "/operator/analytics/stats")
        funnel = stats["funnel"]
        assert (funnel["paid"], funnel["settled"], funnel["failed"]) == (KILLS, KILLS, 0)
        assert stats["totalRevenue"] == f"{KILLS * CENT / 10**6:.6f}"
        logs = told(made, "/operator/analytics/logs?limit=500")["items"]
        assert stats["totalCalls"] == len(logs) >= KILLS
        assert "recovered" in {row["outcome"] for row in paid}
        checked = assay("analytics", "rebuild", "--check", data_dir=tmp_path, **own)
        assert checked.returncode == 0, checked.stdout


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Shop, dict[str, Any]]]:
    """A platform that is paid for its sellers, and takes 5 % of it; on a chain of its own."""
    folder = tmp_path_factory.mktemp("platform")
    settings = {"ASSAY_FEE_RATE": "0.05"}
    with (
        dollars_on(NETWORK) as chain,
        upstream() as up,
        shop(folder, chain, up, **settings) as made,
    ):
        chain.mint(PAYER.address, 10**9)
        options = {
            "data_dir": folder,
            "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [chain.url]}),
            "ASSAY_PAYOUT_ADDRESS": PLATFORM.address,
        }
        yield made, options


def bought(made: Shop, path: str, payee: str | None = None) -> str:
    """The id of a payment of one cent."""
    fields = {} if payee is None else {"payoutAddress": payee}
    url = made.wrap(path, payoutAddress=fields.get("payoutAddress"))
    payment = made.payment(url, PAYER)
    answer = made.pay(url, payment)
    assert answer.status_code == 200, answer.text

    def paid() -> list[dict[str, Any]]:
        logs = told(made, "/operator/analytics/logs?limit=500")["items"]
        return [row for row in logs if row["path"] == path and row["costCharged"] != "0.000000"]

    return eventually(paid)[0]["paymentReference"]  # it is logged a moment later


def become_final(made: Shop, options: dict[str, Any]) -> None:
    """Twenty minutes of blocks, and the look that is taken after them."""
    made.chain.mine(FINAL_ON_BASE)
    with closing(sqlite3.connect(options["data_dir"] / "assay.db", timeout=30)) as database:
        with database:
            database.execute("UPDATE payments SET watch_us = 1 WHERE watch_us IS NOT NULL")
        watched = "SELECT COUNT(*) FROM payments WHERE watch_us IS NOT NULL"
        eventually(lambda: database.execute(watched).fetchone() == (0,))


def line_of(options: dict[str, Any]) -> dict[str, str]:
    done = assay("payments", "statement", "--csv", **options)
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    return row


def transfers_listed(options: dict[str, Any]) -> int:
    """How many there are, each on one line, whole."""
    listed = assay("payments", "transfers", **options).stdout
    rows = json.loads(assay("payments", "transfers", "--json", **options).stdout)
    for one in rows:
        (line,) = [text for text in listed.splitlines() if one["id"] in text]
        assert all(one[name] in line for name in ("sender", "recipient", "transaction"))
    return len(rows)


def test_the_platforms_fee_is_taken_and_the_rest_refunded_and_paid_out_once(
    store: tuple[Shop, dict[str, Any]],
) -> None:
    made, options = store
    key = {"ASSAY_PAYOUT_KEY": PLATFORM.key}
    chain = made.chain
    first = bought(made, "/echo/one")
    bought(made, "/echo/two")
    assert (line_of(options)["received"], line_of(options)["owed"]) == ("0.020000", "0.019000")
    early = assay("payments", "refund", first, **options, **key)
    assert early.returncode == 1
    assert "not final on its network yet. Try again at" in early.stderr
    become_final(made, options)
    before = chain.balance(PAYER.address)
    done = assay("payments", "refund", first, **options, **key)
    assert done.returncode == 0, done.stderr
    assert " is paid: 0x" in done.stdout
    assert chain.balance(PAYER.address) - before == CENT
    again = assay("payments", "refund", first, **options, **key)
    assert again.returncode == 1
    assert "given back" in again.stderr
    paying = ["payments", "payout", "op@example.com", NETWORK, SELLER.address]
    before = chain.balance(SELLER.address)
    done = assay(*paying, **options, **key)
    assert done.returncode == 0, done.stderr
    assert chain.balance(SELLER.address) - before == 9_500
    assert assay(*paying, **options, **key).returncode == 1
    row = line_of(options)
    shown = (row["fee"], row["refunded"], row["paidOut"], row["owed"])
    assert shown == ("0.000500", "0.010000", "0.009500", "0.000000")
    assert told(made, "/operator/statement")["lines"][0]["owed"] == "0.000000"
    assert transfers_listed(options) == 2


def test_a_refund_from_the_sellers_own_wallet_is_printed_and_recorded(
    store: tuple[Shop, dict[str, Any]],
) -> None:
    made, options = store
    payment = bought(made, "/echo/direct", SELLER.address)
    become_final(made, options)
    done = assay("payments", "refund", payment, **options)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(None, 1) for line in done.stdout.splitlines() if line.startswith("  "))
    assert said["from"].lower() == SELLER.address.lower()
    early = assay("payments", "record-refund", payment, "0x" + "ab" * 32, **options)
    assert early.returncode == 1
    sent = made.chain.wallet.send(SELLER.key, said["to"], bytes.fromhex(said["data"][2:]))
    transaction = sent["transactionHash"]
    early = assay("payments", "record-refund", payment, transaction, **options)
    assert early.returncode == 1
    assert "1 of 600 blocks deep" in early.stderr
    made.chain.mine(FINAL_ON_BASE)
    recorded = assay("payments", "record-refund", payment, transaction, **options)
    assert recorded.returncode == 0, recorded.stderr
    assert f"is paid by {transaction}" in recorded.stdout


def test_tables_keep_ids_addresses_and_hashes_whole(store: tuple[Shop, dict[str, Any]]) -> None:
    made, options = store
    bought(made, "/echo/wide")
    rows = json.loads(assay("payments", "list", "--json", **options).stdout)
    shown = assay("payments", "list", **options).stdout
    for row in rows:
        (line,) = [text for text in shown.splitlines() if row["id"] in text]
        assert all(row[name] in line for name in ("payer", "transaction", "wrapperId"))
    listed = assay("wrappers", "list", "op@example.com", **options).stdout
    for row in told(made, "/operator/endpoints"):
        assert any(row["id"] in line and row["path"] in line for line in listed.splitlines())
