"""What follows proven control, what copies others, and what each of them may not do to others."""

from dataclasses import replace

import pytest

from assay.common.json import JsonObject
from assay.control import rules
from assay.control.identity import REPUTATION, Control, sibling_key
from assay.control.ports import Card, ControlledEndpoint, Elder, OpenFinding, Past, Tool
from assay.control.similarity import name_skeleton, signature
from assay.registries.model import RegistrationFile, Subject
from tests.support.fakes.control import FILE, World, agent, naming
from tests.support.fakes.trust import OWNER, WALLET

HOST = "https://h.example"
AT = "at https://h.example:443/"
BAD = "eip155:31337/3"
WORDS = [
    f"{a}{b}" for a in ("wolf", "bear", "lynx", "hare", "crow", "moth") for b in ("ing", "er", "ly")
]
TEXT = " ".join(f"{one} {two}" for one in WORDS for two in reversed(WORDS))


@pytest.fixture
def world() -> World:
    made = World()
    made.hosts.pages[HOST + FILE] = naming("7")
    return made


def named(subject: Subject, name: str) -> Subject:
    assert subject.agent is not None
    registered = replace(subject.agent, registration=RegistrationFile(name=name))
    return replace(subject, agent=registered)


async def seen(
    world: World, subject: Subject | None = None, url: str = HOST, kind: str = "mcp"
) -> JsonObject:
    control = Control(world.kept, world.records)
    asked = subject or agent()
    return await control.collect(
        asked, [ControlledEndpoint(url, kind)], world.hosts, world.services
    )


def codes(data: JsonObject) -> set[str]:
    """Why the agent is held at rung 0, for whom it copies or stands beside."""
    return {reason.code for reason in rules.ceiling_reasons(data)}


def finding(key: str, check: str = "no_leaked_secrets", since_us: int = 1000) -> OpenFinding:
    return OpenFinding(BAD, check, key, since_us)


async def test_an_agent_with_nothing_against_it_is_held_back_by_nothing(world: World) -> None:
    data = await seen(world)
    assert rules.unproven(data) == rules.undecided(data) == rules.inherited(data) == ()
    assert codes(data) == set()
    assert rules.owned_days(data) is None


async def test_a_service_without_a_proof_is_named(world: World) -> None:
    (reason,) = rules.unproven(await seen(world, url="https://other.example/a"))
    assert (reason.code, reason.service) == ("control_unproven", "https://other.example/a")


@pytest.mark.parametrize(
    "key", [AT, AT + "a", AT + "a/b", "only https://h.example:443/a/b", f"address {WALLET}"]
)
async def test_open_critical_findings_follow_what_is_proven(world: World, key: str) -> None:
    world.kept.open = [finding(key)]
    (reason,) = rules.inherited(await seen(world, url=f"{HOST}/a/b"))
    assert BAD in reason.sentence
    assert "no_leaked_secrets" in reason.sentence


@pytest.mark.parametrize(
    "key", [AT + "c", AT + "a/b/c", AT + "ab", "only https://h.example:443/a", "at https://x.example:443/"]
)  # fmt: skip
async def test_they_follow_nothing_beside_or_above(world: World, key: str) -> None:
    world.kept.open = [finding(key)]
    assert rules.inherited(await seen(world, url=f"{HOST}/a/b")) == ()


async def test_they_never_follow_a_claim_without_a_proof(world: World) -> None:
    world.kept.open = [finding("at https://other.example:443/")]
    assert rules.inherited(await seen(world, url="https://other.example/")) == ()


async def test_a_token_sent_to_a_stranger_brings_its_findings_to_nobody(world: World) -> None:
    """A transfer unsets the wallet; until the new owner sets one the owner is no proven control."""
    world.kept.open = [finding(f"address {OWNER}")]
    sent = agent()
    assert sent.agent is not None
    given = replace(sent, agent=replace(sent.agent, wallet=None))
    assert rules.inherited(await seen(world, given)) == ()
    assert rules.inherited(await seen(world, sent)) != ()


async def test_a_bad_reputation_follows_and_holds_at_rung_0(world: World) -> None:
    world.kept.open = [finding(f"address {WALLET}", REPUTATION)]
    data = await seen(world)
    assert rules.inherited(data) == ()
    assert codes(data) == {"reputation_follows"}


async def test_a_newcomer_on_the_site_of_an_open_finding_waits_for_an_unannounced_visit(
    world: World,
) -> None:
    world.kept.open = [finding("site h.example")]
    data = await seen(world)
    assert codes(data) == {"same_site"}
    assert codes({**data, "history": {"unannounced": 1}}) == set()
    assert codes({**data, "history": {"unannounced": 0}}) == {"same_site"}
    assert codes({**data, "history": {"unannounced": 1, "openCritical": ["x"]}}) == {"same_site"}


async def test_nobody_who_was_there_before_falls_for_a_neighbour(world: World) -> None:
    world.kept.open = [finding("site h.example", since_us=1000)]
    world.kept.pasts["eip155:31337/7"] = Past(999, OWNER, None, frozenset())
    assert codes(await seen(world)) == set()
    world.kept.pasts.clear()
    world.kept.open = [replace(world.kept.open[0], agent="eip155:31337/9")]  # a younger id
    assert codes(await seen(world)) == set()


def listing(text: str) -> list[Tool]:
    return [Tool(f"tool{at}", part) for at, part in enumerate(text.split(" wolfer "))]


