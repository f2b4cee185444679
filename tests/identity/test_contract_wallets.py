"""Contract wallets on a real EVM: one that burns gas costs itself; a proof carries its chain."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from eth_abi.abi import encode
from eth_account import Account

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.common.circuit_breaker import FAILURES_MAX
from assay.common.clock import SystemClock
from assay.common.costs import CostLedger
from assay.identity.signatures import OnchainWallets
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.registries.documents import GuardedDocuments
from assay.registries.families.evm import EvmReader
from assay.registries.ports import ReaderDependencies
from assay_demo.chain.accounts import ACCOUNTS
from tests.support.chain import LocalChain, local_chain
from tests.support.fakes.chain import NoIndex

DIGEST = bytes(range(32))
OWNER = ACCOUNTS[9]
SIGNED = bytes(Account.unsafe_sign_hash(DIGEST, OWNER.key).signature)

PATIENT = RpcLimits(endpoint_s=50.0, total_s=100.0, untrusted_s=50.0)
"""This EVM takes seconds for what others do in milliseconds: here gas is the limit, not time."""

BREAKS_OFF = "fe"
BURNERS = {
    "goes round for ever": "5b600056",
    "breaks off with all its gas": BREAKS_OFF,
    "takes memory": "5b6000526020620fffff0160005260206000f3",
    "returns very much": "620f42406000f3",
    "answers with a word that is not the one": "60205ff3",
}
"""Runtime code by what it does with the gas it is given."""


def deploy(chain: LocalChain, runtime: str) -> str:
    """The address of a contract of this code: an initialiser that copies it."""
    code = bytes.fromhex(runtime)
    init = bytes.fromhex(f"60{len(code):02x}80600b6000396000f3")
    return chain.wallet.send(OWNER.key, None, init + code)["contractAddress"].lower()


def deploy_wallet(chain: LocalChain) -> str:
    return chain.wallet.deploy(OWNER.key, "ContractWallet", encode(["address"], [OWNER.address]))


@pytest.fixture
async def reader() -> AsyncGenerator[EvmReader]:
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    rpc = JsonRpc(SystemClock(), PATIENT)
    yield EvmReader(ReaderDependencies(rpc, GuardedDocuments(http, None), NoIndex(), SystemClock()))
    await rpc.aclose()
    await http.aclose()


async def test_contracts_that_burn_gas_prove_nothing_and_hold_up_nobody(
    reader: EvmReader, chain: LocalChain
) -> None:
    """What ends each of them is the gas they are given."""
    honest, network = deploy_wallet(chain), chain.network
    for runtime in BURNERS.values():
        burner = deploy(chain, runtime)
        for _ in range(FAILURES_MAX + 1 if runtime == BREAKS_OFF else 1):
            assert not await reader.accepts_signature(network, burner, DIGEST, SIGNED)
        assert await reader.accepts_signature(network, honest, DIGEST, SIGNED) is True


async def test_a_proof_names_the_chains_that_accepted_and_no_other(
    reader: EvmReader, chain: LocalChain
) -> None:
    """On the second chain there is nothing at the wallet's address; a third cannot be read."""
    with local_chain() as other:
        wallet = deploy_wallet(chain)
        second = replace(other.network, slug="second", chain_id=other.network.chain_id)
        wallets = OnchainWallets(
            {"evm": reader}, [chain.network, second], CostLedger(SystemClock())
        )
        proof = await wallets.accept(wallet, DIGEST, SIGNED)
        assert proof is not None
        assert proof.chains == (chain.network.caip2,)
        assert proof.is_home
        elsewhere = OnchainWallets({"evm": reader}, [second], CostLedger(SystemClock()))
        assert await elsewhere.accept(wallet, DIGEST, SIGNED) is None
