"""Payers that cannot be told apart, for one source of funds stands behind them. Pure."""

from collections.abc import Mapping

from assay.reputation.model import Payer


def groups_of(payers: Mapping[str, Payer]) -> list[list[str]]:
    """Union-find over payers and their sources; members in order."""
    parent: dict[str, str] = {}

    def root(one: str) -> str:
        parent.setdefault(one, one)
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for payer in payers.values():
        for source in payer.sources:
            first, second = sorted((root(payer.address), root(source)))
            parent[second] = first
    groups: dict[str, list[str]] = {}
    for address in sorted(payers):
        groups.setdefault(root(address), []).append(address)
    return list(groups.values())
