import pytest

from assay.registries.families.evm import EvmReader
from assay.registries.model import AgentNotFound
from assay.registries.ports import ReaderDependencies
from assay.registries.subjects import Resolution, WalletResolver
from tests.support.fakes.chain import NETWORK, FakeDocuments, FakeRpc, NoIndex, Token, wallet
from tests.support.fakes.clock import FrozenClock


def resolver(rpc: FakeRpc, files: dict[str, bytes] | None = None) -> WalletResolver:
    clock = FrozenClock()
    needs = ReaderDependencies(rpc, FakeDocuments(files or {}), NoIndex(), clock)
    return WalletResolver({"evm": EvmReader(needs)}, clock)


async def test_a_wallet_resolves_to_its_agent_with_the_lowest_id() -> None:
    rpc = FakeRpc([Token(wallet(1)), Token(wallet(2), "u:1"), Token(wallet(2))])
    found = await resolver(rpc, {"u:1": b'{"name": "Steady"}'}).resolve(NETWORK, wallet(2))
    at = FrozenClock().now()
    assert found == Resolution(wallet(2), "1", "owner", 31337, "Steady", at)


async def test_an_agent_without_a_readable_file_resolves_without_a_name() -> None:
    rpc = FakeRpc([Token(wallet(1), wallet=wallet(5))])
    found = await resolver(rpc).resolve(NETWORK, wallet(5))
    assert (found.agent_id, found.source, found.agent_name) == ("0", "agentWallet", "")


async def test_a_wallet_of_no_agent_is_not_found() -> None:
    with pytest.raises(AgentNotFound):
        await resolver(FakeRpc([Token(wallet(1))])).resolve(NETWORK, wallet(2))
