"""`/metrics`: on an address of its own, true, and answered whatever is down."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import httpx2
import pytest

from assay import __version__
from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_gas import lying
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.databases import migrated_postgresql
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import NETWORK, Dollars, Shop, Upstream, free_port, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
TOKEN = "a token of visible characters, long".replace(" ", "-")


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as running:
        yield running


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, 10**6)
    return account


def metrics_address(store: Shop) -> str:
    """As the process says it when it starts."""
    process = store.server.process
    assert process is not None
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"metrics\s+(http://\S+)", line):
            return found[1]
    raise AssertionError("it does not say where metrics are")


def scraped(url: str, **headers: str) -> dict[str, float]:
    """The samples, by name and labels as they are written."""
    answer = httpx2.get(url, headers=headers, timeout=20, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def until_scraped(url: str, name: str, expected: float) -> dict[str, float]:
    return eventually(lambda: scraped(url), lambda found: found.get(name) == expected)


def of(name: str) -> str:
    return f'{name}{{network="{NETWORK}"}}'


def test_a_scrape_says_what_is_pending_and_what_of_the_budgets_is_used(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, payer: LocalAccount, tmp_path: Path
) -> None:
    settings = {
        "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]}),
        "ASSAY_OPS_BIND": "0",
        "ASSAY_SETTLEMENT_S": "1",
        "ASSAY_GAS_FREE_SETTLEMENTS": "7",
        "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": "5",
    }
    with shop(tmp_path, dollar_chain, up, **settings) as store:
        url = metrics_address(store)
        assert url.startswith("http://127.0.0.1:")
        assert url.removesuffix("/metrics") != store.server.address
        assert store.http.get("/metrics").status_code == 404  # nothing at the public address
        paid = store.wrap("/echo/paid")
        assert store.pay(paid, store.payment(paid, payer)).status_code == 200
        with proxy.failing("eth_sendRawTransaction"):
            pending = store.pay(paid, store.payment(paid, payer), once=True)
            assert pending.json()["code"] == "settlement_pending", pending.text
            found = until_scraped(url, of("assay_payments_pending"), 1)
        assert found[of("assay_payments_stuck")] == 0
        assert found[of("assay_payments_pending_oldest_seconds")] >= 0
        assert found['assay_gas_free_settlements_today{budget="self_registered"}'] == 2
        assert found['assay_gas_free_settlements_today{budget="accounts"}'] == 2
        assert found['assay_gas_free_settlements_limit{budget="self_registered"}'] == 5
        assert found['assay_gas_free_settlements_limit{budget="each_account"}'] == 7
        assert found[f'assay_build_info{{version="{__version__}"}}'] == 1
        assert found["assay_database_counts_up"] == 1


@pytest.mark.slow
def test_a_scrape_says_what_the_key_holds_and_who_answers(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, tmp_path: Path
) -> None:
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]}), "ASSAY_OPS_BIND": "0"}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        store.wrap("/echo/sold")
        url = metrics_address(store)
        up_name = f'assay_rpc_endpoint_up{{endpoint="127.0.0.1",network="{NETWORK}"}}'
        until_scraped(url, up_name, 1)
        lying(proxy, {"eth_gasPrice": hex(10**9), "eth_getBalance": hex(25 * 10**16)})
        found = until_scraped(url, of("assay_settling_key_balance_coins"), 0.25)
        assert found[of("assay_settling_key_payable_settlements")] > 0
        assert found[of("assay_settling_key_nonce_gap")] == 0
        assert found[of("assay_settling_key_unmined_transactions")] == 0
        proxy.lost = {"eth_chainId", "net_version", "eth_blockNumber", "eth_gasPrice"}
        proxy.lost |= {"eth_getTransactionCount", "eth_call", "eth_getBalance"}
        found = until_scraped(url, up_name, 0)
        until_scraped(url, of("assay_settling_key_payable_settlements"), 0)
        text = httpx2.get(url, trust_env=False).text
        assert proxy.url not in text  # of an endpoint only its host
        assert store.operator_id not in text


def test_strangers_get_no_metrics(dollar_chain: Dollars, up: Upstream, tmp_path: Path) -> None:
    with shop(tmp_path, dollar_chain, up, ASSAY_OPS_BIND="[::1]:0") as store:
        url = metrics_address(store)
        assert url.startswith("http://[::1]:")
        assert scraped(url)
        for named in ("rebound.example", "10.0.0.5:9464", "", "[::1", "2130706433"):
            answer = httpx2.get(url, headers={"host": named}, trust_env=False)
            assert answer.status_code in {400, 421}, (named, answer.text)
            assert "assay_" not in answer.text
        assert httpx2.post(url, trust_env=False).status_code == 405
        assert httpx2.get(url + "/x", trust_env=False).status_code == 404
        assert httpx2.head(url, trust_env=False).content == b""


def test_a_token_is_asked_for_where_one_is_set(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path
) -> None:
    bind = {"ASSAY_OPS_BIND": "127.0.0.1:0", "ASSAY_OPS_TOKEN": TOKEN}
    with shop(tmp_path, dollar_chain, up, **bind) as store:
        url = metrics_address(store)
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
            answer = httpx2.get(url, headers=given, trust_env=False)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert scraped(url, authorization=f"Bearer {TOKEN}")
        assert TOKEN not in store.server.said()


@contextmanager
def locked(database: str) -> Iterator[None]:
    """Nobody reads payments meanwhile, as when a database is slow beyond measure."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(database))
        runner.run(connection.execute("BEGIN"))
        runner.run(connection.execute("LOCK TABLE payments IN ACCESS EXCLUSIVE MODE"))
        try:
            yield
        finally:
            runner.run(connection.close())


