"""Base58 as Bitcoin and Solana write bytes. Source: draft-msporny-base58-03, section 2."""

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Without 0, O, I and l."""

_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_CHARS_MAX = 128
"""Decoding takes the square of the length."""


def decode(text: str) -> bytes | None:
    """The bytes, or None for what is no base58 or longer than anything written so."""
    if len(text) > _CHARS_MAX:
        return None
    number = 0
    for character in text:
        value = _VALUES.get(character)
        if value is None:
            return None
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(data: bytes) -> str:
    """The one text that `decode` reads as these bytes."""
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, value = divmod(number, 58)
        text = ALPHABET[value] + text
    zeros = len(data) - len(data.lstrip(b"\0"))
    return ALPHABET[0] * zeros + text
