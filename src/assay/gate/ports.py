"""What the gate needs from outside."""

from datetime import datetime
from typing import Protocol

from assay.common.json import JsonObject


class DecisionSigner(Protocol):
    """Signs decisions so that anybody can check them offline."""

    def sign(self, claims: JsonObject) -> str:
        """A compact JWS over the claims."""
        ...

    def jwks(self, now: datetime) -> JsonObject:
        """The public keys that verify at that time, as a JWK set (RFC 7517)."""
        ...