async def test_a_copy_of_a_bad_agent_waits_for_an_unannounced_visit(world: World) -> None:
    world.services.listed[HOST] = listing(TEXT)
    original = (await seen(world))["identity"]
    assert isinstance(original, dict)
    world.kept.copied = [Elder(BAD, "", 0, str(original["signature"]), 1000)]
    world.services.listed[HOST] = [
        replace(
            t,
            description=t.description.upper().replace("HARER", "H\u0410R\u200bER")
            + " 42 a@b.example",
        )
        for t in reversed(listing(TEXT))
    ]
    data = await seen(world)
    assert codes(data) == {"clone"}
    assert codes({**data, "history": {"unannounced": 1}}) == set()
    world.services.listed[HOST] = listing(" ".join(reversed(TEXT.split())))
    assert codes(await seen(world)) == set()


async def test_copying_an_honest_agent_and_turning_bad_lowers_the_elder_by_nothing(
    world: World,
) -> None:
    world.services.listed[HOST] = listing(TEXT)
    texts = signature([f"{t.name} {t.description}" for t in listing(TEXT)], ["Seven"])
    world.kept.copied = [Elder(BAD, "", 0, texts, 1000)]
    assert codes(await seen(world)) == {"clone"}
    world.kept.pasts["eip155:31337/7"] = Past(1000, OWNER, None, frozenset())
    assert codes(await seen(world)) == set()
    world.kept.pasts.clear()
    world.kept.copied = [Elder("eip155:31337/8", "", 0, texts, 1000)]
    assert codes(await seen(world)) == set()


async def test_a_sibling_is_no_copy(world: World) -> None:
    world.services.listed[HOST] = listing(TEXT)
    texts = signature([f"{t.name} {t.description}" for t in listing(TEXT)], ["Seven"])
    world.kept.copied = [Elder(BAD, "", 0, texts, 1000)]
    world.kept.pasts[BAD] = Past(1, OWNER, None, frozenset({AT}))
    assert codes(await seen(world)) == set()


async def test_greetings_are_alike_and_no_copies(world: World) -> None:
    world.services.listed[HOST] = [Tool("hello", "Says hello to the world.")]
    data = await seen(world)
    identity = data["identity"]
    assert isinstance(identity, dict)
    assert "signature" not in identity


async def test_an_imitated_name_counts_only_against_an_elder_at_rung_3(world: World) -> None:
    copied = named(agent(), "P\u0430y\u0420al Ag\u0435nt")  # Cyrillic a, er and ie
    shown = name_skeleton("PayPal Agent")
    world.kept.named = [Elder(BAD, shown, 2, "", 1000)]
    data = await seen(world, copied)
    assert (rules.shown_imitation(data), codes(data)) == (BAD, set())
    world.kept.named = [Elder(BAD, shown, 3, "", 1000)]
    assert codes(await seen(world, copied)) == {"imitation"}
    world.kept.pasts[BAD] = Past(1000, OWNER, None, frozenset({AT}))  # one control: its own
    assert codes(await seen(world, copied)) == set()
    world.kept.pasts = {"eip155:31337/7": Past(999, OWNER, None, frozenset())}  # the elder itself
    assert codes(await seen(world, copied)) == set()


async def test_a_transfer_resets_unless_all_services_stay_under_the_same_control(
    world: World,
) -> None:
    key = "eip155:31337/7"
    before = "0x" + "d" * 40
    world.kept.pasts[key] = Past(1, before, None, frozenset({AT}))
    assert rules.owned_days(await seen(world)) is None
    world.kept.pasts[key] = Past(1, before, None, frozenset({"at https://old.example:443/"}))
    assert rules.owned_days(await seen(world)) == 0
    world.kept.pasts[key] = Past(1, OWNER, 12, frozenset())
    assert rules.owned_days(await seen(world)) == 12
    world.kept.pasts[key] = Past(1, before, None, frozenset({AT}))
    assert rules.owned_days(await seen(world, url="https://unproven.example/")) == 0


def test_siblings_are_agents_of_one_owner_on_one_endpoint() -> None:
    assert sibling_key(agent("7"), [AT]) == sibling_key(agent("8"), [AT])
    assert sibling_key(agent("7"), [AT]) != sibling_key(agent("7"), [AT + "a"])
    stranger = agent("7")
    assert stranger.agent is not None
    other = replace(stranger, agent=replace(stranger.agent, owner="0x" + "9" * 40))
    assert sibling_key(stranger, [AT]) != sibling_key(other, [AT])
    assert sibling_key(agent("7"), []) is None


async def test_a_key_agent_has_no_services_to_control(world: World) -> None:
    assert await seen(world, replace(agent(), agent=None)) == {}


async def test_the_cards_texts_are_compared_as_well(world: World) -> None:
    document = {"skills": [{"name": "s", "description": TEXT, "examples": ["one", 2, None]}]}
    world.services.cards[HOST] = Card(HOST, document)
    identity = (await seen(world, kind="a2a"))["identity"]
    assert isinstance(identity, dict)
    assert identity["signature"]


def test_what_robots_closes_is_named() -> None:
    data: JsonObject = {
        "services": [{"endpoint": HOST, "state": "opted_out"}, {"state": "visited"}]
    }
    (reason,) = rules.closed_to_us(data)
    assert (reason.code, reason.service) == ("closed_by_robots", HOST)


@pytest.mark.parametrize(
    "data",
    [{}, {"control": 1, "identity": [], "services": {}}, {"identity": {"clone": "x"}}],
    ids=str,
)
def test_evidence_of_before_says_nothing(data: JsonObject) -> None:
    found = (
        *rules.unproven(data),
        *rules.undecided(data),
        *rules.inherited(data),
        *rules.ceiling_reasons(data),
        *rules.closed_to_us(data),
    )
    assert found == ()
    assert rules.owned_days(data) is None
