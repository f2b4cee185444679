"""Every setting, read once from the environment (or a TOML file) and validated together.

Names are `ASSAY_` and the field's name in upper case. An unknown `ASSAY_` variable or an invalid
value stops the start with a message that says what to do.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableSetting
from typing_extensions import override

from assay.common.addresses import is_confidential
from assay.common.http_heads import ANY, canonical_origin
from assay.net.egress.address import opened_entry

PREFIX = "ASSAY_"
SECRET_CHARS_MIN = 32
"""Shortest secret accepted from settings. Source: conventions.md#accounts."""

OpenEndpoint = Literal[
    "wallet", "resolve-wallet", "snapshot", "liveness", "trigger-sandbox", "trigger-sandbox-key"
]

_RINGS = (
    "jwt_secret",
    "session_secret",
    "snapshot_secret",
    "signing_secret",
    "payment_secret",
    "upstream_secrets",
)
"""Secrets that are lists, the one in use first: listing the old one after it allows a rotation."""

_CONTACT = re.compile(r"(mailto:|https://|tel:)[\x21-\x7e]{1,200}")
"""One URI of an RFC 9116 `Contact` line, without characters that could end the line."""

_KEY_58 = "[1-9A-HJ-NP-Za-km-z]{32,44}"
_AGENT = re.compile(
    r"eip155:[1-9][0-9]{0,19}:0x[0-9a-fA-F]{40}/[0-9]{1,78}"
    rf"|solana:[1-9A-HJ-NP-Za-km-z]{{32}}:{_KEY_58}/{_KEY_58}"
)
"""An agent: its registry in the form of CAIP-10, and its id. Source: EIP-8004, "Endpoint Domain
Verification"."""

LOOPBACK, PORT_MAX = "127.0.0.1", 65_535

_AMOUNT_MAX = 10_000_000
"""Largest amount, in coins, or in USD for one coin."""

_TOKEN = re.compile(rf"[\x21-\x7e]{{{SECRET_CHARS_MIN},200}}")

_KEY = re.compile(r"[0-9a-f]{64}")
_ACCOUNT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_PLACES = {"data_dir", "host", "port", "workers", "ops_bind", "ext_authz_bind"}
"""Settings that differ between processes of one service."""

_NOT_FIELDS = frozenset({"ASSAY_CONFIG", "ASSAY_PYTHON"})


class SettingsError(RuntimeError):
    """The configuration is invalid; the message says what is wrong and how to fix it."""


