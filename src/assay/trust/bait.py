"""Addresses that nobody has a reason to call: who calls one was led there.

A bait is a signed word in an address of ours. Only a word of ours is noted when it is called, so
that nobody can fill the store, and nobody but the agent it was given to knows it.
"""

import re

from assay.kit.ids import new_id
from assay.kit.keyring import MacKeys, Secrets
from assay.kit.state import SharedState

PREFIX = "/operator/sandbox/bait"
KEPT_S = 300.0
MAC_BYTES = 16
_WORD = re.compile(r"([0-9a-f-]{36})\.([0-9a-f]{32})")


class Bait:
    """One address, and whether it was called. Implements `trust.sources.Lure`."""

    def __init__(self, url: str, word: str, state: SharedState) -> None:
        self.url = url
        self._word = word
        self._state = state

    async def was_taken(self) -> bool:
        """Whether anybody called it."""
        return await self._state.get(_key(self._word)) is not None


class Baits:
    """Makes baits, and notes who takes them."""

    def __init__(self, state: SharedState, secrets: Secrets, address: str) -> None:
        self._state = state
        self._keys = MacKeys(b"bait/", secrets)
        self._address = address

    def new(self) -> Bait:
        """A bait that nobody has seen."""
        name = new_id()
        word = f"{name}.{self._keys.mac(name.encode())[:MAC_BYTES].hex()}"
        return Bait(f"{self._address}{PREFIX}/{word}", word, self._state)

    async def taken(self, word: str) -> None:
        """Somebody called the address of a word; of one that is not ours nothing is noted."""
        found = _WORD.fullmatch(word)
        if found is not None and self._keys.is_mac(found[1].encode(), bytes.fromhex(found[2])):
            await self._state.put(_key(word), "1", KEPT_S)


def _key(word: str) -> str:
    return f"bait:{word}"
