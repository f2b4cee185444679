"""Where a request to an account comes from, and how that is remembered."""

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

from assay.common.addresses import caller_of, network_around
from assay.common.keyring import SecretRing

USER_AGENT_CHARS_MAX: Final = 200

Hashes: TypeAlias = tuple[str, ...]
"""One thing under every key of a ring: the first one is stored, all of them are looked for."""


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request, as far as that can be seen."""

    address: str
    user_agent: str = ""
    request_id: str = ""

    @property
    def network(self) -> str:
        """The address, or the network of 64 bits of an IPv6 one."""
        return caller_of(self.address)

    @property
    def around(self) -> str:
        """The larger network around it (IPv4: /24, IPv6: /48)."""
        return network_around(self.address)

    @property
    def shown_user_agent(self) -> str:
        """What is kept of the `User-Agent`: cut short, without control characters."""
        plain = (c for c in self.user_agent if not unicodedata.category(c).startswith("C"))
        return "".join(plain)[:USER_AGENT_CHARS_MAX]


class Origins:
    """Keyed hashes of networks and mailboxes: equal for equal ones, meaningless without the key.

    Each is 32 hex digits.
    """

    def __init__(self, secrets: SecretRing) -> None:
        """What is stored under any of the secrets is found for as long as the ring holds it."""
        self._keys = [hashlib.sha256(b"assay.origin|" + one.encode()).digest() for one in secrets]

    def of(self, client: Client) -> Hashes:
        """Of a client's network."""
        return self._hashes(client.network)

    def around(self, client: Client) -> Hashes:
        """Of the larger network around it."""
        return self._hashes(f"around|{client.around}")

    def of_mailbox(self, email: str) -> Hashes:
        """Of an e-mail address: equal for all tags of one mailbox.

        `Local+tag@Domain` counts as `local@domain`. For counting only: mail is sent as written.
        """
        local, _, domain = email.lower().rpartition("@")
        return self._hashes(f"mailbox|{local.partition('+')[0] or local}@{domain.rstrip('.')}")

    def _hashes(self, text: str) -> Hashes:
        shown = text.encode("utf-8", "surrogatepass")
        return tuple(
            hashlib.blake2b(shown, key=key, digest_size=16).hexdigest() for key in self._keys
        )
