# pragma version ~=0.4.3
"""
@title A dollar for local chains, with EIP-3009 as Circle's has it
@notice Anybody may mint. Written from EIP-20, EIP-712 and EIP-3009; worth nothing anywhere.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

event AuthorizationUsed:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

event AuthorizationCanceled:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

DOMAIN_TYPE: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
TRANSFER_TYPE: constant(bytes32) = keccak256(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
CANCEL_TYPE: constant(bytes32) = keccak256(
    "CancelAuthorization(address authorizer,bytes32 nonce)"
)
HALF_ORDER: constant(bytes32) = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
BASE: constant(uint256) = 8453

version: public(constant(String[1])) = "2"
symbol: public(constant(String[4])) = "USDC"
decimals: public(constant(uint8)) = 6

totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])

@view
@external
def name() -> String[8]:
    return self._name()

@view
@internal
def _name() -> String[8]:
    """Circle's own names differ between Base and Base Sepolia."""
    return "USD Coin" if chain.id == BASE else "USDC"

@external
def mint(to: address, amount: uint256):
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log Transfer(sender=empty(address), receiver=to, value=amount)

@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True

@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True

@external
def transferFrom(owner: address, to: address, amount: uint256) -> bool:
    self.allowance[owner][msg.sender] -= amount
    self._move(owner, to, amount)
    return True

@external
def transferWithAuthorization(
    owner: address,
    to: address,
    amount: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes32,
    v: uint8,
    r: bytes32,
    s: bytes32,
):
    assert block.timestamp > validAfter, "authorization is not yet valid"
    assert block.timestamp < validBefore, "authorization is expired"
    assert not self.authorizationState[owner][nonce], "authorization is used or canceled"
    self._check(
        owner,
        keccak256(abi_encode(TRANSFER_TYPE, owner, to, amount, validAfter, validBefore, nonce)),
        v,
        r,
        s,
    )
    self.authorizationState[owner][nonce] = True
    log AuthorizationUsed(authorizer=owner, nonce=nonce)
    self._move(owner, to, amount)

@external
def cancelAuthorization(authorizer: address, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert not self.authorizationState[authorizer][nonce], "authorization is used or canceled"
    self._check(authorizer, keccak256(abi_encode(CANCEL_TYPE, authorizer, nonce)), v, r, s)
    self.authorizationState[authorizer][nonce] = True
    log AuthorizationCanceled(authorizer=authorizer, nonce=nonce)

@view
@external
def DOMAIN_SEPARATOR() -> bytes32:
    return self._domain()

@view
@internal
def _domain() -> bytes32:
    return keccak256(
        abi_encode(DOMAIN_TYPE, keccak256(self._name()), keccak256(version), chain.id, self)
    )

@view
@internal
def _check(owner: address, struct_hash: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert convert(s, uint256) <= convert(HALF_ORDER, uint256), "invalid signature s"
    digest: bytes32 = keccak256(concat(b"\x19\x01", self._domain(), struct_hash))
    assert owner != empty(address) and ecrecover(digest, v, r, s) == owner, "invalid signature"

@internal
def _move(owner: address, to: address, amount: uint256):
    assert to != empty(address), "to the zero address"
    assert self.balanceOf[owner] >= amount, "transfer amount exceeds balance"
    self.balanceOf[owner] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=owner, receiver=to, value=amount)
