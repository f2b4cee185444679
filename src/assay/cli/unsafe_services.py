"""Unsafe settings of other services: what is asked, stored or sent in clear text."""

from collections.abc import Iterator
from urllib.parse import parse_qs

from assay.cli.unsafe_hosts import is_local, is_plain_elsewhere, shown, split, without_port
from assay.common.json import is_array
from assay.settings import Settings

_VERIFIED = frozenset({"verify-ca", "verify-full"})
"""The modes of libpq that prove who the server is. Source: PostgreSQL manual, 34.19.1."""


def database_plain(settings: Settings) -> Iterator[str]:
    """A PostgreSQL elsewhere whose server is not proven."""
    if settings.database_url is None:
        return
    parts = split(settings.database_url.get_secret_value())
    if parts is None or parts.scheme == "sqlite":
        return
    options = parse_qs(parts.query)
    named = [
        parts.netloc.rpartition("@")[2],
        *options.get("host", []),
        *options.get("hostaddr", []),
    ]
    hosts = [without_port(host) for names in named for host in names.split(",") if host]
    elsewhere = [host for host in hosts if not is_local(host)]
    mode = options.get("sslmode", [""])[-1]
    if elsewhere and mode not in _VERIFIED:
        said = f"with sslmode={mode}" if mode else "without sslmode"
        yield f"ASSAY_DATABASE_URL names {elsewhere[0]} {said}"


def state_plain(settings: Settings) -> Iterator[str]:
    """A Valkey elsewhere that anybody on the way may speak to."""
    parts = None if settings.state_url is None else split(settings.state_url.get_secret_value())
    if parts is None:
        return
    lacks = ["TLS"] * (parts.scheme != "valkeys") + ["a password"] * (not parts.password)
    if lacks and not is_local(parts.hostname):
        yield f"ASSAY_STATE_URL names {parts.hostname} without {' and without '.join(lacks)}"


def mail_plain(settings: Settings) -> Iterator[str]:
    """Links that reset a password, in clear text."""
    parts = None if settings.smtp_url is None else split(settings.smtp_url.get_secret_value())
    if parts is not None and parts.scheme == "smtp+plain" and not is_local(parts.hostname):
        yield f"ASSAY_SMTP_URL names {parts.hostname} without TLS"


def plain_http_services(settings: Settings) -> Iterator[str]:
    """Services elsewhere whose answers decide something, and are asked in clear text."""
    for name, url in _services(settings):
        if is_plain_elsewhere(url):
            yield f"{name} names {shown(url)}"


def _services(settings: Settings) -> Iterator[tuple[str, str]]:
    """Those that are in use."""
    asks_cloud = settings.world_id_app is not None and settings.world_id_verifier == "cloud"
    for name, url in (
        ("ASSAY_SOLANA_RPC_URL", settings.solana_rpc_url),
        ("ASSAY_SOLANA_INDEXER_URL", settings.solana_indexer_url),
        ("ASSAY_X402_FACILITATOR_URL", settings.x402_facilitator_url),
        ("ASSAY_WORLD_ID_API", settings.world_id_api if asks_cloud else None),
        ("ASSAY_IPFS_GATEWAY", settings.ipfs_gateway),
        ("ASSAY_ARWEAVE_GATEWAY", settings.arweave_gateway),
        ("ASSAY_JUDGE_URL", settings.judge_url),
        ("ASSAY_IPFS_API", settings.ipfs_api if settings.snapshot_store == "ipfs" else None),
    ):
        if url:
            yield name, url
    for chain in settings.chains.values():
        for url in _texts(chain.get("rpc_urls")):
            yield "ASSAY_CHAINS", url
    for urls in settings.payment_rpc.values():
        for url in urls:
            yield "ASSAY_PAYMENT_RPC", url


def _texts(value: object) -> Iterator[str]:
    """The texts of a list; what else a chain's row may hold is refused at the start."""
    if is_array(value):
        yield from (text for text in value if isinstance(text, str))
