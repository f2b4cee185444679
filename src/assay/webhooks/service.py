"""Registers, lists and removes webhooks.

Source: interface.md#webhooks; conventions.md#open-endpoints, #webhook-delivery.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.audit.service import TERMINAL, Actor, new_entry
from assay.chains.model import is_address
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, Problem
from assay.common.fair_queue import LISTS, FairQueue
from assay.common.ids import new_id
from assay.common.keyring import SecretBox
from assay.http1.model import Target
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.registries.model import TOKEN_ID_MAX
from assay.webhooks.model import (
    EVENTS,
    REGISTRATIONS_MAX,
    AgentRef,
    Delivery,
    WebhookLimitReached,
    WebhookNotFound,
    WebhookRegistration,
)
from assay.webhooks.payload import secret_bytes
from assay.webhooks.ports import WebhookStore
from assay.webhooks.receiver_proof import ReceiverProofs, Verification

URL_CHARS_MAX: Final = 2048
AGENTS_MAX: Final = 1000
"""Most agents that one registration may name."""

EVERY_AGENT: Final = "*"

_DECIMAL = re.compile(r"[0-9]{1,78}")
_SOLANA = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
"""A 32-byte public key in base58."""


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """What an operator asks for."""

    event: str
    url: str
    agent_ids: Sequence[AgentRef] | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A page of deliveries: older than the one of that id, so many, after so many."""

    before: str | None = None
    limit: int = 50
    offset: int = 0


class Webhooks:
    """An operator's registrations, and what was delivered to them."""

    def __init__(
        self,
        store: WebhookStore,
        secrets: SecretBox,
        egress: EgressPolicy,
        clock: Clock,
        proofs: ReceiverProofs,
    ) -> None:
        self._proofs = proofs
        self._store = store
        self._secrets = secrets
        self._egress = egress
        self._clock = clock
        self.lists = FairQueue(*LISTS, "lists of webhooks")
        """The queue of callers that read a whole list."""

    async def register(
        self, operator_id: str, asked: NewWebhook, actor: Actor
    ) -> WebhookRegistration:
        """Create a registration.

        Raises `InvalidRequest` naming every problem, and `WebhookLimitReached`.
        """
        problems = list(_problems(asked, self._egress))
        if problems:
            details = [Problem(("body", name), said) for name, said in problems]
            raise InvalidRequest("The webhook cannot be registered like this.", details=details)
        webhook_id = new_id()
        sealed = None
        if asked.secret is not None:
            sealed = self._secrets.seal(secret_bytes(asked.secret), place(webhook_id))
        made = WebhookRegistration(
            id=webhook_id,
            operator_id=operator_id,
            event=asked.event,
            url=asked.url,
            agent_ids=None if asked.agent_ids is None else tuple(asked.agent_ids),
            sealed_secret=sealed,
            created_at=self._clock.now(),
        )
        entry = new_entry(
            *(self._clock, actor, "webhook.registered", operator_id, webhook_id),
            signed=sealed is not None,
        )
        keys = _keys(made)
        if not await self._store.add(made, keys, REGISTRATIONS_MAX, entry):
            raise WebhookLimitReached(f"An operator has at most {REGISTRATIONS_MAX} webhooks.")
        return made

    async def list(self, operator_id: str) -> Sequence[WebhookRegistration]:
        """Return the operator's registrations, newest first."""
        return await self._store.list(operator_id)

    async def remove(self, operator_id: str, webhook_id: str, actor: Actor) -> None:
        """Remove a registration at once. Raises `WebhookNotFound`."""
        entry = new_entry(self._clock, actor, "webhook.removed", operator_id, webhook_id)
        if not await self._store.remove(operator_id, webhook_id, entry):
            raise WebhookNotFound("You have no webhook of this id.")

    def verification(self, made: WebhookRegistration) -> Verification | None:
        """Return what the receiver must show to get a budget of its own, and where."""
        return self._proofs.verification(made.operator_id, made.url)

    async def verify(self, operator_id: str, webhook_id: str) -> bool:
        """Ask now; return whether the receiver shows the account's token.

        Raises `WebhookNotFound`.
        """
        found = await self._store.find(operator_id, webhook_id)
        if found is None:
            raise WebhookNotFound("You have no webhook of this id.")
        return await self._proofs.ask(operator_id, found.url, now=True)

    async def deliveries(
        self, operator_id: str, webhook_id: str | None, before: str | None, limit: int
    ) -> Sequence[Delivery]:
        """Return what was delivered to the operator, newest first."""
        return await self._store.deliveries(operator_id, webhook_id, before, limit)

    async def delivery_page(
        self, operator_id: str, webhook_id: str | None, page: DeliveryPage
    ) -> tuple[Sequence[Delivery], int]:
        """Return a page of deliveries, newest first, and how many there are."""
        found = await self._store.deliveries(
            operator_id, webhook_id, page.before, page.limit, page.offset
        )
        return found, await self._store.count_deliveries(operator_id, webhook_id)

    async def reseal(self, operator_id: str, actor: Actor = TERMINAL) -> int:
        """Seal secrets again that an older key of the ring sealed; return how many there were."""
        count = 0
        for one in await self._store.list(operator_id):
            if one.sealed_secret is not None and not self._secrets.is_current(one.sealed_secret):
                key = self._secrets.open(one.sealed_secret, place(one.id))
                resealed = replace(one, sealed_secret=self._secrets.seal(key, place(one.id)))
                entry = new_entry(self._clock, actor, "webhook.resealed", operator_id, one.id)
                await self._store.reseal(resealed, entry)
                count += 1
        return count


