# pragma version 0.4.3
"""
@title Attestations as EAS keeps them, written from its interface
@notice Anybody may attest anything; only the attester may revoke.
"""

struct Attestation:
    uid: bytes32
    schema: bytes32
    time: uint64
    expirationTime: uint64
    revocationTime: uint64
    refUID: bytes32
    recipient: address
    attester: address
    revocable: bool
    data: Bytes[4096]

event Attested:
    recipient: indexed(address)
    attester: indexed(address)
    uid: bytes32
    schemaUID: indexed(bytes32)

kept: HashMap[bytes32, Attestation]
count: uint256


@external
def attest(schema: bytes32, recipient: address, expires: uint64, data: Bytes[4096]) -> bytes32:
    self.count += 1
    uid: bytes32 = keccak256(convert(self.count, bytes32))
    self.kept[uid] = Attestation(
        uid=uid,
        schema=schema,
        time=convert(block.timestamp, uint64),
        expirationTime=expires,
        revocationTime=0,
        refUID=empty(bytes32),
        recipient=recipient,
        attester=msg.sender,
        revocable=True,
        data=data,
    )
    log Attested(recipient=recipient, attester=msg.sender, uid=uid, schemaUID=schema)
    return uid


@external
def revoke(uid: bytes32):
    assert self.kept[uid].attester == msg.sender
    self.kept[uid].revocationTime = convert(block.timestamp, uint64)


@external
@view
def getAttestation(uid: bytes32) -> Attestation:
    return self.kept[uid]
