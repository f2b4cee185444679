"""Where a request to an account comes from, and how that is remembered."""

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import Final

from assay.kit.addresses import caller_of, network_around

USER_AGENT_CHARS_MAX: Final = 200


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
    def shown_user_agent(self) -> str:
        """What is kept of the `User-Agent`: cut short, without control characters."""
        plain = (c for c in self.user_agent if not unicodedata.category(c).startswith("C"))
        return "".join(plain)[:USER_AGENT_CHARS_MAX]


class Origins:
    """Keyed hashes of networks and mailboxes: equal for equal ones, meaningless without the key."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.sha256(b"assay.origin|" + secret.encode()).digest()

    def of(self, client: Client) -> str:
        """The hash of a client's network, 32 hex digits."""
        return self._hash(client.network)

    def around(self, client: Client) -> str:
        """The hash of the larger network around it (IPv4: /24, IPv6: /48), 32 hex digits."""
        return self._hash(f"around|{network_around(client.address)}")

    def of_mailbox(self, email: str) -> str:
        """The hash of an e-mail address, 32 hex digits: equal for all tags of one mailbox.

        `Local+tag@Domain` counts as `local@domain`. For counting only: mail is sent as written.
        """
        local, _, domain = email.lower().rpartition("@")
        return self._hash(f"mailbox|{local.partition('+')[0] or local}@{domain.rstrip('.')}")

    def _hash(self, text: str) -> str:
        shown = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(shown, key=self._key, digest_size=16).hexdigest()
