"""The agent's side of the proof of its address (interface.md#agent-identity)."""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from assay_client.errors import InvalidInput, MissingExtra

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}")
_CHALLENGE = re.compile(
    r"[\x20-\x7e]{1,300} asks (?P<address>\S{32,44}) to prove control of this address\."
    r" Purpose: agent session\. Nonce: [0-9a-f]{32}\. [\x20-\x7e]{1,300}"
)
_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")

Sign = Callable[[str], str]
"""Signs a text as an EIP-191 personal message; returns the signature in hexadecimal."""


class AgentSession:
    """An agent's address, and the session that proves it.

    `sign` signs a text and may block: asynchronous clients call it in a thread. Only challenges for
    this address are ever signed. The session is kept in memory; `repr` does not show it.
    """

    def __init__(self, address: str, sign: Sign) -> None:
        if not _ADDRESS.fullmatch(address):
            raise InvalidInput("The agent's address is not an EVM or Solana address.")
        self.address = address
        self._sign = sign
        self.token: str | None = None

    @classmethod
    def from_key(cls, private_key: str) -> "AgentSession":
        """Return a session that signs with an EVM private key; raises `MissingExtra`."""
        try:
            account_class: Any = importlib.import_module("eth_account").Account
            encode: Any = importlib.import_module("eth_account.messages").encode_defunct
        except ImportError:
            message = "eth-account is not installed: pip install 'assay-client[sign]'"
            raise MissingExtra(message) from None
        account: Any = account_class.from_key(private_key)

        def sign(text: str) -> str:
            return "0x" + account.sign_message(encode(text=text)).signature.hex().removeprefix("0x")

        return cls(account.address, sign)

    @override
    def __repr__(self) -> str:
        return f"AgentSession({self.address!r})"

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers to send to an API: the address, and the session if there is one."""
        session = {} if self.token is None else {"x-agent-session": self.token}
        return {"x-agent-address": self.address, **session}

    def answer(self, challenge: str) -> Mapping[str, str]:
        """Sign a challenge and return the headers that answer it.

        Raises `InvalidInput` if the text is not a challenge of an Assay service for this address,
        so that no server can have another text signed.
        """
        found = _CHALLENGE.fullmatch(challenge)
        if found is None or found["address"].lower() != self.address.lower():
            raise InvalidInput("The text is not a challenge for this agent's address.")
        return {
            "x-agent-address": self.address,
            "x-agent-challenge": challenge,
            "x-agent-signature": self._sign(challenge),
        }

    def update(self, response_headers: Mapping[str, str]) -> None:
        """Keep the session that a response carries, if it carries one."""
        for name, value in response_headers.items():
            if name.lower() == "x-agent-session" and _TOKEN.fullmatch(value):
                self.token = value
