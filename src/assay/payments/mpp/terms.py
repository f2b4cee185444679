"""What an MPP challenge asks for, and what it is bound to."""

import hashlib
from decimal import Decimal
from typing import Any

from assay.common.money import DECIMALS
from assay.payments.model import Quote
from assay.payments.mpp.credentials import FEE_RATE

_PATH_CHARS_MAX = 1024
"""Longest path that a challenge names; of a longer one its hash, so that credentials fit."""


def terms_of(quote: Quote) -> dict[str, Any]:
    """Who is paid how much, and in what."""
    fee = quote.direct_fee
    splits = {"splits": [{"recipient": fee.payee, "amount": str(fee.amount)}]} if fee else {}
    return {
        **splits,
        "amount": f"{Decimal(quote.amount).scaleb(-DECIMALS):f}",
        "recipient": quote.pay_to,
        "currency": quote.network.asset.address,
        "chain_id": quote.network.chain_id,
    }


def meta_of(quote: Quote) -> dict[str, str]:
    """What a challenge is bound to, and the rate of its fee.

    The library does not look at its own scope where a credential is read apart from a handler.
    Source: facts, payments 4.5.
    """
    path = quote.path if len(quote.path) <= _PATH_CHARS_MAX else _hashed(quote.path)
    about = {"path": path, "query": _hashed(quote.query), "method": quote.method}
    if quote.direct_fee is not None and quote.fee_rate is not None:
        about[FEE_RATE] = f"{quote.fee_rate:f}"
    return {"wrapper": quote.wrapper_id, **about}


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
