"""Groups payers that share a source of funds and cannot be told apart. Pure."""

from collections.abc import Mapping

from assay.reputation.model import Payer


def groups_of(payers: Mapping[str, Payer]) -> list[list[str]]:
    """Group payers and their sources by union-find; members keep their order."""
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
