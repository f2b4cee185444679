"""Base 58 of any length, for what the key and signature types do not cover."""

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def encode(data: bytes) -> str:
    zeros = len(data) - len(data.lstrip(b"\0"))
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = LETTERS[rest] + text
    return "1" * zeros + text


def decode(text: str) -> bytes:
    """Raises `ValueError` where a letter is none."""
    number = 0
    for letter in text:
        number = number * 58 + LETTERS.index(letter)
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
