"""How many links by mail may be asked for, counted by the codes that were issued.

A link is refused silently. A request for a reset from a network of the owner's counts apart from
strangers. Strangers' requests are refused only while a link that one of them asked for is still
good, or to a network that has had its few of the day: so an owner who comes from a new network
finds a good link in the mailbox, however many strangers ask.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from assay.accounts.codes import RESET_TTL
from assay.accounts.credential_ports import AskedBy, CodeBound

DAY: Final = timedelta(days=1)

OWNER_RESETS: Final = 2
"""Reset links that are good at once, asked for from the owner's networks."""

OWNER_RESETS_DAY: Final = 20
STRANGER_RESETS: Final = 1
"""Reset links that are good at once, asked for from elsewhere."""

STRANGER_RESETS_DAY: Final = 3
"""Reset links of one account a day that one such network asks for."""

TERMINAL_RESETS: Final = 3
"""Reset links that are good at once, made by the service's owner."""

ACCOUNT_VERIFICATIONS_DAY: Final = 3
MAILBOX_VERIFICATIONS_DAY: Final = 6
NETWORK_VERIFICATIONS_DAY: Final = 10


def reset_bounds(asked_by: AskedBy, now: datetime) -> Sequence[CodeBound]:
    """What bounds reset links of one account."""
    alive, day = now - RESET_TTL, now - DAY
    of_class = ("operator_id", "asked_by")
    match asked_by:
        case AskedBy.TERMINAL:
            return [CodeBound(TERMINAL_RESETS, alive, of_class)]
        case AskedBy.OWNER:
            return [
                CodeBound(OWNER_RESETS, alive, of_class),
                CodeBound(OWNER_RESETS_DAY, day, of_class),
            ]
        case AskedBy.STRANGER:
            return [
                CodeBound(STRANGER_RESETS, alive, of_class),
                CodeBound(STRANGER_RESETS_DAY, day, (*of_class, "origin")),
            ]


def verification_bounds(now: datetime) -> Sequence[CodeBound]:
    """What bounds verification mails: by account, by network, and by mailbox."""
    day = now - DAY
    return [
        CodeBound(ACCOUNT_VERIFICATIONS_DAY, day, ("operator_id",)),
        CodeBound(NETWORK_VERIFICATIONS_DAY, day, ("origin",)),
        CodeBound(MAILBOX_VERIFICATIONS_DAY, day, ("mailbox",)),
    ]
