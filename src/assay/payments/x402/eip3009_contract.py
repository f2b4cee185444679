"""The contract of an EIP-3009 asset: the calls that ask and move, and what a receipt proves.

Source: EIP-3009; ERC-20.
"""

from itertools import pairwise

from assay.chains.evm.abi import address_word, word
from assay.common.json import JsonValue, is_array, is_object
from assay.common.keccak import keccak256
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import LedgerEntry, WatchedPayment
from assay.payments.ports import Authorization


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


_TRANSFER = _selector(
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)
_BALANCE_OF = _selector("balanceOf(address)")
_STATE = _selector("authorizationState(address,bytes32)")
USED = "0x" + keccak256(b"AuthorizationUsed(address,bytes32)").hex()
CANCELLED = "0x" + keccak256(b"AuthorizationCanceled(address,bytes32)").hex()
TRANSFERRED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
"""Source: EIP-3009; ERC-20."""


def balance_of(payer: str) -> bytes:
    """The call that asks for a balance."""
    return _BALANCE_OF + address_word(payer)


def state_of(payer: str, nonce: str) -> bytes:
    """The call that asks whether an authorisation was used or cancelled."""
    return _STATE + address_word(payer) + bytes.fromhex(nonce[2:])


def used_topics(entry: LedgerEntry | WatchedPayment) -> list[str]:
    """The topics of the log that says which transaction used it."""
    return [USED, *key_topics(entry)]


def key_topics(entry: LedgerEntry | WatchedPayment) -> list[str]:
    """Its authorisation's topics in the logs of its use and of its cancellation."""
    return ["0x" + address_word(entry.payer).hex(), entry.nonce]


def transfer_data(signed: Authorization) -> bytes:
    """The call that moves the money. Source: EIP-3009, `transferWithAuthorization`."""
    signature = bytes.fromhex(signed.signature[2:])
    v = signature[64] if signature[64] >= 27 else signature[64] + 27  # noqa: PLR2004 - EIP-191's v
    return b"".join(
        (
            _TRANSFER,
            address_word(signed.payer),
            address_word(signed.to),
            word(signed.value),
            word(signed.valid_after),
            word(signed.valid_before),
            bytes.fromhex(signed.nonce[2:]),
            word(v),
            signature[:64],
        )
    )


def pays(receipt: JsonValue, entry: LedgerEntry | WatchedPayment) -> bool:
    """Whether the transaction used this very authorisation, and that moved the amount to the payee.

    The transfer is the asset's next log after `AuthorizationUsed`: a transaction may use several
    authorisations of one payer, and the transfer of one of them must not pay for two. Source:
    Circle's FiatTokenV2, `_transferWithAuthorization`, which writes both without a step between.
    """
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    ours = [
        log
        for log in (logs if is_array(logs) else ())
        if is_object(log) and str(log.get("address")).lower() == entry.asset
    ]
    used = used_topics(entry)
    wanted = [TRANSFERRED, used[1], "0x" + address_word(entry.pay_to).hex()]
    return any(
        _topics(before.get("topics")) == used
        and _topics(log.get("topics")) == wanted
        and _hex_number(log.get("data")) == entry.amount
        for before, log in pairwise(ours)
    )


def event_of(receipt: JsonValue, entry: LedgerEntry) -> str:
    """The event by which a mined transaction used this authorisation up; empty where it did not."""
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return ""
    logs = receipt.get("logs")
    events = {
        tuple(_topics(log.get("topics")))
        for log in (logs if is_array(logs) else ())
        if is_object(log) and str(log.get("address")).lower() == entry.asset
    }
    return next((e for e in (USED, CANCELLED) if (e, *key_topics(entry)) in events), "")


def gas_spent(receipt: JsonValue) -> int | None:
    """What a mined transaction has cost in wei, where its receipt says so.

    Besides its gas, what an OP Stack chain takes for writing it to Ethereum. Source: EIP-1559,
    `effectiveGasPrice`; OP Stack, `l1Fee`.
    """
    if not is_object(receipt):
        return None
    gas, price = _hex_number(receipt.get("gasUsed")), _hex_number(receipt.get("effectiveGasPrice"))
    if gas < 0 or price < 0:
        return None
    return gas * price + max(0, _hex_number(receipt.get("l1Fee")))


def _topics(value: JsonValue) -> list[str]:
    return [str(topic).lower() for topic in value] if is_array(value) else []


def _hex_number(value: JsonValue) -> int:
    try:
        return hex_number(value, 256)
    except NotANumber:
        return -1