def test_a_scrape_is_answered_while_the_database_is_not(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path
) -> None:
    """The lock is held for as long as the scrapes last: whatever waited for it would wait on."""
    database = migrated_postgresql()
    bind = {"ASSAY_OPS_BIND": "0", "ASSAY_DATABASE_URL": database}
    with shop(tmp_path, dollar_chain, up, **bind) as store:
        store.wrap("/echo/sold")
        url = metrics_address(store)
        before = until_scraped(url, "assay_database_counts_up", 1)
        with locked(database):
            found = until_scraped(url, "assay_database_counts_up", 0)
            assert found["assay_database_counts_age_seconds"] > 0
            assert found.keys() >= before.keys()  # what was read before is told
            for _ in range(5):
                scraped(url)
            assert asyncio.run(counting(database)) <= 1  # one question, however many scrape
        until_scraped(url, "assay_database_counts_up", 1)


async def counting(database: str) -> int:
    """How many of our counts wait for the lock."""
    connection = await asyncpg.connect(database)
    try:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return int(await connection.fetchval(sql + " AND query LIKE '%oldest_us%'"))
    finally:
        await connection.close()


@pytest.mark.slow
def test_no_wrapper_leads_to_metrics_unless_a_setting_names_their_port(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path
) -> None:
    """Whether private addresses are shut, or all called ports of this machine are opened."""
    port = free_port()
    shut = {"ASSAY_ALLOW_PRIVATE_UPSTREAMS": "0", "ASSAY_OPS_BIND": str(port)}
    with shop(tmp_path, dollar_chain, up, **shut) as store:
        url, operator = metrics_address(store), store.operator_id
        assert url == f"http://127.0.0.1:{port}/metrics"
        assert sold(store, url).status_code == 400
    for entry, status in (("127.0.0.1", 400), (f"127.0.0.1:{port}", 200)):
        opened = {"ASSAY_UPSTREAM_ALLOW": entry, "ASSAY_UPSTREAM_ALLOW_OPERATORS": operator}
        with shop(tmp_path, dollar_chain, up, **shut, **opened) as store:
            assert sold(store, url).status_code == status, entry
            called = store.http.get(f"{store.server.address}/wrap/{operator}/metrics")
            assert called.status_code == (200 if status == 200 else 404)


def sold(store: Shop, url: str) -> httpx2.Response:
    """The answer to whoever makes a wrapper of that address."""
    body = {"path": "/metrics", "pricePerCall": 0, "targetUrl": url.removesuffix("/metrics")}
    return store.http.post("/operator/endpoints", json=body, headers=dict(store.token))
