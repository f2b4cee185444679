"""The required shape of a node's answer to each method. Pure.

An answer of another shape means that the node is not credible, and the next one is asked: a later
reader could only fail. Sources: execution-apis (Ethereum JSON-RPC); Solana JSON-RPC.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from assay.chains.evm.rpc_wire import MalformedRpcAnswer, bytes_of
from assay.common.base58 import decode as from_base58
from assay.common.json import JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number, whole_number

_U64_MAX = 2**64 - 1
_I64_MAX = 2**63 - 1
_HASH_CHARS = 66
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_BASE58_CHARS_MAX = 90
_SIGNATURE = re.compile(r"[1-9A-HJ-NP-Za-km-z]{64,88}")
"""64 bytes as base58; a thousand of them are not decoded just to validate them."""

_Shape = Callable[[JsonValue, Sequence[JsonValue]], bool]


def is_shaped(method: str, params: Sequence[JsonValue], result: JsonValue) -> bool:
    """Return whether a result fits this method; any result fits an unknown method."""
    shape = _SHAPES.get(method)
    return shape is None or shape(result, params)


def _is_quantity(value: object, bits: int = 64) -> bool:
    try:
        hex_number(value, bits)
    except NotANumber:
        return False
    return True


def _is_count(value: object, largest: int = _U64_MAX) -> bool:
    try:
        whole_number(value, largest)
    except NotANumber:
        return False
    return True


def _quantity(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return _is_quantity(result)


def _balance(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return _is_quantity(result, 256)


def _hash(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return isinstance(result, str) and len(result) == _HASH_CHARS and _is_quantity(result, 256)


def _data(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    try:
        bytes_of(result)
    except MalformedRpcAnswer:
        return False
    return True


def _logs(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return is_array(result) and all(
        is_object(log) and is_array(log.get("topics")) and isinstance(log.get("data"), str)
        for log in result
    )


def _block(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    if result is None:
        return True
    if not is_object(result) or not _is_quantity(result.get("timestamp")):
        return False
    asked = params[0] if params else None
    answered = result.get("number")
    if not _is_quantity(answered):
        return False
    return not _is_quantity(asked) or hex_number(answered, 64) == hex_number(asked, 64)


def _receipt(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    """Check a receipt, which must be of the requested transaction if it names one."""
    if result is None:
        return True
    if not is_object(result) or not _is_quantity(result.get("status")):
        return False
    answered = result.get("transactionHash", params[0])
    named = isinstance(answered, str) and answered.lower() == str(params[0]).lower()
    logs = result.get("logs")
    return named and is_array(logs) and all(is_object(log) for log in logs)


def _value(result: JsonValue) -> JsonValue:
    return result.get("value") if is_object(result) else None


def _is_account(account: JsonValue) -> bool:
    if not is_object(account):
        return False
    data = account.get("data")
    is_encoded = is_array(data) and bool(data) and isinstance(data[0], str)
    return is_encoded and isinstance(account.get("owner"), str)


def _accounts(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    listed, asked = _value(result), params[0]
    return (
        is_array(listed)
        and is_array(asked)
        and len(listed) == len(asked)
        and all(one is None or _is_account(one) for one in listed)
    )


def _account(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    if not is_object(result) or "value" not in result:
        return False
    return result["value"] is None or is_object(result["value"])


def _program_accounts(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return is_array(result) and all(
        is_object(row)
        and isinstance(row.get("pubkey", ""), str)
        and _is_account(row.get("account"))
        for row in result
    )


def _lamports(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return _is_count(_value(result))


def _signatures(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return is_array(result) and all(
        is_object(row)
        and _SIGNATURE.fullmatch(str(row.get("signature"))) is not None
        and (row.get("blockTime") is None or _is_count(row.get("blockTime"), _I64_MAX))
        for row in result
    )


def _transaction(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return result is None or (is_object(result) and is_object(result.get("transaction")))


def _blockhash(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    value = _value(result)
    return is_object(value) and _is_base58(value.get("blockhash"), _KEY_BYTES)


def _signature(result: JsonValue, params: Sequence[JsonValue]) -> bool:
    del params
    return _is_base58(result, _SIGNATURE_BYTES)


def _is_base58(value: object, size_bytes: int) -> bool:
    if not isinstance(value, str) or not value.isascii() or len(value) > _BASE58_CHARS_MAX:
        return False
    return len(from_base58(value) or b"") == size_bytes


_SHAPES: Mapping[str, _Shape] = {
    "eth_blockNumber": _quantity,
    "eth_chainId": _quantity,
    "eth_gasPrice": _quantity,
    "eth_getTransactionCount": _quantity,
    "eth_getBalance": _balance,
    "eth_getCode": _data,
    "eth_getLogs": _logs,
    "eth_getBlockByNumber": _block,
    "eth_getTransactionReceipt": _receipt,
    "eth_sendRawTransaction": _hash,
    "getAccountInfo": _account,
    "getMultipleAccounts": _accounts,
    "getProgramAccounts": _program_accounts,
    "getBalance": _lamports,
    "getSignaturesForAddress": _signatures,
    "getTransaction": _transaction,
    "getLatestBlockhash": _blockhash,
    "sendTransaction": _signature,
}
