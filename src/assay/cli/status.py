"""`assay status`: which processes serve, and what waits in their database.

It reads the database alone, and changes nothing: it does not migrate.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from assay.app.heartbeat import ServingProcess, serving_processes
from assay.cli.command import (
    FAILED,
    MISCONFIGURED,
    AsJson,
    complain,
    explain,
    print_table,
    read_settings,
)
from assay.common.clock import SystemClock, from_iso
from assay.common.errors import ServiceError, Unavailable
from assay.db.connect import DatabaseUrlError
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.payments.store_gas import OpenPayments, SqlPaymentCounts
from assay.settings import Settings

DATABASE_S: Final = 5.0
"""Seconds that it waits for the database."""

_COLUMNS = ("host", "pid", "version", "schema", "config", "up", "said", "ready", "degraded", "log")
_SAME: Final = ("version", "schema", "config")
"""What all processes of a service should have in common."""


@dataclass(frozen=True, slots=True)
class Status:
    """What was found at one moment."""

    kind: str
    schema: str
    processes: Sequence[ServingProcess]
    payments: Mapping[str, OpenPayments] | None
    """By network; None if the schema is too old to be asked."""
    now: datetime


def status(*, as_json: AsJson = False) -> int:
    """Show the processes that serve; status 1 unless one of them is ready."""
    settings = read_settings({})
    kind, _, file = settings.database.partition(":///")
    if kind == "sqlite" and not Path(file).exists():
        complain("there is no database yet: `assay serve` creates it")
        return FAILED
    try:
        found = asyncio.run(_read(settings))
    except ServiceError as error:
        complain(explain(error))
        return FAILED
    except DatabaseUrlError as error:
        complain(str(error))
        return MISCONFIGURED
    if as_json:
        sys.stdout.write(json.dumps(_members(found), indent=2) + "\n")
    else:
        _print(found)
    return 0 if any(one.ready for one in found.processes) else FAILED


async def _read(settings: Settings) -> Status:
    """Return the status. Raises `Unavailable` and `DatabaseUrlError`."""
    database, clock = await Database.open(settings.database, use_s=DATABASE_S), SystemClock()
    try:
        schema, now = await database.revision(), clock.now()
        processes = await serving_processes(SqlSharedState(database, clock))
        try:
            payments = (await SqlPaymentCounts(database).read(now)).open
        except Unavailable:
            payments = None
        return Status(database.kind, schema, processes, payments, now)
    finally:
        await database.close()


def _members(found: Status) -> Mapping[str, object]:
    """Return the status as JSON shows it; ages in seconds."""
    return {
        "database": {"kind": found.kind, "schema": found.schema},
        "processes": [_process(one, found.now) for one in found.processes],
        "differs": _differing(found.processes),
        "callLogWaitingRows": sum(one.waiting_calls for one in found.processes),
        "callLogLostRows": sum(one.lost_calls for one in found.processes),
        "pendingPayments": None
        if found.payments is None
        else {
            network: {
                "count": one.count,
                "stuck": one.stuck,
                "oldestS": max(0, round((found.now - one.oldest_at).total_seconds())),
            }
            for network, one in sorted(found.payments.items())
        },
    }


def _process(one: ServingProcess, now: datetime) -> dict[str, Any]:
    return {
        "host": one.host,
        "pid": one.pid,
        "version": one.version,
        "schema": one.schema,
        "config": one.config,
        "upS": _age_s(one.began_at, now),
        "saidS": _age_s(one.said_at, now),
        "ready": one.ready,
        "reasons": list(one.reasons),
        "degraded": list(one.degraded),
        "loopLagS": one.loop_lag_s,
        "callLogWaitingRows": one.waiting_calls,
        "callLogLostRows": one.lost_calls,
    }


def _differing(processes: Sequence[ServingProcess]) -> list[str]:
    """Return in what the processes differ and should not."""
    return [name for name in _SAME if len({getattr(one, name) for one in processes}) > 1]


def _print(found: Status) -> None:
    members = _members(found)
    lines = [f"database   {found.kind}, schema {found.schema}"]
    if found.payments is None:
        lines.append("payments   unknown: they cannot be read with this schema")
    for network, one in sorted((found.payments or {}).items()):
        age = timedelta(seconds=round(max(0.0, (found.now - one.oldest_at).total_seconds())))
        lines.append(
            f"payments   {one.count} being settled on {network}, {one.stuck} stuck,"
            f" the oldest for {age}"
        )
    if found.payments == {}:
        lines.append("payments   none is being settled")
    lost = members["callLogLostRows"]
    lines.append(f"call log   {members['callLogWaitingRows']} rows wait, {lost} were not kept")
    if differing := _differing(found.processes):
        lines.append(f"differs    {', '.join(differing)}")
    if not found.processes:
        lines.append("processes  none serves")
    sys.stdout.write("\n".join(lines) + "\n")
    if found.processes:
        sys.stdout.write("\n")
        print_table(_COLUMNS, [_row(one, found.now) for one in found.processes])


def _row(one: ServingProcess, now: datetime) -> Mapping[str, str]:
    return {
        "host": one.host,
        "pid": str(one.pid),
        "version": one.version,
        "schema": one.schema,
        "config": one.config,
        "up": str(timedelta(seconds=_age_s(one.began_at, now))),
        "said": f"{_age_s(one.said_at, now)} s ago",
        "ready": "yes" if one.ready else f"no: {', '.join(one.reasons)}",
        "degraded": ", ".join(one.degraded) or "-",
        "log": str(one.waiting_calls),
    }


def _age_s(moment: str, now: datetime) -> int:
    return max(0, round((now - from_iso(moment)).total_seconds()))
