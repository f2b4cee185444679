"""The interface of a network's JSON-RPC endpoints for chain clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.chains.model import ChainUnavailable, Network
from assay.common.json import JsonValue


@dataclass(frozen=True, slots=True)
class ContractCall:
    """A read-only contract call: lower-case `to`, ABI-encoded `data`."""

    to: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Returned:
    """The call succeeded and returned these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Reverted:
    """The contract reverted. A revert is an answer: it is never retried elsewhere."""

    data: bytes
    message: str


class RpcRefused(ChainUnavailable):
    """Nodes answered with a JSON-RPC error about the request itself.

    `rpc_code` and `rpc_message` are the last node's own, for callers that can ask for less (a
    smaller block window); they are not for the public.
    """

    def __init__(self, message: str, *, rpc_code: int, rpc_message: str) -> None:
        super().__init__(message, detail=f"{rpc_code}: {rpc_message}")
        self.rpc_code = rpc_code
        self.rpc_message = rpc_message


class Rpc(Protocol):
    """A network's JSON-RPC endpoints as one: batched, timed, failing over.

    Every method raises `ChainUnavailable` when no endpoint gives a credible answer (down, wrong
    chain id, stale, truncated, malformed).
    """

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        """Make all calls at the same block; return results in the order of `calls`."""
        ...

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        """Make all calls at a node's newest block in one round trip; return results in order.

        Without Multicall3 a new block may appear between two calls: only for independent queries.
        """
        ...

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> Sequence[Returned | Reverted]:
        """Make all calls at that block; return results in order."""
        ...

    async def call_untrusted(
        self, network: Network, call: ContractCall, gas: int
    ) -> Returned | Reverted:
        """Make one call of a contract that a caller named, with at most `gas`.

        What it burns is its own loss: a contract that exceeds its gas or its time is `Reverted`, is
        skipped for a while after several times, and counts against no endpoint. The parties that
        bear the costs take turns; raises `common.errors.TooMany` for one that has too many calls
        waiting.
        """
        ...

    async def request(
        self, network: Network, method: str, params: Sequence[JsonValue]
    ) -> JsonValue:
        """Send one JSON-RPC request and return its `result`.

        An error answer raises `RpcRefused`.
        """
        ...

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[JsonValue]]]
    ) -> Sequence[JsonValue]:
        """Send several requests in few round trips; None for those that the node refused."""
        ...
