"""The JSON-RPC methods of a Solana node, over a local runtime."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from solders.account import Account
from solders.hash import Hash
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

from tests.services.solana import base58
from tests.services.solana.rpc_errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MIN_CONTEXT_SLOT,
    SIGNATURE_FAILURE,
    RpcError,
    error_json,
    invalid,
    preflight_failure,
    result,
)
from tests.services.solana.runtime import Runtime, Sent

VERSION = {"solana-core": "2.3.13", "feature-set": 2142755730}
TRANSACTION_BYTES_MAX, ACCOUNTS_MAX, FILTERS_MAX, SHORT_BYTES_MAX = 1232, 100, 4, 128
BLOCKHASH_SLOTS = 150


@dataclass
class Params:
    """The parameters of a call: what comes in order, and the options behind it."""

    values: list[Any]

    def at(self, place: int) -> Any:
        if place >= len(self.values):
            raise invalid(f"`params` should have at least {place + 1} argument(s)")
        return self.values[place]

    def key(self, place: int) -> Pubkey:
        return as_key(self.at(place))

    def options(self, place: int) -> dict[str, Any]:
        found = self.values[place] if place < len(self.values) else None
        if found is not None and not isinstance(found, dict):
            raise invalid(f"Invalid params: invalid type: {type(found).__name__}, expected a map")
        return dict[str, Any](found or {})  # pyright: ignore[reportUnknownArgumentType]


def as_key(text: object) -> Pubkey:
    if not isinstance(text, str):
        raise invalid("Invalid params: invalid type, expected a string")
    try:
        raw = base58.decode(text)
    except ValueError:
        raise invalid("Invalid param: Invalid") from None
    if len(raw) != Pubkey.LENGTH:
        raise invalid("Invalid param: WrongSize")
    return Pubkey.from_bytes(raw)


def encoded(account: Account, options: dict[str, Any]) -> dict[str, Any]:
    data, part = bytes(account.data), options.get("dataSlice")
    if part is not None:
        data = data[part["offset"] : part["offset"] + part["length"]]
    encoding = options.get("encoding", "binary")
    shown: Any
    if encoding in {"base64", "jsonParsed"}:  # no parser knows these programs
        shown = [base64.b64encode(data).decode(), "base64"]
    elif encoding in {"binary", "base58"}:
        if len(data) > SHORT_BYTES_MAX:
            limit = f"should be less than {SHORT_BYTES_MAX} bytes"
            message = f"Encoded binary (base 58) data {limit}, please use Base64 encoding."
            raise RpcError(INVALID_REQUEST, message)
        shown = base58.encode(data)
        shown = [shown, "base58"] if encoding == "base58" else shown
    else:
        raise invalid(f"Invalid params: unknown variant `{encoding}`")
    return {
        "data": shown,
        "executable": account.executable,
        "lamports": account.lamports,
        "owner": str(account.owner),
        "rentEpoch": account.rent_epoch,
        "space": len(account.data),
    }


def passes(account: Account, one: dict[str, Any]) -> bool:
    """Whether an account meets a filter of getProgramAccounts."""
    data = bytes(account.data)
    if "dataSize" in one:
        return len(data) == one["dataSize"]
    if "memcmp" not in one:
        raise invalid("Invalid params: unknown filter")
    wanted, encoding = one["memcmp"]["bytes"], one["memcmp"].get("encoding", "base58")
    try:
        short = encoding == "base58"
        raw = base58.decode(wanted) if short else base64.b64decode(wanted, validate=True)
    except (ValueError, binascii.Error):
        raise invalid("Invalid param: failed to decode the bytes of a filter") from None
    if len(raw) > SHORT_BYTES_MAX:
        raise invalid("Invalid param: encoded binary (base 58) data is too large")
    offset = one["memcmp"]["offset"]
    return data[offset : offset + len(raw)] == raw


def transaction(text: object, encoding: str) -> VersionedTransaction:
    kind = "solana_transaction::versioned::VersionedTransaction"
    if not isinstance(text, str):
        raise invalid("Invalid params: invalid type, expected a string")
    try:
        if encoding == "base64":
            raw = base64.b64decode(text, validate=True)
        elif encoding == "base58":
            raw = base58.decode(text)
        else:
            raise invalid(f"unsupported encoding: {encoding}. Supported encodings: base58, base64")
    except (ValueError, binascii.Error):
        raise invalid(f"invalid {encoding} encoding") from None
    if len(raw) > TRANSACTION_BYTES_MAX:
        raise invalid(f"decoded {kind} too large: {len(raw)} bytes (max: 1232 bytes)")
    try:
        made = VersionedTransaction.from_bytes(raw)
        made.sanitize()
    except Exception as error:  # noqa: BLE001 - the library has no class of its own for it
        raise invalid(f"failed to deserialize {kind}: {error}") from None
    return made


@dataclass
class Methods:
    runtime: Runtime
    drops: bool = False
    """The network forgets what the node accepts: a signature, and nothing ever happens."""
    dropped: list[Signature] = field(default_factory=list[Signature])

    def call(self, method: str, params: list[Any]) -> Any:
        """Raises `RpcError`."""
        found: Callable[[Params], Any] | None = getattr(self, f"_{method}", None)
        if not method.isalpha() or found is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        return found(Params(params))

    def _in_context(self, value: object, options: dict[str, Any]) -> dict[str, Any]:
        slot, least = self.runtime.slot, options.get("minContextSlot", 0)
        if least > slot:
            message = "Minimum context slot has not been reached"
            raise RpcError(MIN_CONTEXT_SLOT, message, {"contextSlot": slot})
        context = {"apiVersion": VERSION["solana-core"], "slot": slot}
        return {"context": context, "value": value}

    def _shown(self, key: Pubkey, options: dict[str, Any]) -> dict[str, Any] | None:
        found = self.runtime.account(key)
        return None if found is None else encoded(found, options)

    def _getAccountInfo(self, params: Params) -> Any:
        options = params.options(1)
        return self._in_context(self._shown(params.key(0), options), options)

    def _getMultipleAccounts(self, params: Params) -> Any:
        keys, options = params.at(0), params.options(1)
        if len(keys) > ACCOUNTS_MAX:
            raise invalid(f"Too many inputs provided; max {ACCOUNTS_MAX}")
        options.setdefault("encoding", "base64")
        return self._in_context([self._shown(as_key(one), options) for one in keys], options)

    def _getProgramAccounts(self, params: Params) -> Any:
        options = params.options(1)
        filters: list[dict[str, Any]] = options.get("filters") or []
        if len(filters) > FILTERS_MAX:
            raise invalid(f"Too many filters provided; max {FILTERS_MAX}")
        found = [
            {"account": encoded(account, options), "pubkey": str(address)}
            for address, account in self.runtime.owned_by(params.key(0))
            if all(passes(account, one) for one in filters)
        ]
        whole = self._in_context(found, options)
        return whole if options.get("withContext") else found

    def _getBalance(self, params: Params) -> Any:
        found = self.runtime.account(params.key(0))
        return self._in_context(found.lamports if found else 0, params.options(1))

    def _getLatestBlockhash(self, params: Params) -> Any:
        told = {
            "blockhash": str(self.runtime.blockhash()),
            "lastValidBlockHeight": self.runtime.slot + BLOCKHASH_SLOTS,
        }
        return self._in_context(told, params.options(0))

    def _isBlockhashValid(self, params: Params) -> Any:
        same = str(self.runtime.blockhash()) == params.at(0)
        return self._in_context(same, params.options(1))

    def _getSlot(self, params: Params) -> Any:
        return self._in_context(None, params.options(0))["context"]["slot"]

    _getBlockHeight = _getSlot  # no slot is ever skipped here  # noqa: N815

    def _getEpochInfo(self, params: Params) -> Any:
        slot = self._getSlot(params)
        epoch, index = divmod(slot, 432_000)
        told = {"absoluteSlot": slot, "blockHeight": slot, "epoch": epoch, "slotIndex": index}
        return told | {"slotsInEpoch": 432_000, "transactionCount": len(self.runtime.accepted)}

    def _getVersion(self, _: Params) -> Any:
        return VERSION

    def _getHealth(self, _: Params) -> Any:
        return "ok"

    def _getGenesisHash(self, _: Params) -> Any:
        return self.runtime.registry.cluster.genesis

    def _getMinimumBalanceForRentExemption(self, params: Params) -> Any:
        return self.runtime.rent(params.at(0))

    def _requestAirdrop(self, params: Params) -> Any:
        self.runtime.fund(params.key(0), params.at(1))
        return str(Signature.new_unique())  # the faucet's own transactions are not kept

    def _getSignatureStatuses(self, params: Params) -> Any:
        known = {str(one.signature): one for one in self.runtime.accepted}
        found = [known.get(one) for one in params.at(0)]
        return self._in_context([one and _status(one) for one in found], params.options(1))

    def _getSignaturesForAddress(self, params: Params) -> Any:
        key, options = params.key(0), params.options(1)
        found = [
            {"signature": str(one.signature), "slot": one.slot, "err": error_json(one.error)}
            | {"memo": None, "blockTime": None, "confirmationStatus": "finalized"}
            for one in reversed(self.runtime.accepted)
            if key in one.transaction.message.account_keys and _landed(one)
        ]
        return found[: options.get("limit", 1000)]

    def _simulateTransaction(self, params: Params) -> Any:
        options = params.options(1)
        wanted = transaction(params.at(0), options.get("encoding", "base58"))
        replace, verify = options.get("replaceRecentBlockhash"), options.get("sigVerify", False)
        if replace and verify:
            raise invalid("sigVerify may not be used with replaceRecentBlockhash")
        if replace:
            wanted = _replaced(wanted, self.runtime.blockhash())
        if verify and not all(wanted.verify_with_results()):
            raise RpcError(SIGNATURE_FAILURE, "Transaction signature verification failure")
        done = self.runtime.simulate(wanted, verify=verify)
        error = done.err() if isinstance(done, FailedTransactionMetadata) else None
        return self._in_context(result(error, done.meta()), options)

    def _sendTransaction(self, params: Params) -> Any:
        options = params.options(1)
        wanted = transaction(params.at(0), options.get("encoding", "base58"))
        self._in_context(None, options)
        if not options.get("skipPreflight"):
            if not all(wanted.verify_with_results()):
                raise RpcError(SIGNATURE_FAILURE, "Transaction signature verification failure")
            done = self.runtime.simulate(wanted)
            if isinstance(done, FailedTransactionMetadata):
                raise preflight_failure(done.err(), done.meta())
        if self.drops:
            self.dropped.append(wanted.signatures[0])
        else:
            self.runtime.send(wanted)
        return str(wanted.signatures[0])


def _landed(sent: Sent) -> bool:
    """Whether it is in a block: without effect perhaps, but paid for."""
    error = error_json(sent.error)
    return error is None or (isinstance(error, dict) and "InstructionError" in error)


def _status(sent: Sent) -> dict[str, Any] | None:
    if not _landed(sent):
        return None
    error = error_json(sent.error)
    told = {"Ok": None} if error is None else {"Err": error}
    at = {"slot": sent.slot, "confirmations": None, "confirmationStatus": "finalized"}
    return at | {"err": error, "status": told}


def _replaced(wanted: VersionedTransaction, blockhash: Hash) -> VersionedTransaction:
    """The same transaction with a fresh blockhash; its signatures do not fit it any more."""
    message = wanted.message
    assert isinstance(message, Message | MessageV0)
    told = json.loads(message.to_json())
    told["recentBlockhash"] = list(bytes(blockhash))
    made = type(message).from_json(json.dumps(told))
    return VersionedTransaction.populate(made, wanted.signatures)
