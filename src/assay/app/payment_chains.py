"""The payment networks, as they are configured, and as the RPC layer knows them."""

from collections.abc import Mapping

from assay.app.naming import naming
from assay.chains.model import Network
from assay.payments.model import PaymentNetwork
from assay.payments.networks import payment_networks
from assay.settings import Settings

NO_REGISTRY = "0x" + "00" * 20


def payment_rows(settings: Settings) -> Mapping[str, PaymentNetwork]:
    """The payment networks with the configured endpoints; raises `ValueError`."""
    with naming("ASSAY_PAYMENT_RPC or ASSAY_CONFIRMATIONS"):
        return payment_networks(settings.payment_rpc, settings.confirmations)


def payment_chains(networks: Mapping[str, PaymentNetwork]) -> Mapping[str, Network]:
    """The payment networks as the RPC layer knows chains, by their ids."""
    return {network.id: chain_of(network) for network in networks.values()}


def chain_of(network: PaymentNetwork) -> Network:
    """A payment network as the RPC layer knows chains."""
    return Network(
        slug=network.id,
        name=network.id,
        chain_id=network.chain_id,
        testnet=network.testnet,
        identity_registry=NO_REGISTRY,
        reputation_registry=NO_REGISTRY,
        rpc_urls=network.rpc_urls,
        source=network.source,
        multicall3=network.protocol == "x402",
    )
