"""The hash of Ethereum."""

import sha3  # pyright: ignore[reportMissingTypeStubs]


def keccak256(data: bytes) -> bytes:
    """The 32 bytes of Keccak-256: padded as before FIPS 202. Source: Yellow Paper, appendix B."""
    return sha3.keccak_256(data).digest()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
