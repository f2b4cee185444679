"""Derives from the sandbox's evidence what control means for a grade. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from assay.common.json import JsonObject, JsonValue, is_array, is_object

CONTROL_UNPROVEN: Final = "control_unproven"
CONTROL_CONFLICT: Final = "control_conflict"
CLOSED_TO_US: Final = "closed_by_robots"


@dataclass(frozen=True, slots=True)
class ControlReason:
    """Why an agent is held at rung 0: a slug, a sentence, and the service if it concerns one."""

    code: str
    sentence: str
    service: str | None = None
    action: str = ""
    """What to do about it."""


_ENDS_WITH = (
    "Nothing has to be published: it ends with one unannounced visit that is passed, which needs"
    " proven control and no open critical finding."
)
_RENAME = "Give the agent a name that cannot be taken for another's."
_OUTLIVE = "It ends when the other agent's reputation is good again, or after 90 days."

_WHY = {
    "not_an_address": "its address is none that is called",
    "names_another": "its host, card or document names another agent",
    "longer_path": "another agent has proven a longer path of the same host",
    "interface_elsewhere": "its card sends callers to an address that is not proven",
}


def unproven(data: JsonObject) -> tuple[ControlReason, ...]:
    """Return a reason for every service whose control is not proven, except unfinished ones."""
    return tuple(
        ControlReason(
            CONTROL_UNPROVEN,
            f"Control of {row.get('service')} is not proven: "
            + _WHY.get(str(row.get("why")), "nothing there names this agent")
            + ".",
            str(row.get("service")),
        )
        for row in _rows(data, "control")
        if row.get("proof") is None and not row.get("unfinished")
    )


def undecided(data: JsonObject) -> tuple[ControlReason, ...]:
    """Return services whose control is disputed or unknown: they keep the current rung.

    They never earn a rung.
    """
    found: list[ControlReason] = []
    for row in _rows(data, "control"):
        service = str(row.get("service"))
        if row.get("conflict"):
            rivals = row.get("with")
            others = ", ".join(str(r) for r in rivals) if is_array(rivals) else "another agent"
            sentence = f"Control of {service} is proven for this agent and for {others}."
            found.append(ControlReason(CONTROL_CONFLICT, sentence, service))
        elif row.get("unfinished"):
            sentence = f"Whether control of {service} is proven could not be asked now."
            found.append(ControlReason("unfinished", sentence, service))
    return tuple(found)


def ceiling_reasons(data: JsonObject) -> tuple[ControlReason, ...]:
    """Return why this agent is held at rung 0 because of another agent.

    A copy, and a new agent on the site of an open critical finding, until it passes one unannounced
    visit; an imitator of a name, and an agent that a bad reputation follows, for as long as that is
    so.
    """
    identity = _identity(data)
    found: list[ControlReason] = []
    if not _has_passed_unannounced(data):
        clone = identity.get("clone")
        if is_object(clone):
            sentence = (
                f"Its texts are near-identical to those of {clone.get('agent')}, which has an"
            )
            found.append(
                ControlReason("clone", f"{sentence} open critical finding.", None, _ENDS_WITH)
            )
        for row in _rows(identity, "sameSite")[:1]:
            sentence = f"It came up on the site of {row.get('agent')}, which has an open critical"
            found.append(ControlReason("same_site", f"{sentence} finding.", None, _ENDS_WITH))
    imitates = identity.get("imitates")
    if is_object(imitates) and imitates.get("scored"):
        sentence = f"Its name cannot be distinguished from that of {imitates.get('agent')}."
        found.append(ControlReason("imitation", sentence, None, _RENAME))
    for row in _rows(identity, "badReputation")[:1]:
        sentence = f"The bad reputation of {row.get('agent')}, under the same control, follows it."
        found.append(ControlReason("reputation_follows", sentence, None, _OUTLIVE))
    return tuple(found)


def closed_to_us(data: JsonObject) -> tuple[ControlReason, ...]:
    """Return services that robots.txt closes to us: nothing is known of them."""
    return tuple(
        ControlReason(
            CLOSED_TO_US,
            f"The robots.txt of {row.get('endpoint')} asks Assay not to test it.",
            str(row.get("endpoint")),
            f"Let {_robots_of(str(row.get('endpoint')))} disallow nothing of it to"
            " `User-agent: Assay`.",
        )
        for row in _rows(data, "services")
        if row.get("state") == "opted_out"
    )


def _robots_of(endpoint: str) -> str:
    try:
        return urljoin(endpoint, "/robots.txt")
    except ValueError:  # Evidence that other visits produced.
        return "/robots.txt"


def inherited(data: JsonObject) -> tuple[ControlReason, ...]:
    """Return open critical findings of other agents under the same proven control: they count."""
    return tuple(
        ControlReason(
            str(row.get("check")),
            f"{row.get('agent')}, under the same control, has an open critical finding"
            f" ({row.get('check')}).",
        )
        for row in _rows(_identity(data), "inherited")
    )


def owned_days(data: JsonObject) -> int | None:
    """Return whole days since a transfer that changed the services' control; None: no limit.

    Rungs 2 to 4 count no day before that.
    """
    days = _identity(data).get("heldDays")
    return days if isinstance(days, int) and not isinstance(days, bool) else None


def shown_imitation(data: JsonObject) -> str | None:
    """Return the older agent of the same name, scored or not."""
    imitates = _identity(data).get("imitates")
    return str(imitates.get("agent")) if is_object(imitates) else None


def _has_passed_unannounced(data: JsonObject) -> bool:
    history = data.get("history")
    if not is_object(history) or history.get("openCritical"):
        return False
    count = history.get("unannounced")
    return isinstance(count, int) and count > 0


def _identity(data: JsonObject) -> JsonObject:
    found = data.get("identity")
    return found if is_object(found) else {}


def _rows(data: JsonObject, name: str) -> Sequence[JsonObject]:
    rows: JsonValue = data.get(name)
    return [row for row in rows if is_object(row)] if is_array(rows) else []
