"""The JSON-RPC endpoints of a network, as chain clients need them."""

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
    """The call went through and returned these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Reverted:
    """The contract refused. A revert is an answer: it is never retried elsewhere."""

    data: bytes
    message: str


class RpcRefused(ChainUnavailable):
    """Nodes answered, and the answer was a JSON-RPC error about the request itself.

    `rpc_code` and `rpc_message` are the last node's own, for callers that can ask for less
    (a smaller block window); they are not for the public.
    """

    def __init__(self, message: str, *, rpc_code: int, rpc_message: str) -> None:
        super().__init__(message, detail=f"{rpc_code}: {rpc_message}")
        self.rpc_code = rpc_code
        self.rpc_message = rpc_message


class Rpc(Protocol):
    """The JSON-RPC endpoints of a network, as one: batched, timed, failing over.

    Every method raises `ChainUnavailable` when no endpoint gives an answer that can be believed
    (down, wrong chain id, stale, truncated, malformed).
    """

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        """All calls at one and the same block; results in the order of `calls`."""
        ...

    async def call_newest(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> Sequence[Returned | Reverted]:
        """All calls at a node's newest block, in one round trip; results in their order.

        Where the network has no Multicall3 a block may come between two of them: for questions
        each of which stands by itself.
        """
        ...

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> Sequence[Returned | Reverted]:
        """All calls at that block; results in their order."""
        ...

    async def call_untrusted(
        self, network: Network, call: ContractCall, gas: int
    ) -> Returned | Reverted:
        """One call of a contract that a caller named, with at most `gas`.

        What it burns is its own loss: a contract that does not answer within its gas or its time
        is `Reverted`, is left alone for a while after several times, and counts against no
        endpoint. Who bears the costs takes turns with others; raises `common.errors.TooMany` for
        one that has too many calls waiting.
        """
        ...

    async def request(
        self, network: Network, method: str, params: Sequence[JsonValue]
    ) -> JsonValue:
        """One JSON-RPC request, its `result` as decoded. An error answer is `RpcRefused`."""
        ...

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[JsonValue]]]
    ) -> Sequence[JsonValue]:
        """Several requests in few round trips; None where the node refused that one."""
        ...
