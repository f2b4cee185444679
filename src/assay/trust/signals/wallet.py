"""How long an agent's wallet has been in use, and how much (decisions, section 4).

A wallet can only speak for its agent: an old one that is in use was not made for a fraud. A new or
empty one says nothing. Source: facts, security 3 (what has a past is expensive to make).
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from assay.chains.model import Account, ChainUnavailable
from assay.kit.json import JsonObject
from assay.trust.model import Evidence, SignalName, Subject, Unavailable, Weighed
from assay.trust.ports import Probe, Signal, SignalNeeds

TRANSACTIONS_FULL = 100
AGES: Mapping[int, float] = {7: 0.35, 30: 0.6, 90: 0.85, 365: 1.0}
"""What days of use are worth, by the last of these days reached."""

DUST, COIN = 10**15, 10**16
"""Balances, in the smallest unit of a coin of 18 decimals: below the first none, then some."""

SHARES = (0.45, 0.4, 0.15)
"""Of age, use and balance."""

SURE, SURE_WITHOUT_AGE, SURE_OF_CONTRACT = 0.8, 0.5, 0.2
"""Confidence. A contract's transactions are not its own, so that little is known of one."""


class WalletSignal:
    """Age, activity and balance class of the wallet that speaks for the agent."""

    name: ClassVar[SignalName] = SignalName.WALLET

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        try:
            account = await needs.reader.fetch_account(subject.network, subject.wallet)
        except ChainUnavailable as error:
            return Unavailable(error.message)
        return Evidence(_seen(account))

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        del probes
        seen = evidence.data
        sent, days = _count(seen["transactions"]), seen["sinceDays"]
        holds = {"none": 0.0, "some": 0.5, "much": 1.0}[str(seen["balance"])]
        if seen["contract"]:
            value = 50 + 50 * SHARES[2] * holds
            told = "The agent's wallet is a contract."
            return Weighed(round(value, 2), SURE_OF_CONTRACT, (told,))
        if not sent:
            return Weighed(50.0, 0.0, ("The agent's wallet has never sent a transaction.",))
        age = max((worth for day, worth in AGES.items() if _count(days) >= day), default=0.0)
        use = min(1.0, sent / TRANSACTIONS_FULL)
        points = SHARES[0] * age + SHARES[1] * use + SHARES[2] * holds
        known = days is not None
        since = f"in use for {_count(days)} days or more" if _count(days) else "new"
        told = since if known else "of unknown age"
        return Weighed(
            value=round(50 + 50 * points, 2),
            confidence=SURE if known else SURE_WITHOUT_AGE,
            reasons=(f"The agent's wallet is {told} and has sent {sent} transactions.",),
        )


def _seen(account: Account) -> JsonObject:
    balance = account.balance or 0
    return {
        "transactions": account.transactions,
        "contract": bool(account.is_contract),
        "sinceDays": account.since_days,
        "balance": "none" if balance < DUST else "some" if balance < COIN else "much",
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


SIGNAL: Final[Signal] = WalletSignal()
