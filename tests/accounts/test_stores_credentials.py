"""Sessions, codes, second factors and the end of an account, against every database."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from assay.accounts.model import (
    ApiKey,
    DashboardSession,
    InviteInvalid,
    LastAdmin,
    Operator,
    OperatorNotFound,
    Plan,
    Role,
    Scope,
)
from assay.accounts.ports import AskedBy, Code, CodeBound, CodeKind, SignUp
from assay.accounts.store_credentials import SqlCredentialStore, SqlSessionStore
from assay.accounts.store_operators import SqlApiKeyStore, SqlOperatorStore
from assay.admin.store import SqlAccountEnd, pseudonym
from assay.audit.service import TERMINAL, AuditEntry, new_entry
from assay.common.errors import TooMany
from assay.common.ids import new_id
from assay.db.engine import Database
from tests.support.fakes.clock import FrozenClock

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
DAY = timedelta(days=1)


def operator(email: str = "a@example.com", role: Role = Role.OPERATOR) -> Operator:
    return Operator(new_id(), email, "Ann", role, Plan.FREE, Decimal("0.00"), NOW, NOW)


def told(operator_id: str = "o") -> AuditEntry:
    return new_entry(FrozenClock(NOW), TERMINAL, "account.changed", operator_id)


def session(operator_id: str, at: datetime = NOW) -> DashboardSession:
    return DashboardSession(new_id(), operator_id, at, at, at + DAY, "curl", "192.0.2.1")


def code(kind: CodeKind, operator_id: str | None, at: datetime = NOW) -> Code:
    return Code(new_id(), kind, operator_id, "A@example.com", at, at + DAY)


async def winners(tries: list[Callable[[], Awaitable[object]]]) -> int:
    """How many of those that come at once succeed."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for one in tries]  # type: ignore[arg-type]
    return sum(task.result() not in {None, False} for task in tasks)


@pytest.fixture
async def ann(database: Database) -> Operator:
    made = operator()
    await SqlOperatorStore(database).add(made, "hash")
    return made


async def test_a_session_is_found_listed_used_and_ended(database: Database, ann: Operator) -> None:
    store = SqlSessionStore(database)
    old, new = session(ann.id), session(ann.id, NOW + timedelta(seconds=1))
    for one in (old, new):
        assert await store.begin(one, "hash", ("home",), 5, told())
    assert await store.owner(ann.id, old.id, NOW) == ann
    assert await store.owner(ann.id, old.id, NOW + DAY) is None
    assert await store.owner(new_id(), old.id, NOW) is None
    used = NOW + timedelta(minutes=5)
    await store.touch({old.id: used, new_id(): used})
    await store.touch({old.id: NOW})
    assert await store.list(ann.id, NOW) == [new, replace(old, used_at=used)]
    assert await store.end(new_id(), old.id, told()) is False
    assert await store.end(ann.id, old.id, told()) is True
    assert await store.end(ann.id, old.id, told()) is False
    assert await store.end_all(ann.id, new.id, told()) == 0
    assert await store.end_all(ann.id, None, told()) == 1
    assert await store.owner(ann.id, new.id, NOW) is None


async def test_no_session_begins_with_a_password_that_is_not_the_accounts_any_more(
    database: Database, ann: Operator
) -> None:
    store = SqlSessionStore(database)
    assert await store.begin(session(ann.id), "other", ("home",), 5, told()) is False
    assert await store.list(ann.id, NOW) == []


async def test_the_oldest_sessions_end_and_the_expired_are_removed(
    database: Database, ann: Operator
) -> None:
    store = SqlSessionStore(database)
    made = [session(ann.id, NOW + timedelta(seconds=n)) for n in range(6)]
    for one in made:
        await store.begin(one, "hash", ("home",), 4, told())
    assert await store.list(ann.id, NOW) == made[:1:-1]
    await store.purge(NOW + timedelta(seconds=4) + DAY)
    assert await store.list(ann.id, NOW) == made[5:]


