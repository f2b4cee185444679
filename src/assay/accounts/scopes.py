"""Which scope an API key needs for which operation: the one table (issue 12, section 4)."""

from collections.abc import Mapping
from types import MappingProxyType

from assay.accounts.model import Scope

SCOPES: Mapping[str, Scope] = MappingProxyType(
    {
        "GET /operator/agent/{agentId}": Scope.EVALUATE,
        "GET /operator/agent/{agentId}/snapshot": Scope.EVALUATE,
        "GET /operator/agent/{agentId}/liveness": Scope.EVALUATE,
        "GET /operator/wallet/{wallet}": Scope.EVALUATE,
        "GET /operator/resolve-wallet/{wallet}": Scope.EVALUATE,
        "POST /operator/trigger-sandbox/{agentId}": Scope.EVALUATE,
        "POST /operator/trigger-sandbox-key/{agentAddress}": Scope.EVALUATE,
        "GET /operator/key/{agentAddress}": Scope.EVALUATE,
        "GET /operator/key/{agentAddress}/attestation": Scope.EVALUATE,
        "POST /operator/agent/{agentId}/visits": Scope.EVALUATE,
        "DELETE /operator/agent/{agentId}/visits": Scope.EVALUATE,
        "GET /operator/visits": Scope.EVALUATE,
        "POST /operator/gate/{agentId}": Scope.GATE,
        "POST /operator/webhooks/register": Scope.WEBHOOKS,
        "GET /operator/webhooks": Scope.WEBHOOKS,
        "POST /operator/webhooks/{webhookId}/verify": Scope.WEBHOOKS,
        "GET /operator/webhooks/deliveries": Scope.WEBHOOKS,
        "DELETE /operator/webhooks/{webhookId}": Scope.WEBHOOKS,
        "POST /operator/proxy/{agentId}": Scope.PROXY,
        "GET /operator/endpoints": Scope.WRAPPERS,
        "POST /operator/endpoints": Scope.WRAPPERS,
        "PATCH /operator/endpoints/{endpointId}": Scope.WRAPPERS,
        "GET /operator/endpoints/{endpointId}/history": Scope.WRAPPERS,
        "DELETE /operator/endpoints/{endpointId}": Scope.WRAPPERS,
    }
)
"""Every operation that takes an API key, under every setting. A test holds it to the routes.

Where none is needed, one that is presented is held to the scope all the same.
"""


def scope_of(method: str, path: str) -> Scope:
    """The scope of an operation; raises `KeyError` for one that was forgotten."""
    return SCOPES[f"{method} {path}"]
