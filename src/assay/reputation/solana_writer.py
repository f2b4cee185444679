"""Writes scores to the 8004 registry on Solana; implements `registries.ports.ChainWriter`.

Source of the recipe: solana-registry.md#writing-scores. Only imported if a keypair is configured.
"""

import base64
import re
from itertools import count
from pathlib import Path

from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.json import JsonObject, is_object
from assay.common.numbers import NotANumber, whole_number
from assay.registries.model import OnchainAgent
from assay.registries.ports import WriteRefused
from assay.registries.solana_accounts import GiveFeedback, SolanaFeedback, give_feedback

UNITS = 400_000
UNITS_SPREAD = 32
"""Compute units a write may use, as in the registry's SDK. The number varies a little, because two
identical writes are one transaction, and the second would be lost silently."""

SIGNATURE_LAMPORTS = 5_000
"""Fee of each signature. Source: solana-registry.md#writing-scores."""

_KEY_FILE_BYTES_MAX = 4096
_PROGRAM_ERROR = re.compile(r"custom program error: 0x([0-9a-fA-F]{1,8})")
_SELF_FEEDBACK = 12300
"""SelfFeedbackNotAllowed. Source: solana-registry.md#feedback-instruction."""

_MESSAGE_CHARS_MAX = 200
_SEND: JsonObject = {
    "encoding": "base64",
    "preflightCommitment": "confirmed",
    "skipPreflight": False,
    "maxRetries": 5,
}


def keypair_of(configured: str) -> Keypair:
    """Return the keypair of a setting: a JSON array of 64 integers, or a file with one.

    Raises `ValueError` with a sentence that shows nothing of the key.
    """
    text = configured.strip()
    if not text.startswith("["):
        try:
            with Path(text).expanduser().open("rb") as file:
                text = file.read(_KEY_FILE_BYTES_MAX).decode("ascii").strip()
        except (OSError, ValueError):
            raise ValueError(
                "ASSAY_SOLANA_KEYPAIR is neither a JSON array nor a file that can be read"
            ) from None
    try:
        return Keypair.from_json(text)
    except ValueError:
        raise ValueError(
            "ASSAY_SOLANA_KEYPAIR must hold the 64 integers of a secret keypair"
        ) from None


class SolanaWriter:
    """Signs and sends each score once, without waiting for its execution."""

    def __init__(self, rpc: Rpc, keypair: Keypair, price: int) -> None:
        """Create it; `price` is micro-lamports per compute unit, 0 for none."""
        self.address = str(keypair.pubkey())
        most_units = UNITS + UNITS_SPREAD - 1
        self.fee = SIGNATURE_LAMPORTS - -price * most_units // 1_000_000
        self._rpc = rpc
        self._keypair = keypair
        self._price = price
        self._numbers = count()

    async def give_score(self, network: Network, agent: OnchainAgent, score: int) -> str:
        if agent.collection is None:
            raise WriteRefused("the agent's collection is not known")
        given = SolanaFeedback(value=score, score=score)
        feedback = give_feedback(
            network.cluster, self.address, agent.agent_id, agent.collection, given
        )
        blockhash = await self._blockhash(network)
        transaction = self.signed(feedback, blockhash)
        wire = base64.b64encode(bytes(transaction)).decode("ascii")
        try:
            answer = await self._rpc.request(network, "sendTransaction", [wire, _SEND])
        except RpcRefused as refusal:
            raise WriteRefused(_reason(refusal)) from refusal
        expected = str(transaction.signatures[0])
        if answer != expected:
            raise WriteRefused("the node answered with another signature")
        return expected

    def signed(self, feedback: GiveFeedback, blockhash: str) -> Transaction:
        """Return the transaction of one instruction, paid and signed by the keypair."""
        limit = UNITS + next(self._numbers) % UNITS_SPREAD
        budget = [set_compute_unit_limit(limit)]
        if self._price:
            budget.append(set_compute_unit_price(self._price))
        accounts = [
            AccountMeta(Pubkey.from_string(a.key), a.is_signer, a.is_writable)
            for a in feedback.accounts
        ]
        instruction = Instruction(Pubkey.from_string(feedback.program), feedback.data, accounts)
        recent = Hash.from_string(blockhash)
        message = Message.new_with_blockhash([*budget, instruction], self._keypair.pubkey(), recent)
        return Transaction([self._keypair], message, recent)

    async def balance(self, network: Network) -> int:
        """Return the lamports of the writing wallet. Raises `ChainUnavailable`."""
        options = {"commitment": "confirmed"}
        answer = await self._rpc.request(network, "getBalance", [self.address, options])
        value = answer.get("value") if is_object(answer) else None
        try:
            return whole_number(value, 2**64 - 1)
        except NotANumber:
            raise ChainUnavailable("The balance of the writing wallet cannot be read.") from None

    async def _blockhash(self, network: Network) -> str:
        options = {"commitment": "confirmed"}
        answer = await self._rpc.request(network, "getLatestBlockhash", [options])
        value = answer.get("value") if is_object(answer) else None
        found = value.get("blockhash") if is_object(value) else None
        try:
            return str(Hash.from_string(found if isinstance(found, str) else ""))
        except ValueError:
            raise ChainUnavailable("The cluster gave no block hash.") from None


def _reason(refusal: RpcRefused) -> str:
    """Return the node's words, with the program's error in decimal, as its sources number it."""
    found = _PROGRAM_ERROR.search(refusal.rpc_message)
    if found is None:
        return f"{refusal.rpc_code}: {refusal.rpc_message[:_MESSAGE_CHARS_MAX]}"
    code = int(found[1], 16)
    reason = " (SelfFeedbackNotAllowed)" if code == _SELF_FEEDBACK else ""
    return f"program error {code}{reason}"
