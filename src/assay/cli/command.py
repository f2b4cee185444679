"""Shared by commands: reading the settings, running with the service, printing tables."""

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

from assay.app import App, assemble
from assay.common.errors import InvalidRequest, ServiceError
from assay.settings import Settings, SettingsError, load

Email = Annotated[str, Parameter(help="The account's e-mail address.")]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]

FAILED = 1
MISCONFIGURED = 78
"""EX_CONFIG of sysexits.h."""


def complain(sentence: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"assay: {sentence}\n")


def secret_from_input(prompt: str) -> str:
    """Return a secret from the terminal without echo, or a line of input; never an argument."""
    if sys.stdin.isatty():
        return getpass.getpass(prompt)
    return sys.stdin.readline().rstrip("\n")


def explain(error: ServiceError) -> str:
    """Return a refusal's sentence with its detail: the person at the terminal may know it."""
    return f"{error.message} ({error.detail})" if error.detail else error.message


def problems_in(error: InvalidRequest) -> Sequence[str]:
    """Return what is wrong with each field."""
    details = error.extras.get("details")
    if not isinstance(details, list) or not details:
        return [error.message]
    return [f"{problem['loc'][-1]}: {problem['message']}" for problem in details]  # type: ignore[index, call-overload]


def read_settings(overrides: Mapping[str, object]) -> Settings:
    """Return the settings; `overrides` come first, except those that are None.

    If they are invalid, it ends the process with status 78 and one sentence.
    """
    try:
        return load(**{name: value for name, value in overrides.items() if value is not None})
    except SettingsError as error:
        complain(str(error))
        sys.exit(MISCONFIGURED)


def with_app(
    work: Callable[[App], Awaitable[int]], overrides: Mapping[str, object] | None = None
) -> int:
    """Run `work` with everything assembled; a refusal becomes one sentence and status 1."""
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


def print_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """Print columns side by side; ids, addresses and hashes stay whole, to be copied.

    The terminal wraps lines that are wider than it is.
    """
    lines = [columns, *([row[column] for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
