"""What an agent's wallet spent at unrelated sellers (evidence.md#paid-reputation).

A wallet can only speak for its agent: money lost to others did not come from a fraud. Its age, its
transactions and its balance cost next to nothing and are not evidence. Everything is read from the
index, so that an unavailable node raises no score.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.common.numbers import MICRO
from assay.evaluation.earlier_signals import wallet_weighed
from assay.evaluation.model import Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies
from assay.probing.ports import Probe
from assay.registries.model import Subject

RULES = 2
"""Version of the evidence; version 1 was age, transactions and balance, and has no `rules`."""

FULL_USD = Decimal(20)
"""Spending with full value; less counts in proportion."""

SURE = 0.1
"""Confidence: with the default weights less than 1 point, because the money may have returned by a
route too long to trace."""


class WalletSignal:
    """Money that the wallet spent at unrelated sellers."""

    name: ClassVar[SignalName] = SignalName.WALLET

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        source, network = needs.sources.reputation, subject.network
        own = frozenset({subject.wallet})
        side = own if subject.agent is None else own | subject.agent.controllers
        spent = None if source is None else await source.spent(network, subject.wallet, side)
        data: JsonObject = {"rules": RULES}
        if spent is not None:
            data |= {"spentUsd": f"{spent // MICRO}.{spent % MICRO:06d}"}
        return Evidence(data)

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        """Weigh by the rules that the evidence was made for."""
        del probes
        seen = evidence.data
        if "rules" not in seen:
            return wallet_weighed(seen)
        spent = Decimal(str(seen.get("spentUsd", 0)))
        if not spent:
            return SignalScore(50.0, 0.0, (_NOTHING if "spentUsd" in seen else _UNREAD,))
        share = min(Decimal(1), spent / FULL_USD)
        sentence = f"The agent's wallet has spent {spent:.2f} USD at sellers unrelated to it."
        return SignalScore(round(50 + 50 * float(share), 2), SURE, (sentence,))


_NOTHING = (
    "The agent's wallet is not known to have paid unrelated sellers; age and transactions are no"
    " evidence."
)
_UNREAD = "Payments by wallets of this network are not read."

SIGNAL: Final[Signal] = WalletSignal()
