"""The command line's words.

Each command imports its work only when it runs, so that `--help` answers at once.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from assay import __version__
from assay.cli.visits_commands import visits_group

if TYPE_CHECKING:
    from assay.cli.command import WebBuilder  # its imports are what `--help` must not wait for

Email = Annotated[str, Parameter(help="The account's e-mail address.")]
ColdStartOption = Annotated[
    Literal["deny", "throttle", "allow"] | None,
    Parameter(help="What to do with an unproven agent; default: the score decides."),
]
WrapperId = Annotated[str, Parameter(help="From `wrappers list`.")]


def build(web: "WebBuilder") -> App:
    """The command line, over a web room that is only asked for when a command serves."""
    app = App(
        name="assay",
        help="Tests AI agents and stamps a grade on them, AAA to C.",
        version=__version__,
        result_action="return_value",
    )
    serving = _Serving(web)
    work = (doctor, migrate, sell, sign, pay, evaluate, check, replay)
    for command in (serving.serve, serving.demo, serving.openapi, *work):
        app.command(command)
    accounts = App(name="accounts", help="Operator accounts.")
    for name, command in {
        "create": accounts_create,
        "list": accounts_list,
        "set-plan": accounts_set_plan,
        "set-role": accounts_set_role,
        "suspend": accounts_suspend,
        "restore": accounts_restore,
        "set-password": accounts_set_password,
        "reset-link": accounts_reset_link,
        "reset-totp": accounts_reset_totp,
        "log-out": accounts_log_out,
        "invite": accounts_invite,
        "export": serving.accounts_export,
        "delete": accounts_delete,
    }.items():
        accounts.command(command, name=name)
    wrappers = App(name="wrappers", help="Agent-ready wrappers of operators' APIs.")
    for name, command in {
        "add": wrappers_add,
        "list": wrappers_list,
        "edit": wrappers_edit,
        "history": wrappers_history,
        "remove": wrappers_remove,
        "reseal": wrappers_reseal,
    }.items():
        wrappers.command(command, name=name)
    payments = App(name="payments", help="The payment ledger.")
    payments.command(payments_list, name="list")
    for name, command in {
        "reconcile": payments_reconcile,
        "statement": payments_statement,
        "transfers": payments_transfers,
        "refund": payments_refund,
        "payout": payments_payout,
        "record-refund": payments_record,
        "record-payout": payments_record,
        "cancel-transfer": payments_cancel,
    }.items():
        payments.command(command, name=name)
    gas = App(name="gas", help="Who pays for settling x402 payments.")
    gas.command(gas_show, name="show")
    gas.command(gas_credit, name="credit")
    snapshots = App(name="snapshots", help="The hash chains of evaluations.")
    snapshots.command(snapshots_verify, name="verify")
    analytics = App(name="analytics", help="What is counted of calls and payments.")
    analytics.command(analytics_rebuild, name="rebuild")
    webhooks = App(name="webhooks", help="Webhook deliveries.")
    webhooks.command(webhooks_deliveries, name="deliveries")
    secrets = App(name="secrets", help="The generated secrets.")
    secrets.command(secrets_rotate, name="rotate")
    visits = visits_group()
    for group in (
        *(accounts, wrappers, payments, gas),
        *(snapshots, visits, analytics, webhooks, secrets),
    ):
        app.command(group)
    return app


def main(web: "WebBuilder") -> None:
    """Run the command of the arguments and end the process with its status."""
    status = build(web)()
    sys.exit(status if isinstance(status, int) else 0)


@dataclass(frozen=True, slots=True)
class _Serving:
    """The commands that need the web room."""

    web: "WebBuilder"

    def serve(
        self,
        *,
        host: Annotated[str | None, Parameter(help="Address to listen on.")] = None,
        port: Annotated[int | None, Parameter(help="Port to listen on; 0 picks one.")] = None,
        data_dir: Annotated[Path | None, Parameter(help="Where everything is kept.")] = None,
    ) -> int:
        """Serve until told to stop. Every other setting comes from the environment."""
        from assay.cli.serve import serve as run  # noqa: PLC0415

        return run(self.web, host=host, port=port, data_dir=data_dir)

    def demo(
        self,
        *,
        once: Annotated[bool, Parameter(negative=(), help="Evaluate, print, and end.")] = False,
        json: Annotated[bool, Parameter(negative=(), help="Print the table as JSON.")] = False,
        port: Annotated[int, Parameter(help="Port to serve on; 0 picks one.")] = 8787,
    ) -> int:
        """Show the whole thing live: a local chain, real sample agents, their grades."""
        from assay.cli.demo import demo as run  # noqa: PLC0415

        return run(self.web, once=once, as_json=json, port=port)

    def openapi(self) -> int:
        """Print the OpenAPI 3.1 document."""
        from assay.cli.openapi import openapi as run  # noqa: PLC0415

        return run(self.web)

    def accounts_export(self, email: Email) -> int:
        """Print everything that is kept of an account, as JSON."""
        from assay.cli import account_security  # noqa: PLC0415

        return account_security.export(self.web, email)


def doctor(
    *,
    strict: Annotated[
        bool, Parameter(negative=(), help="Status 1 when a setting is unsafe, too.")
    ] = False,
) -> int:
    """Say what works, what does not and what is unsafe. Status 1 when something does not work."""
    from assay.cli.doctor import doctor as run  # noqa: PLC0415

    return run(strict=strict)


def migrate() -> int:
    """Bring the database's schema up to date. `serve` does so by itself."""
    from assay.cli.migrate import migrate as run  # noqa: PLC0415

    return run()


