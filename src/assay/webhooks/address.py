"""What a webhook's address says of its receiver. Pure."""

from assay.http1.model import Target
from assay.net.egress.consent import origin_of
from assay.net.egress.domain import domain_of
from assay.net.egress.url import EgressPolicy, parse_target

_ANY = EgressPolicy(allow_private=True, require_https=False)
"""Addresses were judged when they were registered, and are again when they are dialled."""


def same_address(url: str) -> str:
    """One text for all spellings of an address: case of the host, default port, fragment."""
    target = _target(url)
    return url if target is None else origin_of(target) + target.path_and_query


def domain_of_url(url: str) -> str | None:
    """The domain whose budget a delivery draws on; None for what is no address."""
    target = _target(url)
    return None if target is None else domain_of(target.host)


def origin_of_url(url: str) -> str | None:
    """Scheme, host and port; None for what is no address."""
    target = _target(url)
    return None if target is None else origin_of(target)


def _target(url: str) -> Target | None:
    target = parse_target(url, _ANY)
    return target if isinstance(target, Target) else None
