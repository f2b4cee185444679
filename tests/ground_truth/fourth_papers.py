"""Trades of papers: masking personal data, reading invoices."""

import re

from tests.ground_truth.fourth_texts import MAIL, NAME, PHONE
from tests.ground_truth.fourth_words import days, short


def mask(text: str) -> tuple[str, dict[str, int]]:
    """A text without personal data, and how much of each kind was there."""
    counts: dict[str, int] = {}
    kinds = (
        ("EMAIL", MAIL),
        ("IBAN", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
        ("CARD", r"\b(?:\d[ -]?){13,16}\b"),
        ("PHONE", PHONE),
        ("NAME", NAME),
    )
    for name, pattern in kinds:
        text, number = re.subn(pattern, f"[{name}]", text)
        if number:
            counts[name.lower()] = number
    return text, counts


def amount(said: str) -> float:
    """An amount with thousands in either style: 1,240.00 and 1.240,00."""
    if re.search(r"[.,]\d\d?$", said):
        whole, cents = re.split(r"[.,](?=\d\d?$)", said)
        return float(f"{re.sub('[.,]', '', whole)}.{cents}")
    return float(re.sub(r"[.,]", "", said))


def invoice(text: str) -> dict[str, object]:
    """The fields of an invoice's text."""
    number = re.search((r"(?:invoice|bill|inv)\.?\s*(?:no\.?|number|#|nr\.?"
                       r"|n\u00ba)?\s*:?\s*#?([A-Z0-9][\w/-]*\d[\w/-]*)"),
                       text, re.IGNORECASE)  # fmt: skip
    total = re.search(
        r"(?<!sub)(?<!sub-)(?:total|amount due|balance due|to pay)[^\d\n]{0,25}(\d[\d.,]*\d|\d)",
        text,
        re.IGNORECASE,
    )
    vat = re.search(r"(?:VAT|tax|GST)[^\d\n]{0,12}(\d+(?:\.\d+)?)\s*%", text, re.IGNORECASE)
    money = re.search(r"EUR|USD|GBP|CHF|[\u20ac$\u00a3]", text)
    seller = re.search(r"(?i:from|seller|supplier|issued by)[: ]+([A-Z][\w&' -]{2,50})", text)
    after = re.split(r"(?i)\bdue\b(?! (?:to|for)\b)(?=\D{1,14}\d)", text, maxsplit=1)[1:]
    dates, due = ([d.isoformat() for d in days(part)] for part in (text, "".join(after)))
    signs = {"\u20ac": "EUR", "$": "USD", "\u00a3": "GBP"}
    return {
        "number": number[1] if number else None,
        "seller": seller[1].strip(" .") if seller else None,
        "issued": next((d for d in dates if d not in due), None),
        "due": due[0] if due else None,
        "total": short(amount(total[1])) if total else None,
        "vat_percent": float(vat[1]) if vat else None,
        "currency": signs.get(money[0], money[0]) if money else None,
    }
