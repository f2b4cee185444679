"""Selling an API from the terminal: wrappers, a paying client, the ledger, the demo's own sale."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from assay_demo.chain.accounts import ACCOUNTS
from tests.e2e.test_e2e_command_line import assay
from tests.support.node_proxy import node_proxy
from tests.support.shop import NETWORK, SELLER, Dollars, Shop, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PAYER = ACCOUNTS[23]
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Path]]:
    dollar_chain.mint(PAYER.address, 10**6)
    folder = tmp_path_factory.mktemp("selling")
    brief = {"ASSAY_SETTLEMENT_S": "1", "ASSAY_SETTLEMENT_LEASE_S": "1"}
    with upstream() as up, shop(folder, dollar_chain, up, **brief) as made:
        yield made, folder


def test_wrappers_are_added_listed_and_removed(store: tuple[Shop, Path]) -> None:
    made, folder = store
    private = {"ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1", "ASSAY_PUBLIC_URL": made.server.address}
    options = ["--price", "0.02", "--payout-address", SELLER.address, "--auth-header", "x-key"]
    added = assay(
        *("wrappers", "add", "op@example.com", "/echo/cli", made.upstream.url, *options),
        data_dir=folder,
        stdin="the secret\n",
        **private,
    )
    assert added.returncode == 0, added.stderr
    wrapper_id, url = added.stdout.split()
    assert made.http.get(url).status_code == 402
    listed = assay("wrappers", "list", "op@example.com", "--json", data_dir=folder, **private)
    row = next(row for row in json.loads(listed.stdout) if row["id"] == wrapper_id)
    assert (row["price"], row["active"], row["url"]) == ("0.020000", "yes", url)
    assert "the secret" not in listed.stdout + added.stdout
    assert "sealed again" in assay("wrappers", "reseal", data_dir=folder, **private).stdout
    removed = assay("wrappers", "remove", "op@example.com", wrapper_id, data_dir=folder)
    assert removed.returncode == 0


def test_prices_by_tier_free_calls_and_observing_are_set_from_the_terminal(
    store: tuple[Shop, Path],
) -> None:
    made, folder = store
    private = {"ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1", "ASSAY_PUBLIC_URL": made.server.address}

    def run(*words: str) -> CompletedProcess[str]:
        return assay("wrappers", *words, data_dir=folder, **private)

    def shown() -> Mapping[str, Any]:
        rows = made.http.get("/operator/endpoints", headers=made.token).json()
        return next(row for row in rows if row["path"] == "/echo/tiers")

    options = ["--price", "0.01", "--payout-address", SELLER.address, "--trust"]
    terms = ["--tier", "A=0.002/600", "--tier", "BA=0.005", "--free-quota", "100/day"]
    words = [*options, *terms, "--enforce", "observe", "--description", "By tier."]
    added = run("add", "op@example.com", "/echo/tiers", made.upstream.url, *words)
    assert added.returncode == 0, added.stderr
    wrapper_id, row = added.stdout.split()[0], shown()
    assert [(one["minTier"], one["pricePerCall"], one["rateLimit"]) for one in row["pricing"]] == [
        ("A", "0.002000", 600),
        ("BA", "0.005000", None),
    ]
    assert (row["freeQuota"], row["enforce"]) == ({"calls": 100, "per": "day"}, "observe")
    assert row["description"] == "By tier."
    changed = run("edit", wrapper_id, "--tier", "AAA=0", "--free-quota", "9/month")
    assert changed.returncode == 0, changed.stderr
    row = shown()
    assert [(one["minTier"], one["pricePerCall"]) for one in row["pricing"]] == [
        ("AAA", "0.000000")
    ]
    assert (row["freeQuota"], row["enforce"]) == ({"calls": 9, "per": "month"}, "observe")
    ended = run("edit", wrapper_id, "--empty-tier", "--free-quota", "none", "--enforce", "enforce")
    assert ended.returncode == 0, ended.stderr
    row = shown()
    assert (row["pricing"], row["freeQuota"], row["enforce"]) == ([], None, "enforce")
    dearer = run("edit", wrapper_id, "--tier", "A=0.5")
    assert (dearer.returncode, "pricing: " in dearer.stderr) == (1, True)
    assert shown() == row


def test_a_wrapper_that_cannot_be_is_told_field_by_field(tmp_path: Path) -> None:
    create = ["accounts", "create", "a@example.com", "--name", "A"]
    assert assay(*create, data_dir=tmp_path, stdin=PASSWORD + "\n").returncode == 0
    add = ["wrappers", "add", "a@example.com", "quote", "http://10.0.0.1/", "--price", "0.0000001"]
    done = assay(*add, data_dir=tmp_path)
    assert done.returncode == 1
    for field in ("path: ", "pricePerCall: ", "targetUrl: "):
        assert f"assay: {field}" in done.stderr
    nobody = assay("wrappers", "list", "b@example.com", data_dir=tmp_path)
    assert nobody.returncode == 1
    assert "Traceback" not in done.stderr + nobody.stderr


def test_a_paying_client_shows_each_step_and_keeps_to_its_limit(
    store: tuple[Shop, Path], tmp_path: Path
) -> None:
    made, folder = store
    url = made.wrap("/echo/pay")
    key = tmp_path / "payer.key"
    key.write_text(PAYER.key)
    before = made.chain.balance(PAYER.address)
    done = assay("pay", url, "--key-file", str(key), data_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    steps = ("402 Payment Required", "0.010000 USD", "200 OK", "receipt: 0x")
    assert all(step in done.stderr for step in steps)
    assert json.loads(done.stdout)["path"] == "/echo/pay"
    assert before - made.chain.balance(PAYER.address) == 10_000
    dear = assay("pay", url, "--key-file", str(key), "--max-usd", "0.001", data_dir=tmp_path)
    assert dear.returncode == 1
    assert "more than --max-usd" in dear.stderr
    assert before - made.chain.balance(PAYER.address) == 10_000
    listed = assay("payments", "list", "--json", data_dir=folder)
    [paid] = [row for row in json.loads(listed.stdout) if row["payer"] == PAYER.address]
    assert (paid["state"], paid["amount"]) == ("delivered", "0.010000")
    assert paid["transaction"].startswith("0x")


def test_a_settlement_that_was_cut_off_is_reconciled_by_hand(
    dollar_chain: Dollars, tmp_path: Path
) -> None:
    payer = ACCOUNTS[24]
    dollar_chain.mint(payer.address, 10**6)
    with upstream() as up, node_proxy(dollar_chain.url) as proxy:
        rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
        brief = {"ASSAY_SETTLEMENT_S": "1", "ASSAY_SETTLEMENT_LEASE_S": "1"}
        with shop(tmp_path, dollar_chain, up, **rpc, **brief) as made:
            url = made.wrap("/echo/cut")
            payment = made.payment(url, payer)
            with proxy.failing("eth_getTransactionReceipt"):
                assert made.pay(url, payment, once=True).status_code == 503
                made.server.stop()
        pending = assay("payments", "list", "--state", "pending", "--json", data_dir=tmp_path)
        assert len(json.loads(pending.stdout)) == 1
        done = assay("payments", "reconcile", data_dir=tmp_path, **rpc, **brief)
        assert "settled 0x" in done.stdout, done.stdout + done.stderr
    assert dollar_chain.balance(payer.address) == 10**6 - 10_000


def test_the_demo_sells_and_its_good_agent_buys(tmp_path: Path) -> None:
    done = assay("demo", "--once", "--port", "0", data_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    sale = done.stdout[done.stdout.index("Steady calls GET") :]
    steady = sale[: sale.index("Flaky calls")]
    order = ["402 Payment Required", "0.010000 USD", "200 OK", "receipt: 0x", '"servedToTier": "']
    places = [steady.index(step) for step in order]
    assert places == sorted(places)
    assert "403 Forbidden" in sale[sale.index("Hostile calls") :]
