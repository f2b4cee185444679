"""Parses the URL of the shared state, and never shows it."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

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
