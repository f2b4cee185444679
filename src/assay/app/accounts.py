"""Builds accounts: log-in, passwords, second factors, sign-up, mail."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from assay.accounts.api_keys import ApiKeys
from assay.accounts.logins import Logins
from assay.accounts.mail import MailOutbox, SmtpMailer, smtp_server
from assay.accounts.operators import Operators, SignUpRules, SignUps
from assay.accounts.password_proof import Argon2PasswordHasher, LoginThrottle, PasswordProof
from assay.accounts.passwords import PasswordDependencies, Passwords
from assay.accounts.ports import Origins
from assay.accounts.second_factor import SecondFactors, TotpFactor
from assay.accounts.store_credentials import SqlCredentialStore, SqlSessionStore
from assay.accounts.store_operators import SqlOperatorStore
from assay.app.log import Log
from assay.common.clock import Clock
from assay.common.keyring import SecretBox
from assay.db.engine import Database
from assay.identity.tokens import JwtLoginTokens
from assay.settings import Settings


@dataclass(frozen=True, slots=True)
class AccountDependencies:
    """What accounts are built from."""

    settings: Settings
    clock: Clock
    log: Log
    database: Database
    operator_store: SqlOperatorStore
    keys: ApiKeys
    box: SecretBox
    tokens: JwtLoginTokens
    origins: Origins


@dataclass(frozen=True, slots=True)
class AccountServices:
    """The services of accounts, ready to be called."""

    operators: Operators
    proof: PasswordProof
    logins: Logins
    passwords: Passwords
    factors: SecondFactors
    sign_ups: SignUps
    outbox: MailOutbox | None


def account_services(dependencies: AccountDependencies, stack: AsyncExitStack) -> AccountServices:
    """Build everything of accounts; `stack` closes what it opens. Raises `ValueError`."""
    settings, clock = dependencies.settings, dependencies.clock
    store = SqlCredentialStore(dependencies.database)
    hasher = Argon2PasswordHasher()
    stack.callback(hasher.close)
    proof = PasswordProof(store, hasher, LoginThrottle(clock), dependencies.origins)
    operators = Operators(
        dependencies.operator_store, dependencies.keys, hasher, clock, settings.fee_rate
    )
    factors = SecondFactors(store, TotpFactor(), dependencies.box, proof, clock)
    sessions = SqlSessionStore(dependencies.database)
    outbox = _outbox(dependencies, stack)
    per_address = settings.accounts_per_address
    per_network = max(settings.accounts_per_network, per_address)
    rules = SignUpRules(settings.sign_up, per_address, per_network)
    return AccountServices(
        operators=operators,
        proof=proof,
        logins=Logins(
            sessions, dependencies.operator_store, proof, factors, dependencies.tokens, clock
        ),
        passwords=Passwords(
            PasswordDependencies(
                store=store,
                hasher=hasher,
                proof=proof,
                keys=dependencies.keys,
                outbox=outbox,
                account_url=settings.account_address,
                clock=clock,
            )
        ),
        factors=factors,
        sign_ups=SignUps(operators, store, dependencies.origins, rules, clock),
        outbox=outbox,
    )


def _outbox(dependencies: AccountDependencies, stack: AsyncExitStack) -> MailOutbox | None:
    settings = dependencies.settings
    if settings.smtp_url is None:
        return None
    server = smtp_server(settings.smtp_url.get_secret_value())
    if settings.smtp_from is None:
        raise ValueError("ASSAY_SMTP_URL needs ASSAY_SMTP_FROM: whom mail comes from")
    mailer = SmtpMailer(server, settings.smtp_from)
    stack.callback(mailer.close)
    return MailOutbox(
        mailer,
        lambda event, detail: dependencies.log.warning(event, detail=detail),
    )
