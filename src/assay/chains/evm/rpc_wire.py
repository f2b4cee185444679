"""JSON-RPC 2.0 as Ethereum nodes speak it, and the required shape of each answer. Pure.

JSON-RPC 2.0 as Ethereum nodes speak it: strict about answers, aware of dialects.

The required shape of a node's answer to each method.

An answer of another shape means that the node is not credible, and the next one is asked: a later
reader could only fail. Sources: execution-apis (Ethereum JSON-RPC); Solana JSON-RPC.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic_core import from_json

from assay.chains.rpc import Reverted
from assay.common.addresses import decode as from_base58
from assay.common.json import JsonObject, JsonValue, has_values_beyond, is_array, is_object
from assay.common.numbers import NotANumber, hex_number, whole_number

REVERT_CODE = 3
"""Source: the error code geth gave reverts and the execution-apis specification adopted."""

_QUANTITY_BITS = 64
_CODE_MAX = 2**31
_MESSAGE_CHARS_MAX = 500
_BYTES = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_REVERT_WORDS = re.compile(
    r"\brevert(?:ed)?\b|invalid opcode|invalid jump|stack (?:under|over)flow", re.IGNORECASE
)
"""Wordings by which nodes report a revert without data."""

_LAG_WORDS = re.compile(
    r"header not found|unknown block|block not found|missing trie node|resource not found"
    r"|no state available|height .*not available|block .*(?:not available|does not exist)"
    r"|beyond current head",
    re.IGNORECASE,
)
"""Wordings by which nodes report that they lack the block (geth, erigon, nethermind, besu,
reth)."""


class MalformedRpcAnswer(Exception):
    """The answer violates JSON-RPC or the method."""


@dataclass(frozen=True, slots=True)
class RpcResult:
    """The node's answer."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class NodeError:
    """The node's refusal, in its own words."""

    code: int
    message: str
    data: JsonValue

    @property
    def says_block_is_unknown(self) -> bool:
        """Return whether the node is behind the one that reported the block number."""
        return _LAG_WORDS.search(self.message) is not None


RpcResponse = RpcResult | NodeError

VALUES_MAX = 400_000
"""Values in one reply: eight mebibytes of logs have half as many, a reply of only commas ten
times."""

_BOM = b"\xef\xbb\xbf"


def request_of(request_id: int, method: str, params: Sequence[JsonValue]) -> JsonObject:
    """Return one request object."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": list(params)}


def decode(body: bytes) -> JsonValue:
    """Decode the JSON of a reply. Raises `MalformedRpcAnswer`."""
    if has_values_beyond(body, VALUES_MAX):
        raise MalformedRpcAnswer("the reply holds too many values")
    try:
        # Takes a third of the time of `json`, and itself limits nesting to 200.
        return from_json(body.removeprefix(_BOM), allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise MalformedRpcAnswer("the reply is not JSON") from error


def answer_of(reply: JsonValue, request_id: int) -> RpcResponse:
    """Return the response to the request `request_id`. Raises `MalformedRpcAnswer` otherwise."""
    if not is_object(reply) or _id_of(reply) != request_id:
        raise MalformedRpcAnswer("the reply does not carry the id of the request")
    error = reply.get("error")
    if error is None:
        if "result" not in reply:
            raise MalformedRpcAnswer("the reply has neither result nor error")
        return RpcResult(reply["result"])
    return error_of(error)


def error_of(error: JsonValue) -> NodeError:
    """Read an error object. Raises `MalformedRpcAnswer`."""
    if not is_object(error):
        raise MalformedRpcAnswer("the error is not an object")
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool) or not isinstance(message, str):
        raise MalformedRpcAnswer("the error has no code or message")
    if not -_CODE_MAX <= code < _CODE_MAX:
        raise MalformedRpcAnswer("the error has a code that is out of range")
    return NodeError(code, _printable(message[:_MESSAGE_CHARS_MAX]), error.get("data"))


def _printable(text: str) -> str:
    """Make text safe to log and store: JSON can spell lone surrogates and NUL, databases cannot."""
    return "".join(c if c.isprintable() else " " for c in text)


def answers_of(reply: Sequence[JsonValue], ids: Sequence[int]) -> list[RpcResponse]:
    """Return the answers of a batch in the order of `ids`, however the node ordered them.

    Raises `MalformedRpcAnswer` unless every id is answered exactly once.
    """
    by_id = {_id_of(item): item for item in reply if is_object(item)}
    if len(reply) != len(ids) or set(by_id) != set(ids):
        raise MalformedRpcAnswer("the batch does not answer every request once")
    return [answer_of(by_id[request_id], request_id) for request_id in ids]


def _id_of(reply: JsonObject) -> int | None:
    """Return the id if it is a whole number like ours; None for any other JSON value."""
    given = reply.get("id")
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def quantity_of(answer: RpcResponse) -> int:
    """Return the number a node answered with. Raises `MalformedRpcAnswer`."""
    value = answer.value if isinstance(answer, RpcResult) else None
    try:
        return hex_number(value, _QUANTITY_BITS)
    except NotANumber:
        raise MalformedRpcAnswer("the answer is not a quantity") from None


def bytes_of(value: JsonValue) -> bytes:
    """Decode hex data. Raises `MalformedRpcAnswer`."""
    if isinstance(value, str) and _BYTES.fullmatch(value):
        return bytes.fromhex(value[2:])
    raise MalformedRpcAnswer("the answer is not hex data")


def revert_of(error: NodeError) -> Reverted | None:
    """Return the contract's own refusal, in any spelling of nodes, or None.

    Data as a string (geth), with words before it (OpenEthereum), inside an object (hardhat,
    ganache), or no data and only words. A revert is an answer, whatever its error code.
    """
    data = _revert_data(error.data)
    if error.code == REVERT_CODE or data or _REVERT_WORDS.search(error.message):
        return Reverted(data, error.message)
    return None


def _revert_data(data: JsonValue) -> bytes:
    if is_object(data):
        data = data.get("data", data.get("result"))
        if is_object(data):
            data = data.get("data")
    if not isinstance(data, str):
        return b""
    text = data.removeprefix("Reverted ").strip()
    return bytes.fromhex(text[2:]) if _BYTES.fullmatch(text) else b""


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
