"""`assay migrate`, `assay analytics rebuild`, `assay secrets rotate`: upkeep of a service."""

import sys
from typing import Annotated

from cyclopts import Parameter

from assay.app import App
from assay.app.secrets import SecretName, rotate_secret
from assay.cli.command import FAILED, MISCONFIGURED, complain, read_settings, with_app
from assay.settings import SettingsError


def migrate() -> int:
    """Migrate the database (assembling the service does), and say so."""

    async def work(app: App) -> int:
        sys.stdout.write(f"the schema of the {app.database.kind} database is up to date\n")
        return 0

    return with_app(work)


def rebuild_rollups(
    *, check: Annotated[bool, Parameter(negative=(), help="Compare only; change nothing.")] = False
) -> int:
    """Compare every roll-up with its source rows, and correct it unless `check` is set."""

    async def work(app: App) -> int:
        found = await (app.rollups.differences() if check else app.rollups.rebuild())
        for table, wrong in found.items():
            sys.stdout.write(f"{table}: {'equal' if not wrong else f'{wrong} rows differ'}\n")
        if not any(found.values()):
            sys.stdout.write("every roll-up is what the calls and payments say\n")
            return 0
        sys.stdout.write("run it without --check to rebuild them\n" if check else "rebuilt\n")
        return FAILED if check else 0

    return with_app(work)


def change_secret(
    name: Annotated[
        SecretName,
        Parameter(help="What it protects: dashboard tokens, agent sessions and so on."),
    ],
    *,
    compromised: Annotated[
        bool, Parameter(negative=(), help="Others know the old one: stop accepting it.")
    ] = False,
) -> int:
    """Change a secret and print what to do next; never print the secret itself."""
    settings = read_settings({})
    try:
        said = rotate_secret(settings, name, compromised=compromised)
    except (SettingsError, RuntimeError) as error:
        complain(str(error))
        return MISCONFIGURED
    sys.stdout.write(f"The {name} secret is changed. {said}\n")
    return 0
