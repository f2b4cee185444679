"""A model of a chain with one EIP-3009 asset: blocks, a mempool, nonces, fees, reorganisations.

Source: EIP-1559; EIP-3009; geth's transaction pool. It does what an honest chain does; nodes that
lie about it are in `node.py`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from assay.chains.evm.abi import address_word, word
from assay.chains.evm.signing import EvmTransaction, rlp
from assay.common.addresses import keccak256
from assay.common.json import JsonObject
from assay.payments.model import PaymentNetwork
from assay.payments.networks import ROWS
from assay.payments.ports import Authorization
from assay.payments.x402.eip3009 import state_of, transfer_data

NETWORK: PaymentNetwork = next(row for row in ROWS if row.id == "eip155:84532")
ASSET = NETWORK.asset.address
BLOCK_S = 2.0
GWEI = 10**9
TRANSFER_GAS, PLAIN_GAS = 62_432, 21_000
KEPT_BLOCKS = 16
"""States that are kept: how deep a reorganisation or how far behind a node can be."""

TRANSFER = transfer_data(
    Authorization("0x" + "00" * 20, "0x" + "00" * 20, 0, 0, 0, "0x" + "00" * 32, "0x" + "00" * 65)
)[:4]
STATE = state_of("0x" + "00" * 20, "0x" + "00" * 32)[:4]
USED = "0x" + keccak256(b"AuthorizationUsed(address,bytes32)").hex()
CANCELLED = "0x" + keccak256(b"AuthorizationCanceled(address,bytes32)").hex()
MOVED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()

Nonce = tuple[str, str]
"""Payer and nonce of an authorisation."""


class Refused(Exception):
    """What a node says of a transaction that it does not take."""


@dataclass(frozen=True, slots=True)
class Use:
    """How an authorisation was used up: by a transfer, or cancelled where `to` is empty."""

    to: str
    value: int
    transaction: str
    sender: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The payer takes an authorisation back."""

    payer: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Send:
    """An ordinary ERC-20 transfer."""

    payer: str
    to: str
    value: int


Action = Authorization | Cancel | Send | None


@dataclass(frozen=True, slots=True)
class Pending:
    """A signed transaction; `action` is what its call does."""

    hash: str
    sender: str
    nonce: int
    fee: int
    tip: int
    gas: int
    action: Action


@dataclass(slots=True)
class State:
    """Of the asset and of the accounts, after a block."""

    balances: dict[str, int]
    used: dict[Nonce, Use]
    nonces: dict[str, int]
    coins: dict[str, int]

    def copy(self) -> "State":
        return State(dict(self.balances), dict(self.used), dict(self.nonces), dict(self.coins))


@dataclass(slots=True)
class Block:
    number: int
    hash: str
    time_s: float
    base_fee: int
    transactions: list[Pending] = field(default_factory=list["Pending"])
    receipts: dict[str, JsonObject] = field(default_factory=dict[str, "JsonObject"])
    after: State | None = None

    @property
    def refused(self) -> set[Nonce]:
        """Authorisations whose transfer the contract refused in this block."""
        failed = [sent for sent in self.transactions if self.receipts[sent.hash]["status"] == "0x0"]
        actions = [sent.action for sent in failed]
        return {(one.payer, one.nonce) for one in actions if isinstance(one, Authorization)}


