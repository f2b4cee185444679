# pragma version 0.4.3
"""
@title ERC-8004 identity registry, written from the EIP's interface for local chains
@notice ERC-721 without enumeration: ids count up from 0 and are never burned.
"""

struct MetadataEntry:
    metadataKey: String[64]
    metadataValue: Bytes[1024]

interface ContractWallet:
    def isValidSignature(digest: bytes32, signature: Bytes[1024]) -> bytes4: view

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    tokenId: indexed(uint256)

event Approval:
    owner: indexed(address)
    approved: indexed(address)
    tokenId: indexed(uint256)

event ApprovalForAll:
    owner: indexed(address)
    operator: indexed(address)
    approved: bool

event Registered:
    agentId: indexed(uint256)
    agentURI: String[8192]
    owner: indexed(address)

event MetadataSet:
    agentId: indexed(uint256)
    indexedMetadataKey: indexed(String[64])
    metadataKey: String[64]
    metadataValue: Bytes[1024]

event URIUpdated:
    agentId: indexed(uint256)
    newURI: String[8192]
    updatedBy: indexed(address)

MAX_DEADLINE: constant(uint256) = 300
WALLET_KEY: constant(String[64]) = "agentWallet"
DOMAIN_TYPE: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
WALLET_TYPE: constant(bytes32) = keccak256(
    "AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)"
)

name: public(constant(String[32])) = "AgentIdentity"
symbol: public(constant(String[8])) = "AGENT"

count: uint256
owners: HashMap[uint256, address]
uris: HashMap[uint256, String[8192]]
wallets: HashMap[uint256, address]
metadata: HashMap[uint256, HashMap[bytes32, Bytes[1024]]]
approvals: HashMap[uint256, address]
balances: HashMap[address, uint256]
isApprovedForAll: public(HashMap[address, HashMap[address, bool]])


@external
@pure
def getVersion() -> String[8]:
    return "2.0.0"


@external
@view
def supportsInterface(interfaceId: bytes4) -> bool:
    return interfaceId in [0x01ffc9a7, 0x80ac58cd, 0x5b5e139f]


@external
def register(agentURI: String[8192] = "", metadata: DynArray[MetadataEntry, 16] = []) -> uint256:
    agent_id: uint256 = self.count
    self.count = agent_id + 1
    self.owners[agent_id] = msg.sender
    self.balances[msg.sender] += 1
    self.wallets[agent_id] = msg.sender
    log Transfer(sender=empty(address), receiver=msg.sender, tokenId=agent_id)
    if len(agentURI) > 0:
        self.uris[agent_id] = agentURI
    log Registered(agentId=agent_id, agentURI=agentURI, owner=msg.sender)
    self._log_wallet(agent_id, msg.sender)
    for entry: MetadataEntry in metadata:
        self._set_metadata(agent_id, entry.metadataKey, entry.metadataValue)
    return agent_id


@external
@view
def ownerOf(tokenId: uint256) -> address:
    return self._owner_of(tokenId)


@external
@view
def balanceOf(owner: address) -> uint256:
    return self.balances[owner]


@external
@view
def tokenURI(tokenId: uint256) -> String[8192]:
    self._owner_of(tokenId)
    return self.uris[tokenId]


@external
@view
def getAgentWallet(agentId: uint256) -> address:
    return self.wallets[agentId]


@external
@view
def getMetadata(agentId: uint256, metadataKey: String[64]) -> Bytes[1024]:
    if keccak256(metadataKey) == keccak256(WALLET_KEY):
        wallet: address = self.wallets[agentId]
        if wallet == empty(address):
            return b""
        return slice(convert(wallet, bytes32), 12, 20)
    return self.metadata[agentId][keccak256(metadataKey)]


@external
@view
def isAuthorizedOrOwner(spender: address, agentId: uint256) -> bool:
    return self._may(spender, agentId)


@external
@view
def getApproved(tokenId: uint256) -> address:
    self._owner_of(tokenId)
    return self.approvals[tokenId]


@external
def setMetadata(agentId: uint256, metadataKey: String[64], metadataValue: Bytes[1024]):
    assert self._may(msg.sender, agentId), "Not authorized"
    self._set_metadata(agentId, metadataKey, metadataValue)


@external
def setAgentURI(agentId: uint256, newURI: String[8192]):
    assert self._may(msg.sender, agentId), "Not authorized"
    self.uris[agentId] = newURI
    log URIUpdated(agentId=agentId, newURI=newURI, updatedBy=msg.sender)


