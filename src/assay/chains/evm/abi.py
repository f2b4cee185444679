"""The few ABI shapes that chains are asked in and answer with. Pure.

By hand because a general codec lets a hostile reply name the same bytes many times over, so that
megabytes become gigabytes, and because importing one costs 146 ms. Source: Solidity documentation,
"Contract ABI Specification".
"""

WORD = 32
_ADDRESS_BYTES = 20


class BadAnswer(Exception):
    """The bytes are not what the contract answers."""


def word(number: int) -> bytes:
    """A number below 2^256 as one word."""
    return number.to_bytes(WORD, "big")


def address_word(address: str) -> bytes:
    """`0x` and 40 hex digits as one word."""
    return bytes.fromhex(address[2:]).rjust(WORD, b"\0")


def counted(content: bytes) -> bytes:
    """The tail of a `bytes` or `string`: its length, and its bytes filled up to whole words."""
    return word(len(content)) + content.ljust(-(-len(content) // WORD) * WORD, b"\0")


class AbiReader:
    """Reads one answer; whatever is not there, or not in its type's range, raises `BadAnswer`.

    Positions are bytes from the answer's start. The contents read together may not be larger than
    the answer: nothing is copied that was not sent.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._content_left = len(data)

    def number(self, at: int, bits: int = 256) -> int:
        """An unsigned number of at most `bits` bits."""
        raw = self._data[at : at + WORD]
        if len(raw) != WORD:
            raise BadAnswer("less was returned than was announced")
        number = int.from_bytes(raw, "big")
        if number >> bits:
            raise BadAnswer(f"a number of more than {bits} bits")
        return number

    def signed(self, at: int, bits: int) -> int:
        """A two's complement number of `bits` bits, sign-extended to the word as the ABI does."""
        number = self.number(at)
        number -= (number >> 255) << 256
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise BadAnswer(f"a signed number of more than {bits} bits")
        return number

    def address(self, at: int) -> str:
        """An address in lower case."""
        return f"0x{self.number(at, _ADDRESS_BYTES * 8):040x}"

    def content(self, at: int) -> bytes:
        """The bytes of a `bytes` or `string` whose length stands at `at`."""
        length = self.number(at)
        self._content_left -= length
        found = self._data[at + WORD : at + WORD + length] if self._content_left >= 0 else b""
        if len(found) != length:
            raise BadAnswer("less was returned than was announced")
        return found

    def items(self, at: int) -> range:
        """Where the words of the list stand whose length is at `at`."""
        length = self.number(at)
        if length * WORD > len(self._data):
            raise BadAnswer("a list longer than the answer")
        return range(at + WORD, at + WORD + length * WORD, WORD)
