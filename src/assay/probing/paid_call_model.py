"""Claims of paid calls as rows, their limits, and the dependencies of making them."""

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
"""Most that one payee, agent or site receives within `EVERY`, in base units: 0.10 USD."""

EVERY: Final = timedelta(days=30)
KNOWN_FOR: Final = 2 * EVERY
"""How long a purchase counts: twice `EVERY`, so that our lack of money lowers no grade."""

CALLS_MIN, CALLS_MAX = 2, 6
"""Calls of one visit: one answer may be a template, and two inputs and both again suffice."""

GAS: Final = 10_000
"""The flat cost of filling a wallet in the budget: 0.01 USD. It bounds how many wallets a day are
filled if prices are tiny."""

SHARE: Final = 10
"""An owner, and a domain with everything below it, each get a tenth of a day's budget."""

TRIES_MAX: Final = 3
"""Visits that may spend the rest of one wallet, while nothing is proven."""


@dataclass(frozen=True, slots=True)
class PaidCall:
    """A claim: an amount in base units for a service, in a wallet of its own."""

    id: str
    subject_key: str
    service: str
    payee: str
    owner: str
    site: str
    """Registrable domain by the Public Suffix List, its private section included."""
    domain: str
    """The same without that section: the name's registrant."""
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
    """What was claimed within a day, gas included, and the results of all claims of a month."""

    day: int
    calls: int
    filled: int
    proven: int
    taken: int
    """Base units that sellers are known to have taken."""


class PaidCallStore(Protocol):
    """Stores claims durably before they are answered. Raises `common.errors.Unavailable`."""

    async def claim(self, wanted: PaidCall, day_budget: int) -> PaidCall | None:
        """Return the claim, an earlier one with money left, or None if a limit is reached."""
        ...

    async def sign(self, call: PaidCall, draft: Draft) -> PaidCall:
        """Assign the sender's next nonce and store what is signed; once for each claim."""
        ...

    async def unfilled(self, sender: str, network: str, at_most: int) -> Sequence[PaidCall]:
        """Return claims that are signed and not known to be mined, by nonce."""
        ...

    async def filled(self, call: PaidCall) -> None:
        """Record that its wallet has the money."""
        ...

    async def begin(self, call: PaidCall) -> None:
        """Count a visit that spends it."""
        ...

    async def keep(self, call_id: str, bought: JsonObject, taken: int, *, is_proven: bool) -> None:
        """Store what was bought, unless what is stored proves more."""
        ...

    async def known(self, sale: Sale, since: datetime) -> JsonObject | None:
        """Return what was stored last of a sale."""
        ...

    async def spending(self, now: datetime) -> Spending:
        """Return the spending, for the operator."""
        ...


class VisitWallets(Protocol):
    """Derives wallets from the operator's key and a claim's id; their keys are not stored."""

    def address(self, call_id: str) -> str:
        """Return the wallet's address in lower case."""
        ...

    def sign(self, call_id: str, transfer: Authorization, network: PaymentNetwork) -> Authorization:
        """Return the transfer, signed by its wallet."""
        ...


class Balances(Protocol):
    """Reads balances of wallets."""

    async def balance(self, network: PaymentNetwork, wallet: str) -> int:
        """Return the balance of the network's asset, in base units. Raises `ServiceError`."""
        ...
