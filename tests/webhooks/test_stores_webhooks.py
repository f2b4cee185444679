"""Registrations and deliveries, on every database: none lost, none twice."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import insert
from typing_extensions import override

from assay.accounts.model import AccountChange, Operator, Plan, Role
from assay.accounts.store_operators import SqlOperatorStore
from assay.audit.service import TERMINAL, AuditEntry, new_entry
from assay.audit.store import SqlAuditStore
from assay.common.costs import Bearer, Cost, CostLedger
from assay.common.ids import new_id
from assay.common.keyring import SecretBox
from assay.db.engine import Database
from assay.db.schema.everything import webhook_agents, webhooks
from assay.evaluation.model import Evaluation, Grade, Snapshot
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.net.egress.url import EgressPolicy
from assay.webhooks.model import AgentRef, DeliveryNotFound, DeliveryState, WebhookRegistration
from assay.webhooks.payload import secret_bytes
from assay.webhooks.receiver_proof import ReceiverProofs
from assay.webhooks.service import NewWebhook, Webhooks, place
from assay.webhooks.store import SqlWebhookStore
from assay.webhooks.store_outbox import AT_ONCE, PAGE, WebhookOutbox
from tests.support.fakes.clock import FrozenClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=2)


def told(operator_id: str = "o") -> AuditEntry:
    return new_entry(FrozenClock(NOW), TERMINAL, "webhook.registered", operator_id)


def registration(operator_id: str, *agent_ids: AgentRef) -> WebhookRegistration:
    made = new_id()
    url = f"https://hooks.example.com/{made}"
    return WebhookRegistration(
        made, operator_id, "evaluation_complete", url, agent_ids or None, None, NOW
    )


def proofs() -> ReceiverProofs:
    """Of registrations that are never delivered to."""
    return ReceiverProofs(None, None, ("s" * 32,), FrozenClock())  # type: ignore[arg-type]


@pytest.fixture
async def owner(database: Database) -> str:
    return await account(database, "a@example.com")


async def account(database: Database, email: str) -> str:
    made = Operator(new_id(), email, "A", Role.OPERATOR, Plan.FREE, Decimal(0), NOW, NOW)
    await SqlOperatorStore(database).add(made, "hash")
    return made.id


async def evaluated(
    database: Database, agent_id: str = "7", score: float = 70.0, costs: CostLedger | None = None
) -> Snapshot:
    grade = Grade("BA", "YELLOW", "prod_throttled")
    key = f"eip155:1/{agent_id}"
    made = Evaluation(new_id(), key, "c", agent_id, "0x", (), {}, score, grade, NOW)
    link = Snapshot(new_id(), made.id, key, agent_id, "0x" + new_id(), "0x0", None, 3, NOW)
    return await SqlEvaluationStore(database, WebhookOutbox(65.0, costs).put).add(made, link)


async def add(
    store: SqlWebhookStore, made: WebhookRegistration, *keys: str, limit: int = 9
) -> bool:
    return await store.add(made, keys or ("*",), limit, told(made.operator_id))


async def test_a_registration_is_read_back_and_only_its_operator_sees_or_ends_it(
    database: Database, owner: str
) -> None:
    store = SqlWebhookStore(database)
    made = registration(owner, 7, "0x" + "a" * 40)
    assert await add(store, made, "7", "0x" + "a" * 40)
    assert await store.list(owner) == [made]
    assert await store.find(owner, made.id) == made
    other = await account(database, "b@example.com")
    assert await store.list(other) == []
    assert await store.find(other, made.id) is None
    assert await store.remove(other, made.id, told()) is False
    assert await store.remove(owner, made.id, told()) is True
    assert await store.remove(owner, made.id, told()) is False
    assert await store.list(owner) == []
    trail = await SqlAuditStore(database).page_for_admin(None, None, 10)
    assert len(trail) == 2


async def test_of_many_at_once_no_more_than_the_limit_are_registered(
    database: Database, owner: str
) -> None:
    store = SqlWebhookStore(database)
    async with asyncio.TaskGroup() as group:
        tried = [group.create_task(add(store, registration(owner), limit=3)) for _ in range(9)]
    assert sum(task.result() for task in tried) == 3
    assert len(await store.list(owner)) == 3
    assert await add(store, registration(await account(database, "b@example.com")), limit=1)


async def test_an_evaluation_makes_a_delivery_for_everyone_who_wants_it_and_nobody_else(
    database: Database, owner: str
) -> None:
    store = SqlWebhookStore(database)
    everything, seven, eight = (registration(owner, *ids) for ids in ((), (7,), (8,)))
    await add(store, everything)
    await add(store, seven, "7")
    await add(store, eight, "8")
    first = await evaluated(database)
    second = await evaluated(database, score=64.99)
    found = await store.deliveries(owner, None, None, 10)
    assert {(d.webhook_id, d.agent_id) for d in found} == {(everything.id, "7"), (seven.id, "7")}
    assert len(found) == 4
    newest = json.loads(found[0].payload)
    assert newest == {
        "event": "evaluation_complete",
        "agentId": "7",
        "tier": "BA",
        "riskLevel": "YELLOW",
        "route": "prod_throttled",
        "meetsThreshold": False,
        "snapshotHash": second.snapshot_hash,
        "previousHash": first.snapshot_hash,
        "encryptedDataUri": None,
        "timestamp": "2026-03-01T12:00:00.000Z",
        "interactionCount": 3,
    }
    assert json.loads(found[-1].payload)["meetsThreshold"] is True


async def test_a_suspended_account_is_told_nothing(database: Database, owner: str) -> None:
    store, made = SqlWebhookStore(database), registration(owner)
    await add(store, made)
    change = AccountChange(suspended=True)
    await SqlOperatorStore(database).change_for_admin(owner, change, NOW, told(owner))
    await evaluated(database)
    assert await store.deliveries(owner, None, None, 10) == []
    assert await store.find(owner, made.id) is None


async def test_of_many_that_begin_at_once_each_delivery_is_one_ones(
    database: Database, owner: str
) -> None:
    store = SqlWebhookStore(database)
    await add(store, registration(owner))
    for _ in range(20):
        await evaluated(database)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(store.claim_due(NOW, 4, ())) for _ in range(12)]
    begun = [delivery.id for task in tasks for delivery in task.result()]
    while more := await store.claim_due(NOW, 4, ()):
        begun += [delivery.id for delivery in more]
    assert len(begun) == len(set(begun)) == 20


async def test_an_operator_that_is_busy_holds_up_nobody_else(
    database: Database, owner: str
) -> None:
    store, other = SqlWebhookStore(database), await account(database, "b@example.com")
    await add(store, registration(owner))
    await add(store, registration(other))
    await evaluated(database)
    [begun] = await store.claim_due(NOW, 8, {owner})
    assert begun.operator_id == other
    assert begun.state is DeliveryState.SENDING


async def test_operators_take_turns_whatever_each_of_them_has_waiting(database: Database) -> None:
    """Also over calls; none is passed over, and each has its oldest first."""
    store = SqlWebhookStore(database)
    names = [await account(database, f"{n}@example.com") for n in range(5)]
    for name in [names[0]] * 6 + names[1:]:
        await add(store, registration(name))
    await evaluated(database, score=70.0)
    await evaluated(database, score=71.0)
    begun = [await store.claim_due(NOW, 3) for _ in range(10)]
    owners = [delivery.operator_id for batch in begun for delivery in batch]
    assert len(owners) == 20
    assert set(owners[:5]) == set(owners[5:10]) == set(names)
    oldest = [d for batch in begun for d in batch if d.operator_id == names[1]]
    assert oldest == sorted(oldest, key=lambda delivery: delivery.created_at)


async def test_no_operator_gets_more_than_it_has_left(database: Database, owner: str) -> None:
    store, other = SqlWebhookStore(database), await account(database, "b@example.com")
    for name in [owner] * 4 + [other] * 4:
        await add(store, registration(name))
    await evaluated(database)
    begun = await store.claim_due(NOW, 8, (), lambda name: 1 if name == owner else 3)
    assert Counter(delivery.operator_id for delivery in begun) == {owner: 1, other: 3}


async def test_operators_beyond_a_page_have_their_turn(database: Database) -> None:
    """Though all of the first page wait for a budget."""
    store = SqlWebhookStore(database)
    names = sorted([await account(database, f"{n}@example.com") for n in range(PAGE + 3)])
    for name in names:
        await add(store, registration(name))
    await evaluated(database)
    last = names[-1]
    for _ in range(2):
        for one in await store.claim_due(NOW, PAGE + 3, {last}):
            await store.put_back(one, LATER)
    assert [delivery.operator_id for delivery in await store.claim_due(NOW, 9)] == [last]
    begun = [await store.claim_due(LATER, PAGE + 3) for _ in range(3)]
    assert sorted(delivery.operator_id for batch in begun for delivery in batch) == names[:-1]


async def test_an_attempt_that_began_is_never_begun_again(database: Database, owner: str) -> None:
    """The process dies between the attempt and its end: failed, and not repeated."""
    store = SqlWebhookStore(database)
    await add(store, registration(owner))
    await evaluated(database)
    [begun] = await store.claim_due(NOW, 8, ())
    assert await store.claim_due(LATER, 8, ()) == []
    assert await store.fail_abandoned(NOW, LATER) == 0
    assert await store.fail_abandoned(NOW + timedelta(seconds=1), LATER) == 1
    await store.complete(begun.id, DeliveryState.SENT, 200, None, LATER)  # too late
    [kept] = await store.deliveries(owner, None, None, 10)
    assert (kept.state, kept.reason) == (DeliveryState.FAILED, "the attempt was cut off")


async def test_how_it_ended_is_written_down_once(database: Database, owner: str) -> None:
    store = SqlWebhookStore(database)
    made = registration(owner)
    await add(store, made)
    await evaluated(database)
    [begun] = await store.claim_due(NOW, 8, ())
    await store.complete(begun.id, DeliveryState.SENT, 204, None, LATER)
    await store.complete(begun.id, DeliveryState.FAILED, 500, "again", LATER)
    [kept] = await store.deliveries(owner, made.id, None, 10)
    expected = replace(begun, state=DeliveryState.SENT, status=204, ended_at=LATER)
    assert kept == expected
    assert await store.deliveries_for_admin(DeliveryState.SENT, 5) == [expected]
    assert await store.deliveries_for_admin(DeliveryState.FAILED, 5) == []


async def test_removing_a_registration_ends_what_is_pending_for_it(
    database: Database, owner: str
) -> None:
    store, made = SqlWebhookStore(database), registration(owner)
    await add(store, made)
    await evaluated(database)
    await store.remove(owner, made.id, told())
    assert await store.claim_due(NOW, 8, ()) == []
    [kept] = await store.deliveries(owner, None, None, 10)
    assert (kept.state, kept.reason) == (DeliveryState.FAILED, "the registration is gone")


async def test_the_delivery_log_is_paged_and_forgets_what_is_old(
    database: Database, owner: str
) -> None:
    store = SqlWebhookStore(database)
    await add(store, registration(owner))
    for _ in range(5):
        await evaluated(database)
    whole = await store.deliveries(owner, None, None, 10)
    rest = await store.deliveries(owner, None, whole[1].id, 10)
    assert rest == whole[2:]
    for who, before in (("somebody", whole[1].id), (owner, new_id())):
        with pytest.raises(DeliveryNotFound):
            await store.deliveries(who, None, before, 10)
    begun = await store.claim_due(NOW, 3, ())
    for one in begun:
        await store.complete(one.id, DeliveryState.FAILED, None, "timeout", NOW)
    assert await store.purge(NOW) == 0
    assert await store.purge(LATER) == 3  # what is pending still is kept
    assert len(await store.deliveries(owner, None, None, 10)) == 2


@pytest.mark.parametrize(
    ("filter_by", "evaluated_as"),
    [
        (7, "7"),
        ("7", "7"),
        ("007", "7"),
        (2**255, str(2**255)),
        ("0x" + "Ab" * 20, "0x" + "ab" * 20),
        ("So11111111111111111111111111111111111111112",) * 2,
    ],
)
async def test_a_filter_matches_an_agent_however_its_id_is_written(
    database: Database, owner: str, filter_by: AgentRef, evaluated_as: str
) -> None:
    store, clock = SqlWebhookStore(database), FrozenClock(NOW)
    webhooks = Webhooks(store, SecretBox.from_secrets("s" * 32), EgressPolicy(), clock, proofs())
    asked = NewWebhook("evaluation_complete", "https://hooks.example.com/x", [filter_by])
    made = await webhooks.register(owner, asked, TERMINAL)
    assert made.agent_ids == (filter_by,)
    await evaluated(database, evaluated_as)
    await evaluated(database, "1234567")
    assert [d.agent_id for d in await store.deliveries(owner, None, None, 9)] == [evaluated_as]


async def test_secrets_are_sealed_anew_under_the_current_key(
    database: Database, owner: str
) -> None:
    store, clock = SqlWebhookStore(database), FrozenClock(NOW)
    old, new = SecretBox.from_secrets("o" * 32), SecretBox.from_secrets("n" * 32, "o" * 32)
    secret = "whsec_" + "a" * 32
    asked = NewWebhook("evaluation_complete", "https://hooks.example.com/x", None, secret)
    made = await Webhooks(store, old, EgressPolicy(), clock, proofs()).register(
        owner, asked, TERMINAL
    )
    ring = Webhooks(store, new, EgressPolicy(), clock, proofs())
    assert (await ring.reseal(owner), await ring.reseal(owner)) == (1, 0)
    kept = await store.find(owner, made.id)
    assert kept is not None
    assert kept.sealed_secret is not None
    told, *_ = await SqlAuditStore(database).page_for_admin(owner, None, 9)
    assert (told.action, told.target) == ("webhook.resealed", made.id)
    theirs = replace(made, operator_id="other", sealed_secret=b"stolen")
    await store.reseal(theirs, replace(told, id="n"))
    assert await store.find(owner, made.id) == kept
    only_new = SecretBox.from_secrets("n" * 32)
    assert only_new.open(kept.sealed_secret, place(made.id)) == secret_bytes(secret)


async def test_equal_addresses_of_one_account_are_told_once(database: Database, owner: str) -> None:
    store, other = SqlWebhookStore(database), await account(database, "b@example.com")
    spelled = ("https://Hooks.example.com/x", "https://hooks.example.com:443/x#part")
    made = [replace(registration(owner), url=url) for url in (*spelled, spelled[0])]
    for one in (*made, replace(registration(other), url=spelled[0])):
        await add(store, one)
    await evaluated(database)
    assert [d.webhook_id for d in await store.deliveries(owner, None, None, 10)] == [made[2].id]
    assert len(await store.deliveries(other, None, None, 10)) == 1


class TurnCosts(CostLedger):
    """Counts the deliveries of each turn of the loop."""

    def __init__(self) -> None:
        super().__init__(FrozenClock(NOW))
        self.turn, self.of_turns = 0, Counter[int]()

    @override
    def charge(self, cost: Cost, amount: int = 1, bearer: Bearer | None = None) -> None:
        super().charge(cost, amount, bearer)
        self.of_turns[self.turn] += cost is Cost.ROWS


async def many_registrations(database: Database, accounts: int, each: int) -> list[str]:
    """Of accounts that want to hear of every agent; the accounts, in the order they are told in."""
    whose = [await account(database, f"{number}@example.com") for number in range(accounts)]
    for who in whose:
        rows = [
            {"id": new_id(), "operator_id": who, "event": "evaluation_complete", "created_us": 1}
            for _ in range(each)
        ]
        async with database.write() as connection:
            places = [row | {"url": f"https://h.example.com/{n}"} for n, row in enumerate(rows)]
            await connection.execute(insert(webhooks), places)
            named = [{"webhook_id": row["id"], "agent_id": "*"} for row in rows]
            await connection.execute(insert(webhook_agents), named)
    return sorted(whose)


async def counts(database: Database, whose: list[str], agent_id: str = "7") -> list[int]:
    """How many deliveries about an agent each account has; no registration has two."""
    store, found = SqlWebhookStore(database), list[int]()
    for who in whose:
        all_of_them = await store.deliveries(who, None, None, 10_000)
        told_of = [one.webhook_id for one in all_of_them if one.agent_id == agent_id]
        assert len(set(told_of)) == len(told_of)
        found.append(len(told_of))
    return found


async def test_many_registrations_hold_up_nobody_while_they_are_told(database: Database) -> None:
    """Twenty accounts, a day's sign-ups of one address, have 20,000: those took a second."""
    costs, many = TurnCosts(), 3 * AT_ONCE
    await many_registrations(database, 3, many)

    async def turns() -> None:
        while True:
            costs.turn += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        others = group.create_task(turns())
        await evaluated(database, costs=costs)
        while await WebhookOutbox(65.0, costs).go_on(database):
            pass
        others.cancel()
    assert costs.of_turns.total() == 3 * many
    assert max(costs.of_turns.values()) <= AT_ONCE


