"""`give_feedback` of the registry: its data, its digest chain, and the checks of its program.

The program itself cannot be had here. `check` is the model of it: the same checks in the same
order with the same codes, as in the program's source (version 0.5.3) and Anchor's.
"""

from collections.abc import Callable
from dataclasses import dataclass

from solders.account import Account
from solders.instruction import Instruction
from solders.pubkey import Pubkey

from assay.common.addresses import keccak256
from tests.support.solana.clusters import CORE, SYSTEM_PROGRAM, Cluster
from tests.support.solana.layouts import (
    AgentAccount,
    Chain,
    Cursor,
    WrongAccount,
    blob,
    core_owner,
)

GIVE_FEEDBACK = bytes.fromhex("91887b03d7a56229")
ACCOUNTS = 9
TAG_BYTES_MAX, TEXT_BYTES_MAX, DECIMALS_MAX = 32, 250, 18
PAUSED_AT = 145

ReadAccount = Callable[[Pubkey], Account | None]


class Refused(Exception):
    """The program ends with this custom error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _keccak(*parts: bytes) -> bytes:
    return keccak256(b"".join(parts))


@dataclass(frozen=True, kw_only=True)
class Args:
    """What is said of an agent."""

    value: int = 0
    decimals: int = 0
    score: int | None = None
    file_hash: bytes | None = None
    tag1: str = ""
    tag2: str = ""
    endpoint: str = ""
    uri: str = ""

    def texts(self) -> list[bytes]:
        return [text.encode() for text in (self.tag1, self.tag2, self.endpoint, self.uri)]

    def encoded(self) -> bytes:
        """The data of the instruction."""
        head = self.value.to_bytes(16, "little", signed=True) + bytes([self.decimals])
        score = b"\0" if self.score is None else bytes([1, self.score])
        digest = b"\0" if self.file_hash is None else b"\1" + self.file_hash
        return b"".join([GIVE_FEEDBACK, head, score, digest, *map(blob, self.texts())])

    @staticmethod
    def decoded(data: bytes) -> "Args":
        """Raises `Refused`."""
        if data[:8] != GIVE_FEEDBACK:
            raise Refused(101)
        it = Cursor(data, 8)
        try:
            return Args(
                value=it.number(16, signed=True),
                decimals=it.number(1),
                score=it.number(1) if it.flag() else None,
                file_hash=it.take(32) if it.flag() else None,
                tag1=it.text(), tag2=it.text(), endpoint=it.text(), uri=it.text(),
            )  # fmt: skip
        except (WrongAccount, UnicodeDecodeError):
            raise Refused(102) from None

    def seal(self) -> bytes:
        head = self.value.to_bytes(16, "little", signed=True) + bytes([self.decimals])
        score = bytes(2) if self.score is None else bytes([1, self.score])
        digest = b"\0" if self.file_hash is None else b"\1" + self.file_hash
        texts = [len(text).to_bytes(2, "little") + text for text in self.texts()]
        return _keccak(b"8004_SEAL_V1____", head, score, digest, *texts)


def leaf(asset: Pubkey, client: Pubkey, index: int, seal: bytes, slot: int) -> bytes:
    numbers = (index.to_bytes(8, "little"), slot.to_bytes(8, "little"))
    keys = (bytes(asset), bytes(client))
    return _keccak(b"8004_LEAF_V1____", *keys, numbers[0], seal, numbers[1])


def longer(chain: Chain, new: bytes) -> Chain:
    """The chain with one more leaf."""
    return Chain(_keccak(chain.digest, b"8004_FEEDBACK_V1", new), chain.count + 1)


@dataclass(frozen=True)
class Given:
    """A feedback that the program takes."""

    client: Pubkey
    asset: Pubkey
    agent_address: Pubkey
    args: Args


def check(cluster: Cluster, asked: Instruction, read: ReadAccount) -> Given:
    """What the instruction gives; raises `Refused`."""
    args = Args.decoded(bytes(asked.data))
    if len(asked.accounts) < ACCOUNTS:
        raise Refused(3005)
    client, agent_at, asset, collection = (meta.pubkey for meta in asked.accounts[:4])
    if not asked.accounts[0].is_signer:
        raise Refused(3010)
    agent = _load_agent(cluster, read(agent_at))
    if asked.accounts[4].pubkey != SYSTEM_PROGRAM:
        raise Refused(3008)
    _require(asked.accounts[0].is_writable, 2000)
    _require(agent_at == cluster.agent(asset)[0], 2006)
    _require(asked.accounts[1].is_writable, 2000)
    _require(asset == agent.asset, 12011)
    _require(collection == agent.collection, 12010)
    stats, authority = (asked.accounts[n].pubkey for n in (6, 8))
    _require(stats == cluster.registry or asked.accounts[6].is_writable, 2000)
    _require(authority in {cluster.registry, cluster.atom_authority()}, 2006)
    _check_words(args, read(asset), client)
    if agent.atom_enabled and stats != cluster.registry:
        _check_atom(cluster, asked, read, args.score is not None)
    return Given(client, asset, agent_at, args)


def _require(holds: bool, code: int) -> None:  # noqa: FBT001 - reads as the program's own macro
    if not holds:
        raise Refused(code)


def _load_agent(cluster: Cluster, found: Account | None) -> AgentAccount:
    if found is None or (found.owner == SYSTEM_PROGRAM and found.lamports == 0):
        raise Refused(3012)
    data = bytes(found.data)
    _require(found.owner == cluster.registry, 3007)
    _require(len(data) >= 8, 3001)
    _require(data[:8] == AgentAccount.DISCRIMINATOR, 3002)
    try:
        return AgentAccount.decoded(data)
    except (WrongAccount, UnicodeDecodeError):
        raise Refused(3003) from None


def _check_words(args: Args, asset: Account | None, client: Pubkey) -> None:
    _require(asset is not None and asset.owner == CORE, 12011)
    assert asset is not None
    owner = core_owner(bytes(asset.data))
    _require(owner is not None, 12011)
    _require(owner != client, 12300)
    tag1, tag2, endpoint, uri = map(len, args.texts())
    _require(args.decimals <= DECIMALS_MAX, 12061)
    _require(args.score is None or args.score <= 100, 12050)
    _require(max(tag1, tag2) <= TAG_BYTES_MAX, 12056)
    _require(uri <= TEXT_BYTES_MAX, 12000)
    _require(endpoint <= TEXT_BYTES_MAX, 12060)


def _check_atom(cluster: Cluster, asked: Instruction, read: ReadAccount, scored: bool) -> None:  # noqa: FBT001
    config, stats, engine, authority = (meta.pubkey for meta in asked.accounts[5:9])
    _require(stats == cluster.atom_stats(asked.accounts[2].pubkey)[0], 12401)
    kept = read(stats)
    if kept is None or not kept.data or kept.owner != cluster.atom or not scored:
        return
    _require(cluster.registry not in {config, engine, authority} and engine == cluster.atom, 12400)
    settings = read(config)
    _require(settings is not None and not bytes(settings.data)[PAUSED_AT], 6004)
