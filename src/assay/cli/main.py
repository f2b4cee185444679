"""The command line: which commands there are, and which function runs each.

`assay --help` imports none of those functions: the command line library imports the module of a
command when that command is called, or asked for its own help. Arguments and options are declared
with the function.
"""

import sys
from collections.abc import Mapping
from typing import Final

from cyclopts import App

from assay import __version__

_GROUPS: Final[Mapping[str, str]] = {
    "accounts": "Operator accounts.",
    "wrappers": "Agent-ready wrappers of operators' APIs.",
    "payments": "The payment ledger.",
    "gas": "Who pays for settling x402 payments.",
    "snapshots": "The hash chains of evaluations.",
    "visits": "Agents visited at random times.",
    "analytics": "What is counted of calls and payments.",
    "webhooks": "Webhook deliveries.",
    "secrets": "The generated secrets.",
}

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "serve": (
        "serve:serve",
        "Serve until told to stop. Every other setting comes from the environment.",
    ),
    "demo": (
        "demo:demo",
        "Show the whole thing live: a local chain, real sample agents, their grades.",
    ),
    "openapi": (
        "openapi:openapi",
        "Print the OpenAPI 3.1 document.",
    ),
    "doctor": (
        "doctor:doctor",
        "Say what works, what does not and what is unsafe. Status 1 when something does not work.",
    ),
    "migrate": (
        "maintenance:migrate",
        "Bring the database's schema up to date. `serve` does so by itself.",
    ),
    "sell": (
        "sell:sell",
        (
            "Sell an API, with everything that needs: a wrapper, keys, and a first paid call.\n\n"
            "Tells which wallets to fund, waits until they are, buys one call and shows what the "
            "chain says of it. What was made before is used again: run it once more to go on."
        ),
    ),
    "sign": (
        "sign:sign",
        "Sign a challenge: the JSON of `.../challenge` in, the body for `.../verify` out.",
    ),
    "pay": (
        "pay:pay",
        "Call a paid API: 402, sign, 200, with each step shown.",
    ),
    "evaluate": (
        "evidence:evaluate",
        "Evaluate an agent now and print every signal's part in its score.",
    ),
    "check": (
        "check:check",
        (
            "Evaluate an agent that is not registered, as a service would; for people and for "
            "CI.\n\n"
            "Status 0 when it reaches the score, 1 when it does not, 2 when there is nothing to "
            "evaluate. Nothing is stored, and no service has to run."
        ),
    ),
    "replay": (
        "evidence:replay",
        "Score stored evidence under other weights, table or ladder; nothing is changed.",
    ),
    "accounts create": (
        "accounts:create",
        (
            "Create an account; the password is asked for, or read from standard input.\n\n"
            "Prints the account's first API key, once."
        ),
    ),
    "accounts list": (
        "accounts:list_all",
        "List every account.",
    ),
    "accounts set-plan": (
        "accounts:set_plan",
        "Change an account's plan.",
    ),
    "accounts set-role": (
        "accounts:set_role",
        "Change an account's role.",
    ),
    "accounts suspend": (
        "accounts:suspend",
        (
            "Suspend an account: no login, no API key, no wrapper and no webhook of it works any "
            "more.\n\n"
            "Processes that are serving refuse it within five seconds."
        ),
    ),
    "accounts restore": (
        "accounts:restore",
        "Let a suspended account work again.",
    ),
    "accounts set-password": (
        "accounts:set_password",
        (
            "Give an account a new password, asked for or read from standard input.\n\n"
            "All its dashboard sessions end at once."
        ),
    ),
    "accounts reset-link": (
        "accounts:reset_link",
        "Print a link with which an account's owner chooses a new password; good once, 30 minutes.",
    ),
    "accounts reset-totp": (
        "accounts:reset_totp",
        "Remove an account's second factor and recovery codes, for an owner who has lost both.",
    ),
    "accounts log-out": (
        "accounts:log_out",
        "End every dashboard session of an account, at once in every process.",
    ),
    "accounts invite": (
        "accounts:invite",
        "Print an invitation for `ASSAY_SIGN_UP=invite`; good once, for a week.",
    ),
    "accounts export": (
        "accounts:export",
        "Print everything that is kept of an account, as JSON.",
    ),
    "accounts delete": (
        "accounts:delete",
        (
            "Delete an account for good: keys, sessions, wrappers, webhooks and everything "
            "personal.\n\n"
            "Calls and payments stay, under the account's id."
        ),
    ),
    "wrappers add": (
        "wrappers:add",
        "Put a wrapper in front of an API; prints its public address.",
    ),
    "wrappers list": (
        "wrappers:list_all",
        "List an account's wrappers.",
    ),
    "wrappers edit": (
        "wrappers:edit",
        "Change a wrapper, at once; what is not named stays. Payments asked for before still hold.",
    ),
    "wrappers history": (
        "wrappers:history",
        "Show what a wrapper has been: who changed what, and what was asked for when.",
    ),
    "wrappers remove": (
        "wrappers:remove",
        "Deactivate a wrapper.",
    ),
    "wrappers reseal": (
        "wrappers:reseal",
        (
            "Seal every stored secret under the current key, so that older keys can go.\n\n"
            "Those are the secrets of upstreams, webhooks, second factors and deposited "
            "credentials."
        ),
    ),
    "payments list": (
        "payments:list_all",
        "List payments: who paid whom what for which wrapper, and what became of it.",
    ),
    "payments reconcile": (
        "payments:reconcile",
        "Ask the chains what became of unfinished settlements. `serve` does so by itself.",
    ),
    "payments statement": (
        "payments:statement",
        "Print who is owed what: received, fee, refunds, payouts, by account and asset.",
    ),
    "payments transfers": (
        "payments:list_transfers",
        "List payouts and refunds: from whom to whom, and what became of them.",
    ),
    "payments refund": (
        "payments:refund",
        "Give a payment back to its payer, once: sent with `ASSAY_PAYOUT_KEY`, or printed to sign.",
    ),
    "payments payout": (
        "payments:payout",
        "Pay an account what it is owed: sent with `ASSAY_PAYOUT_KEY`, or printed to sign.",
    ),
    "payments record-refund": (
        "payments:record",
        "Record the transaction of a transfer that you signed, once the chain shows it.",
    ),
    "payments record-payout": (
        "payments:record",
        "Record the transaction of a transfer that you signed, once the chain shows it.",
    ),
    "payments cancel-transfer": (
        "payments:cancel",
        "Give up a payout or refund that nobody has sent, or that failed on the chain.",
    ),
    "gas show": (
        "payments:show_gas",
        "Print what an account may spend on settling today, and has prepaid.",
    ),
    "gas credit": (
        "payments:credit_gas",
        "Add to what an account has prepaid for settling; a line of the audit trail.",
    ),
    "snapshots verify": (
        "evidence:verify_snapshots",
        "Recompute every snapshot from its stored evidence: hashes, their chain, encrypted data.",
    ),
    "visits show": (
        "visits:show",
        "Say when an agent is visited next, and why.",
    ),
    "visits enrol": (
        "visits:enrol",
        "Enrol an agent in its owner's name, who may have three.",
    ),
    "visits withdraw": (
        "visits:withdraw",
        "Take an enrolled agent out again.",
    ),
    "visits deposit": (
        "visits:deposit",
        (
            "Deposit a credential for a service, in its owner's name; visits need it to enter.\n\n"
            "What it is, such as `Bearer ...`, is asked for, or read from standard input."
        ),
    ),
    "visits credentials": (
        "visits:credentials",
        "List the credentials deposited for an agent, without what they are.",
    ),
    "visits erase": (
        "visits:erase",
        "Erase a deposited credential.",
    ),
    "analytics rebuild": (
        "maintenance:rebuild_rollups",
        (
            "Prove the roll-ups by the call log and the ledger, and make again what differs.\n\n"
            "Status 1 when `--check` finds a difference. Takes minutes over millions of calls; "
            "writers wait meanwhile, but not for a check."
        ),
    ),
    "webhooks deliveries": (
        "webhooks:deliveries",
        "List deliveries: who was told of which agent, and how it went.",
    ),
    "secrets rotate": (
        "maintenance:change_secret",
        (
            "Change a generated secret. What the old one made stays valid for its lifetime.\n\n"
            "Secrets given by settings are changed there, as a list: the new one, a comma, the "
            "old one."
        ),
    ),
}
"""Each command: `module:function` below `assay.cli`, and its help.

The help stands here and not in the function's docstring, for a list of commands shows it without
importing the function.
"""


def build() -> App:
    """The command line; nothing of a command is imported yet."""
    app = App(
        name="assay",
        help="Tests AI agents and stamps a grade on them, AAA to C.",
        version=__version__,
        result_action="return_value",
    )
    groups = {"": app, **{name: App(name=name, help=said) for name, said in _GROUPS.items()}}
    for name in _GROUPS:
        app.command(groups[name])
    for words, (function, said) in _COMMANDS.items():
        group, _, name = words.rpartition(" ")
        groups[group].command(f"assay.cli.{function}", name=name, help=said)
    return app


def main() -> None:
    """Run the command of the arguments and end the process with its status."""
    status = build()()
    sys.exit(status if isinstance(status, int) else 0)