async def test_an_evaluation_is_stored_with_one_batch_and_the_rest_follows(
    database: Database,
) -> None:
    """All 20,000 deliveries were written in the evaluation's transaction: two seconds."""
    whose = await many_registrations(database, 5, AT_ONCE // 2)
    await evaluated(database)
    each = AT_ONCE // 2
    assert await counts(database, whose) == [each, each, 0, 0, 0]
    assert await WebhookOutbox(65.0).go_on(database)
    assert await counts(database, whose) == [each, each, each, each, 0]
    while await WebhookOutbox(65.0).go_on(database):
        pass
    assert await counts(database, whose) == [each] * 5


@pytest.mark.slow
async def test_processes_that_tell_at_once_tell_each_registration_once(database: Database) -> None:
    whose = await many_registrations(database, 6, AT_ONCE)
    await evaluated(database)
    await evaluated(database, "8")

    async def tell() -> None:
        while await WebhookOutbox(65.0).go_on(database):
            pass

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(tell())
    for agent_id in "78":
        assert await counts(database, whose, agent_id) == [AT_ONCE] * 6


async def test_who_ends_or_begins_a_registration_meanwhile_is_not_told(database: Database) -> None:
    *_, early, ended = await many_registrations(database, 4, AT_ONCE)
    store = SqlWebhookStore(database)
    later = replace(registration(early), created_at=LATER)
    await evaluated(database)
    await add(store, later, limit=10_000)
    gone = (await store.list(ended))[0]
    await store.remove(ended, gone.id, told(ended))
    while await WebhookOutbox(65.0).go_on(database):
        pass
    assert await counts(database, [early, ended]) == [AT_ONCE, AT_ONCE - 1]


async def test_deliveries_are_bytes_of_the_registrations_owner(
    database: Database, owner: str
) -> None:
    other = await account(database, "b@example.com")
    store = SqlWebhookStore(database)
    for who in (owner, other):
        for _ in range(3):
            await add(store, registration(who))
    await evaluated(database)
    [size, *_] = [len(d.payload) for d in await store.deliveries(owner, None, None, 9)]
    costs = CostLedger(FrozenClock(NOW), {Cost.DISK_BYTES: 5 * size})
    for told_of, used in ((3, 3), (5, 5), (5, 5)):
        await evaluated(database, costs=costs)
        assert len(await store.deliveries(owner, None, None, 99)) == 3 + told_of
        spent = costs.used(Cost.DISK_BYTES, Bearer(f"operator {owner}"))
        assert abs(spent - used * size) < size


async def test_what_waits_for_a_budget_waits_together_and_is_given_up_after_its_time(
    database: Database, owner: str
) -> None:
    store, other = SqlWebhookStore(database), await account(database, "b@example.com")
    for who in (owner, owner, other):
        await add(store, registration(who))
    elsewhere = replace(registration(owner), url="https://other.test/x")
    await add(store, elsewhere)
    await evaluated(database)
    [begun] = await store.claim_due(NOW, 1, {other})
    until = NOW + timedelta(seconds=20)
    await store.put_back(begun, until)
    due = await store.claim_due(NOW, 9, ())
    assert {d.url for d in due} >= {elsewhere.url}
    assert {d.operator_id for d in due if d.url != elsewhere.url} == {other}
    assert await store.give_up(NOW, LATER) == 0
    again = await store.claim_due(until, 1, ())
    assert [d.has_waited for d in again] == [True]
    await store.put_back(again[0], until + timedelta(seconds=20))
    assert await store.give_up(NOW + timedelta(seconds=1), LATER) == 2
    failed = await store.deliveries_for_admin(DeliveryState.FAILED, 9)
    assert {(d.operator_id, d.reason) for d in failed} == {(owner, "budget")}
    assert await store.claim_due(LATER, 9, ()) == []
