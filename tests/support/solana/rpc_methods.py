"""The JSON-RPC methods of a Solana node, over a local runtime."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from solders.hash import Hash
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

from tests.support.solana.rpc_errors import (
    METHOD_NOT_FOUND,
    MIN_CONTEXT_SLOT,
    SIGNATURE_FAILURE,
    RpcError,
    error_json,
    invalid,
    preflight_failure,
    result,
)
from tests.support.solana.rpc_params import Params, as_key, encoded, passes, transaction
from tests.support.solana.runtime import Runtime, Sent

VERSION = {"solana-core": "2.3.13", "feature-set": 2142755730}
ACCOUNTS_MAX, FILTERS_MAX = 100, 4
BLOCKHASH_SLOTS = 150
CALLABLE = re.compile("(get|is|request|send|simulate)[A-Z][A-Za-z]+")


@dataclass
class Methods:
    runtime: Runtime
    drops: bool = False
    """The network forgets what the node accepts: a signature, and nothing ever happens."""
    dropped: list[Signature] = field(default_factory=list[Signature])

    def call(self, method: str, params: list[Any]) -> Any:
        """Raises `RpcError`."""
        found: Callable[[Params], Any] | None = getattr(self, f"_{method}", None)
        if found is None or CALLABLE.fullmatch(method) is None:
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
        known = {str(one.signature): _status(one) for one in self.runtime.accepted if _landed(one)}
        return self._in_context([known.get(one) for one in params.at(0)], params.options(1))

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


def _status(sent: Sent) -> dict[str, Any]:
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
