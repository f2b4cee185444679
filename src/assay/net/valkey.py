"""Counts that several processes share, in Valkey: one script, on the server's clock.

Parses the URL of the shared state, and never shows it.

Counts grant no access, and a flush of the server loses nothing that anybody relies on (ADR 0012).
Names chosen by callers are never sent as text: keys are hashes.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from assay.common.errors import Unavailable
from assay.common.quota_lease import COUNTED_S, Grant, WindowRequest

PORT = 6379
DATABASE_DIGITS_MAX = 4
_SCHEMES = {"valkey": False, "valkeys": True}
_FORM = "ASSAY_STATE_URL must be valkey://host:6379/0, or valkeys:// over TLS"


class StateUrlError(ValueError):
    """The URL of the shared state is unusable; the message says why but omits the URL."""


@dataclass(frozen=True, slots=True)
class StateAddress:
    """A Valkey server and its login."""

    host: str
    port: int
    db: int
    tls: bool
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Return host and port, which may be shown."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def state_address(url: str) -> StateAddress:
    """Parse `valkey://[[user]:password@]host[:port][/database]`, or `valkeys://` with TLS.

    Raises `StateUrlError` for anything else.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # Its text quotes the URL.
        raise StateUrlError(_FORM) from None
    database = parts.path.removeprefix("/") or "0"
    if parts.scheme not in _SCHEMES:
        raise StateUrlError(f"{_FORM}: no other scheme is known")
    is_plain = database.isascii() and database.isdecimal() and len(database) <= DATABASE_DIGITS_MAX
    if not parts.hostname or port == 0 or parts.query or parts.fragment or not is_plain:
        raise StateUrlError(f"{_FORM}: host, port and a database's number, and nothing else")
    return StateAddress(
        host=parts.hostname,
        port=port or PORT,
        db=int(database),
        tls=_SCHEMES[parts.scheme],
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


if TYPE_CHECKING:
    from valkey.asyncio import Valkey

COMMAND_S = 0.75
"""Time limit of one exchange, connecting included: a slice is useless after a second."""

CONNECTIONS_MAX = 4

_CHECK = WindowRequest("check", limit=1_000_000_000, need=1, want=1)
"""A request that writes like every grant, so that it detects replicas and a server out of
memory."""

# A key is a hash: second -> units lent in it. The server's clock may be put back: what is counted
# under seconds to come counts from now on, so that nobody is kept out for longer than a window.
# Forward, a step of the clock forgives what it skips. What no grant of ours wrote is removed.
_SCRIPT = """
local limit, need, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local back_second, back = ARGV[4], tonumber(ARGV[5])
local counted = tonumber(ARGV[6])
local time = redis.call('TIME')
local now, us = tonumber(time[1]), tonumber(time[2])
local kind = redis.call('TYPE', KEYS[1])
if (kind.ok or kind) ~= 'hash' then redis.call('DEL', KEYS[1]) end
if back > 0 then
  local lent = tonumber(redis.call('HGET', KEYS[1], back_second) or 0) or 0
  if lent > back then redis.call('HINCRBY', KEYS[1], back_second, -back)
  else redis.call('HDEL', KEYS[1], back_second) end
end
local total, oldest, ahead = 0, now, 0
local found = redis.call('HGETALL', KEYS[1])
for i = 1, #found, 2 do
  local second, units = tonumber(found[i]), tonumber(found[i + 1])
  local ours = second and second % 1 == 0 and units and units % 1 == 0
    and units >= 1 and units < 1e12
  if not ours or second < now - counted then
    redis.call('HDEL', KEYS[1], found[i])
  else
    total = total + units
    if second > now then
      ahead = ahead + units
      redis.call('HDEL', KEYS[1], found[i])
    elseif second < oldest then oldest = second end
  end
end
local left = math.max(0, limit - total)
local units = math.min(left, math.max(need, math.min(want, math.floor(left / 8))))
if units + ahead > 0 then
  redis.call('HINCRBY', KEYS[1], now, units + ahead)
  redis.call('EXPIRE', KEYS[1], counted + 2)
end
local reset_us = (oldest + counted + 1 - now) * 1000000 - us
return {units, left - units, now, reset_us}
"""
_SHA = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class ValkeyWindow:
    """A shared window in Valkey; connects on first use, and again after a disconnect.

    Implements `common.quota_lease.SharedWindow`. Raises `StateUrlError` when the client library
    is not installed.
    """

    def __init__(self, address: StateAddress, command_s: float = COMMAND_S) -> None:
        self.place = address.place
        self._command_s = command_s
        self._client, self._no_script = _client(address, command_s)

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        try:
            async with asyncio.timeout(self._command_s):
                return [_grant(ask, said) for ask, said in zip(asks, await self._run(asks))]  # noqa: B905 - as many answers as questions
        except Exception as error:  # Library, network and invalid-reply errors.
            raise Unavailable(
                "The shared state cannot be used now.",
                detail=_detail(error, self._command_s),
                retry_after_s=1,
            ) from error

    async def check(self) -> None:
        await self.ask([_CHECK])

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def _run(self, asks: Sequence[WindowRequest]) -> list[object]:
        said = await self._send(asks, by_hash=True)
        unknown = [n for n, one in enumerate(said) if isinstance(one, self._no_script)]
        if unknown:  # The server no longer has the script, and has done nothing.
            again = await self._send([asks[n] for n in unknown], by_hash=False)
            for n, one in zip(unknown, again, strict=True):
                said[n] = one
        return said

    async def _send(self, asks: Sequence[WindowRequest], *, by_hash: bool) -> list[object]:
        """Send all requests in one write, and read all answers in one read."""
        command = ("EVALSHA", _SHA) if by_hash else ("EVAL", _SCRIPT)
        async with self._client.pipeline(transaction=False) as opened:
            pipe: Any = opened  # The library types its commands for all its clients at once.
            for ask in asks:
                pipe.execute_command(*command, 1, _key(ask.key), *_values(ask))
            return cast("list[object]", await pipe.execute(raise_on_error=False))


def _detail(error: Exception, command_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {command_s:g} s"
    return f"{type(error).__name__}: {error}"[:300]


def _values(ask: WindowRequest) -> tuple[int, ...]:
    return ask.limit, ask.need, ask.want, ask.back_second, ask.back_units, COUNTED_S


def _key(key: str) -> bytes:
    """Return a bounded key that tells readers of the server nothing."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16)
    return b"assay:limit:" + digest.hexdigest().encode()


def _grant(ask: WindowRequest, said: object) -> Grant:
    """Parse the script's answer. Raises the server's error, or `ValueError` if it is invalid."""
    if isinstance(said, Exception):
        raise said
    if not isinstance(said, list) or len(cast("list[object]", said)) != 4:  # noqa: PLR2004 - four
        raise ValueError("the server's answer is not the script's")
    numbers = [value for value in cast("list[object]", said) if isinstance(value, int)]
    units, left, second, reset_us = numbers if len(numbers) == 4 else (-1, 0, 0, 0)  # noqa: PLR2004
    if not 0 <= units <= ask.want or left < 0:
        raise ValueError("the server's answer is not the script's")
    return Grant(units, left, second, max(0.0, reset_us / 1e6))


def _client(address: StateAddress, command_s: float) -> "tuple[Valkey, type[Exception]]":
    """Return the client, and the exception it raises for a script unknown to the server."""
    try:  # An extra, installed only with shared state, and imported only for that.
        from valkey.asyncio import BlockingConnectionPool, SSLConnection, Valkey  # noqa: PLC0415
        from valkey.asyncio.retry import Retry  # noqa: PLC0415
        from valkey.backoff import NoBackoff  # noqa: PLC0415
        from valkey.exceptions import NoScriptError  # noqa: PLC0415
    except ImportError as error:
        raise StateUrlError(
            "ASSAY_STATE_URL needs the Valkey client: pip install 'assay[valkey]'"
        ) from error
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "socket_timeout": command_s,
        "socket_connect_timeout": command_s,
        "retry": Retry(NoBackoff(), 0),  # What is given back twice would be lent twice.
        "max_connections": CONNECTIONS_MAX,
        "timeout": command_s,
    }
    if address.tls:
        options |= {"connection_class": SSLConnection, "ssl_check_hostname": True}
    pool = BlockingConnectionPool(**options)
    return Valkey.from_pool(pool), NoScriptError
