"""Checks receivers' addresses, and the proof that a receiver wants an account's events.

A receiver proves that it wants an account's events by showing its token. It then has a budget of
its own, which nobody else's deliveries use up, and which uses up nobody's. Nothing else depends on
the proof. Source: ADR 0016.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.cache import BoundedMap, SingleFlight
from assay.common.clock import Clock
from assay.common.egress_budget import EgressUse, UseClass, egress_use
from assay.common.keyring import MacKeys, SecretRing
from assay.http1.model import Target
from assay.net.egress.consent import Consents, origin_of
from assay.net.egress.ports import EgressClient, EgressError, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy, domain_of, parse_target

_ANY = EgressPolicy(allow_private=True, require_https=False)
"""Addresses were checked when they were registered, and are checked again when they are dialled."""


def same_address(url: str) -> str:
    """Return one text for all spellings of an address: host case, default port, fragment."""
    target = _target(url)
    return url if target is None else origin_of(target) + target.path_and_query


def domain_of_url(url: str) -> str | None:
    """Return the domain whose budget a delivery uses; None for an invalid address."""
    target = _target(url)
    return None if target is None else domain_of(target.host)


def _origin_of_url(url: str) -> str | None:
    """Return scheme, host and port; None for an invalid address."""
    target = _target(url)
    return None if target is None else origin_of(target)


def _target(url: str) -> Target | None:
    target = parse_target(url, _ANY)
    return target if isinstance(target, Target) else None


WELL_KNOWN: Final = "/.well-known/assay-webhook-verification"
"""Where a receiver shows the tokens of the accounts whose events it wants, one a line."""

TOKEN_PREFIX: Final = "assay-webhook-"  # noqa: S105 - how a token begins, not one
ASKED_AGAIN_S: Final = 600.0
"""Seconds for which a receiver that showed no token is not asked again."""

ASKED_MAX: Final = 10_000
_LIMITS: Final = Limits(connect_s=3.0, total_s=5.0, body_bytes_max=16 * 1024)
_OK = 200
_TOKEN_BYTES = 20


@dataclass(frozen=True, slots=True)
class Verification:
    """What a receiver must show, and where."""

    url: str
    token: str


class ReceiverProofs:
    """Finds out whether receivers want an account's events."""

    def __init__(
        self, consents: Consents, http: EgressClient, secrets: SecretRing, clock: Clock
    ) -> None:
        self._consents = consents
        self._http = http
        self._keys = MacKeys(b"assay.webhook-receiver|", secrets)
        self._clock = clock
        self._asked: BoundedMap[str, float] = BoundedMap(ASKED_MAX)
        self._flights: SingleFlight[bool] = SingleFlight()

    def verification(self, operator_id: str, url: str) -> Verification | None:
        """Return what the host of `url` must show to the account; None for an invalid address.

        The token belongs to the account and the origin only. It changes with the secret that it is
        made of, and one of a previous secret still counts. It grants its reader nothing.
        """
        origin = _origin_of_url(url)
        if origin is None:
            return None
        mac = self._keys.mac(_name(operator_id, url).encode())[:_TOKEN_BYTES]
        return Verification(origin + WELL_KNOWN, TOKEN_PREFIX + mac.hex())

    async def use_of(self, operator_id: str, url: str) -> EgressUse:
        """Return the budget that a delivery uses. Raises `common.errors.Unavailable`."""
        name = _name(operator_id, url)
        if await self._consents.find(name) is None:
            return EgressUse(account=operator_id)
        return EgressUse(UseClass.OWN, operator_id, name)

    async def ask(self, operator_id: str, url: str, *, now: bool = False) -> bool:
        """Ask within the domain's shared budget; return whether the receiver shows the token.

        Unless it must be found out `now`, a receiver that was asked recently is not asked again. A
        request for which the budget had no room was not sent and does not count. Raises
        `common.errors.Unavailable` if the result cannot be stored.
        """
        shown = self.verification(operator_id, url)
        name = _name(operator_id, url)
        if shown is None:
            return False
        with egress_use(EgressUse(account=operator_id)):
            return await self._flights.run(name, lambda: self._ask(operator_id, name, shown, now))

    async def _ask(self, operator_id: str, name: str, shown: Verification, now: bool) -> bool:  # noqa: FBT001
        if not now and self._was_asked(name):
            return False
        try:
            reply = await self._http.send(OutboundRequest("GET", shown.url), _LIMITS)
        except EgressError as error:
            if error.failure is not Failure.BUDGET or error.is_sent:
                self._note_asked(name)
            return False
        self._note_asked(name)
        lines: Sequence[bytes] = reply.body.split(b"\n") if reply.status == _OK else ()
        is_shown = any(self._is_token(name, line.strip()) for line in lines)
        if is_shown and reply.address is not None:
            await self._consents.record(name, operator_id, reply.address)
        elif not is_shown and not reply.over_budget:
            await self._consents.withdraw(name, operator_id)
        return is_shown

    def _is_token(self, name: str, line: bytes) -> bool:
        try:
            mac = bytes.fromhex(line.decode("ascii").removeprefix(TOKEN_PREFIX))
        except ValueError:
            return False
        return len(mac) == _TOKEN_BYTES and self._keys.is_mac(name.encode(), mac)

    def _note_asked(self, name: str) -> None:
        self._asked.put(name, self._clock.monotonic_s() + ASKED_AGAIN_S)

    def _was_asked(self, name: str) -> bool:
        return self._clock.monotonic_s() < (self._asked.get(name) or 0.0)


def _name(operator_id: str, url: str) -> str:
    return f"webhook {operator_id} {_origin_of_url(url)}"