def sign(
    *,
    key_file: Annotated[Path, Parameter(help="File with the private key, 64 hex digits.")],
) -> int:
    """Sign a challenge: the JSON of `.../challenge` in, the body for `.../verify` out."""
    from assay.cli.sign import sign as run  # noqa: PLC0415

    return run(key_file)


def sell(  # noqa: PLR0913 - a sale's fields
    url: Annotated[str, Parameter(help="Your API's address, such as https://my.api/quote.")],
    *,
    price: Annotated[str, Parameter(help="USD a call.")],
    network: Annotated[
        str, Parameter(help="Where it is paid; a test network unless you name base.")
    ] = "base-sepolia",
    payout_address: Annotated[
        str | None, Parameter(help="Who is paid; on a test network one is made.")
    ] = None,
    account: Annotated[
        str | None, Parameter(help="Whose wrapper it is, by e-mail address or id; one is made.")
    ] = None,
    service: Annotated[
        str | None, Parameter(help="Where `assay serve` answers; default: as it is set.")
    ] = None,
    no_wait: Annotated[
        bool, Parameter(negative=(), help="Do not wait for the service or for funds.")
    ] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
) -> int:
    """Sell an API, with everything that needs: a wrapper, keys, and a first paid call.

    Tells which wallets to fund, waits until they are, buys one call and shows what the chain says
    of it. What was made before is used again: run it once more to go on.
    """
    from assay.cli.sell import sell as run  # noqa: PLC0415

    asked = {
        "url": url,
        "payout_address": payout_address,
        "account": account,
        "service": service,
        "waits": not no_wait,
    }
    return run(asked, price=price, network=network, as_json=json)


def pay(
    url: Annotated[str, Parameter(help="A wrapper's public address, or any x402 resource.")],
    *,
    key_file: Annotated[Path, Parameter(help="File with the payer's key, 64 hex digits.")],
    agent_id: Annotated[str | None, Parameter(help="The agent that the payer speaks for.")] = None,
    max_usd: Annotated[str, Parameter(help="Pays no more than this.")] = "0.10",
) -> int:
    """Call a paid API: 402, sign, 200, with each step shown."""
    from assay.cli.pay import pay as run  # noqa: PLC0415

    return run(url, key_file, agent_id, max_usd)


def accounts_create(
    email: Email,
    *,
    name: Annotated[str, Parameter(help="The operator's name.")],
    admin: Annotated[bool, Parameter(negative=(), help="Give the role admin.")] = False,
    plan: Annotated[Literal["free", "pro"], Parameter(help="The plan.")] = "free",
) -> int:
    """Create an account; the password is asked for, or read from standard input.

    Prints the account's first API key, once.
    """
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.create(email, name, admin=admin, plan=plan)


def accounts_list(
    *, json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False
) -> int:
    """List every account."""
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.list_all(as_json=json)


def accounts_set_plan(email: Email, plan: Literal["free", "pro"]) -> int:
    """Change an account's plan."""
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.set_plan(email, plan)


def accounts_set_role(email: Email, role: Literal["operator", "admin"]) -> int:
    """Change an account's role."""
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.set_role(email, role)


def accounts_suspend(email: Email) -> int:
    """Suspend an account: no login, no API key, no wrapper and no webhook of it works any more.

    Processes that are serving refuse it within five seconds.
    """
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.suspend(email, suspended=True)


def accounts_restore(email: Email) -> int:
    """Let a suspended account work again."""
    from assay.cli import accounts  # noqa: PLC0415

    return accounts.suspend(email, suspended=False)


