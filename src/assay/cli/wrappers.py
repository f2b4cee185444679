"""`assay wrappers`: an operator's wrappers, from the terminal."""

import getpass
import json
import sys
from decimal import Decimal, InvalidOperation
from typing import Any

from assay.cli.run import FAILED, complain, problems_in, with_app
from assay.cli.tables import print_table
from assay.kit.errors import InvalidRequest
from assay.payments.model import DECIMALS
from assay.wiring import App
from assay.wrapper.configs import NewEndpoint
from assay.wrapper.model import WrapperConfig


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
        try:
            config = await app.endpoints.create(operator.id, asked)
        except InvalidRequest as error:
            for problem in problems_in(error):
                complain(problem)
            return FAILED
        for warning in await app.endpoints.warnings(config):
            complain(f"warning: {warning}")
        sys.stdout.write(f"{config.id}  {_public(app, config)}\n")
        return 0

    return with_app(work)


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
    """Seal every account's upstream, webhook and second-factor secrets under the current key."""

    async def work(app: App) -> int:
        count = 0
        for operator in await app.operators.list_for_admin():
            count += await app.endpoints.reseal(operator.id)
            count += await app.webhooks.reseal(operator.id)
            count += await app.second_factors.reseal(operator.id)
        sys.stdout.write(f"{count} secrets sealed anew\n")
        return 0

    return with_app(work)


def _secret() -> str:
    if sys.stdin.isatty():
        return getpass.getpass("Value of the upstream header: ")
    return sys.stdin.readline().rstrip("\n")


def _public(app: App, config: WrapperConfig) -> str:
    return f"{app.settings.wrap_address}/wrap/{config.operator_id}{config.path}"


def _row(app: App, config: WrapperConfig) -> dict[str, str]:
    return {
        "id": config.id,
        "method": config.method,
        "url": _public(app, config),
        "price": f"{Decimal(config.price).scaleb(-DECIMALS):.6f}",
        "network": config.network if config.price else "",
        "trust": f">= {config.min_score:g}" if config.trust_enabled else "",
        "target": config.target_url,
        "active": "yes" if config.active else "no",
    }


_SHOWN = ("id", "method", "url", "price", "network", "trust", "target", "active")
