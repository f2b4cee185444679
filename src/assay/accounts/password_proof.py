"""Checks passwords, and bounds how often strangers may try (ADR 0013).

argon2id runs in worker threads, few at a time, and callers take turns (conventions.md#accounts).

Log-in attempts are slowed down per account, per network and per pair of both. An attempt is counted
before it waits for anything, and given back if the password is right, so concurrent attempts cannot
exceed a bound together.

`RequestQuota` counts what else somebody may ask for within an hour, in bounded memory.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final, ParamSpec, TypeVar

from argon2 import PasswordHasher as Argon2
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from assay.accounts.model import (
    EMAIL_CHARS_MAX,
    PASSWORD_CHARS,
    Operator,
    OperatorNotFound,
    PasswordWrong,
)
from assay.accounts.ports import (
    TERMINAL_CLIENT,
    Client,
    CredentialStore,
    HashClient,
    LoginRecord,
    Origins,
)
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import TooMany, Unavailable
from assay.common.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 2
WAITING_MAX = 512
"""Known callers that wait, and strangers that wait. Beyond that, the network with most waiting
gives up a place."""

WAITING_PER_CALLER = 16
"""Waiting checks of one network, or of one known account."""


class Argon2PasswordHasher:
    """Hashes slowly and with salt, in threads, few at a time; callers take turns.

    Raises `TooMany` for a caller with too many waiting, and `Unavailable` if too many wait.
    """

    def __init__(self) -> None:
        self._argon2 = Argon2(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="argon2")
        self._queue = FairQueue(AT_ONCE, WAITING_MAX, WAITING_PER_CALLER)
        self._nobody: str | None = None

    async def hash(self, password: str, client: HashClient = TERMINAL_CLIENT) -> str:
        """Return a self-describing hash."""
        return await self._run(client, self._argon2.hash, password)

    async def verify(
        self, password_hash: str | None, password: str, client: HashClient = TERMINAL_CLIENT
    ) -> bool:
        """Return whether password and hash match. Without a hash it takes as long, and is False."""
        if password_hash is None:
            await self._run(client, self._check, await self._hash_of_nobody(client), password)
            return False
        return await self._run(client, self._check, password_hash, password)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _hash_of_nobody(self, client: HashClient) -> str:
        """Return a hash of no account: an unknown e-mail costs what a wrong password does."""
        if self._nobody is None:
            self._nobody = await self._run(client, self._argon2.hash, "nobody has this password")
        return self._nobody

    def _check(self, password_hash: str, password: str) -> bool:
        try:
            return self._argon2.verify(password_hash, password)
        except VerifyMismatchError:
            return False
        except (VerificationError, InvalidHashError) as error:
            raise Unavailable(
                "Passwords cannot be checked now.", detail=repr(error), retry_after_s=30
            ) from error

    async def _run(
        self, client: HashClient, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        turn = self._queue.slot(client.caller, is_known=client.is_known, network=client.network)
        async with turn:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(work, *args, **kwargs))


PER_WINDOW: Final = 20
WINDOW_S: Final = 3600.0
NETWORKS_MAX: Final = 50_000
"""Networks that are remembered. The one unseen for longest is forgotten first, which never adds a
refusal."""


class RequestQuota:
    """Allows at most `per_window` requests of a network or an account in any `WINDOW_S`."""

    def __init__(self, clock: Clock, per_window: int = PER_WINDOW) -> None:
        self._clock = clock
        self._per_window = per_window
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    def require(self, network: str) -> None:
        """Count one request. Raises `TooMany` beyond the quota, and then counts nothing."""
        now = self._clock.monotonic_s()
        recent = self._asked.pop(network, None) or deque[float]()
        while recent and now - recent[0] >= WINDOW_S:
            recent.popleft()
        self._asked[network] = recent
        if len(recent) >= self._per_window:
            wait = recent[0] + WINDOW_S - now
            raise TooMany("Too many requests of this kind: wait.", retry_after_s=ceil(wait))
        recent.append(now)
        while len(self._asked) > NETWORKS_MAX:
            self._asked.popitem(last=False)


FREE_FAILURES: Final = 5
"""Failures of one account from one network without a delay: people mistype."""

FREE_WIDELY: Final = 50
"""Failures without a delay of one network over all accounts, and of one account over all
networks."""

DELAY_MAX_S: Final = 900.0
WIDE_DELAY_MAX_S: Final = 60.0
"""Longest delay that strangers can cause for somebody else."""

FORGET_S: Final = 3600.0
REMEMBERED_MAX: Final = 50_000
"""Counts of each kind. The one unseen for longest is forgotten first, which never adds a delay."""


@dataclass(slots=True)
class _Count:
    failures: int
    last_s: float


@dataclass(frozen=True, slots=True)
class _Place:
    """One count of an attempt, and its value before."""

    kind: "_Counts"
    key: str
    before: _Count | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that counts as a failure until it is given back."""

    places: tuple[_Place, ...]
    at_s: float


class _Counts:
    """Failures by a key that strangers choose; delays grow after the free ones."""

    def __init__(self, free: int, delay_max_s: float) -> None:
        self._free = free
        self._delay_max_s = delay_max_s
        self._known: BoundedMap[str, _Count] = BoundedMap(REMEMBERED_MAX)

    def wait_s(self, key: str, now: float) -> float:
        """Return the seconds until the next attempt may be made; 0 or less means now."""
        known = self._known.get(key)
        if known is None or known.failures < self._free or now - known.last_s >= FORGET_S:
            return 0
        delay = min(self._delay_max_s, 2.0 ** min(known.failures - self._free + 1, 12))
        return known.last_s + delay - now

    def count(self, key: str, now: float) -> _Place:
        before = self._known.get(key)
        fresh = before is not None and now - before.last_s < FORGET_S
        self._known.put(key, _Count(before.failures + 1 if before and fresh else 1, now))
        return _Place(self, key, before)

    def give_back(self, place: _Place, at_s: float) -> None:
        """Undo one count; keep what others have counted since."""
        known = self._known.get(place.key)
        if known is None:
            return
        known.failures -= 1
        if not known.failures:
            self._known.pop(place.key)
        elif known.last_s == at_s and place.before is not None:
            known.last_s = place.before.last_s

    def forget(self, key: str) -> None:
        self._known.pop(key)

    def __len__(self) -> int:
        return len(self._known)


