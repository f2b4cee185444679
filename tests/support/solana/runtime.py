"""A real Solana runtime (LiteSVM) over a registry, with a stand-in for the registry's program.

Real: signatures, blockhashes, fees, rent, duplicates, account loading, compute budget, the
virtual machine. The stand-in: two instructions that end with the code which the model of the
program's checks (`feedback.check`) arrives at. ATOM's own arithmetic is not modelled: AtomStats
stay as they are.
"""

import struct
import threading
from dataclasses import dataclass, field

from solders.account import Account
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.litesvm import LiteSVM
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata, SimulateResult
from solders.transaction_status import TransactionErrorType

from tests.support.solana.clusters import SYSTEM_PROGRAM
from tests.support.solana.feedback import GIVE_FEEDBACK, Given, Refused, check
from tests.support.solana.registry import Registry

_TEXT_AT = 64 + 56


def program(code: int) -> bytes:
    """An ELF of two instructions: `r0 = code; exit`. Zero is success."""
    text = struct.pack("<BBHi", 0xB7, 0, 0, code) + struct.pack("<BBHi", 0x95, 0, 0, 0)
    names = b"\0.text\0.shstrtab\0"
    body = (text + names).ljust(-(-len(text + names) // 8) * 8, b"\0")
    magic = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    sizes = (64, 56, 1, 64, 3, 2)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 247, 1, _TEXT_AT, 64, _TEXT_AT + len(body), 0, *sizes)
    load = struct.pack("<IIQQQQQQ", 1, 5, *[_TEXT_AT] * 3, len(text), len(text), 8)
    section = struct.Struct("<IIQQQQIIQQ")
    sections = [
        section.pack(*[0] * 10),
        section.pack(1, 1, 6, _TEXT_AT, _TEXT_AT, len(text), 0, 0, 8, 0),
        section.pack(7, 3, 0, 0, _TEXT_AT + len(text), len(names), 0, 0, 1, 0),
    ]
    return b"".join([magic, head, load, body, *sections])


def instructions(message: Message | MessageV0) -> list[Instruction]:
    """What a message asks for, with its accounts written out."""
    keys, header = message.account_keys, message.header
    signers = header.num_required_signatures
    writable = [
        n < signers - header.num_readonly_signed_accounts
        or signers <= n < len(keys) - header.num_readonly_unsigned_accounts
        for n in range(len(keys))
    ]
    return [
        Instruction(
            keys[one.program_id_index],
            bytes(one.data),
            [AccountMeta(keys[n], n < signers, writable[n]) for n in bytes(one.accounts)],
        )
        for one in message.instructions
    ]


@dataclass(frozen=True)
class Sent:
    """A transaction that was accepted by the node."""

    signature: Signature
    transaction: VersionedTransaction
    instructions: list[Instruction]
    given: Given | None
    """The feedback in it, where it landed and holds one."""
    slot: int
    error: TransactionErrorType | None
    """Why it has no effect; only possible without preflight."""


@dataclass(repr=False)
class Runtime:
    registry: Registry
    accepted: list[Sent] = field(default_factory=list[Sent])
    _seen: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.svm = LiteSVM()
        for one in (self.registry.cluster.registry, self.registry.cluster.atom):
            self.svm.add_program(one, program(0))
        self.sync()

    @property
    def slot(self) -> int:
        with self._lock:
            return self.svm.get_clock().slot

    def blockhash(self) -> Hash:
        """The only one that is good at the moment."""
        with self._lock:
            return self.svm.latest_blockhash()

    def rent(self, size: int) -> int:
        """Lamports that keep an account of so many bytes for ever."""
        with self._lock:
            return self.svm.minimum_balance_for_rent_exemption(size)

    def sync(self) -> None:
        """Takes over what has changed in the registry."""
        with self._lock, self.registry.lock:
            for address, account in self.registry.journal[self._seen :]:
                self.svm.set_account(address, account)
            self._seen = len(self.registry.journal)

    def account(self, address: Pubkey) -> Account | None:
        with self._lock:
            self.sync()
            found = self.svm.get_account(address)
            return found if found is not None and found.lamports else None

    def owned_by(self, owner: Pubkey) -> list[tuple[Pubkey, Account]]:
        with self._lock:
            self.sync()
            return [one for one in self.svm.get_program_accounts(owner) if one[1].lamports]

    def fund(self, to: Pubkey, lamports: int) -> None:
        """From nowhere, and as often as one likes."""
        with self._lock:
            had = self.account(to) or Account(0, b"", SYSTEM_PROGRAM)
            whole = (had.lamports + lamports, bytes(had.data), had.owner)
            has = Account(*whole, executable=had.executable, rent_epoch=had.rent_epoch)
            self.svm.set_account(to, has)

    def expire_blockhash(self) -> None:
        """What was signed before is too late now."""
        with self._lock:
            self.svm.expire_blockhash()

    def simulate(self, wanted: VersionedTransaction, *, verify: bool = True) -> SimulateResult:
        with self._lock:
            self._prepare(wanted)
            self.svm.with_sigverify(sigverify=verify)
            try:
                return self.svm.simulate_transaction(wanted)
            finally:
                self.svm.with_sigverify(sigverify=True)

    def send(self, wanted: VersionedTransaction) -> Sent:
        """Runs it and, where it holds a feedback that is taken, writes that down."""
        with self._lock:
            given, slot = self._prepare(wanted), self.slot
            done = self.svm.send_transaction(wanted)
            error = done.err() if isinstance(done, FailedTransactionMetadata) else None
            given, signature = None if error else given, wanted.signatures[0]
            if given is not None:
                row = {"signature": str(signature)}
                self.registry.give(given.asset, given.client, given.args, slot, **row)
                self.sync()
            sent = Sent(signature, wanted, asked(wanted), given, slot, error)
            self.accepted.append(sent)
            self.svm.warp_to_slot(slot + 1)
            return sent

    def _prepare(self, wanted: VersionedTransaction) -> Given | None:
        """Puts in the program that ends as the real one would."""
        self.sync()
        here = self.registry.cluster.registry
        found = [one for one in asked(wanted) if one.program_id == here]
        if not found:
            return None
        assert len(found) == 1, "the stand-in rules on one instruction a transaction"
        try:
            given, code = check(self.registry.cluster, found[0], self.account), 0
        except Refused as refused:
            given, code = None, refused.code
        self.svm.add_program(here, program(code))
        return given


def asked(wanted: VersionedTransaction) -> list[Instruction]:
    message = wanted.message
    assert isinstance(message, Message | MessageV0)
    return instructions(message)


def feedback_of(sent: Sent) -> Instruction:
    """The give_feedback instruction of a transaction."""
    return next(one for one in sent.instructions if bytes(one.data)[:8] == GIVE_FEEDBACK)