@external
def setAgentWallet(agentId: uint256, newWallet: address, deadline: uint256, signature: Bytes[1024]):
    """
    @notice `newWallet` itself must have signed (EIP-712; ERC-1271 when it is a contract).
    """
    assert self._may(msg.sender, agentId), "Not authorized"
    assert newWallet != empty(address), "bad wallet"
    assert block.timestamp <= deadline, "expired"
    assert deadline <= block.timestamp + MAX_DEADLINE, "deadline too far"
    digest: bytes32 = self._wallet_digest(agentId, newWallet, deadline)
    if newWallet.is_contract:
        magic: bytes4 = staticcall ContractWallet(newWallet).isValidSignature(digest, signature)
        assert magic == 0x1626ba7e, "invalid wallet sig"
    else:
        assert self._signer(digest, signature) == newWallet, "invalid wallet sig"
    self.wallets[agentId] = newWallet
    self._log_wallet(agentId, newWallet)


@external
def unsetAgentWallet(agentId: uint256):
    assert self._may(msg.sender, agentId), "Not authorized"
    self._clear_wallet(agentId)


@external
def approve(to: address, tokenId: uint256):
    owner: address = self._owner_of(tokenId)
    assert msg.sender == owner or self.isApprovedForAll[owner][msg.sender], "Not authorized"
    self.approvals[tokenId] = to
    log Approval(owner=owner, approved=to, tokenId=tokenId)


@external
def setApprovalForAll(operator: address, approved: bool):
    self.isApprovedForAll[msg.sender][operator] = approved
    log ApprovalForAll(owner=msg.sender, operator=operator, approved=approved)


@external
def transferFrom(sender: address, receiver: address, tokenId: uint256):
    assert self._may(msg.sender, tokenId), "Not authorized"
    assert self.owners[tokenId] == sender, "incorrect owner"
    assert receiver != empty(address), "invalid receiver"
    self._clear_wallet(tokenId)
    self.approvals[tokenId] = empty(address)
    self.balances[sender] -= 1
    self.balances[receiver] += 1
    self.owners[tokenId] = receiver
    log Transfer(sender=sender, receiver=receiver, tokenId=tokenId)


@internal
@view
def _owner_of(agent_id: uint256) -> address:
    owner: address = self.owners[agent_id]
    if owner == empty(address):
        raw_revert(
            concat(method_id("ERC721NonexistentToken(uint256)"), convert(agent_id, bytes32))
        )
    return owner


@internal
@view
def _may(spender: address, agent_id: uint256) -> bool:
    owner: address = self._owner_of(agent_id)
    return (
        spender == owner
        or self.isApprovedForAll[owner][spender]
        or self.approvals[agent_id] == spender
    )


@internal
def _set_metadata(agent_id: uint256, key: String[64], content: Bytes[1024]):
    assert keccak256(key) != keccak256(WALLET_KEY), "reserved key"
    self.metadata[agent_id][keccak256(key)] = content
    log MetadataSet(
        agentId=agent_id, indexedMetadataKey=key, metadataKey=key, metadataValue=content
    )


@internal
def _log_wallet(agent_id: uint256, wallet: address):
    log MetadataSet(
        agentId=agent_id,
        indexedMetadataKey=WALLET_KEY,
        metadataKey=WALLET_KEY,
        metadataValue=slice(convert(wallet, bytes32), 12, 20),
    )


@internal
def _clear_wallet(agent_id: uint256):
    self.wallets[agent_id] = empty(address)
    log MetadataSet(
        agentId=agent_id,
        indexedMetadataKey=WALLET_KEY,
        metadataKey=WALLET_KEY,
        metadataValue=b"",
    )


@internal
@view
def _wallet_digest(agent_id: uint256, wallet: address, deadline: uint256) -> bytes32:
    domain: bytes32 = keccak256(
        abi_encode(
            DOMAIN_TYPE,
            keccak256("ERC8004IdentityRegistry"),
            keccak256("1"),
            chain.id,
            self,
        )
    )
    said: bytes32 = keccak256(
        abi_encode(WALLET_TYPE, agent_id, wallet, self._owner_of(agent_id), deadline)
    )
    return keccak256(concat(b"\x19\x01", domain, said))


@internal
@pure
def _signer(digest: bytes32, signature: Bytes[1024]) -> address:
    if len(signature) != 65:
        return empty(address)
    r: uint256 = convert(slice(signature, 0, 32), uint256)
    s: uint256 = convert(slice(signature, 32, 32), uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    return ecrecover(digest, v, r, s)
