"""`assay wrappers`: an operator's wrappers, from the terminal."""

import json
import sys
from collections.abc import Awaitable
from decimal import Decimal, InvalidOperation
from typing import Any

from assay.app import App
from assay.cli.command import FAILED, complain, problems_in, secret_from_input, with_app
from assay.cli.tables import print_table
from assay.common.clock import iso
from assay.common.errors import InvalidRequest
from assay.common.money import usd
from assay.wrappers.changes import EndpointChange
from assay.wrappers.history import Revision
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import NewEndpoint

_FIELDS = {
    "trust": "trust_enabled",
    "pass_response_header": "pass_response_headers",
    "cors_origin": "cors_origins",
}
"""Options that have another name in `NewEndpoint`."""


def add(email: str, auth_header: str | None, *, price: str, **fields: Any) -> int:  # noqa: ANN401
    """Make a wrapper; the upstream secret is asked for, or read from standard input."""
    try:
        amount = Decimal(price)
    except InvalidOperation:
        complain(f"the price {price!r} is not a number")
        return FAILED
    secret = None if auth_header is None else _secret()
    asked = NewEndpoint(
        price=amount,
        auth_type="none" if auth_header is None else "header",
        auth_header=auth_header,
        auth_secret=secret,
        **fields,
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
    """The wrapper, after its warnings; None when it was refused, after the problems."""
    try:
        config = await asked
    except InvalidRequest as error:
        for problem in problems_in(error):
            complain(problem)
        return None
    for warning in await app.endpoints.warnings(config):
        complain(f"warning: {warning}")
    return config


def edit(wrapper_id: str, *, active: bool | None, auth_secret: bool, **fields: Any) -> int:  # noqa: ANN401
    """Change a wrapper; of `fields` those that are None stay. A new secret is asked for."""
    given = {_FIELDS.get(name, name): v for name, v in fields.items() if v is not None}
    if given.get("rate_limit") == 0:
        given["rate_limit"] = None
    try:
        given |= {"price": Decimal(given["price"])} if "price" in given else {}
    except InvalidOperation:
        complain(f"the price {given['price']!r} is not a number")
        return FAILED
    if auth_secret or "auth_header" in given:
        given["auth_secret"] = _secret()

    async def work(app: App) -> int:
        operator_id = await app.endpoints.owner_for_admin(wrapper_id)
        change = EndpointChange(given, active)
        config = await _accepted(app, app.endpoints.change(operator_id, wrapper_id, change))
        if config is None:
            return FAILED
        sys.stdout.write(f"{config.id}  revision {config.revision}  {_public(app, config)}\n")
        return 0

    return with_app(work)


def history(wrapper_id: str, at_most: int, *, as_json: bool) -> int:
    """Print what a wrapper has been, newest first."""

    async def work(app: App) -> int:
        operator_id = await app.endpoints.owner_for_admin(wrapper_id)
        found, _ = await app.endpoints.history(operator_id, wrapper_id, at_most, 0)
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
    """One line for the revision, one for each field; long values stay whole, to be copied."""
    said = f"{row['revision']}  {row['at']}  {row['action']}  by {row['by'] or 'unknown'}"
    sys.stdout.write(f"{said}  price {row['price']}  {row['network']}\n")
    for change in row["changes"]:
        old, new = json.dumps(change["from"]), json.dumps(change["to"])
        sys.stdout.write(f"    {change['field']}: {old} -> {new}\n")


def list_all(email: str, *, as_json: bool) -> int:
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


def remove(email: str, wrapper_id: str) -> int:
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
        sys.stdout.write(f"{count} secrets sealed anew\n")
        return 0

    return with_app(work)


def _secret() -> str:
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