async def test_a_network_is_known_once_a_session_began_there(
    database: Database, ann: Operator
) -> None:
    store = SqlCredentialStore(database)
    sessions = SqlSessionStore(database)
    for number in range(25):
        at = NOW + timedelta(seconds=number)
        await sessions.begin(session(ann.id, at), "hash", (f"n{number}",), 5, told())
    known = [
        number
        for number in range(25)
        if (found := await store.find_login("A@EXAMPLE.com", (f"n{number}",)))
        and found.is_known_origin
    ]
    assert known == list(range(5, 25))
    assert await store.find_login("b@example.com", ("n24",)) is None


async def test_a_network_known_under_an_earlier_key_is_known_and_stored_under_the_first(
    database: Database, ann: Operator
) -> None:
    store = SqlCredentialStore(database)
    await store.know_origin(ann.id, ("earlier",), NOW)

    async def is_known(*origin: str) -> bool:
        found = await store.find_login(ann.email, origin)
        return found is not None and found.is_known_origin

    assert [await is_known("first", "earlier"), await is_known("first")] == [True, False]
    await store.know_origin(ann.id, ("first", "earlier"), NOW)
    assert [await is_known("first"), await is_known("earlier")] == [True, False]


async def test_a_reset_code_is_spent_by_one_of_many_and_ends_every_session(
    database: Database, ann: Operator
) -> None:
    store, sessions = SqlCredentialStore(database), SqlSessionStore(database)
    await sessions.begin(session(ann.id), "hash", ("home",), 5, told())
    await SqlApiKeyStore(database).add(
        ApiKey(new_id(), ann.id, "p", None, revoked=False, last_used=None, created_at=NOW), "a" * 64
    )
    reset = code(CodeKind.RESET, ann.id)
    assert await store.issue_code(reset, [], told())
    assert await store.find_code(reset.code_hash, CodeKind.VERIFY, NOW) is None
    assert await store.find_code(reset.code_hash, CodeKind.RESET, NOW + DAY) is None
    found = await store.find_code(reset.code_hash, CodeKind.RESET, NOW)
    assert found == replace(reset, email="a@example.com")

    def spend() -> Awaitable[object]:
        return store.reset_password(ann.id, reset.code_hash, "new", NOW, told(), revoke_keys=True)

    assert await winners([spend] * 5) == 1
    assert await sessions.list(ann.id, NOW) == []
    login = await store.login_of(ann.id)
    assert login is not None
    assert login.password_hash == "new"
    [key] = await SqlApiKeyStore(database).list(ann.id)
    assert key.revoked
    with pytest.raises(OperatorNotFound):
        await store.set_password(new_id(), "x", NOW, told())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(CodeKind.RESET, [True, True, True, False]), (CodeKind.VERIFY, [False, False, True, False])],
)
async def test_codes_of_an_account_are_bounded_and_of_verifications_the_newest_alone_is_good(
    database: Database, ann: Operator, kind: CodeKind, expected: list[bool]
) -> None:
    store = SqlCredentialStore(database)
    codes = [code(kind, ann.id) for _ in range(4)]
    bounds = [CodeBound(3, NOW - DAY, ("operator_id",))]
    issued = [await store.issue_code(one, bounds, None) for one in codes]
    assert issued == [True, True, True, False]
    good = [await store.find_code(c.code_hash, kind, NOW) is not None for c in codes]
    assert good == expected


async def test_codes_are_bounded_by_who_asked_and_what_they_have_in_common(
    database: Database, ann: Operator
) -> None:
    """Also those asked for at once, of several accounts."""
    store = SqlCredentialStore(database)
    bounds = [CodeBound(2, NOW - DAY, ("operator_id", "asked_by", "origin"))]
    bounds += [CodeBound(5, NOW - DAY, ("mailbox",))]

    def issue(asked_by: AskedBy, origin: str) -> Callable[[], Awaitable[bool]]:
        asked = code(CodeKind.RESET, ann.id)
        one = replace(asked, asked_by=asked_by, origin=(origin,), mailbox=("box",))
        return lambda: store.issue_code(one, bounds, None)

    assert await winners([issue(AskedBy.STRANGER, "one") for _ in range(6)]) == 2
    assert await winners([issue(AskedBy.OWNER, "one") for _ in range(6)]) == 2
    assert await winners([issue(AskedBy.STRANGER, "two") for _ in range(6)]) == 1


