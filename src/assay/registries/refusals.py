"""Refusals that every family of chains gives in the same words."""

from assay.chains.model import ChainUnavailable, Network


def unbelievable(network: Network, detail: object) -> ChainUnavailable:
    """Return the refusal for a chain with an implausible answer; `detail` is for our logs."""
    return ChainUnavailable(
        f"The chain {network.slug} gave no answer that can be believed.",
        detail=str(detail),
        retry_after_s=10,
    )


def too_much_feedback(network: Network) -> ChainUnavailable:
    """Return the refusal for more entries than can be read: a partial list could be any part."""
    return ChainUnavailable(
        f"The agent has more feedback on {network.slug} than can be read.", retry_after_s=60
    )
