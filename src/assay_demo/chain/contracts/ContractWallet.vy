# pragma version 0.4.3
"""
@title A wallet that is a contract: its owner's signatures are its own (ERC-1271)
"""

owner: public(immutable(address))


@deploy
def __init__(wallet_owner: address):
    owner = wallet_owner


@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[1024]) -> bytes4:
    if len(signature) == 65:
        r: uint256 = convert(slice(signature, 0, 32), uint256)
        s: uint256 = convert(slice(signature, 32, 32), uint256)
        v: uint256 = convert(slice(signature, 64, 1), uint256)
        if ecrecover(digest, v, r, s) == owner:
            return 0x1626ba7e
    return 0xffffffff
