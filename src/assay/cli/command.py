"""What every command does first: read the settings, say plainly what is wrong with them."""

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from assay.admin.account_data import AccountExport
from assay.app import App, assemble
from assay.common.errors import InvalidRequest, ServiceError
from assay.settings import Settings, SettingsError, load

ServedApp: TypeAlias = Callable[..., Awaitable[None]]


class WebBuilder(Protocol):
    """What the command line needs of the web room, which it does not know."""

    def build(self, app: App) -> tuple[ServedApp, type[asyncio.Protocol]]:
        """The service as an ASGI application, and the server's protocol in front of it."""
        ...

    def openapi_document(self, app: App) -> Mapping[str, Any]:
        """The OpenAPI 3.1 document."""
        ...

    def account_export(self, app: App, found: AccountExport) -> str:
        """An account's data as JSON text, as GET /operator/me/export answers it."""
        ...


FAILED = 1
MISCONFIGURED = 78
"""EX_CONFIG of sysexits.h."""


def complain(sentence: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"assay: {sentence}\n")


def secret_from_input(prompt: str) -> str:
    """A secret, asked for without an echo, or a line of standard input: never an argument."""
    if sys.stdin.isatty():
        return getpass.getpass(prompt)
    return sys.stdin.readline().rstrip("\n")


def explain(error: ServiceError) -> str:
    """The sentence of a refusal, with its detail: whoever is at the terminal may know it."""
    return f"{error.message} ({error.detail})" if error.detail else error.message


def problems_in(error: InvalidRequest) -> Sequence[str]:
    """What is wrong with each field."""
    details = error.extras.get("details")
    if not isinstance(details, list) or not details:
        return [error.message]
    return [f"{problem['loc'][-1]}: {problem['message']}" for problem in details]  # type: ignore[index, call-overload]


def read_settings(overrides: Mapping[str, object]) -> Settings:
    """The settings, `overrides` first (those that are None do not count).

    Ends the process with status 78 and one sentence when they do not hold.
    """
    try:
        return load(**{name: value for name, value in overrides.items() if value is not None})
    except SettingsError as error:
        complain(str(error))
        sys.exit(MISCONFIGURED)


def with_app(
    work: Callable[[App], Awaitable[int]], overrides: Mapping[str, object] | None = None
) -> int:
    """Run `work` with everything assembled; refusals become one sentence and status 1."""
    settings = read_settings({"log_level": "warning", **(overrides or {})})

    async def run() -> int:
        async with assemble(settings, serving=False) as app:
            return await work(app)

    try:
        return asyncio.run(run())
    except ServiceError as error:
        complain(explain(error))
        return FAILED
    except (ValueError, RuntimeError) as error:
        complain(str(error))
        return MISCONFIGURED
