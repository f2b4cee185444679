"""Networks from which accounts' owners have logged in, as keyed hashes."""

from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.clients import Hashes
from assay.db.engine import to_us
from assay.db.schema.accounts import login_origins

ORIGINS_MAX = 20
"""Networks remembered of an account; of more, the one unused for longest is forgotten."""


async def remember_origin(
    connection: AsyncConnection, operator_id: str, origin: Hashes, at: datetime
) -> None:
    """Remember a network, in the caller's transaction, which has locked the account's row."""
    mine = login_origins.c.operator_id == operator_id
    known = delete(login_origins).where(mine, login_origins.c.origin.in_(origin))
    was_known = (await connection.execute(known)).rowcount
    values = {"operator_id": operator_id, "origin": origin[0], "used_us": to_us(at)}
    await connection.execute(insert(login_origins).values(values))
    if was_known:
        return
    newest = (
        select(login_origins.c.origin)
        .where(mine)
        .order_by(login_origins.c.used_us.desc(), login_origins.c.origin)
        .limit(ORIGINS_MAX)
    )
    await connection.execute(
        delete(login_origins).where(mine, login_origins.c.origin.not_in(newest))
    )
