# pragma version 0.4.3
"""
@title The read side of Self's agent registry, written from its interface
"""

struct Agent:
    fresh: bool
    provider: address
    human: uint256

selfProofProvider: public(address)
ids: HashMap[bytes32, uint256]
agents: HashMap[uint256, Agent]
counts: HashMap[uint256, uint256]
last: uint256


@deploy
def __init__(provider: address):
    self.selfProofProvider = provider


@external
def put(key: bytes32, fresh: bool, provider: address, human: uint256):
    self.last += 1
    self.ids[key] = self.last
    self.agents[self.last] = Agent(fresh=fresh, provider=provider, human=human)
    self.counts[human] += 1


@external
@view
def getAgentId(key: bytes32) -> uint256:
    return self.ids[key]


@external
@view
def isProofFresh(agent: uint256) -> bool:
    return self.agents[agent].fresh


@external
@view
def getProofProvider(agent: uint256) -> address:
    return self.agents[agent].provider


@external
@view
def getHumanNullifier(agent: uint256) -> uint256:
    return self.agents[agent].human


@external
@view
def getAgentCountForHuman(human: uint256) -> uint256:
    return self.counts[human]
