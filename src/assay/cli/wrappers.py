"""`assay wrappers`: an operator's wrappers, from the terminal."""

import json
import re
import sys
from collections.abc import Awaitable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from assay.app import App
from assay.cli.command import (
    FAILED,
    AsJson,
    Email,
    complain,
    print_table,
    problems_in,
    secret_from_input,
    with_app,
)
from assay.common.clock import iso
from assay.common.errors import InvalidRequest
from assay.common.numbers import usd
from assay.evaluation.model import Tier
from assay.wrappers.endpoint_rules import AskedTier, EndpointChange
from assay.wrappers.history import Revision
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import NewEndpoint
from assay.wrappers.tier_terms import TIERS, FreeQuota

WrapperId = Annotated[str, Parameter(help="From `wrappers list`.")]
ColdStartOption = Annotated[
    Literal["deny", "throttle", "allow"] | None,
    Parameter(help="What to do with an unproven agent; default: the score decides."),
]

EnforceOption = Annotated[
    Literal["enforce", "observe"] | None,
    Parameter(help="observe: trust refuses nobody, and the log says whom it would refuse."),
]
TIER_HELP = "Price of proven agents from a tier: `A=0.002`, or `A=0.002/600` calls a minute; repeat"
QUOTA_HELP = "Free calls of each agent: `100/day` or `1000/month`"
_TIER = re.compile(r"([A-Z]{1,3})=([0-9.]{1,40})(?:/([0-9]{1,9}))?")
_TIERS: Mapping[str, Tier] = MappingProxyType({str(one): one for one in TIERS})
_QUOTA = re.compile(r"([0-9]{1,9})/(day|month)")


def add(  # noqa: PLR0913 - a wrapper's fields
    email: Email,
    path: Annotated[str, Parameter(help="Public path: `/quote`, `/items/{id}` or `/files/*`.")],
    target_url: Annotated[str, Parameter(help="The upstream; the path is appended to it.")],
    *,
    method: Annotated[str, Parameter(help="HTTP method, or * for any.")] = "GET",
    price: Annotated[str, Parameter(help="USD a call; 0 is free.")] = "0",
    rate_limit: Annotated[int | None, Parameter(help="Requests a minute and agent.")] = None,
    protocol: Annotated[Literal["x402", "mpp"], Parameter(help="How it is paid.")] = "x402",
    network: Annotated[
        str | None,
        Parameter(help="Where it is paid, such as base-sepolia; default: base, with real money."),
    ] = None,
    payout_address: Annotated[str | None, Parameter(help="Who is paid.")] = None,
    trust: Annotated[bool, Parameter(negative=(), help="Ask for a grade.")] = False,
    min_score: Annotated[float, Parameter(help="The score asked for.")] = 65.0,
    cold_start: ColdStartOption = None,
    settle: Annotated[Literal["after", "before"], Parameter(help="When it is settled.")] = "after",
    auth_header: Annotated[
        str | None, Parameter(help="Header for the upstream; its value is asked for.")
    ] = None,
    pass_response_header: Annotated[
        tuple[str, ...], Parameter(help="Header of the upstream to let through; repeat for more.")
    ] = (),
    cors_origin: Annotated[
        tuple[str, ...],
        Parameter(help="Origin whose pages may call it, or *; repeat for more."),
    ] = (),
    description: Annotated[str, Parameter(help="What it is; catalogues may show it.")] = "",
    tier: Annotated[tuple[str, ...], Parameter(help=f"{TIER_HELP}.")] = (),
    free_quota: Annotated[str | None, Parameter(help=f"{QUOTA_HELP}.")] = None,
    enforce: EnforceOption = None,
    draft: Annotated[
        bool, Parameter(negative=(), help="Let it answer nobody until it is activated.")
    ] = False,
) -> int:
    """Create a wrapper; ask for the upstream secret, or read it from standard input."""
    try:
        amount, pricing = price_of(price), tuple(map(_tier_terms, tier))
        quota = None if free_quota is None else _quota(free_quota)
    except ValueError as error:
        complain(str(error))
        return FAILED
    secret = None if auth_header is None else upstream_secret()
    asked = NewEndpoint(
        path=path,
        target_url=target_url,
        method=method,
        price=amount,
        rate_limit=rate_limit,
        protocol=protocol,
        network=network,
        payout_address=payout_address,
        trust_enabled=trust,
        min_score=min_score,
        cold_start=cold_start,
        settle=settle,
        auth_type="none" if auth_header is None else "header",
        auth_header=auth_header,
        auth_secret=secret,
        pass_response_headers=pass_response_header,
        cors_origins=cors_origin,
        description=description,
        pricing=pricing,
        free_quota=quota,
        enforce=enforce or "enforce",
        active=not draft,
    )

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        config = await _accepted(app, app.endpoints.create(operator.id, asked))
        if config is None:
            return FAILED
        sys.stdout.write(f"{config.id}  {_public(app, config)}\n")
        return 0

    return with_app(work)