def accounts_set_password(
    email: Email,
    *,
    revoke_keys: Annotated[
        bool, Parameter(negative=(), help="Revoke the account's API keys as well.")
    ] = False,
) -> int:
    """Give an account a new password, asked for or read from standard input.

    All its dashboard sessions end at once.
    """
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.set_password(email, revoke_keys=revoke_keys)


def accounts_reset_link(email: Email) -> int:
    """Print a link with which an account's owner chooses a new password; good once, 30 minutes."""
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.reset_link(email)


def accounts_reset_totp(email: Email) -> int:
    """Remove an account's second factor and recovery codes, for an owner who has lost both."""
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.reset_totp(email)


def accounts_log_out(email: Email) -> int:
    """End every dashboard session of an account, at once in every process."""
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.log_out(email)


def accounts_invite(
    email: Annotated[
        str | None, Parameter(help="The only address it is good for; default: any.")
    ] = None,
) -> int:
    """Print an invitation for `ASSAY_SIGN_UP=invite`; good once, for a week."""
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.invite(email)


def accounts_delete(
    email: Email,
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
) -> int:
    """Delete an account for good: keys, sessions, wrappers, webhooks and everything personal.

    Calls and payments stay, under the account's id.
    """
    from assay.cli import account_security  # noqa: PLC0415

    return account_security.delete(email, yes=yes)


def wrappers_add(  # noqa: PLR0913 - a wrapper's fields
    email: Email,
    path: Annotated[str, Parameter(help="Public path: `/quote`, `/items/{id}` or `/files/*`.")],
    target_url: Annotated[str, Parameter(help="The upstream; the path is appended to it.")],
    *,
    method: Annotated[str, Parameter(help="HTTP method, or * for any.")] = "GET",
    price: Annotated[str, Parameter(help="USD a call; 0 is free.")] = "0",
    rate_limit: Annotated[int | None, Parameter(help="Requests a minute and agent.")] = None,
    protocol: Annotated[Literal["x402", "mpp"], Parameter(help="How it is paid.")] = "x402",
    network: Annotated[
        str | None,
        Parameter(help="Where it is paid, such as base-sepolia; default: base, with real money."),
    ] = None,
    payout_address: Annotated[str | None, Parameter(help="Who is paid.")] = None,
    trust: Annotated[bool, Parameter(negative=(), help="Ask for a grade.")] = False,
    min_score: Annotated[float, Parameter(help="The score asked for.")] = 65.0,
    cold_start: ColdStartOption = None,
    settle: Annotated[Literal["after", "before"], Parameter(help="When it is settled.")] = "after",
    auth_header: Annotated[
        str | None, Parameter(help="Header for the upstream; its value is asked for.")
    ] = None,
    pass_response_header: Annotated[
        tuple[str, ...], Parameter(help="Header of the upstream to let through; repeat for more.")
    ] = (),
    cors_origin: Annotated[
        tuple[str, ...],
        Parameter(help="Origin whose pages may call it, or *; repeat for more."),
    ] = (),
) -> int:
    """Put a wrapper in front of an API; prints its public address."""
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.add(
        email,
        auth_header,
        path=path,
        target_url=target_url,
        method=method,
        price=price,
        rate_limit=rate_limit,
        protocol=protocol,
        network=network,
        payout_address=payout_address,
        trust_enabled=trust,
        min_score=min_score,
        cold_start=cold_start,
        settle=settle,
        pass_response_headers=pass_response_header,
        cors_origins=cors_origin,
    )


def wrappers_list(
    email: Email, *, json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False
) -> int:
    """List an account's wrappers."""
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.list_all(email, as_json=json)


def wrappers_edit(  # noqa: PLR0913 - a wrapper's fields
    wrapper_id: WrapperId,
    *,
    price: Annotated[str | None, Parameter(help="USD a call; 0 is free.")] = None,
    target_url: Annotated[str | None, Parameter(help="The upstream.")] = None,
    path: Annotated[str | None, Parameter(help="Public path.")] = None,
    method: Annotated[str | None, Parameter(help="HTTP method, or * for any.")] = None,
    description: Annotated[str | None, Parameter(help="What it is.")] = None,
    rate_limit: Annotated[
        int | None, Parameter(help="Requests a minute and agent; 0 lifts the limit.")
    ] = None,
    protocol: Annotated[Literal["x402", "mpp"] | None, Parameter(help="How it is paid.")] = None,
    network: Annotated[str | None, Parameter(help="Where it is paid.")] = None,
    payout_address: Annotated[str | None, Parameter(help="Who is paid.")] = None,
    trust: Annotated[bool | None, Parameter(help="Whether to ask for a grade.")] = None,
    min_score: Annotated[float | None, Parameter(help="The score asked for.")] = None,
    cold_start: ColdStartOption = None,
    settle: Annotated[
        Literal["after", "before"] | None, Parameter(help="When it is settled.")
    ] = None,
    timeout_ms: Annotated[int | None, Parameter(help="The upstream's time.")] = None,
    max_body_bytes: Annotated[int | None, Parameter(help="Largest request body.")] = None,
    auth_header: Annotated[
        str | None, Parameter(help="Header for the upstream; its value is asked for.")
    ] = None,
    auth_secret: Annotated[
        bool, Parameter(negative=(), help="Ask for a new value of that header.")
    ] = False,
    pass_response_header: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Header of the upstream to let through; repeat for more."),
    ] = None,
    cors_origin: Annotated[
        tuple[str, ...] | None,
        Parameter(help="Origin whose pages may call it, or *; repeat for more."),
    ] = None,
    active: Annotated[bool | None, Parameter(help="Whether it answers.")] = None,
) -> int:
    """Change a wrapper, at once; what is not named stays. Payments asked for before still hold."""
    given = locals().copy()
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.edit(**given)


