"""A network's registries in memory, answering as a node would, by the reference ABI codec."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from eth_abi.abi import decode, encode

from assay.chains.model import ChainUnavailable, Network
from assay.chains.networks import Networks
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.json import JsonValue
from assay.registries.model import Feedback
from assay.registries.ports import Document, DocumentUnavailable

NETWORK: Network = replace(Networks.built_in().default, slug="local", chain_id=31337)
ZERO = "0x" + "0" * 40


class NoIndex:
    """The index of chains that need none: whoever asks it finds nothing."""

    async def find_number(self, network: Network, number: int) -> str | None:
        del network, number
        return None

    async def find_wallet(self, network: Network, wallet: str) -> Sequence[str]:
        del network, wallet
        return ()

    async def find_owner(self, network: Network, owner: str) -> Sequence[str]:
        del network, owner
        return ()

    async def fetch_feedback(self, network: Network, asset: str) -> tuple[Feedback, ...]:
        del network, asset
        return ()


Row = tuple[str, int, int, int, str, str]
"""client, index, value, decimals, tag1, tag2"""


def wallet(number: int) -> str:
    """The address of somebody."""
    return f"0x{number:040x}"


@dataclass
class Token:
    owner: str
    uri: str = ""
    wallet: str = ZERO


@dataclass
class FakeRpc:
    tokens: list[Token] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    versions: tuple[str, str] = ("2.0.0", "2.0.0")
    linked: str = NETWORK.identity_registry
    codes: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Selector of every call, in order."""
    rounds: int = 0
    rows_max: int = 10_000
    """Rows that the gas of one call reads."""
    gas_spent: Callable[[], Reverted] = lambda: Reverted(b"", "out of gas")
    lie: Callable[[ContractCall], Returned | Reverted | None] = lambda _call: None
    """Answers instead, when it is not None."""
    down: bool = False

    async def call(
        self, network: Network, calls: Sequence[ContractCall]
    ) -> list[Returned | Reverted]:
        self._check(network)
        return [self.lie(call) or self._answer(call) for call in calls]

    async def call_untrusted(
        self, network: Network, call: ContractCall, gas: int
    ) -> Returned | Reverted:
        assert gas > 0
        (answer,) = await self.call(network, [call])
        return answer

    async def request(
        self, network: Network, method: str, params: Sequence[JsonValue]
    ) -> JsonValue:
        self._check(network)
        assert method == "eth_getCode"
        return self.codes.get(str(params[0]), "0x")

    def _check(self, network: Network) -> None:
        self.rounds += 1
        assert network.slug == NETWORK.slug
        if self.down:
            raise ChainUnavailable("local cannot be read right now")

    def _answer(self, call: ContractCall) -> Returned | Reverted:
        selector, data = call.data[:4].hex(), call.data[4:]
        self.asked.append(selector)
        match selector:
            case "0d8e6e2c":
                at = (NETWORK.identity_registry, NETWORK.reputation_registry).index(call.to)
                return _returned(["string"], [self.versions[at]])
            case "bc4d861b":
                return _returned(["address"], [self.linked])
            case "42dd519c":
                return _returned(["address[]"], [list(dict.fromkeys(r[0] for r in self.rows))])
            case "d9d84224":
                return self._feedback(data)
            case _:
                return self._token(selector, int.from_bytes(data[:32], "big"))

    def _token(self, selector: str, token_id: int) -> Returned | Reverted:
        token = self.tokens[token_id] if token_id < len(self.tokens) else None
        if selector == "00339509":
            return _returned(["address"], [token.wallet if token else ZERO])
        if token is None:
            return Reverted(bytes.fromhex("7e273289") + token_id.to_bytes(32, "big"), "reverted")
        if selector == "c87b56dd":
            return _returned(["string"], [token.uri])
        assert selector == "6352211e"
        return _returned(["address"], [token.owner])

    def _feedback(self, data: bytes) -> Returned | Reverted:
        types = ["uint256", "address[]", "string", "string", "bool"]
        _, clients, tag1, tag2, revoked = decode(types, data)
        assert (tag1, tag2, revoked) == ("", "", False)
        rows = [row for row in self.rows if not clients or row[0] in clients]
        if len(rows) > self.rows_max:
            return self.gas_spent()
        return Returned(feedback(rows))


def feedback(rows: Sequence[Row]) -> bytes:
    """What `readAllFeedback` returns for these unrevoked rows."""
    types = ["address[]", "uint64[]", "int128[]", "uint8[]", "string[]", "string[]", "bool[]"]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
    return encode(types, [*columns, [False] * len(rows)])


def refuse() -> Reverted:
    """A node that says no in its own words instead of reverting."""
    raise RpcRefused("refused", rpc_code=-32000, rpc_message="out of gas")


def _returned(types: Sequence[str], values: Sequence[object]) -> Returned:
    return Returned(encode(types, values))


@dataclass
class FakeDocuments:
    """Documents by URI; what is not there cannot be had."""

    files: dict[str, bytes] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)

    async def fetch(self, uri: str) -> Document:
        self.fetched.append(uri)
        if uri not in self.files:
            raise DocumentUnavailable("the document is not there")
        return Document(self.files[uri])
