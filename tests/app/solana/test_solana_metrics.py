"""What a scrape says of the wallet that writes scores back to Solana."""

import asyncio
from pathlib import Path

from tests.support.scraped import scraped
from tests.support.solana import loopback
from tests.support.solana.clusters import keypair
from tests.support.solana.live_service import open_solana

WALLET = keypair("writer")
BALANCE = 'assay_write_back_wallet_balance_coins{network="solana"}'
PAYABLE = 'assay_write_back_wallet_payable_writes{network="solana"}'
AGE = 'assay_write_back_wallet_read_age_seconds{network="solana"}'


async def test_a_scrape_says_what_the_writing_wallet_holds_and_how_far_that_goes(
    tmp_path: Path,
) -> None:
    priced = {"solana_keypair": WALLET.to_json(), "solana_priority_microlamports": 1_000_000}
    async with open_solana(tmp_path, **priced) as service:
        async with asyncio.timeout(30):  # it is read without anybody asking
            while (found := await scraped(service.app)).get(BALANCE) is None:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        assert (found[BALANCE], found[PAYABLE]) == (0, 0)
        assert found['assay_write_back_scores_total{outcome="unpaid"}'] == 0
        service.node.fund(WALLET.pubkey(), 10**9)
        watch = service.app.write_wallet
        assert watch is not None
        await watch.refresh()
        found = await scraped(service.app)
        assert found[BALANCE] == 1
        # 5,000 lamports and the priority of 400,031 units a write; 0.001 SOL stay.
        assert found[PAYABLE] == (10**9 - 10**6) // (5_000 + 400_031) + 1
        assert found[AGE] >= 0
    async with open_solana(tmp_path) as service:
        assert not [name for name in await scraped(service.app) if "write_back" in name]


async def test_a_scrape_tells_no_balance_that_nobody_can_say(tmp_path: Path) -> None:
    settings = {"solana_keypair": WALLET.to_json()}
    async with open_solana(tmp_path, **settings) as service:
        service.node.fund(WALLET.pubkey(), 10**9)
        watch = service.app.write_wallet
        assert watch is not None
        await watch.refresh()
        assert (await scraped(service.app))[BALANCE] == 1
        service.node.faults.on(loopback.unavailable())
        await watch.refresh()
        found = await scraped(service.app)
        assert BALANCE not in found
        assert found[PAYABLE] == 0
