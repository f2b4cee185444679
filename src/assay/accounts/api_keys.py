"""API keys: 32 random bytes, shown once, stored as SHA-256.

Source: interface.md#api-key-record, #api-keys; conventions.md#accounts.

The service recognises its own keys before it asks the store. A key ends with a tag that only
holders of the service's secrets can make, and keys that were valid before are remembered. Neither
grants access: the store decides, and it is asked at once about such keys. It is asked about all
others as often as the limit of guesses allows.
"""

import hashlib
import secrets
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
from assay.audit.service import TERMINAL, Actor, new_entry
from assay.common.cache import BoundedMap, Cache
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, Problem
from assay.common.ids import new_id
from assay.common.keyring import MacKeys, SecretRing

TAG_CHARS: Final = 16
"""Hexadecimal digits of a tag: one of 2^64, while guesses are limited."""

KNOWN_MAX: Final = 100_000
"""Valid keys that are remembered; the one that was unused for longest is forgotten first."""

REFUSED_MAX: Final = 10_000
"""Invalid keys that are remembered; the oldest is forgotten first."""


class KeyTags:
    """Tags keys, and recognises tagged keys and those that were valid before."""

    def __init__(self, secrets: SecretRing) -> None:
        self._keys = MacKeys(b"assay.api-key|", secrets)
        self._known: BoundedMap[bytes, bool] = BoundedMap(KNOWN_MAX)

    def tagged(self, key: str) -> str:
        """Return the key followed by its tag."""
        return key + self._keys.mac(key.encode()).hex()[:TAG_CHARS]

    def is_ours(self, key: str, digest: bytes) -> bool:
        """Return whether the key has our tag, or its digest is known. No I/O."""
        if digest in self._known:
            return True
        said, tag = key[:-TAG_CHARS], key[-TAG_CHARS:]
        try:
            return self._keys.is_mac(said.encode("utf-8", "replace"), bytes.fromhex(tag))
        except ValueError:
            return False

    def remember(self, digests: Iterable[bytes]) -> None:
        """Remember valid keys by their digests."""
        for digest in digests:
            self._known.put(digest, value=True)

    def forget(self, digest: bytes) -> None:
        """Forget a key that is no longer valid."""
        self._known.pop(digest)


class RefusedKeys:
    """Keys that were invalid a moment ago: the store is asked about one at most once a second."""

    def __init__(self, remembered_s: float) -> None:
        self._remembered_s = remembered_s
        self._refused: BoundedMap[bytes, tuple[Exception, float]] = BoundedMap(REFUSED_MAX)

    def find(self, digest: bytes, now_s: float) -> Exception | None:
        """Return why a key was refused, while that is remembered."""
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
"""Longest key: longer ones are not ours and are not hashed."""

KEYS_MAX = 1000
"""Most API keys of one account that are not revoked; as many revoked ones are kept."""

SHOWN_SECRET_CHARS = 6
"""Secret characters in `keyPrefix`: enough to distinguish keys, too few to help a guess."""

REMEMBERED_S = 5.0
"""Seconds for which a valid key is accepted without asking the store. For so long, a key that
another process revoked, or an old plan, stays in force here, if no change feed says so. What this
process changes counts at once."""

_REMEMBERED_MAX = 100_000
_NEEDED = "A valid operator API key is needed."
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_CHARS = 43
"""ceil(32 * 8 / log2(62))"""


@dataclass(frozen=True, slots=True)
class ValidKey:
    """A key that was accepted, as far as it is remembered."""

    key_id: str
    operator: Operator
    scopes: frozenset[Scope]
    expires_at: datetime | None
    gate_policies: str


