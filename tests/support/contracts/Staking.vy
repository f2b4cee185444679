# pragma version 0.4.3
"""
@title Stakes of a token, by owner and by agent, that a judge may take away
@notice `claimed` says more than is there: the amount a contract names is not proof that it has it.
"""

interface Token:
    def transferFrom(sender: address, to: address, amount: uint256) -> bool: nonpayable
    def transfer(to: address, amount: uint256) -> bool: nonpayable

token: immutable(address)
judge: immutable(address)
stakeOf: public(HashMap[address, uint256])
stakeFor: public(HashMap[uint256, uint256])


@deploy
def __init__(asset: address):
    token = asset
    judge = msg.sender


@external
def stake(owner: address, agentId: uint256, amount: uint256):
    assert extcall Token(token).transferFrom(msg.sender, self, amount)
    self.stakeOf[owner] += amount
    self.stakeFor[agentId] += amount


@external
def slash(owner: address, agentId: uint256):
    assert msg.sender == judge
    amount: uint256 = self.stakeOf[owner]
    self.stakeOf[owner] = 0
    self.stakeFor[agentId] = 0
    assert extcall Token(token).transfer(judge, amount)


@external
@view
def claimed(owner: address) -> uint256:
    return max_value(uint256)