class Chain:
    """What is true. `told` is called after every block and reorganisation."""

    def __init__(self, random: Random, clock: Callable[[], float]) -> None:
        self._random = random
        self._clock = clock
        self.lag_s = 0.0
        """How far the blocks' time is behind the world's."""
        self.base_fee = 10 * GWEI
        self.is_signed: Callable[[Authorization], bool] = is_signed_here
        self.strict = False
        """Nodes refuse what does not pay the base fee, and what leaves a gap."""
        self.inclusion = 1.0
        """How probably a transaction that could be in a block is."""
        self.state = State({}, {}, {}, {})
        genesis = Block(1000, "0x" + "00" * 31 + "01", self._time_s(), self.base_fee)
        genesis.after = self.state.copy()
        self.blocks: list[Block] = [genesis]
        self.pool: dict[tuple[str, int], Pending] = {}
        self.ever_paid: dict[Nonce, list[Use]] = {}
        self.ever_burnt: dict[str, set[int]] = {}
        """Wei that a transaction has cost in each block it ever stood in: a reorganisation mines it
        again in another, at another base fee."""
        self.unwound: set[Nonce] = set()
        """Authorisations whose fate a reorganisation has changed."""
        self.told: Callable[[], None] = lambda: None
        self._made = 0
        self._is_reorganising = False

    @property
    def head(self) -> Block:
        return self.blocks[-1]

    def fund(self, owner: str, amount: int) -> None:
        """Dollars out of nowhere, since ever: a reorganisation does not take them."""
        for state in self._states():
            state.balances[owner] = state.balances.get(owner, 0) + amount

    def fund_gas(self, owner: str, wei: int) -> None:
        for state in self._states():
            state.coins[owner] = state.coins.get(owner, 0) + wei

    def submit(self, sent: Pending) -> None:
        """As geth takes it; raises `Refused` in a node's words."""
        place = sent.sender, sent.nonce
        known = self.pool.get(place)
        next_nonce = self.state.nonces.get(sent.sender, 0)
        if known is not None and known.hash == sent.hash:
            raise Refused("already known")
        if sent.nonce < next_nonce:
            raise Refused(f"nonce too low: next nonce {next_nonce}, tx nonce {sent.nonce}")
        if sent.gas * sent.fee > self.state.coins.get(sent.sender, 0):
            raise Refused("insufficient funds for gas * price + value")
        if self.strict and sent.fee < self.base_fee:
            raise Refused(f"max fee per gas less than block base fee: {sent.fee}")
        if self.strict and sent.nonce > self.pending_nonce(sent.sender):
            raise Refused("nonce too high")
        if known is not None and (sent.fee * 10 < known.fee * 11 or sent.tip * 10 < known.tip * 11):
            raise Refused("replacement transaction underpriced")
        self.pool[place] = sent

    def pending_nonce(self, sender: str) -> int:
        nonce = self.state.nonces.get(sender, 0)
        while (sender, nonce) in self.pool:
            nonce += 1
        return nonce

    def submit_plain(self, sender: str, action: Action, tip: int = 50 * GWEI) -> None:
        """A transaction of somebody with gas enough, priced to be in the next block."""
        self._made += 1
        made = f"0x{'ab' * 8}{self._made:048x}"
        nonce = self.pending_nonce(sender)
        self.pool[sender, nonce] = Pending(made, sender, nonce, 10**15, tip, 0, action)

    def mine(self) -> None:
        """The next block: whoever pays the base fee, each sender's in the order of its nonces."""
        self._made += 1
        number = self.head.number + 1
        block = Block(number, f"0x{self._made:064x}", self._time_s(), self.base_fee)
        waiting = True
        while waiting:
            waiting = False
            ready = [sent for sent in self.pool.values() if self._fits(sent, block)]
            ready.sort(key=lambda sent: (-sent.tip, self._random.random()))
            for sent in ready:
                if self._random.random() < self.inclusion:
                    waiting = True
                    del self.pool[sent.sender, sent.nonce]
                    self._execute(sent, block)
        block.after = self.state.copy()
        self.blocks.append(block)
        if len(self.blocks) > KEPT_BLOCKS:
            self.blocks[-KEPT_BLOCKS - 1].after = None
        self._clear_stale()
        if not self._is_reorganising:
            self.told()

    def reorganise(self, depth: int, kept: float) -> None:
        """Undo blocks; each of their transactions is in the mempool again with chance `kept`."""
        depth = min(depth, len(self.blocks) - 1, KEPT_BLOCKS - 1)
        gone = self.blocks[-depth:] if depth else []
        if not gone:
            return
        before = dict(self.state.used)
        self.unwound |= {nonce for block in gone for nonce in block.refused}
        del self.blocks[-depth:]
        after = self.head.after
        assert after is not None
        self.state = after.copy()
        for sent in (sent for block in gone for sent in block.transactions):
            if self._random.random() < kept:
                self.pool.setdefault((sent.sender, sent.nonce), sent)
        self._is_reorganising = True
        for _ in range(depth + 1):
            self.mine()
        self._is_reorganising = False
        after_all = self.state.used
        changed = {nonce for nonce in before if before[nonce] != after_all.get(nonce)}
        self.unwound |= changed | {n for n in after_all if n not in before}
        self.told()

    def receipt(self, transaction: str, behind: int = 0) -> JsonObject | None:
        """As a node that is so many blocks behind has it."""
        for block in reversed(self.blocks[: len(self.blocks) - behind]):
            if transaction in block.receipts:
                return block.receipts[transaction]
        return None

    def state_behind(self, behind: int) -> State:
        after = self.blocks[max(0, len(self.blocks) - 1 - behind)].after
        return self.state if after is None else after

    def would_move(self, signed: Authorization, state: State, at_s: float) -> bool:
        """Whether the asset's contract lets the transfer through."""
        return (
            signed.valid_after < at_s < signed.valid_before
            and (signed.payer, signed.nonce) not in state.used
            and state.balances.get(signed.payer, 0) >= signed.value
            and self.is_signed(signed)
        )

    def _states(self) -> list[State]:
        kept = [block.after for block in self.blocks if block.after is not None]
        return [self.state, *kept]

    def _time_s(self) -> float:
        return self._clock() - self.lag_s

    def _fits(self, sent: Pending, block: Block) -> bool:
        is_next = sent.nonce == self.state.nonces.get(sent.sender, 0)
        return is_next and sent.fee >= block.base_fee

    def _execute(self, sent: Pending, block: Block) -> None:
        self.state.nonces[sent.sender] = sent.nonce + 1
        logs, is_fine = self._effects(sent, block)
        gas = TRANSFER_GAS if isinstance(sent.action, Authorization) else PLAIN_GAS
        price = min(sent.fee, block.base_fee + sent.tip)
        if sent.gas:
            self.ever_burnt.setdefault(sent.hash, set()).add(gas * price)
            self.state.coins[sent.sender] = self.state.coins.get(sent.sender, 0) - gas * price
        block.transactions.append(sent)
        block.receipts[sent.hash] = {
            "transactionHash": sent.hash,
            "blockNumber": hex(block.number),
            "blockHash": block.hash,
            "from": sent.sender,
            "to": ASSET,
            "status": "0x1" if is_fine else "0x0",
            "gasUsed": hex(gas),
            "effectiveGasPrice": hex(price),
            "logs": logs,
        }

    def _effects(self, sent: Pending, block: Block) -> tuple[list[JsonObject], bool]:
        """The logs of a call, and whether it went through."""
        match sent.action:
            case Authorization() as signed:
                is_fine = self.would_move(signed, self.state, block.time_s)
                return (self._transfer(signed, sent, block) if is_fine else []), is_fine
            case Cancel(payer, nonce) if (payer, nonce) not in self.state.used:
                self.state.used[payer, nonce] = Use("", 0, sent.hash, sent.sender)
                return [_log(sent.hash, block, [CANCELLED, topic(payer), nonce], "0x")], True
            case Send(payer, to, value) if self.state.balances.get(payer, 0) >= value:
                self._move(payer, to, value)
                return [], True
            case _:
                return [], sent.action is None

    def _transfer(self, signed: Authorization, sent: Pending, block: Block) -> list[JsonObject]:
        payer, nonce = signed.payer, signed.nonce
        use = Use(signed.to, signed.value, sent.hash, sent.sender)
        self.state.used[payer, nonce] = use
        self.ever_paid.setdefault((payer, nonce), []).append(use)
        self._move(payer, signed.to, signed.value)
        amount = "0x" + word(signed.value).hex()
        return [
            _log(sent.hash, block, [USED, topic(payer), nonce], "0x"),
            _log(sent.hash, block, [MOVED, topic(payer), topic(signed.to)], amount),
        ]

    def _move(self, payer: str, to: str, value: int) -> None:
        self.state.balances[payer] -= value
        self.state.balances[to] = self.state.balances.get(to, 0) + value

    def _clear_stale(self) -> None:
        """What can never be mined any more leaves the mempool."""
        nonces = self.state.nonces
        for place in [p for p in self.pool if p[1] < nonces.get(p[0], 0)]:
            del self.pool[place]