async def test_codes_are_kept_for_a_day_and_until_they_expire(
    database: Database, ann: Operator
) -> None:
    store, sessions = SqlCredentialStore(database), SqlSessionStore(database)
    bounds = [CodeBound(1, NOW - DAY, ("operator_id",))]
    short = replace(code(CodeKind.RESET, ann.id), expires_at=NOW + timedelta(minutes=30))
    long = replace(code(CodeKind.VERIFY, ann.id), expires_at=NOW + 2 * DAY)
    await store.issue_code(short, [], None)
    await store.issue_code(long, [], None)
    await sessions.purge(NOW + timedelta(hours=23))
    assert await store.issue_code(code(CodeKind.RESET, ann.id), bounds, None) is False
    await sessions.purge(NOW + DAY)
    assert await store.issue_code(code(CodeKind.RESET, ann.id), bounds, None) is True
    assert await store.find_code(long.code_hash, CodeKind.VERIFY, NOW) is not None


async def test_an_address_is_verified_by_its_own_code_once(
    database: Database, ann: Operator
) -> None:
    store = SqlCredentialStore(database)
    right, foreign = code(CodeKind.VERIFY, ann.id), code(CodeKind.VERIFY, ann.id)
    await store.issue_code(replace(foreign, email="b@example.com"), [], None)
    assert await store.verify_email(ann.id, foreign.code_hash, NOW, told()) is False
    await store.issue_code(right, [], None)
    assert await store.verify_email(new_id(), right.code_hash, NOW, told()) is False
    assert await store.verify_email(ann.id, right.code_hash, NOW, told()) is True
    assert await store.verify_email(ann.id, right.code_hash, NOW, told()) is False
    found = await SqlOperatorStore(database).find(ann.id)
    assert found is not None
    assert found.email_verified_at == NOW


async def test_each_step_and_each_recovery_code_is_taken_once(
    database: Database, ann: Operator
) -> None:
    store = SqlCredentialStore(database)
    assert await store.confirm_totp(ann.id, b"", 7, ["a"], NOW, told()) is False
    assert await store.begin_totp(ann.id, b"replaced") is True
    assert await store.begin_totp(ann.id, b"sealed") is True
    assert await store.confirm_totp(ann.id, b"replaced", 7, ["a"], NOW, told()) is False
    assert await store.confirm_totp(ann.id, b"sealed", 7, ["a", "b"], NOW, told()) is True
    assert await store.begin_totp(ann.id, b"other") is False
    assert await store.confirm_totp(ann.id, b"sealed", 8, ["c"], NOW, told()) is False
    assert await store.take_totp_step(ann.id, 7) is False
    assert await winners([lambda: store.take_totp_step(ann.id, 8)] * 5) == 1
    assert await winners([lambda: store.take_recovery_code(ann.id, "a", told())] * 5) == 1
    assert await store.take_recovery_code(new_id(), "b", told()) is False
    assert await store.recovery_codes_left(ann.id) == 1
    await store.reseal_totp(ann.id, b"other", b"lost", told())
    await store.reseal_totp(ann.id, b"sealed", b"anew", told())
    login = await store.login_of(ann.id)
    assert login is not None
    assert (login.sealed_totp, login.totp_step, login.operator.totp_enabled) == (b"anew", 8, True)
    await store.set_recovery_codes(ann.id, ["x", "y", "z"], told())
    assert await store.recovery_codes_left(ann.id) == 3
    assert await store.end_totp(ann.id, told()) is True
    assert await store.end_totp(ann.id, told()) is False
    assert await store.recovery_codes_left(ann.id) == 0


