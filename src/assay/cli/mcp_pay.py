"""Paying wrappers for a language model, within limits that it cannot change.

A payment counts from the moment it may be signed, whatever comes of it: what is signed can be
settled later. The budget of a process is therefore an upper bound of what it can have spent.
"""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import httpx2

from assay.app import address_of_key
from assay.cli.mcp_service import REQUEST_S, ToolRefused, client, visible
from assay.cli.pay import (
    AGAIN_S,
    AMOUNT_MAX,
    CannotPay,
    PayableRequirement,
    PayingClient,
    call,
    demand_of,
    transaction_of,
)
from assay.common.json import JsonObject
from assay.common.numbers import DECIMALS

ANSWER_BYTES_MAX: Final = 64 * 1024
ANSWER_CHARS_MAX: Final = 8_000
"""Of a wrapper's answer that is handed on."""

RESEND_S: Final = 10.0
"""The same payment is sent again for so long while its outcome is unknown."""

PAYMENT_S: Final = 2 * REQUEST_S + RESEND_S + AGAIN_S
"""Longest that a payment takes: the 402, the time for sending again, and a last answer."""

OPEN_MAX: Final = 1_000
"""Payments of an unknown outcome that are remembered; beyond that nothing is paid."""

_PAYMENT_REQUIRED, _UNAVAILABLE = 402, 503
_TRANSACTION = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class PayLimits:
    """In USD: of one call, and of everything that one process signs."""

    call: Decimal
    total: Decimal


class WrapperPayer:
    """Pays wrappers of one service. Safe to use from several threads.

    Raises `ValueError` if the key is not 64 hex digits.
    """

    def __init__(self, base: str, key: str, limits: PayLimits) -> None:
        address_of_key(key)
        self._base, self._key, self._limits = base, key, limits
        self._left, self._lock = limits.total, threading.Lock()
        self._open: dict[str, float] = {}
        self._http = client(ANSWER_BYTES_MAX)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def quote(self, path: str) -> JsonObject:
        """Return what a call costs; a free wrapper is called. Raises `ToolRefused`."""
        try:
            answer = self._http.get(self._url(path))
            if answer.status_code != _PAYMENT_REQUIRED:
                return {"status": answer.status_code, "priceUsd": None, **self._limits_left()}
            demand = demand_of(answer, AMOUNT_MAX)
        except CannotPay as error:
            raise ToolRefused(str(error)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolRefused(f"the wrapper does not answer ({type(error).__name__})") from None
        return {"status": _PAYMENT_REQUIRED, **_price(demand), **self._limits_left()}

    def pay(self, path: str, max_usd: Decimal) -> JsonObject:
        """Call a wrapper and pay at most `max_usd`. Raises `ToolRefused` if nothing was signed."""
        if max_usd > self._limits.call:
            raise ToolRefused(
                f"maxPriceUsd is above the limit of one call, {self._limits.call} USD"
            )
        self._require_no_open(path)
        signed: list[PayableRequirement] = []

        def approve(demand: PayableRequirement) -> None:
            if not _ADDRESS.fullmatch(demand.payee):
                raise CannotPay("its 402 names no wallet as payee")
            self._reserve(demand.usd)
            signed.append(demand)

        most = int(max_usd.scaleb(DECIMALS))
        payer = PayingClient(self._key, most, approve=approve)
        try:
            answer = call(self._http, self._url(path), payer, _say_nothing, RESEND_S)
        except CannotPay as error:
            if not signed:
                said = str(error).replace("--max-usd", "maxPriceUsd; nothing was paid")
                raise ToolRefused(said) from None
            return self._unknown(path, signed[0])
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            if not signed:
                kind = type(error).__name__
                raise ToolRefused(
                    f"the wrapper does not answer ({kind}); nothing was paid"
                ) from None
            return self._unknown(path, signed[0])
        return self._paid(path, answer, signed[0] if signed else None)

    def _require_no_open(self, path: str) -> None:
        """Refuse to sign again while an earlier payment of the path may still settle."""
        now_s = time.monotonic()
        with self._lock:
            self._open = {one: end_s for one, end_s in self._open.items() if end_s > now_s}
            end_s = self._open.get(path)
            is_full = len(self._open) >= OPEN_MAX
        if end_s is not None or is_full:
            raise ToolRefused(
                "an earlier payment may still be settled, so no other one is signed; it ends in"
                f" {(end_s or min(self._open.values())) - now_s:.0f} seconds"
            )

    def _url(self, path: str) -> str:
        segments = path.partition("?")[0].split("/")
        if any(one in {".", ".."} for one in segments) or "" in segments[1:-1]:
            raise ToolRefused("the path has empty or dot segments")
        return self._base + path

    def _reserve(self, usd: Decimal) -> None:
        with self._lock:
            if usd > self._left:
                raise CannotPay(
                    f"it costs {usd:.6f} USD, and {self._left:.6f} USD are left of the limit of"
                    " this process; nothing was paid"
                )
            self._left -= usd

    def _limits_left(self) -> Mapping[str, str]:
        with self._lock:
            left = f"{self._left:.6f}"
        return {"limitPerCallUsd": str(self._limits.call), "leftUsd": left}

    def _keep_open(self, path: str, demand: PayableRequirement) -> None:
        """Note a payment that was signed and may be settled later: it is paid once until then."""
        with self._lock:
            self._open[path] = time.monotonic() + demand.valid_s

    def _unknown(self, path: str, demand: PayableRequirement) -> JsonObject:
        self._keep_open(path, demand)
        return {"status": None, "outcome": "unknown", **_price(demand), **self._limits_left()}

    def _paid(
        self, path: str, answer: httpx2.Response, demand: PayableRequirement | None
    ) -> JsonObject:
        if demand is not None and answer.status_code == _UNAVAILABLE:
            return self._unknown(path, demand)
        price = {"priceUsd": None} if demand is None else _price(demand)
        try:
            transaction = transaction_of(answer)
        except CannotPay:
            transaction = ""
        is_settled = _TRANSACTION.fullmatch(transaction) is not None
        outcome = "not_paid" if demand is None else "paid" if is_settled else "unknown"
        if demand is not None and not is_settled:
            self._keep_open(path, demand)
        body: JsonObject = {"body": visible(answer.text, ANSWER_CHARS_MAX)}
        return {
            "status": answer.status_code,
            "outcome": outcome,
            "transaction": transaction if is_settled else None,
            **price,
            **self._limits_left(),
            "quoted": body,
        }


def _price(demand: PayableRequirement) -> JsonObject:
    payee = demand.payee if _ADDRESS.fullmatch(demand.payee) else None
    return {"priceUsd": f"{demand.usd:.6f}", "network": demand.network.id, "payee": payee}


def _say_nothing(_text: str) -> None:
    """Ignore the steps: the result has them."""