def topic(address: str) -> str:
    return "0x" + address_word(address).hex()


def _log(transaction: str, block: Block, topics: list[str], data: str) -> JsonObject:
    return {
        "address": ASSET,
        "topics": topics,
        "data": data,
        "transactionHash": transaction,
        "blockNumber": hex(block.number),
        "blockHash": block.hash,
        "removed": False,
    }


def signature_of(signed: Authorization) -> str:
    """The payer's signature here: nobody else makes it, for nobody else is asked to."""
    said = (
        signed.payer,
        signed.to,
        signed.value,
        signed.valid_after,
        signed.valid_before,
        signed.nonce,
    )
    return "0x" + hashlib.blake2b(repr(said).encode()).hexdigest() + "1b"


def is_signed_here(signed: Authorization) -> bool:
    return signed.signature == signature_of(signed)


class Signers:
    """Implements `payments.ports.AuthorizationSigners` for those signatures."""

    def signer(self, authorization: Authorization, network: PaymentNetwork) -> str | None:
        del network
        return authorization.payer if is_signed_here(authorization) else None


class SettlementKey:
    """Stands for `TransactionSigner`: raw transactions of their real form, cheaply signed."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.signed: dict[str, Pending] = {}

    def sign(self, transaction: EvmTransaction) -> tuple[str, str]:
        fields = (
            transaction.chain_id,
            transaction.nonce,
            transaction.priority_fee,
            transaction.fee,
            transaction.gas,
        )
        parts = [number.to_bytes((number.bit_length() + 7) // 8) for number in fields]
        to = bytes.fromhex(transaction.to[2:])
        body = rlp([*parts, to, b"", transaction.data, [], b"", b"\x01", b"\x01"])
        raw = "0x02" + body.hex()
        hash_ = "0x" + hashlib.blake2b(body, digest_size=32).hexdigest()
        self.signed[raw] = Pending(
            hash_,
            self.address,
            transaction.nonce,
            transaction.fee,
            transaction.priority_fee,
            transaction.gas,
            read_transfer(transaction.data) if transaction.data else None,
        )
        return raw, hash_

    def has_signed(self, raw: str) -> bool:
        return raw in self.signed


def read_transfer(data: bytes) -> Authorization:
    """The authorisation in the call that spends it."""
    assert data[:4] == TRANSFER
    words = [data[4 + 32 * n : 36 + 32 * n] for n in range(9)]
    return Authorization(
        payer="0x" + words[0][12:].hex(),
        to="0x" + words[1][12:].hex(),
        value=int.from_bytes(words[2]),
        valid_after=int.from_bytes(words[3]),
        valid_before=int.from_bytes(words[4]),
        nonce="0x" + words[5].hex(),
        signature="0x" + (words[7] + words[8] + words[6][-1:]).hex(),
    )


def signed_authorization(unsigned: Authorization) -> Authorization:
    return replace(unsigned, signature=signature_of(unsigned))
