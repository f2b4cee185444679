"""Real payments on a real chain, counted: what settles late is revenue when it has settled."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay_demo.chain.accounts import ACCOUNTS
from tests.e2e.test_e2e_command_line import assay
from tests.support.eventually import eventually
from tests.support.node_proxy import node_proxy
from tests.support.shop import NETWORK, Dollars, Shop, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def told(made: Shop, path: str) -> Any:
    answer = made.http.get(f"/operator/analytics/{path}", headers=dict(made.token))
    assert answer.status_code == 200, answer.text
    return answer.json()


def counted(made: Shop, path: str, enough: Callable[[Any], bool]) -> Any:
    """What is told once it is written down, which takes a second."""
    return eventually(lambda: told(made, path), enough)


def test_revenue_follows_the_chain_and_the_roll_ups_are_proven(
    dollar_chain: Dollars, tmp_path: Path
) -> None:
    payer = ACCOUNTS[25]
    dollar_chain.mint(payer.address, 10**6)
    with upstream() as up, node_proxy(dollar_chain.url) as proxy:
        rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
        brief = {"ASSAY_SETTLEMENT_S": "1", "ASSAY_SETTLEMENT_LEASE_S": "1"}
        with shop(tmp_path, dollar_chain, up, **rpc, **brief) as made:
            url = made.wrap("/echo/count")
            assert made.pay(url, made.payment(url, payer)).status_code == 200
            late = made.payment(url, payer)
            with proxy.failing("eth_getTransactionReceipt"):
                assert made.pay(url, late, once=True).status_code == 503
                stats = counted(made, "stats", lambda stats: stats["totalCalls"] >= 4)
                assert stats["totalRevenue"] == "0.010000"
                assert stats["funnel"] == {
                    "paymentRequired": 2,
                    "paid": 2,
                    "settled": 1,
                    "failed": 0,
                    "deniedByTrust": 0,
                    "deniedByLimit": 0,
                    "wouldBeDeniedByTrust": 0,
                }
            counted(made, "stats", lambda stats: stats["totalRevenue"] == "0.020000")
            assert made.pay(url, late).status_code == 200  # the same answer again, unpaid
            [mine] = told(made, "agents?sortBy=spent")["agents"]
            assert (mine["agentId"], mine["totalSpent"]) == (payer.address.lower(), "0.020000")
            logs = counted(made, "logs", lambda found: len(found["logs"]) == 5)["logs"]
            costs = sorted((log["outcome"], log["costCharged"]) for log in logs)
            assert costs == [
                ("forwarded", "0.010000"),
                ("payment_required", "0.000000"),
                ("payment_required", "0.000000"),
                ("replayed", "0.000000"),
                ("settlement_pending", "0.010000"),
            ]
            assert told(made, "revenue?days=1")[0]["revenue"] == "0.020000"
        proven = assay("analytics", "rebuild", "--check", data_dir=tmp_path)
        assert proven.returncode == 0, proven.stdout + proven.stderr
        assert "every roll-up is what the calls and payments say" in proven.stdout
