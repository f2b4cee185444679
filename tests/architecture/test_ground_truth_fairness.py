"""The ground truth's agents and the detectors know nothing of each other.

Neither may hold a string, a name or a port of the other: an agent that a detector knows by its
words proves nothing. Constants of public protocols are the exception, and listed here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.syntax import nodes

ROOT = Path(__file__).parents[2]
DETECTORS = tuple(
    ROOT / "src/assay" / name for name in ("probing", "evaluation", "caller_behaviour")
)
SENTENCES = (
    "attestations|blobs|causes|changes|checks|credentials|demands|explanations|ladder|listing"
    "|public_agents|public_report|schedule"
)
NO_DETECTORS = re.compile(
    rf"/clients/|/(?:store|routes|schemas)\w*\.py$|/evaluation/(?:{SENTENCES})\.py$"
)
"""Clients of protocols, stores, the wire, and what tells owners and operators something in English:
none of them reads an agent's answer."""

AGENTS = ROOT / "tests/ground_truth"
CHARS = 12

PROTOCOL = (
    "/.well-known/agent-card.json",
    "/.well-known/agent-registration.json",
    "application/json",
    "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
    "/openapi.json",
    "agentRegistry",
    "registrations",
    "Authorization",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "WWW-Authenticate",
    "PAYMENT-REQUIRED",
    "PAYMENT-SIGNATURE",
    "outputSchema",
    "maxAmountRequired",
    "x-payment-info",  # of prices in OpenAPI: draft-payment-discovery-00
    "0x036CbD53842c5426634e7929541eC2318f3dCF7e",  # USDC on Base Sepolia, by its issuer
    "messagingSenderId",  # of a Firebase page's public configuration
    "/.git/config",  # where git keeps its configuration
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "preferredTransport",
    "protocolBinding",
    "protocolVersion",
    "supportedInterfaces",
    "instructions",
    "prompts/list",
    "resources/list",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "pushNotifications",
    "artifactUpdate",
    "statusUpdate",
    "text/event-stream",
    "/.well-known/agent.json",  # where cards were before 0.3
    "additionalProperties",
    "/v1/chat/completions",  # of OpenAI's API, which many others speak
    "structuredContent",  # of a tool's result in MCP
    "rpc.discover",  # how a service describes itself: OpenRPC
    "service-desc",  # a relation of links: RFC 8631
)
"""Media types, well-known paths, members of messages, an asset's address: each stands in a public
specification or its vendor's documentation, and cannot be written otherwise."""

PLAIN_NUMBERS = frozenset(
    {3600, 4096, 8192, 86_400, 1024, 10_000, 32_600, 32_601, 32_602, 32_700, 32_001}
)
"""Hours, powers of two, base units in a cent and JSON-RPC's error codes are no ports."""


def _nodes(*folders: Path) -> Iterator[tuple[Any, ...]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if folder in DETECTORS and NO_DETECTORS.search(path.as_posix()):
                continue
            yield nodes(path.read_text("utf-8"))


def _docstrings(tree: tuple[Any, ...]) -> set[int]:
    """Strings that stand by themselves: they say something to readers only."""
    return {id(node.value) for node in tree if isinstance(node, ast.Expr)}


def strings(*folders: Path) -> Iterator[str]:
    for tree in _nodes(*folders):
        spoken = _docstrings(tree)
        for node in tree:
            if isinstance(node, ast.Constant) and id(node) not in spoken:
                if isinstance(node.value, bytes):
                    yield node.value.decode("latin-1").lower()
                elif isinstance(node.value, str):
                    yield node.value.lower()


def names(*folders: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {
        node.name
        for tree in _nodes(*folders)
        for node in tree
        if isinstance(node, kinds) and len(node.name) >= CHARS
    }


def ports(*folders: Path) -> set[int]:
    return {
        node.value
        for tree in _nodes(*folders)
        for node in tree
        if isinstance(node, ast.Constant) and type(node.value) is int
        if 1024 <= node.value <= 65535
    }


def pieces(text: str) -> set[str]:
    return {text[n : n + CHARS] for n in range(len(text) - CHARS + 1)}


def test_no_string_is_shared() -> None:
    detectors = {piece for text in strings(*DETECTORS) for piece in pieces(text)}
    known = detectors - {piece for text in PROTOCOL for piece in pieces(text.lower())}
    assert sorted({piece for text in strings(AGENTS) for piece in pieces(text) & known}) == []


def test_no_name_is_shared() -> None:
    assert sorted(names(AGENTS) & names(*DETECTORS)) == []


def test_no_port_is_shared() -> None:
    assert sorted(ports(AGENTS) & ports(*DETECTORS) - PLAIN_NUMBERS) == []
