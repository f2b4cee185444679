"""What became of MPP payments, from the chain alone: failed only where it can never be mined.

A transaction that is not mined in a block younger than its `valid_before` never will be. Our own
clock decides nothing alone: a chain that stood still can still take it. Source: Tempo's transaction
type 0x76; ADR 0019.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from assay.chains.model import Network
from assay.chains.rpc import Rpc
from assay.common.clock import Clock
from assay.common.json import is_object
from assay.common.tasks import all_results
from assay.payments.all_nodes import ask_nodes
from assay.payments.model import LedgerEntry, PaymentRefused
from assay.payments.mpp.envelope import attempt_of_entry
from assay.payments.mpp.tempo_fees import validity_of
from assay.payments.mpp.transfers import pays
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided
from assay.payments.x402.eip3009_logs import block_of

EXPIRED: Final = "payment-expired"


@dataclass(frozen=True, slots=True)
class MppOutcomes:
    """Asks the nodes of a network for receipts."""

    rpc: Rpc
    chains: Mapping[str, Network]
    clock: Clock

    async def find(
        self, entries: Sequence[LedgerEntry], *, every_node: bool
    ) -> Sequence[PaymentOutcome]:
        """Of each, in order, as `ask_nodes` says. Raises `ChainUnavailable`."""
        chain = self.chains[entries[0].network]
        return await ask_nodes(chain, entries, self._ask, every_node=every_node)

    async def _ask(self, node: Network, entries: Sequence[LedgerEntry]) -> Sequence[PaymentOutcome]:
        """What one node says, of all in one batch."""
        now, time_s = self.clock.now(), 0
        if any(now > entry.expires_at for entry in entries):
            time_s = (await block_of(self.rpc, node, "latest")).time_s  # before any receipt is read
        found = await all_results(self._found(node, entry, time_s) for entry in entries)
        faults = [one for one in found if isinstance(one, Exception)]
        if faults and len(faults) == len(found):
            raise faults[0]
        return [Undecided(str(one)) if isinstance(one, Exception) else one for one in found]

    async def _found(self, node: Network, entry: LedgerEntry, time_s: int) -> PaymentOutcome:
        # Of what is kept of a payer, also where an older version has written down another hash.
        transaction = attempt_of_entry(entry).transaction
        receipt = await self.rpc.request(node, "eth_getTransactionReceipt", (transaction,))
        if is_object(receipt):
            paid = pays(receipt, entry)
            return Settled(transaction) if paid else Rejected("transaction-failed")
        if self.clock.now() > entry.expires_at and time_s >= _end_s(entry):
            return Rejected(EXPIRED)
        return Undecided("no receipt yet", is_unused=True, answers=1)


def _end_s(entry: LedgerEntry) -> int:
    """From which block time on its transaction cannot be mined; 0 where it names none.

    One that its payer has sent stood in a block already.
    """
    with suppress(PaymentRefused):
        return validity_of(entry.credential).before or 0
    return 0
