"""Creates, changes, lists and deactivates wrappers (interface.md#wrapper-body)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.audit.service import TERMINAL, Actor, AuditEntry, new_entry
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, Problem
from assay.common.fair_queue import LISTS, FairQueue
from assay.common.ids import new_id
from assay.common.keyring import SecretBox
from assay.common.numbers import DECIMALS
from assay.payments.sale_checks import SaleTerms, SaleWarnings
from assay.wrappers.endpoint_rules import (
    ConfigRules,
    EndpointChange,
    Found,
    NewEndpoint,
    PreconditionFailed,
    asked_of,
    best_first,
    origin_as_sent,
    problems_of,
    secret_problems,
    warnings_beside,
)
from assay.wrappers.history import (
    FieldChange,
    Revision,
    WrapperCosts,
    changes_between,
    fields_of,
)
from assay.wrappers.matching import route_key
from assay.wrappers.model import (
    EndpointNotFound,
    EndpointOverlaps,
    UpstreamAuth,
    WrapperConfig,
)
from assay.wrappers.store import SqlWrapperStore

_TRIES_MAX = 20
"""How often a change is tried again because another one came between."""

ENDPOINTS_MAX = 1000
"""Most active wrappers of one operator."""

KEPT_MAX = 5000
"""Most wrappers of one operator in all: calls and payments refer to stopped ones."""

_FULL: Final = f"an account keeps {KEPT_MAX:,} wrappers, of which {ENDPOINTS_MAX:,} may be active"
_TWICE: Final = "has the method and path of an earlier one"
_CHECKED_AT_ONCE: Final = 50
"""Wrappers that are checked before other work runs."""


@dataclass(frozen=True, slots=True)
class CreateOutcome:
    """What became of one of many new wrappers: one of the three."""

    created: WrapperConfig | None = None
    existing: WrapperConfig | None = None
    """The wrapper that has this method and path already; it stays as it is."""
    problem: str = ""


class Endpoints:
    """An operator's wrappers."""

    def __init__(
        self,
        store: SqlWrapperStore,
        secrets: SecretBox,
        rules: ConfigRules,
        clock: Clock,
        sale_warnings: SaleWarnings | None = None,
        costs: WrapperCosts | None = None,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._rules = rules
        self._clock = clock
        self._sale_warnings = sale_warnings or SaleWarnings()
        self._costs = costs or WrapperCosts()
        self.lists = FairQueue(*LISTS, "lists of wrappers")
        """The queue of callers that make a whole list."""
        self._comparing = FairQueue(LISTS[0], 10**6, 10**6, "changes of wrappers")
        """The slots in which a stored wrapper is compared with all others; many may wait."""
        self.on_change: Callable[[str], None] = lambda _operator_id: None
        """Called with the operator whose wrappers this process has changed."""

    async def create(
        self, operator_id: str, asked: NewEndpoint, actor: Actor = TERMINAL
    ) -> WrapperConfig:
        """Create a wrapper.

        Raises `InvalidRequest` naming every problem, `EndpointOverlaps`, and `QuotaExceeded`.
        """
        self._costs.require()
        _require_none(problems_of(asked, self._rules.of(operator_id)))
        if asked.active:
            await self._require_place(operator_id)
        if await self._store.count(operator_id) >= KEPT_MAX:
            raise _too_many(f"an account keeps {KEPT_MAX:,} wrappers: change one that is stopped")
        config = self._config(operator_id, new_id(), asked)
        entry = self._created(config, actor)
        key = route_key(config.method, config.path) if config.active else None
        if not await self._store.add(config, key, entry):
            raise _overlaps()
        self._costs.count(config)
        self.on_change(operator_id)
        return config

    async def create_missing(
        self,
        operator_id: str,
        asked: Sequence[NewEndpoint],
        actor: Actor = TERMINAL,
        *,
        dry_run: bool = False,
    ) -> Sequence[CreateOutcome]:
        """Create those of the wrappers whose method and path the account has not: all or nothing.

        The outcomes are in the order of `asked`. A dry run stores nothing. Raises `QuotaExceeded`,
        and `EndpointOverlaps` if others keep changing the account's wrappers meanwhile.
        """
        self._costs.require()
        for _ in range(_TRIES_MAX):
            known = await self._store.list(operator_id)
            outcomes = await self._outcomes(operator_id, asked, known)
            new = [one.created for one in outcomes if one.created]
            if dry_run or not new:
                return outcomes
            entries = [self._created(config, actor) for config in new]
            if await self._store.add_all(operator_id, known, new, entries):
                for config in new:
                    self._costs.count(config)
                self.on_change(operator_id)
                return outcomes
        raise EndpointOverlaps("Others are changing these wrappers at the same time: try again.")

    async def _outcomes(
        self, operator_id: str, asked: Sequence[NewEndpoint], known: Sequence[WrapperConfig]
    ) -> Sequence[CreateOutcome]:
        """Return what would become of each new wrapper beside those that are known."""
        rules, at = self._rules.of(operator_id), by_route(known)
        places = KEPT_MAX - len(known)
        active_places = min(places, ENDPOINTS_MAX - sum(config.active for config in known))
        outcomes: list[CreateOutcome] = []
        seen: set[str] = set()
        made = 0
        for number, one in enumerate(asked, 1):
            key = route_key(one.method, one.path)
            problem = "; ".join(f"{field}: {text}" for field, text in problems_of(one, rules))
            if problem or key in seen:
                outcomes.append(CreateOutcome(problem=problem or _TWICE))
            elif key in at:
                outcomes.append(CreateOutcome(existing=at[key]))
            elif made >= (active_places if one.active else places):
                outcomes.append(CreateOutcome(problem=_FULL))
            else:
                made += 1
                outcomes.append(CreateOutcome(self._config(operator_id, new_id(), one)))
            seen |= set() if problem else {key}
            if number % _CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return outcomes

    async def change(
        self,
        operator_id: str,
        config_id: str,
        change: EndpointChange,
        actor: Actor = TERMINAL,
        if_revision: int | None = None,
    ) -> WrapperConfig:
        """Change a wrapper at once, and return it. A change of nothing leaves no revision.

        Raises `EndpointNotFound`, `PreconditionFailed` if it is not the expected revision,
        `InvalidRequest` naming every problem of the whole, `EndpointOverlaps`, `QuotaExceeded`.
        """
        if change.active is not False:  # a wrapper can be stopped at any time
            self._costs.require()
        for _ in range(_TRIES_MAX):
            known = await self._find(operator_id, config_id)
            if if_revision is not None and if_revision != known.revision:
                raise PreconditionFailed(f"The wrapper is at revision {known.revision} by now.")
            config = await self._changed(known, change)
            changes = changes_between(known, config)
            if not changes:
                return known
            fields = ", ".join(one.field for one in changes)
            entry = new_entry(
                *(self._clock, actor, "endpoint.changed", operator_id, config_id), fields=fields
            )
            result = await self._store.change(config, changes, entry)
            if result == "overlaps":
                raise _overlaps()
            if result == "changed":
                self._costs.count(config, changes)
                self.on_change(operator_id)
                return config
        raise PreconditionFailed("Others are changing this wrapper at the same time: try again.")

    def preview_new(self, operator_id: str, asked: NewEndpoint) -> Sequence[FieldChange]:
        """Return the fields of the wrapper that `create` would make, and store nothing.

        Raises `InvalidRequest` naming every problem.
        """
        _require_none(problems_of(asked, self._rules.of(operator_id)))
        return fields_of(self._config(operator_id, new_id(), asked))

    async def preview(
        self, operator_id: str, config_id: str, change: EndpointChange
    ) -> Sequence[FieldChange]:
        """Return what `change` would change, and store nothing.

        Raises `EndpointNotFound`, and `InvalidRequest` naming every problem.
        """
        known = await self._find(operator_id, config_id)
        return changes_between(known, await self._changed(known, change))

    async def history(
        self, operator_id: str, config_id: str, limit: int, offset: int
    ) -> tuple[Sequence[Revision], int]:
        """Return a wrapper's revisions, newest first, and how many there are.

        Raises `EndpointNotFound`.
        """
        await self._find(operator_id, config_id)
        return await self._store.history(operator_id, config_id, limit, offset)

    async def owner_for_admin(self, config_id: str) -> str:
        """Return the id of a wrapper's operator. Raises `EndpointNotFound`."""
        owner = await self._store.owner_for_admin(config_id)
        if owner is None:
            raise EndpointNotFound("There is no wrapper of this id.")
        return owner

    async def warnings(self, config: WrapperConfig) -> Sequence[str]:
        """Return the operator's warnings about this wrapper, alone and beside their other ones.

        They are those of `sale_warnings`, and one sentence for each pair in which the freer
        wrapper's path accepts spellings of the stricter one's: the stricter one answers such
        requests.
        """
        async with self._comparing.slot(config.operator_id, is_known=True):
            stored, beside = await self._compared(config)
        [about] = await self.sale_warnings([stored])
        return [*about, *beside]

    async def _compared(self, config: WrapperConfig) -> tuple[WrapperConfig, Sequence[str]]:
        """Return the wrapper with its account's rate, and the warnings beside the others."""
        active = await self._store.active(config.operator_id)
        stored = next((c for c in active if c.id == config.id), config)
        return stored, await warnings_beside(config, [c for c in active if c.id != config.id])

    async def sale_warnings(self, configs: Sequence[WrapperConfig]) -> Sequence[Sequence[str]]:
        """Return warnings about each active wrapper's price, network and payee."""
        sales = [self._sale(config) for config in configs]
        entry = iter(await self._sale_warnings.of_each([one for one in sales if one]))
        return [next(entry) if one else [] for one in sales]

    def _sale(self, config: WrapperConfig) -> SaleTerms | None:
        """Return what a wrapper sells; None if that is nothing."""
        if not (config.active and config.price and config.target_url and config.payout_address):
            return None
        network = self._rules.networks[config.network]
        payee, rate = config.payout_address, config.fee_rate
        work_s, is_first = config.timeout_ms / 1000, config.settle == "before"
        return SaleTerms(config.operator_id, network, config.price, payee, rate, work_s, is_first)

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        """Return the operator's wrappers, newest first."""
        return await self._store.list(operator_id)

    async def deactivate(self, operator_id: str, config_id: str, actor: Actor = TERMINAL) -> None:
        """Stop a wrapper at once. Raises `EndpointNotFound`."""
        entry = new_entry(self._clock, actor, "endpoint.deactivated", operator_id, config_id)
        if not await self._store.deactivate(operator_id, config_id, entry):
            raise _not_found()
        self.on_change(operator_id)

    def forget(self, operator_id: str) -> None:
        """Ask the store again: something that this operator's wrappers depend on has changed."""
        self.on_change(operator_id)

    async def reseal(self, operator_id: str, actor: Actor = TERMINAL) -> int:
        """Seal secrets again that an older key of the ring sealed; return how many there were."""
        sealed = await self._store.sealed(operator_id)
        old = [(owner, secret) for owner, secret in sealed if not self._secrets.is_current(secret)]
        for config_id, secret in old:
            opened = self._secrets.open(secret, _place(config_id))
            resealed = self._secrets.seal(opened, _place(config_id))
            entry = new_entry(self._clock, actor, "endpoint.resealed", operator_id, config_id)
            await self._store.reseal(operator_id, config_id, secret, resealed, entry)
        self.on_change(operator_id)
        return len(old)

    def upstream_secret(self, config: WrapperConfig) -> bytes | None:
        """Return the opened secret; raises `ValueError` if no key of the ring fits."""
        if config.auth is None:
            return None
        return self._secrets.open(config.auth.sealed_secret, _place(config.id))

    def _created(self, config: WrapperConfig, actor: Actor) -> AuditEntry:
        return new_entry(
            *(self._clock, actor, "endpoint.created", config.operator_id, config.id),
            upstream_header=config.auth.header if config.auth else None,
        )

    async def _find(self, operator_id: str, config_id: str) -> WrapperConfig:
        found = await self._store.find(operator_id, config_id)
        if found is None:
            raise _not_found()
        return found

    async def _require_place(self, operator_id: str) -> None:
        if await self._store.count(operator_id, is_active=True) >= ENDPOINTS_MAX:
            raise _too_many(f"an account has at most {ENDPOINTS_MAX:,} active wrappers")

    async def _changed(self, known: WrapperConfig, change: EndpointChange) -> WrapperConfig:
        """Return the wrapper's next revision. Raises `InvalidRequest`."""
        try:
            secret = self.upstream_secret(known)
        except ValueError:  # no key of the ring opens it: it must be given again
            secret = None
        asked = asked_of(known, change, None if secret is None else secret.decode("ascii"))
        rules = self._rules.of(known.operator_id)
        problems = [
            *problems_of(asked, rules),
            *secret_problems(known, asked, change, rules.egress),
        ]
        _require_none(problems)
        made = self._config(known.operator_id, known.id, asked)
        is_active = known.active if change.active is None else change.active
        if is_active and not known.active:
            await self._require_place(known.operator_id)
        auth = made.auth
        if auth is not None and known.auth is not None and change.keeps_secret:
            auth = UpstreamAuth(auth.header, known.auth.sealed_secret)
        made = replace(made, auth=auth, active=is_active, created_at=known.created_at)
        return replace(made, revision=known.revision + 1)

    def _config(self, operator_id: str, config_id: str, asked: NewEndpoint) -> WrapperConfig:
        auth = None
        if asked.auth_type == "header" and asked.auth_header and asked.auth_secret:
            sealed = self._secrets.seal(asked.auth_secret.encode("ascii"), _place(config_id))
            auth = UpstreamAuth(asked.auth_header.lower(), sealed)
        # A given one stays while the wrapper is free: otherwise it might later be another's.
        payout = asked.payout_address or (self._rules.payout_address if asked.price else None)
        return WrapperConfig(
            id=config_id,
            operator_id=operator_id,
            path=asked.path,
            method=asked.method,
            price=int(asked.price.scaleb(DECIMALS)),
            description=asked.description,
            rate_limit=asked.rate_limit,
            target_url=(asked.target_url or "").rstrip("/"),
            protocol=asked.protocol,
            network=asked.network_id,
            payout_address=payout.lower() if payout else None,
            trust_enabled=asked.trust_enabled,
            min_score=asked.min_score,
            cold_start=asked.cold_start,
            identity_proof=asked.identity_proof,
            settle=asked.settle,
            max_body_bytes=asked.max_body_bytes,
            timeout_ms=asked.timeout_ms,
            auth=auth,
            active=asked.active,
            created_at=self._clock.now(),
            pass_response_headers=tuple(
                dict.fromkeys(name.lower() for name in asked.pass_response_headers)
            ),
            cors_origins=tuple(dict.fromkeys(map(origin_as_sent, asked.cors_origins))),
            pricing=tuple(one.terms for one in best_first(asked.pricing)),
            free_quota=asked.free_quota,
            enforce=asked.enforce,
        )


def by_route(configs: Sequence[WrapperConfig]) -> dict[str, WrapperConfig]:
    """Return configs by method and path: the active one, else the first."""
    found: dict[str, WrapperConfig] = {}
    for config in configs:
        key = route_key(config.method, config.path)
        if key not in found or config.active:
            found[key] = config
    return found


def _require_none(problems: Sequence[Found]) -> None:
    """Raise `InvalidRequest` naming every problem, if there is one."""
    if problems:
        details = [Problem(("body", name), text) for name, text in problems]
        raise InvalidRequest("The wrapper cannot be made like this.", details=details)


def _too_many(reason: str) -> InvalidRequest:
    return InvalidRequest("There are too many wrappers.", details=[Problem(("body",), reason)])


def _overlaps() -> EndpointOverlaps:
    return EndpointOverlaps("Another active wrapper answers this path and method.")


def _not_found() -> EndpointNotFound:
    return EndpointNotFound("You have no wrapper of this id.")


def _place(config_id: str) -> bytes:
    return b"wrapper/" + config_id.encode()
