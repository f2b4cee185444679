"""A local Base Sepolia that can be reorganised: anvil, with the test dollar where USDC is."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from assay_demo.chain.registries import ARTIFACTS, Wallet
from tests.support.node import needs_node
from tests.support.shop import ENGINE, MINTER, NETWORK, USDC
from tests.support.starting import listening_at


@dataclass
class Anvil:
    """The running chain."""

    url: str
    wallet: Wallet
    network: str = NETWORK
    asset: str = USDC

    def balance(self, owner: str) -> int:
        return dollars.balance(self.wallet, self.asset, owner)

    def mint(self, to: str, amount: int) -> None:
        dollars.mint(self.wallet, MINTER.key, self.asset, to, amount)

    def mine(self, blocks: int) -> None:
        self.wallet.request("anvil_mine", hex(blocks))

    def pass_time(self, seconds: int) -> None:
        self.wallet.request("evm_increaseTime", seconds)
        self.mine(1)

    def height(self) -> int:
        return int(self.wallet.request("eth_blockNumber"), 16)

    def reorganise(self, depth: int) -> None:
        """Replace the newest blocks by empty ones: what was in them is forgotten."""
        self.wallet.request("anvil_reorg", depth, [])


@contextmanager
def anvil(chain_id: int = dollars.BASE_SEPOLIA) -> Iterator[Anvil]:
    program = needs_node() / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    program.chmod(0o755)
    process = subprocess.Popen(
        [str(program), "--port", "0", "--chain-id", str(chain_id)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = listening_at(process)
    drain = Thread(target=process.stdout.read, daemon=True)
    drain.start()
    try:
        with Wallet(url) as wallet:
            wallet.request("anvil_setCode", USDC, ARTIFACTS["TestUSD"]["runtime"])
            for account in (ENGINE, MINTER, *_OTHERS):
                wallet.request("anvil_setBalance", account.address, hex(10**20))
            yield Anvil(url, wallet)
    finally:
        process.terminate()
        process.wait(60)
        drain.join(10)
        process.stdout.close()


_OTHERS: tuple[LocalAccount, ...] = (ACCOUNTS[1],)
