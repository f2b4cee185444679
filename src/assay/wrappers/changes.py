"""What a partial update of a wrapper asks for: the whole of what it would be then (spec 4.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from assay.common.errors import ServiceError
from assay.common.money import DECIMALS
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.wrappers.endpoint_rules import Found, NewEndpoint
from assay.wrappers.model import WrapperConfig

_EARLIER_FORM = frozenset({"path", "method", "price", "description", "rate_limit", "target_url"})
"""Source: spec 4.6, its last paragraph."""


class PreconditionFailed(ServiceError):
    """The wrapper is not the revision that `If-Match` names any more (RFC 9110, section 13.1.1)."""

    code = "precondition_failed"


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """What is to be another: new values by the names of `NewEndpoint`'s fields.

    What is not given stays. An `auth_secret` of None is not given.
    """

    given: Mapping[str, Any]
    active: bool | None = None

    @property
    def keeps_secret(self) -> bool:
        """Whether the upstream's secret, where there is one, is to stay as it is."""
        is_dropped = self.given.get("auth_type") == "none"
        return not is_dropped and self.given.get("auth_secret") is None


def asked_of(config: WrapperConfig, change: EndpointChange, secret: str | None) -> NewEndpoint:
    """The wrapper as it would be asked for, were it new; `secret` is the one it has."""
    given = dict(change.given)
    auth = config.auth if change.keeps_secret else None
    if "auth_type" not in given and (auth or given.get("auth_header") or not change.keeps_secret):
        given["auth_type"] = "header"
    if given.get("auth_type") == "header":
        given["auth_header"] = given.get("auth_header") or (config.auth and config.auth.header)
        given["auth_secret"] = given.get("auth_secret") or (secret if auth else None)
    is_other_protocol = given.get("protocol", config.protocol) != config.protocol
    asked = NewEndpoint(
        path=config.path,
        price=Decimal(config.price).scaleb(-DECIMALS),
        target_url=config.target_url or None,
        method=config.method,
        description=config.description,
        rate_limit=config.rate_limit,
        protocol=config.protocol,
        network=None if is_other_protocol else config.network,
        payout_address=config.payout_address,
        trust_enabled=config.trust_enabled,
        min_score=config.min_score,
        cold_start=config.cold_start,
        identity_proof=config.identity_proof,
        settle=config.settle,
        max_body_bytes=config.max_body_bytes,
        timeout_ms=config.timeout_ms,
        pass_response_headers=config.pass_response_headers,
        cors_origins=config.cors_origins,
        is_earlier_form=not config.target_url and given.keys() <= _EARLIER_FORM,
    )
    return replace(asked, **given)


def secret_problems(
    config: WrapperConfig, asked: NewEndpoint, change: EndpointChange, egress: EgressPolicy
) -> list[Found]:
    """A secret that is write-only goes to no other host than the one it was given for.

    Else whoever may change a wrapper could have it sent to a server of their own, and read it.
    """
    if config.auth is None or not change.keeps_secret:
        return []
    old, new = (parse_target(url or "", egress) for url in (config.target_url, asked.target_url))
    if isinstance(new, RefusedUrl):
        return []  # which is said of the target
    if isinstance(old, RefusedUrl) or (old.scheme, old.authority) != (new.scheme, new.authority):
        message = "is needed again: the target is another host, and the secret is not sent there"
        return [("upstreamAuthSecret", message)]
    return []
