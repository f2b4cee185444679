"""The unsafe settings that `assay doctor` knows, in the order of docs/doctor.md.

Here are limits, so high that they limit nobody or that one cancels another, and trust: proofs that
anybody can make, and grades that anybody gets. Addresses, secrets and connections have modules of
their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from assay.app import networks_from
from assay.cli import unsafe_addresses, unsafe_secrets
from assay.common.json import is_array
from assay.settings import PREFIX, Settings

LIMITS_MAX: Mapping[str, int] = MappingProxyType(
    {
        "anonymous_per_minute": 60_000,
        "wrapper_per_minute": 60_000,
        "sandbox_per_minute": 600,
        "sandbox_per_agent_minute": 600,
        "body_bytes_max": 64 * 1024 * 1024,
        "guesses_per_minute": 6_000,
        "keyed_per_minute": 6_000_000,
        "gate_evaluations_per_hour": 600,
        "quota_rpc_calls": 10_000_000,
        "quota_evaluations": 200_000,
        "quota_unproven_evaluations": 10_000,
        "quota_rows": 100_000_000,
        "quota_disk_mib": 25_600,
        "quota_account_changes": 500_000,
        "gas_free_settlements_shared": 100_000,
        "solana_feedback_per_day": 100_000,
        "held_bodies_mib": 25_600,
        "wrapper_unread_mib": 800,
        "connections_max": 200_000,
    }
)
"""Above these a limit limits nobody: at least ten times the default, mostly a hundred times."""

ACCOUNTS_MAX: Mapping[str, int] = MappingProxyType(
    {"accounts_per_address": 2_000, "accounts_per_network": 10_000}
)

KEPT_DAYS = (
    *("call_days", "failed_login_days", "unused_account_days", "unproven_days", "key_agent_days"),
    *("unpaid_payment_days", "index_days"),
)
"""Settings of how long what strangers leave is kept; 0 is for ever."""

EGRESS_MAX: Mapping[str, int] = MappingProxyType(
    {
        "egress_per_minute": 600,
        "egress_kib_per_minute": 20 * 1024,
        "egress_consenting_per_minute": 60_000,
        "egress_consenting_kib_per_minute": 2_000 * 1024,
    }
)
"""A host that has not consented gets no more than, by default, one that has; that one gets no more
than a hundred times its default."""

DAYS_MAX = 3_650
BLOCKS_MIB_MAX = 1_024_000
PAID_RESPONSE_HOURS_MAX = 365 * 24
KEPT_ROWS: Mapping[str, int] = MappingProxyType(
    {"wrapper_revisions": 20_000, "evaluations_kept": 100_000, "index_rows": 500_000_000}
)
"""How many rows are kept of what strangers leave; 0 is no bound."""


def limits_lifted(settings: Settings) -> Iterator[str]:
    """Find limits above which one caller can take everything."""
    yield from _above(settings, LIMITS_MAX)
    if settings.sign_up == "open":
        yield from _above(settings, ACCOUNTS_MAX)


def connection_caps(settings: Settings) -> Iterator[str]:
    """Find caps of one caller that are not below the cap of all."""
    for name in ("connections_per_address", "connections_per_network"):
        value: int = getattr(settings, name)
        if value >= settings.connections_max:
            total = f"ASSAY_CONNECTIONS_MAX is {settings.connections_max}"
            yield f"{PREFIX}{name.upper()} is {value}, and {total}"


def egress_budget(settings: Settings) -> Iterator[str]:
    """Find egress budgets so high that strangers can make this service attack a host."""
    yield from _above(settings, EGRESS_MAX)


def retention(settings: Settings) -> Iterator[str]:
    """Find settings that keep data of strangers or buyers for ever."""
    for name in KEPT_DAYS:
        if getattr(settings, name) == 0:
            yield f"{PREFIX}{name.upper()} is 0, which is for ever"
    for name in KEPT_ROWS:
        if getattr(settings, name) == 0:
            yield f"{PREFIX}{name.upper()} is 0, which is no bound"
    if settings.snapshot_store == "local":
        if settings.snapshot_blocks_mib == 0:
            yield "ASSAY_SNAPSHOT_BLOCKS_MIB is 0, which is no bound"
        yield from _above(settings, {"snapshot_blocks_mib": BLOCKS_MIB_MAX})
    yield from _above(
        settings,
        {
            **dict.fromkeys(KEPT_DAYS, DAYS_MAX),
            "paid_response_hours": PAID_RESPONSE_HOURS_MAX,
            **KEPT_ROWS,
        },
    )


def settlement_lease(settings: Settings) -> Iterator[str]:
    """Find a lease that lets another process take over a payment during settlement."""
    if settings.settlement_lease_s <= settings.settlement_s:
        yield (
            f"ASSAY_SETTLEMENT_LEASE_S is {settings.settlement_lease_s:g}, and"
            f" ASSAY_SETTLEMENT_S is {settings.settlement_s:g}"
        )


def _above(settings: Settings, limits: Mapping[str, int]) -> Iterator[str]:
    for name, most in limits.items():
        value: int = getattr(settings, name)
        if value > most:
            yield f"{PREFIX}{name.upper()} is {value}, more than {most}"


def identity_asserted(settings: Settings) -> Iterator[str]:
    """Find the setting that accepts identities without proof."""
    if settings.identity_proof == "asserted":
        yield "ASSAY_IDENTITY_PROOF is asserted"


def forgeable_proofs(settings: Settings) -> Iterator[str]:
    """Find proofs of simulated people and attestations without attesters."""
    app = settings.world_id_app or ""
    if app.startswith("app_staging_") and settings.world_id_verifier == "cloud":
        yield "ASSAY_WORLD_ID_APP is a staging app, and ASSAY_WORLD_ID_VERIFIER is cloud"
    for source in settings.attestation_sources:
        attesters = source.get("attesters")
        if not attesters or (is_array(attesters) and any(map(_is_zero, attesters))):
            yield "ASSAY_ATTESTATION_SOURCES has a source without attesters"


def open_tiers(settings: Settings) -> Iterator[str]:
    """Find a tier table that sends every score to the best route."""
    for score, _, _, route in settings.tiers or ():
        if score <= 0 and route == "prod":
            yield "ASSAY_TIERS leads score 0 to the route prod"


def test_networks(settings: Settings) -> Iterator[str]:
    """Find test networks that decide about mainnet agents. Start-up refuses unknown chains."""
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


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of unsafe setting; `find` yields one sentence for each place it is found in.

    The sentences name the setting and its value, but never a secret.
    """

    name: str
    why: str
    do: str
    find: Callable[[Settings], Iterable[str]]


