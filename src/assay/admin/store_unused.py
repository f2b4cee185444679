"""Ends accounts that strangers opened and nobody ever used.

A use is anything the account's owner could have done: a call, a key, a log-in, a proven address, a
wrapper, a webhook, money, or any line of the audit trail that an anonymous caller cannot cause.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, text

from assay.admin.store_account_end import end_account
from assay.audit.service import TERMINAL, AuditEntry
from assay.common.ids import new_id
from assay.db.engine import Database, to_us
from assay.db.schema.accounts import api_keys, operators

_OWN = (
    *("dashboard_sessions", "allowance", "gas_accounts", "wrappers", "webhooks"),
    *("call_totals", "payments", "transfers"),
)
_BY_ANYBODY = "'account.registered', 'key.issued', 'login.failed', 'password.reset_link'"
"""What a sign-up notes itself, and what strangers can do to an account, as `anonymous`."""

_NONE_OF_ITS_OWN = "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.operator_id = o.id)"  # noqa: S608 - our own names
    for table in _OWN
)
_UNUSED = f"""
SELECT o.id FROM operators o WHERE o.self_registered AND o.deleted_us IS NULL
  AND o.role = 'operator' AND o.plan = 'free' AND o.created_us < :before_us
  AND o.updated_us = o.created_us AND o.email_verified_us IS NULL AND o.totp_secret IS NULL
  AND EXISTS (SELECT 1 FROM audit a WHERE a.operator_id = o.id
    AND a.action = 'account.registered' AND a.actor_kind = 'anonymous')
  AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operator_id = o.id
    AND NOT (a.actor_kind = 'anonymous' AND a.action IN ({_BY_ANYBODY})))
  AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.actor_id = o.id)
  AND NOT EXISTS (SELECT 1 FROM api_keys k
    WHERE k.operator_id = o.id AND k.last_used_us IS NOT NULL)
 {_NONE_OF_ITS_OWN}"""  # noqa: S608 - our own words
_DUE = text(f"{_UNUSED} ORDER BY o.created_us LIMIT :at_most")
_STILL = text(f"{_UNUSED} AND o.id = :id")


class SqlUnusedAccounts:
    """Finds them, and ends one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, before: datetime, at_most: int) -> Sequence[str]:
        """Ids of unused accounts made before then, the oldest first."""
        values = {"before_us": to_us(before), "at_most": at_most}
        async with self._database.read() as connection:
            return (await connection.execute(_DUE, values)).scalars().all()

    async def remove(
        self, operator_id: str, before: datetime, at: datetime, origin_until: datetime
    ) -> bool:
        """End the account as its owner could, unless it is used by now; whether it was ended.

        The account and its keys are locked first: of a use that is written at the same moment, one
        sees the other.
        """
        entry = AuditEntry(
            *(new_id(), at, TERMINAL, "account.deleted", operator_id, operator_id),
            {"reason": "never used"},
        )
        own = select(operators.c.id).where(operators.c.id == operator_id).with_for_update()
        keys = select(api_keys.c.id).where(api_keys.c.operator_id == operator_id)
        still = {"id": operator_id, "before_us": to_us(before)}
        async with self._database.write() as connection:
            await connection.execute(own)
            await connection.execute(keys.with_for_update())
            if (await connection.execute(_STILL, still)).one_or_none() is None:
                return False
            await end_account(connection, operator_id, at, origin_until, entry)
        return True
