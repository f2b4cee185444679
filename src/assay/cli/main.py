"""The command line: lists the commands, and the function that runs each.

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
    "receipts": "Signed receipts of paid calls.",
    "gas": "Who pays for settling x402 payments.",
    "snapshots": "The hash chains of evaluations.",
    "visits": "Agents visited at random times.",
    "analytics": "Sums of calls and payments.",
    "webhooks": "Webhook deliveries.",
    "secrets": "The generated secrets.",
}

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "serve": (
        "serve:serve",
        "Serve until stopped. Every other setting comes from the environment.",
    ),
    "demo": (
        "demo:demo",
        "Show the service live: a local chain, real sample agents, their grades.",
    ),
    "openapi": (
        "openapi:openapi",
        "Print the OpenAPI 3.1 document.",
    ),
    "doctor": (
        "doctor:doctor",
        "Report what works, what does not and what is unsafe. Status 1 if something does not work.",
    ),
    "status": (
        "status:status",
        (
            "Show the processes that serve on this database, and what waits in it.\n\n"
            "Status 1 unless one of them is ready. It changes nothing."
        ),
    ),
    "migrate": (
        "maintenance:migrate",
        (
            "Bring the database's schema up to date. `serve` does this by itself.\n\n"
            "`--plan` shows what would run and what it locks, and changes nothing."
        ),
    ),
    "backup": (
        "maintenance:backup",
        (
            "Write a backup of an installation into one file, while it serves.\n\n"
            "The file holds the database as of one moment, the encrypted snapshots, and the "
            "generated secrets and keys. PostgreSQL needs `pg_dump`, as new as the server."
        ),
    ),
    "restore": (
        "maintenance:restore",
        (
            "Restore a backup into an empty data directory and database, and prove it complete.\n\n"
            "Compares every table, snapshot, secret and roll-up with the backup; status 1 if "
            "anything is missing or different. `--verify` compares without restoring."
        ),
    ),
    "sell": (
        "sell:sell",
        (
            "Sell an API, with all that it needs: a wrapper, keys, and a first paid call.\n\n"
            "Names the wallets to fund, waits until they are funded, buys one call and shows it on "
            "the chain. Run it again to continue: it uses what an earlier run created."
        ),
    ),
    "sign": (
        "sign:sign",
        "Sign a challenge: reads the JSON of `.../challenge`, prints the body for `.../verify`.",
    ),
    "pay": (
        "pay:pay",
        "Call a paid API: 402, sign, 200, with each step shown.",
    ),
    "mcp": (
        "mcp:mcp",
        (
            "Serve the tools of a running Assay to language models, over MCP.\n\n"
            "Without `--http` it speaks on standard input and output. Keys come from the "
            "environment: `ASSAY_MCP_API_KEY` and the other settings of that prefix."
        ),
    ),
    "evaluate": (
        "evidence:evaluate",
        "Evaluate an agent now and print every signal's part of its score.",
    ),
    "check": (
        "check:check",
        (
            "Evaluate an agent that is not registered, as a service would; for people and for "
            "CI.\n\n"
            "Status 0 if it reaches the score, 1 if it does not, 2 if there is nothing to "
            "evaluate. Nothing is stored, and no service has to run."
        ),
    ),
    "replay": (
        "evidence:replay",
        "Score stored evidence with other weights, tiers or ladder; changes nothing.",
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
            "Suspend an account: its logins, API keys, wrappers and webhooks stop working.\n\n"
            "Serving processes refuse it within five seconds."
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
        "Print a link to choose a new password of an account; valid once, for 30 minutes.",
    ),
    "accounts reset-totp": (
        "accounts:reset_totp",
        "Remove an account's second factor and recovery codes, if its owner has lost both.",
    ),
    "accounts log-out": (
        "accounts:log_out",
        "End every dashboard session of an account, at once in every process.",
    ),
    "accounts invite": (
        "accounts:invite",
        "Print an invitation for `ASSAY_SIGN_UP=invite`; valid once, for a week.",
    ),
    "accounts export": (
        "accounts:export",
        "Print everything that is stored about an account, as JSON.",
    ),
    "accounts delete": (
        "accounts:delete",
        (
            "Delete an account permanently: keys, sessions, wrappers, webhooks and everything "
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
        "Change a wrapper at once; fields that are not named stay. Earlier quotes stay valid.",
    ),
    "wrappers history": (
        "wrappers:history",
        "Show a wrapper's revisions: who changed what, and its price at each time.",
    ),
    "wrappers apply": (
        "wrapper_file:apply",
        (
            "Make an account's wrappers what a file says, and show each difference.\n\n"
            "Nothing is written unless every entry is valid. `--dry-run` writes nothing."
        ),
    ),
    "wrappers export": (
        "wrapper_file:export",
        "Print the file that declares an account's wrappers, for `wrappers apply`.",
    ),
    "wrappers import": (
        "wrapper_import:import_document",
        (
            "Make a draft of a wrapper for each operation of an OpenAPI document.\n\n"
            "Drafts answer nobody until `wrappers edit ID --active`. A second import makes only "
            "what is missing."
        ),
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
        "List payments: payer, payee, amount, wrapper and state.",
    ),
    "payments reconcile": (
        "payments:reconcile",
        "Ask the chains about unfinished settlements. `serve` does this by itself.",
    ),
    "payments statement": (
        "payments:statement",
        "Print what each account is owed: received, fee, refunds, payouts, by asset.",
    ),
    "payments transfers": (
        "payments:list_transfers",
        "List payouts and refunds: sender, recipient and state.",
    ),
    "payments refund": (
        "payments:refund",
        "Refund a payment once: send it with `ASSAY_PAYOUT_KEY`, or print it to sign.",
    ),
    "payments payout": (
        "payments:payout",
        "Pay an account what it is owed: send it with `ASSAY_PAYOUT_KEY`, or print it to sign.",
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
        "Cancel a payout or refund that was not sent, or that failed on the chain.",
    ),
    "receipts verify": (
        "receipts:verify",
        (
            "Check a signed receipt: its signature, and the bodies and values that you name.\n\n"
            "Status 1 if the signature or anything else does not hold. With a key set in a file, "
            "nothing is sent."
        ),
    ),
    "gas show": (
        "payments:show_gas",
        "Print what an account may still spend on settling today, and its prepaid gas.",
    ),
    "gas credit": (
        "payments:credit_gas",
        "Add prepaid gas to an account; the audit trail records it.",
    ),
    "snapshots verify": (
        "evidence:verify_snapshots",
        "Recompute every snapshot from its stored evidence: hashes, their chain, encrypted data.",
    ),
    "visits show": (
        "visits:show",
        "Show when an agent is visited next, and why.",
    ),
    "visits enrol": (
        "visits:enrol",
        "Enrol an agent in its owner's name; an owner may enrol three.",
    ),
    "visits withdraw": (
        "visits:withdraw",
        "Withdraw an enrolled agent.",
    ),
    "visits deposit": (
        "visits:deposit",
        (
            "Deposit a credential for a service, in its owner's name; visits need it to enter.\n\n"
            "Asks for its value, such as `Bearer ...`, or reads it from standard input."
        ),
    ),
    "visits credentials": (
        "visits:credentials",
        "List the credentials deposited for an agent, without their values.",
    ),
    "visits erase": (
        "visits:erase",
        "Erase a deposited credential.",
    ),
    "analytics rebuild": (
        "maintenance:rebuild_rollups",
        (
            "Compare the roll-ups with the call log and the ledger, and correct what differs.\n\n"
            "Status 1 if `--check` finds a difference. Takes minutes over millions of calls; "
            "writers wait meanwhile, but not for a check."
        ),
    ),
    "webhooks deliveries": (
        "webhooks:deliveries",
        "List deliveries: receiver, agent and result.",
    ),
    "secrets rotate": (
        "maintenance:change_secret",
        (
            "Change a generated secret. What the old one signed stays valid for its lifetime.\n\n"
            "Change a secret of the settings there, as a list: the new one, a comma, the old one."
        ),
    ),
}
"""Each command: `module:function` below `assay.cli`, and its help.

The help is here and not in the function's docstring, so that a list of commands needs no import of
the function.
"""


def build() -> App:
    """Return the command line. It imports no command yet."""
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
    """Run the command that the arguments name, and end the process with its status."""
    status = build()()
    sys.exit(status if isinstance(status, int) else 0)
