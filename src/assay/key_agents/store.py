"""Stores key agents in SQL, with what they bring that not everybody can.

That is an attested person, and money spent at unrelated sellers.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, delete, func, select, text

from assay.common.clock import Clock
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import (
    attested_people,
    chain_fundings,
    chain_transfers,
    key_agents,
    payments,
    wrappers,
)
from assay.identity.model import KeyAgent
from assay.reputation.store_sellers import OTHER_PAYERS, parts

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


PERSON_DAYS: Final = 90
"""Days for which an attested person belongs to the address that first used the attestation; each
evaluation of that address starts them again."""

TRAITS_MAX: Final = 50
SELLERS_MAX: Final = 500
"""Most sellers of one buyer that are considered: those that were paid most."""

_DAY_S = 86_400
_P, _T, _F, _W = payments.c, chain_transfers.c, chain_fundings.c, wrappers.c
_USE: Final = text(
    "INSERT INTO attested_people (trait, address, seen_day) VALUES (:trait, :address, :day)"
    " ON CONFLICT (trait) DO UPDATE SET seen_day = excluded.seen_day"
    " WHERE attested_people.address = excluded.address"
)


class SqlAttestedPeople:
    """Implements `evaluation.ports.AttestedPeople`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def others(self, address: str, traits: Sequence[str]) -> int:
        today = int(self._clock.now().timestamp()) // _DAY_S
        named = sorted({hashlib.sha256(one.encode()).hexdigest() for one in traits})[:TRAITS_MAX]
        rows = [{"trait": one, "address": address, "day": today} for one in named]
        columns = attested_people.c
        async with self._database.write() as connection:
            old = delete(attested_people).where(columns.seen_day < today - PERSON_DAYS)
            await connection.execute(old)
            await connection.execute(_USE, rows)
            found = select(columns.address).where(
                columns.trait.in_(named), columns.address != address
            )
            return len(set((await connection.execute(found)).scalars()))


class SqlPurchases:
    """Implements `caller_behaviour.observations.Purchases` over our own ledger."""

    def __init__(
        self,
        database: Database,
        assets: Mapping[str, Sequence[str]],
        listed: Collection[str] = frozenset(),
    ) -> None:
        """Create it; `assets` are by main network; `listed` sellers alone count, if any."""
        self._database = database
        self._assets = assets
        self._listed = listed

    async def spent(self, addresses: Sequence[str]) -> int:
        return sum([await self._on(n, a, addresses) for n, a in sorted(self._assets.items())])

    async def _on(self, network: str, assets: Sequence[str], buyers: Sequence[str]) -> int:
        """Return the sums on one network, in millionths of a dollar."""
        seller = func.lower(_P.pay_to)
        settled = (_P.network == network, _P.asset.in_(assets), _P.state == "settled")
        bought = (
            select(_P.operator_id, seller.label("seller"), func.sum(_P.amount).label("total"))
            .where(*settled, _P.payer.in_(buyers), seller.not_in(buyers))
            .group_by(_P.operator_id, seller)
            .order_by(func.sum(_P.amount).desc(), _P.operator_id, seller)
            .limit(SELLERS_MAX)
        )
        rows = await self._rows(bought)
        operators = {row.operator_id for row in rows}
        related = await self._related(network, operators, {r.seller for r in rows}, buyers)
        known = await self._popular(settled, operators, buyers)
        paid: dict[str, int] = {}
        for row in rows:
            is_known = row.seller in self._listed if self._listed else row.operator_id in known
            if is_known and row.operator_id not in related and row.seller not in related:
                paid[row.seller] = paid.get(row.seller, 0) + int(row.total)
        back = (
            select(_T.sender, func.sum(_T.amount).label("total"))
            .where(_T.network == network, _T.sender.in_(sorted(paid)), _T.recipient.in_(buyers))
            .group_by(_T.sender)
        )
        returned = {row.sender: int(row.total) for row in await self._rows(back)} if paid else {}
        return sum(max(0, total - returned.get(one, 0)) for one, total in paid.items())

    async def _related(
        self,
        network: str,
        operators: Collection[str],
        sellers: Collection[str],
        buyers: Sequence[str],
    ) -> frozenset[str]:
        """Return operators with a wrapper that pays a buyer, and parties that funded each other."""
        own = select(_W.operator_id).where(
            _W.operator_id.in_(operators), func.lower(_W.payout_address).in_(buyers)
        )
        ends = [*sellers, *buyers]
        funded = select(_F.funder, _F.account).where(
            _F.network == network, _F.account.in_(ends), _F.funder.in_(ends)
        )
        found = {row.operator_id for row in await self._rows(own)}
        for row in await self._rows(funded):
            found |= {row.funder, row.account}
        return frozenset(found)

    async def _popular(
        self, settled: Sequence[Any], operators: Collection[str], buyers: Sequence[str]
    ) -> frozenset[str]:
        """Return operators that enough others pay."""
        found: set[str] = set()
        for part in parts(sorted(operators)):
            statement = (
                select(_P.operator_id, func.count(_P.payer.distinct()).label("others"))
                .where(*settled, _P.operator_id.in_(part), _P.payer.not_in(buyers))
                .group_by(_P.operator_id)
            )
            rows = await self._rows(statement)
            found |= {row.operator_id for row in rows if int(row.others) >= OTHER_PAYERS}
        return frozenset(found)

    async def _rows(self, statement: Select[*tuple[Any, ...]]) -> Sequence[Row[Any]]:
        async with self._database.read() as connection:
            return (await connection.execute(statement)).all()
