"""Health and discovery (spec 4.1)."""

from assay.server.schemas_base import Answer, Timestamp


class HealthResponse(Answer):
    """The service is up."""

    ok: bool
    status: str
    service: str
    supported_chains: list[str]
    default_chain: str
    timestamp: Timestamp


class DiscoveryResponse(Answer):
    """Where developers find things."""

    service: str
    version: str
    health: str
    openapi: str
    docs: str
    jwks: str


class JwksResponse(Answer):
    """Public keys of decision tokens (RFC 7517)."""

    keys: list[dict[str, str]]
