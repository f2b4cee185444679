"""Creating, listing and deactivating wrappers (spec 4.6)."""

from collections.abc import Sequence
from dataclasses import replace

from assay.accounts.audit import TERMINAL, Actor, note
from assay.kit.clock import Clock
from assay.kit.errors import InvalidRequest, Problem
from assay.kit.ids import new_id
from assay.payments.model import DECIMALS
from assay.payments.warnings import Sale, SaleWarnings
from assay.wrapper.endpoint_rules import (
    ConfigRules,
    NewEndpoint,
    origin_as_sent,
    problems_of,
)
from assay.wrapper.match import route_key
from assay.wrapper.model import (
    EndpointNotFound,
    EndpointOverlaps,
    UpstreamAuth,
    WrapperConfig,
)
from assay.wrapper.overlap import is_walked_round
from assay.wrapper.ports import Secrets, WrapperStore

WARNINGS_MAX = 20
ENDPOINTS_MAX = 1000
"""Active wrappers of one operator."""


class Endpoints:
    """An operator's wrappers."""

    def __init__(
        self,
        store: WrapperStore,
        secrets: Secrets,
        rules: ConfigRules,
        clock: Clock,
        sale_warnings: SaleWarnings | None = None,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._rules = rules
        self._clock = clock
        self._sale_warnings = sale_warnings or SaleWarnings()
        self.changes = 0
        """Counts what this process changed, for whoever remembers routes."""

    async def create(
        self, operator_id: str, asked: NewEndpoint, actor: Actor = TERMINAL
    ) -> WrapperConfig:
        """A new wrapper. Raises `InvalidRequest` naming every problem, and `EndpointOverlaps`."""
        problems = list(problems_of(asked, self._rules.of(operator_id)))
        if problems:
            details = [Problem(("body", name), text) for name, text in problems]
            raise InvalidRequest("The wrapper cannot be made like this.", details=details)
        if len(await self._store.active(operator_id)) >= ENDPOINTS_MAX:
            details = [Problem(("body",), f"an operator has at most {ENDPOINTS_MAX} wrappers")]
            raise InvalidRequest("There are too many wrappers.", details=details)
        config = self._config(operator_id, asked)
        told = note(
            *(self._clock, actor, "endpoint.created", operator_id, config.id),
            upstream_header=config.auth.header if config.auth else None,
        )
        if not await self._store.add(config, route_key(config.method, config.path), told):
            raise EndpointOverlaps("Another active wrapper answers this path and method.")
        self.changes += 1
        return config

    async def warnings(self, config: WrapperConfig) -> Sequence[str]:
        """What the operator may not expect of this wrapper, alone or beside their other ones.

        Those of `sale_warnings`, and one sentence for each pair of which the freer one's path takes
        spellings of the stricter one's: such requests are the stricter one's.
        """
        active = await self._store.active(config.operator_id)
        stored = next((c for c in active if c.id == config.id), config)  # with the account's rate
        about = await self.sale_warnings(stored)
        others = [c for c in active if c.id != config.id]
        pairs = [pair for other in others for pair in ((config, other), (other, config))]
        found = [_warning(strict, free) for strict, free in pairs if _shares(strict, free)]
        more = len(found) - WARNINGS_MAX
        pairs_told = (
            found if more <= 0 else [*found[:WARNINGS_MAX], f"{more} more pairs are alike."]
        )
        return [*about, *pairs_told]

    async def sale_warnings(self, config: WrapperConfig) -> Sequence[str]:
        """What the operator should know of an active wrapper's price, network and payee."""
        if not (config.active and config.price and config.target_url and config.payout_address):
            return []
        network = self._rules.networks[config.network]
        payee, rate = config.payout_address, config.fee_rate
        sale = Sale(config.operator_id, network, config.price, payee, rate)
        return await self._sale_warnings.of(sale)

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        """The operator's wrappers, newest first."""
        return await self._store.list(operator_id)

    async def deactivate(self, operator_id: str, config_id: str, actor: Actor = TERMINAL) -> None:
        """Stop a wrapper, at once. Raises `EndpointNotFound`."""
        told = note(self._clock, actor, "endpoint.deactivated", operator_id, config_id)
        if not await self._store.deactivate(operator_id, config_id, told):
            raise EndpointNotFound("You have no wrapper of this id.")
        self.changes += 1

    def forget(self) -> None:
        """Ask the store again: something else that wrappers depend on has changed."""
        self.changes += 1

    async def reseal(self, operator_id: str, actor: Actor = TERMINAL) -> int:
        """Seal secrets anew that an older key of the ring sealed; how many there were."""
        old = [
            config
            for config in await self._store.list(operator_id)
            if config.auth and not self._secrets.is_current(config.auth.sealed_secret)
        ]
        for config in old:
            secret = self.upstream_secret(config)
            if config.auth and secret is not None:
                sealed = self._secrets.seal(secret, _place(config.id))
                anew = replace(config, auth=UpstreamAuth(config.auth.header, sealed))
                told = note(self._clock, actor, "endpoint.resealed", operator_id, config.id)
                await self._store.reseal(anew, told)
        self.changes += 1
        return len(old)

    def upstream_secret(self, config: WrapperConfig) -> bytes | None:
        """The opened secret; raises `ValueError` when no key of the ring fits."""
        if config.auth is None:
            return None
        return self._secrets.open(config.auth.sealed_secret, _place(config.id))

    def _config(self, operator_id: str, asked: NewEndpoint) -> WrapperConfig:
        config_id = new_id()
        auth = None
        if asked.auth_type == "header" and asked.auth_header and asked.auth_secret:
            sealed = self._secrets.seal(asked.auth_secret.encode("ascii"), _place(config_id))
            auth = UpstreamAuth(asked.auth_header.lower(), sealed)
        payout = asked.payout_address or self._rules.payout_address
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
            payout_address=payout.lower() if payout and asked.price else None,
            trust_enabled=asked.trust_enabled,
            min_score=asked.min_score,
            identity_proof=asked.identity_proof,
            settle=asked.settle,
            max_body_bytes=asked.max_body_bytes,
            timeout_ms=asked.timeout_ms,
            auth=auth,
            active=True,
            created_at=self._clock.now(),
            pass_response_headers=tuple(
                dict.fromkeys(name.lower() for name in asked.pass_response_headers)
            ),
            cors_origins=tuple(dict.fromkeys(map(origin_as_sent, asked.cors_origins))),
        )


def _shares(strict: WrapperConfig, free: WrapperConfig) -> bool:
    return strict.terms.ask_more_than(free.terms) and is_walked_round(
        (strict.method, strict.path), (free.method, free.path)
    )


def _warning(strict: WrapperConfig, free: WrapperConfig) -> str:
    return (
        f"{free.method} {free.path} asks for less than {strict.method} {strict.path}. A request"
        f" that matches {free.path} and differs from {strict.path} only in letter case, slashes,"
        " dots, spaces, `;` parameters or percent-encoding is treated as one of"
        f" {strict.path}."
    )


def _place(config_id: str) -> bytes:
    return b"wrapper/" + config_id.encode()
