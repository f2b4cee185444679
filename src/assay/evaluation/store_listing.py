"""Stores and searches registered agents with their newest grade, in SQL."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    TextClause,
    delete,
    insert,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import Database, to_us
from assay.db.schema.everything import listed_agent_hosts, listed_agents
from assay.evaluation.listing import (
    PROTOCOLS,
    AgentListing,
    AgentQuery,
    AgentSearch,
    ListedAgent,
    name_key,
)
from assay.evaluation.model import Evaluation

_CENTS = 100
"""Scores have two decimals; whole numbers make order and cursors exact."""

NAMES_MAX: Final = 1000
"""Agents whose name begins as a search asks; those beyond it, by name, are not found by name."""

_HIGHEST: Final = "\U0010ffff"

_UPSERT: Final = text(
    "INSERT INTO listed_agents (subject_key, chain, agent_id, wallet, owner, name, name_key,"
    " description, services, protocols, score_cents, tier, rung, evaluated_us)"
    " VALUES (:subject_key, :chain, :agent_id, :wallet, :owner, :name, :name_key, :description,"
    " :services, :protocols, :score_cents, :tier, :rung, :evaluated_us)"
    " ON CONFLICT (subject_key) DO UPDATE SET wallet = excluded.wallet, owner = excluded.owner,"
    " protocols = excluded.protocols, before_cents = listed_agents.score_cents,"
    " score_cents = excluded.score_cents, tier = excluded.tier, rung = excluded.rung,"
    " evaluated_us = excluded.evaluated_us"
)
_DESCRIBE: Final = text(
    "UPDATE listed_agents SET name = :name, name_key = :name_key, description = :description,"
    " services = :services WHERE subject_key = :subject_key"
)


async def put_listing(
    connection: AsyncConnection, evaluation: Evaluation, listing: AgentListing
) -> None:
    """Write an agent's newest grade within the caller's transaction.

    Name, description and services stay what they were if the registration file cannot be read.
    """
    values = {
        "subject_key": evaluation.subject_key,
        "chain": evaluation.chain,
        "agent_id": evaluation.agent_id,
        "wallet": evaluation.wallet,
        "owner": listing.owner,
        "protocols": sum(1 << PROTOCOLS.index(one) for one in listing.protocols),
        "score_cents": round(evaluation.score * _CENTS),
        "tier": evaluation.grade.tier,
        "rung": evaluation.rung,
        "evaluated_us": to_us(evaluation.evaluated_at),
    }
    says = {
        "subject_key": evaluation.subject_key,
        "name": listing.name,
        "name_key": name_key(listing.name),
        "description": listing.description,
        "services": json.dumps(listing.services),
    }
    await connection.execute(_UPSERT, {**values, **says})
    if not listing.has_file:
        return
    await connection.execute(_DESCRIBE, says)
    mine = listed_agent_hosts.c.subject_key == evaluation.subject_key
    await connection.execute(delete(listed_agent_hosts).where(mine))
    rows = [{"host": host, "subject_key": evaluation.subject_key} for host in listing.hosts]
    if rows:
        await connection.execute(insert(listed_agent_hosts), rows)


class SqlListedAgents:
    """Reads registered agents with their newest grade; every query is bounded by a limit."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: AgentQuery) -> Sequence[ListedAgent]:
        """Return the agents of a query in its order, at most `query.limit`."""
        async with self._database.read() as connection:
            found = await connection.execute(_page(query))
            return [_listed(row) for row in found.mappings()]

    async def find(self, subject_key: str) -> ListedAgent | None:
        """Return one agent, or None if it was never evaluated."""
        statement = select(listed_agents).where(listed_agents.c.subject_key == subject_key)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _listed(row)


def _page(query: AgentQuery) -> Select[tuple[object, ...]]:
    rows = listed_agents.c
    order = rows.score_cents if query.sort == "score" else rows.evaluated_us
    statement = select(listed_agents).order_by(order.desc(), rows.id.desc()).limit(query.limit)
    if query.after is not None:
        statement = statement.where(tuple_(order, rows.id) < query.after)
    return statement.where(*_filters(query), *_searches(query.search))


def _filters(query: AgentQuery) -> Iterator[ColumnElement[bool] | TextClause]:
    rows = listed_agents.c
    if query.tier is not None:
        yield rows.tier == query.tier
    if query.chain is not None:
        yield rows.chain == query.chain
    if query.protocol is not None:
        # A literal, as in the partial indexes: a parameter would keep them from being used.
        yield text(f"protocols & {1 << PROTOCOLS.index(query.protocol)} <> 0")


def _searches(wanted: AgentSearch) -> Iterator[ColumnElement[bool]]:
    rows, hosts = listed_agents.c, listed_agent_hosts.c
    if wanted.network is not None:
        yield rows.chain == wanted.network.slug
    if wanted.agent_id is not None:
        yield rows.agent_id == wanted.agent_id
    if wanted.address is not None:
        mine = (rows.wallet, rows.owner, rows.agent_id)
        yield or_(*(column == wanted.address for column in mine))
    if wanted.host is not None:
        yield rows.subject_key.in_(select(hosts.subject_key).where(hosts.host == wanted.host))
    if wanted.name_begins is not None:
        begins = wanted.name_begins
        first = rows.name_key >= begins, rows.name_key < begins + _HIGHEST
        some = select(rows.id).where(*first).order_by(rows.name_key).limit(NAMES_MAX)
        yield rows.id.in_(some.scalar_subquery())


def _listed(row: RowMapping) -> ListedAgent:
    before = row["before_cents"]
    return ListedAgent(
        id=row["id"],
        subject_key=row["subject_key"],
        chain=row["chain"],
        agent_id=row["agent_id"],
        wallet=row["wallet"],
        owner=row["owner"],
        name=row["name"],
        description=row["description"],
        services=tuple((str(name), str(url)) for name, url in json.loads(row["services"])),
        protocols=tuple(n for place, n in enumerate(PROTOCOLS) if row["protocols"] >> place & 1),
        score=row["score_cents"] / _CENTS,
        tier=row["tier"],
        rung=row["rung"],
        evaluated_us=row["evaluated_us"],
        score_before=None if before is None else before / _CENTS,
    )