def wrappers_history(
    wrapper_id: WrapperId,
    *,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
) -> int:
    """Show what a wrapper has been: who changed what, and what was asked for when."""
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.history(wrapper_id, limit, as_json=json)


def wrappers_remove(email: Email, wrapper_id: WrapperId) -> int:
    """Deactivate a wrapper."""
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.remove(email, wrapper_id)


def wrappers_reseal() -> int:
    """Seal every stored secret under the current key, so that older keys can go.

    Those are the secrets of upstreams, webhooks, second factors and deposited credentials.
    """
    from assay.cli import wrappers  # noqa: PLC0415

    return wrappers.reseal()


def payments_list(
    *,
    state: Annotated[
        Literal[
            "claimed",
            "settling",
            "pending",
            "settled",
            "delivered",
            "released",
            "failed",
            "reversed",
        ]
        | None,
        Parameter(help="Only payments in this state."),
    ] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
) -> int:
    """List payments: who paid whom what for which wrapper, and what became of it."""
    from assay.cli import payments  # noqa: PLC0415

    return payments.list_all(state, limit, as_json=json)


def payments_reconcile() -> int:
    """Ask the chains what became of unfinished settlements. `serve` does so by itself."""
    from assay.cli import payments  # noqa: PLC0415

    return payments.reconcile()


def gas_show(
    email: Email, *, json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False
) -> int:
    """Print what an account may spend on settling today, and has prepaid."""
    from assay.cli import gas  # noqa: PLC0415

    return gas.show(email, as_json=json)


def gas_credit(
    email: Email,
    amount: Annotated[str, Parameter(help="USD, or coins of the network; below zero: take back.")],
    *,
    network: Annotated[
        str | None,
        Parameter(help="A network whose coin `ASSAY_GAS_USD` does not name; default: USD."),
    ] = None,
) -> int:
    """Add to what an account has prepaid for settling; a line of the audit trail."""
    from assay.cli import gas  # noqa: PLC0415

    return gas.credit(email, amount, network)


def payments_statement(
    *,
    email: Annotated[str | None, Parameter(help="Only this account.")] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
    csv: Annotated[bool, Parameter(negative=(), help="Print CSV.")] = False,
) -> int:
    """Print who is owed what: received, fee, refunds, payouts, by account and asset."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.statement(email, as_json=json, as_csv=csv)


def payments_transfers(
    *,
    email: Annotated[str | None, Parameter(help="Only this account.")] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
) -> int:
    """List payouts and refunds: from whom to whom, and what became of them."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.list_all(email, limit, as_json=json)


def payments_refund(
    payment_id: Annotated[str, Parameter(help="From `payments list`.")],
    *,
    amount: Annotated[str | None, Parameter(help="Less than all of it, such as 0.005.")] = None,
) -> int:
    """Give a payment back to its payer, once: sent with `ASSAY_PAYOUT_KEY`, or printed to sign."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.refund(payment_id, amount)


def payments_payout(
    email: Email,
    network: Annotated[str, Parameter(help="Such as `eip155:8453`.")],
    to: Annotated[str, Parameter(help="The account's own wallet.")],
    *,
    amount: Annotated[str | None, Parameter(help="Less than all that is owed.")] = None,
) -> int:
    """Pay an account what it is owed: sent with `ASSAY_PAYOUT_KEY`, or printed to sign."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.payout(email, network, to, amount)


