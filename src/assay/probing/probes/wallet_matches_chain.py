"""Does the file name the wallet the registry has? Source: EIP-8004; facts, "registration"."""

import re
from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity

_ACCOUNT = re.compile(r"(?:eip155:([0-9]{1,20}):)?(0x[0-9a-fA-F]{40})")
"""CAIP-10, or a bare address. Source: facts, evm 1.4 (`agentWallet` as older files have it)."""


class WalletMatchesChain:
    """A wallet declared for this chain is the one on chain, or the owner's."""

    name: ClassVar[str] = "wallet_matches_chain"
    family: ClassVar[str] = "registration"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        agent = visit.subject.agent
        if agent is None or agent.registration is None:
            return None
        services = agent.registration.services
        declared = [s.endpoint for s in services if s.name.strip().lower() == "agentwallet"]
        here = str(visit.subject.network.chain_id)
        found = [_ACCOUNT.fullmatch(text.strip()) for text in declared]
        wallets = [m[2].lower() for m in found if m is not None and m[1] in {None, here}]
        if not wallets:
            return None
        return {"declared": len(wallets), "known": sum(w in agent.controllers for w in wallets)}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["known"] == seen["declared"]:
            return Finding("pass", "The wallet it declares is the one in the registry.")
        return Finding("fail", "It declares a wallet that the registry does not know as its own.")


PROBE: Final[Probe] = WalletMatchesChain()
