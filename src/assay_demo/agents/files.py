"""Registration files of the sample agents."""

import base64
import json
from typing import Any

TYPE = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"
"""Source: EIP-8004."""


def registration(
    name: str, description: str, url: str, agent_id: int, agent_registry: str
) -> dict[str, Any]:
    """A registration file that names its agent and the services at `url`."""
    return {
        "type": TYPE,
        "name": name,
        "description": description,
        "image": f"{url}/image.svg",
        "services": [
            {"name": "A2A", "endpoint": f"{url}/.well-known/agent-card.json", "version": "1.0"},
            {"name": "MCP", "endpoint": f"{url}/mcp", "version": "2025-11-25"},
            {"name": "web", "endpoint": f"{url}/"},
        ],
        "x402Support": False,
        "active": True,
        "registrations": [{"agentId": agent_id, "agentRegistry": agent_registry}],
        "supportedTrust": ["reputation"],
    }


def data_uri(document: dict[str, Any]) -> str:
    """The document as a `data:` URI."""
    text = json.dumps(document, ensure_ascii=False).encode()
    return "data:application/json;base64," + base64.b64encode(text).decode()