class LoginThrottle:
    """Delays attempts after failures: 2 s, 4 s, 8 s, ..., until an hour passes without one.

    It has three counts: of the account from this network (delays up to 15 minutes), of the network
    over all accounts, and of the account over all networks (up to a minute). The last two do not
    apply to a network from which this account's owner has logged in before. Whatever strangers do,
    the owner can log in from there. Wrong one-time codes have a count of their own that applies to
    everybody, because only somebody who knows the password gets that far.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pairs = _Counts(FREE_FAILURES, DELAY_MAX_S)
        self._networks = _Counts(FREE_WIDELY, WIDE_DELAY_MAX_S)
        self._accounts = _Counts(FREE_WIDELY, WIDE_DELAY_MAX_S)
        self._codes = _Counts(FREE_FAILURES, DELAY_MAX_S)

    def begin(self, email: str, network: str, *, is_known: bool = False) -> Attempt:
        """Count an attempt with a password. Raises `TooMany` during a delay, uncounted.

        `is_known`: the account's owner has logged in from this network before.
        """
        account = email.lower()
        pair = (self._pairs, f"{account}|{network}")
        wide = ((self._networks, network), (self._accounts, account))
        self._require((pair,) if is_known else (pair, *wide))
        return self._counted(pair, *wide)

    def begin_code(self, email: str) -> Attempt:
        """Count an attempt with a one-time code. Raises like `begin`."""
        place = (self._codes, email.lower())
        self._require((place,))
        return self._counted(place)

    def give_back(self, attempt: Attempt) -> None:
        """Undo an attempt that was no failure; failures of others stay counted."""
        for place in attempt.places:
            place.kind.give_back(place, attempt.at_s)

    def succeeded(self, attempt: Attempt) -> None:
        """Undo the attempt, and forget the failures of the account from this network."""
        self.give_back(attempt)
        first = attempt.places[0]
        first.kind.forget(first.key)

    def forgive(self, email: str) -> None:
        """Forget the wrong passwords of an account over all networks.

        Use it for somebody who has proven to be the owner in another way. Wrong codes stay counted,
        because a reader of the owner's mail may not hold the second factor.
        """
        self._accounts.forget(email.lower())

    def sizes(self) -> tuple[int, ...]:
        """Return how many keys each count remembers: pairs, networks, accounts, codes."""
        return len(self._pairs), len(self._networks), len(self._accounts), len(self._codes)

    def _require(self, places: tuple[tuple[_Counts, str], ...]) -> None:
        now = self._clock.monotonic_s()
        wait = max(kind.wait_s(key, now) for kind, key in places)
        if wait > 0:
            raise TooMany(
                "Too many failed log-ins: wait before trying again.", retry_after_s=ceil(wait)
            )

    def _counted(self, *places: tuple[_Counts, str]) -> Attempt:
        now = self._clock.monotonic_s()
        return Attempt(tuple(kind.count(key, now) for kind, key in places), now)


@dataclass(frozen=True, slots=True)
class PasswordAttempt:
    """An attempt with a password, and its result."""

    attempt: Attempt
    """Counts as a failure until it is given back."""
    record: LoginRecord | None
    """The account of the e-mail address."""
    holds: bool
    """Whether the password is the account's."""


class PasswordProof:
    """Checks passwords a bounded number of times."""

    def __init__(
        self,
        store: CredentialStore,
        hasher: Argon2PasswordHasher,
        throttle: LoginThrottle,
        origins: Origins,
    ) -> None:
        self._store = store
        self._hasher = hasher
        self.throttle = throttle
        self.origins = origins

    async def check(self, email: str, password: str, client: Client) -> PasswordAttempt:
        """Try a password; an unknown e-mail address takes as long as a wrong password.

        Raises `TooMany` during a delay. A check that could not be made counts for nothing.
        """
        email = email.strip()[:EMAIL_CHARS_MAX]
        record = await self._store.find_login(email, self.origins.of(client))
        is_known = record is not None and record.is_known_origin
        attempt = self.throttle.begin(email, client.network, is_known=is_known)
        caller = HashClient(client.network, network=client.around)
        if record is not None and is_known:
            caller = HashClient(record.operator.id, is_known=True, network=client.around)
        stored = record.password_hash if record else None
        try:
            holds = await self._hasher.verify(stored, password[: PASSWORD_CHARS.stop], caller)
        except BaseException:
            self.throttle.give_back(attempt)
            raise
        return PasswordAttempt(attempt, record, holds)

    async def confirm(self, operator: Operator, password: str, client: Client) -> LoginRecord:
        """Return the account of a logged-in caller who has given the password again.

        Raises `PasswordWrong`, and `TooMany` during a delay.
        """
        proof = await self.check(operator.email, password, client)
        if not proof.holds:
            raise PasswordWrong("The present password is wrong.")
        if proof.record is None or proof.record.operator.id != operator.id:
            raise OperatorNotFound("There is no account of this id.")
        self.throttle.succeeded(proof.attempt)
        return proof.record
