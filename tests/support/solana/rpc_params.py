"""What the calls of a node carry in and out: parameters, accounts, filters, transactions."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from solders.account import Account
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from tests.support.solana import base58
from tests.support.solana.rpc_errors import INVALID_REQUEST, RpcError, invalid

TRANSACTION_BYTES_MAX, SHORT_BYTES_MAX = 1232, 128


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