@dataclass(frozen=True, slots=True)
class UnsafeSetting:
    """Something unsafe: what was found, why it matters, what to do."""

    name: str
    what: str
    why: str
    do: str


def findings(settings: Settings) -> Sequence[UnsafeSetting]:
    """Return everything unsafe in the settings and the files they name, in order of `RULES`.

    Reads file modes, the Solana keypair and the generated secrets. Uses no network.
    """
    return [
        UnsafeSetting(rule.name, what, rule.why, rule.do)
        for rule in RULES
        for what in rule.find(settings)
    ]


def _private_upstreams(settings: Settings) -> Iterator[str]:
    if settings.allow_private_upstreams:
        yield "ASSAY_ALLOW_PRIVATE_UPSTREAMS is on"


RULES = (
    Rule(
        "open-bind",
        "callers can reach the service without TLS and past the proxy",
        "listen on 127.0.0.1, or on the private address that your proxy dials",
        unsafe_addresses.open_bind,
    ),
    Rule(
        "trusted-proxies",
        "anyone in that network can choose the client address that limits and logs use",
        "name only the addresses of your proxy, such as 10.0.3.7/32",
        unsafe_addresses.wide_proxies,
    ),
    Rule(
        "proxy-not-trusted",
        "all callers share the proxy's address: one of them can use up the limits of all",
        "name the proxy's address in ASSAY_TRUSTED_PROXIES",
        unsafe_addresses.proxy_not_trusted,
    ),
    Rule(
        "public-url-plain",
        "API keys, sessions and payments can be read and replayed on the way",
        "serve https:// at the proxy and set that address",
        unsafe_addresses.public_url_plain,
    ),
    Rule(
        "public-url-missing",
        "agents sign challenges for an address that other installations use as well",
        "set ASSAY_PUBLIC_URL to the https:// address that callers use",
        unsafe_addresses.public_url_missing,
    ),
    Rule(
        "identity-asserted",
        "anyone can act as any agent by sending its name",
        "set it to required; relax single wrappers with identityProof instead",
        identity_asserted,
    ),
    Rule(
        "weak-secret",
        "it can be guessed, and then tokens forged or snapshots read",
        "unset it (one is generated, except for the token), or use the output of"
        " `openssl rand -hex 32`",
        unsafe_secrets.weak,
    ),
    Rule(
        "equal-secrets",
        "the leak of one is the leak of both, and tokens of one kind may pass for another",
        "draw each by itself with `openssl rand -hex 32`, or unset them",
        unsafe_secrets.equal,
    ),
    Rule(
        "open-sign-up",
        "anyone can open an account and have the key pay for transactions",
        "set ASSAY_SIGN_UP to invite or closed, or remove the key",
        unsafe_secrets.open_sign_up,
    ),
    Rule(
        "stranger-write-back",
        "each evaluation that a stranger triggers is a transaction that the key pays for",
        "leave trigger-sandbox out of ASSAY_OPEN_ENDPOINTS, or unset the keypair",
        unsafe_secrets.stranger_write_back,
    ),
    Rule(
        "private-upstreams",
        "registration files, webhooks and wrappers can reach your own network",
        "unset it; it is for development only",
        _private_upstreams,
    ),
    Rule(
        "data-directory",
        "other users can read password hashes, secrets and calls, or replace them",
        "run `chmod 700` on the directory, and `chown` it to the service's user",
        unsafe_secrets.data_directory,
    ),
    Rule(
        "file-mode",
        "it holds secrets, and its writer decides every setting",
        "run `chmod 600` on the file",
        unsafe_secrets.file_mode,
    ),
    Rule(
        "key-in-environment",
        "child processes, crash reports and container tools show the environment",
        "put the keypair into a file of mode 0600 and name that file; put the private key into"
        " the file of ASSAY_CONFIG",
        unsafe_secrets.key_in_environment,
    ),
    Rule(
        "database-plain",
        "password hashes and the ledger can be read and changed on the way",
        "add ?sslmode=verify-full to the URL",
        unsafe_addresses.database_plain,
    ),
    Rule(
        "state-plain",
        "neighbours can lift or use up every caller's limits",
        "use valkeys://:password@host:6379/0",
        unsafe_addresses.state_plain,
    ),
    Rule(
        "plain-http-service",
        "anyone on the way decides what is read, and so grades and payments",
        "use https://, or run the service on this host",
        unsafe_addresses.plain_http_services,
    ),
    Rule(
        "payout-address",
        "payments are lost, or the revenue lies on a key that is online",
        "name a wallet whose key is kept elsewhere",
        unsafe_secrets.payout_address,
    ),
    Rule(
        "limits-lifted",
        "one caller can take all of the processor, the memory or the evaluations",
        "return to the default",
        limits_lifted,
    ),
    Rule(
        "published-url",
        "callers are led there: credentials, reset links and payments can be read and changed on"
        " the way, or the host is not the one it seems to be",
        "set an https:// address without user and password",
        unsafe_addresses.published_url,
    ),
    Rule(
        "wrap-origin",
        "upstreams share the service's origin, though you mean to separate them",
        "name another host that leads to the same service, or unset it",
        unsafe_addresses.wrap_origin,
    ),
    Rule(
        "cors-origins",
        "pages that anyone can write or change call the API from their visitors' addresses",
        "list the https:// origins of your own pages",
        unsafe_addresses.cors_origins,
    ),
    Rule(
        "mail-plain",
        "links that reset a password can be read on the way, an administrator's as well",
        "use smtps:// or smtp:// (STARTTLS), or a mail server on this host",
        unsafe_addresses.mail_plain,
    ),
    Rule(
        "known-key",
        "others have the key: they empty its wallet and sign in your name",
        "draw a new key",
        unsafe_secrets.known_key,
    ),
    Rule(
        "connection-caps",
        "one caller can hold every connection",
        "raise ASSAY_CONNECTIONS_MAX, or lower the caps of one address and of one network",
        connection_caps,
    ),
    Rule(
        "egress-budget",
        "strangers can make this service attack a host that they name",
        "return to the default",
        egress_budget,
    ),
    Rule(
        "retention",
        "what strangers leave fills the disk, and what people bought stays in every backup",
        "return to the default",
        retention,
    ),
    Rule(
        "settlement-lease",
        "another process takes over a payment that is being settled, and may settle it again",
        "make the lease at least twice as long as a settlement may take",
        settlement_lease,
    ),
    Rule(
        "forgeable-proofs",
        "agents prove a person or an attestation that they made up",
        "use the app of production, and name the attesters that you trust",
        forgeable_proofs,
    ),
    Rule(
        "open-tiers",
        "every agent passes, whatever its score",
        "lead low scores to sandbox or sandbox_only",
        open_tiers,
    ),
    Rule(
        "test-network",
        "registrations and contracts cost nothing there, and count for agents of main networks",
        "name main networks only",
        test_networks,
    ),
    Rule(
        "upstream-allow",
        "wrappers of the named operators reach what was never meant to be sold: databases,"
        " consoles, this service from the inside, the cloud's credentials",
        "list the addresses or small networks of the upstreams, with their ports, such as"
        " 10.0.3.7:8443",
        unsafe_addresses.upstream_allow,
    ),
)
"""Source: docs/doctor.md, which lists them in this order."""
