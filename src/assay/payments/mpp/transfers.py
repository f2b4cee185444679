"""What a receipt shows of an MPP payment: every transfer that its challenge asked for.

Source: TIP-20, whose transfers write `Transfer`, and `TransferWithMemo` besides where they have a
memo; the memo of MPP, which ends with the challenge's fingerprint (mpp.md#credential).
"""

from assay.chains.evm.abi import address_word
from assay.common.json import JsonValue, is_array, is_object
from assay.common.keccak import keccak256
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import LedgerEntry, WatchedPayment
from assay.payments.x402.eip3009_contract import TRANSFERRED

TRANSFER_WITH_MEMO = "0x" + keccak256(b"TransferWithMemo(address,address,uint256,bytes32)").hex()
_FINGERPRINT_BYTES = 7
_Movement = tuple[str, str, int]
"""The event, the payee as a topic, and the amount."""


def pays(receipt: JsonValue, entry: LedgerEntry | WatchedPayment) -> bool:
    """Whether the transaction went through, and moved the seller's and the platform's part.

    Both out of the payer's account, in the asset, at least one with the memo of this challenge. A
    payer's own contract may do something else when its transaction is mined again: its status
    alone proves nothing.
    """
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    logs = receipt.get("logs")
    memo = keccak256(entry.nonce.encode())[:_FINGERPRINT_BYTES].hex()
    moved = {_movement(log, entry, memo) for log in (logs if is_array(logs) else ())}
    parts = _parts(entry)  # to different payees: no transfer counts for two
    with_memo = {part for part in parts if (TRANSFER_WITH_MEMO, *part) in moved}
    return bool(with_memo) and all(
        part in with_memo or (TRANSFERRED, *part) in moved for part in parts
    )


def _parts(entry: LedgerEntry | WatchedPayment) -> set[tuple[str, int]]:
    """The payees, as topics, and what each is to be paid."""
    fee = entry.direct_fee
    if fee is None:
        return {(_topic(entry.pay_to), entry.amount)}
    seller = (_topic(entry.pay_to), entry.amount - fee.amount)
    return {seller, (_topic(fee.payee), fee.amount)}


def _movement(log: JsonValue, entry: LedgerEntry | WatchedPayment, memo: str) -> _Movement | None:
    """What a log says that the payer moved; None for one of something else, or of another memo."""
    if not is_object(log) or str(log.get("address")).lower() != entry.asset.lower():
        return None
    topics = log.get("topics")
    event, payer, payee, *more = [
        *(str(topic).lower() for topic in (topics if is_array(topics) else ())),
        *("", "", ""),
    ]
    if payer != _topic(entry.payer) or (event == TRANSFER_WITH_MEMO and not more[0].endswith(memo)):
        return None
    try:
        return event, payee, hex_number(log.get("data"), 256)
    except NotANumber:
        return None


def _topic(address: str) -> str:
    return "0x" + address_word(address).hex()
