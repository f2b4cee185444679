"""What evaluations leave about control, and what new ones find of it: in both databases."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from assay.common.ids import new_id
from assay.common.json import JsonValue, is_array
from assay.control.identity import REPUTATION
from assay.control.ports import Past
from assay.control.similarity import bands
from assay.control.store import SqlControlStore
from assay.db.engine import Database, to_us
from assay.evaluation.model import (
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
    Snapshot,
)
from assay.evaluation.store_evaluations import ControlRecords, SqlEvaluationStore
from tests.support.fakes.clock import FrozenClock

AT = "at https://h.example:443/"
SITE = "site h.example"
BAD, NEW = "eip155:1/3", "eip155:1/4"
SIGNATURE = "0123456789abcdef" * 32
OWNER, BUYER = "0x" + "a" * 40, "0x" + "b" * 40
DAY_S = 86_400


class Kept:
    """The store, the clock, and a way to store an evaluation with such evidence."""

    def __init__(self, database: Database) -> None:
        self.clock = FrozenClock()
        self.store = SqlControlStore(database, self.clock)
        self._evaluations = SqlEvaluationStore(database, None, ControlRecords(_critical))

    async def add(
        self,
        agent: str,
        *,
        keys: Mapping[str, str] | None = None,
        critical: tuple[str, ...] = (),
        reputation: float | None = None,
        history: Mapping[str, JsonValue] | None = None,
        **identity: JsonValue,
    ) -> None:
        proven = {AT: "dns"} if keys is None else keys
        said = {"keys": dict(proven), "owner": OWNER, "sites": [SITE], **identity}
        data: dict[str, JsonValue] = {"identity": said, "critical": list(critical)}
        if history is not None:
            data["history"] = dict(history)
        signals = [SignalResult(SignalName.SANDBOX, Evidence(data), SignalScore(50.0, 0.5))]
        if reputation is not None:
            seen = SignalResult(
                SignalName.REGISTRY_8004, Evidence({}), SignalScore(reputation, 0.9)
            )
            signals.append(seen)
        made = Evaluation(
            *(new_id(), agent, "local", agent.rpartition("/")[2], "0x", tuple(signals), {}, 50.0),
            Grade("B", "RED", "sandbox"),
            self.clock.now(),
        )
        taken = Snapshot(
            *(new_id(), made.id, agent, made.agent_id, "0x1", "0x0", None, 0, self.clock.now())
        )
        await self._evaluations.add(made, taken)

    async def follows(self, *keys: str, agent: str = NEW) -> list[tuple[str, str, str]]:
        found = await self.store.following(keys, agent)
        return [(one.agent, one.check, one.key) for one in found]


def _critical(evaluation: Evaluation) -> list[str]:
    listed = evaluation.collected[0].evidence.data.get("critical")
    return [str(name) for name in listed] if is_array(listed) else []


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


async def test_nothing_is_known_of_an_agent_that_was_never_evaluated(kept: Kept) -> None:
    assert await kept.store.past(NEW) == Past(None, None, None, frozenset())
    assert await kept.follows(AT) == []
    assert await kept.store.proven_by([AT], [NEW]) == []
    assert await kept.store.alike(bands(SIGNATURE), NEW) == []
    assert await kept.store.of_name("seven", NEW) == []


async def test_an_open_critical_finding_follows_what_was_proven_for_90_days(kept: Kept) -> None:
    await kept.add(BAD, keys={AT: "dns", f"address {OWNER}": "registry"}, critical=("leak",))
    assert await kept.follows(AT) == [(BAD, "leak", AT)]
    assert await kept.follows(f"address {OWNER}") == [(BAD, "leak", f"address {OWNER}")]
    assert await kept.follows("at https://h.example:443/a", "site x.example") == []
    assert await kept.follows(AT, agent=BAD) == []  # its own is its own
    kept.clock.move(90 * DAY_S - 1)
    assert await kept.follows(AT) != []
    kept.clock.move(2)
    assert await kept.follows(AT) == []


async def test_of_several_keys_one_that_is_proven_is_named_before_the_site(kept: Kept) -> None:
    await kept.add(BAD, critical=("leak",))
    assert await kept.follows(SITE, AT) == [(BAD, "leak", AT)]
    assert await kept.follows(SITE) == [(BAD, "leak", SITE)]


async def test_what_is_inherited_opens_nothing_and_so_never_lasts_longer(kept: Kept) -> None:
    await kept.add(BAD, critical=("leak",))
    await kept.add(NEW, inherited=[{"agent": BAD, "check": "leak"}])
    assert await kept.follows(AT, agent="eip155:1/5") == [(BAD, "leak", AT)]


async def test_a_disputed_host_carries_nothing_to_its_other_claimant(kept: Kept) -> None:
    await kept.add(BAD, critical=("leak",), disputed=[AT], sites=[])
    assert await kept.follows(AT) == []
    assert await kept.store.proven_by([AT], [BAD]) == [(AT, BAD)]


async def test_a_finding_is_closed_by_its_history_alone(kept: Kept) -> None:
    await kept.add(BAD, critical=("leak",))
    await kept.add(BAD)  # one visit that saw nothing
    assert await kept.follows(AT) != []
    await kept.add(BAD, history={"openCritical": ["leak"]})
    assert await kept.follows(AT) != []
    await kept.add(BAD, history={"openCritical": [{"check": "leak"}]})
    assert await kept.follows(AT) != []
    await kept.add(BAD, history={"openCritical": []})
    assert await kept.follows(AT) == []


async def test_a_former_owner_answers_for_what_was_open_before_the_sale_and_for_nothing_later(
    kept: Kept,
) -> None:
    sold, theirs = f"address {OWNER}", f"address {BUYER}"
    await kept.add(BAD, keys={sold: "registry"}, critical=("leak",))
    kept.clock.move(DAY_S)
    await kept.add(BAD, keys={theirs: "registry"}, owner=BUYER, critical=("leak", "poison"))
    assert await kept.follows(sold) == [(BAD, "leak", sold)]
    assert await kept.follows(theirs) == [(BAD, "leak", theirs), (BAD, "poison", theirs)]


async def test_a_finding_that_comes_back_after_90_days_is_a_new_one(kept: Kept) -> None:
    await kept.add(BAD, critical=("leak",))
    kept.clock.move(91 * DAY_S)
    await kept.add(BAD, critical=("leak",))
    (found,) = await kept.store.following([AT], NEW)
    assert found.opened_us == to_us(kept.clock.now())


async def test_a_bad_reputation_follows_until_it_is_none(kept: Kept) -> None:
    await kept.add(BAD, reputation=20.0)
    assert await kept.follows(AT) == [(BAD, REPUTATION, AT)]
    await kept.add(BAD, history={"openCritical": []})
    assert await kept.follows(AT) == [(BAD, REPUTATION, AT)]
    await kept.add(BAD, reputation=60.0)
    assert await kept.follows(AT) == []


async def test_proven_control_is_known_for_90_days(kept: Kept) -> None:
    await kept.add(NEW)
    assert await kept.store.proven_by([AT, "at x"], [NEW, BAD]) == [(AT, NEW)]
    assert await kept.store.proven_on(SITE) == [NEW]
    kept.clock.move(91 * DAY_S)
    assert await kept.store.proven_by([AT], [NEW]) == []
    assert await kept.store.proven_on(SITE) == []
    assert (await kept.store.past(NEW)).keys == frozenset()


async def test_agents_of_one_group_are_siblings(kept: Kept) -> None:
    await kept.add(NEW, group="g1")
    await kept.add(BAD, group="g1")
    await kept.add("eip155:1/9", group="g2")
    assert await kept.store.siblings("g1") == [BAD, NEW]


async def test_the_past_of_an_agent_is_kept_across_a_transfer(kept: Kept) -> None:
    await kept.add(NEW)
    first = to_us(kept.clock.now())
    kept.clock.move(DAY_S)
    await kept.add(NEW, owner=BUYER, transferred=True)
    assert await kept.store.past(NEW) == Past(first, BUYER, 0, frozenset({AT}))
    kept.clock.move(3 * DAY_S)
    await kept.add(NEW, owner=BUYER)
    assert (await kept.store.past(NEW)).owned_days == 3
    kept.clock.move(87 * DAY_S)
    assert (await kept.store.past(NEW)).owned_days is None  # nothing counts days before that


async def test_copies_are_looked_for_among_agents_with_an_open_critical_finding(
    kept: Kept,
) -> None:
    await kept.add("eip155:1/9", signature=SIGNATURE)
    await kept.add("eip155:1/8", signature=SIGNATURE, reputation=5.0)
    await kept.add(BAD, signature=SIGNATURE, critical=("leak",))
    (found,) = await kept.store.alike(bands(SIGNATURE)[:1], NEW)
    assert (found.agent, found.signature) == (BAD, SIGNATURE)
    assert await kept.store.alike(bands("f" * 512), NEW) == []
    assert await kept.store.alike(bands(SIGNATURE), BAD) == []
    kept.clock.move(91 * DAY_S)
    assert await kept.store.alike(bands(SIGNATURE), NEW) == []


async def test_of_one_name_the_highest_rung_is_first_and_then_the_eldest(kept: Kept) -> None:
    for number in range(10):
        await kept.add(f"eip155:1/{number}", name="seven")
        kept.clock.move(1)
    await kept.add("eip155:1/7", name="seven", history={"heldRung": 3})
    found = await kept.store.of_name("seven", "eip155:1/0")
    assert [(one.agent, one.rung) for one in found][:2] == [("eip155:1/7", 3), ("eip155:1/1", 0)]
    assert len(found) == 5
    assert await kept.store.of_name("eight", NEW) == []


async def test_what_was_not_seen_for_long_is_removed_in_batches(kept: Kept) -> None:
    for number in range(5):
        await kept.add(f"eip155:1/{number}", critical=("leak",), signature=SIGNATURE)
    before = kept.clock.now() + timedelta(seconds=1)
    assert await kept.store.remove(before - timedelta(days=1), 100) == 0
    removed = 0
    while count := await kept.store.remove(before, 7):
        assert count <= 4 * 7
        removed += count
    assert removed == 5 * (2 + 1 + 16 + 1)
    assert await kept.follows(AT) == []


async def test_evidence_of_strangers_fits_whatever_it_is(kept: Kept) -> None:
    hostile = {f"at https://h.example:443/{n}": "dns" for n in range(500)}
    await kept.add(NEW, keys=hostile, name="\u00e9" * 200, history={"heldRung": "x"})
    assert len((await kept.store.past(NEW)).keys) <= 64


async def test_holders_of_a_key_are_found_for_as_long_as_control_is_remembered(
    database: Database,
) -> None:
    kept = Kept(database)
    await kept.add(BAD, keys={AT: "dns"})
    await kept.add(NEW, keys={f"{AT}paid": "x402_payee"})
    assert await kept.store.holders([AT, SITE], NEW) == [BAD]
    assert await kept.store.holders([AT, f"{AT}paid"], BAD) == [NEW]
    assert await kept.store.proven_on(SITE) == [BAD, NEW]
    kept.clock.move(91 * DAY_S)
    assert await kept.store.holders([AT], NEW) == []
