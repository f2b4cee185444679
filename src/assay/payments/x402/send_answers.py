"""What a node's answer to a sent transaction means, in whatever words it says it."""

from dataclasses import dataclass

from assay.chains.rpc import RpcRefused
from assay.common.errors import Unavailable
from assay.payments.outcomes import Undecided

_NONCE_TROUBLE = ("nonce", "replacement transaction underpriced")
"""What nodes say when another process with our key was faster; in whatever words around it."""

_CHEAP = ("underpriced", "base fee", "basefee", "fee too low", "price too low", "price below")
"""What they say of a price at which nothing is mined now."""

_ALREADY_SENT = ("already known", "already imported", "known transaction")


@dataclass(frozen=True, slots=True)
class Again:
    """The nonce was somebody else's, or the price too low: another turn."""

    problem: str
    is_cheap: bool = False


def meaning(transaction: str, answer: object) -> str | Undecided | Again:
    """What became of a transaction, by its hash, when sending it was answered or raised that."""
    if isinstance(answer, RpcRefused):
        problem = answer.rpc_message.lower()
        if any(words in problem for words in _ALREADY_SENT):
            return transaction
        if any(words in problem for words in _NONCE_TROUBLE):
            return Again(problem)
        if any(words in problem for words in _CHEAP):
            return Again(problem, is_cheap=True)
        return Undecided(f"not sent: {problem}")  # the node will not have it: no gas money, say
    if isinstance(answer, Unavailable):
        return Undecided(answer.detail or answer.message)
    return Undecided(repr(answer)) if isinstance(answer, Exception) else transaction
