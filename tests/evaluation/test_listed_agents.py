"""The list of evaluated agents in the stores: what is written, found, and paged."""

from dataclasses import replace
from datetime import timedelta

from alembic import command
from alembic.config import Config
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert

from assay.chains.networks import Networks
from assay.db.engine import Database, to_us
from assay.db.schema.everything import evaluations
from assay.evaluation.listing import (
    DESCRIPTION_CHARS,
    NAME_CHARS,
    AgentListing,
    AgentQuery,
    AgentSearch,
    host_in,
    listing_of,
    name_key,
    one_line,
    search_of,
)
from assay.evaluation.model import Evaluation, Grade
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_listing import NAMES_MAX, SqlListedAgents
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from tests.evaluation.test_stores_evaluations import NOW, evaluation, snapshot
from tests.support.fakes.trust import NETWORK

SAYS = AgentListing(
    owner="0x" + "b" * 40,
    has_file=True,
    name="Weather Scout",
    description="Forecasts.",
    services=(("A2A", "https://scout.example.com/a2a"),),
    protocols=("a2a", "x402"),
    hosts=("scout.example.com",),
)
ALL = AgentQuery(AgentSearch(), None, None, None, "score", None, 10)


async def put(
    database: Database, listing: AgentListing | None = SAYS, *, agent: str = "7", score: float = 60
) -> Evaluation:
    made = replace(
        evaluation(f"eip155:1/{agent}"), agent_id=agent, score=score, grade=Grade("B", "RED", "x")
    )
    await SqlEvaluationStore(database).add(made, snapshot(made), None, listing)
    return made


async def ids(database: Database, query: AgentQuery) -> list[str]:
    return [one.agent_id for one in await SqlListedAgents(database).page(query)]


async def test_the_newest_grade_replaces_the_one_before_and_remembers_its_score(
    database: Database,
) -> None:
    store = SqlListedAgents(database)
    made = await put(database, score=60)
    first = await store.find(made.subject_key)
    await put(database, score=71.25)
    second = await store.find(made.subject_key)
    assert first is not None
    assert second is not None
    assert (first.score, first.score_before) == (60, None)
    assert (second.score, second.score_before, second.id) == (71.25, 60, first.id)
    assert second.protocols == ("a2a", "x402")
    assert await ids(database, ALL) == ["7"]


async def test_an_unreadable_registration_file_leaves_the_name_and_moves_the_grade(
    database: Database,
) -> None:
    made = await put(database)
    nothing = replace(SAYS, has_file=False, name="", description="", services=(), hosts=())
    await put(database, nothing, score=10)
    found = await SqlListedAgents(database).find(made.subject_key)
    assert found is not None
    assert (found.name, found.score) == ("Weather Scout", 10)
    by_host = replace(ALL, search=AgentSearch(host="scout.example.com"))
    assert await ids(database, by_host) == ["7"]
    await put(database, replace(SAYS, hosts=("other.example.com",)))
    assert await ids(database, by_host) == []


async def test_what_has_no_listing_is_in_no_list(database: Database) -> None:
    await put(database, None)
    assert await ids(database, ALL) == []


async def test_pages_by_score_show_equal_scores_once_each(database: Database) -> None:
    for number, score in enumerate((50, 50, 50, 40, 90)):
        await put(database, agent=str(number), score=score)
    seen: list[str] = []
    after = None
    while page := await SqlListedAgents(database).page(replace(ALL, after=after, limit=2)):
        seen += [one.agent_id for one in page]
        after = (round(page[-1].score * 100), page[-1].id)
    assert seen == ["4", "2", "1", "0", "3"]


async def test_a_name_is_found_by_how_it_begins_whatever_its_characters(
    database: Database,
) -> None:
    for number, name in enumerate(("Ämter_50%", "ämter", "Zoo", "a%b", "天気")):
        await put(database, replace(SAYS, name=name), agent=str(number))
    for query, found in (("äMTER", ["0", "1"]), ("ämter_", ["0"]), ("a%", ["3"]), ("天", ["4"])):
        search = search_of(query, Networks.built_in())
        assert sorted(await ids(database, replace(ALL, search=search))) == found
    assert NAMES_MAX >= 100


def before_lists(connection: Connection) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "0044")


def row(subject: str, score: float, ago: int) -> dict[str, object]:
    return {
        "id": f"{subject}{ago}"[:36],
        "subject_key": subject,
        "chain": "ethereum",
        "agent_id": subject.rpartition("/")[2],
        "wallet": "0x0",
        "collected": "[]",
        "unavailable": "{}",
        "score": score,
        "tier": "B",
        "risk_level": "RED",
        "route": "x",
        "evaluated_us": to_us(NOW - timedelta(days=ago)),
        "rung": 0,
        "policy": None,
    }


async def test_agents_from_before_the_list_are_in_it_and_key_agents_are_not(
    empty_database_url: str,
) -> None:
    database = await Database.open(empty_database_url)
    earlier = (row("eip155:1/7", 40, 2), row("eip155:1/7", 61.5, 1), row("key/0xabc", 90, 1))
    async with database.write(60) as connection:
        await connection.run_sync(before_lists)
        await connection.execute(insert(evaluations), earlier)
    await database.migrate()
    found = await SqlListedAgents(database).page(ALL)
    assert [(one.agent_id, one.score, one.name) for one in found] == [("7", 61.5, "")]
    await put(database, score=70)
    assert [one.name for one in await SqlListedAgents(database).page(ALL)] == ["Weather Scout"]
    await database.close()


@given(st.text(max_size=3000))
def test_a_strangers_text_becomes_one_short_line_of_visible_characters(text: str) -> None:
    for chars in (NAME_CHARS, DESCRIPTION_CHARS):
        line = one_line(text, chars)
        assert len(line) <= chars
        assert line == line.strip()
        assert all(c == " " or c.isprintable() for c in line)
        assert one_line(line, chars) == line


@given(st.text(max_size=400))
def test_any_text_is_a_search_and_any_address_has_one_host_or_none(text: str) -> None:
    search_of(text, Networks.built_in())
    host = host_in(text)
    assert host is None or (host.isascii() and host == host.lower())


addresses = st.text(max_size=80) | st.from_regex(r"[a-z]{0,5}:?/{0,3}[\[\]@:.a-z0-9%/#?-]{0,30}")


@given(st.text(max_size=200), addresses)
def test_whatever_a_registration_says_it_can_be_listed_and_stored(name: str, address: str) -> None:
    file = RegistrationFile(
        name=name, description=name, services=(Service(name, address), Service("MCP", address))
    )
    agent = OnchainAgent(NETWORK, "7", "0x" + "a" * 40, None, "data:,", file, None)
    found = listing_of(Subject(NETWORK, "7", "0x" + "a" * 40, agent), ())
    assert found is not None
    assert len(name_key(found.name)) <= NAME_CHARS
    for text in (found.name, found.description, *(part for one in found.services for part in one)):
        text.encode()
        assert "\x00" not in text
    assert found.protocols == () or found.hosts
