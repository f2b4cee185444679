"""The unsafe settings that `assay doctor` knows, in the order of docs/doctor.md."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.cli import unsafe_files, unsafe_network, unsafe_secrets
from assay.settings import Settings

PER_MINUTE_MAX = 60_000
EVALUATIONS_PER_MINUTE_MAX = 600
BODY_BYTES_MAX = 64 * 1024 * 1024
"""Above these a limit limits nobody: five hundred times the default, fifty, and sixty-four."""


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
class Finding:
    """Something unsafe: what was found, why it matters, what to do."""

    name: str
    what: str
    why: str
    do: str


def findings(settings: Settings) -> Sequence[Finding]:
    """Everything unsafe about the settings and the files they name, in the order of `RULES`.

    Reads files' modes and nothing else; asks no network.
    """
    return [
        Finding(rule.name, what, rule.why, rule.do)
        for rule in RULES
        for what in rule.find(settings)
    ]


def _identity_asserted(settings: Settings) -> Iterator[str]:
    if settings.identity_proof == "asserted":
        yield "ASSAY_IDENTITY_PROOF is asserted"


def _private_upstreams(settings: Settings) -> Iterator[str]:
    if settings.allow_private_upstreams:
        yield "ASSAY_ALLOW_PRIVATE_UPSTREAMS is on"


def _debug_log(settings: Settings) -> Iterator[str]:
    if settings.log_level == "debug":
        yield "ASSAY_LOG_LEVEL is debug"


def _limits_lifted(settings: Settings) -> Iterator[str]:
    for name, value, most in (
        ("ANONYMOUS_PER_MINUTE", settings.anonymous_per_minute, PER_MINUTE_MAX),
        ("WRAPPER_PER_MINUTE", settings.wrapper_per_minute, PER_MINUTE_MAX),
        ("SANDBOX_PER_MINUTE", settings.sandbox_per_minute, EVALUATIONS_PER_MINUTE_MAX),
        ("SANDBOX_PER_AGENT_MINUTE", settings.sandbox_per_agent_minute, EVALUATIONS_PER_MINUTE_MAX),
        ("BODY_BYTES_MAX", settings.body_bytes_max, BODY_BYTES_MAX),
    ):
        if value > most:
            yield f"ASSAY_{name} is {value}, more than {most}"


RULES = (
    Rule(
        "open-bind",
        "callers can reach the service without TLS and past the proxy",
        "listen on 127.0.0.1, or on the private address that your proxy dials",
        unsafe_network.open_bind,
    ),
    Rule(
        "trusted-proxies",
        "anyone in that network can choose the client address that limits and logs use",
        "name only the addresses of your proxy, such as 10.0.3.7/32",
        unsafe_network.wide_proxies,
    ),
    Rule(
        "proxy-not-trusted",
        "all callers share the proxy's address: one of them can use up the limits of all",
        "name the proxy's address in ASSAY_TRUSTED_PROXIES",
        unsafe_network.proxy_not_trusted,
    ),
    Rule(
        "public-url-plain",
        "API keys, sessions and payments can be read and replayed on the way",
        "serve https:// at the proxy and set that address",
        unsafe_network.public_url_plain,
    ),
    Rule(
        "public-url-missing",
        "agents sign challenges for an address that other installations use as well",
        "set ASSAY_PUBLIC_URL to the https:// address that callers use",
        unsafe_network.public_url_missing,
    ),
    Rule(
        "identity-asserted",
        "anyone can act as any agent by sending its name",
        "set it to required; relax single wrappers with identityProof instead",
        _identity_asserted,
    ),
    Rule(
        "weak-secret",
        "it can be guessed, and then tokens forged or snapshots read",
        "unset it (one is generated), or use the output of `openssl rand -hex 32`",
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
        unsafe_files.data_directory,
    ),
    Rule(
        "file-mode",
        "it holds secrets, and whoever writes it decides every setting",
        "run `chmod 600` on the file",
        unsafe_files.file_mode,
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
        unsafe_network.database_plain,
    ),
    Rule(
        "state-plain",
        "neighbours can lift or use up every caller's limits",
        "use valkeys://:password@host:6379/0",
        unsafe_network.state_plain,
    ),
    Rule(
        "plain-http-service",
        "whoever is on the way decides what is read, and so grades and payments",
        "use https://, or run the service on this host",
        unsafe_network.plain_http_services,
    ),
    Rule(
        "payout-address",
        "payments are lost, or the revenue lies on a key that is online",
        "name a wallet whose key is kept elsewhere",
        unsafe_secrets.payout_address,
    ),
    Rule(
        "debug-log",
        "libraries' debug lines may quote what callers and upstreams send",
        "set it to info",
        _debug_log,
    ),
    Rule(
        "limits-lifted",
        "one caller can take all of the processor, the memory or the evaluations",
        "return to the default",
        _limits_lifted,
    ),
)
"""Source: docs/doctor.md, which lists them in this order."""