def payments_record(
    transfer_id: Annotated[str, Parameter(help="From `payments transfers`, or the payment's.")],
    transaction: Annotated[str, Parameter(help="Hash of the transaction you signed.")],
) -> int:
    """Record the transaction of a transfer that you signed, once the chain shows it."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.record(transfer_id, transaction)


def payments_cancel(
    transfer_id: Annotated[str, Parameter(help="From `payments transfers`.")],
) -> int:
    """Give up a payout or refund that nobody has sent, or that failed on the chain."""
    from assay.cli import transfers  # noqa: PLC0415

    return transfers.cancel(transfer_id)


def evaluate(
    agent: Annotated[str, Parameter(help="Token id, or a key agent's address.")],
    *,
    chain: Annotated[
        str | None, Parameter(help="Slug of the chain; default: the default one.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print JSON.", negative="")] = False,
) -> int:
    """Evaluate an agent now and print every signal's part in its score."""
    from assay.cli import evidence  # noqa: PLC0415

    return evidence.evaluate(agent, chain, as_json=json)


def check(
    target: Annotated[
        str,
        Parameter(
            help="URL of a card, MCP server, OpenAPI document or site; or a registration file."
        ),
    ],
    *,
    service: Annotated[
        str | None, Parameter(help="What is spoken at the URL (A2A, MCP, web), if it is known.")
    ] = None,
    min_score: Annotated[float, Parameter(help="Score from which on the status is 0.")] = 65.0,
    format: Annotated[  # noqa: A002 - the option's name
        Literal["text", "json", "sarif", "junit"], Parameter(help="Form of the report.")
    ] = "text",
    output: Annotated[
        Path | None, Parameter(help="File for the report; default: print it.")
    ] = None,
    header_file: Annotated[
        Path | None,
        Parameter(help="File with one line `Name: value`: a credential for the target's services."),
    ] = None,
) -> int:
    """Evaluate an agent that is not registered, as a service would; for people and for CI.

    Status 0 when it reaches the score, 1 when it does not, 2 when there is nothing to evaluate.
    Nothing is stored, and no service has to run.
    """
    from assay.cli.check import check as run  # noqa: PLC0415

    return run(target, service, min_score, format, output, header_file)


def replay(
    *,
    weights: Annotated[str | None, Parameter(help='JSON, such as {"8004": 40}.')] = None,
    tiers: Annotated[
        str | None, Parameter(help="JSON rows [score, tier, riskLevel, route], best first.")
    ] = None,
    ladder: Annotated[str | None, Parameter(help='JSON, such as {"steady_visits": 7}.')] = None,
    everything: Annotated[
        bool, Parameter(name="--all", help="Unchanged grades too.", negative="")
    ] = False,
    json: Annotated[bool, Parameter(help="Print JSON.", negative="")] = False,
) -> int:
    """Score stored evidence under other weights, table or ladder; nothing is changed."""
    from assay.cli import evidence  # noqa: PLC0415

    return evidence.replay(weights, tiers, ladder, everything=everything, as_json=json)


def snapshots_verify() -> int:
    """Recompute every snapshot from its stored evidence: hashes, their chain, encrypted data."""
    from assay.cli import evidence  # noqa: PLC0415

    return evidence.verify_snapshots()


def analytics_rebuild(
    *, check: Annotated[bool, Parameter(negative=(), help="Compare only; change nothing.")] = False
) -> int:
    """Prove the roll-ups by the call log and the ledger, and make anew what differs.

    Status 1 when `--check` finds a difference. Takes minutes over millions of calls; whoever
    writes waits meanwhile, but not for a check.
    """
    from assay.cli import analytics  # noqa: PLC0415

    return analytics.rebuild(check=check)


def webhooks_deliveries(
    *,
    state: Annotated[
        Literal["pending", "sending", "sent", "failed"] | None,
        Parameter(help="Only deliveries in this state."),
    ] = None,
    limit: Annotated[int, Parameter(help="How many, newest first.")] = 50,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
) -> int:
    """List deliveries: who was told of which agent, and how it went."""
    from assay.cli import webhooks  # noqa: PLC0415

    return webhooks.deliveries(state, limit, as_json=json)


def secrets_rotate(
    name: Annotated[
        Literal["jwt", "session", "snapshot", "signing", "payment", "upstream"],
        Parameter(help="What it protects: dashboard tokens, agent sessions and so on."),
    ],
    *,
    compromised: Annotated[
        bool, Parameter(negative=(), help="The old one is known to others: accept it no longer.")
    ] = False,
) -> int:
    """Change a generated secret. What the old one made stays valid for its lifetime.

    Secrets given by settings are changed there, as a list: the new one, a comma, the old one.
    """
    from assay.cli import secrets  # noqa: PLC0415

    return secrets.rotate(name, compromised=compromised)