async def test_sign_ups_at_once_pass_neither_quota_nor_invitation(database: Database) -> None:
    store, codes = SqlOperatorStore(database), SqlCredentialStore(database)
    invite = replace(code(CodeKind.INVITE, None), email=None)
    await codes.issue_code(invite, [], told(""))

    async def sign_up(number: int, invite_hash: str | None, origin: str) -> bool:
        asked = SignUp((origin,), ("0" * 32,), NOW - DAY, 2, 9, invite_hash)
        try:
            await store.add(operator(f"{number}@{origin}.cc"), "hash", None, asked)
        except (TooMany, InviteInvalid):
            return False
        return True

    by_quota = [lambda n=n: sign_up(n, None, "one") for n in range(6)]  # type: ignore[misc]
    assert await winners(by_quota) == 2
    by_invite = [lambda n=n: sign_up(n, invite.code_hash, f"o{n}") for n in range(6)]  # type: ignore[misc]
    assert await winners(by_invite) == 1


async def test_sign_ups_of_one_larger_network_share_a_quota(database: Database) -> None:
    store = SqlOperatorStore(database)

    async def sign_up(number: int, around: str) -> bool:
        asked = SignUp((f"{number:032x}",), (around * 32,), NOW - DAY, 2, 3)
        try:
            await store.add(operator(f"{number}@{around}.cc"), "hash", None, asked)
        except TooMany:
            return False
        return True

    for around in "0f":
        at_once = [lambda n=n, a=around: sign_up(n, a) for n in range(6)]  # type: ignore[misc]
        assert await winners(at_once) == 3
    assert await sign_up(9, "e")


async def test_keys_keep_scopes_and_end_and_are_bounded(database: Database, ann: Operator) -> None:
    store = SqlApiKeyStore(database)
    scoped = ApiKey(
        new_id(), ann.id, "p", None, revoked=False, last_used=None, created_at=NOW,
        scopes=frozenset({Scope.WRAPPERS, Scope.GATE}), expires_at=NOW + DAY,
    )  # fmt: skip
    assert await store.add(scoped, "a" * 64, None, 1) is True
    assert await store.find_by_hash("a" * 64) == scoped
    assert await store.add(replace(scoped, id=new_id()), "b" * 64, None, 1) is False
    for number in range(4):
        [*_] = [await store.revoke(ann.id, key.id) for key in await store.list(ann.id)]
        later = NOW + timedelta(seconds=number + 1)
        made = replace(scoped, id=new_id(), created_at=later)
        assert await store.add(made, f"{number}" * 64, None, 1) is True
    assert len(await store.list(ann.id)) == 2


async def test_a_deleted_account_is_found_nowhere_and_its_address_is_free(
    database: Database, ann: Operator
) -> None:
    operators, end = SqlOperatorStore(database), SqlAccountEnd(database)
    store, sessions = SqlCredentialStore(database), SqlSessionStore(database)
    one = session(ann.id)
    await sessions.begin(one, "hash", ("home",), 5, told())
    await store.issue_code(code(CodeKind.RESET, ann.id), [], None)
    await end.erase(ann.id, NOW + DAY, NOW, told())
    assert await sessions.owner(ann.id, one.id, NOW) is None
    assert await store.find_login(ann.email, ("home",)) is None
    assert await store.find_login(pseudonym(ann.id), ("home",)) is None
    assert await store.login_of(ann.id) is None
    found = await operators.find(ann.id)
    assert found is not None
    assert (found.email, found.is_suspended) == (pseudonym(ann.id), True)
    await operators.add(operator(), "hash")
    with pytest.raises(OperatorNotFound):
        await end.erase(ann.id, NOW, NOW, told())


async def test_of_two_admins_that_leave_at_once_one_stays(database: Database) -> None:
    operators, end = SqlOperatorStore(database), SqlAccountEnd(database)
    admins = [operator(f"{n}@b.cc", Role.ADMIN) for n in range(2)]
    for admin in admins:
        await operators.add(admin, "hash")

    async def leave(operator_id: str) -> bool:
        try:
            await end.erase(operator_id, NOW, NOW, told())
        except LastAdmin:
            return False
        return True

    assert await winners([lambda a=a: leave(a.id) for a in admins]) == 1  # type: ignore[misc]