def place(webhook_id: str) -> bytes:
    """Return what a sealed secret is bound to."""
    return b"webhook/" + webhook_id.encode()


def _keys(made: WebhookRegistration) -> Sequence[str]:
    """Return the ids that the filter accepts, each in its one form."""
    if made.agent_ids is None:
        return [EVERY_AGENT]
    return sorted({_canonical(ref) or "" for ref in made.agent_ids})


def _canonical(ref: AgentRef) -> str | None:
    """Return the id as evaluations name it; None if it cannot be an agent's."""
    text = str(ref)
    if _DECIMAL.fullmatch(text):
        return str(int(text)) if int(text) <= TOKEN_ID_MAX else None
    if is_address(text):
        return text.lower()
    return text if _SOLANA.fullmatch(text) else None


def _problems(asked: NewWebhook, egress: EgressPolicy) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if asked.event not in EVENTS:
        found.append(("event", f"must be one of {', '.join(EVENTS)}"))
    if (said := _url_problem(asked.url, egress)) is not None:
        found.append(("url", said))
    if asked.agent_ids is not None:
        found += _agent_problems(asked.agent_ids)
    if asked.secret is not None:
        try:
            secret_bytes(asked.secret)
        except ValueError as error:
            found.append(("secret", str(error)))
    return found


def _url_problem(url: str, egress: EgressPolicy) -> str | None:
    if len(url) > URL_CHARS_MAX:
        return f"is longer than {URL_CHARS_MAX} characters"
    target = parse_target(url, egress)
    if isinstance(target, RefusedUrl):
        return target.why
    if target.scheme == "http" and not _is_own(target, egress):
        return "only https addresses are called"
    return None


def _is_own(target: Target, egress: EgressPolicy) -> bool:
    """Return whether plain http is used for development on one's own machine or network."""
    if target.host == "localhost":
        return egress.allow_private
    return target.is_literal_ip and EgressPolicy().judge(target.host) is not None


def _agent_problems(agent_ids: Sequence[AgentRef]) -> list[tuple[str, str]]:
    if not 1 <= len(agent_ids) <= AGENTS_MAX:
        return [("agentIds", f"must name 1 to {AGENTS_MAX} agents; leave it out for all of them")]
    if any(_canonical(ref) is None for ref in agent_ids):
        return [("agentIds", "must be token ids, or addresses and Solana assets as strings")]
    return []