async def _accepted(app: App, asked: Awaitable[WrapperConfig]) -> WrapperConfig | None:
    """Print the warnings and return the wrapper; if refused, print the problems, return None."""
    try:
        config = await asked
    except InvalidRequest as error:
        for problem in problems_in(error):
            complain(problem)
        return None
    for warning in await app.endpoints.warnings(config):
        complain(f"warning: {warning}")
    return config


def edit(  # noqa: PLR0913 - a wrapper's fields
    wrapper_id: WrapperId,
    *,
    price: Annotated[str | None, Parameter(help="USD a call; 0 is free.")] = None,
    target_url: Annotated[str | None, Parameter(help="The upstream.")] = None,
    path: Annotated[str | None, Parameter(help="Public path.")] = None,
    method: Annotated[str | None, Parameter(help="HTTP method, or * for any.")] = None,
    description: Annotated[str | None, Parameter(help="What it is.")] = None,
    rate_limit: Annotated[
        int | None, Parameter(help="Requests a minute and agent; 0 lifts the limit.")
    ] = None,
    protocol: Annotated[Literal["x402", "mpp"] | None, Parameter(help="How it is paid.")] = None,
    network: Annotated[str | None, Parameter(help="Where it is paid.")] = None,
    payout_address: Annotated[str | None, Parameter(help="Who is paid.")] = None,
    trust: Annotated[bool | None, Parameter(help="Whether to ask for a grade.")] = None,
    min_score: Annotated[float | None, Parameter(help="The score asked for.")] = None,
    cold_start: ColdStartOption = None,
    settle: Annotated[
        Literal["after", "before"] | None, Parameter(help="When it is settled.")
    ] = None,
    timeout_ms: Annotated[int | None, Parameter(help="The upstream's time.")] = None,
    max_body_bytes: Annotated[int | None, Parameter(help="Largest request body.")] = None,
    auth_header: Annotated[
        str | None, Parameter(help="Header for the upstream; its value is asked for.")
    ] = None,
    auth_secret: Annotated[
        bool, Parameter(negative=(), help="Ask for a new value of that header.")
    ] = False,
    pass_response_header: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Header of the upstream to let through; repeat for more."),
    ] = None,
    cors_origin: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Origin whose pages may call it, or *; repeat for more."),
    ] = None,
    active: Annotated[bool | None, Parameter(help="Whether it answers.")] = None,
    tier: Annotated[
        tuple[str, ...] | None, Parameter(help=f"{TIER_HELP}; replaces all entries.")
    ] = None,
    free_quota: Annotated[str | None, Parameter(help=f"{QUOTA_HELP}; `none` ends them.")] = None,
    enforce: EnforceOption = None,
) -> int:
    """Change a wrapper; arguments that are None stay. Ask for a new secret."""
    fields: dict[str, object] = {
        "price": price,
        "target_url": target_url,
        "path": path,
        "method": method,
        "description": description,
        "rate_limit": rate_limit,
        "protocol": protocol,
        "network": network,
        "payout_address": payout_address,
        "min_score": min_score,
        "cold_start": cold_start,
        "settle": settle,
        "timeout_ms": timeout_ms,
        "max_body_bytes": max_body_bytes,
        "auth_header": auth_header,
        "trust_enabled": trust,
        "pass_response_headers": pass_response_header,
        "cors_origins": cors_origin,
        "enforce": enforce,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if rate_limit == 0:
        given["rate_limit"] = None
    try:
        given |= _terms(price, tier, free_quota)
    except ValueError as error:
        complain(str(error))
        return FAILED
    if auth_secret or auth_header is not None:
        given["auth_secret"] = upstream_secret()
    return _change(wrapper_id, EndpointChange(given, active))


def _terms(
    price: str | None, tier: tuple[str, ...] | None, free_quota: str | None
) -> Mapping[str, object]:
    """Return what is changed of the terms. Raises `ValueError`."""
    found: dict[str, object] = {}
    if price is not None:
        found["price"] = price_of(price)
    if tier is not None:
        found["pricing"] = tuple(map(_tier_terms, tier))
    if free_quota is not None:
        found["free_quota"] = None if free_quota == "none" else _quota(free_quota)
    return found


def price_of(text: str) -> Decimal:
    """Return the price of an argument, in USD. Raises `ValueError`."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the price {text!r} is not a number") from None


def _tier_terms(text: str) -> AskedTier:
    """Return the terms of an argument such as `A=0.002/600`. Raises `ValueError`."""
    found = _TIER.fullmatch(text)
    tier = _TIERS.get(found[1]) if found else None
    if found is None or tier is None:
        raise ValueError(f"--tier {text!r} is not a tier and its price, such as A=0.002/600")
    return AskedTier(tier, price_of(found[2]), int(found[3]) if found[3] else None)


def _quota(text: str) -> FreeQuota:
    """Return the quota of an argument such as `100/day`. Raises `ValueError`."""
    found = _QUOTA.fullmatch(text)
    if found is None:
        raise ValueError(f"--free-quota {text!r} is not calls by day or month, such as 100/day")
    return FreeQuota(int(found[1]), "day" if found[2] == "day" else "month")


def _change(wrapper_id: str, change: EndpointChange) -> int:
    async def work(app: App) -> int:
        operator_id = await app.endpoints.owner_for_admin(wrapper_id)
        config = await _accepted(app, app.endpoints.change(operator_id, wrapper_id, change))
        if config is None:
            return FAILED
        sys.stdout.write(f"{config.id}  revision {config.revision}  {_public(app, config)}\n")
        return 0

    return with_app(work)


def history(
    wrapper_id: WrapperId,
    *,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    as_json: AsJson = False,
) -> int:
    """Print a wrapper's revisions, newest first."""

    async def work(app: App) -> int:
        operator_id = await app.endpoints.owner_for_admin(wrapper_id)
        found, _ = await app.endpoints.history(operator_id, wrapper_id, limit, 0)
        rows = [_revision(one) for one in found]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            for row in rows:
                _print_revision(row)
        return 0

    return with_app(work)


def _revision(found: Revision) -> dict[str, Any]:
    by = found.actor_id or found.actor_kind
    changes = [{"field": name, "from": old, "to": new} for name, old, new in found.changes]
    return {
        "revision": found.config.revision,
        "at": iso(found.at),
        "action": found.action.removeprefix("endpoint."),
        "by": by,
        "price": usd(found.config.price),
        "network": found.config.network,
        "payout": found.config.payout_address,
        "changes": changes,
    }


def _print_revision(row: dict[str, Any]) -> None:
    """Print a line for the revision and for each field, with long values in full."""
    said = f"{row['revision']}  {row['at']}  {row['action']}  by {row['by'] or 'unknown'}"
    sys.stdout.write(f"{said}  price {row['price']}  {row['network']}\n")
    for change in row["changes"]:
        old, new = json.dumps(change["from"]), json.dumps(change["to"])
        sys.stdout.write(f"    {change['field']}: {old} -> {new}\n")


def list_all(email: Email, *, as_json: AsJson = False) -> int:
    """Print an account's wrappers."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        rows = [_row(app, config) for config in await app.endpoints.list(operator.id)]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        else:
            print_table(_SHOWN, rows)
        return 0

    return with_app(work)


def remove(email: Email, wrapper_id: WrapperId) -> int:
    """Deactivate a wrapper."""

    async def work(app: App) -> int:
        operator = await app.operators.find_for_admin(email)
        await app.endpoints.deactivate(operator.id, wrapper_id)
        sys.stdout.write(f"{wrapper_id} answers no more\n")
        return 0

    return with_app(work)


def reseal() -> int:
    """Seal upstream, webhook and second-factor secrets and deposits under the current key."""

    async def work(app: App) -> int:
        count = 0
        for operator in await app.operators.list_for_admin():
            count += await app.endpoints.reseal(operator.id)
            count += await app.webhooks.reseal(operator.id)
            count += await app.second_factors.reseal(operator.id)
        count += await app.visits.credentials.reseal()
        sys.stdout.write(f"{count} secrets sealed again\n")
        return 0

    return with_app(work)


def upstream_secret() -> str:
    """Ask for the value of the header for the upstream, or read it from standard input."""
    return secret_from_input("Value of the upstream header: ")


def _public(app: App, config: WrapperConfig) -> str:
    return f"{app.settings.wrap_address}/wrap/{config.operator_id}{config.path}"


def _row(app: App, config: WrapperConfig) -> dict[str, str]:
    return {
        "id": config.id,
        "method": config.method,
        "url": _public(app, config),
        "price": usd(config.price),
        "network": config.network if config.price else "",
        "trust": f">= {config.min_score:g}" if config.trust_enabled else "",
        "target": config.target_url,
        "active": "yes" if config.active else "no",
    }


_SHOWN = ("id", "method", "url", "price", "network", "trust", "target", "active")
