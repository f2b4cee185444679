"""Removes rows that no longer count: key agents, conduct, sign-ups, calls, failed log-ins.

Chains of snapshots are removed whole or from their beginning, so that the rest verifies. Several
processes may remove at once: every statement checks again what it removes.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, text, tuple_, union_all

from assay.admin.store import SqlUnusedAccounts
from assay.analytics.store_retention import SqlOldAgents, SqlOldCalls
from assay.db.engine import Database, to_us
from assay.db.schema.everything import audit, course_calls, course_runs, wrapper_conduct
from assay.evaluation.store_evaluations import SqlOldEvaluations
from assay.payments.networks import ROWS
from assay.payments.store_watches import SqlOldPayments
from assay.wrappers.store import SqlOldRevisions

_UNPROVEN = text(
    "SELECT subject_key FROM evaluations"
    " WHERE substr(subject_key, 1, 4) = 'key/'"
    " AND NOT EXISTS (SELECT 1 FROM key_agents WHERE address = substr(subject_key, 5))"
    " GROUP BY subject_key HAVING MAX(evaluated_us) < :before_us LIMIT :limit"
)
_STILL = (
    " WHERE subject_key = :key"
    " AND NOT EXISTS (SELECT 1 FROM evaluations e"
    " WHERE e.subject_key = :key AND e.evaluated_us >= :before_us)"
    " AND NOT EXISTS (SELECT 1 FROM key_agents k WHERE k.address = :address)"
)
_REMOVE_SNAPSHOTS = text(f"DELETE FROM snapshots{_STILL} RETURNING encrypted_data_uri")  # noqa: S608 - our own words
_REMOVE_EVALUATIONS = text(
    "DELETE FROM evaluations WHERE subject_key = :key"
    " AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.subject_key = :key)"
)
_REMOVE_BEGINNING = text(
    "DELETE FROM removed_snapshots WHERE subject_key = :key"
    " AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.subject_key = :key)"
)
_KEPT_WITH = (
    *(("course_runs", "address", ""), ("wrapper_conduct", "address", "")),
    *(
        (table, "subject_key", "'key/' || ")
        for table in ("personhood", "visit_requests", "service_credentials")
    ),
)
_NOTHING_ELSE = "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.{column} = {prefix}k.address)"  # noqa: S608 - our own names
    for table, column, prefix in _KEPT_WITH
)
_NEVER_PAID = "".join(  # by network, so that the ledger's index finds a payer
    " AND NOT EXISTS (SELECT 1 FROM payments p"  # noqa: S608 - our own names
    f" WHERE p.network = '{row.id}' AND p.asset = '{row.asset.address}'"
    " AND p.payer = k.address AND p.settled_us IS NOT NULL)"
    for row in ROWS
)
_REMOVE_KEY_AGENTS = text(
    "DELETE FROM key_agents WHERE address IN (SELECT address FROM key_agents k"  # noqa: S608 - our own words
    " WHERE k.verified_us < :before_us"
    " AND NOT EXISTS (SELECT 1 FROM evaluations e"
    " WHERE e.subject_key = 'key/' || k.address AND e.evaluated_us >= :before_us)"
    f"{_NEVER_PAID}{_NOTHING_ELSE} ORDER BY k.verified_us LIMIT :limit) RETURNING 1"
)
_FORGET_ORIGINS = text(
    "UPDATE operators SET sign_up_origin = NULL"
    " WHERE deleted_us IS NOT NULL AND sign_up_origin IS NOT NULL AND created_us < :before_us"
)

_FORGET_SECRETS = text(
    "UPDATE wrapper_revisions SET upstream_auth_secret = NULL"
    " WHERE until_us < :before_us AND upstream_auth_secret IS NOT NULL"
)


class SqlRetention:
    """Removes a bounded number of rows at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._old_calls = SqlOldCalls(database)
        self._old_agents = SqlOldAgents(database)
        self._old_payments = SqlOldPayments(database)
        self._old_revisions = SqlOldRevisions(database)
        self._old_evaluations = SqlOldEvaluations(database)
        self._unused_accounts = SqlUnusedAccounts(database)

    async def remove_calls(self, before_day: int, limit: int) -> int:
        """Remove rows of the call log from UTC days before that one; return how many."""
        return await self._old_calls.remove(before_day, limit)

    async def fold_agents(self, before_day: int, limit: int) -> int:
        """Do what `SqlOldAgents.fold` does."""
        return await self._old_agents.fold(before_day, limit)

    async def remove_unpaid_payments(self, before: datetime, limit: int) -> int:
        """Do what `SqlOldPayments.remove` does."""
        return await self._old_payments.remove(before, limit)

    async def remove_revisions(self, kept: int, before: datetime, limit: int) -> int:
        """Do what `SqlOldRevisions.remove` does."""
        return await self._old_revisions.remove(kept, before, limit)

    async def remove_evaluations(
        self, kept: int, before: datetime, limit: int
    ) -> tuple[int, Sequence[str]]:
        """Do what `SqlOldEvaluations.remove` does."""
        return await self._old_evaluations.remove(kept, before, limit)

    async def remove_unproven(self, before: datetime, limit: int) -> Sequence[str] | None:
        """Remove every evaluation and snapshot of key agents that nobody has proven.

        It removes those of a bounded number of agents whose newest evaluation is older than
        `before`. Returns where the snapshots' encrypted data is; None if there was no such agent.
        """
        values = {"before_us": to_us(before), "limit": limit}
        async with self._database.read() as connection:
            keys = (await connection.execute(_UNPROVEN, values)).scalars().all()
        uris: list[str] = []
        for key in keys:
            uris += await self._remove(key, to_us(before))
        return uris if keys else None

    async def remove_key_agents(self, before: datetime, limit: int) -> int:
        """Remove key agents first proven before then and not evaluated since; return how many.

        It never removes one that paid, that a human backs, that is enrolled or has a deposited
        credential, or that has calls at the course or a wrapper. Its evaluations count as those of
        an unproven key agent from then on.
        """
        values = {"before_us": to_us(before), "limit": limit}
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of key agents")
            return len((await connection.execute(_REMOVE_KEY_AGENTS, values)).all())

    async def forget_sign_up_origins(self, before: datetime) -> None:
        """Erase where deleted accounts signed up, once the quota of sign-ups no longer needs it."""
        async with self._database.write() as connection:
            await connection.execute(_FORGET_ORIGINS, {"before_us": to_us(before)})

    async def remove_unused_accounts(
        self, before: datetime, at: datetime, origin_until: datetime, limit: int
    ) -> int:
        """Delete unused accounts of strangers created before then.

        Returns how many were checked.
        """
        due = await self._unused_accounts.due(before, limit)
        for operator_id in due:
            await self._unused_accounts.remove(operator_id, before, at, origin_until)
        return len(due)

    async def remove_failed_logins(self, before: datetime, limit: int) -> int:
        """Remove failed log-ins from the audit trail; return how many. No other line can go."""
        failed = (audit.c.action == "login.failed", audit.c.at_us < to_us(before))
        old = select(audit.c.seq).where(*failed).order_by(audit.c.at_us).limit(limit)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of failed log-ins")
            return (await connection.execute(delete(audit).where(audit.c.seq.in_(old)))).rowcount

    async def remove_runs(
        self, finished_before: datetime, begun_before: datetime, limit: int
    ) -> int:
        """Remove runs that ended before one moment, or began before the other and never ended.

        Removes everything that was recorded of them; returns how many runs.
        """
        ended, begun = course_runs.c.finished_us, course_runs.c.begun_us
        parts = (
            select(course_runs.c.id).where(ended < to_us(finished_before)),
            select(course_runs.c.id).where(ended.is_(None), begun < to_us(begun_before)),
        )
        old = union_all(*parts).limit(limit)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of course runs")
            ids = list((await connection.execute(old)).scalars())
            if ids:
                calls = delete(course_calls).where(course_calls.c.run_id.in_(ids))
                await connection.execute(calls)
                await connection.execute(delete(course_runs).where(course_runs.c.id.in_(ids)))
        return len(ids)

    async def remove_conduct(self, before_day: str, limit: int) -> int:
        """Remove counts of conduct at wrappers from days before that one; return how many."""
        rows = wrapper_conduct.c
        old = select(rows.address, rows.day).where(rows.day < before_day).limit(limit)
        statement = delete(wrapper_conduct).where(tuple_(rows.address, rows.day).in_(old))
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of conduct")
            return (await connection.execute(statement)).rowcount

    async def forget_upstream_secrets(self, before: datetime) -> None:
        """Erase the sealed secrets of wrappers' revisions that ended before then."""
        async with self._database.write() as connection:
            await connection.execute(_FORGET_SECRETS, {"before_us": to_us(before)})

    async def _remove(self, key: str, before_us: int) -> list[str]:
        values = {"key": key, "before_us": before_us, "address": key.removeprefix("key/")}
        async with self._database.write() as connection:
            await self._database.lock(connection, key)  # like additions to the chain
            uris = (await connection.execute(_REMOVE_SNAPSHOTS, values)).scalars().all()
            await connection.execute(_REMOVE_EVALUATIONS, {"key": key})
            await connection.execute(_REMOVE_BEGINNING, {"key": key})
        return [uri for uri in uris if uri is not None]
