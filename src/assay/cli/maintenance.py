"""Upkeep of a service: `assay migrate`, `assay backup` and `restore`, roll-ups, secrets."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter

from assay.app import App
from assay.app.backup import (
    BackupCheck,
    BackupFailed,
    restore_backup,
    verify_backup,
    write_backup,
)
from assay.app.secrets import SecretName, rotate_secret
from assay.cli.command import FAILED, MISCONFIGURED, complain, explain, read_settings, with_app
from assay.common.clock import SystemClock
from assay.common.errors import ServiceError
from assay.common.secret_file import SecretFileError
from assay.db.backup import CopyFailed
from assay.db.connect import DatabaseUrlError
from assay.db.engine import Database
from assay.db.migration_plan import PlannedMigration, planned, scripts
from assay.settings import Settings, SettingsError

_BACKUP_ERRORS = (BackupFailed, CopyFailed, SecretFileError, DatabaseUrlError, OSError)

Archive = Annotated[Path, Parameter(help="The backup: one file of mode 0600.")]

Result = TypeVar("Result")


def _done(work: Callable[[], Result]) -> Result | None:
    """Return the result of work on a backup, or say why there is none.

    SIGTERM ends it like Ctrl-C, so that no copy and no password is left behind.
    """

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        return work()
    except ServiceError as error:
        complain(explain(error))
    except _BACKUP_ERRORS as error:
        complain(str(error))
    return None


def migrate(
    *,
    plan: Annotated[
        bool, Parameter(negative=(), help="Only show what would run, and what each step does.")
    ] = False,
) -> int:
    """Migrate the database (assembling the service does), and say so."""
    if plan:
        return _plan()

    async def work(app: App) -> int:
        sys.stdout.write(f"the schema of the {app.database.kind} database is up to date\n")
        return 0

    return with_app(work)


def _plan() -> int:
    """Print which migrations the database lacks; it is only read."""
    settings = read_settings({})
    kind = "sqlite" if settings.database.startswith("sqlite") else "postgresql"
    try:
        current, lacking = asyncio.run(_planned(settings))
    except ServiceError as error:
        complain(explain(error))
        return FAILED
    except (ValueError, RuntimeError) as error:
        complain(str(error))
        return MISCONFIGURED
    at = "the database has no schema yet" if current is None else f"the schema is {current}"
    if not lacking:
        sys.stdout.write(f"{at}: nothing would run\n")
        return 0
    steps = "1 migration" if len(lacking) == 1 else f"{len(lacking)} migrations"
    locks = "keeps every lock until its end" if kind == "postgresql" else "lets no other write"
    sys.stdout.write(f"{at}: {steps} would run, in one transaction, which {locks}\n")
    for one in lacking:
        lines = [f"\n{one.revision}  {' '.join(one.says)}", *(f"- {said}" for said in one.effects)]
        sys.stdout.write("\n      ".join(lines) + "\n")
    return 0


async def _planned(settings: Settings) -> tuple[str | None, Sequence[PlannedMigration]]:
    """Return the plan. An SQLite file that does not exist is not created."""
    kind, _, file = settings.database.partition(":///")
    if kind == "sqlite" and not os.path.exists(file):  # noqa: ASYNC240, PTH110 - before anything else runs
        return None, planned(scripts(), None)
    database = await Database.open(settings.database)
    try:
        return await database.plan()
    finally:
        await database.close()


def backup(
    file: Archive,
    /,
    *,
    without_secrets: Annotated[
        bool, Parameter(negative=(), help="Leave out the generated secrets and keys.")
    ] = False,
) -> int:
    """Write a backup of an installation that may be serving."""
    settings, now = read_settings({}), SystemClock().now()
    made = _done(lambda: write_backup(settings, file, now, with_secrets=not without_secrets))
    if made is None:
        return FAILED
    sys.stdout.write(f"{file}: {made.rows} rows, {made.blocks} encrypted snapshots\n")
    if made.damaged:
        complain(f"{made.damaged} snapshots are damaged on the disk, and not in the backup")
    if made.files:
        sys.stdout.write(f"It holds secrets ({', '.join(made.files)}): encrypt it, and keep it.\n")
    else:
        sys.stdout.write("It holds no secrets: a restore needs those of this installation.\n")
    sys.stdout.write("It does not hold your settings: keep the file of ASSAY_CONFIG as well.\n")
    if settings.snapshot_store == "ipfs":
        sys.stdout.write("Snapshots are on the IPFS node, and not in it.\n")
    return FAILED if made.damaged else 0


def restore(
    file: Archive,
    /,
    *,
    verify: Annotated[
        bool, Parameter(negative=(), help="Only compare what is there with the backup.")
    ] = False,
) -> int:
    """Restore a backup into an empty installation and compare, or only compare."""
    settings, now = read_settings({}), SystemClock().now()
    work = verify_backup if verify else restore_backup
    checks = _done(lambda: work(settings, file, now))
    return FAILED if checks is None else _print_checks(checks)


def _print_checks(checks: Sequence[BackupCheck]) -> int:
    """Print what was compared; return the status."""
    for check in checks:
        sys.stdout.write(f"{'ok' if check.holds else 'DIFFERS':8}{check.sentence}\n")
    return 0 if all(check.holds for check in checks) else FAILED


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
