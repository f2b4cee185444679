"""Claims of paid calls as rows, their limits, and what making them needs of the outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from assay.common.json import JsonObject
from assay.payments.model import PaymentNetwork
from assay.payments.ports import Authorization
from assay.payments.transfer_model import Draft
from assay.probing.purchases import Sale

PAYEE_MAX: Final = 100_000
"""Most that one payee, agent or site is given within `EVERY`, in base units: 0.10 USD."""

EVERY: Final = timedelta(days=30)
KNOWN_FOR: Final = 2 * EVERY
"""How long what was bought counts: twice, for a lack of our money lowers nobody."""

CALLS_MIN, CALLS_MAX = 2, 6
"""Calls of one visit: one answer may be a template, and two inputs and both again are enough."""

GAS: Final = 10_000
"""What filling a wallet counts in the budget, whatever it costs: 0.01 USD. It bounds how many
wallets a day are filled where prices are tiny."""

SHARE: Final = 10
"""An owner, and a domain with all that is below it, get a tenth of a day's budget."""

TRIES_MAX: Final = 3
"""Visits that may spend what is left in one wallet, while nothing is proven."""


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A claim: so many base units for a service, in a wallet of its own."""

    id: str
    subject_key: str
    service: str
    payee: str
    owner: str
    site: str
    """Registrable domain by the Public Suffix List, its private section included."""
    domain: str
    """The same without that section: whom the name was registered for."""
    network: str
    sender: str
    wallet: str
    amount: int
    opened_at: datetime
    nonce: int | None = None
    raw: str = ""
    transaction: str = ""
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class Spending:
    """What was claimed within a day, gas included, and what became of all claims of a month."""

    day: int
    calls: int
    filled: int
    proven: int
    taken: int
    """Base units that sellers are known to have taken."""


class PaidCallStore(Protocol):
    """Claims, durable before they are answered. Raises `common.errors.Unavailable`."""

    async def claim(self, wanted: PaidCall, day_budget: int) -> PaidCall | None:
        """The claim, an earlier one that may still be spent, or None where a limit is reached."""
        ...

    async def sign(self, call: PaidCall, draft: Draft) -> PaidCall:
        """Give it the sender's next nonce and keep what is signed; once for each claim."""
        ...

    async def unfilled(self, sender: str, network: str, at_most: int) -> Sequence[PaidCall]:
        """Signed, and not known to be mined; by nonce."""
        ...

    async def filled(self, call: PaidCall) -> None:
        """Its wallet has the money."""
        ...

    async def begin(self, call: PaidCall) -> None:
        """Count a visit that spends it."""
        ...

    async def keep(self, call_id: str, bought: JsonObject, taken: int, *, is_proven: bool) -> None:
        """Keep what was bought; nothing that proves less takes its place."""
        ...

    async def known(self, sale: Sale, since: datetime) -> JsonObject | None:
        """What was kept last of a sale."""
        ...

    async def spending(self, now: datetime) -> Spending:
        """For the operator."""
        ...


class VisitWallets(Protocol):
    """Wallets made of the operator's key and a claim's id; no key of theirs is kept."""

    def address(self, call_id: str) -> str:
        """In lower case."""
        ...

    def sign(self, call_id: str, transfer: Authorization, network: PaymentNetwork) -> Authorization:
        """The transfer, signed by its wallet."""
        ...


class Balances(Protocol):
    """Reads what wallets hold."""

    async def balance(self, network: PaymentNetwork, wallet: str) -> int:
        """Of the network's asset, in base units. Raises `ServiceError`."""
        ...
