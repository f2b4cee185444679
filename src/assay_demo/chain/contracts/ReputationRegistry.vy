# pragma version 0.4.3
"""
@title ERC-8004 reputation registry, written from the EIP's interface for local chains
@notice At most 400 rows in one readAllFeedback; tags are cut off at 64 bytes by the type.
"""

MAX_ROWS: constant(uint256) = 400
MAX_CLIENTS: constant(uint256) = 400
MAX_DECIMALS: constant(uint8) = 18
MAX_VALUE: constant(int128) = 10**38

struct Row:
    feedback_value: int128
    decimals: uint8
    tag1: String[64]
    tag2: String[64]
    revoked: bool

interface Identity:
    def isAuthorizedOrOwner(spender: address, agentId: uint256) -> bool: view

event NewFeedback:
    agentId: indexed(uint256)
    clientAddress: indexed(address)
    feedbackIndex: uint64
    feedbackValue: int128
    valueDecimals: uint8
    indexedTag1: indexed(String[64])
    tag1: String[64]
    tag2: String[64]
    endpoint: String[512]
    feedbackURI: String[512]
    feedbackHash: bytes32

event FeedbackRevoked:
    agentId: indexed(uint256)
    clientAddress: indexed(address)
    feedbackIndex: indexed(uint64)

identity: immutable(address)
rows: HashMap[uint256, HashMap[address, HashMap[uint64, Row]]]
last: HashMap[uint256, HashMap[address, uint64]]
clients: HashMap[uint256, DynArray[address, MAX_CLIENTS]]


@deploy
def __init__(identityRegistry: address):
    identity = identityRegistry


@external
@pure
def getVersion() -> String[8]:
    return "2.0.0"


@external
@view
def getIdentityRegistry() -> address:
    return identity


@external
def giveFeedback(
    agentId: uint256,
    feedbackValue: int128,
    valueDecimals: uint8,
    tag1: String[64],
    tag2: String[64],
    endpoint: String[512],
    feedbackURI: String[512],
    feedbackHash: bytes32,
):
    assert valueDecimals <= MAX_DECIMALS, "too many decimals"
    assert feedbackValue <= MAX_VALUE and feedbackValue >= -MAX_VALUE, "value too large"
    own: bool = staticcall Identity(identity).isAuthorizedOrOwner(msg.sender, agentId)
    assert not own, "Self-feedback not allowed"
    index: uint64 = self.last[agentId][msg.sender] + 1
    if index == 1:
        self.clients[agentId].append(msg.sender)
    self.last[agentId][msg.sender] = index
    self.rows[agentId][msg.sender][index] = Row(
        feedback_value=feedbackValue, decimals=valueDecimals, tag1=tag1, tag2=tag2, revoked=False
    )
    log NewFeedback(
        agentId=agentId,
        clientAddress=msg.sender,
        feedbackIndex=index,
        feedbackValue=feedbackValue,
        valueDecimals=valueDecimals,
        indexedTag1=tag1,
        tag1=tag1,
        tag2=tag2,
        endpoint=endpoint,
        feedbackURI=feedbackURI,
        feedbackHash=feedbackHash,
    )


@external
def revokeFeedback(agentId: uint256, feedbackIndex: uint64):
    self._check_index(agentId, msg.sender, feedbackIndex)
    assert not self.rows[agentId][msg.sender][feedbackIndex].revoked, "Already revoked"
    self.rows[agentId][msg.sender][feedbackIndex].revoked = True
    log FeedbackRevoked(agentId=agentId, clientAddress=msg.sender, feedbackIndex=feedbackIndex)


@external
@view
def readFeedback(
    agentId: uint256, clientAddress: address, feedbackIndex: uint64
) -> (int128, uint8, String[64], String[64], bool):
    self._check_index(agentId, clientAddress, feedbackIndex)
    row: Row = self.rows[agentId][clientAddress][feedbackIndex]
    return row.feedback_value, row.decimals, row.tag1, row.tag2, row.revoked


@external
@view
def getClients(agentId: uint256) -> DynArray[address, MAX_CLIENTS]:
    return self.clients[agentId]


@external
@view
def getLastIndex(agentId: uint256, clientAddress: address) -> uint64:
    return self.last[agentId][clientAddress]


@external
@view
def readAllFeedback(
    agentId: uint256,
    clientAddresses: DynArray[address, MAX_CLIENTS],
    tag1: String[64],
    tag2: String[64],
    includeRevoked: bool,
) -> (
    DynArray[address, MAX_ROWS],
    DynArray[uint64, MAX_ROWS],
    DynArray[int128, MAX_ROWS],
    DynArray[uint8, MAX_ROWS],
    DynArray[String[64], MAX_ROWS],
    DynArray[String[64], MAX_ROWS],
    DynArray[bool, MAX_ROWS],
):
    who: DynArray[address, MAX_CLIENTS] = clientAddresses
    if len(who) == 0:
        who = self.clients[agentId]
    addresses: DynArray[address, MAX_ROWS] = []
    indexes: DynArray[uint64, MAX_ROWS] = []
    values: DynArray[int128, MAX_ROWS] = []
    decimals: DynArray[uint8, MAX_ROWS] = []
    firsts: DynArray[String[64], MAX_ROWS] = []
    seconds: DynArray[String[64], MAX_ROWS] = []
    revoked: DynArray[bool, MAX_ROWS] = []
    for client: address in who:
        for n: uint64 in range(400):
            if n >= self.last[agentId][client]:
                break
            row: Row = self.rows[agentId][client][n + 1]
            if row.revoked and not includeRevoked:
                continue
            if len(tag1) > 0 and keccak256(tag1) != keccak256(row.tag1):
                continue
            if len(tag2) > 0 and keccak256(tag2) != keccak256(row.tag2):
                continue
            addresses.append(client)
            indexes.append(n + 1)
            values.append(row.feedback_value)
            decimals.append(row.decimals)
            firsts.append(row.tag1)
            seconds.append(row.tag2)
            revoked.append(row.revoked)
    return addresses, indexes, values, decimals, firsts, seconds, revoked


@internal
@view
def _check_index(agent_id: uint256, client: address, index: uint64):
    assert index > 0, "index must be > 0"
    assert index <= self.last[agent_id][client], "index out of bounds"
