"""Stores due feedback files, and the payments they proved, in SQL."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, Update, func, select, text, tuple_, update

from assay.db.engine import Database
from assay.db.schema.everything import chain_feedback, chain_notes, chain_proofs
from assay.reputation.files import PER_AGENT, FileDue, FileState
from assay.reputation.model import ProvenPayment, TransferRow

PROOFS_MAX: Final = 2_000
"""Proven payments of one agent that are read, the newest."""

_F, _N, _P = chain_feedback.c, chain_notes.c, chain_proofs.c
_WAITING: Final = ("asked", "again")

_PROVE: Final = text(
    "INSERT INTO chain_proofs (network, tx, log, registry, agent_id, client, number, recipient,"
    " amount, block, day, is_charge) VALUES (:network, :tx, :log, :registry, :agent_id, :client,"
    " :number, :recipient, :amount, :block, :day, :is_charge)"
    " ON CONFLICT (network, tx, log) DO UPDATE SET block = excluded.block"
    " WHERE chain_proofs.registry = excluded.registry"
    " AND chain_proofs.agent_id = excluded.agent_id AND chain_proofs.client = excluded.client"
    " AND chain_proofs.number = excluded.number"
)


async def ask_files(database: Database, network: str, agent_id: str) -> None:
    """Queue the newest unread files of an agent's feedback, the latest of each voter."""
    mine = (_F.network == network, _F.agent_id == agent_id)
    waiting = select(func.count()).where(*mine, _F.file.in_(_WAITING))
    later = chain_feedback.alias()
    newest = (
        select(_F.client, _F.number)
        .where(*mine, _F.file == "unchecked")
        .where(
            ~select(later.c.number)
            .where(later.c.network == network, later.c.agent_id == agent_id)
            .where(later.c.client == _F.client, later.c.number > _F.number)
            .exists()
        )
        .order_by(_F.block.desc(), _F.client)
        .limit(PER_AGENT)
    )
    async with database.read() as connection:
        found = [tuple(row) for row in (await connection.execute(newest)).all()]
        room = PER_AGENT - int((await connection.execute(waiting)).scalar_one()) if found else 0
    if room > 0:
        these = tuple_(_F.client, _F.number).in_(found[:room])
        asked = update(chain_feedback).where(*mine, these, _F.file == "unchecked")
        async with database.write() as connection:
            await connection.execute(asked.values(file="asked"))


async def proven(database: Database, network: str, agent_id: str) -> Sequence[ProvenPayment]:
    """Return the payments proven by an agent's feedback, without revoked feedback."""
    revoked = (
        select(_N.number)
        .where(_N.network == network, _N.agent_id == agent_id, _N.client == _P.client)
        .where(_N.number == _P.number, _N.is_revocation)
        .exists()
    )
    stands = (
        select(_F.number)
        .where(_F.network == network, _F.agent_id == agent_id, _F.client == _P.client)
        .where(_F.number == _P.number, _F.file == "paid")
        .exists()
    )
    statement = (
        select(chain_proofs)
        .where(_P.registry == network, _P.agent_id == agent_id, stands, ~revoked)
        .order_by(_P.block.desc(), _P.network, _P.tx, _P.log)
        .limit(PROOFS_MAX)
    )
    async with database.read() as connection:
        rows = (await connection.execute(statement)).all()
    return [ProvenPayment(row.network, _transfer(row)) for row in rows]


class SqlFileQueue:
    """Implements `reputation.files.FileQueue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def next_file(self, day: int) -> FileDue | None:
        statement = (
            select(chain_feedback)
            .where(_F.file.in_(_WAITING), _F.file_day <= day)
            .order_by(_F.file_day, _F.block, _F.network, _F.agent_id, _F.client, _F.number)
            .limit(1)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            return None
        place = (row.network, row.agent_id, row.client, row.number, row.block)
        return FileDue(*place, is_again=row.file == "again")

    async def put_off(self, due: FileDue, until_day: int, *, is_again: bool) -> None:
        state = "again" if is_again else "asked"
        async with self._database.write() as connection:
            await connection.execute(_row(due).values(file=state, file_day=until_day))

    async def finish(self, due: FileDue, state: FileState, paid: ProvenPayment | None) -> None:
        async with self._database.write() as connection:
            if paid is not None:
                row = paid.transfer
                values = {name: getattr(row, name) for name in row.__slots__ if name != "sender"}
                values |= {"network": paid.network, "registry": due.network}
                values |= {"agent_id": due.agent_id, "client": due.client, "number": due.number}
                taken = await connection.execute(_PROVE, values)
                state = "paid" if taken.rowcount else "good"
            await connection.execute(_row(due).values(file=state))


def _row(due: FileDue) -> Update:
    return update(chain_feedback).where(
        *(_F.network == due.network, _F.agent_id == due.agent_id),
        *(_F.client == due.client, _F.number == due.number, _F.block == due.block),
    )


def _transfer(row: Row[Any]) -> TransferRow:
    return TransferRow(
        *(row.tx, row.log, row.client, row.recipient),
        *(row.amount, row.block, row.day, bool(row.is_charge)),
    )
