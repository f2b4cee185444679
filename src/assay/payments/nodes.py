"""Whether a payment network's nodes answer. Implements `payments.settling_watch.NodeReader`."""

from collections.abc import Mapping
from dataclasses import dataclass

from assay.chains.model import Network
from assay.chains.rpc import Rpc


@dataclass(frozen=True, slots=True)
class PaymentNodes:
    """The nodes of the payment networks, by network id."""

    rpc: Rpc
    networks: Mapping[str, Network]

    async def check(self, network: str) -> None:
        await self.rpc.request(self.networks[network], "eth_blockNumber", ())
