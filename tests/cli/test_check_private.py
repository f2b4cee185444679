"""Where `assay check` may go."""

import pytest

from assay.cli.check import _is_private


@pytest.mark.parametrize(
    ("target", "source", "is_private"),
    [
        ("http://127.0.0.1:8000/card.json", None, True),
        ("http://localhost/mcp", None, True),
        ("http://192.168.1.7/", None, True),
        ("https://agent.example.com/card.json", None, False),
        ("http://8.8.8.8/", None, False),
        ("data:application/json,{}", None, False),
        ("ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", None, False),
        ("agent.json", "{}", True),
    ],
)
def test_only_a_private_target_opens_private_addresses(
    target: str,
    source: str | None,
    is_private: bool,  # noqa: FBT001 - a row of the table
) -> None:
    assert _is_private(target, source or target) is is_private
