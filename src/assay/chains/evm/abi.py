"""Encodes and decodes the few ABI shapes that chains use. Pure.

By hand because a general codec lets a hostile reply name the same bytes many times over, so that
megabytes become gigabytes, and because importing one costs 146 ms. Source: Solidity documentation,
"Contract ABI Specification".
"""

WORD = 32
_ADDRESS_BYTES = 20


class BadAnswer(Exception):
    """The bytes are not a valid answer of the contract."""


def word(number: int) -> bytes:
    """Encode a number below 2^256 as one word."""
    return number.to_bytes(WORD, "big")


def address_word(address: str) -> bytes:
    """Encode `0x` and 40 hex digits as one word."""
    return bytes.fromhex(address[2:]).rjust(WORD, b"\0")


def counted(content: bytes) -> bytes:
    """Encode the tail of a `bytes` or `string`: its length, and its bytes padded to whole words."""
    return word(len(content)) + content.ljust(-(-len(content) // WORD) * WORD, b"\0")


class AbiReader:
    """Reads one answer; missing or out-of-range data raises `BadAnswer`.

    Positions are bytes from the answer's start. All contents read may together not exceed the size
    of the answer: nothing is copied that was not sent.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._content_left = len(data)

    def number(self, at: int, bits: int = 256) -> int:
        """Read an unsigned number of at most `bits` bits."""
        raw = self._data[at : at + WORD]
        if len(raw) != WORD:
            raise BadAnswer("less was returned than was announced")
        number = int.from_bytes(raw, "big")
        if number >> bits:
            raise BadAnswer(f"a number of more than {bits} bits")
        return number

    def signed(self, at: int, bits: int) -> int:
        """Read a two's complement number of `bits` bits, sign-extended to a word."""
        number = self.number(at)
        number -= (number >> 255) << 256
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise BadAnswer(f"a signed number of more than {bits} bits")
        return number

    def address(self, at: int) -> str:
        """Read an address in lower case."""
        return f"0x{self.number(at, _ADDRESS_BYTES * 8):040x}"

    def content(self, at: int) -> bytes:
        """Read the bytes of a `bytes` or `string` whose length is at `at`."""
        length = self.number(at)
        self._content_left -= length
        found = self._data[at + WORD : at + WORD + length] if self._content_left >= 0 else b""
        if len(found) != length:
            raise BadAnswer("less was returned than was announced")
        return found

    def items(self, at: int) -> range:
        """Return the positions of the words of the list whose length is at `at`."""
        length = self.number(at)
        if length * WORD > len(self._data):
            raise BadAnswer("a list longer than the answer")
        return range(at + WORD, at + WORD + length * WORD, WORD)
