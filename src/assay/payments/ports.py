"""What payments need of the outside, and what a payment protocol is."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias
from typing import Protocol as Port

from assay.common.clock import Clock
from assay.common.http_heads import HeaderPairs
from assay.payments.gas import GasBudget
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentNetwork,
    PaymentRequirements,
    PaymentSighting,
    Protocol,
    Quote,
)
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, SettlementAttempt
from assay.payments.requests import PaidRequest, PresentedPayment

Note: TypeAlias = Callable[[SettlementAttempt], Awaitable[None]]
"""Writes an attempt down, durably, before it is sent."""

Balances: TypeAlias = Mapping[str, int]
"""Base units by token: of the network's asset, and of the token of the payment's fees."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """An EIP-3009 `TransferWithAuthorization`; hex in lower case, times in seconds."""

    payer: str
    to: str
    value: int
    valid_after: int
    valid_before: int
    nonce: str
    signature: str


class AuthorizationSigners(Port):
    """EIP-712 signatures over EIP-3009 authorisations."""

    def signer(self, authorization: Authorization, network: PaymentNetwork) -> str | None:
        """The lower-case address that signed for the network's own asset, or None."""
        ...


class Settler(Port):
    """Settles payments, and says what became of them."""

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Settle and wait for the outcome; every attempt is handed to `note` before it is sent."""
        ...

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        """What became of a settlement, from the chain alone; nothing is sent."""
        ...

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        """As `PaymentProtocol.outcomes`."""
        ...

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Send again what was signed before, or what has to replace it; waits for no block."""
        ...


class Facilitator(Settler, Port):
    """Our own engine for EIP-3009 authorisations, or a service. Raises `PaymentsUnavailable`."""

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        """The payer's balance, once everything says the transfer would go through now.

        Raises `PaymentRefused`; `sighting` is told what the chain has shown, either way.
        """
        ...

    async def balance(self, payment: Payment, sighting: PaymentSighting) -> int:
        """What the payer has of the asset, in base units, by the chain alone. Raises as `verify`.

        Refused when it is less than the amount, or the authorisation is used.
        """
        ...


class MppCharges(Settler, Port):
    """The `charge` intent of the Payment authentication scheme on Tempo, by its own library."""

    async def challenge(self, quote: Quote, problem: str) -> PaymentRequirements:
        """A fresh challenge bound to wrapper, method and path."""
        ...

    def challenge_s(self, quote: Quote) -> tuple[float, float]:
        """Seconds a challenge may be paid, and must still be good to be forwarded for."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote) -> bool:
        """As `PaymentProtocol.is_good`."""
        ...

    async def present(self, credential: str) -> PresentedPayment:
        """An `Authorization: Payment` value, taken apart. Raises `PaymentRefused`."""
        ...

    async def read(self, presented: PresentedPayment, quote: Quote) -> Payment:
        """The validated payment; nothing is consumed. Raises as `PaymentProtocol.read`."""
        ...

    async def verify(self, payment: Payment) -> Balances | None:
        """The payer's balances; None when the transfer has happened already."""
        ...

    def work_s(self, payment: Payment) -> float:
        """As `PaymentProtocol.work_s`."""
        ...

    def receipt(self, entry: LedgerEntry) -> bytes:
        """The value of `Payment-Receipt` for a settled entry."""
        ...


@dataclass(frozen=True, slots=True)
class ProtocolDependencies:
    """What a protocol works with."""

    signers: AuthorizationSigners
    facilitator: Facilitator
    charges: MppCharges
    clock: Clock
    x402_clock_s: float = 300.0  # an authorisation's validity beyond what was asked for
    gas: GasBudget | None = None
    """Who pays for settling with a key of ours; None where none of ours settles."""

    def ended(self, entry: LedgerEntry, found: Settled | Rejected) -> SettlementAttempt:
        """The entry's attempt with what it has cost, where that is known."""
        spent = None if self.gas is None else self.gas.spent(entry, found.gas_wei)
        return replace(entry.attempt, spent=spent)


class PaymentProtocol(Port):
    """A folder of `payments`: how one protocol asks, reads, settles and thanks."""

    name: ClassVar[Protocol]
    binds_body: ClassVar[bool]
    """Whether a demand holds for one body only: then the body is read before the 402."""
    publishes: ClassVar[bool]
    """Whether settling shows the credential to the world: from then on anybody can send it."""
    spends_gas: ClassVar[bool]
    """Whether settling is a transaction of ours, where a key of ours settles."""
    receipts_refusals: ClassVar[bool]
    """Whether an answer that serves nothing may carry a receipt of what was paid for it."""

    async def demand(
        self, quote: Quote, needs: ProtocolDependencies, reason: str, transaction: str = ""
    ) -> PaymentRequirements:
        """How to pay; `reason` is the protocol's word for what was wrong with the last try."""
        ...

    def is_attached(self, headers: HeaderPairs) -> bool:
        """Whether a payment of this protocol is attached, good or bad."""
        ...

    async def present(
        self, headers: HeaderPairs, needs: ProtocolDependencies
    ) -> PresentedPayment | None:
        """The attached payment, taken apart; None without one that can be."""
        ...

    def needed_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """How long a payment that arrives now must still be good, in seconds."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote, needs: ProtocolDependencies) -> bool:
        """Whether a claimed payment that comes again now would be good for long enough."""
        ...

    def quote_life_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """How long after it was asked for a quote may be paid, in seconds."""
        ...

    async def read(
        self, request: PaidRequest, quote: Quote, needs: ProtocolDependencies
    ) -> Payment:
        """The attached payment, its payer established; nothing is consumed.

        Raises `PaymentRefused` for anything that does not pay for `quote`, `PaymentsUnavailable`.
        """
        ...

    async def verify(
        self, payment: Payment, needs: ProtocolDependencies, sighting: PaymentSighting
    ) -> Balances | None:
        """The payer's balances where they must cover every payment in flight, else None.

        Raises `PaymentRefused` and `PaymentsUnavailable`; `sighting` is told what was shown.
        """
        ...

    def work_s(self, payment: Payment, needs: ProtocolDependencies) -> float:
        """How long its upstream may take, in seconds, now that it is verified."""
        ...

    async def settle(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Settle and wait for the outcome; every attempt is handed to `note` before it is sent."""
        ...

    async def outcome(self, entry: LedgerEntry, needs: ProtocolDependencies) -> PaymentOutcome:
        """What became of a settlement, from the chain alone; nothing is sent."""
        ...

    async def outcomes(
        self,
        entries: Sequence[LedgerEntry],
        needs: ProtocolDependencies,
        *,
        every_node: bool = False,
    ) -> Sequence[PaymentOutcome]:
        """What became of settlements of one network, by its nodes. Raises `Unavailable`.

        Refused, with `every_node` unused, is what all say that answer, two of two at least.
        """
        ...

    async def resend(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Send again what was signed before, or what has to replace it; waits for no block."""
        ...

    def receipt(self, entry: LedgerEntry, needs: ProtocolDependencies) -> HeaderPairs:
        """The headers that say it was paid."""
        ...

    def pending(self, entry: LedgerEntry) -> HeaderPairs:
        """The headers of an answer that cannot say yet."""
        ...
