"""A local chain with fresh registries, as a process of its own, for tests that read one."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from assay.chains.model import Network
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import Registries, Wallet, deploy
from tests.support.forked import CHAIN, start


@dataclass
class LocalChain:
    url: str
    wallet: Wallet
    registries: Registries

    @property
    def network(self) -> Network:
        return Network(
            slug="local",
            name="Local",
            chain_id=31337,
            testnet=True,
            identity_registry=self.registries.identity,
            reputation_registry=self.registries.reputation,
            rpc_urls=(self.url,),
            source="tests",
            multicall3=False,
        )


@contextmanager
def local_chain() -> Iterator[LocalChain]:
    """A node of its own, ended at the end."""
    process = start(CHAIN[0], imported=CHAIN, streams=(None, subprocess.PIPE, None))
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    try:
        with Wallet(url) as wallet:
            yield LocalChain(url, wallet, deploy(wallet, ACCOUNTS[0].key))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
