"""Unsafe settings of trust: proofs that anybody can make, and grades that anybody gets."""

from collections.abc import Iterator

from assay.app import networks_from
from assay.common.json import is_array
from assay.settings import Settings


def identity_asserted(settings: Settings) -> Iterator[str]:
    """Names that are believed."""
    if settings.identity_proof == "asserted":
        yield "ASSAY_IDENTITY_PROOF is asserted"


def forgeable_proofs(settings: Settings) -> Iterator[str]:
    """Personhood of simulated people, and attestations of nobody."""
    app = settings.world_id_app or ""
    if app.startswith("app_staging_") and settings.world_id_verifier == "cloud":
        yield "ASSAY_WORLD_ID_APP is a staging app, and ASSAY_WORLD_ID_VERIFIER is cloud"
    for source in settings.attestation_sources:
        attesters = source.get("attesters")
        if not attesters or (is_array(attesters) and any(map(_is_zero, attesters))):
            yield "ASSAY_ATTESTATION_SOURCES has a source without attesters"


def open_tiers(settings: Settings) -> Iterator[str]:
    """A table that leads everybody to the best route."""
    for score, _, _, route in settings.tiers or ():
        if score <= 0 and route == "prod":
            yield "ASSAY_TIERS leads score 0 to the route prod"


def test_networks(settings: Settings) -> Iterator[str]:
    """Test networks that decide about agents of a main one. The start refuses unknown chains."""
    try:
        networks = networks_from(settings)
    except ValueError:
        return
    if networks.default.testnet:
        return
    for name, slugs in (
        ("ASSAY_CONTRACT_WALLET_CHAINS", settings.contract_wallet_chains),
        ("ASSAY_SELF_REGISTRY", (settings.self_registry.partition(":")[0],)),
        ("ASSAY_WORLD_ID_ROUTER", (settings.world_id_router.partition(":")[0],)),
    ):
        for slug in slugs:
            if slug in networks.rows and networks.rows[slug].testnet:
                yield f"{name} names the test network {slug}"


def _is_zero(address: object) -> bool:
    return isinstance(address, str) and not address.lower().removeprefix("0x").strip("0")