class ApiKeys:
    """Issues, revokes and recognises API keys."""

    def __init__(
        self,
        store: SqlApiKeyStore,
        operators: SqlOperatorStore,
        clock: Clock,
        tags: KeyTags,
        grace_s: float = 0.0,
    ) -> None:
        """While the store does not answer, valid keys are accepted until they are `grace_s` old."""
        self._tags = tags
        self._refused = RefusedKeys(REMEMBERED_S)
        self._store = store
        self._operators = operators
        self._clock = clock
        self._memory: Cache[ValidKey] = Cache(
            *(clock, REMEMBERED_S, _REMEMBERED_MAX), grace_s=grace_s, shares_first=False
        )
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
        gate_policies_of: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key: return its record, and the full key, which is never shown again.

        Other keys stay as they are. It gets the gate's policies of the key `gate_policies_of`.
        Raises `InvalidRequest` for an invalid label, scopes or end, `ApiKeyNotFound` and
        `KeyLimitReached`.
        """
        label = None if label is None else short_text("label", label)
        now = self._clock.now()
        _check(scopes, expires_at, now)
        policies = await self._gate_policies(operator_id, gate_policies_of)
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
            gate_policies=policies,
        )
        entry = new_entry(
            *(self._clock, actor, "key.issued", operator_id, key.id),
            prefix=shown,
            label=label,
            scopes=" ".join(sorted(scopes)),
        )
        if not await self._store.add(key, _hash(full).hex(), entry, KEYS_MAX):
            raise KeyLimitReached(f"An account has at most {KEYS_MAX} API keys: revoke some first.")
        return key, full

    async def _gate_policies(self, operator_id: str, key_id: str | None) -> str:
        if key_id is None:
            return ""
        for key in await self._store.list(operator_id):
            if key.id == key_id:
                return key.gate_policies
        raise ApiKeyNotFound("You have no API key of the id in gatePoliciesOf.")

    async def list(self, operator_id: str) -> Sequence[ApiKey]:
        """Return the operator's keys, newest first."""
        await self.flush_last_used()
        return await self._store.list(operator_id)

    async def revoke(self, operator_id: str, key_id: str, actor: Actor = TERMINAL) -> None:
        """Revoke a key at once. Raises `ApiKeyNotFound`."""
        entry = new_entry(self._clock, actor, "key.revoked", operator_id, key_id)
        try:
            if not await self._store.revoke(operator_id, key_id, entry):
                raise ApiKeyNotFound("You have no API key of this id.")
        finally:  # it may be revoked even if the store's answer is lost
            self.forget(operator_id)

    async def set_gate_policies(
        self, operator_id: str, key_id: str, policies: str, actor: Actor
    ) -> None:
        """Replace the gate's policies of a key, at once here. Raises `ApiKeyNotFound`.

        Other processes go by the former ones for at most `REMEMBERED_S` seconds, or until the
        change feed says so.
        """
        entry = new_entry(
            self._clock, actor, "key.gate_policies_set", operator_id, key_id, policies=policies
        )
        if not await self._store.set_gate_policies(operator_id, key_id, policies, entry):
            raise ApiKeyNotFound("You have no API key of this id.")
        self.forget(operator_id)

    def authenticate_cached(self, digest: bytes) -> Operator | None:
        """Return the operator of a key's digest, if it is remembered. No I/O."""
        known = self._recall(digest)
        return known.operator if known is not None else None

    async def warm(self) -> None:
        """Remember the most recently used keys again after a restart (`is_ours`)."""
        hashes = await self._store.recent_hashes(KNOWN_MAX)
        self._tags.remember(bytes.fromhex(one) for one in reversed(hashes))

    def is_ours(self, key: str, digest: bytes) -> bool:
        """Return whether a key is no guess: it is tagged, or was valid before. No I/O."""
        return self._tags.is_ours(key, digest)

    async def authenticate(
        self, key: str, scope: Scope | None = None, digest: bytes | None = None
    ) -> Operator:
        """Return the operator of a key; see `find`."""
        return (await self.find(key, scope, digest)).operator

    async def find(
        self, key: str, scope: Scope | None = None, digest: bytes | None = None
    ) -> ValidKey:
        """Return a valid key, if it was issued for `scope`.

        `digest` is the key's digest, if the caller has computed it already.

        Raises `InvalidCredentials` without saying what was wrong, `AccountSuspended` for a valid
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
        return known

    def _recall(self, digest: bytes) -> ValidKey | None:
        """Return what is remembered of a key, if that is still in force."""
        known = self._memory.fresh(digest)
        if known is None:
            return None
        now = self._clock.now()
        if _is_over(known.expires_at, now):
            return None
        self._last_used[known.key_id] = now
        return known

    async def _look_up(self, key: str, digest: bytes) -> ValidKey:
        changes = self._changes
        refused = self._refused.find(digest, self._clock.monotonic_s())
        if refused is not None:
            raise type(refused)(str(refused))
        try:
            known = await self._memory.ask(digest, lambda: self._ask(key, digest))
            _require_unexpired(known.expires_at, self._clock.now())  # if the store was not asked
        except (InvalidCredentials, AccountSuspended) as error:
            self._tags.forget(digest)
            if changes == self._changes:
                self._refused.add(digest, error, self._clock.monotonic_s())
            raise
        self._tags.remember([digest])
        self._last_used[known.key_id] = self._clock.now()
        return known

    async def _ask(self, key: str, digest: bytes) -> ValidKey:
        """Return what the store knows of a valid key. Raises like `authenticate`."""
        found = await self._store.find_by_hash(digest.hex())
        owner = await self._operators.find(found.operator_id) if found else None
        now = self._clock.now()
        if not _shaped(key) or found is None or found.revoked or owner is None:
            raise InvalidCredentials(_NEEDED)
        _require_unexpired(found.expires_at, now)
        require_active(owner)
        return ValidKey(found.id, owner, found.scopes, found.expires_at, found.gate_policies)

    def forget(self, operator_id: str) -> None:
        """Ask the store again about this operator's keys, plan and role."""
        self._changes += 1
        self._refused.clear()
        self._memory.remove_where(lambda known: known.operator.id == operator_id)

    def doubt(self) -> None:
        """Ask the store before any key is accepted again, as far as the store answers."""
        self._changes += 1
        self._refused.clear()
        self._memory.doubt()

    def stale_s(self, digest: bytes) -> float | None:
        """Return the age of a key that is accepted because the store does not answer, or None."""
        return self._memory.stale_s(digest)

    async def flush_last_used(self) -> None:
        """Write when keys were last used. A failure loses nothing; the next call tries again."""
        batch, self._last_used = self._last_used, {}
        if not batch:
            return
        try:
            await self._store.touch(batch)
        except BaseException:
            self._last_used = batch | self._last_used
            raise


def base62(data: bytes) -> str:
    """Return 32 bytes as 43 characters of 0-9A-Za-z, big-endian, zero-padded."""
    number, digits = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(_SECRET_CHARS, "0")


def _check(scopes: frozenset[Scope], expires_at: datetime | None, now: datetime) -> None:
    """Raise `InvalidRequest` for a key that could never be used."""
    problems: list[Problem] = []
    if not scopes:
        problems.append(Problem(("body", "scopes"), "name at least one scope"))
    if _is_over(expires_at, now):
        problems.append(Problem(("body", "expiresAt"), "must be in the future"))
    if problems:
        raise InvalidRequest("The key cannot be issued like this.", details=problems)


def _require_unexpired(expires_at: datetime | None, now: datetime) -> None:
    if _is_over(expires_at, now):
        raise InvalidCredentials(_NEEDED)


def _is_over(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now


def key_digest(key: str) -> bytes | None:
    """Return the SHA-256 of a text with the form of an API key, else None."""
    return _hash(key) if _shaped(key) else None


def _shaped(key: str) -> bool:
    return key.startswith(API_KEY_PREFIX) and len(key) <= KEY_CHARS_MAX


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
