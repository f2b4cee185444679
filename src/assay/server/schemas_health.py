"""Health and discovery (interface.md#health-and-discovery)."""

from assay.server.schemas_base import ResponseModel, Timestamp


class HealthResponse(ResponseModel):
    """The service is up."""

    ok: bool
    status: str
    service: str
    supported_chains: list[str]
    default_chain: str
    timestamp: Timestamp


class DiscoveryResponse(ResponseModel):
    """Where developers find things."""

    service: str
    version: str
    health: str
    openapi: str
    docs: str
    jwks: str


class JwksResponse(ResponseModel):
    """Public keys of decision tokens (RFC 7517)."""

    keys: list[dict[str, str]]
