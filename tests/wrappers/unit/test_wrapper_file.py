"""The file that declares wrappers: everything that a wrapper has can be written in it."""

from decimal import Decimal

from assay.wrappers.endpoint_rules import AskedTier
from assay.wrappers.schemas import EndpointRequest
from assay.wrappers.tier_terms import FreeQuota
from assay.wrappers.wrapper_file import _WRITTEN, parse

SELLER = b"""
wrappers:
  - path: /quote
    targetUrl: https://api.example.com/
    pricePerCall: 0.01
    trustEnabled: true
    enforce: observe
    pricing:
      - {minTier: A, pricePerCall: 0.002, rateLimit: 600}
      - {minTier: BA, pricePerCall: 0.005}
    freeQuota: {calls: 100, per: day}
"""


def test_every_field_of_a_wrapper_can_be_declared() -> None:
    """What the file could not say, `apply` would take from the wrapper."""
    fields = {field.alias or name for name, field in EndpointRequest.model_fields.items()}
    assert fields - {"upstreamAuthType", "upstreamAuthSecret"} == set(_WRITTEN)


def test_terms_by_tier_are_read() -> None:
    [declared] = parse(SELLER, lambda name: name)
    asked = declared.asked
    assert asked.pricing == (
        AskedTier("A", Decimal("0.002"), 600),
        AskedTier("BA", Decimal("0.005"), None),
    )
    assert asked.free_quota == FreeQuota(100, "day")
    assert asked.enforce == "observe"
