"""Throw-away accounts of the local chain; their keys are public and worth nothing elsewhere."""

from dataclasses import dataclass

from coincurve import PrivateKey

from assay.common.addresses import keccak256

COUNT = 40
FIRST_REVIEWER = 20


@dataclass(frozen=True, slots=True)
class LocalAccount:
    """A funded account."""

    key: str
    address: str


def _account(number: int) -> LocalAccount:
    seed = keccak256(b"assay local account %d" % number)
    public = PrivateKey(seed).public_key.format(compressed=False)[1:]
    address = keccak256(public)[-20:]
    return LocalAccount("0x" + seed.hex(), "0x" + address.hex())


ACCOUNTS = tuple(_account(number) for number in range(COUNT))
"""The first deploys; 1 to 19 own agents; 20 and up give feedback."""
