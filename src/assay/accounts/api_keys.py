"""API keys: 32 random bytes, shown once, kept as SHA-256.

Source: interface.md#api-key-record, #api-keys; conventions.md#accounts.

An API key of ours is told from a guess before the store is asked: a key ends with a tag that only
holders of the service's secrets can make, and keys that have held before are remembered. Neither
grants anything: the store decides, and it is asked for those at once. For everything else it is
asked as often as the limit of guesses allows.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from assay.accounts.model import (
    API_KEY_PREFIX,
    DEFAULT_SCOPES,
    AccountSuspended,
    ApiKey,
    ApiKeyNotFound,
    InsufficientScope,
    InvalidCredentials,
    KeyLimitReached,
    Operator,
    Scope,
    require_active,
    short_text,
)
from assay.accounts.store_operators import SqlApiKeyStore, SqlOperatorStore
from assay.audit.service import TERMINAL, Actor, note
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, Problem
from assay.common.ids import new_id
from assay.common.keyring import MacKeys, SecretRing

TAG_CHARS: Final = 16
"""Hexadecimal digits of a tag: one of 2^64, while guesses are limited."""

KNOWN_MAX: Final = 100_000
"""Keys remembered as having held; the one unused for longest is forgotten first."""

REFUSED_MAX: Final = 10_000
"""Keys remembered as not holding; the oldest is forgotten first."""


class KeyTags:
    """Tags keys, and recognises tagged ones and those that have held before."""

    def __init__(self, secrets: SecretRing) -> None:
        self._keys = MacKeys(b"assay.api-key|", secrets)
        self._known: BoundedMap[bytes, bool] = BoundedMap(KNOWN_MAX)

    def tagged(self, key: str) -> str:
        """The key with its tag behind it."""
        return key + self._keys.mac(key.encode()).hex()[:TAG_CHARS]

    def is_ours(self, key: str, digest: bytes) -> bool:
        """Whether the key has a tag of ours, or its digest is known. No I/O."""
        if digest in self._known:
            return True
        said, tag = key[:-TAG_CHARS], key[-TAG_CHARS:]
        try:
            return self._keys.is_mac(said.encode("utf-8", "replace"), bytes.fromhex(tag))
        except ValueError:
            return False

    def remember(self, digests: Iterable[bytes]) -> None:
        """These keys hold."""
        for digest in digests:
            self._known.put(digest, value=True)

    def forget(self, digest: bytes) -> None:
        """This key does not hold any more."""
        self._known.pop(digest)


class RefusedKeys:
    """Keys that did not hold a moment ago: nobody asks the store twice a second about one."""

    def __init__(self, remembered_s: float) -> None:
        self._remembered_s = remembered_s
        self._refused: BoundedMap[bytes, tuple[Exception, float]] = BoundedMap(REFUSED_MAX)

    def find(self, digest: bytes, now_s: float) -> Exception | None:
        """Why it was refused, while that is remembered."""
        found = self._refused.get(digest)
        return found[0] if found is not None and now_s < found[1] else None

    def add(self, digest: bytes, why: Exception, now_s: float) -> None:
        """Remember a refusal."""
        self._refused.put(digest, (why, now_s + self._remembered_s))

    def clear(self) -> None:
        """Ask the store again about all of them."""
        self._refused.clear()


KEY_BYTES = 32
KEY_CHARS_MAX = 100
"""Longer ones are not ours; nothing is hashed for them."""

KEYS_MAX = 1000
"""API keys of one account that are not revoked; of revoked ones as many are kept."""

SHOWN_SECRET_CHARS = 6
"""Secret characters in `keyPrefix`: enough to tell keys apart, too few to matter."""

REMEMBERED_S = 5.0
"""How long a key that held is believed without asking the store: the longest a key revoked, or a
plan changed, by another process stays in force here. What this process changes counts at once."""

_REMEMBERED_MAX = 100_000
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_CHARS = 43
"""ceil(32 * 8 / log2(62))"""


@dataclass(frozen=True, slots=True)
class _Remembered:
    key_id: str
    operator: Operator
    until_s: float
    scopes: frozenset[Scope]
    expires_at: datetime | None


class ApiKeys:
    """Issues, revokes and recognises API keys."""

    def __init__(
        self, store: SqlApiKeyStore, operators: SqlOperatorStore, clock: Clock, tags: KeyTags
    ) -> None:
        self._tags = tags
        self._refused = RefusedKeys(REMEMBERED_S)
        self._store = store
        self._operators = operators
        self._clock = clock
        self._memory: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._last_used: dict[str, datetime] = {}
        self._changes = 0

    async def issue(
        self,
        operator_id: str,
        label: str | None,
        actor: Actor = TERMINAL,
        *,
        scopes: frozenset[Scope] = DEFAULT_SCOPES,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key: its record, and the full key that is never seen again.

        Other keys stay as they are. Raises `InvalidRequest` for a label, scopes or an end that do
        not hold, and `KeyLimitReached`.
        """
        label = None if label is None else short_text("label", label)
        now = self._clock.now()
        _check(scopes, expires_at, now)
        full = self._tags.tagged(API_KEY_PREFIX + base62(secrets.token_bytes(KEY_BYTES)))
        shown = full[: len(API_KEY_PREFIX) + SHOWN_SECRET_CHARS]
        key = ApiKey(
            id=new_id(),
            operator_id=operator_id,
            prefix=shown,
            label=label,
            revoked=False,
            last_used=None,
            created_at=now,
            scopes=scopes,
            expires_at=expires_at,
        )
        entry = note(
            *(self._clock, actor, "key.issued", operator_id, key.id),
            prefix=shown,
            label=label,
            scopes=" ".join(sorted(scopes)),
        )
        if not await self._store.add(key, _hash(full).hex(), entry, KEYS_MAX):
            raise KeyLimitReached(f"An account has at most {KEYS_MAX} API keys: revoke some first.")
        return key, full

    async def list(self, operator_id: str) -> Sequence[ApiKey]:
        """The operator's keys, newest first."""
        await self.flush_last_used()
        return await self._store.list(operator_id)

    async def revoke(self, operator_id: str, key_id: str, actor: Actor = TERMINAL) -> None:
        """Revoke a key, at once. Raises `ApiKeyNotFound`."""
        entry = note(self._clock, actor, "key.revoked", operator_id, key_id)
        if not await self._store.revoke(operator_id, key_id, entry):
            raise ApiKeyNotFound("You have no API key of this id.")
        self.forget(operator_id)

    def authenticate_cached(self, digest: bytes) -> Operator | None:
        """Whose key this is by its digest, where that is remembered. No I/O."""
        known = self._recall(digest)
        return known.operator if known is not None else None

    async def warm(self) -> None:
        """Know the keys that were used last again after a restart (`is_ours`)."""
        hashes = await self._store.recent_hashes(KNOWN_MAX)
        self._tags.remember(bytes.fromhex(one) for one in reversed(hashes))

    def is_ours(self, key: str, digest: bytes) -> bool:
        """Whether the key can be told from a guess: it is tagged, or has held before. No I/O."""
        return self._tags.is_ours(key, digest)

    async def authenticate(
        self, key: str, scope: Scope | None = None, digest: bytes | None = None
    ) -> Operator:
        """Whose key this is, if it was issued for `scope`.

        `digest` is the key's, where somebody has computed it already.

        Raises `InvalidCredentials`, without saying what was wrong, `AccountSuspended` for a good
        key of a suspended account, and `InsufficientScope`.

        An unknown key costs the same hash and look-up as a known one.
        """
        if digest is None:
            digest = key_digest(key) or _hash(key[:KEY_CHARS_MAX])
        known = self._recall(digest) or await self._look_up(key, digest)
        if scope is not None and scope not in known.scopes:
            raise InsufficientScope(
                f"This API key was not issued for {scope}: issue one with that scope.",
                scope=scope.value,
            )
        return known.operator

    def _recall(self, digest: bytes) -> _Remembered | None:
        """What is remembered of a key, if it is still in force."""
        known = self._memory.get(digest)
        if known is None or known.until_s <= self._clock.monotonic_s():
            return None
        now = self._clock.now()
        if _is_over(known.expires_at, now):
            return None
        self._last_used[known.key_id] = now
        return known

    async def _look_up(self, key: str, digest: bytes) -> _Remembered:
        changes = self._changes
        refused = self._refused.find(digest, self._clock.monotonic_s())
        if refused is not None:
            raise type(refused)(str(refused))
        try:
            known = await self._ask(key, digest)
        except (InvalidCredentials, AccountSuspended) as error:
            self._tags.forget(digest)
            if changes == self._changes:
                self._refused.add(digest, error, self._clock.monotonic_s())
            raise
        self._tags.remember([digest])
        self._last_used[known.key_id] = self._clock.now()
        if changes == self._changes:  # what was read may be what just changed
            self._remember(digest, known)
        return known

    async def _ask(self, key: str, digest: bytes) -> _Remembered:
        """What is known of a key that holds. Raises as `authenticate`."""
        found = await self._store.find_by_hash(digest.hex())
        owner = await self._operators.find(found.operator_id) if found else None
        now = self._clock.now()
        if not _shaped(key) or found is None or found.revoked or owner is None:
            raise InvalidCredentials("A valid operator API key is needed.")
        if _is_over(found.expires_at, now):
            raise InvalidCredentials("A valid operator API key is needed.")
        require_active(owner)
        until = self._clock.monotonic_s() + REMEMBERED_S
        return _Remembered(found.id, owner, until, found.scopes, found.expires_at)

    def forget(self, operator_id: str) -> None:
        """Ask the store again about this operator's keys, plan and role."""
        self._changes += 1
        self._refused.clear()
        known = [d for d, k in self._memory.items() if k.operator.id == operator_id]
        for digest in known:
            del self._memory[digest]

    async def flush_last_used(self) -> None:
        """Write down when keys were used. On failure nothing is lost; the next call tries again."""
        batch, self._last_used = self._last_used, {}
        if not batch:
            return
        try:
            await self._store.touch(batch)
        except BaseException:
            self._last_used = batch | self._last_used
            raise

    def _remember(self, digest: bytes, known: _Remembered) -> None:
        self._memory[digest] = known
        self._memory.move_to_end(digest)
        while len(self._memory) > _REMEMBERED_MAX:
            self._memory.popitem(last=False)


def base62(data: bytes) -> str:
    """32 bytes as 43 characters of 0-9A-Za-z, big-endian, zero-padded."""
    number, digits = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(_SECRET_CHARS, "0")


def _check(scopes: frozenset[Scope], expires_at: datetime | None, now: datetime) -> None:
    """Raises `InvalidRequest` for a key that could never be used."""
    problems: list[Problem] = []
    if not scopes:
        problems.append(Problem(("body", "scopes"), "name at least one scope"))
    if _is_over(expires_at, now):
        problems.append(Problem(("body", "expiresAt"), "must be in the future"))
    if problems:
        raise InvalidRequest("The key cannot be issued like this.", details=problems)


def _is_over(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now


def key_digest(key: str) -> bytes | None:
    """The SHA-256 of what has the form of an API key; None for anything else."""
    return _hash(key) if _shaped(key) else None


def _shaped(key: str) -> bool:
    return key.startswith(API_KEY_PREFIX) and len(key) <= KEY_CHARS_MAX


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
