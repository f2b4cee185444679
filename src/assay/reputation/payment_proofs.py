"""Looks up a payment, proven by a voter, on its chain."""

from collections.abc import Mapping, Sequence
from typing import Final

from assay.chains.evm.abi import address_word
from assay.chains.model import Network
from assay.chains.rpc import Returned, Rpc, RpcRefused
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries import erc8004
from assay.registries.ports import DocumentOverBudget
from assay.reputation.events import (
    AUTHORIZATION_USED,
    DAY_S,
    TRANSFER,
    RawLog,
    head_of,
    raw_log,
    transferred,
)
from assay.reputation.file_rules import Event, PaymentProof
from assay.reputation.indexer import TAIL
from assay.reputation.rows import PaymentChain, ProvenPayment, TransferRow

LOGS_MAX: Final = 500
"""Events examined in one transaction."""


class PaymentProofs:
    """Looks payments up on chain."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, PaymentChain], tail: int = TAIL) -> None:
        self._rpc = rpc
        self._chains = chains
        self._tail = tail

    async def paid(
        self, proof: PaymentProof, event: Event, network: Network, block: int
    ) -> ProvenPayment | None:
        """Return the payment if its voter made it before the feedback, to the agent's wallet.

        Raises `DocumentOverBudget` if the payment may still be reorganised.
        """
        chain = next(
            (
                one
                for one in self._chains.values()
                if one.network.chain_id == proof.chain_id and one.network.testnet == network.testnet
            ),
            None,
        )
        if chain is None or proof.payee != await self._wallet(network, event.agent_id):
            return None
        try:
            answer = await self._rpc.request(chain.network, "eth_getTransactionReceipt", [proof.tx])
        except RpcRefused:
            return None
        receipt: JsonObject = answer if is_object(answer) else {}
        listed = receipt.get("logs")
        if receipt.get("status") != "0x1" or not is_array(listed) or len(listed) > LOGS_MAX:
            return None
        logs = [raw_log(row) for row in listed]
        paid = self._moved(logs, listed, proof, chain)
        if paid is None:
            return None
        head, _, _ = await head_of(self._rpc, chain.network)
        if paid.block > head - self._tail:
            raise DocumentOverBudget("the payment may still be taken back")
        _, at_s, _ = await head_of(self._rpc, chain.network, hex(paid.block))
        _, said_s, _ = await head_of(self._rpc, network, hex(block))
        if at_s > said_s:
            return None
        is_charge = chain.charges_only or any(
            log.name == AUTHORIZATION_USED and "0x" + log.topics[1][12:].hex() == proof.payer
            for log in logs
            if len(log.topics) > 1
        )
        return ProvenPayment(
            chain.network.slug,
            TransferRow(
                *(paid.tx, paid.index, proof.payer, proof.payee),
                *(transferred(paid, chain), paid.block, at_s // DAY_S, is_charge),
            ),
        )

    @staticmethod
    def _moved(
        logs: Sequence[RawLog], rows: Sequence[JsonValue], proof: PaymentProof, chain: PaymentChain
    ) -> RawLog | None:
        """Return the transfer of a listed asset between the two; the largest of several."""
        assets = {asset.address.lower() for asset in chain.assets}
        ends = (address_word(proof.payer), address_word(proof.payee))
        found = [
            log
            for log, row in zip(logs, rows, strict=True)
            if is_object(row)
            and str(row.get("address")).lower() in assets
            and log.name == TRANSFER
            and log.topics[1:] == ends
            and log.tx == proof.tx
            and transferred(log, chain) > 0
        ]
        return max(found, key=lambda log: transferred(log, chain), default=None)

    async def _wallet(self, network: Network, agent_id: str) -> str | None:
        """Return the agent's current wallet. Raises `ChainUnavailable` and `BadAnswer`."""
        call = erc8004.agent_wallet(network.identity_registry, agent_id)
        (answer,) = await self._rpc.call(network, [call])
        return erc8004.read_address(answer.data) if isinstance(answer, Returned) else None
