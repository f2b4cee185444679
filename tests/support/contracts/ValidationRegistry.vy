# pragma version 0.4.3
"""
@title ERC-8004 validation registry, written from the interface of the deployed one
@notice Owners and operators of an agent ask; only the validator that was asked answers, as often
        as it likes. An answer of 0 without a hash and a tag looks like none in the status.
"""

struct Status:
    validator: address
    agentId: uint256
    response: uint8
    responseHash: bytes32
    tag: String[64]
    lastUpdate: uint256
    hasResponse: bool

interface Identity:
    def isAuthorizedOrOwner(spender: address, agentId: uint256) -> bool: view

event ValidationRequest:
    validatorAddress: indexed(address)
    agentId: indexed(uint256)
    requestURI: String[512]
    requestHash: indexed(bytes32)

event ValidationResponse:
    validatorAddress: indexed(address)
    agentId: indexed(uint256)
    requestHash: indexed(bytes32)
    response: uint8
    responseURI: String[512]
    responseHash: bytes32
    tag: String[64]

identity: immutable(address)
kept: HashMap[bytes32, Status]
of_agent: HashMap[uint256, DynArray[bytes32, 400]]


@deploy
def __init__(identityRegistry: address):
    identity = identityRegistry


@external
@view
def getIdentityRegistry() -> address:
    return identity


@external
def validationRequest(
    validatorAddress: address, agentId: uint256, requestURI: String[512], requestHash: bytes32
):
    assert validatorAddress != empty(address), "bad validator"
    assert self.kept[requestHash].validator == empty(address), "exists"
    assert staticcall Identity(identity).isAuthorizedOrOwner(msg.sender, agentId), "Not authorized"
    self.kept[requestHash] = Status(
        validator=validatorAddress,
        agentId=agentId,
        response=0,
        responseHash=empty(bytes32),
        tag="",
        lastUpdate=block.timestamp,
        hasResponse=False,
    )
    self.of_agent[agentId].append(requestHash)
    log ValidationRequest(
        validatorAddress=validatorAddress,
        agentId=agentId,
        requestURI=requestURI,
        requestHash=requestHash,
    )


@external
def validationResponse(
    requestHash: bytes32,
    response: uint8,
    responseURI: String[512],
    responseHash: bytes32,
    tag: String[64],
):
    status: Status = self.kept[requestHash]
    assert status.validator != empty(address), "unknown"
    assert msg.sender == status.validator, "not validator"
    assert response <= 100, "resp>100"
    status.response = response
    status.responseHash = responseHash
    status.tag = tag
    status.lastUpdate = block.timestamp
    status.hasResponse = True
    self.kept[requestHash] = status
    log ValidationResponse(
        validatorAddress=status.validator,
        agentId=status.agentId,
        requestHash=requestHash,
        response=response,
        responseURI=responseURI,
        responseHash=responseHash,
        tag=tag,
    )


@external
@view
def getValidationStatus(
    requestHash: bytes32,
) -> (address, uint256, uint8, bytes32, String[64], uint256):
    status: Status = self.kept[requestHash]
    assert status.validator != empty(address), "unknown"
    return (
        status.validator,
        status.agentId,
        status.response,
        status.responseHash,
        status.tag,
        status.lastUpdate,
    )


@external
@view
def getSummary(
    agentId: uint256, validatorAddresses: DynArray[address, 100], tag: String[64]
) -> (uint64, uint8):
    count: uint64 = 0
    total: uint256 = 0
    for requestHash: bytes32 in self.of_agent[agentId]:
        status: Status = self.kept[requestHash]
        if len(validatorAddresses) > 0 and status.validator not in validatorAddresses:
            continue
        if len(tag) > 0 and status.tag != tag:
            continue
        if status.hasResponse:
            count += 1
            total += convert(status.response, uint256)
    if count == 0:
        return 0, 0
    return count, convert(total // convert(count, uint256), uint8)


@external
@view
def getAgentValidations(agentId: uint256) -> DynArray[bytes32, 400]:
    return self.of_agent[agentId]