def read_key(path: Path) -> SecretStr | None:
    """Return the private key of a file that only its owner can read; None without a file.

    Raises `SettingsError`.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise SettingsError(f"others can read {path}: run `chmod 600 {path}`")
        text = path.read_text("ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the key in {path}: {type(error).__name__}") from None
    if not _KEY.fullmatch(text):
        raise SettingsError(f"{path} does not hold a private key of 64 hex digits")
    return SecretStr(text)


def bind_address(text: str) -> tuple[str, int]:
    """Return host and port of `9464` (on loopback), `10.0.0.5:9464` or `[::1]:9464`.

    Raises `ValueError`.
    """
    host, _, port = text.rpartition(":")
    message = "must be a port, or an IP address and a port such as 127.0.0.1:9464 or [::1]:9464"
    try:
        found = ip_address(host.removeprefix("[").removesuffix("]") or LOOPBACK)
        number = int(port) if port.isascii() and port.isdecimal() else -1
    except ValueError:
        raise ValueError(message) from None
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not 0 <= number <= PORT_MAX or is_bracketed != (":" in str(found)) or text.startswith(":"):
        raise ValueError(message)
    return str(found), number


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return {str(name): _plain(one) for name, one in members.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("Sequence[object]", value)]
    return value if isinstance(value, bool | int | float | None) else str(value)


def settling_key_file(data_dir: Path) -> Path:
    """Return the file where `assay sell` keeps the key that settles payments."""
    return data_dir / "settling.key"


def _settling_key_of(known: Mapping[str, Any]) -> SecretStr | None:
    folder = known.get("data_dir")
    return read_key(settling_key_file(folder)) if isinstance(folder, Path) else None


class Settings(BaseSettings):
    """All settings of an operator. Frozen; secrets never print."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    @override
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read what `load` passes and the environment; `.env` files are not read."""
        del settings_cls, dotenv_settings, file_secret_settings
        return init_settings, env_settings

    data_dir: Annotated[
        Path, Field(description="Folder of the database, secrets and snapshot blocks.")
    ] = Path("~/.local/share/assay")
    database_url: Annotated[
        SecretStr | None,
        Field(description="`postgresql://...`; unset: an SQLite file in the data directory."),
    ] = None
    grace_s: Annotated[
        int,
        Field(
            ge=0,
            le=86_400,
            description="Seconds for which routes, API keys, plans and sessions are used after they"
            " were read while the database does not answer; 0: not at all.",
        ),
    ] = 3600
    agent_grace_s: Annotated[
        int,
        Field(
            ge=0,
            le=86_400,
            description="Seconds for which a judged agent's controllers and evaluation are used"
            " after they were read while its chain or the database does not answer; 0: not at"
            " all.",
        ),
    ] = 3600
    state_url: Annotated[
        SecretStr | None,
        Field(
            description="`valkey://host:6379/0` (`valkeys://`: over TLS), where several processes"
            " share their limits; unset: each process counts by itself."
        ),
    ] = None
    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 picks one.")] = (
        8787
    )
    ops_token: Annotated[
        SecretStr | None,
        Field(description="Bearer token for `/metrics`; required beyond loopback."),
    ] = None
    ops_bind: Annotated[
        str | None,
        Field(
            description="Separate address of `/metrics`: `9464` (loopback) or `10.0.0.5:9464`;"
            " unset: it is not served."
        ),
    ] = None
    ext_authz_bind: Annotated[
        str | None,
        Field(
            description="Separate address of Envoy's `ext_authz` over gRPC: `9001` (loopback) or"
            " `10.0.0.5:9001`, without TLS; unset: it is not served. Needs the extra `envoy`."
        ),
    ] = None
    keep_alive_s: Annotated[
        int,
        Field(
            ge=5,
            le=3600,
            description="Seconds for which an unused connection of a proxy in"
            " `ASSAY_TRUSTED_PROXIES` stays open; longer than the proxy keeps it. Other callers'"
            " stay open for 5.",
        ),
    ] = 75
    unready_s: Annotated[
        float,
        Field(
            ge=0,
            le=600,
            description="Seconds for which a process that was asked to stop still answers, while"
            " `/readyz` says 503; longer than your balancer takes to notice.",
        ),
    ] = 0
    workers: Annotated[
        int,
        Field(
            ge=1,
            le=64,
            description="Processes that serve on the same address, started and replaced by one"
            " that supervises them; 1: one process without a supervisor.",
        ),
    ] = 1
    public_url: Annotated[
        str | None, Field(description="This service's address as callers see it.")
    ] = None
    wrap_url: Annotated[
        str | None,
        Field(
            description="Separate origin of wrappers, such as `https://wrap.example.com`; unset:"
            " they share the service's."
        ),
    ] = None
    cors_origins: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated origins whose pages may call the API from a browser;"
            " `*`: any."
        ),
    ] = ()
    security_contact: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated addresses for vulnerability reports, best first, in"
            " `/.well-known/security.txt`: `mailto:`, `https:` or `tel:`; unset: that file is 404."
        ),
    ] = ()
    service_agent_ids: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated agents that this service itself is, as registry and id"
            " (`eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432/22`), in"
            " `/.well-known/agent-registration.json`; unset: that file is 404."
        ),
    ] = ()
    public_pages: Annotated[
        Literal["on", "unlisted", "off"],
        Field(
            description="Public reports, badges and the list of evaluated agents; `unlisted`: no"
            " list and no search, and search engines are asked to leave the pages out; `off`: none"
            " of them."
        ),
    ] = "on"
    upgrade_url: Annotated[
        str | None,
        Field(description="Address where a Free operator upgrades; default `{public_url}/docs`."),
    ] = None
    trusted_proxies: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="Comma-separated networks whose X-Forwarded-For is trusted."),
    ] = ()
    connections_max: Annotated[int, Field(ge=16, description="Concurrent connections in all.")] = (
        2000
    )
    connections_per_address: Annotated[
        int,
        Field(ge=1, description="Concurrent connections from one address (IPv6: one /64 network)."),
    ] = 512
    connections_per_network: Annotated[
        int,
        Field(ge=1, description="Concurrent connections from one network (IPv4: /24, IPv6: /48)."),
    ] = 1024
    anonymous_per_minute: Annotated[
        int, Field(ge=1, description="Requests a minute per client address without a key.")
    ] = 120
    keyed_per_minute: Annotated[int, Field(ge=1, description="Requests a minute per operator.")] = (
        60_000
    )
    guesses_per_minute: Annotated[
        int,
        Field(
            ge=1, description="Requests a minute per client address with an unknown key or token."
        ),
    ] = 60
    sandbox_per_minute: Annotated[
        int, Field(ge=1, description="Triggered evaluations a minute, per client address.")
    ] = 12
    sandbox_per_agent_minute: Annotated[
        int,
        Field(
            ge=1,
            description="Triggered evaluations a minute, per agent; half of them for callers that"
            " are neither its owner nor an operator.",
        ),
    ] = 6
    wrapper_per_minute: Annotated[
        int, Field(ge=1, description="Wrapper requests a minute per client address.")
    ] = 6_000
    wrapper_unread_mib: Annotated[
        int,
        Field(
            ge=1,
            description="MiB of wrappers' answers that a caller may leave unread a minute.",
        ),
    ] = 8
    quota_rpc_calls: Annotated[
        int,
        Field(ge=1, description="Requests to chain nodes a day, per Free operator or address."),
    ] = 100_000
    quota_evaluations: Annotated[
        int, Field(ge=1, description="Evaluations a day, per Free operator or address.")
    ] = 2_000
    quota_unproven_evaluations: Annotated[
        int,
        Field(
            ge=1,
            description="Evaluations a day of unproven key agents, per Free operator or address.",
        ),
    ] = 100
    quota_rows: Annotated[
        int,
        Field(
            ge=1,
            description="Database rows a day, per Free operator or address; unpaid wrapper calls"
            " beyond it are answered but not logged.",
        ),
    ] = 1_000_000
    quota_account_changes: Annotated[
        int,
        Field(ge=1, description="Changes a day of an account, its keys, wrappers and webhooks."),
    ] = 5_000
    quota_disk_mib: Annotated[
        int, Field(ge=1, description="MiB of evidence a day, per Free operator or address.")
    ] = 256
    call_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days that call log rows are kept, including today; older ones are removed"
            " in whole days. Roll-ups and payments stay. 0: for ever.",
        ),
    ] = 400
    unused_account_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days after which a self-registered account that was never used is"
            " removed; 0: never.",
        ),
    ] = 90
    failed_login_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days that the audit trail keeps failed log-ins, the only entries that are"
            " removed; 0: for ever.",
        ),
    ] = 30
    unpaid_payment_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days that a payment which moved no money is kept after its authorisation"
            " ended; 0: for ever.",
        ),
    ] = 30
    wrapper_revisions: Annotated[
        int,
        Field(
            ge=0,
            description="Newest revisions kept in a wrapper's history, besides the first and those"
            " under which a payment was claimed; 0: all.",
        ),
    ] = 200
    evaluations_kept: Annotated[
        int,
        Field(
            ge=0,
            description="Newest evaluations kept of an agent, with their snapshots, besides all of"
            " the last 30 days; 0: all.",
        ),
    ] = 1_000
    unproven_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days that the evaluations of an unproven key agent are kept after the"
            " newest; 0: for ever.",
        ),
    ] = 7
    key_agent_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days that a proven key agent and its evaluations are kept after the"
            " newest, at least 30; 0: for ever. Agents that paid, are enrolled or are backed"
            " by a human are always kept.",
        ),
    ] = 365
    snapshot_blocks_mib: Annotated[
        int,
        Field(
            ge=0,
            description="MiB of local encrypted snapshots; the oldest are removed first, their"
            " hashes stay. 0: no bound.",
        ),
    ] = 10_240
    egress_per_minute: Annotated[
        int,
        Field(
            ge=4,
            description="Requests a minute from this service to one domain or address without"
            " consent, for all callers together.",
        ),
    ] = 60
    egress_kib_per_minute: Annotated[
        int,
        Field(
            ge=64,
            description="KiB a minute sent to and received from such a domain or address, in sum.",
        ),
    ] = 256
    egress_consenting_per_minute: Annotated[
        int,
        Field(
            ge=4,
            description="Requests a minute to an origin whose"
            " `/.well-known/agent-registration.json` names an agent evaluated here.",
        ),
    ] = 600
    egress_consenting_kib_per_minute: Annotated[
        int, Field(ge=64, description="KiB a minute sent to and received from such an origin.")
    ] = 20 * 1024
    egress_budget_private: Annotated[
        bool,
        Field(
            description="Tests only: budgets apply to private addresses too, if"
            " `ASSAY_ALLOW_PRIVATE_UPSTREAMS` opens them."
        ),
    ] = False
    visit_proxies: Annotated[
        tuple[str, ...],
        Field(
            description="JSON list of HTTP proxies, `http://user:password@host:port`, for"
            " unannounced visits; nothing else may use their addresses. Empty: such visits are"
            " labelled `unlabelled`."
        ),
    ] = ()
    visit_pause_s: Annotated[
        float,
        Field(
            ge=0,
            le=8,
            description="Median seconds between two requests of an unannounced visit, like those"
            " of a customer's program; 0: none.",
        ),
    ] = 2.0
    prompts: Annotated[
        Path | None,
        Field(
            description="File of secret requests, one a line: visits send them to agents in"
            " addition to the agents' own examples."
        ),
    ] = None
    canary_hosts: Annotated[
        tuple[str, ...],
        Field(
            description="JSON list of addresses, such as `https://files.example`, that lead to"
            " this service: they are used for canary addresses and for the callbacks of"
            " unannounced visits. Empty: canaries use the service's own address, and"
            " unannounced visits have no callbacks."
        ),
    ] = ()
    gate_evaluations_per_hour: Annotated[
        int,
        Field(
            ge=1,
            description="Evaluations an hour of one agent that gates may cause, for all callers"
            " together; beyond it the newest one is used.",
        ),
    ] = 6
    scheduled_visits: Annotated[
        bool,
        Field(
            description="Visit agents at random times: those that their owners enrolled, those"
            " that operators requested, and the rest as capacity allows. Without it no agent"
            " reaches rung 2, and unfinished evaluations stay unfinished."
        ),
    ] = True
    visits_per_host_day: Annotated[
        int,
        Field(
            ge=10,
            description="Scheduled visits a day to one registrable domain. Agents without proven"
            " control there share a tenth.",
        ),
    ] = 240
    body_bytes_max: Annotated[
        int, Field(ge=1024, description="Largest request body accepted, bytes.")
    ] = 1024 * 1024
    open_endpoints: Annotated[
        tuple[OpenEndpoint, ...],
        NoDecode,
        Field(description="Comma-separated endpoints that need no operator key."),
    ] = (
        "wallet",
        "resolve-wallet",
        "snapshot",
        "liveness",
        "trigger-sandbox",
        "trigger-sandbox-key",
    )
    identity_proof: Annotated[
        Literal["required", "asserted"],
        Field(description="`asserted` trusts a bare x-agent-address; responses then say so."),
    ] = "required"
    contract_wallet_chains: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated chains that are asked about ERC-1271 wallets; unset: the"
            " default chain. A contract acts for agents of the chains on which it accepts, and"
            " for a key agent on the first."
        ),
    ] = ()
    default_chain: Annotated[
        str, Field(description="The chain of a request that does not name one.")
    ] = "ethereum"
    chains: Annotated[
        dict[str, dict[str, object]],
        Field(description="JSON: chains added to the built-in table, or fields replaced, by slug."),
    ] = {}
    solana_cluster: Annotated[
        Literal["mainnet-beta", "devnet"], Field(description="The cluster of `chain=solana`.")
    ] = "mainnet-beta"
    solana_rpc_url: Annotated[
        str | None, Field(description="RPC endpoint of the cluster; unset: its public one.")
    ] = None
    solana_indexer_url: Annotated[
        str | None,
        Field(
            description="Indexer of the agent registry; unset: the public ones; empty: none, which"
            " disables sequential ids and feedback entries."
        ),
    ] = None
    solana_keypair: Annotated[
        SecretStr | None,
        Field(
            description="Secret keypair that writes scores back to the registry: a JSON array of"
            " 64 integers, or a file with one; unset: no scores are written."
        ),
    ] = None
    solana_feedback_on: Annotated[
        Literal["evaluation", "every-gate"],
        Field(
            description="Which scores are written back: of evaluations that ran, or of every gate"
            " answer."
        ),
    ] = "evaluation"
    solana_priority_microlamports: Annotated[
        int,
        Field(ge=0, le=1_000_000, description="Price per compute unit of a write; 0: no fee."),
    ] = 0
    solana_feedback_per_day: Annotated[
        int,
        Field(
            ge=0,
            description="Writes a UTC day, of all processes; one Free operator or address may"
            " cause a tenth of them.",
        ),
    ] = 1_000
    ipfs_gateway: Annotated[
        str, Field(description="Gateway for `ipfs:` URIs; empty switches them off.")
    ] = "https://ipfs.io"
    arweave_gateway: Annotated[
        str, Field(description="Gateway for `ar:` URIs; empty switches them off.")
    ] = "https://arweave.net"
    allow_private_upstreams: Annotated[
        bool,
        Field(description="Development only: allows agents on private addresses and plain http."),
    ] = False
    upstream_allow: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated private networks and host names, each with or without a"
            " port (`10.0.3.0/24,api.internal:8443,[fd12::7]:8080`), to which wrappers of"
            " `ASSAY_UPSTREAM_ALLOW_OPERATORS` may forward, also over http."
        ),
    ] = ()
    upstream_allow_operators: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated ids of the accounts (`assay accounts list --json`) whose"
            " wrappers may use `ASSAY_UPSTREAM_ALLOW`; unset: none."
        ),
    ] = ()
    weights: Annotated[
        dict[str, float], Field(description="JSON: signal weights that differ from the defaults.")
    ] = {}
    tiers: Annotated[
        tuple[tuple[float, str, str, str], ...] | None,
        Field(description="JSON: rows [score, tier, riskLevel, route] instead of the defaults."),
    ] = None
    ladder: Annotated[
        dict[str, Any],
        Field(description="JSON: numbers of the ladder that differ from the defaults."),
    ] = {}
    self_registry: Annotated[
        str,
        Field(description="Self's agent registry as chain:address; empty switches `self` off."),
    ] = "celo:0xaC3DF9ABf80d0F5c020C06B04Cced27763355944"
    attestation_sources: Annotated[
        tuple[dict[str, object], ...],
        Field(
            description="JSON list of trusted EAS schemas and attesters: chain, eas, schema,"
            " fields, attesters, sinceBlock."
        ),
    ] = ()
    world_id_app: Annotated[
        str | None, Field(description="World ID app; unset: no proofs of personhood.")
    ] = None
    world_id_action: Annotated[
        str, Field(description="World ID action: one human backs one agent in it.")
    ] = "verify-agent"
    world_id_verifier: Annotated[
        Literal["router", "cloud"],
        Field(description="What verifies proofs: the router on chain, or the provider's HTTP API."),
    ] = "router"
    world_id_router: Annotated[str, Field(description="World ID's router as chain:address.")] = (
        "ethereum:0x163b09b4FE21177c455D850BD815B6D583732432"
    )
    world_id_api: Annotated[str, Field(description="The provider's HTTP API.")] = (
        "https://developer.worldcoin.org"
    )
    judge_url: Annotated[
        str | None,
        Field(
            description="An OpenAI-compatible API (up to `/chat/completions`) that decides what"
            " probes leave open. It can lower a grade and never raises one."
        ),
    ] = None
    judge_model: Annotated[str, Field(description="The model that judges.")] = "default"
    judge_key: Annotated[
        SecretStr | None, Field(description="The API key of `ASSAY_JUDGE_URL`, if it requires one.")
    ] = None
    judge_timeout_s: Annotated[
        float,
        Field(gt=0, le=60, description="Time limit of one question to the judge, in seconds."),
    ] = 5.0
    course_elsewhere_url: Annotated[
        str | None,
        Field(
            description="Another origin of this service: the obstacle course then also tests"
            " whether sessions stay at home."
        ),
    ] = None
    gate_evaluation_s: Annotated[
        float, Field(gt=0, le=60, description="Time limit of an evaluation by a gate, in seconds.")
    ] = 10.0
    sandbox_evaluation_s: Annotated[
        float, Field(gt=0, le=60, description="Time limit of trigger-sandbox, in seconds.")
    ] = 25.0
    snapshot_store: Annotated[
        Literal["local", "ipfs", "off"], Field(description="Where encrypted snapshots are stored.")
    ] = "local"
    ipfs_api: Annotated[
        str, Field(description="HTTP API of the IPFS node for `ipfs` snapshots.")
    ] = "http://127.0.0.1:5001"
    log_format: Annotated[
        Literal["auto", "json", "console"],
        Field(description="`auto`: console on a terminal, else JSON lines."),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Field(description="Lowest level that is logged."),
    ] = "info"
    jwt_secret: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(description="Signs dashboard JWTs: `new,old` to change it; unset: generated."),
    ] = ()
    session_secret: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(description="Signs agent sessions: `new,old` to change it; unset: generated."),
    ] = ()
    snapshot_secret: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(description="Encrypts snapshots: `new,old` to change it; unset: generated."),
    ] = ()
    signing_secret: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(
            description="Seeds the decision-token key: `new,old` to change it; unset: generated."
        ),
    ] = ()
    payout_address: Annotated[
        str | None,
        Field(
            pattern=r"^0x[0-9a-fA-F]{40}$",
            description="Wallet that is paid if a wrapper names none, and that receives the fee of"
            " an MPP wrapper that names another.",
        ),
    ] = None
    earlier_payout_addresses: Annotated[
        tuple[Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")], ...],
        NoDecode,
        Field(
            description="Comma-separated wallets that were `ASSAY_PAYOUT_ADDRESS` before: payments"
            " to them are owed to the seller too."
        ),
    ] = ()
    payout_key: Annotated[
        SecretStr | None,
        Field(description="Sends payouts and refunds, and nothing else; 64 hex digits."),
    ] = None
    paid_calls_usd_per_day: Annotated[
        Decimal,
        Field(
            ge=0,
            le=10_000,
            description="USD that scheduled visits may spend within 24 hours on calls of services"
            " that sell and offer nothing free; 0: nothing is bought. One seller gets at most"
            " 0.10 a month, and an owner or a domain a tenth of this a day, so less than 0.20"
            " buys little.",
        ),
    ] = Decimal(0)
    paid_calls_key: Annotated[
        SecretStr | None,
        Field(
            description="Fills the wallets of such visits, and nothing else; 64 hex digits. Keep"
            " only a few days' supply of the stablecoin and of coins for gas in its wallet."
        ),
    ] = None
    paid_calls_gas_max: Annotated[
        Decimal,
        Field(
            gt=0,
            le=1,
            description="Most coins that filling one such wallet may offer for gas; it uses about"
            " a quarter of that.",
        ),
    ] = Decimal("0.00002")
    paid_calls_networks: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated x402 networks where such calls are paid for. A test"
            " network is used only if it is named here."
        ),
    ] = ("eip155:8453",)
    price_max: Annotated[
        Decimal, Field(gt=0, le=1_000_000, description="Largest price of a wrapper call, USD.")
    ] = Decimal(100)
    x402_private_key: Annotated[
        SecretStr | None,
        Field(
            description="Settles x402 payments and pays their gas; 64 hex digits; unset: the key"
            " that `assay sell` created in the data directory, if there is one."
        ),
    ] = Field(default_factory=_settling_key_of)
    x402_facilitator_url: Annotated[
        str | None,
        Field(description="A remote x402 facilitator that verifies and settles instead."),
    ] = None
    x402_fallback_facilitators: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            max_length=4,
            description="Comma-separated: more facilitators, in the order in which they are asked"
            " if the one before does not answer.",
        ),
    ] = ()
    x402_facilitator_credentials: Annotated[
        SecretStr | None,
        Field(
            description='JSON: credentials by address of a facilitator, such as `{"https://...":'
            ' {"headers": {"authorization": "..."}}}`, or `cdp_key_id` and `cdp_key_secret`.'
        ),
    ] = None
    x402_bazaar: Annotated[
        bool,
        Field(
            description="Let catalogues of x402 services list the paid wrappers that have a"
            " description: their 402 has the extension `bazaar`."
        ),
    ] = True
    mpp_discovery: Annotated[
        bool,
        Field(
            description="Serve each seller's OpenAPI document of the paid MPP wrappers that have a"
            " description, at `/wrap/{operatorId}/openapi.json`."
        ),
    ] = True
    gas_free_settlements: Annotated[
        int,
        Field(
            ge=0,
            description="Settlements a UTC day and account whose gas this service pays; beyond"
            " them prepaid gas is used (`assay gas credit`).",
        ),
    ] = 100
    gas_free_settlements_shared: Annotated[
        int,
        Field(ge=0, description="The same for all self-registered accounts together."),
    ] = 1_000
    gas_usd: Annotated[
        dict[str, Decimal],
        NoDecode,
        Field(
            description="Value of a network's coin in USD, such as"
            " `eip155:8453=3000,eip155:84532=3000`; gas of other networks is counted in their"
            " coin."
        ),
    ] = {}
    gas_cap_of_price: Annotated[
        Decimal,
        Field(
            ge=0,
            le=10,
            description="Largest cost of a settlement, as a part of the price, if `ASSAY_GAS_USD`"
            " has the coin's value.",
        ),
    ] = Decimal("0.5")
    gas_cap: Annotated[
        dict[str, Decimal],
        NoDecode,
        Field(
            description="Largest cost of one settlement in coins, such as `eip155:8453=0.0001`, if"
            " that is more than the part of the price; unset: 0.00002, on test networks 0.01."
        ),
    ] = {}
    reputation_networks: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated payment networks whose transfers show who paid an agent;"
            " unset: the main ones, and test ones that have an endpoint in `ASSAY_PAYMENT_RPC`."
        ),
    ] = ()
    reputation_sellers: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(
            description="Comma-separated addresses of sellers that you know to be unrelated to any"
            " agent: then only spending there proves that customers are independent; unset:"
            " sellers with at least 20 other payers."
        ),
    ] = ()
    validation_registries: Annotated[
        dict[str, str],
        Field(
            description='JSON: ERC-8004 validation registries by chain, such as `{"base":'
            ' "0x..."}`. Validators in `vouched_by` of `ASSAY_LADDER` are trusted; unset: no'
            " registry is read."
        ),
    ] = {}
    stakes: Annotated[
        tuple[dict[str, object], ...],
        Field(
            description="JSON list of contracts with stakes that can be lost: chain, contract,"
            " function (selector of a view), of (owner or agentId), asset. Unset: no stake"
            " counts."
        ),
    ] = ()
    reputation_index_s: Annotated[
        float,
        Field(
            gt=0, le=3600, description="Seconds between reading two ranges of blocks for the index."
        ),
    ] = 1.0
    index_days: Annotated[
        int,
        Field(
            ge=0,
            description="Days after which payments of an address are deleted if no evaluation has"
            " needed them; they are read again when one does. 0: never.",
        ),
    ] = 90
    index_rows: Annotated[
        int,
        Field(
            ge=0,
            description="Transfers kept of all addresses together, where each address counts as"
            " one more; beyond them the addresses with most transfers are deleted first. 0: no"
            " bound.",
        ),
    ] = 5_000_000
    payment_rpc: Annotated[
        dict[str, tuple[str, ...]],
        Field(
            description="JSON: RPC endpoints by payment network, such as `base-sepolia` or"
            " `eip155:84532`."
        ),
    ] = {}
    confirmations: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=1000)]],
        NoDecode,
        Field(
            description="Confirmations after which a payment has settled, such as `eip155:8453=2`,"
            " comma-separated; 1 for networks that are not named."
        ),
    ] = {}
    settlement_s: Annotated[
        float, Field(gt=0, le=120, description="Seconds to wait for a settlement's outcome.")
    ] = 20.0
    x402_clock_s: Annotated[
        float,
        Field(
            ge=0,
            le=86_400,
            description="Seconds that an x402 authorisation may be valid beyond the 402's"
            " `maxTimeoutSeconds`: how far a client's clock may be ahead.",
        ),
    ] = 300.0
    mpp_challenge_s: Annotated[
        int, Field(ge=5, le=3600, description="Lifetime of an MPP challenge, in seconds.")
    ] = 300
    settlement_lease_s: Annotated[
        float,
        Field(
            ge=1,
            le=3600,
            description="Seconds after which another process may take over an abandoned payment.",
        ),
    ] = 45.0
    paid_response_bytes_max: Annotated[
        int, Field(ge=1024, description="Largest upstream answer that can be paid for, in bytes.")
    ] = 10 * 1024 * 1024
    held_bodies_mib: Annotated[
        int,
        Field(
            ge=1,
            description="MiB that paid calls may buffer at once: of request bodies, of answers and"
            " of answers fetched again, each; one caller may use a quarter, small bodies are"
            " not counted.",
        ),
    ] = 256
    paid_response_hours: Annotated[
        int, Field(ge=1, description="Hours that a paid answer is kept for a retry of its request.")
    ] = 24
    upstream_secrets: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(
            description="Comma-separated ring that seals upstream secrets and deposited"
            " credentials, current one first; unset: generated once."
        ),
    ] = ()
    payment_secret: Annotated[
        tuple[SecretStr, ...],
        NoDecode,
        Field(description="Signs MPP challenges: `new,old` to change it; unset: generated."),
    ] = ()
    fee_rate: Annotated[Decimal, Field(ge=0, le=1, description="Fee rate of new accounts.")] = (
        Decimal("0.00")
    )
    sign_up: Annotated[
        Literal["open", "invite", "closed"],
        Field(description="Who can register: everybody, holders of an invitation, or nobody."),
    ] = "open"
    accounts_per_address: Annotated[
        int,
        Field(
            ge=1,
            description="Accounts one client address (IPv6: one /64) can register in 24 hours.",
        ),
    ] = 20
    accounts_per_network: Annotated[
        int,
        Field(
            ge=1,
            description="The same for one network (IPv4: /24, IPv6: /48); never lower than for one"
            " address.",
        ),
    ] = 100
    admin_totp: Annotated[
        Literal["optional", "required"],
        Field(description="`required`: the admin endpoints refuse admins without a second factor."),
    ] = "optional"
    account_url: Annotated[
        str | None,
        Field(
            description="The page that accepts the tokens of reset and verification links; default"
            " `{public_url}/account`."
        ),
    ] = None
    smtp_url: Annotated[
        SecretStr | None,
        Field(
            description="Mail server: `smtps://user:password@host:465` (TLS), `smtp://...:587`"
            " (STARTTLS, required) or `smtp+plain://host:25` (no TLS); unset: no mail is sent."
        ),
    ] = None
    smtp_from: Annotated[
        str | None, Field(description="Sender of mail, such as `Assay <no-reply@example.com>`.")
    ] = None
    mcp_api_key: Annotated[
        SecretStr | None,
        Field(
            description="`assay mcp`: the API key of your account at the service; unset: only tools"
            " that need no key are offered."
        ),
    ] = None
    mcp_dashboard_token: Annotated[
        SecretStr | None,
        Field(
            description="`assay mcp`: a dashboard token of your account, for analytics; unset: they"
            " are not offered."
        ),
    ] = None
    mcp_http_token: Annotated[
        SecretStr | None,
        Field(
            description="`assay mcp --http`: bearer token that callers send; required beyond"
            " loopback, and for tools that need a key."
        ),
    ] = None
    mcp_payer_key: Annotated[
        SecretStr | None,
        Field(
            description="`assay mcp`: pays wrappers, and nothing else; 64 hex digits. Needs both"
            " limits. Keep only what you can lose in its wallet."
        ),
    ] = None
    mcp_pay_max_usd: Annotated[
        Decimal | None,
        Field(gt=0, le=10_000, description="`assay mcp`: USD that one call may cost at most."),
    ] = None
    mcp_pay_total_usd: Annotated[
        Decimal | None,
        Field(gt=0, le=10_000, description="`assay mcp`: USD that one process may pay in total."),
    ] = None

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator(
        "trusted_proxies",
        "cors_origins",
        "upstream_allow",
        "upstream_allow_operators",
        "open_endpoints",
        "contract_wallet_chains",
        "reputation_networks",
        "reputation_sellers",
        "earlier_payout_addresses",
        "paid_calls_networks",
        "security_contact",
        "service_agent_ids",
        "x402_fallback_facilitators",
        mode="before",
    )
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("gas_usd", "gas_cap", "confirmations", mode="before")
    @classmethod
    def _by_network(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = (part.strip().rpartition("=") for part in value.split(",") if part.strip())
        return {network: given for network, _, given in pairs}

    @field_validator("gas_usd", "gas_cap")
    @classmethod
    def _amounts(cls, value: dict[str, Decimal]) -> dict[str, Decimal]:
        if any(
            not amount.is_finite() or not 0 < amount <= _AMOUNT_MAX for amount in value.values()
        ):
            message = f"must be networks with amounts above 0 and up to {_AMOUNT_MAX}"
            raise ValueError(message)
        return value

    @field_validator(*_RINGS, mode="before")
    @classmethod
    def _ring(cls, value: object) -> object:
        """Keep empty members, so that they are refused.

        An empty variable must not change a ring.
        """
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",")) if value else ()
        return value

    @field_validator("security_contact")
    @classmethod
    def _contacts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_CONTACT.fullmatch(contact) for contact in value):
            message = "must be addresses that begin with mailto:, https:// or tel:"
            raise ValueError(message)
        return value

    @field_validator("service_agent_ids")
    @classmethod
    def _agents(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_AGENT.fullmatch(one) for one in value):
            message = "must be agents such as eip155:8453:0x8004a169.../22: registry, slash and id"
            raise ValueError(message)
        return value

    @field_validator("ops_token", "mcp_http_token")
    @classmethod
    def _long_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _TOKEN.fullmatch(value.get_secret_value()):
            raise ValueError(f"must be {SECRET_CHARS_MIN} visible ASCII characters or more")
        return value

    @field_validator("ops_bind")
    @classmethod
    def _ops_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        host, _ = bind_address(value)
        if not ip_address(host).is_loopback and info.data.get("ops_token") is None:
            raise ValueError("is not loopback, so ASSAY_OPS_TOKEN has to be set too")
        return value

    @field_validator("ext_authz_bind")
    @classmethod
    def _ext_authz_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        host, port = bind_address(value)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value

    @field_validator("upstream_allow")
    @classmethod
    def _opened(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for entry in value:
            opened_entry(entry)
        return value

    @field_validator("upstream_allow_operators")
    @classmethod
    def _account_ids(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # Not e-mail addresses: the first to register one would get what is opened to it.
        if not all(_ACCOUNT_ID.fullmatch(one) for one in value):
            message = "must be ids of accounts, as `assay accounts list --json` shows them"
            raise ValueError(message)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        found = [origin if origin == ANY else canonical_origin(origin) for origin in value]
        if None in found:
            message = "must be origins such as https://app.example.com, or *"
            raise ValueError(message)
        return tuple(origin for origin in found if origin is not None)

    @field_validator("wrap_url")
    @classmethod
    def _own_origin(cls, value: str | None) -> str | None:
        if not value:
            return None
        origin = canonical_origin(value.rstrip("/"))
        if origin is None or not origin.startswith(("http://", "https://")):
            message = "must be an http(s) origin without a path"
            raise ValueError(message)
        return origin

    @field_validator(
        "public_url",
        "upgrade_url",
        "account_url",
        "ipfs_gateway",
        "arweave_gateway",
        "ipfs_api",
        "x402_facilitator_url",
        "world_id_api",
        "course_elsewhere_url",
        "judge_url",
        "solana_rpc_url",
        "solana_indexer_url",
    )
    @classmethod
    def _http_address(cls, value: str | None) -> str | None:
        if not value:
            return value
        message = "must be an http(s) address"
        try:
            parts = urlsplit(value)
        except ValueError:  # Its text quotes the value, which may contain a password.
            raise ValueError(message) from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(message)
        return value.rstrip("/")

    @field_validator("x402_fallback_facilitators")
    @classmethod
    def _http_addresses(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if value and not info.data.get("x402_facilitator_url"):
            message = "needs ASSAY_X402_FACILITATOR_URL, which is asked first"
            raise ValueError(message)
        return tuple(cls._http_address(one) or "" for one in value)

    @field_validator("x402_facilitator_url", "x402_fallback_facilitators")
    @classmethod
    def _password_in_private(
        cls, value: str | tuple[str, ...] | None
    ) -> str | tuple[str, ...] | None:
        urls = (value,) if isinstance(value, str) else value or ()
        if any("@" in urlsplit(one).netloc and not is_confidential(one) for one in urls if one):
            message = "has a user name or password, so it must begin with https:// or name loopback"
            raise ValueError(message)
        return value

    @field_validator("x402_facilitator_credentials")
    @classmethod
    def _with_a_facilitator(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None and not info.data.get("x402_facilitator_url"):
            message = "needs ASSAY_X402_FACILITATOR_URL"
            raise ValueError(message)
        return value

    @field_validator(*_RINGS)
    @classmethod
    def _long_enough(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(secret) < SECRET_CHARS_MIN for secret in value):
            message = f"must have at least {SECRET_CHARS_MIN} characters, each between commas"
            raise ValueError(message)
        return value

    def comparable(self) -> str:
        """Return all values that processes of one service should share, secrets included.

        Only for a keyed hash.
        """
        shared = self.model_dump(exclude=_PLACES)
        return json.dumps({name: _plain(value) for name, value in shared.items()}, sort_keys=True)

    @property
    def address(self) -> str:
        """Return the service's base address: `public_url`, or where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def wrap_address(self) -> str:
        """Return the base address of wrappers: their own origin, or the service's."""
        return self.wrap_url or self.address

    @property
    def x402_facilitators(self) -> tuple[str, ...]:
        """Return the addresses of the facilitators, in order; empty if our own key settles."""
        first = (self.x402_facilitator_url,) if self.x402_facilitator_url else ()
        return tuple(dict.fromkeys((*first, *self.x402_fallback_facilitators))) if first else ()

    @property
    def payees(self) -> frozenset[str]:
        """Return the wallets of this service, lower case.

        Payments to them are owed to the seller.
        """
        now = (self.payout_address,) if self.payout_address else ()
        return frozenset(one.lower() for one in (*now, *self.earlier_payout_addresses))

    @property
    def upgrade_address(self) -> str:
        """Return the address where a Free operator upgrades."""
        return self.upgrade_url or f"{self.address}/docs"

    @property
    def account_address(self) -> str:
        """Return the page that accepts reset and verification tokens."""
        return self.account_url or f"{self.address}/account"

    @property
    def database(self) -> str:
        """Return the database's URL: PostgreSQL if set, else the SQLite file."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir / 'assay.db'}"


def load(**overrides: object) -> Settings:
    """Read settings from `overrides`, then the environment, then the file of `ASSAY_CONFIG`.

    Raises `SettingsError` naming every unknown or invalid value; values themselves are not shown,
    because they may be secrets.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields} | _NOT_FIELDS
    unknown = sorted(n for n in os.environ if n.startswith(PREFIX) and n not in known)
    if unknown:
        raise SettingsError(f"unknown setting {', '.join(unknown)}: remove it or correct its name")
    try:
        return Settings(**{**_from_file(), **overrides})  # type: ignore[arg-type] - validated by it
    except UnreadableSetting as error:  # Its text names the field, not the value.
        field = str(error).split('"')[1]
        raise SettingsError(f"{PREFIX}{field.upper()}: the value is not valid JSON") from None
    except ValidationError as error:
        lines = [
            f"{PREFIX}{'.'.join(str(part) for part in e['loc']).upper()}: {e['msg']}"
            for e in error.errors(include_input=False, include_url=False)
            if e["type"] != "default_factory_not_called"  # Another error is the cause of this one.
        ]
        raise SettingsError("; ".join(lines)) from None


def config_file() -> Path | None:
    """Return the TOML file that `ASSAY_CONFIG` names."""
    path = os.environ.get("ASSAY_CONFIG")
    return None if path is None else Path(path)


def is_in_environment(name: str) -> bool:
    """Return whether the environment sets this field of `Settings`."""
    return PREFIX + name.upper() in os.environ


def _from_file() -> Mapping[str, object]:
    """Return the settings of the file, less those the environment also sets (it wins)."""
    path = config_file()
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"ASSAY_CONFIG: cannot read {path}: {error}") from error
    return {name: v for name, v in values.items() if not is_in_environment(name)}
