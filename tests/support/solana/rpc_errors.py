"""Errors as a Solana node words them: JSON-RPC codes, `data.err`, sentences."""

import json
import re
from typing import Any

from solders.rpc.responses import RpcSimulateTransactionResult
from solders.transaction_metadata import TransactionMetadata
from solders.transaction_status import TransactionErrorType

INVALID_PARAMS, METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR = -32602, -32601, -32600, -32700
PREFLIGHT_FAILURE, SIGNATURE_FAILURE, MIN_CONTEXT_SLOT = -32002, -32003, -32016

SENTENCES = {
    "AccountNotFound": "Attempt to debit an account but found no record of a prior credit.",
    "AlreadyProcessed": "This transaction has already been processed",
    "BlockhashNotFound": "Blockhash not found",
    "InsufficientFundsForFee": "Insufficient funds for fee",
    "InvalidAccountForFee": "This account may not be used to pay transaction fees",
    "InvalidProgramForExecution": "This program may not be used for executing instructions",
    "ProgramAccountNotFound": "Attempt to load a program that does not exist",
    "SignatureFailure": "Transaction did not pass signature verification",
}


class RpcError(Exception):
    """Answered as a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


def invalid(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message)


def result(error: TransactionErrorType | None, meta: TransactionMetadata | None) -> dict[str, Any]:
    """How a simulation went, as `simulateTransaction` and a preflight tell it."""
    logs = meta.logs() if meta else []
    units = meta.compute_units_consumed() if meta else 0
    told = RpcSimulateTransactionResult(err=error, logs=logs, units_consumed=units)
    names = ("accounts", "err", "innerInstructions", "loadedAccountsDataSize", "logs")
    more = ("replacementBlockhash", "returnData", "unitsConsumed")
    whole = json.loads(told.to_json())
    return {name: whole[name] for name in names + more} | {"loadedAccountsDataSize": 0}


def error_json(error: TransactionErrorType | None) -> Any:
    """The member `err` of a transaction's result."""
    return result(error, None)["err"]


def sentence(error: TransactionErrorType, logs: list[str]) -> str:
    told = error_json(error)
    if isinstance(told, str):
        return SENTENCES.get(told, told)
    if "InsufficientFundsForRent" in told:
        place = told["InsufficientFundsForRent"]["account_index"]
        return f"Transaction results in an account ({place}) with insufficient funds for rent"
    index, inner = told["InstructionError"]
    if isinstance(inner, dict) and "Custom" in inner:
        return f"Error processing Instruction {index}: custom program error: {inner['Custom']:#x}"
    failed = [found[1] for line in logs if (found := re.search(r" failed: (.+)", line))]
    return f"Error processing Instruction {index}: {failed[-1] if failed else inner}"


def preflight_failure(error: TransactionErrorType, meta: TransactionMetadata) -> RpcError:
    message = f"Transaction simulation failed: {sentence(error, meta.logs())}"
    return RpcError(PREFLIGHT_FAILURE, message, result(error, meta))
