"""Key agents in SQL."""

from sqlalchemy import select, text

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import key_agents
from assay.identity.model import KeyAgent

_REMEMBER = text(
    "INSERT INTO key_agents (address, verified_us) VALUES (:address, :verified_us)"
    " ON CONFLICT (address) DO NOTHING"
)


class SqlKeyAgentStore:
    """Implements `identity.ports.KeyAgentStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remember(self, agent: KeyAgent) -> None:
        values = {"address": agent.address, "verified_us": to_us(agent.verified_at)}
        async with self._database.write() as connection:
            await connection.execute(_REMEMBER, values)

    async def find(self, address: str) -> KeyAgent | None:
        statement = select(key_agents).where(key_agents.c.address == address)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else KeyAgent(row["address"], from_us(row["verified_us"]))
