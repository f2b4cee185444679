"""Only what an address signed itself is its past: being named by others costs it nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from assay.chains.model import ChainUnavailable, Network
from assay.chains.solana.clusters import CLUSTERS
from assay.common import addresses
from assay.registries.solana_accounts import DAY_S, SIGNATURES_READ, Histories
from tests.support.fakes.clock import FrozenClock

SOLANA = CLUSTERS["mainnet-beta"]
NOW_S = int(FrozenClock().now().timestamp())


def key(number: int) -> str:
    """A key on the curve: the base point's multiples are not needed, a known one will do."""
    return addresses.encode(number.to_bytes(32, "little"))


ALICE, BOB = key(1), key(3)


@dataclass
class FakeCluster:
    """Transactions by address, newest first: when, and who signed."""

    past: dict[str, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)
    balance: Any = 5
    down: bool = False
    asked: list[str] = field(default_factory=list)

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        del network, params
        if self.down:
            raise ChainUnavailable("down")
        assert method == "getBalance"
        return {"value": self.balance}

    async def request_all(self, network: Network, requests: Sequence[Any]) -> list[Any]:
        del network
        if self.down:
            raise ChainUnavailable("down")
        self.asked += [method for method, _ in requests]
        return [self._answer(method, params) for method, params in requests]

    def _answer(self, method: str, params: Sequence[Any]) -> Any:
        if method == "getSignaturesForAddress":
            address, options = params
            assert options["limit"] == SIGNATURES_READ
            if address not in self.past:
                return None
            rows = enumerate(self.past[address])
            return [{"signature": f"{address}/{n}", "blockTime": at} for n, (at, _) in rows]
        address, _, number = params[0].rpartition("/")
        signers = self.past[address][int(number)][1]
        message = {
            "accountKeys": [*signers, address],
            "header": {"numRequiredSignatures": len(signers)},
        }
        return {"transaction": {"message": message}}


def histories(cluster: FakeCluster) -> Histories:
    return Histories(cluster, FrozenClock())  # type: ignore[arg-type]


async def test_the_oldest_transaction_an_address_signed_dates_it() -> None:
    cluster = FakeCluster({ALICE: [(NOW_S, (BOB,)), (NOW_S - 9 * DAY_S, (ALICE,))]})
    assert (await histories(cluster).account(SOLANA, ALICE)).since_days == 9


async def test_being_named_by_somebody_else_dates_nobody() -> None:
    cluster = FakeCluster({ALICE: [(100, (BOB,))]})
    account = await histories(cluster).account(SOLANA, ALICE)
    assert (account.transactions, account.since_days) == (1, None)


async def test_an_account_is_as_old_as_what_it_signed() -> None:
    days = NOW_S - 40 * DAY_S
    cluster = FakeCluster({ALICE: [(NOW_S, (ALICE,)), (days, (BOB, ALICE))]})
    account = await histories(cluster).account(SOLANA, ALICE)
    assert (account.transactions, account.since_days) == (2, 40)
    assert account.balance == 5 * 10**9


async def test_an_account_nobody_knows_is_an_empty_one() -> None:
    account = await histories(FakeCluster({ALICE: []}, balance=None)).account(SOLANA, ALICE)
    assert (account.transactions, account.since_days, account.balance) == (0, None, None)
    unknown = await histories(FakeCluster()).account(SOLANA, ALICE)
    assert unknown.transactions is None
    with pytest.raises(ChainUnavailable):
        await histories(FakeCluster(down=True)).account(replace(SOLANA), ALICE)
